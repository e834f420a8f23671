"""Mirror servers that mean harm to the cache digest of the tracker that lists them."""

from lcc_scrapy.apps.tracker.answering import Answering
from lcc_scrapy.apps.tracker.digest_urls import digest_urls
from lcc_scrapy.apps.tracker.redirection import better
from lcc_scrapy.apps.tracker.rules.policy import Policy, Rules
from lcc_scrapy.domain.roots import URL_MAX
from tests.mirrors import NOW, Tracker, tree_of
from tests.sqlite_store import sqlite_store

ORIGIN, MIRROR = "ftp://ftp.example.org/", "http://m.example.de/"


def digest_of(tracker: Tracker) -> list[str]:
    answering = Answering(tracker.store, Policy(others=Rules()), 10)
    return digest_urls(tracker.store, lambda url: better(answering, url, "") is not None, 100, lambda: True)


def test_directories_of_longer_urls_than_anybody_can_ask_for_keep_no_others_from_the_digest():
    tracker, tree = Tracker(sqlite_store()), tree_of("f 7")
    for _ in range(-(-URL_MAX // (3 * 250))):
        tree = {b"\xff" * 250: tree}
    for at, url in enumerate((ORIGIN, MIRROR), NOW):
        tracker.load(url, {b"a": tree, b"b": tree_of("f 5")}, at=at)
    assert f"{ORIGIN}b/" in digest_of(tracker)
