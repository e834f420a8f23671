"""Adapters to indexers: nothing that a site says breaks a format, and no change is lost or taken twice."""

import io
import json
import os
import random
import shutil
import sqlite3
import subprocess
import tarfile
import time
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest
import tantivy
from google.protobuf.json_format import ParseDict, ParseError
from opensearch.protobufs.schemas.common_pb2 import OperationContainer
from test_feed_exports import Shelf

from lcc_scrapy.apps.exports.choosing import choose
from lcc_scrapy.apps.exports.indexers import htdig
from lcc_scrapy.apps.exports.indexers.formats import INDEXERS
from lcc_scrapy.apps.exports.indexers.interface import IndexFormat
from lcc_scrapy.apps.exports.indexers.updating import Updating
from lcc_scrapy.apps.exports.interface import ExportFormat
from lcc_scrapy.apps.exports.writing import Writing
from lcc_scrapy.domain.cursor import Position
from lcc_scrapy.domain.errors import ConfigurationError, LccError
from lcc_scrapy.domain.selection import Selection
from lcc_scrapy.feed.reader import Reader

STREAMS = [name for name, form in INDEXERS.items() if isinstance(form, ExportFormat)]
INDEXES = [name for name, form in INDEXERS.items() if isinstance(form, IndexFormat)]
INCREMENTAL = [name for name in STREAMS if not INDEXERS[name].rebuild]


@pytest.fixture
def shelf():
    return Shelf()


def streamed(shelf, name):
    out = io.BytesIO()
    writing = Writing(out, INDEXERS[name], shelf, shelf.open)
    writing.run(Reader(shelf, Selection()), lambda _: None)
    return out.getvalue(), writing.written


# --- streams, read as strictly as their programs do ----------------------------------------------


def of_swish_e(data):
    found = {}
    stream = io.BytesIO(data)
    while line := stream.readline():
        headers = {}
        while line != b"\n":
            name, value = line.decode("ascii").rstrip("\n").split(": ", 1)
            headers[name] = value
            line = stream.readline()
        assert list(headers) == ["Path-Name", "Content-Length", "Last-Mtime", "Document-Type"]
        body = stream.read(int(headers["Content-Length"])).decode("ascii")
        docid = body.split('"')[3]
        found[docid] = headers["Path-Name"] if headers["Path-Name"] != f"docid:{docid}" else ""
    return found, set()


def of_swish_plus_plus(data):
    with tarfile.open(fileobj=io.BytesIO(data)) as tar:
        members = {member.name: tar.extractfile(member).read().decode("ascii") for member in tar}
    links = dict(line.split("\t") for line in members.pop("links").split("\n")[:-1])
    assert links.keys() == members.keys()
    assert all(name == f"{name[3:5]}/{name[3:35]}.html" for name in members)
    assert all(page.startswith("<title>") for page in members.values())
    return {name[3:35]: link for name, link in links.items()}, set()


def of_xapian(data):
    found, gone = {}, set()
    for record in data.decode().split("\n\n")[:-1]:
        fields = dict(line.split("=", 1) for line in record.split("\n") if not line.startswith("="))
        assert next(iter(fields)) == "docid"
        assert set(fields) <= {"docid", "mtime", "url", "title", "body"}
        if len(fields) == 1:
            gone.add(fields["docid"])
        else:
            found[fields["docid"]] = fields.get("url", "")
    return found, gone


def check_operation(action):
    """Read an action line by OpenSearch's own schema, in which leading underscores are written ``x_``."""
    named = {
        kind: {f"x{name}" if name[0] == "_" else name: value for name, value in about.items()}
        for kind, about in action.items()
    }
    ParseDict(named, OperationContainer())


@pytest.mark.parametrize("action", [{"index": {"id": "x"}}, {"delete": {"_id": 1}}, {"remove": {"_id": "x"}}])
def test_other_actions_are_not_those_of_the_schema(action):
    with pytest.raises(ParseError):
        check_operation(action)


