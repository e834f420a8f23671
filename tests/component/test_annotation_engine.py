"""The coordinator of the annotation engine: what waits, what is found, and what is recorded once."""

import json
from contextlib import contextmanager
from dataclasses import replace
from threading import Event

import pytest

from lcc_scrapy.annotation import queueing
from lcc_scrapy.annotation.engine import Effects
from lcc_scrapy.db.claim import HELD, Claim, ClaimLost
from lcc_scrapy.db.records import AE_FAILED, AE_PAGES, AE_PEAK, AE_SKIPPED, FEED, Ownership
from lcc_scrapy.domain.entries import furlkey
from lcc_scrapy.domain.urds import Process
from tests.annotated_lcc import NOW, SITE, InsidePool, Site, acis, engine_of, found, urd
from tests.memory_store import MemoryStore


@pytest.fixture
def site():
    made = Site(MemoryStore())
    with made.store.begin() as tx:
        queueing.begin(tx)
    return made


class OneAtATime(MemoryStore):
    """Refuses a transaction inside of another one: in SQLite's rollback journal they wait for each other."""

    is_open = False

    @contextmanager
    def begin(self):
        with self.alone(), super().begin() as tx:
            yield tx

    @contextmanager
    def read(self):
        with self.alone(), super().read() as tx:
            yield tx

    @contextmanager
    def alone(self):
        assert not self.is_open, "a transaction inside of a transaction"
        self.is_open = True
        yield
        self.is_open = False


def interest(site, *urds):
    with site.store.begin() as tx:
        return tx.add_urds(urds or [urd()])


def run(engine):
    engine.run(Event(), once=True)
    return engine


def peek(site, counter):
    with site.store.read() as tx:
        return tx.peek(counter)


def waiting(site):
    with site.store.read() as tx:
        return tx.waiting_documents(1000)


# --- from the feed to ACIs -----------------------------------------------------------------------


def test_a_page_becomes_one_aci_of_each_owner_whom_it_concerns(site):
    interest(site, urd("anna"), urd("bert"), urd("carl", words=["perl"]))
    site.cache("a", "b", text="on java")
    site.cache("c", text="on perl")
    engine = run(engine_of(site))
    assert found(site.store) == [("a", "anna"), ("a", "bert"), ("b", "anna"), ("b", "bert"), ("c", "carl")]
    assert waiting(site) == []
    assert (engine.report.pages, engine.report.acis, peek(site, AE_PAGES)) == (3, 5, 3)
    with site.store.read() as tx:
        assert queueing.cursor_of(tx) == tx.peek(FEED)


def test_numbers_of_acis_rise_without_gaps(site):
    interest(site)
    site.cache("a", "b", "c")
    run(engine_of(site))
    assert [one.number for one in acis(site.store)] == [1, 2, 3]


def test_an_aci_says_what_is_known_of_the_page(site):
    interest(site, urd(urgency=2, threshold=2))
    site.cache("docs/default.HTML", text="java java")
    run(engine_of(site))
    (aci,) = acis(site.store)
    assert (aci.extension, aci.format, aci.relevance, aci.urgency) == ("html", "html", 2, 2)
    assert (aci.uri, aci.filesize, aci.docbase) == (f"{SITE}docs/default.HTML", 9, "1/1")
    assert (aci.updatetime, aci.made, aci.expired, aci.seq) == (NOW, NOW, False, 1)


def test_findings_of_one_owner_are_one_aci(site):
    first, second = interest(site, urd(words=["java"], urgency=2), urd(words=["java", "perl"], urgency=0))
    site.cache("a", text="java perl")
    run(engine_of(site))
    (aci,) = acis(site.store)
    assert (aci.urdid, aci.relevance, aci.urgency) == (second.urdid, 2, 2)
    assert json.loads(aci.detail)["others"] == [{"urdid": first.urdid, "relevance": 1}]


def test_a_content_is_told_once_though_its_row_changes(site):
    interest(site)
    site.cache("a")
    run(engine_of(site))
    site.touch("a")
    run(engine_of(site))
    assert [one.expired for one in acis(site.store)] == [False]
    site.cache("a", text="other java")
    run(engine_of(site))
    assert [one.expired for one in acis(site.store)] == [True, False]


def test_acis_of_a_document_that_is_gone_expire(site):
    interest(site)
    site.cache("a", "b")
    run(engine_of(site))
    site.remove("a")
    run(engine_of(site))
    assert [(one.uri[-1], one.expired) for one in acis(site.store)] == [("a", True), ("b", False)]


def test_documents_without_a_text_are_left_out(site):
    interest(site)
    site.cache("a.png", text=b"java", mimetype="image/png")
    pool = InsidePool(site)
    run(engine_of(site, pool))
    assert (pool.pages, peek(site, AE_SKIPPED), acis(site.store)) == ([], 1, [])


def test_who_owns_a_page_by_a_directive_has_it_in_scope(site):
    interest(site, urd("anna", uri=f"{SITE}elsewhere"))
    site.cache("a")
    with site.store.begin() as tx:
        tx.put_owners([Ownership(furlkey(7, f"{SITE}a"), "anna", 7, 1)])
    run(engine_of(site))
    assert found(site.store) == [("a", "anna")]


