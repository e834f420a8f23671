"""Words of a search: nothing that somebody writes is an operator, or an error of FTS5."""

import sqlite3

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lcc_scrapy.apps.dashboard.rules.search_words import CHARACTERS, WORDS, fts5_query, phrases


@pytest.fixture(scope="module")
def database():
    made = sqlite3.connect(":memory:")
    made.execute("create virtual table pages using fts5 (title, body)")
    texts = ["alpha beta", "beta alpha", "alpha near beta or gamma", "title not body", "a-b c:d"]
    made.executemany("insert into pages values ('t', ?)", [(text,) for text in texts])
    yield made
    made.close()


def found(database, text):
    query = fts5_query(phrases(text))
    rows = database.execute("select rowid from pages where pages match ? order by rowid", (query,))
    return [rowid for (rowid,) in rows]


@pytest.mark.parametrize(
    ("text", "rowids"),
    [
        ("alpha", [1, 2, 3]), ("beta  ALPHA", [1, 2, 3]), ('"alpha beta"', [1]), ('"beta alpha', [2]),
        ("alpha OR gamma", [3]), ("alpha NOT beta", []), ("NEAR( alpha", [3]), ("body:alpha", []),
        ("alp*", []), ("^beta", [1, 2, 3]), ("title not", [4]), ("a-b", [5]), ("{title}", [4]), ("alpha\x00beta", [1, 2, 3]),
        ("-- alpha (", [1, 2, 3]),
    ],
)  # fmt: skip
def test_words_and_phrases_are_all_that_there_is(database, text, rowids):
    assert found(database, text) == rowids


@given(st.text(max_size=300))
def test_any_text_is_a_right_query_or_none(database, text):
    words = phrases(text)
    assert len(words) <= WORDS
    assert not any('"' in word or not word.isprintable() for word in words)
    if words:
        found(database, text)


def test_so_much_counts_and_no_more():
    assert phrases("x" * (CHARACTERS + 5)) == ["x" * CHARACTERS]
    assert len(phrases(" ".join(map(str, range(60))))) == WORDS
    assert phrases('"" -- \u202e !') == []