def of_opensearch(data):
    found, gone = {}, set()
    lines = iter([json.loads(line) for line in data.decode("ascii").split("\n")[:-1]])
    for action in lines:
        ((kind, about),) = action.items()
        check_operation(action)
        if kind == "delete":
            gone.add(about["_id"])
        else:
            assert not gone, "pairs of lines come first"
            document = next(lines)
            assert set(document) == {"title", "body", "link", "mimetype", "fetched_time"}
            found[about["_id"]] = document["link"] or ""
    return found, gone


def of_meilisearch(data):
    found, gone = {}, set()
    for line in data.decode("ascii").split("\n")[:-1]:
        document = json.loads(line)
        if document["departed"]:
            assert set(document) == {"docid", "departed"}
            gone.add(document["docid"])
        else:
            found[document["docid"]] = document["link"] or ""
    return found, gone


READ = {
    "swish-e": of_swish_e,
    "swish++": of_swish_plus_plus,
    "xapian": of_xapian,
    "opensearch": of_opensearch,
    "meilisearch": of_meilisearch,
}
PIECES = [
    "\n", "\r\n", "\n\n", "\x00", "\x1b[2J", "\t", "|", "=", "\n=docid=0", "\ndocid=0", "Path-Name: x\n", "</title>",
    "Content-Length: 0\n\n", "<!--", "<script>", "é", "\u2028", "\u202e", "'", '"', "\\", "`id`", "$(id)", "../", "&#0;",
    "\ud7ff", "\U0001f600", "a b", "<meta name=docid content=0>", "\x85", "\x0b", "\x0c", "]]>", "%0a", '{"delete":', "\v",
]  # fmt: skip


def fill_with_hostile_pages(shelf, count=200):
    chance = random.Random(5)

    def text():
        return "".join(chance.choices(PIECES, k=chance.randint(0, 8)))

    for number in range(count):
        body = f"<title>{text()}</title>{text()}<p>findable{number}"
        kind = chance.choice(["text/html", "text/plain", "application/xml"])
        link = None if number % 10 == 0 else f"http://www.example.org/{text()}{number}"
        shelf.add(body.encode("utf-8", "replace"), mimetype=kind, burl=link, served_charset=text()[:60])


def test_every_adapter_is_tested_here():
    assert READ.keys() == set(STREAMS)
    assert set(INDEXES) == {"fts5", "htdig", "tantivy"}


@pytest.mark.parametrize("name", STREAMS)
def test_hostile_links_titles_and_contents_stay_in_their_fields(shelf, name):
    fill_with_hostile_pages(shelf)
    data, _ = streamed(shelf, name)
    found, gone = READ[name](data)
    assert set(found) == {row.docid for row in shelf.rows}
    assert not gone
    for row in shelf.rows:
        link = found[row.docid]
        assert bool(link) == bool(row.burl)
        assert link == (row.burl or "") or not set(link) & set('\n\r\t "<>|')


@pytest.mark.parametrize("name", INCREMENTAL)
def test_removals_and_documents_without_text_are_taken_out(shelf, name):
    shelf.remove()
    image, page = shelf.add(b"\x89PNG", mimetype="image/png"), shelf.add(b"<p>a")
    data, written = streamed(shelf, name)
    found, gone = READ[name](data)
    assert set(found) == {page.docid}
    assert gone == {image.docid, shelf.rows[0].docid}
    assert (written.documents, written.textless, written.removals) == (1, 1, 1)


@pytest.mark.parametrize("name", ["swish-e", "swish++"])
def test_who_rebuilds_is_given_what_is_there_alone(shelf, name):
    page, _ = shelf.add(b"<p>a"), shelf.add(b"\x89PNG", mimetype="image/png")
    shelf.remove()
    assert set(READ[name](streamed(shelf, name)[0])[0]) == {page.docid}


def program(name):
    found = shutil.which(name)
    if found is None:
        text = f"{name} is missing: apt-get install swish-e htdig xapian-omega xapian-tools"
        (pytest.fail if os.environ.get("CI") == "true" else pytest.skip)(text)
    return found