# --- the queue -----------------------------------------------------------------------------------


def test_no_more_documents_wait_than_the_queue_holds(site):
    interest(site)
    site.cache(*map(str, range(30)))
    engine = run(engine_of(site, queue=8))
    assert len(acis(site.store)) == 30
    assert engine.report.peak == peek(site, AE_PEAK) == 8


def test_a_newer_version_replaces_the_waiting_one(site):
    interest(site)
    run(engine_of(site))
    site.cache("a", "b")
    pool = InsidePool(site)
    pool.held = True
    engine = engine_of(site, pool)
    engine.step()
    site.cache("a", text="more java")
    engine._next_look = 0
    engine.step()
    assert [(row.seq, row.position) for row in waiting(site)] == [(3, 1), (2, 2)]
    pool.held = False
    run(engine)
    assert [(one.uri[-1], one.seq) for one in acis(site.store)] == [("b", 2), ("a", 3)]


def test_a_document_that_goes_while_it_waits_is_skipped(site):
    interest(site)
    site.cache("a", "b")
    pool = InsidePool(site)
    pool.held = True
    engine = engine_of(site, pool)
    engine.step()
    site.remove("a")
    pool.held = False
    run(engine)
    assert found(site.store) == [("b", "anna")]
    assert waiting(site) == []


def test_a_page_that_no_processor_survives_is_a_failure_and_others_go_on(site):
    interest(site)
    site.cache("a", "b", "c")
    pool = InsidePool(site)
    pool.failing[f"{SITE}b"] = "took longer than 60 s"
    engine = run(engine_of(site, pool))
    assert found(site.store) == [("a", "anna"), ("c", "anna")]
    assert (engine.report.failed, peek(site, AE_FAILED), waiting(site)) == (1, 1, [])


# --- changes of URDs -----------------------------------------------------------------------------


def test_a_new_urd_is_run_over_the_cached_pages_in_its_scope(site, monkeypatch):
    monkeypatch.setattr(queueing, "PORTION", 4)
    monkeypatch.setattr(queueing, "RUN_ROOM", 3)
    site.cache(*(f"in/{number}" for number in range(9)), *(f"out/{number}" for number in range(9)))
    run(engine_of(site))
    interest(site, urd("anna", uri=f"{SITE}in/"))
    pool = InsidePool(site)
    run(engine_of(site, pool))
    assert found(site.store) == [(f"in/{number}", "anna") for number in range(9)]
    assert sorted(pool.pages) == [f"in/{number}" for number in range(9)]
    with site.store.read() as tx:
        assert tx.urds_to_run(9) == []


def test_urds_that_come_later_are_run_from_the_beginning(site, monkeypatch):
    monkeypatch.setattr(queueing, "PORTION", 2)
    site.cache(*map(str, range(7)))
    interest(site, urd("anna"))
    with site.store.begin() as tx:
        queueing.run_over_cache(tx, 1000, NOW)
    interest(site, urd("bert"))
    with site.store.begin() as tx:
        tx.dequeue([row.urlkey for row in tx.waiting_documents(9)])
        queueing.run_over_cache(tx, 1000, NOW)
        assert [row.urdids for row in tx.waiting_documents(9)] == ["2", "2"]
        queueing.run_over_cache(tx, 1000, NOW)
        assert [row.urdids for row in tx.waiting_documents(9)] == ["2", "2", "1 2", "1 2"]
    run(engine_of(site))
    assert len(found(site.store)) == 14


def test_pages_that_come_wait_for_few_old_ones(site, monkeypatch):
    monkeypatch.setattr(queueing, "RUN_ROOM", 3)
    site.cache(*(f"old{number}" for number in range(20)))
    run(engine_of(site))
    interest(site)
    pool = InsidePool(site)
    pool.held = True
    engine = engine_of(site, pool)
    engine.step()
    site.cache("new")
    engine._next_look = 0
    pool.held = False
    run(engine)
    assert pool.pages.index("new") <= 3
    assert len(found(site.store)) == 21


def test_a_removed_urd_finds_nothing_any_more_also_what_is_under_way(site):
    (one,) = interest(site)
    site.cache("a")
    pool = InsidePool(site)
    engine = engine_of(site, pool)
    engine._fill(look=True)
    engine._hand_out()
    engine._collect(0)
    with site.store.begin() as tx:
        tx.remove_urds([one.urdid])
    run(engine)
    assert acis(site.store) == []


def test_a_changed_urd_is_asked_anew(site):
    (one,) = interest(site)
    site.cache("a", text="java perl")
    engine = engine_of(site)
    engine._fill(look=True)
    engine._hand_out()
    engine._collect(0)
    with site.store.begin() as tx:
        tx.put_urds([replace(one, urgency=2)])
    run(engine)
    assert [aci.urgency for aci in acis(site.store)] == [2]


def test_what_a_urd_wanted_before_it_was_changed_is_not_told(site):
    (one,) = interest(site)
    site.cache("a")
    engine = engine_of(site)
    engine._fill(look=True)
    engine._hand_out()
    engine._collect(0)
    with site.store.begin() as tx:
        tx.put_urds([replace(one, keywords=urd(words=["perl"]).keywords)])
    run(engine)
    assert acis(site.store) == []


