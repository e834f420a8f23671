"""Searching texts from the dashboard: an index that ``lcc export`` wrote, and all that may be wrong with it."""

import html
import os
import re
import sqlite3
from contextlib import closing
from dataclasses import replace

import pytest
from argon2 import PasswordHasher

from lcc_scrapy.apps.dashboard import search_page
from lcc_scrapy.feed import fts5_search
from lcc_scrapy.login import passwords
from tests.dashboard_house import EVIL, DashboardHouse, write_index
from tests.web_house import NOW


@pytest.fixture(autouse=True)
def time_enough(monkeypatch):
    """A busy machine ends no search."""
    for name in ("SECONDS", "RANKING"):
        monkeypatch.setattr(fts5_search, name, 1e6)


@pytest.fixture(autouse=True)
def quick_passwords(monkeypatch):
    """One pass over little memory: how a password is hashed is tested elsewhere."""
    monkeypatch.setattr(passwords, "_HASHER", PasswordHasher(1, 8, 1))


@pytest.fixture
def path(tmp_path):
    return tmp_path / "search index?.db"


@pytest.fixture
def house(path):
    made = DashboardHouse(index=path)
    texts = {
        (7, "bread"): f"<title>Bread {EVIL}</title> bread and <b>butter</b> {html.escape(EVIL)}",
        (7, "jam"): "<title>Jam</title> jam and butter",
        (8, "milk"): "<title>Milk</title> milk, butter and cheese of eight",
    }
    rows = [(made.document(*place), text.encode()) for place, text in texts.items()]
    write_index(path, rows, made.head())
    os.utime(path, (NOW, NOW))
    return made


def searched(house, text, name="vera"):
    with house.browser(name) as client:
        told = client.get("/dashboard/find", params={"q": text})
    assert told.status_code == 200, told.text
    return told.text


def titles(shown):
    return list(map(html.unescape, re.findall(r"<article><h3><a [^>]*>([^<]*)</a>", shown)))


def test_texts_with_all_the_words_are_found_and_the_words_are_marked(house):
    assert titles(searched(house, "milk butter")) == ["Milk"]
    assert titles(searched(house, '"jam and"')) == ["Jam"]
    assert titles(searched(house, "jam milk")) == []
    shown = searched(house, "butter")
    assert len(titles(shown)) == 3
    assert shown.count("<mark>butter</mark>") == 3
    docid = re.search(r'<article><h3><a href="/dashboard/urls\?url=([0-9a-f]{32})">Milk', shown)
    assert docid is not None


def test_what_sites_wrote_stays_text(house):
    for text in ("bread", EVIL, '"><mark>'):
        shown = searched(house, text).replace("<mark>bread</mark>", "").split("<main>")[1]
        for wrong in ("<script", "<img", "\u202e", "<mark>alert"):
            assert wrong not in shown
    assert "\\u202e" in searched(house, "bread")


def test_an_owner_finds_own_documents_and_the_same_words_whatever_others_have(house):
    shown = searched(house, "butter", "sven")
    assert sorted(titles(shown)) == ["Bread " + EVIL.replace("\u202e", "\\u202e"), "Jam"]
    assert "cheese" not in shown
    never, others = (
        searched(house, word, "sven").split("Documents</h2>")[1] for word in ("nowhere", "cheese")
    )
    assert never == others


def test_removed_documents_are_not_found(house):
    with house.store.begin() as tx:
        tx.delete_cached([row.urlkey for row in tx.cached_of(8, b"", 9)])
    assert titles(searched(house, "cheese")) == []


def test_of_many_documents_the_best_are_shown_and_no_more(house, path):
    rows = [(house.document(8, f"many{n}"), f"wheat number {n}".encode()) for n in range(150)]
    rows += [
        (house.document(7, f"own{n}"), b"wheat " + b"other words " * 50) for n in range(search_page.SHOWN)
    ]
    write_index(path, rows, house.head())
    shown = searched(house, "wheat")
    assert len(titles(shown)) == search_page.SHOWN
    assert "There are more" in shown
    assert len(shown.encode()) < 100_000
    own = searched(house, "wheat", "sven")
    assert len(titles(own)) == search_page.SHOWN, "behind all those of others"
    assert "There are more" not in own


def test_a_page_with_the_worst_documents_is_not_larger_than_a_hundred_kilobytes(house, path):
    bad, quotes = "\u202e" * 900, "'\"" * 400
    text = f"<title>{bad}</title>" + f"wheat{quotes} {bad} " * 40
    count = search_page.SHOWN + 1
    rows = [(house.document(8, f"long{n}{quotes}"), text.encode()) for n in range(count)]
    write_index(path, rows, house.head())
    shown = searched(house, "wheat")
    assert len(titles(shown)) == search_page.SHOWN
    assert len(shown.encode()) < 100_000


def test_the_page_says_how_old_the_index_is(house):
    assert "up to change 3 of 3: it has all of them" in searched(house, "butter")
    for number in range(1200):
        with house.store.begin() as tx:
            tx.take("feed", 1)
        del number
    shown = searched(house, "butter")
    assert "up to change 3 of 1203: the newest 1\u202f200 are not in it" in shown
    assert "written 2027-01-15 08:00:00Z" in shown or re.search(
        r"written \d{4}-\d\d-\d\d \d\d:\d\d:\d\dZ", shown
    )


