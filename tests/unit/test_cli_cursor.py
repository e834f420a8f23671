"""Cursors and readers of the feed, without a database."""

import base64
import json
from dataclasses import fields, replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lcc_scrapy.domain.cache import CachedUrl, Tombstone
from lcc_scrapy.domain.cursor import BadCursor, Position, StartOver
from lcc_scrapy.domain.selection import Selection, is_pattern
from lcc_scrapy.feed import reader as feed_reader
from lcc_scrapy.feed.reader import Look, Reader

HERE = Position("an-lcc", 1, 100)


def encoded(value):
    return base64.urlsafe_b64encode(json.dumps(value).encode()).decode().rstrip("=")


@given(
    st.text(), st.integers(1, 1 << 40), st.integers(0, 1 << 62), st.integers(0, 1 << 62), st.text(max_size=16)
)
def test_a_cursor_survives_printing(lcc, generation, seq, began, selection):
    position = Position(lcc[:100], generation, seq, began, selection)
    if len(str(position)) <= 1000:
        assert Position.parse(f" {position}\n") == position


@given(st.text() | st.binary().map(lambda data: base64.urlsafe_b64encode(data).decode()))
def test_any_other_text_is_no_cursor_and_does_not_mean_to_start_over(text):
    with pytest.raises(BadCursor):
        Position.parse(text)


def test_a_cursor_is_read_up_to_its_longest_and_only_as_it_was_given():
    longest = next(one for n in range(1000) if len(str(one := Position("a" * n, 1, 1))) == 1000)
    assert Position.parse(str(longest)) == longest
    with pytest.raises(BadCursor):
        Position.parse(f"{str(HERE)[:4]}!!!!{str(HERE)[4:]}")


@pytest.mark.parametrize(
    "value",
    [
        None,
        [],
        {},
        {"v": 2, "lcc": "a", "gen": 1, "seq": 1},
        {"v": 1, "lcc": 1, "gen": 1, "seq": 1},
        {"v": 1, "lcc": "a", "gen": "1", "seq": 1},
        {"v": 1, "lcc": "a", "gen": 1, "seq": -1},
        {"v": 1, "lcc": "a", "gen": 1, "seq": True},
        {"v": 1, "lcc": "a", "gen": 1, "seq": 1.0},
        {"v": 1, "lcc": "a", "gen": 1, "seq": 1, "began": -1},
        {"v": 1, "lcc": "a", "gen": 1, "seq": 1, "began": True},
        {"v": 1, "lcc": "a", "gen": 1, "seq": 1, "sel": 5},
        {"v": 1, "lcc": "a", "gen": 1, "seq": 1, "sel": "0" * 17},
        {"v": 1, "lcc": "a" * 1000, "gen": 1, "seq": 1},
    ],
)
def test_a_cursor_with_wrong_contents_is_none(value):
    with pytest.raises(BadCursor, match="cursor"):
        Position.parse(encoded(value))


@pytest.mark.parametrize(
    ("position", "text"),
    [
        (replace(HERE, lcc="another"), "another LCC"),
        (replace(HERE, generation=2), "backup"),
        (replace(HERE, seq=101), "future"),
        (replace(HERE, began=101), "future"),
    ],
)
def test_a_cursor_that_does_not_belong_here_says_why(position, text):
    with pytest.raises(StartOver, match=text):
        position.check(HERE)


@pytest.mark.parametrize(
    "position", [replace(HERE, seq=101), replace(HERE, began=101), replace(HERE, generation=2, seq=1)]
)
def test_a_cursor_that_is_ahead_of_a_replica_comes_back_without_changes(position):
    source = FakeFeed(document(1), document(100))
    source.lags = True
    reader = Reader(source, Selection(), position)
    assert seqs(reader) == []
    assert reader.position == reader.reached == reader.end == position


@pytest.mark.parametrize(
    ("position", "error"),
    [
        (replace(HERE, seq=101, lcc="another"), StartOver),
        (replace(HERE, seq=101, selection="0"), BadCursor),
        (replace(HERE, generation=0, seq=101), StartOver),
    ],
)
def test_a_cursor_that_no_replica_will_ever_follow_is_refused_by_one_that_lags(position, error):
    with pytest.raises(error):
        position.check(HERE, lags=True)


def test_a_page_of_another_replica_does_not_take_the_position_beyond_what_it_has():
    source, late = FakeFeed(document(1), document(2), document(3)), FakeFeed(document(1))
    source.lags = late.lags = True
    reader = Reader(source, Selection())
    pages = reader.pages()
    assert [row.seq for row in next(pages)] == [1, 2]
    source.look = late.look
    assert list(pages) == []
    assert reader.position == replace(HERE, seq=2, began=3)
    reader = Reader(FakeFeed(document(1), document(2), document(3)), Selection(), reader.position)
    assert seqs(reader) == [3]


def test_the_end_is_where_the_replica_ends_that_has_nothing_more():
    source, late = FakeFeed(document(1), document(2), document(3)), FakeFeed(document(1), document(2))
    source.lags = late.lags = True
    reader = Reader(source, Selection(), replace(HERE, seq=1, began=1))
    source.look = late.look
    assert seqs(reader) == [2]
    assert reader.position == replace(HERE, seq=2, began=1)
    assert reader.end.seq == 2


