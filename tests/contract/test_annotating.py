"""The coordinator of the annotation engine, on every store."""

from threading import Event

from lcc_scrapy.annotation import queueing
from lcc_scrapy.annotation.status import status_of
from lcc_scrapy.domain.urds import Process
from lcc_scrapy.ops.metrics import measures
from tests.annotated_lcc import NOW, Site, acis, engine_of, found, urd


def test_pages_old_and_new_are_annotated_once(store, tmp_path):
    site = Site(store)
    site.cache("old", "gone")
    with store.begin() as tx:
        queueing.begin(tx)
        tx.set_info("lcc", "an id")
        tx.set_info("generation", "1")
        tx.add_urds([urd("anna"), urd("bert", processtype=Process.CHANGE, words=[])])
    site.cache("new", "picture", text="new java")
    site.cache("image.png", text=b"java", mimetype="image/png")
    engine_of(site, queue=2).run(Event(), once=True)
    site.cache("old", text="other java")
    site.remove("gone")
    engine_of(site, queue=2).run(Event(), once=True)
    assert found(store) == [
        ("gone", "anna"),
        ("new", "anna"),
        ("old", "anna"),
        ("old", "anna"),
        ("old", "bert"),
        ("picture", "anna"),
    ]
    rows = acis(store)
    assert [one.number for one in rows] == list(range(1, 7))
    assert {(one.uri[-4:], one.seq) for one in rows if one.expired} == {("/old", 1), ("gone", 2)}
    with store.read() as tx:
        told = status_of(tx, NOW // 1000)
    assert (told.waiting, told.annotated, told.acis, told.behind, told.urds_to_run) == (0, 8, 6, 0, False)
    assert told.peak == 2
    samples = {one.name: one.samples for one in measures(store, [tmp_path], NOW // 1000, 60.0)}
    assert samples["lcc_annotated"][0] == (("annotated",), 8.0)
    assert samples["lcc_acis"] == [((), 6.0)]
    assert samples["lcc_annotation_waiting"] == samples["lcc_annotation_lag_changes"] == [((), 0.0)]
