"""Answers to queries say what the feed says, on every store: changes, ids, rows, contents, for who may see them."""

import io
import random
from dataclasses import replace

import pytest
from mirror import NAMES, PIDS, SELECTIONS, change, prepare

from lcc_scrapy.apps.query import answering, sources
from lcc_scrapy.apps.query.answering import Answer, Answering, Everybody, refusal_of
from lcc_scrapy.apps.query.sources import OneLcc
from lcc_scrapy.apps.query.wire.messages import (
    Content,
    ContentEnds,
    Query,
    Reached,
    ResultBegins,
    ResultEnds,
    Row,
    Wanted,
    What,
)
from lcc_scrapy.apps.query.wire.reading import ResultReader
from lcc_scrapy.cache.tombstones import forget_tombstones
from lcc_scrapy.content.decoding import BadCoding
from lcc_scrapy.db.records import Ownership
from lcc_scrapy.domain.cache import CachedUrl, Tombstone
from lcc_scrapy.domain.cursor import BadCursor, Position, StartOver
from lcc_scrapy.domain.entries import furlkey
from lcc_scrapy.domain.errors import Refusal, StoreUnavailable
from lcc_scrapy.domain.selection import Selection
from lcc_scrapy.domain.tokens import NotAllowed, Token
from lcc_scrapy.feed.content import ContentElsewhere, ContentGone, ContentLost
from lcc_scrapy.feed.library import Library
from lcc_scrapy.feed.reader import Inventory, Reader
from lcc_scrapy.feed.store_feed import GENERATION, StoreFeed
from tests.memory_store import MemoryStore

EVERYBODY = Everybody()
EVERYTHING = Selection()


class Shelf:
    """Contents: as many bytes as the number of the file says, or trouble."""

    def __init__(self):
        self.open_files = []
        self.trouble = {}

    def open(self, row):
        if error := self.trouble.get(row.docid):
            raise error
        self.open_files.append(io.BytesIO(b"%d," % row.fetched_fileid * 30_000))
        return self.open_files[-1]


@pytest.fixture(autouse=True)
def few_rows_at_a_time(monkeypatch):
    monkeypatch.setattr(sources, "ROWS", 5)


@pytest.fixture
def lcc(store):
    prepare(store)
    chance = random.Random(7)
    for now in range(16):
        change(store, chance, chance.choice(PIDS), chance.sample(NAMES, 4), 1000 + now)
    return store


@pytest.fixture
def shelf():
    return Shelf()


def portions_of(store, query, asker=EVERYBODY, shelf=None):
    return list(Answer(OneLcc(Library(StoreFeed(store), shelf)), query, asker).portions())


def asked(store, query, asker=EVERYBODY, shelf=None):
    return ResultReader().feed(b"".join(portions_of(store, query, asker, shelf)))


def of(said, kind):
    return [one for one in said if isinstance(one, kind)]


def query_of(selection, **values):
    return Query(
        providers=selection.providers,
        mimetypes=selection.mimetypes,
        subtypes=selection.subtypes,
        url_prefixes=selection.url_prefixes,
        since_time=selection.since,
        **values,
    )


def facts(change):
    return change.op, change.docid, change.seq, change.pid, change.curl, change.mimetype, change.furl


def told(row):
    texts = row.values
    names = ("docid", "seq", "pid", "curl", "mimetype", "furl")
    docid, seq, pid, *rest = (texts[name] for name in names)
    return row.op, docid, int(seq), int(pid), *rest


@pytest.mark.parametrize("selection", [SELECTIONS[0], replace(SELECTIONS[2], since=1005)])
@pytest.mark.parametrize("limit", [0, 7])
def test_an_answer_is_what_the_feed_says_and_goes_on_from_its_position(lcc, selection, limit):
    reader = Reader(StoreFeed(lcc), selection)
    expected = [facts(change) for page in reader.pages() for change in page]
    found, cursor = [], ""
    while True:
        said = asked(lcc, query_of(selection, since=cursor, limit=limit))
        begins, ends, rows = said[0], said[-1], of(said, Row)
        assert isinstance(begins, ResultBegins)
        assert begins.lcc == "an-lcc"
        assert len(rows) == ends.documents + ends.removed + ends.left
        assert not limit or len(rows) <= limit
        found += map(told, rows)
        cursor = ends.position
        if not rows:
            break
        assert of(said, Reached)
    assert found == expected
    assert Position.parse(cursor) == reader.position


def test_every_column_of_a_document_is_told(lcc):
    by_docid = {row.values["docid"]: row for row in of(asked(lcc, Query()), Row) if row.op == "upsert"}
    with lcc.read() as tx:
        documents = tx.documents(b"", 1000)
    assert len(documents) == len(by_docid) > 10
    for row in documents:
        expected = {name: getattr(row, name) for name in answering.DOCUMENT}
        given = {name: str(value) for name, value in expected.items() if value is not None}
        assert dict(by_docid[row.docid].values) == given
    assert set(answering.DOCUMENT) <= set(CachedUrl.__slots__) | {"docid"}


