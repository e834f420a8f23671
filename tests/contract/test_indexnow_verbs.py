"""Keys of IndexNow and what waits for them, the same on every store; and how it comes into the queue and out."""

import json
from dataclasses import replace

import pytest
from little_lcc import PID, SITE, update, url

from lcc_scrapy.apps.indexnow.checking import Verdict
from lcc_scrapy.apps.indexnow.keys import Keys
from lcc_scrapy.apps.indexnow.queueing import Queueing, Step
from lcc_scrapy.apps.indexnow.rules import BAD, GOOD, PENDING, Asked, Portion, SiteKey, read_submission
from lcc_scrapy.apps.indexnow.settings import IndexNowRules
from lcc_scrapy.apps.indexnow.store import rows_in
from lcc_scrapy.domain.entries import ANY_TYPE, Origin
from lcc_scrapy.domain.providers import FIRST_PID, Provider
from lcc_scrapy.providers.registration import give_out
from lcc_scrapy.spidering.submitting import Spidering, Terms

pytestmark = pytest.mark.parametrize("store", ["sqlite", "mariadb", "postgresql"], indirect=True)

HOST = "www.example.org"


def site_key(number, site="h", state=GOOD, **values):
    return SiteKey(f"{number:064}", site, "k" * 8, f"http://{site}/k.txt", state, **values)


def portion(number, site="h", at=0, size=10, urls=("http://h/",)):
    return Portion(0, f"{number:064}", site, at, size, len(urls), json.dumps(urls))


def test_a_key_comes_back_as_it_was_put_in_and_is_replaced(store):
    first = site_key(1, since=1, seen=2, checked=3, due=4, tries=5, reason="né", accepted=6, refused=7)
    with store.begin() as tx:
        assert rows_in(tx).site_key(first.digest) is None
        rows_in(tx).put_site_key(first)
        assert rows_in(tx).lock_site_key(first.digest) == first
        rows_in(tx).put_site_key(replace(first, state=BAD))
    with store.read() as tx:
        assert rows_in(tx).site_key(first.digest) == replace(first, state=BAD)
        assert rows_in(tx).count_site_keys(GOOD) == 0
        assert rows_in(tx).count_site_keys(BAD) == 1


def test_keys_are_listed_by_site_and_found_when_they_are_due(store):
    rows = [site_key(3, "a", due=9), site_key(1, "b", PENDING, due=5), site_key(2, "b", PENDING, due=4)]
    with store.begin() as tx:
        for row in rows:
            rows_in(tx).put_site_key(row)
    with store.read() as tx:
        assert rows_in(tx).site_keys() == rows
        assert rows_in(tx).site_keys((rows[0].site, rows[0].digest), 1) == [rows[1]]
        assert rows_in(tx).site_keys_of("b") == rows[1:]
        assert rows_in(tx).site_keys_due(PENDING, 5, 9) == [rows[2], rows[1]]
        assert rows_in(tx).site_keys_due(PENDING, 4, 9) == [rows[2]]


def test_portions_of_good_keys_are_taken_in_the_order_in_which_they_came(store):
    with store.begin() as tx:
        rows_in(tx).put_site_key(site_key(1))
        rows_in(tx).put_site_key(site_key(2, "x", PENDING))
        rows_in(tx).add_portions(
            [portion(1, at=1), portion(2, "x", size=5, urls=("a", "b")), portion(1, at=2)]
        )
    with store.begin() as tx:
        first, last = rows_in(tx).portions_of_good_keys(0, 9)
        assert rows_in(tx).portions_of_good_keys(first, 9) == [last]
        assert rows_in(tx).lock_portion(first).at == 1
        assert (
            rows_in(tx).portions_waiting(),
            rows_in(tx).portions_waiting("x"),
            rows_in(tx).portions_waiting("y"),
        ) == (25, 5, 0)
        assert (rows_in(tx).urls_waiting("x"), rows_in(tx).urls_waiting("h")) == (2, 2)
        rows_in(tx).cut_portion(last, '["z"]', 1)
        rows_in(tx).cut_portion(first, "[]", 0)
        assert (rows_in(tx).lock_portion(first), rows_in(tx).lock_portion(last).urls) == (None, '["z"]')
        assert rows_in(tx).drop_portions_of(f"{2:064}") == 2
        assert rows_in(tx).portions_waiting() == 10


def test_keys_and_portions_become_old(store):
    with store.begin() as tx:
        for number, seen in enumerate((5, 10, 5)):
            rows_in(tx).put_site_key(site_key(number, seen=seen))
        rows_in(tx).add_portions([portion(2, at=5), portion(2, at=7)])
        assert rows_in(tx).forget_site_keys(GOOD, 10) == 1
        assert [row.seen for row in rows_in(tx).site_keys()] == [10, 5]
        assert rows_in(tx).drop_portions(7) == 1
        assert rows_in(tx).portions_waiting() == 10
        rows_in(tx).delete_site_keys([row.digest for row in rows_in(tx).site_keys()])
        assert rows_in(tx).site_keys() == []


