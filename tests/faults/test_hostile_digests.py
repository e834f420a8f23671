"""Mirror servers that mean harm to what their tracker makes of them: its exports and its cache digest."""

from lcc_scrapy.apps.tracker.answering import Answering
from lcc_scrapy.apps.tracker.digest_urls import digest_urls
from lcc_scrapy.apps.tracker.exchange import export
from lcc_scrapy.apps.tracker.redirection import better
from lcc_scrapy.apps.tracker.rules.policy import Policy, Rules
from lcc_scrapy.domain.roots import URL_MAX
from tests.faults.costs import memory
from tests.mirrors import NOW, Tracker, tree_of
from tests.sqlite_store import sqlite_store

ORIGIN, MIRROR = "ftp://ftp.example.org/", "http://m.example.de/"


MANY = 50_000


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


def test_a_directory_of_many_links_and_digests_takes_no_memory_for_each(tmp_path):
    tracker, tree = Tracker(sqlite_store()), tree_of("f 5")
    links = [(b"%d" % number, b"x") for number in range(MANY)]
    digests = [(b"%d" % number, bytes(32)) for number in range(MANY)]
    for at, url in enumerate((ORIGIN, MIRROR), NOW):
        tracker.load(url, tree, at=at, links={(): links}, digests={(): digests})
    export(tracker.store, "org", tmp_path, NOW)  # what it imports and prepares at first is no part of it
    assert memory(lambda: export(tracker.store, "org", tmp_path, NOW)) < 150 * MANY
    assert memory(lambda: digest_of(tracker)) < 150 * MANY