def test_owners_are_told_with_documents_and_removals(lcc):
    with lcc.read() as tx:
        changes = tx.changes(0, 1000)
    gone = next(row for row in changes if isinstance(row, Tombstone))
    here = next(row for row in changes if isinstance(row, CachedUrl))
    with lcc.begin() as tx:
        for row in (here, gone):
            names = ("bert", "anna")
            tx.put_owners([Ownership(furlkey(row.pid, row.furl), one, row.pid) for one in names])
    told = {row.values["docid"]: row.values.get("owners") for row in of(asked(lcc, Query()), Row)}
    assert (told[here.docid], told[gone.docid]) == ("anna bert", "anna bert")
    assert sum(owners is not None for owners in told.values()) == 2
    (row,) = of(asked(lcc, Query(what=What.ROWS, docids=(here.docid,))), Row)
    assert row.values["owners"] == "anna bert"


def test_an_answer_that_broke_off_goes_on_from_what_was_reached_last(lcc):
    said = asked(lcc, Query())
    half = said[: said.index(of(said, Reached)[1]) + 1]
    rest = asked(lcc, Query(since=half[-1].position))
    assert of(half, Row) + of(rest, Row) == of(said, Row)
    assert of(half, Row)
    assert of(rest, Row)


def test_ids_and_rows_reconcile_a_copy(lcc):
    for selection in SELECTIONS:
        inventory = Inventory(StoreFeed(lcc), selection)
        expected = {row.docid: row for page in inventory.pages() for row in page}
        listed = asked(lcc, query_of(selection, what=What.IDS))
        assert {row.values["docid"]: row.values["seq"] for row in of(listed, Row)} == {
            docid: str(row.seq) for docid, row in expected.items()
        }
        assert listed[-1] == ResultEnds(str(inventory.position), len(expected))
        docids = (*expected, "0" * 32)
        rows = asked(lcc, query_of(selection, what=What.ROWS, docids=docids))
        assert sorted(map(told, of(rows, Row))) == sorted(map(facts, expected.values()))


def test_contents_are_inside_as_they_are_stored_and_files_are_closed(lcc, shelf):
    said = asked(lcc, Query(content=Wanted.INSIDE), shelf=shelf)
    body, row = b"", None
    bodies = {}
    for one in said:
        match one:
            case Row():
                row, body = one, b""
            case Content(data):
                body += data
            case ContentEnds():
                bodies[row.values["docid"]] = (body, row.values["fetched_fileid"])
    assert len(bodies) == said[-1].documents
    assert all(data == f"{fileid},".encode() * 30_000 for data, fileid in bodies.values())
    assert all(file.closed for file in shelf.open_files)


def test_portions_are_bounded_however_large_the_answer_is(lcc, shelf):
    portions = portions_of(lcc, Query(content=Wanted.INSIDE), shelf=shelf)
    assert sum(map(len, portions)) > 1_000_000
    assert max(map(len, portions)) < 3 * answering.PORTION


def test_a_query_that_selects_nothing_rests_after_every_look_and_comes_on(lcc):
    looks = len(list(Reader(StoreFeed(lcc), EVERYTHING, rows=5).looks()))
    portions = portions_of(lcc, Query(subtypes=("no such thing",), providers=(99,)))
    assert len(portions) > looks > 3
    said = ResultReader().feed(b"".join(portions))
    assert not of(said, Row)
    assert len({one.position for one in of(said, Reached)}) == looks


def test_content_that_is_not_here_is_said_to_be_so_and_the_answer_goes_on(lcc, shelf):
    with lcc.read() as tx:
        docids = [row.docid for row in tx.documents(b"", 3)]
    troubles = (ContentGone("x"), ContentElsewhere("x"), ContentLost("x"))
    shelf.trouble = dict(zip(docids, troubles, strict=True))
    said = asked(lcc, Query(what=What.ROWS, docids=tuple(docids), content=Wanted.INSIDE), shelf=shelf)
    assert {row.values["docid"]: row.content for row in of(said, Row)} == dict(
        zip(docids, ("gone", "elsewhere", "lost"), strict=True)
    )
    assert not of(said, ContentEnds)
    assert said[-1].documents == 3


@pytest.mark.parametrize("error", [BadCoding("cut"), OSError("torn"), ContentElsewhere("cut off")])
def test_a_file_that_cannot_be_read_breaks_the_answer_off_between_two_elements(lcc, shelf, error):
    class Broken(io.BytesIO):
        def read(self, size=-1):
            if self.tell():
                raise error
            return super().read(100)

    shelf.open = lambda _row: Broken(b"x" * 1000)
    answer = Answer(OneLcc(Library(StoreFeed(lcc), shelf)), Query(content=Wanted.INSIDE), Everybody())
    text = bytearray()
    with pytest.raises(ContentLost, match="cannot be read") as caught:
        any(map(text.extend, answer.portions()))
    assert text.endswith(b"</document>\n")
    assert refusal_of(caught.value, 5).code == 803


