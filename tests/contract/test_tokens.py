"""Tokens, named cursors and what the metrics tell, the same on every store."""

from concurrent.futures import ThreadPoolExecutor
from threading import Barrier

import pytest

from lcc_scrapy.apps.resourcesync.store import StorePublications
from lcc_scrapy.db.records import FEED, Ledger, Uns
from lcc_scrapy.domain.cache import Tombstone
from lcc_scrapy.domain.cursor import Position
from lcc_scrapy.domain.errors import LccError
from lcc_scrapy.domain.named_cursors import MOST, NamedCursor, TooMany
from lcc_scrapy.domain.providers import State
from lcc_scrapy.domain.tokens import (
    FILES,
    METRICS,
    READ,
    NotAllowed,
    Refused,
    Token,
    check,
    digest_of,
    new_secret,
)
from lcc_scrapy.feed.named_cursors import StoreCursors
from lcc_scrapy.feed.store_feed import GENERATION, LCC_ID
from lcc_scrapy.feed.tokens import USES_APART, StoreTokens
from lcc_scrapy.ops.metrics import measures
from tests.memory_store import MemoryStore

NOW = 1_800_000_000
GRACE = 3600.0
TURNS = range(1, 6)


@pytest.fixture
def tokens(store):
    return StoreTokens(store)


@pytest.fixture
def made(tokens):
    """Return what makes a token and gives its secret."""

    def make(label="indexer", scopes=READ, providers="", mimetypes="", **times):
        secret = new_secret()
        values = {"created": NOW, **times}
        tokens.add(Token(digest_of(secret), label, scopes, providers, mimetypes, **values))
        return secret

    return make


def test_a_token_comes_back_as_it_was_put_in(tokens, made):
    secret = made("Größe 日本", f"{READ} {METRICS}", "7 8", "text/* */*", expires=NOW + 5)
    token = tokens.find(digest_of(secret))
    assert token == Token(
        digest_of(secret), "Größe 日本", "read metrics", "7 8", "text/* */*", NOW, NOW + 5, 0
    )
    assert list(tokens.all()) == [token]


def test_a_good_token_is_let_in_and_nothing_that_only_looks_like_it(tokens, made):
    secret = made()
    assert check(tokens, secret, READ, NOW).label == "indexer"
    for wrong in (
        "",
        "x",
        new_secret(),
        secret.upper(),
        secret[:-1],
        secret + " ",
        digest_of(secret),
        "é" * 36,
    ):
        with pytest.raises(Refused, match="not known"):
            check(tokens, wrong, READ, NOW)


def test_a_token_is_good_until_it_expires(tokens, made):
    secret = made(expires=NOW + 10)
    assert check(tokens, secret, READ, NOW + 9)
    with pytest.raises(Refused, match="expired"):
        check(tokens, secret, READ, NOW + 10)


def test_a_token_is_good_for_its_scopes_only(tokens, made):
    secret = made(scopes=f"{FILES} {METRICS}")
    assert check(tokens, secret, METRICS, NOW)
    assert check(tokens, secret, FILES, NOW)
    with pytest.raises(NotAllowed, match="`read`"):
        check(tokens, secret, READ, NOW)


@pytest.mark.parametrize("narrow", [{"providers": "7"}, {"mimetypes": "text/*"}])
def test_a_token_for_some_documents_is_for_reading_only(tokens, made, narrow):
    secret = made(scopes=f"{FILES} {METRICS} {READ}", **narrow)
    assert check(tokens, secret, READ, NOW)
    for scope in (FILES, METRICS):
        with pytest.raises(NotAllowed, match="some documents only"):
            check(tokens, secret, scope, NOW)


def test_a_revoked_token_is_good_no_more(tokens, made):
    secret, other = made("one"), made("two")
    tokenid = tokens.find(digest_of(secret)).tokenid
    assert tokens.revoke(tokenid).label == "one"
    with pytest.raises(Refused):
        check(tokens, secret, READ, NOW)
    assert check(tokens, other, READ, NOW)
    with pytest.raises(LccError, match=f"no token {tokenid}"):
        tokens.revoke(tokenid)


def test_the_last_use_is_noted_about_once_a_minute(tokens, made):
    secret = made()
    for at, noted in ((NOW, NOW), (NOW + USES_APART - 1, NOW), (NOW + USES_APART, NOW + USES_APART)):
        check(tokens, secret, READ, at)
        assert tokens.find(digest_of(secret)).used == noted


def test_the_secret_of_a_token_is_nowhere(store, tokens, made):
    secret = made()
    with store.read() as tx:
        assert secret not in repr(tx.tokens())
    assert len({new_secret() for _ in range(100)}) == 100


# --- named cursors -----------------------------------------------------------------------------------


def test_named_cursors_are_those_of_their_owner(store):
    cursors = StoreCursors(store)
    first, second = NamedCursor("a", "main", "x" * 1000, 5, NOW), NamedCursor("b", "main", "y", 6, NOW)
    cursors.keep(first)
    cursors.keep(second)
    cursors.keep(NamedCursor("a", "another", "z", 7, NOW))
    assert cursors.find("a", "main") == first
    assert cursors.find("b", "another") is None
    assert [one.name for one in cursors.of("a")] == ["another", "main"]
    with store.read() as tx:
        assert [(one.owner, one.name) for one in tx.named_cursors()] == [
            ("a", "another"), ("a", "main"), ("b", "main"),
        ]  # fmt: skip
        assert len(tx.named_cursors(limit=2)) == 2


