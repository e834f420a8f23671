"""``lcc fetch``: the verdict in words, and notes of requests."""

from types import SimpleNamespace

import pytest
from scrapy import Request
from scrapy.exceptions import IgnoreRequest

from lcc_scrapy.cli.fetch import _words
from lcc_scrapy.domain.errors import NotDurable
from lcc_scrapy.ops.trial import Verdict
from lcc_scrapy.spiders.trial import HopRecorder, TrialSpider


def verdict(stored=False, code=0, text="", **flags):
    return Verdict(stored, code, text, **{"same": False, "again": False, "removes": False, **flags})


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (verdict(stored=True), "would be stored"),
        (verdict(stored=True, same=True), "would be confirmed: the cache holds the same content"),
        (
            verdict(stored=True, code=607, text="Other type"),
            "would be stored; the provider would be told 607 Other type",
        ),
        (verdict(code=605, text="Outside"), "would not be stored: 605 Outside"),
        (
            verdict(code=403, text="No", again=True, removes=True),
            "would not be stored: 403 No; the copy in the cache would go; but it would be tried again first",
        ),
    ],
)
def test_a_verdict_says_what_a_crawl_would_do(given, said):
    assert _words(given) == said


def test_a_full_disk_is_noted_and_ends_the_trial():
    spider = TrialSpider(name="trial", hops=[])
    recorder, request = HopRecorder(SimpleNamespace(spider=spider)), Request("http://h/")
    recorder.process_request(request)
    with pytest.raises(IgnoreRequest, match="no space"):
        recorder.process_exception(request, NotDurable("no space"))
    assert [hop.error for hop in spider.hops] == ["NotDurable: no space"]


def test_a_request_that_did_not_go_out_is_no_hop():
    spider = TrialSpider(name="trial", hops=[])
    HopRecorder(SimpleNamespace(spider=spider)).process_exception(Request("http://h/"), ValueError("no"))
    assert spider.hops == []
