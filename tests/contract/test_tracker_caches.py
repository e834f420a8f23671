"""Where a cache is sent: to a better replica only, so that nobody goes in a circle; on every store."""

from dataclasses import replace

import pytest

from lcc_scrapy.apps.tracker.answering import Answering
from lcc_scrapy.apps.tracker.digest_urls import digest_urls
from lcc_scrapy.apps.tracker.redirection import Better, better
from lcc_scrapy.apps.tracker.rules.policy import Policy, Rules
from lcc_scrapy.apps.tracker.store import rows_in
from lcc_scrapy.domain.errors import UrlRefused
from tests.mirrors import NOW, Tracker, tree_of

pytestmark = [
    pytest.mark.parametrize("store", ["sqlite", "mariadb", "postgresql"], indirect=True),
]

TREE = tree_of("pub/app/own 2\npub/app/1.0/app.tgz 5\npub/app/1.0/doc/README 7\npub/own 1")
MIRROR = tree_of("mirrors/1.0/app.tgz 5\nmirrors/1.0/doc/README 7")
OTHER = tree_of("1.0/app.tgz 5\n1.0/doc/README 7\nown 9")
ORIGIN, DE, AT = "ftp://ftp.example.org/", "http://m.example.de/", "rsync://m.example.at/all/"
WANTED = f"{ORIGIN}pub/app/1.0/doc/README"
CONTENTS = {(b"pub", b"app", b"1.0"): [(b"app.tgz", bytes(32))]}


@pytest.fixture
def tracker(store):
    made = Tracker(store)
    made.load(ORIGIN, TREE, at=NOW, digests=CONTENTS)
    made.load(DE, MIRROR, "de", at=NOW + 1)
    made.load(AT, OTHER, "at", at=NOW + 2)
    return made


def found(tracker, url, rules=None, address="127.0.0.1"):
    return better(Answering(tracker.store, Policy(others=rules or Rules()), 10), url, address)


def test_the_fresher_replica_that_a_cache_can_fetch_is_the_better_one(tracker):
    assert found(tracker, WANTED) == Better(f"{DE}mirrors/1.0/doc/README", redirects=False)


def test_nobody_is_sent_from_the_best_server_to_another(tracker):
    assert found(tracker, f"{DE}mirrors/1.0/doc/README") is None


def test_the_own_server_is_better_if_the_policy_prefers_it(tracker):
    assert found(tracker, WANTED, Rules(own=("org",))) is None
    back = found(tracker, f"{DE}mirrors/1.0/doc/README", Rules(own=("org",), answer="redirect"))
    assert back == Better(WANTED, redirects=True)


def test_a_server_whose_last_scan_failed_is_left_for_any_other(tracker):
    with tracker.store.begin() as tx:
        (origin,) = rows_in(tx).hosts_at("ftp://ftp.example.org")
        rows_in(tx).put_host(replace(origin, failures=1))
    assert found(tracker, WANTED, Rules(own=("org",))) is not None
    assert found(tracker, f"{DE}mirrors/1.0/doc/README", Rules(own=("org",))) is None


def test_a_server_that_the_policy_forbids_is_left_for_any_other(tracker):
    rules = Rules(forbidden=("m.example.de",))
    assert found(tracker, f"{DE}mirrors/1.0/", rules) == Better(f"{ORIGIN}pub/app/1.0/", redirects=False)


def test_an_unknown_url_has_nothing_better_and_a_malformed_one_is_refused(tracker):
    assert found(tracker, f"{ORIGIN}pub/own") is None
    assert found(tracker, "http://elsewhere.example.org/x") is None
    with pytest.raises(UrlRefused):
        found(tracker, "http://")


def test_a_digest_has_directories_and_files_of_known_content_that_have_a_better_replica(tracker):
    assert urls(tracker) == [
        f"{ORIGIN}pub/app/1.0/",
        f"{ORIGIN}pub/app/1.0/app.tgz",
        f"{ORIGIN}pub/app/1.0/doc/",
    ]
    assert len(urls(tracker, 2)) == 2


def urls(tracker, most=100):
    return sorted(digest_urls(tracker.store, lambda url: found(tracker, url) is not None, most, lambda: True))


def test_no_more_is_looked_up_than_ten_times_what_a_digest_may_have(tracker, monkeypatch):
    monkeypatch.setattr("lcc_scrapy.apps.tracker.digest_urls.LOOKED_UP", 2)
    asked = []
    assert digest_urls(tracker.store, asked.append, 2, lambda: True) == []
    assert len(asked) == 4


def test_a_digest_whose_time_is_up_has_what_was_found(tracker):
    asked = []
    urls = digest_urls(tracker.store, lambda url: not asked.append(url), 100, lambda: len(asked) < 2)
    assert urls == asked
    assert len(asked) == 2


def test_a_scan_that_ends_meanwhile_only_ends_what_the_digest_has_of_its_server(tracker, monkeypatch):
    monkeypatch.setattr("lcc_scrapy.apps.tracker.digest_urls.AT_A_TIME", 1)
    asked = []

    def rescanned(url):
        if not asked:
            with tracker.store.begin() as tx:  # and its former directories are not all removed yet
                (origin,) = rows_in(tx).hosts_at("ftp://ftp.example.org")
                rows_in(tx).put_host(replace(origin, first=origin.first + 1000))
        asked.append(url)
        return True

    found = digest_urls(tracker.store, rescanned, 100, lambda: True)
    assert f"{ORIGIN}pub/app/1.0/" in found
    assert f"{ORIGIN}pub/app/1.0/doc/" not in found
    assert f"{DE}mirrors/1.0/doc/" in found


@pytest.mark.parametrize("limit", [1, 2])
def test_replicas_that_no_cache_can_fetch_take_no_others_place(tracker, limit):
    answering = Answering(tracker.store, Policy(), limit)
    assert better(answering, WANTED, "127.0.0.1") == Better(f"{DE}mirrors/1.0/doc/README", redirects=False)