def test_a_reference_says_where_the_file_is(lcc):
    said = asked(lcc, Query(content=Wanted.REFERENCE))
    rows = [row for row in of(said, Row) if row.op == "upsert"]
    assert rows
    for row in rows:
        machine, *_, name = row.values["path"].split("/")
        assert (machine, name) == (row.values["fetched_machineid"], row.values["fetched_fileid"])
        assert row.values["file_encoding"] == ""


# --- waiting -------------------------------------------------------------------------------------


def test_a_query_waits_for_a_change_that_it_selects_and_for_no_other(lcc):
    cursor = asked(lcc, Query(providers=(1,)))[-1].position
    answer = Answer(
        OneLcc(Library(StoreFeed(lcc), None)), Query(since=cursor, providers=(1,), wait=60), Everybody()
    )
    portions = answer.portions()
    text = next(portions)
    assert [next(portions), next(portions)] == [None, None]
    change(lcc, random.Random(1), 2, "abcd", 2000)
    text += next(portions)
    assert next(portions) is None
    change(lcc, random.Random(1), 1, "abcd", 2000)
    said = ResultReader().feed(text + b"".join(portions))
    assert {row.values["pid"] for row in of(said, Row)} == {"1"}
    assert Position.parse(said[-1].position).seq == StoreFeed(lcc).head().seq


def test_who_has_waited_long_enough_gets_an_empty_answer(lcc):
    cursor = asked(lcc, Query())[-1].position
    answering = Answering(
        lambda: Answer(OneLcc(Library(StoreFeed(lcc), None)), Query(since=cursor, wait=60), Everybody())
    )
    text = answering.step().portion
    assert answering.step().portion is None
    answering.wait_no_more()
    text += answering.step().portion
    assert answering.step().ended
    assert ResultReader().feed(text)[-1] == ResultEnds(cursor)


# --- refusals ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "query",
    [
        Query(what=What.IDS, since="x"),
        Query(what=What.IDS, limit=1),
        Query(what=What.ROWS, docids=("0" * 32,), wait=1),
        Query(what=What.IDS, anew=("b",)),
        Query(what=What.IDS, content=Wanted.INSIDE),
        Query(mimetypes=("Text/HTML",)),
    ],
)
def test_a_query_that_makes_no_sense_is_refused_with_805(query):
    with pytest.raises(Refusal) as caught:
        Answer(OneLcc(Library(StoreFeed(MemoryStore()), None)), query, EVERYBODY)
    assert caught.value.code == 805


def test_one_lcc_has_no_sub_lccs_to_read_anew(lcc):
    with pytest.raises(Refusal, match="goes with a front") as caught:
        asked(lcc, Query(anew=("b",)))
    assert caught.value.code == 805


def test_cursors_that_cannot_be_followed_are_802(lcc):
    cursor = asked(lcc, Query(limit=3))[-1].position

    def code(query):
        with pytest.raises((StartOver, BadCursor)) as caught:
            asked(lcc, query)
        return refusal_of(caught.value, 0).code

    assert code(Query(since="nonsense")) == 805
    assert code(Query(since=cursor, providers=(1,))) == 805
    forget_tombstones_of(lcc)
    assert code(Query(since=str(replace(Position.parse(cursor), began=0)))) == 802
    with lcc.begin() as tx:
        tx.set_info(GENERATION, "2")
    assert code(Query(since=cursor)) == 802


def forget_tombstones_of(store):
    assert sum(forget_tombstones(store, 1 << 40))


def test_a_database_that_is_away_is_803_and_what_nobody_expected_is_nobodys():
    assert refusal_of(StoreUnavailable("away"), 7).retry_after == 7
    assert refusal_of(Refusal(803, "why"), 7).retry_after == 7
    assert refusal_of(Refusal(803, "why", 9), 7).retry_after == 9
    assert refusal_of(Refusal(805), 7).retry_after == 0
    assert refusal_of(ZeroDivisionError(), 7) is None


# --- tokens --------------------------------------------------------------------------------------


def test_a_token_shows_its_own_part_of_the_lcc_only(lcc, shelf):
    token = Token("digest", "x", "read", "1 3", "text/*", 0)
    everything = {row.values["docid"] for row in of(asked(lcc, Query()), Row)}
    for what in (What.CHANGES, What.IDS):
        seen = {row.values["docid"] for row in of(asked(lcc, Query(what=what), token), Row)}
        assert seen < everything
    rows = asked(lcc, Query(what=What.ROWS, docids=tuple(everything), content=Wanted.INSIDE), token, shelf)
    assert {row.values["pid"] for row in of(rows, Row)} == {"1", "3"}
    assert {row.values["mimetype"] for row in of(rows, Row)} == {"text/html"}
    with pytest.raises(NotAllowed) as caught:
        asked(lcc, Query(providers=(2,)), token)
    assert refusal_of(caught.value, 0).code == 807