def test_a_cursor_at_the_end_of_the_feed_is_good():
    HERE.check(HERE)


# --- readers -------------------------------------------------------------------------------------


def document(seq, pid=7, mimetype="text/html", at=1000, **others):
    values = dict.fromkeys((field.name for field in fields(CachedUrl)), "")
    ours = {
        "urlkey": bytes([seq % 256]) * 16,
        "seq": seq,
        "pid": pid,
        "mimetype": mimetype,
        "fetched_time": at,
    }
    return CachedUrl(**{**values, **ours, "curl": "c", "subtype_seq": 0, "owners_seq": 0, **others})


def tombstone(seq, pid=7, mimetype="text/html", at=1000):
    return Tombstone(bytes([seq]) * 16, pid, "c", mimetype, "f", "gone", at, seq)


class FakeFeed:
    lags = False

    def __init__(self, *rows):
        self.rows = list(rows)
        self.pages = 0
        self.dropped = 0

    def head(self):
        return replace(HERE, seq=max((row.seq for row in self.rows), default=0))

    def forgotten(self):
        return self.dropped

    def look(self, after, limit):
        self.pages += 1
        rows = sorted((row for row in self.rows if row.seq > after), key=lambda row: row.seq)[:limit]
        return Look(rows, self.head(), self.forgotten())

    def owners(self, rows, seen=0):
        return {}


@pytest.fixture(autouse=True)
def small_pages(monkeypatch):
    monkeypatch.setattr(feed_reader, "PAGE", 2)


def seqs(reader):
    return [row.seq for page in reader.pages() for row in page]


def test_a_reader_gives_everything_once_and_ends_at_the_head():
    reader = Reader(FakeFeed(document(1), tombstone(2), document(5)), Selection())
    assert seqs(reader) == [1, 2, 5]
    assert reader.position == replace(HERE, seq=5, began=5)


def test_a_reader_goes_on_behind_its_cursor():
    reader = Reader(FakeFeed(document(1), tombstone(2), document(5)), Selection(), replace(HERE, seq=2))
    assert seqs(reader) == [5]


def test_a_reader_does_not_run_after_what_changes_while_it_reads():
    source = FakeFeed(document(1), document(2), document(3))
    reader = Reader(source, Selection())
    seen = []
    for page in reader.pages():
        seen.extend(row.seq for row in page)
        source.rows = [replace(row, seq=row.seq + 10) for row in source.rows]
    assert seen == [1, 2]
    assert reader.position.seq == 3
    again = Reader(source, Selection(), reader.position)
    assert seqs(again) == sorted(row.seq for row in source.rows)


def test_the_position_moves_only_when_a_page_was_taken():
    reader = Reader(FakeFeed(document(1), document(2), document(3)), Selection())
    pages = reader.pages()
    next(pages)
    assert reader.position.seq == 0
    next(pages)
    assert reader.position.seq == 2


@pytest.mark.parametrize("limit", range(1, 7))
def test_reading_in_pieces_gives_the_same_as_reading_at_once(limit):
    source = FakeFeed(*(document(seq, pid=seq % 2) for seq in range(1, 9)))
    position, seen = None, []
    for _ in range(10):
        reader = Reader(source, Selection((1,)), position, limit)
        piece = seqs(reader)
        assert len(piece) <= limit
        seen += piece
        position = reader.position
    assert seen == [1, 3, 5, 7]
    assert position.seq == 8


def test_an_empty_feed_gives_nothing_and_a_cursor():
    reader = Reader(FakeFeed(), Selection())
    assert seqs(reader) == []
    assert reader.position.seq == 0


def test_a_foreign_cursor_is_refused_before_anything_is_read():
    source = FakeFeed(document(1))
    with pytest.raises(StartOver):
        Reader(source, Selection(), replace(HERE, lcc="another"))
    assert source.pages == 0


@pytest.mark.parametrize(
    ("selection", "expected"),
    [
        (Selection(), [1, 2, 3, 4]),
        (Selection(providers=(8,)), [2]),
        (Selection(providers=(8, 7)), [1, 2, 3, 4]),
        (Selection(mimetypes=("text/*",)), [1, 2, 4]),
        (Selection(mimetypes=("image/png", "audio/*")), [3]),
        (Selection(url_prefixes=("c",)), [1, 2, 3, 4]),
        (Selection(url_prefixes=("d", "cc")), []),
        (Selection(since=1000), [3, 4]),
        (Selection((7,), ("text/html",), since=1000), [4]),
    ],
)
def test_a_selection_admits_documents_and_removals_alike(selection, expected):
    source = FakeFeed(
        document(1), document(2, pid=8), document(3, mimetype="image/png", at=1001), tombstone(4, at=1001)
    )
    assert seqs(Reader(source, selection)) == expected


# --- leaving -------------------------------------------------------------------------------------

DUTCH = Selection(subtypes=("lang: nl",))


