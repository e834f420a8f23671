"""Which pages are rendered, and what a page may ask of sites meanwhile."""

from dataclasses import replace

import pytest
from scrapy.settings import Settings

from lcc_scrapy.config.config import load
from lcc_scrapy.domain.entries import RENDERED, EntryRules, read_entry, served_mimetype
from lcc_scrapy.domain.errors import ConfigurationError, UrlRefused
from lcc_scrapy.domain.rendering import NotPermitted, RequestBudget, is_rendered, may_be_page
from lcc_scrapy.domain.roots import HttpUrl, Root
from lcc_scrapy.domain.runs import RunRules, read_run

ROOTS = (Root.parse("https://www.example.com/docs/"),)


def rules(**given):
    return replace(load(Settings()).render, **given)


def asks(budget, url, method="GET", kind="script"):
    try:
        budget.ask(method, kind, HttpUrl.parse(url))
    except NotPermitted:
        return False
    return True


@pytest.mark.parametrize(
    ("url", "hosts", "may"),
    [
        ("https://www.example.com/docs/app.js", (), True),
        ("https://www.example.com/elsewhere.js", (), True),
        ("http://www.example.com/docs/app.js", (), False),
        ("https://www.example.com:8443/app.js", (), False),
        ("https://example.com/app.js", (), False),
        ("https://cdn.example.net/app.js", ("cdn.example.net",), True),
        ("https://a.cdn.example.net/app.js", ("cdn.example.net",), False),
        ("https://a.cdn.example.net/app.js", ("*.example.net",), True),
        ("https://example.net.evil.org/app.js", ("*.example.net",), False),
        ("http://127.0.0.1/app.js", ("*",), True),
    ],
)
def test_hosts_of_roots_and_named_ones_may_be_asked(url, hosts, may):
    """Whether an address is private is for the guard to say."""
    assert asks(RequestBudget(rules(hosts=hosts), ROOTS), url) is may


@pytest.mark.parametrize("method", ["POST", "PUT", "HEAD", "OPTIONS", "get"])
def test_nothing_but_get_is_asked(method):
    assert not asks(RequestBudget(rules(), ROOTS), "https://www.example.com/", method)


@pytest.mark.parametrize("kind", ["image", "media", "font", "websocket", "eventsource", "ping"])
def test_what_changes_no_text_is_not_asked(kind):
    assert not asks(RequestBudget(rules(), ROOTS), "https://www.example.com/", kind=kind)


def test_requests_and_bytes_are_bounded():
    budget = RequestBudget(rules(requests=3, size=1000), ROOTS)
    url = "https://www.example.com/"
    assert [asks(budget, url) for _ in range(5)] == [True, True, True, False, False]
    budget = RequestBudget(rules(size=1000), ROOTS)
    budget.take(400)
    assert budget.room == 600
    assert asks(budget, url)
    budget.take(601)
    assert not asks(budget, url)
    assert budget.room == 1


def test_a_request_that_is_refused_counts_for_nothing():
    budget = RequestBudget(rules(requests=1), ROOTS)
    assert not asks(budget, "https://evil.example/")
    assert asks(budget, "https://www.example.com/")


@pytest.mark.parametrize(
    ("mimetype", "page", "may_be"),
    [
        ("text/html", True, True), ("application/xhtml+xml", True, True), ("*/*", False, True),
        ("text/plain", False, False), (RENDERED, False, False), ("", False, False),
    ],
)  # fmt: skip
def test_pages_are_html(mimetype, page, may_be):
    assert (is_rendered(mimetype), may_be_page(mimetype)) == (page, may_be)


def test_its_mimetype_can_neither_be_served_nor_declared():
    assert served_mimetype(RENDERED) == "application/octet-stream"
    entry_rules = EntryRules(("*/*",), ROOTS)
    said = {"curl": "https://www.example.com/docs/a", "mimetype": RENDERED}
    for element in (said, {**said, "op": "remove"}):
        with pytest.raises(UrlRefused) as refused:
            read_entry(element, entry_rules)
        assert refused.value.code == 706
    columns = {"curl": ["https://www.example.com/docs/a"], "mimetype": [RENDERED]}
    assert read_run(columns, RunRules.of(entry_rules)) is None
    assert read_run({**columns, "mimetype": ["text/html"]}, RunRules.of(entry_rules)) is not None


@pytest.mark.parametrize("text", ["https://cdn.example.net", "cdn.example.net/x", "**"])
def test_hosts_are_hosts(text):
    with pytest.raises(ConfigurationError, match="LCC_RENDER_HOSTS"):
        load(Settings({"LCC_RENDER_HOSTS": text}))
