"""Earlier contents and meta-information, as content users ask for them."""

import json
from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest
from test_cli import SITE, House, one_error, rows_of

from lcc_scrapy.content_user import ContentGone, ContentLost, ContentUser
from lcc_scrapy.db.records import DocumentLink, Ownership
from lcc_scrapy.domain.entries import Operation, furlkey
from lcc_scrapy.domain.versions import Keep
from lcc_scrapy.feed.meta_information import NAMESPACE


@pytest.fixture
def small(tmp_path):
    """A house on SQLite whose document "a" had four contents, of which two earlier ones are kept."""
    made = House(tmp_path)
    made.policy = replace(made.policy, versions=Keep(2))
    made.lcc("init")
    made.add()
    made.documents("b")
    for body in (b"one", b"two", b"three", b"four"):
        made.push("a")
        made.fetch(body=body)
    return made


def read(user, one):
    with user.open(one) as stream:
        return stream.read()


def row_of(house, name="a"):
    (row,) = rows_of(house.lcc("select", "--format", "jsonl", "--url-prefix", SITE + name))
    return row


def test_versions_lists_what_is_there_newest_first(small):
    (document,) = small.json("versions", SITE + "a")
    assert (document["docid"], document["curl"]) == (row_of(small)["docid"], SITE + "a")
    assert [Path(one["path"]).read_bytes() for one in document["versions"]] == [b"three", b"two"]
    lines = small.lcc("versions", document["docid"]).stdout.splitlines()
    assert lines[0].split("\t") == ["change", "fetched", "replaced", "bytes", "served as", "file"]
    assert [line.split("\t")[3] for line in lines[1:]] == ["4", "5", "3"]
    assert [bool(line.split("\t")[2]) for line in lines[1:]] == [False, True, True]
    assert [Path(line.split("\t")[5]).read_bytes() for line in lines[1:]] == [b"four", b"three", b"two"]


def test_a_document_without_versions_and_one_that_is_not_there(small):
    (document,) = small.json("versions", SITE + "b")
    assert document["versions"] == []
    assert "lcc explain" in one_error(small.lcc("versions", SITE + "never", status=1))
    assert "lcc explain" in one_error(small.lcc("meta", SITE + "a", "--provider", "8", status=1))


def test_select_gives_documents_their_versions_and_removals_none(small):
    small.push("b", operation=Operation.REMOVE)
    told = rows_of(small.lcc("select", "--format", "jsonl", "--versions"))
    assert [row["op"] for row in told] == ["upsert", "remove"]
    assert [one["len"] for one in told[0]["versions"]] == [5, 3]
    assert "versions" not in told[1]
    assert "versions" not in row_of(small)


@pytest.mark.parametrize(
    "words", [("--format", "csv"), (), ("--ids", "--format", "jsonl"), ("--format", "jsonl", "--exec", "cat")]
)
def test_versions_stand_in_json_lines_only(small, words):
    assert "--versions" in small.lcc("select", "--versions", *words, status=2).stderr


def test_content_users_open_earlier_contents(small):
    with ContentUser(small.settings) as user:
        (row,) = user.find(SITE + "a")
        assert user.find(row.docid.upper()) == [row]
        kept = user.versions(row)
        assert [read(user, one) for one in (row, *kept)] == [b"four", b"three", b"two"]
        path = small.data / "content" / "1" / "000" / "000" / str(kept[0].fetched_fileid)
        path.unlink()
        with pytest.raises(ContentLost):
            user.open(kept[0])
        small.push("a", operation=Operation.REMOVE)
        with pytest.raises(ContentGone):
            user.open(kept[0])
        assert user.versions(row) == []
        assert read(user, kept[1]) == b"two"  # within the grace


def test_meta_is_the_seeds_document_with_links_and_versions(small):
    store = small.store()
    with store.begin() as tx:
        (row,) = tx.find_url(SITE + "a")[0]
        tx.put_links({row.urlkey: [DocumentLink(SITE + "b", "a"), DocumentLink(SITE + "c?x=1&y=2", "a")]})
    store.close()
    found = ET.fromstring(small.lcc("meta", SITE + "a").stdout)
    text = {element.tag.removeprefix(f"{{{NAMESPACE}}}"): element.text for element in found}
    assert text["url"] == SITE + "a"
    assert text["ip"] == "192.0.2.1"
    assert text["header"].split("\n")[1].strip() == "HTTP/1.1 200 OK"
    assert text["links"].split() == [SITE + "b", SITE + "c?x=1&y=2"]
    assert (text["md5"], text["length"]) == (row.fetched_md5, "4")
    told = small.json("meta", row.docid)
    assert told["links"] == text["links"].split()
    assert [one["len"] for one in told["versions"]] == [5, 3]
    with ContentUser(small.settings) as user:
        assert user.meta(row).links == (SITE + "b", SITE + "c?x=1&y=2")


def test_meta_of_a_url_with_several_documents_asks_which(small):
    small.documents("a", mimetype="text/plain")
    assert row_of(small, "b")["docid"] not in (said := one_error(small.lcc("meta", SITE + "a", status=1)))
    assert "2 documents" in said
    assert len(small.json("versions", SITE + "a")) == 2


def test_status_counts_versions_and_verify_knows_them(small):
    assert small.json("status")["versions"] == 2
    assert "2 earlier contents" in small.lcc("status").stdout
    assert json.loads(small.lcc("verify", "--json").stdout)["findings"] == []


# --- confirmations and owners --------------------------------------------------------------------


def test_select_prints_what_was_found_unchanged_behind_a_cursor_of_its_own(small):
    assert rows_of(small.lcc("select", "--confirmed", "--format", "jsonl", "--cursor-file", "seen")) == []
    for body in (b"four", b"four"):
        small.push("a")
        small.fetch(body=body)
    words = ("select", "--confirmed", "--cursor-file", "seen")
    (one,) = rows_of(small.lcc(*words, "--format", "jsonl"))
    assert (one["op"], one["docid"], one["seq"]) == ("confirm", row_of(small)["docid"], 2)
    assert rows_of(small.lcc(*words, "--format", "jsonl")) == []
    told = small.lcc("select", "--confirmed").stdout.splitlines()
    assert [line.split("\t")[-1] for line in told] == ["url", SITE + "a"]
    small.lcc("select", "--confirmed", "--exec", "cat > told")
    assert json.loads((small.folder / "told").read_text())["op"] == "confirm"
    assert "another selection" in one_error(small.lcc("select", "--cursor-file", "seen", status=2))


@pytest.mark.parametrize("other", [("--ids",), ("--versions", "--format", "jsonl")])
def test_confirmations_have_neither_ids_nor_versions(small, other):
    assert "--confirmed" in small.lcc("select", "--confirmed", *other, status=2).stderr


def test_owners_are_in_rows_everywhere(small):
    small.push("a")
    small.fetch(body=b"four")
    store = small.store()
    with ContentUser(small.settings) as user:
        (row,) = user.find(SITE + "a")
        with store.begin() as tx:
            tx.put_owners(
                [Ownership(furlkey(row.pid, row.furl), owner, row.pid) for owner in ("bert", "anna")]
            )
        assert user.owners(row) == ["anna", "bert"]
        assert user.meta(row).owners == ("anna", "bert")
        assert [one.curl for one in user.confirmations()] == [row.curl]
    store.close()
    assert row_of(small)["owners"] == ["anna", "bert"]
    told = [row for row in rows_of(small.lcc("follow", "--once")) if row["curl"] == SITE + "a"]
    assert told[0]["owners"] == ["anna", "bert"]
    assert 'owners="anna bert"' in small.lcc("select", "--format", "xml").stdout