def test_the_real_swish_e_indexes_every_hostile_page(shelf, tmp_path):
    fill_with_hostile_pages(shelf)
    words = ["-S", "prog", "-i", "stdin", "-f", str(tmp_path / "index"), "-v", "1", "-W", "0"]
    done = subprocess.run(
        [program("swish-e"), *words], input=streamed(shelf, "swish-e")[0], capture_output=True, check=True
    )
    assert b"200 files indexed" in done.stdout


def test_the_real_scriptindex_adds_replaces_and_deletes_hostile_pages(shelf, tmp_path):
    fill_with_hostile_pages(shelf)
    script = tmp_path / "script"
    script.write_text(
        "docid : boolean=Q unique=Q field\nurl : field\nmtime : field date=unix\ntitle : index=S index field\nbody : unhtml index\n"
    )

    def index():
        words = [program("scriptindex"), str(tmp_path / "index"), str(script)]
        done = subprocess.run(words, input=streamed(shelf, "xapian")[0], capture_output=True, check=True)
        return done.stdout.decode().rpartition("= ")[2].strip()

    assert index() == "(200, 0, 0, 0)"
    shelf.rows = shelf.rows[:150]
    assert index() == "(0, 150, 0, 0)"


# --- indexes -------------------------------------------------------------------------------------


def updated(shelf, name, path, *, kill=False):
    """Update an index; with ``kill``, end before anything is committed."""
    index = INDEXERS[name].open(path)
    try:
        reader = Reader(shelf, Selection(), Position.parse(index.cursor) if index.cursor else None)
        if kill:
            index.commit = lambda _: (_ for _ in ()).throw(KeyboardInterrupt)
        updating = Updating(index, shelf.open)
        updating.run(reader, lambda _: None)
    except KeyboardInterrupt:
        pass
    finally:
        index.close()
    return updating.written


def in_fts5(path):
    with closing(sqlite3.connect(path)) as database:
        rows = database.execute(
            "select docid, link, title, body from documents join pages on pages.rowid = documents.id"
        )
        return {docid: (link or "", title, body) for docid, link, title, body in rows}


def in_tantivy(path):
    index = tantivy.Index.open(str(path))
    searcher = index.searcher()
    hits = searcher.search(tantivy.Query.all_query(), 10_000).hits
    found = [searcher.doc(address).to_dict() for _, address in hits]
    assert len({one["docid"][0] for one in found}) == len(found)
    return {
        one["docid"][0]: (one.get("link", [""])[0], one["title"][0], one["body"][0])
        for one in found
        if one["docid"][0] != "place"
    }


def in_htdig(folder):
    found = {}
    for path in (folder / "pages").glob("??/*"):
        head, _, body = path.read_bytes().decode("ascii").partition("\n\n")
        fields = dict(line.split(":\t") for line in head.split("\n"))
        assert len(body) == int(fields["l"])
        link = fields["u"].removeprefix(f"http://lcc/{path.name}/")
        title = body.partition("<title>")[2].partition("</title>")[0]
        found[path.name[:32]] = (link, title, body.rpartition("<p>")[2])
    return found


IN = {"fts5": in_fts5, "tantivy": in_tantivy, "htdig": in_htdig}


def replace_page(shelf, row, body, **values):
    """Serve a page with another content, behind all other changes."""
    after = shelf.rows[-1].seq + 1
    shelf.rows.remove(row)
    shelf.rows.append(replace(shelf.add(body, **{"curl": row.curl, "burl": row.burl, **values}), seq=after))
    del shelf.rows[-2]
    return shelf.rows[-1]


@pytest.mark.parametrize("name", INDEXES)
def test_an_index_holds_what_there_is_after_every_update(shelf, tmp_path, name):
    path = tmp_path / "index"
    one = shelf.add(b"<title>One</title><p>apple", burl="http://www.example.org/one")
    two = shelf.add(b"<title>Two</title><p>banana", burl=None)
    assert updated(shelf, name, path).documents == 2
    assert IN[name](path) == {
        one.docid: ("http://www.example.org/one", "One", IN[name](path)[one.docid][2]),
        two.docid: ("", "Two", IN[name](path)[two.docid][2]),
    }
    assert "apple" in IN[name](path)[one.docid][2]
    assert updated(shelf, name, path).documents == 0
    again = replace_page(shelf, one, b"<title>One again</title><p>cherry")
    assert again.docid == one.docid
    assert updated(shelf, name, path).documents == 1
    assert IN[name](path)[one.docid][1] == "One again"
    assert "apple" not in IN[name](path)[one.docid][2]


