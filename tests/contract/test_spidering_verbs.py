"""What the stores keep for spiders: links of documents, what was found where, how far was looked."""

from dataclasses import replace

from little_lcc import PID, START, key, removal, update, url

from lcc_scrapy.db.records import LAST_NUMBER, DocumentLink, Scan, Spidered
from lcc_scrapy.domain.entries import furlkey

A, B, C = (furlkey(PID, url(name)) for name in "abc")


def found(name, **values):
    return replace(Spidered(furlkey(PID, url(name)), PID, url(name), 0, None, START), **values)


def test_links_come_back_in_the_order_of_the_page(lcc):
    lcc.store_pages("a", "b")
    links = [DocumentLink(url(f"{n}é "), "a", n % 2 == 0) for n in (3, 1, 2)]
    with lcc.store.begin() as tx:
        tx.put_links({key("a"): links, key("b"): []})
    with lcc.store.read() as tx:
        assert tx.links_of(key("a")) == links
        assert tx.links_of(key("b")) == tx.links_of(key("never")) == []


def test_the_links_of_a_page_replace_those_that_it_had(lcc):
    lcc.store_pages("a")
    with lcc.store.begin() as tx:
        tx.put_links({key("a"): [DocumentLink(url(str(n)), "a") for n in range(1500)]})
        tx.put_links({key("a"): [DocumentLink(url("x"), "frame")]})
    with lcc.store.read() as tx:
        assert tx.links_of(key("a")) == [DocumentLink(url("x"), "frame")]


def test_the_links_of_a_document_go_with_it(lcc):
    lcc.store_pages("a", "b")
    with lcc.store.begin() as tx:
        tx.put_links({key(name): [DocumentLink(url("x"), "a")] for name in "ab"})
    lcc.push(removal("a"))
    with lcc.store.read() as tx:
        assert (len(tx.links_of(key("a"))), len(tx.links_of(key("b")))) == (0, 1)


def test_documents_and_waiting_urls_are_found_by_where_they_are_fetched_from(lcc):
    lcc.store_pages("a")
    lcc.push(update("other name", furl=url("a"), mimetype="text/plain"))
    lcc.fetch_all()
    lcc.push(update("x", furl=url("b")), update("c"))
    lcc.push(removal("c"))
    with lcc.store.begin() as tx:
        tx.locate(PID, 0, LAST_NUMBER)
    with lcc.store.read() as tx:
        at = tx.cached_at([A, B, C])
        assert {row.curl for row in at.pop(A)} == {url("a"), url("other name")}
        assert at == {}
        assert tx.waiting_at([A, B, C]) == {B: key("x")}
        assert (tx.cached_at([]), tx.waiting_at([])) == ({}, {})
        assert (tx.present_at([A, B, C]), tx.present_at([])) == ({A, B}, set())


def test_a_document_is_found_where_it_lies_now(lcc):
    lcc.store_pages("a")
    lcc.push(update("a", furl=url("b")))
    with lcc.store.read() as tx:
        assert tx.waiting_at([A, B]) == {B: key("a")}
    lcc.fetch_all()
    with lcc.store.read() as tx:
        assert list(tx.cached_at([A, B])) == [B]


def test_what_spiders_found_comes_back_as_it_was_put_in(lcc):
    rows = [found("a"), found("é ", depth=3, parent=key("a"), visited=START, code=404)]
    with lcc.store.begin() as tx:
        tx.insert_spidered(rows)
    with lcc.store.read() as tx:
        assert tx.spidered([row.furlkey for row in rows] + [C]) == {row.furlkey: row for row in rows}
        assert (tx.count_spidered(PID), tx.count_spidered(8)) == (2, 0)


def test_those_that_wait_longest_are_overdue_first(lcc):
    with lcc.store.begin() as tx:
        tx.insert_spidered(
            [found("a", visited=30), found("b", visited=10), found("c"), found("d", visited=50)]
        )
        tx.insert_spidered([replace(found("a", visited=1), furlkey=furlkey(8, url("a")), pid=8)])
    with lcc.store.read() as tx:
        assert [row.furl for row in tx.overdue(PID, 50, 10)] == [url("b"), url("a")]
        assert [row.furl for row in tx.overdue(PID, 50, 1)] == [url("b")]
    with lcc.store.begin() as tx:
        tx.visit_again([B])
        ended = found("a", visited=START, code=404, answered=30, every=60, changes=1, due=START + 60)
        tx.visited([ended, found("nobody found this", visited=START)])
    with lcc.store.read() as tx:
        assert [row.furl for row in tx.overdue(PID, START, 10)] == [url("d")]
        assert tx.spidered([A])[A] == ended
        assert tx.count_spidered(PID) == 4


def test_those_that_are_due_come_in_the_order_of_their_times(lcc):
    with lcc.store.begin() as tx:
        tx.insert_spidered([found("a", due=30), found("b", due=10), found("c"), found("d", due=50)])
        tx.insert_spidered([replace(found("a", due=1), furlkey=furlkey(8, url("a")), pid=8)])
    with lcc.store.begin() as tx:
        assert [row.furl for row in tx.due(PID, 30, 10)] == [url("b"), url("a")]
        assert [row.furl for row in tx.due(PID, 30, 1)] == [url("b")]
        tx.visit_again([B])
        assert [row.furl for row in tx.due(PID, 2**40, 10)] == [url("a"), url("d")]


def test_how_far_was_looked_is_noted_for_each_provider(lcc):
    with lcc.store.begin() as tx:
        tx.put_scan(Scan(PID, 5, "x" * 64, START, START, 1, 2))
        tx.put_scan(Scan(PID, 2**40, "y", START, START + 1, 2**33, 2**34, "z" * 64, 2**41))
    with lcc.store.read() as tx:
        assert tx.scan(PID) == Scan(PID, 2**40, "y", START, START + 1, 2**33, 2**34, "z" * 64, 2**41)
        assert tx.scan(8) is None


def test_what_spiders_found_goes_with_its_provider(lcc):
    lcc.add(8)
    with lcc.store.begin() as tx:
        tx.insert_spidered([found("a"), replace(found("a"), furlkey=furlkey(8, url("a")), pid=8)])
        tx.put_scan(Scan(8))
        tx.delete_provider(8)
    with lcc.store.read() as tx:
        assert (tx.count_spidered(PID), tx.count_spidered(8), tx.scan(8)) == (1, 0, None)


def test_the_feed_can_be_read_up_to_a_number(lcc):
    lcc.store_pages("a", "b", "c")
    with lcc.store.read() as tx:
        assert [row.curl for row in tx.changes(1, 10, upto=2)] == [url("b")]
        assert tx.changes(3, 10, upto=2) == []