def test_providers_urls_and_docids_are_found_as_without_an_index(house):
    assert "/dashboard/providers/9" in searched(house, "example.org/9")
    with house.browser("vera") as client:
        for text, path in (("7", "/dashboard/providers/7"), ("0" * 32, "/dashboard/urls?url=" + "0" * 32)):
            told = client.get("/dashboard/find", params={"q": text}, follow_redirects=False)
            assert told.headers["location"] == path


def test_without_the_setting_providers_are_listed_and_there_is_no_such_page():
    with DashboardHouse().browser("vera") as client:
        told = client.get("/dashboard/find", params={"q": "bread"}, follow_redirects=False)
        assert told.headers["location"] == "/dashboard/providers?q=bread"
        assert client.get("/dashboard/search?q=bread").status_code == 404


@pytest.mark.parametrize(
    "text", ["", '"', "*", "NEAR(", "bread OR", "\x00", "a" * 5000, "^", "-", "{title}:", "(((("]
)
def test_nothing_that_is_written_is_an_error(house, text):
    shown = searched(house, text)
    assert "texts cannot be searched" not in shown.lower()
    assert ("Write a word" in shown) is not any(map(str.isalnum, text))


# --- what may be wrong with the index ------------------------------------------------------------


def trouble(house):
    shown = searched(house, "example.org/9")
    assert "/dashboard/providers/9" in shown, "the search for providers goes on"
    return html.unescape(re.search('role="alert">([^<]*)<', shown)[1])


def test_an_index_that_is_missing(house, path):
    path.unlink()
    assert "the index is not there" in trouble(house)
    assert not path.exists()


def test_a_file_that_is_no_index(house, path):
    path.write_bytes(b"no database at all" * 100)
    assert "file is not a database" in trouble(house)


def test_another_database(house, path):
    path.unlink()
    with closing(sqlite3.connect(path)) as other:
        other.execute("create table place (cursor)")
    assert "no index of `lcc export --format fts5`" in trouble(house)


def test_an_index_that_is_damaged(house, path):
    data = bytearray(path.read_bytes())
    for start in range(4096, len(data), 4096):
        data[start : start + 2000] = b"\xff" * min(2000, len(data) - start)
    path.write_bytes(data)
    assert "cannot be read" in trouble(house)


def test_an_index_of_another_lcc_of_another_life_and_one_that_was_never_ended(house, path):
    for head, said in (
        (replace(house.head(), lcc="another"), "cursor of another LCC"),
        (replace(house.head(), generation=0), "restored from a backup"),
        ("x", "not a cursor"),
        ("", "not written yet"),
    ):
        write_index(path, [], head)
        assert said in trouble(house)


def test_an_index_that_is_just_being_written_is_searched_until_its_commit_locks_it(house, path, monkeypatch):
    monkeypatch.setattr(fts5_search, "_PATIENCE", 0.01)
    with closing(sqlite3.connect(path, isolation_level=None)) as writer:
        writer.execute("begin immediate")
        assert len(titles(searched(house, "butter"))) == 3
        writer.execute("commit")
        writer.execute("begin exclusive")
        assert "is being written" in trouble(house)


def test_a_search_ends_in_time_and_the_newest_come_first_where_the_best_would_take_too_long(
    house, path, monkeypatch
):
    monkeypatch.setattr(fts5_search, "RANKING", 0.5)
    monkeypatch.setattr(fts5_search, "SECONDS", 1.0)
    index = fts5_search.Fts5Search(path, ticking(0.3))
    rows = [(house.document(8, f"many{n}"), b"wheat and chaff") for n in range(60)]
    write_index(path, rows, house.head())
    with index.search('"wheat"', house.head()) as search:
        search._end = 10**9
        hits = [hit for some in search.hits() for hit in some]
        assert (search.in_order, len(hits)) == (False, 60)
        assert hits[0].rowid > hits[-1].rowid
        search._end = 0
        assert search.excerpts(hits) == {}
    with (
        pytest.raises(fts5_search.IndexTrouble, match="takes too long"),
        index.search('"wheat"', house.head()) as search,
    ):
        list(search.hits())


def ticking(step):
    """Return a clock that goes on a little whenever somebody looks at it."""
    at = [0.0]

    def clock():
        at[0] += step
        return at[0]

    return clock


def test_more_searches_than_there_is_room_for_are_told_to_come_again(house, path, monkeypatch):
    monkeypatch.setattr(fts5_search, "SECONDS", 0.01)
    index, head = fts5_search.Fts5Search(path, lambda: 0.0), house.head()
    with index.search('"butter"', head), index.search('"butter"', head):
        third = index.search('"butter"', head)
        with pytest.raises(fts5_search.IndexTrouble, match="others search"):
            third.__enter__()
    with index.search('"butter"', head) as search:
        assert len(next(search.hits())) == 3


def test_the_index_is_only_read(house, path):
    before = path.read_bytes()
    path.chmod(0o400)
    assert len(titles(searched(house, "butter"))) == 3
    opened = fts5_search.Fts5Search(path)._opened()
    with pytest.raises(fts5_search.IndexTrouble, match="readonly"), opened as database:
        database.execute("delete from documents")
    assert path.read_bytes() == before
    assert [one.name for one in path.parent.iterdir()] == [path.name]