@pytest.mark.parametrize("name", INDEXES)
def test_hostile_pages_are_in_every_index(shelf, tmp_path, name):
    fill_with_hostile_pages(shelf)
    updated(shelf, name, tmp_path / "index")
    found = IN[name](tmp_path / "index")
    assert set(found) == {row.docid for row in shelf.rows}
    assert all(bool(found[row.docid][0]) == bool(row.burl) for row in shelf.rows)


@pytest.mark.parametrize("name", INDEXES)
def test_what_was_not_committed_comes_again(shelf, tmp_path, name):
    path = tmp_path / "index"
    shelf.add(b"<title>One</title><p>apple")
    updated(shelf, name, path)
    two = shelf.add(b"<title>Two</title><p>banana")
    assert updated(shelf, name, path, kill=True).documents == 1
    if name != "htdig":
        assert two.docid not in IN[name](path)
    assert updated(shelf, name, path).documents == 1
    assert two.docid in IN[name](path)
    assert updated(shelf, name, path).documents == 0


@pytest.mark.parametrize("name", INDEXES)
def test_what_is_something_else_is_not_touched(shelf, tmp_path, name):
    path = tmp_path / "other"
    if name == "fts5":
        with sqlite3.connect(path) as database:
            database.execute("create table mine (x)")
        database.close()
    else:
        path.mkdir()
        (path / "mine").write_text("mine")
    with pytest.raises(LccError, match="does not exist yet"):
        INDEXERS[name].open(path)
    assert path.is_file() or [one.name for one in path.iterdir()] == ["mine"]


def test_a_file_that_is_no_database_is_refused_in_one_line(tmp_path):
    path = tmp_path / "other"
    path.write_text("something else " * 100)
    with pytest.raises(LccError, match="cannot be used as an index"):
        INDEXERS["fts5"].open(path)


def test_a_full_disk_is_one_line_and_the_index_stays_as_it_was(shelf, tmp_path):
    path = tmp_path / "index"
    one = shelf.add(b"<p>apple")
    updated(shelf, "fts5", path)
    shelf.add(random.Random(3).randbytes(100_000).hex().encode())
    index = INDEXERS["fts5"].open(path)
    index._database.execute("pragma max_page_count = 1")
    with pytest.raises(LccError, match="full"):
        Updating(index, shelf.open).run(
            Reader(shelf, Selection(), Position.parse(index.cursor)), lambda _: None
        )
    index.close()
    assert set(in_fts5(path)) == {one.docid}


def test_two_writers_of_one_index_do_not_mix(shelf, tmp_path):
    shelf.add(b"<p>apple")
    updated(shelf, "tantivy", tmp_path / "tantivy")
    index = INDEXERS["tantivy"].open(tmp_path / "tantivy")
    with pytest.raises(LccError, match="cannot be used"):
        INDEXERS["tantivy"].open(tmp_path / "tantivy")
    index.close()


# --- ht://Dig ------------------------------------------------------------------------------------


def changed(folder):
    return [line for line in (folder / "changed").read_text().split("\n") if line]


def test_a_kill_before_the_commit_leaves_a_removed_page_until_it_is_told_of(shelf, tmp_path):
    folder = tmp_path / "pages"
    row = shelf.add(b"<p>apple", burl="http://www.example.org/")
    updated(shelf, "htdig", folder)
    (url,) = changed(folder)
    (folder / "changed").write_text("http://lcc/half of a li")
    index = INDEXERS["htdig"].open(folder)
    index.departure({"docid": row.docid})
    index.close()
    assert row.docid in in_htdig(folder)
    index = INDEXERS["htdig"].open(folder)
    index.departure({"docid": row.docid})
    index.commit(index.cursor)
    index.close()
    assert in_htdig(folder) == {}
    assert changed(folder) == ["http://lcc/half of a li", url, url]


