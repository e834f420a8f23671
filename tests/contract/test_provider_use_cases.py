"""Adding, changing and removing providers, and explaining their URLs, on every store."""

from contextlib import contextmanager
from zoneinfo import ZoneInfo

import pytest
from little_lcc import PID, Crash, assert_books_balance, key, removal, update, url

from lcc_scrapy.db.records import PROVIDERS_CHANGED
from lcc_scrapy.domain.errors import LccError
from lcc_scrapy.domain.providers import Provider, State
from lcc_scrapy.providers import registration
from lcc_scrapy.providers.registration import NoSuchProvider
from lcc_scrapy.queue.explanation import Surroundings, explain
from lcc_scrapy.spidering.submitting import Spidering, Terms


def changes(store):
    with store.read() as tx:
        return tx.peek(PROVIDERS_CHANGED)


@pytest.fixture(autouse=True)
def small_chunks(monkeypatch):
    monkeypatch.setattr(registration, "CHUNK", 2)


def test_adding_changing_and_removing_tells_the_workers(store):
    registration.add(store, Provider(3, "a hash"), ["http://a/"])
    assert changes(store) == 1
    registration.change(store, 3, {"bandwidth": 5})
    assert changes(store) == 2
    registration.remove(store, 3, 1, None)
    assert changes(store) > 3


def test_many_are_added_at_once_or_none(lcc):
    fresh = [
        (Provider(pid, "a hash", turngroup="group"), [f"http://{pid}/", "http://x/"]) for pid in (1, 2, 3)
    ]
    registration.add_many(lcc.store, fresh)
    with lcc.store.read() as tx:
        assert tx.roots_of([1, 2, 3]) == {one.pid: its for one, its in fresh}
        assert [one.pid for one in tx.changed_providers(0)] == [1, 2, 3]
    assert changes(lcc.store) == 1
    for pid in (PID, 3):
        more = [(Provider(number, "a hash"), ["http://y/"]) for number in (9, pid)]
        with pytest.raises(LccError, match=f"{pid} exists already"):
            registration.add_many(lcc.store, more)
    registration.remove(lcc.store, 3, lcc.now, lcc.policy)
    assert registration.used_pids(lcc.store, [1, 3, 4]).keys() == {1, 3}
    with pytest.raises(LccError, match="was removed"):
        registration.add_many(lcc.store, [(Provider(3, "a hash"), [])])
    assert lcc.provider(9) is None


def test_a_pid_in_use_is_refused_and_nothing_changes(lcc):
    before = lcc.provider()
    with pytest.raises(LccError, match="exists already"):
        registration.add(lcc.store, Provider(PID, "another"), [])
    assert lcc.provider() == before
    assert changes(lcc.store) == 0


def test_a_removed_pid_is_never_used_again(lcc):
    registration.remove(lcc.store, PID, lcc.now, lcc.policy)
    with pytest.raises(LccError, match="never used again"):
        registration.add(lcc.store, Provider(PID, "another"), [])
    registration.add(lcc.store, Provider(PID + 1, "another"), [])


def test_an_unknown_provider_is_named(store):
    with pytest.raises(NoSuchProvider, match="no provider 9"):
        registration.change(store, 9, {})
    with pytest.raises(NoSuchProvider, match="no provider 9"):
        registration.remove(store, 9, 1, None)
    assert changes(store) == 0


def test_a_refused_change_of_roots_changes_nothing(lcc):
    def refuse(before):
        assert before == ["http://www.example.org/"]
        raise LccError("no")

    with pytest.raises(LccError):
        registration.change(lcc.store, PID, {"bandwidth": 5}, refuse)
    assert lcc.provider().bandwidth == 0
    assert changes(lcc.store) == 0


def test_removing_takes_everything_and_leaves_tombstones_and_doomed_files(lcc):
    lcc.add(8)
    lcc.store_pages("p", pid=8)
    lcc.store_pages(*"abcde")
    lcc.push(update("f"), update("a"))
    told = []
    assert registration.remove(lcc.store, PID, lcc.now, lcc.policy, told.append) == 5
    assert told == sorted(told)
    assert told[-1] == 5
    assert lcc.provider() is None
    assert lcc.waiting() == []
    assert lcc.documents() == []
    assert lcc.documents(8) == ["p"]
    gone = [row for row in lcc.feed() if row.pid == PID]
    assert [row.reason for row in gone] == ["provider removed"] * 5
    assert_books_balance(lcc.store, lcc.files)


def test_an_interrupted_removal_goes_on(lcc):
    lcc.store_pages(*"abcde")

    def crash(_documents):
        raise Crash

    with pytest.raises(Crash):
        registration.remove(lcc.store, PID, lcc.now, lcc.policy, crash)
    assert lcc.provider().state == State.DISABLED
    assert len(lcc.documents()) == 3
    assert_books_balance(lcc.store, lcc.files)
    assert registration.remove(lcc.store, PID, lcc.now, lcc.policy) == 3
    assert lcc.provider() is None