def test_an_expired_urd_finds_nothing(site):
    interest(site, urd("anna", expires=NOW), urd("bert", expires=NOW + 1))
    site.cache("a")
    run(engine_of(site))
    assert found(site.store) == [("a", "bert")]


def test_nothing_is_told_twice_by_a_run(site):
    interest(site, urd("anna"))
    site.cache("a")
    run(engine_of(site))
    interest(site, urd("anna", words=["java", "perl"]))
    run(engine_of(site))
    assert len(acis(site.store)) == 1


# --- changes of pages ----------------------------------------------------------------------------


def test_a_change_is_told_against_what_was_annotated_last(site):
    interest(site, urd(processtype=Process.CHANGE, words=[]))
    site.cache("a", text="One sentence. A second one.")
    run(engine_of(site))
    assert acis(site.store) == []
    site.cache("a", text="One sentence. Another one in between.")
    site.cache("a", text="One sentence. The last one.")
    run(engine_of(site))
    (aci,) = acis(site.store)
    assert "A second one" in aci.detail
    assert "in between" not in aci.detail


def test_a_new_urd_of_changes_tells_no_old_change(site):
    site.cache("a", text="One sentence.")
    site.cache("a", text="Another sentence.")
    run(engine_of(site))
    interest(site, urd(processtype=Process.CHANGE, words=[]))
    run(engine_of(site))
    assert acis(site.store) == []


def test_changes_without_versions_are_warned_of_once(site, caplog):
    interest(site, urd(processtype=Process.CHANGE, words=[]))
    site.cache("a")
    engine = run(engine_of(site, keeps=False))
    interest(site)
    run(engine)
    assert caplog.text.count("LCC_KEEP_VERSIONS") == 1


# --- one coordinator at a time -------------------------------------------------------------------


def test_another_coordinator_takes_over_only_when_the_claim_is_old(site):
    now = [1000]
    first, second = (Claim(site.store, "x", owner, lambda: now[0]) for owner in "ab")
    assert first.take()
    assert not second.take()
    now[0] += HELD
    assert second.take()
    with pytest.raises(ClaimLost), site.store.begin() as tx:
        first.hold(tx)
    second.release()
    assert first.take()


def test_a_claim_is_renewed_before_it_is_old(site):
    now = [1000]
    first, second = (Claim(site.store, "x", owner, lambda: now[0]) for owner in "ab")
    assert first.take()
    now[0] += HELD - 1
    with site.store.begin() as tx:
        first.hold(tx)
    now[0] += HELD - 1
    assert not second.take()


def test_who_lost_the_claim_writes_nothing(site):
    interest(site)
    site.cache("a")
    engine = engine_of(site)
    with site.store.begin() as tx:
        tx.set_info("annotating", f"{NOW} other")
    with pytest.raises(ClaimLost):
        run(engine)
    assert (acis(site.store), waiting(site)) == ([], [])


# --- what else happens in the transaction --------------------------------------------------------


def test_new_acis_are_told_with_them_or_not_at_all(site):
    interest(site)
    site.cache("a")
    told = []

    def tell(tx, new, now):
        told.extend(new)
        tx.set_info("told", str(now))
        if len(told) == 1:
            raise RuntimeError("the power goes")

    engine = engine_of(site, effects=Effects(tell=tell))
    with pytest.raises(RuntimeError):
        run(engine)
    assert acis(site.store) == []
    run(engine_of(site, effects=Effects(tell=tell)))
    assert [one.aci.number for one in told] == [1, 1]
    assert [one.number for one in acis(site.store)] == [1]


def test_deadlines_count_from_the_fetch_and_of_old_pages_from_now(site):
    told = []
    effects = Effects(tell=lambda _tx, new, _now: told.extend(new))
    site.cache("old")
    run(engine_of(site))
    interest(site)
    site.cache("new")
    engine = engine_of(site, effects=effects)
    engine._now = lambda: NOW + 5000
    run(engine)
    assert {one.aci.uri[-3:]: one.since for one in told} == {"old": NOW + 5000, "new": NOW}


def test_pages_that_concern_nobody_are_said_to(site):
    interest(site)
    with site.store.begin() as tx:
        tx.note_run([1], None)
    site.cache("a")
    site.cache("b", text="perl")
    nobody = []
    run(engine_of(site, effects=Effects(unwanted=lambda _tx, rows, _now: nobody.extend(rows))))
    assert [row.furl for row in nobody] == [f"{SITE}b"]


def test_an_idle_coordinator_keeps_its_claim_and_is_in_nobodys_way(monkeypatch):
    site = Site(OneAtATime())
    engine = engine_of(site)
    with site.store.begin() as tx:
        queueing.begin(tx)
    run(engine)
    taken = []
    monkeypatch.setattr("lcc_scrapy.annotation.engine.HELD", -1)
    monkeypatch.setattr(Claim, "hold", lambda _self, tx: taken.append(tx))
    engine.step()
    assert taken
