"""The queue of the annotation engine and what it found, on every store."""

from dataclasses import replace

import pytest
from sqlalchemy.exc import IntegrityError

from lcc_scrapy.db.records import ACI_NUMBER
from lcc_scrapy.domain.acis import Aci, Waiting

KEYS = [bytes([number]) * 16 for number in range(8)]
ACI = Aci(
    urlkey=KEYS[0], seq=3, owner="grüße", number=1, urdid=5, pid=7, extension="html", format="html",
    relevance=18, updatetime=97_876_950_000, filesize=2000, uri="http://www.example.org/ä", urgency=1,
    docbase="1/969890", expired=False, title="A title", summary="… with keywords …", detail='{"a": [1]}',
    made=97_876_950_123,
)  # fmt: skip


def waits(number, position, **other):
    return replace(Waiting(KEYS[number], seq=10 + number, position=position, since=99, urdids=""), **other)


def put(store, *rows):
    with store.begin() as tx:
        tx.put_acis(rows)


def test_documents_wait_by_position_and_each_once(store):
    rows = [waits(0, 5), waits(1, 3, urdids="4 5", base=7), waits(2, 4)]
    with store.begin() as tx:
        tx.enqueue(rows)
        tx.enqueue([replace(rows[0], seq=40, urdids="9")])
    with store.read() as tx:
        assert tx.waiting_documents(10) == [rows[1], rows[2], replace(rows[0], seq=40, urdids="9")]
        assert tx.waiting_documents(2) == [rows[1], rows[2]]
        assert tx.waiting_count() == 3
        assert tx.waiting_rows([KEYS[1], KEYS[5]]) == {KEYS[1]: rows[1]}


def test_a_document_that_waits_no_more_is_gone(store):
    with store.begin() as tx:
        tx.enqueue([waits(0, 1), waits(1, 2)])
        tx.dequeue([KEYS[0], KEYS[4]])
        assert [row.urlkey for row in tx.waiting_documents(9)] == [KEYS[1]]
        tx.dequeue([])
        assert tx.waiting_count() == 1


def test_acis_come_by_number_of_one_owner_or_of_all(store):
    rows = [
        ACI,
        replace(ACI, owner="b", number=4),
        replace(ACI, seq=9, number=6, expired=True),
        replace(ACI, urlkey=KEYS[1], owner="b", number=5),
    ]
    put(store, *rows)
    with store.read() as tx:
        assert tx.acis_after(0, None, 9) == [rows[0], rows[1], rows[3], rows[2]]
        assert tx.acis_after(1, None, 2) == [rows[1], rows[3]]
        assert tx.acis_after(0, "b", 9) == [rows[1], rows[3]]
        assert tx.acis_after(4, "b", 9) == [rows[3]]
        assert tx.acis_after(0, "B", 9) == []
        assert (tx.aci(6), tx.aci(2)) == (rows[2], None)
        assert tx.acis_of_number([1, 5, 77]) == {1: rows[0], 5: rows[3]}


def test_one_aci_of_each_owner_and_version(store):
    put(store, ACI)
    with pytest.raises((IntegrityError, ValueError)):
        put(store, replace(ACI, number=2))
    with store.read() as tx:
        assert tx.acis_after(0, None, 9) == [ACI]


def test_what_an_owner_was_told_of_is_found_by_content(store):
    put(store, ACI, replace(ACI, owner="b", seq=5, number=2, docbase="1/5"))
    with store.read() as tx:
        assert tx.told_contents([KEYS[0]], ["1/969890", "1/7"]) == {(KEYS[0], ACI.owner, "1/969890")}
        assert tx.told_contents(KEYS, {"1/5"}) == {(KEYS[0], "b", "1/5")}
        assert tx.told_contents(KEYS[1:], {"1/5"}) == set()
        assert tx.told_contents([], set()) == set()


def test_acis_expire_once(store):
    other = replace(ACI, owner="b", number=2)
    put(store, ACI, other, replace(ACI, seq=9, number=3, expired=True))
    key = (ACI.urlkey, ACI.seq, ACI.owner)
    with store.begin() as tx:
        assert sorted(tx.unexpired([KEYS[0], KEYS[1]]), key=str) == sorted(
            [(key, ACI.docbase), ((*key[:2], "b"), ACI.docbase)], key=str
        )
        tx.expire_acis([key])
        tx.expire_acis([])
    with store.read() as tx:
        assert [one.expired for one in tx.acis_after(0, None, 9)] == [True, False, True]


def test_the_last_number_comes_from_the_counter(store):
    with store.begin() as tx:
        assert tx.last_aci_number() == 0
        assert tx.take(ACI_NUMBER, 3) == 1
        assert tx.last_aci_number() == 3