def ops(selection, *rows, since=None):
    reader = Reader(FakeFeed(*rows), selection, since)
    return [(row.op, row.seq) for page in reader.pages() for row in page]


def following(selection, *, seq=0, began=0):
    return replace(HERE, seq=seq, began=began, selection=selection.digest)


def test_a_document_whose_subtype_changed_leaves_those_who_may_have_had_it():
    rows = document(3, subtype="lang: nl"), document(9, subtype="lang: en", subtype_seq=6)
    assert ops(DUTCH, *rows, since=following(DUTCH, seq=2, began=5)) == [("upsert", 3), ("leave", 9)]


def test_nobody_is_told_of_a_leave_who_began_after_it_or_never_had_it():
    turned_before = document(9, subtype="lang: en", subtype_seq=6)
    never_turned = document(8, subtype="lang: en")
    assert ops(DUTCH, never_turned, turned_before, since=following(DUTCH, seq=7, began=6)) == []


def test_a_first_reading_tells_of_no_leave():
    assert ops(DUTCH, document(9, subtype="lang: en", subtype_seq=6), tombstone(10)) == [("remove", 10)]


def test_only_those_who_select_by_subtype_are_told_of_a_leave():
    turned = document(9, subtype="lang: en", subtype_seq=6)
    for selection in (Selection(), Selection(providers=(7,)), Selection(subtypes=("lang:*",))):
        assert ops(selection, turned, since=following(selection, seq=5)) == [("upsert", 9)]
    for selection in (replace(DUTCH, providers=(8,)), replace(DUTCH, url_prefixes=("x",))):
        assert ops(selection, turned, since=following(selection, seq=5)) == []


@pytest.mark.parametrize(
    ("wanted", "subtype", "suits"),
    [
        ("lang: nl", "lang: nl", True),
        ("lang: nl", "lang: nl-be", False),
        ("lang: nl*", "lang: nl-be", True),
        ("", "", True),
        ("", "lang: nl", False),
        ("*", "", True),
    ],
)
def test_a_subtype_is_a_whole_one_or_a_beginning(wanted, subtype, suits):
    assert Selection(subtypes=(wanted,)).admits(document(1, subtype=subtype)) is suits


@given(st.permutations([7, 8, 8]), st.permutations(["text/html", "image/*"]))
def test_the_order_in_which_a_selection_is_given_does_not_matter_to_cursors(pids, mimetypes):
    selection = Selection(tuple(pids), tuple(mimetypes))
    assert selection.digest == Selection((7, 8), ("image/*", "text/html")).digest


def test_every_selection_has_its_own_digest_and_everything_has_none():
    different = [
        Selection((7,)), Selection((8,)), Selection(mimetypes=("a/b",)), Selection(subtypes=("a/b",)),
        Selection(subtypes=("",)), Selection(url_prefixes=("a/b",)), Selection(since=0), Selection(since=1),
    ]  # fmt: skip
    digests = {selection.digest for selection in different}
    assert len(digests) == len(different)
    assert "" not in digests
    assert Selection().digest == ""


def test_a_cursor_of_one_selection_is_refused_by_another():
    reader = Reader(FakeFeed(document(1)), DUTCH)
    assert seqs(reader) == []
    with pytest.raises(BadCursor, match="selection"):
        Reader(FakeFeed(document(1)), Selection(), reader.position)


# --- what is forgotten ---------------------------------------------------------------------------


@pytest.mark.parametrize(("seq", "began", "good"), [(4, 0, False), (5, 0, True), (0, 4, False), (0, 5, True)])
def test_a_cursor_from_before_what_was_forgotten_has_to_start_over(seq, began, good):
    source = FakeFeed(document(9))
    source.dropped = 5
    since = following(Selection(), seq=seq, began=began)
    if good:
        assert seqs(Reader(source, Selection(), since)) == [9]
    else:
        with pytest.raises(StartOver, match="LCC_TOMBSTONES_KEEP"):
            Reader(source, Selection(), since)


def test_whoever_starts_now_may_read_in_pieces_whatever_was_forgotten_before():
    source = FakeFeed(*map(document, range(1, 7)))
    source.dropped = 6
    reader = Reader(source, Selection(), limit=2)
    assert seqs(reader) == [1, 2]
    assert seqs(Reader(source, Selection(), Position.parse(str(reader.position)))) == [3, 4, 5, 6]


def test_what_is_forgotten_while_somebody_reads_is_noticed():
    source = FakeFeed(*map(document, range(1, 7)))
    pages = Reader(source, Selection()).pages()
    next(pages)
    source.rows.append(document(9))
    source.dropped = 8
    with pytest.raises(StartOver):
        next(pages)


@pytest.mark.parametrize("text", ["text/html", "text/*", "*/*", "application/vnd.ms-excel"])
def test_a_pattern_is_a_mimetype_or_a_family_of_them(text):
    assert is_pattern(text)


@pytest.mark.parametrize("text", ["", "text", "*/html", "text/html; charset=utf-8", "text/ht*", "Text/html"])
def test_other_texts_are_no_patterns(text):
    assert not is_pattern(text)