def test_a_named_cursor_moves_and_goes(store):
    cursors = StoreCursors(store)
    cursors.keep(NamedCursor("a", "main", "x", 5, NOW))
    cursors.keep(NamedCursor("a", "main", "y", 9, NOW + 1))
    assert cursors.of("a") == [NamedCursor("a", "main", "y", 9, NOW + 1)]
    assert cursors.drop("a", "main")
    assert not cursors.drop("a", "main")
    assert cursors.of("a") == []


def test_who_keeps_or_counts_the_same_at_the_same_time_does_not_fail(store):
    cursors, published = StoreCursors(store), StorePublications(store)

    def work(turn):
        ready.wait(300)
        cursors.keep(NamedCursor("a", f"n{turn}", "x", turn, NOW))
        published.publish(Position("lcc", 1, turn), NOW + turn)
        with store.begin() as tx:
            tx.tally({f"stored {turn}": 1, f"failed {turn}": 2})

    writers = 1 if isinstance(store, MemoryStore) else 6
    with ThreadPoolExecutor(writers) as threads:
        for turn in TURNS:
            ready = Barrier(writers)
            list(threads.map(work, [turn] * writers))
    with store.read() as tx:
        tallies = tx.tallies()
    assert {tallies[f"stored {turn}"] for turn in TURNS} == {writers}
    assert {tallies[f"failed {turn}"] for turn in TURNS} == {2 * writers}
    assert len(cursors.of("a")) == len(TURNS)
    known = published.publish(Position("lcc", 1, 1), NOW)
    assert [one.seq for one in known] == list(TURNS)


def test_one_owner_cannot_keep_any_number_of_cursors(store):
    cursors = StoreCursors(store)
    with store.begin() as tx:
        for number in range(MOST):
            tx.put_named_cursor(NamedCursor("a", f"n{number}", "x", 5, NOW))
    cursors.keep(NamedCursor("a", "n0", "y", 6, NOW))
    with pytest.raises(TooMany, match="delete one first"):
        cursors.keep(NamedCursor("a", "one-more", "x", 5, NOW))
    cursors.keep(NamedCursor("b", "one-more", "x", 5, NOW))
    assert len(cursors.of("a")) == MOST


# --- what the metrics tell ---------------------------------------------------------------------------


def test_what_happened_is_counted_in_the_transaction_in_which_it_happened(store):
    with store.begin() as tx:
        tx.tally({"stored 0": 2, "failed 404": 1})
    with pytest.raises(RuntimeError), store.begin() as tx:  # noqa: PT012 - the transaction is the point
        tx.tally({"stored 0": 5})
        raise RuntimeError
    with store.begin() as tx:
        tx.tally({"stored 0": 1})
        tx.tally({})
    with store.read() as tx:
        assert tx.tallies() == {"stored 0": 3, "failed 404": 1}


def test_the_ledger_adds_up_the_books_of_each_state(store, provider):
    with store.begin() as tx:
        for pid, values in (
            (1, {"fileused": 2, "spaceused": 2**50, "heldremovals": 1}),
            (2, {"fileused": 3, "spaceused": 5}),
            (3, {"state": State.PAUSED, "fileused": 7}),
        ):
            tx.insert_provider(provider(pid, **values), [])
    with store.read() as tx:
        assert tx.ledger() == {
            State.ACTIVE: Ledger(2, 5, 2**50 + 5, 1),
            State.PAUSED: Ledger(1, 7, 0, 0),
        }


def test_measures_tell_how_far_each_named_cursor_is_behind(store, provider, tmp_path):
    with store.begin() as tx:
        tx.set_info(LCC_ID, "an-lcc")
        tx.set_info(GENERATION, "1")
        tx.take(FEED, 9)
        tx.put_tombstones([Tombstone(b"k" * 16, 7, "c", "text/html", "f", "removed", NOW - 50, 5)])
        tx.put_named_cursor(NamedCursor("a", "behind", "x", 4, NOW))
        tx.put_named_cursor(NamedCursor("a", "there", "x", 9, NOW))
    (tmp_path / "0-7-1.set").write_bytes(b"12345")
    told = {one.name: one for one in measures(store, [tmp_path, tmp_path / "nowhere"], NOW, GRACE)}
    labels = {name: (("a", name),) for name in ("behind", "there")}
    assert told["lcc_cursor_lag_changes"].samples == [(*labels["behind"], 5.0), (*labels["there"], 0.0)]
    assert told["lcc_cursor_lag_seconds"].samples == [(*labels["behind"], 50.0), (*labels["there"], 0.0)]
    assert told["lcc_spool_bytes"].samples == [((), 5.0)]
    assert "lcc_spool_bytes" not in {one.name for one in measures(store, [tmp_path / "nowhere"], NOW, GRACE)}


def test_no_series_is_told_twice(store, provider, tmp_path):
    with store.begin() as tx:
        tx.set_info(LCC_ID, "lcc")
        tx.set_info(GENERATION, "1")
        for uns in ("a", "b"):
            tx.put_uns(Uns(uns, "one-host", NOW - 5))
    told = {one.name: one for one in measures(store, [tmp_path], NOW, GRACE)}
    assert told["lcc_uns_silence_seconds"].labels == ("host", "uns")
    assert told["lcc_uns_silence_seconds"].samples == [(("one-host", "a"), 5.0), (("one-host", "b"), 5.0)]
    for one in told.values():
        assert len({labels for labels, _ in one.samples}) == len(one.samples), one.name