def test_pids_that_the_lcc_gives_are_nobodys_and_never_the_same(store):
    with store.begin() as tx:
        for pid in (FIRST_PID, FIRST_PID + 2):
            tx.insert_provider(Provider(pid, ""), [])
        tx.set_info(f"removed:{FIRST_PID + 1}", "1")
    given = []
    for _ in range(3):
        with store.begin() as tx:
            given.append(give_out(tx))
            tx.insert_provider(Provider(given[-1], ""), [])
    assert given == [FIRST_PID + 3, FIRST_PID + 4, FIRST_PID + 5]


# --- through the queue ---------------------------------------------------------------------------


def receiver(lcc, mode="known", queue_max=0):
    made = Keys(lcc.store, IndexNowRules(mode=mode), lambda pid, root: Provider(pid, "", name=root))
    return made, Queueing(lcc.store, lcc.policy, queue_max)


def submit(lcc, *names, mode="known", queue_max=0):
    keys, queueing = receiver(lcc, mode, queue_max)
    asked = read_submission(Asked("0123456789abcdef", [url(name) for name in names], HOST))
    admitted = keys.admit(asked, lcc.now)
    keys.settle(admitted.row, Verdict(GOOD), lcc.now)
    steps = [queueing.queue(number, lcc.now) for number in queueing.ready(0)]
    assert set(steps) <= {Step.GONE}
    return steps


def test_a_new_url_becomes_a_pushed_document_of_the_type_that_is_served(lcc):
    submit(lcc, "a")
    assert lcc.queued(mimetype=ANY_TYPE).origin == Origin.INDEXNOW
    lcc.fetch("a", served_type="text/html")
    row = lcc.cached()
    assert (row.origin, row.mimetype, row.curl) == (Origin.PUSH, "text/html", url("a"))
    assert (lcc.waiting(), lcc.provider().fileused) == ([], 1)


def test_a_cached_url_is_fetched_again_whatever_was_declared_of_it(lcc):
    lcc.push(update("a", b"one"))
    lcc.fetch("a", b"one")
    submit(lcc, "a")
    assert lcc.queued("a").md5 is None
    lcc.fetch("a", b"three")
    assert (lcc.cached().fetched_len, lcc.provider().fileused) == (5, 1)


def test_a_document_that_a_spider_found_is_its_providers_from_then_on(lcc):
    Spidering(lcc.store, PID, Terms(), lcc.policy).seed([url("a")], lcc.now)
    lcc.fetch("a", served_type="text/html")
    assert lcc.cached().origin == Origin.SPIDER
    submit(lcc, "a")
    lcc.fetch("a", b"new", served_type="text/html")
    assert (lcc.cached().origin, lcc.documents()) == (Origin.PUSH, ["a"])


def test_a_cached_url_that_is_gone_is_removed(lcc):
    lcc.store_pages(*"abcdefghijkl")
    submit(lcc, "a")
    settled = lcc.settle(lcc.failed(lcc.ticket("a"), 404, final=True))
    assert settled[0].removed
    assert lcc.documents() == list("bcdefghijkl")


def test_a_new_url_that_is_gone_leaves_nothing_but_an_error_for_its_provider(lcc):
    submit(lcc, "a")
    lcc.settle(lcc.failed(lcc.ticket("a"), 404, final=True))
    assert (lcc.documents(), lcc.waiting(), len(lcc.errors())) == ([], [], 1)


def test_a_url_that_waits_is_not_queued_twice(lcc):
    submit(lcc, "a")
    submit(lcc, "a")
    assert lcc.waiting() == [("a", "fetch")]


def test_a_url_that_is_pushed_with_its_type_as_well_becomes_one_document(lcc):
    submit(lcc, "a")
    lcc.push(update("a", b"one"))
    while tickets := lcc.tickets():
        lcc.settle(lcc.served(tickets[0], b"one", served_type="text/html"))
    assert (lcc.documents(), lcc.cached().origin, lcc.provider().fileused) == (["a"], Origin.PUSH, 1)


@pytest.mark.parametrize("mode", ["open", "approve"])
def test_a_scope_that_somebody_has_makes_no_provider(lcc, mode):
    submit(lcc, "a", mode=mode)
    with lcc.store.read() as tx:
        assert [one.pid for one in tx.providers()] == [PID]
        assert tx.roots(PID) == [SITE]


def test_a_portion_of_several_providers_goes_to_one_after_the_other(lcc):
    with lcc.store.begin() as tx:
        tx.insert_provider(Provider(3, ""), [url("docs/")])
    keys, queueing = receiver(lcc)
    asked = read_submission(Asked("0123456789abcdef", [url("a"), url("docs/b"), url("c")], HOST))
    keys.settle(keys.admit(asked, lcc.now).row, Verdict(GOOD), lcc.now)
    (number,) = queueing.ready(0)
    assert [queueing.queue(number, lcc.now) for _ in range(3)] == [Step.MORE, Step.GONE, Step.GONE]
    with lcc.store.read() as tx:
        assert [row.furl for row in tx.queued_of(3, 0, 9)] == [url("docs/b")]
        assert sorted(row.furl for row in tx.queued_of(PID, 0, 9)) == [url("a"), url("c")]