def test_a_fetch_that_ends_after_the_removal_is_lost(lcc):
    lcc.push(update("a"))
    ticket = lcc.ticket("a")
    registration.remove(lcc.store, PID, lcc.now, lcc.policy)
    assert lcc.settle(lcc.served(ticket))[0].result == "lost"
    assert lcc.documents() == []


def test_all_providers_are_found_page_by_page(store, monkeypatch):
    with store.begin() as tx:
        for pid in range(1, 1103):
            tx.insert_provider(Provider(pid, "a hash"), [])
    assert [one.pid for one in registration.all_providers(store)] == list(range(1, 1103))


# --- explain -------------------------------------------------------------------------------------


def ask(lcc, text, **options):
    return explain(lcc.store, text, Surroundings(lcc.now, ZoneInfo("UTC"), running=True), **options)


@pytest.mark.parametrize(
    "text", [url("a"), key("a").hex(), key("a").hex().upper(), "HTTP://WWW.example.org:80/a"]
)
def test_a_document_is_explained_by_url_docid_and_another_spelling_of_its_url(lcc, text):
    lcc.store_pages("a", "b")
    known = ask(lcc, text)
    assert [one.cached for one in known] == [lcc.cached("a")]
    assert known[0].waits is None


def test_a_waiting_url_tells_its_place(lcc):
    lcc.push(*map(update, "abc"))
    lcc.push(update("d"))
    known = ask(lcc, url("d"))[0]
    assert known.before == 3
    assert known.waits.reason == "3 other URLs of its provider come first"
    lcc.settle(lcc.failed(lcc.ticket("a"), 500))
    assert ask(lcc, url("d"))[0].before == 2
    assert "waits to try again until" in ask(lcc, url("a"))[0].waits.reason
    assert "after 500" in ask(lcc, url("a"))[0].waits.reason


def test_every_view_of_a_url_is_explained_and_a_provider_can_be_picked(lcc):
    lcc.add(8)
    lcc.push(update("a"), update("a", mimetype="text/plain"))
    lcc.push(update("a"), pid=8)
    assert len(ask(lcc, url("a"))) == 3
    assert [one.pid for one in ask(lcc, url("a"), pids={8})] == [8]
    assert ask(lcc, url("a"), pids=frozenset()) == []
    assert len(ask(lcc, url("a"), most=2)) == 2
    assert ask(lcc, "\0") == ask(lcc, url("\0")) == []


def test_what_a_spider_found_tells_when_it_is_due(lcc):
    spidering = Spidering(lcc.store, PID, Terms(), lcc.policy)
    spidering.seed([url("a"), url("dead"), url("waits")], lcc.now)
    for ticket in lcc.tickets():
        if ticket.row.furl == url("a"):
            lcc.settle(lcc.served(ticket, served_type="text/html"))
        elif ticket.row.furl == url("dead"):
            lcc.settle(lcc.failed(ticket, 404, final=True))
    visits = {name: ask(lcc, url(name))[0].visits for name in ("a", "dead", "waits")}
    day = lcc.now + 86_400
    assert {name: (one.visited, one.due) for name, one in visits.items()} == {
        "a": (lcc.now, day), "dead": (lcc.now, day), "waits": (0, 0),
    }  # fmt: skip
    lcc.store_pages("pushed")
    assert ask(lcc, url("pushed"))[0].visits is None


def test_a_removed_document_tells_when_and_why(lcc):
    lcc.store_pages("a")
    lcc.push(removal("a"))
    gone = ask(lcc, url("a"))[0].tombstone
    assert (gone.removed_time, gone.reason) == (lcc.now, "removed by its provider")


def test_a_url_that_failed_for_good_is_still_explained(lcc):
    lcc.push(update("a"))
    lcc.settle(lcc.failed(lcc.ticket("a"), 404, final=True))
    for text in (url("a"), key("a").hex()):
        known = ask(lcc, text)
        assert [(one.outcome.code, one.queued, one.cached) for one in known] == [(404, None, None)]


@pytest.mark.parametrize("text", [url("a"), url("z"), "a name", "00" * 16])
def test_an_explanation_asks_as_much_whatever_the_number_of_providers(lcc, text):
    lcc.push(update("a"))
    lcc.settle(lcc.failed(lcc.ticket("a"), 404, final=True))
    asked = []
    for count in (10, 100):
        for pid in range(count, 2 * count):
            with lcc.store.begin() as tx:
                tx.insert_provider(Provider(pid, "a hash"), [f"http://{pid}.example.net/"])
        with counted(lcc.store) as verbs:
            ask(lcc, text)
        asked.append(len(verbs))
    assert asked[0] == asked[1] > 0


@contextmanager
def counted(store):
    """Note every verb that is asked of a store meanwhile."""
    verbs, read = [], store.read

    class Noting:
        def __init__(self, tx):
            self._tx = tx

        def __getattr__(self, name):
            verbs.append(name)
            return getattr(self._tx, name)

    @contextmanager
    def noted():
        with read() as tx:
            yield Noting(tx)

    store.read = noted
    yield verbs
    del store.read


def test_of_a_url_that_was_never_submitted_nothing_is_known(lcc):
    assert ask(lcc, url("z")) == []
    assert ask(lcc, "not a URL") == []
    assert ask(lcc, "00" * 16) == []
