"""URLs that are queued many at a time end as the rules, asked one by one, would have it."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from little_lcc import PID, LittleLcc, assert_books_balance, dump, key, present, removal, update, url

from lcc_scrapy.db.records import Scan, Suspect
from lcc_scrapy.db.tables import metadata
from lcc_scrapy.domain import arrivals
from lcc_scrapy.domain.entries import ANY_TYPE, Declared, furlkey
from lcc_scrapy.domain.queue import Place, update_row
from lcc_scrapy.intake import absorbing
from lcc_scrapy.intake import arrivals as storage_arrivals
from lcc_scrapy.intake.absorbing import Intake
from lcc_scrapy.spidering import submitting
from lcc_scrapy.spidering.submitting import Spidering, Terms
from tests.memory_store import MemoryStore

OTHER = 8
NAMES = [f"n{number}" for number in range(9)]
BODIES = [None, b"one", b"two"]

names = st.sampled_from(NAMES)
pids = st.sampled_from([PID, PID, OTHER])
updates = st.builds(
    lambda name, furl, mimetype, body, mask: update(
        name, body, mimetype=mimetype, furl=url(furl or name), timeofday=mask
    ),
    names,
    st.sampled_from([None, None, *NAMES[:4]]),
    st.sampled_from(["text/html", "text/html", "text/plain", ANY_TYPE]),
    st.sampled_from(BODIES),
    st.sampled_from(["", "", "0" * 12 + "1" * 12]),
)
elements = st.one_of(updates, updates, updates, st.builds(removal, names), st.builds(present, names))
sets = st.fixed_dictionaries(
    {
        "pid": pids,
        "content": st.lists(elements, max_size=14),
        "full": st.sampled_from([False, False, True]),
        "ifabsent": st.sampled_from([False, False, True]),
        "entries_per_step": st.sampled_from([0, 5, 100]),
    }
)
happenings = st.one_of(
    st.tuples(st.just("push"), sets),
    st.tuples(st.just("push"), sets),
    st.tuples(st.just("fetch"), st.tuples(pids, st.integers(1, 12), st.sampled_from(BODIES[1:]))),
    st.tuples(st.just("seed"), st.tuples(pids, st.lists(names, min_size=1, max_size=4))),
    st.tuples(st.just("suspects"), st.sets(names, min_size=3)),
)


class Life:
    """One LCC, and what may happen to it."""

    def __init__(self, store):
        self.lcc = LittleLcc(store)
        self.lcc.add()
        self.lcc.add(OTHER, priority=2, strictmtime=True)

    def push(self, said):
        said = dict(said)
        pid, content, most = said.pop("pid"), said.pop("content"), said.pop("entries_per_step")
        spooled = self.lcc.spooled(*content, pid=pid, **said)
        arriving = Intake(self.lcc.store, spooled, self.lcc.policy)
        while not arriving.step(self.lcc.now, lambda taken: taken < most).finished:
            self.lcc.now += 1

    def fetch(self, said):
        pid, count, body = said
        for ticket in self.lcc.tickets(pid, limit=count):
            served = "text/html" if ticket.row.mimetype == ANY_TYPE else ticket.row.mimetype
            self.lcc.settle(self.lcc.served(ticket, body, served_type=served))

    def seed(self, said):
        pid, found = said
        Spidering(self.lcc.store, pid, Terms(), self.lcc.policy).seed(list(map(url, found)), self.lcc.now)

    def suspects(self, found):
        with self.lcc.store.begin() as tx:
            tx.put_suspects([Suspect(key(name), PID, self.lcc.now) for name in sorted(found)])


_FURLKEY = metadata.tables["qdb"].c.keys().index("furlkey")


def live(store, history):
    """Return what the store holds after each happening, but for ``furlkey``, which may be missing."""
    life, states = Life(store), []
    for what, said in history:
        getattr(life, what)(said)
        state = dump(store)
        if not isinstance(store, MemoryStore):
            state["qdb"] = [(*row[:_FURLKEY], *row[_FURLKEY + 1 :]) for row in state["qdb"]]
        states.append(state)
    assert_books_balance(store, life.lcc.files)
    return states


def all_by_the_rules(_batch, sets: list[storage_arrivals.Sorted]):
    arriving = [one.arriving for one in sets]
    return [list(enumerate(one.records, one.pset.absorbed + 1)) for one in arriving]


@pytest.mark.parametrize(
    ("store", "examples"),
    [("memory", 150), ("sqlite", 12), ("mariadb", 3), ("postgresql", 3)],
    indirect=["store"],
)
def test_whatever_happens_urls_that_are_queued_together_end_as_one_by_one(store, examples, empty):
    @settings(max_examples=examples, deadline=None)
    @given(history=st.lists(happenings, min_size=2, max_size=9))
    def check(history):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(absorbing, "CHUNK", 4)
            patch.setattr(absorbing, "NEW_CHUNK", 4)
            empty(store)
            together = live(store, history)
            patch.setattr(storage_arrivals, "queue_new", all_by_the_rules)
            empty(store)
            assert together == live(store, history)

    check()


def test_new_rows_are_those_of_the_rules(lcc):
    entries = [
        update("a", b"body", subtype="lang: é", declared=Declared(mtime=5), timeofday="1" * 24),
        update("b", burl=None, furl=url("elsewhere")),
    ]
    lcc.push(*entries)
    with lcc.store.read() as tx:
        rows = sorted(tx.queued_of(PID, 0, 10), key=lambda row: row.position)
    assert rows == [
        update_row(entry, key(name), PID, Place(1, number))
        for number, (name, entry) in enumerate(zip("ab", entries, strict=True), 1)
    ]


def test_sizes_of_statements_and_questions_make_no_difference(lcc, monkeypatch):
    monkeypatch.setattr(absorbing, "CHUNK", 5000)
    monkeypatch.setattr(absorbing, "NEW_CHUNK", 5000)
    names = [f"n{number}" for number in range(1100)]
    lcc.push(*map(update, names[:77]))
    lcc.push(*map(update, names))
    assert [name for name, _ in lcc.waiting()] == names
    with lcc.store.read() as tx:
        keys = [key(name) for name in names]
        absent = [key(f"absent {number}") for number in range(1100)]
        assert tx.known([*absent[:70], *keys, *absent]) == set(keys)
        assert tx.known([]) == set()


def test_what_waits_is_made_known_to_the_first_spider_in_portions_and_what_comes_later_at_once(
    lcc, monkeypatch
):
    monkeypatch.setattr(submitting, "LOCATED", 4)
    lcc.push(*map(update, NAMES))
    spider = Spidering(lcc.store, PID, Terms(), lcc.policy)
    assert [spider.locate(), spider.locate()] == [True, True]
    lcc.push(update("later"))
    spider.locate()
    assert spider.seed([url("later"), url(NAMES[0]), url("found")], lcc.now).urls == 1
    lcc.push(update("last"))
    assert not spider.locate()
    with lcc.store.read() as tx:
        places = {furlkey(PID, url(name)): key(name) for name in [*NAMES, "later", "last"]}
        assert tx.waiting_at(places) == places
        assert tx.scan(PID) == Scan(PID)


def test_what_waits_is_looked_at_in_portions_even_if_all_of_it_is_known(lcc, monkeypatch):
    monkeypatch.setattr(submitting, "LOCATED", 4)
    lcc.push(*map(update, NAMES))
    for _ in range(2):
        spider = Spidering(lcc.store, PID, Terms(), lcc.policy)
        assert [spider.locate() for _ in range(3)] == [True, True, False]


def test_the_first_transaction_of_a_spider_looks_only_at_what_arrived_since(lcc, monkeypatch):
    monkeypatch.setattr(submitting, "LOCATED", 4)
    lcc.push(*map(update, NAMES))
    spider = Spidering(lcc.store, PID, Terms(), lcc.policy)
    while spider.locate():
        pass
    looked_at, locate = [], Spidering._locate_some
    monkeypatch.setattr(Spidering, "_locate_some", lambda *said: looked_at.append(said[2]) or locate(*said))
    spider.seed([url("start")], lcc.now)
    with lcc.store.read() as tx:
        assert looked_at == [tx.reach_waiting(PID, 0, 8)]


def test_a_scan_knows_what_waits_though_it_began_without_a_start_page(lcc):
    lcc.push(update("waiting"))
    spider = Spidering(lcc.store, PID, Terms(), lcc.policy)
    look = spider.look(lcc.now)
    spider.advance(look, [], look.upto, lcc.now)
    assert spider.seed([url("waiting")], lcc.now).urls == 0


def test_columns_of_new_rows_are_all_columns(lcc):
    lcc.push(update())
    with lcc.store.read() as tx:
        (row,) = tx.queued_of(PID, 0, 1)
    made = {*arrivals.NEW_COLUMNS, *arrivals.same_in_all(PID, 1)}
    assert made == {*row.__dataclass_fields__, "curlhash", "furlhash", "furlkey"}