def test_another_link_is_another_page_for_ht_dig_and_the_old_one_goes(shelf, tmp_path):
    folder = tmp_path / "pages"
    row = shelf.add(b"<p>apple", burl="http://www.example.org/old")
    updated(shelf, "htdig", folder)
    (old,) = changed(folder)
    replace_page(shelf, row, b"<p>apple", burl="http://www.example.org/new")
    updated(shelf, "htdig", folder)
    assert [link for link, *_ in in_htdig(folder).values()] == ["http://www.example.org/new"]
    assert changed(folder)[1] == old
    assert changed(folder)[2].endswith("/http://www.example.org/new")


def test_a_page_that_changes_twice_in_a_second_is_newer_each_time(shelf, tmp_path):
    folder = tmp_path / "pages"
    row = shelf.add(b"<p>apple", burl="http://www.example.org/")
    updated(shelf, "htdig", folder)
    first = next((folder / "pages").glob("??/*")).stat().st_mtime
    replace_page(shelf, row, b"<p>banana")
    updated(shelf, "htdig", folder)
    assert next((folder / "pages").glob("??/*")).stat().st_mtime == first + 1


@pytest.mark.parametrize(
    "url",
    [
        "http://lcc/robots.txt", "http://lcc/../../../etc/passwd", "http://lcc/$(touch touched)", "http://lcc/`touch touched`",
        "http://lcc/; touch touched", "http://lcc/" + "0" * 32 + "-" + "0" * 8 + "/x\nu:\tother", "", "http://lcc/" + "a" * 100_000,
    ],
)  # fmt: skip
def test_the_handler_answers_404_to_everything_else(shelf, tmp_path, url):
    folder = tmp_path / "pages"
    updated(shelf, "htdig", folder)
    done = subprocess.run(
        [folder / "handler", "http", url, "x"], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    assert done.stdout.startswith("s:\t404\n")
    assert not list(tmp_path.rglob("touched"))
    assert done.stderr == ""


def test_the_handler_answers_with_the_page(shelf, tmp_path):
    folder = tmp_path / "pages"
    shelf.add("<title>é</title>".encode(), burl="http://www.example.org/a b?c=é")
    updated(shelf, "htdig", folder)
    (url,) = changed(folder)
    assert url.endswith("/http://www.example.org/a%20b?c=%C3%A9")
    done = subprocess.run(
        [folder / "handler", "http", url, "x"], capture_output=True, text=True, check=True
    ).stdout
    assert done.startswith("s:\t200\nr:\tOK\nm:\t")
    assert done.endswith("\n\n<title>&#233;</title>")
    for other, status in ((url.replace("%20", " "), 200), (url.replace("/a%20b", "/embedded.svg"), 404)):
        done = subprocess.run(
            [folder / "handler", "http", other, "x"], capture_output=True, text=True, check=True
        )
        assert done.stdout.startswith(f"s:\t{status}\n")


def test_a_folder_that_ht_dig_cannot_name_is_refused(tmp_path):
    with pytest.raises(LccError, match="another folder"):
        htdig.HTDIG.open(tmp_path / "with blank")
    assert not (tmp_path / "with blank").exists()


# --- formats of one's own ------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "text"),
    [("nextrieve", "there are tar.gz"), ("no_such_module:X", "no_such_module"), ("json:X", "X"), ("json:dumps", "no format"), (":", "no format")],
)  # fmt: skip
def test_what_is_no_format_is_refused_in_one_line(name, text):
    with pytest.raises(ConfigurationError, match=text):
        choose(name)


def test_a_format_of_ones_own_is_found_in_the_current_folder(tmp_path, monkeypatch):
    name = f"own_{time.monotonic_ns()}"
    (tmp_path / f"{name}.py").write_text(
        "from lcc_scrapy.apps.exports.indexers.xapian import XAPIAN\nOWN = XAPIAN\n"
    )
    monkeypatch.chdir(tmp_path)
    assert choose(f"{name}:OWN") is INDEXERS["xapian"]
    assert Path.cwd() == tmp_path
