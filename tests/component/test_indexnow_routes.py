"""IndexNow over HTTP: each status of the protocol, and what is in the queue behind it."""

import asyncio
import json
from concurrent.futures import ThreadPoolExecutor

import pytest

from lcc_scrapy.apps.indexnow.checking import Verdict
from lcc_scrapy.apps.indexnow.settings import IndexNowRules
from lcc_scrapy.apps.indexnow.store import rows_in
from lcc_scrapy.domain.providers import State
from lcc_scrapy.domain.throttling import Rate
from tests.harness import wait_for
from tests.indexnow_house import KEY, NOW, PID, SITE, IndexNowHouse, get, post, url

WRONG = Verdict("bad", "the site answers 404")
SILENT = Verdict("pending", "no answer in time")


@pytest.fixture
def house():
    made = IndexNowHouse()
    made.provider()
    return made


def test_a_url_whose_key_verifies_gets_200_and_is_queued_as_whatever_its_site_serves(house):
    with house.client() as client:
        answer = get(client)
        assert (answer.status_code, answer.text) == (200, "")
        wait_for(house.queued)
    assert house.waiting() == [(PID, url(), "*/*", "indexnow")]
    assert house.checks == [(f"https://{SITE}/{KEY}.txt", KEY, False)]
    assert house.held() == 0


@pytest.mark.parametrize("path", ["/indexnow", "/indexnow/", "/IndexNow"])
def test_ten_thousand_urls_are_taken_by_one_post(house, path):
    urls = [url(f"page-{number}") for number in range(10_000)]
    with house.client() as client:
        assert post(client, *urls, path=path).status_code == 200
        wait_for(lambda: len(house.queued()) == 10_000)
    assert house.queued() == sorted(urls)
    assert (house.key().accepted, house.key().refused) == (10_000, 0)


def test_a_key_is_checked_once_a_day(house):
    with house.client() as client:
        for name in "abc":
            assert get(client, url(name)).status_code == 200
        assert len(house.checks) == 1
        house.now += 86_400
        assert get(client, url("d")).status_code == 200
        assert len(house.checks) == 2
        wait_for(lambda: len(house.queued()) == 4)


def test_a_wrong_key_gets_403_and_is_not_looked_for_again_for_minutes(house):
    house.verdict = WRONG
    with house.client() as client:
        first, second = get(client), get(client, url("b"))
        assert (first.status_code, second.status_code) == (403, 403)
        assert f"https://{SITE}/{KEY}.txt" in first.json()["detail"]
        assert "404" not in first.text
        assert len(house.checks) == 1
        assert (house.queued(), house.held()) == ([], 0)
        house.now += 301
        house.verdict = Verdict("good")
        assert get(client).status_code == 200


def test_a_submission_of_a_site_that_does_not_answer_gets_202_and_waits(house):
    house.verdict = SILENT
    with house.client() as client:
        assert get(client).status_code == 202
        assert (house.queued(), house.held(), house.key().state) == ([], 1, "pending")
        house.verdict = Verdict("good")
        house.now += 10
        wait_for(house.queued)
    assert (house.key().state, house.held()) == ("good", 0)


def test_a_check_that_takes_long_is_answered_202_and_goes_on():
    house = IndexNowHouse(wait=0.1)
    house.provider()
    released = asyncio.Event()

    async def slow():
        await released.wait()
        return Verdict("good")

    house.verdict = slow
    with house.client() as client:
        assert get(client).status_code == 202
        assert house.queued() == []
        client.portal.call(released.set)
        wait_for(house.queued)


def test_what_waits_for_a_key_that_proves_wrong_is_dropped(house, caplog):
    house.verdict = SILENT
    with house.client() as client, caplog.at_level("WARNING"):
        assert post(client, url("a"), url("b")).status_code == 202
        house.verdict = WRONG
        house.now += 10
        wait_for(lambda: house.key().state == "bad")
    assert (house.queued(), house.held(), house.key().refused) == ([], 0, 2)
    assert "the site answers 404" in caplog.text


def test_a_site_that_never_answers_is_given_up_in_the_end(house):
    house.verdict = SILENT
    with house.client() as client:
        assert get(client).status_code == 202
        house.now += 3601
        wait_for(lambda: house.key().state == "bad")
        assert house.held() == 0
        assert get(client).status_code == 403


def test_an_acknowledged_submission_outlives_the_process_that_took_it(house):
    house.verdict = SILENT
    with house.client() as client:
        assert get(client).status_code == 202
    after = IndexNowHouse(house.store)
    after.now = NOW + 10
    with after.client():
        wait_for(after.queued)
    assert after.queued() == [url()]


@pytest.mark.parametrize(
    ("body", "why"),
    [
        ("", "expected {"),
        ("[]", "expected {"),
        ("{}", "urlList"),
        ('{"host": "x"', "expected ,"),
        ('{"host": "h", "key": "01234567", "urlList": "x"}', "urlList"),
        ('{"host": 7, "key": "01234567", "urlList": ["http://h/"]}', "host"),
        ('{"key": "01234567", "urlList": ["http://h/"]}', "host is missing"),
        ('{"host": "h", "key": "01234567", "urlList": []}', "1 to 10000"),
        ('{"host": "h", "key": "01234567", "urlList": ["gopher://h/"]}', "URL 1"),
        ('{"host": "h", "key": "01234567", "urlList": [["http://h/"]]}', "expected a text"),
        ('{"host": "h", "host": "h"}', "stands twice"),
        ('{"host": "h", "key": "01234567", "urlList": ["http://h/"]} x', "behind"),
        (b'{"host": "\xff"}', "UTF-8"),
        ('{"a":' + "[" * 100_000, "expected a text"),
        ('{"host": "' + "x" * 20_000 + '"}', "without an end"),
    ],
)
def test_what_is_no_submission_gets_400_that_says_why(house, body, why):
    with house.client() as client:
        answer = client.post("/indexnow", content=body, headers={"Content-Type": "application/json"})
    assert answer.status_code == 400
    assert why in answer.json()["detail"]
    assert (house.checks, house.held()) == ([], 0)


@pytest.mark.parametrize(
    "kind", ["", "text/plain", "application/x-www-form-urlencoded", "multipart/form-data"]
)
def test_another_content_type_gets_400(house, kind):
    with house.client() as client:
        answer = client.post("/indexnow", content="{}", headers={"Content-Type": kind} if kind else {})
    assert (answer.status_code, "application/json" in answer.json()["detail"]) == (400, True)


@pytest.mark.parametrize("query", ["", "?url=https://www.example.org/a", f"?key={KEY}", f"?url=x&key={KEY}"])
def test_a_get_that_says_too_little_gets_400(house, query):
    with house.client() as client:
        assert client.get(f"/indexnow{query}").status_code == 400


@pytest.mark.parametrize("key", ["short", "0123456_", "x" * 129, "0123456789abcde/", "schlüssel-0123"])
def test_a_key_that_is_none_gets_422(house, key):
    with house.client() as client:
        assert (get(client, key=key).status_code, post(client, key=key).status_code) == (422, 422)
    assert house.checks == []


@pytest.mark.parametrize(
    ("wanted", "location"),
    [
        ("https://other.example.org/a", f"https://{SITE}/k.txt"),
        (f"https://{SITE}:8443/a", f"https://{SITE}/k.txt"),
        (url("help/a"), f"https://{SITE}/docs/k.txt"),
        (url("docs/../help/a"), f"https://{SITE}/docs/k.txt"),
        (url("docs%2f..%2fhelp"), f"https://{SITE}/docs/k.txt"),
        (url(), "https://other.example.org/k.txt"),
        (url(), f"https://{SITE}@other.example.org/k.txt"),
        (url(), f"https://{SITE}/k.txt?x=1"),
        (url(), f"https://{SITE}/a/../k.txt"),
        (url(), f"https://{SITE}/a%2f..%2fk.txt"),
        (url(), f"https://{SITE}/%2e%2e/k.txt"),
        (url(), f"https://{SITE}/%30123456789abcdef.txt"),
        (url(), f"https://{SITE}/k.txt#x"),
        (url(), f"https://{SITE}/folder/"),
        (url(), f"https://{SITE}\\@other.example.org/k.txt"),
        (url(), "file:///etc/passwd"),
        (url(), "/k.txt"),
    ],
)
def test_what_the_key_file_does_not_stand_for_gets_422(house, wanted, location):
    with house.client() as client:
        answers = get(client, wanted, keyLocation=location), post(client, wanted, keyLocation=location)
    assert [one.status_code for one in answers] == [422, 422]
    assert (house.checks, house.held()) == ([], 0)


def test_a_key_file_in_a_folder_stands_for_that_folder_in_both_schemes(house):
    location = f"https://{SITE}/docs/key.txt"
    house.provider(8, f"http://{SITE}/docs/")
    with house.client() as client:
        answer = post(client, url("docs/a"), f"http://{SITE}/docs/b", keyLocation=location)
        assert answer.status_code == 200
        wait_for(lambda: len(house.queued()) == 2)
    assert [row[:2] for row in house.waiting()] == [(8, f"http://{SITE}/docs/b"), (8, url("docs/a"))]


def test_the_longest_root_says_whose_a_url_is(house):
    house.provider(3, f"https://{SITE}/docs/")
    house.provider(9, "https://other.example.org/")
    with house.client() as client:
        assert post(client, url("a"), url("docs/b")).status_code == 200
        wait_for(lambda: len(house.queued()) == 2)
    assert [row[:2] for row in house.waiting()] == [(3, url("docs/b")), (PID, url("a"))]


def test_a_url_outside_all_roots_is_refused_and_counted(caplog):
    house = IndexNowHouse()
    house.provider(PID, f"https://{SITE}/docs/")
    with house.client() as client:
        assert post(client, url("docs/a"), url("b")).status_code == 200
        wait_for(lambda: house.key().refused)
    assert (house.queued(), house.held(), house.key().refused) == ([url("docs/a")], 0, 1)
    assert url("b") in caplog.text


def test_hosts_that_nobody_is_registered_for_get_403_without_a_look_at_their_sites(house):
    with house.client() as client:
        answer = get(client, "https://stranger.example.org/a")
    assert (answer.status_code, house.checks, house.held()) == (403, [], 0)
    assert "stranger.example.org" in answer.json()["detail"]


def test_a_host_whose_name_is_part_of_another_is_not_that(house):
    with house.client() as client:
        assert get(client, "https://example.org/a").status_code == 403
        assert get(client, "https://xwww.example.org/a").status_code == 403


def test_in_mode_open_a_key_that_verifies_makes_an_active_provider_with_its_scope_as_its_only_root():
    house = IndexNowHouse(mode="open")
    with house.client() as client:
        assert post(client, url("docs/a"), keyLocation=f"https://{SITE}/docs/k.txt").status_code == 200
        wait_for(house.queued)
    with house.store.read() as tx:
        (provider,) = tx.providers()
        assert (provider.state, provider.created) == (State.ACTIVE, NOW)
        assert tx.roots(provider.pid) == [f"https://{SITE}/docs/"]
    assert house.waiting() == [(provider.pid, url("docs/a"), "*/*", "indexnow")]


def test_in_mode_open_a_wrong_key_makes_no_provider():
    house = IndexNowHouse(mode="open")
    house.verdict = WRONG
    with house.client() as client:
        assert get(client).status_code == 403
    with house.store.read() as tx:
        assert tx.providers() == []


def test_two_keys_of_a_host_make_one_provider():
    house = IndexNowHouse(mode="open")
    with house.client() as client:
        assert get(client, key="a" * 8).status_code == 200
        assert get(client, key="b" * 8).status_code == 200
        assert get(client, url("docs/x"), key="c" * 8, keyLocation=url("docs/k.txt")).status_code == 200
    with house.store.read() as tx:
        assert len(tx.providers()) == 1


def test_in_mode_approve_urls_wait_until_the_operator_lets_the_provider_in():
    house = IndexNowHouse(mode="approve")
    with house.client() as client:
        assert get(client).status_code == 202
        assert get(client, url("b")).status_code == 202
        with house.store.read() as tx:
            (provider,) = tx.providers()
        assert (provider.state, house.queued(), house.held()) == (State.PENDING, [], 2)
        with house.store.begin() as tx:
            tx.update_provider(provider.pid, {"state": State.ACTIVE})
        wait_for(lambda: len(house.queued()) == 2)
        assert get(client, url("c")).status_code == 200


def test_urls_of_a_disabled_provider_go_nowhere():
    house = IndexNowHouse()
    house.provider(PID, state=State.DISABLED)
    with house.client() as client:
        get(client)
        wait_for(lambda: house.key().refused)
    assert (house.queued(), house.held()) == ([], 0)


def test_one_key_may_submit_so_often_and_gets_429_with_a_time_then():
    house = IndexNowHouse(rate=Rate(3, 36_000.0))
    house.provider()
    with house.client() as client:
        answers = [get(client, url(name)) for name in "abcd"]
        assert [one.status_code for one in answers] == [200, 200, 200, 429]
        assert 0 < int(answers[-1].headers["Retry-After"]) <= 36_000
        assert get(client, key="b" * 8).status_code == 200


def test_one_address_may_submit_so_often_a_whole_ipv6_64_being_one():
    house = IndexNowHouse(rate=Rate(2, 36_000.0), checks_site=Rate(100, 60.0))
    house.provider()
    statuses = []
    for number in range(3):
        with house.client(f"2a00:1:2:3::{number + 1}") as client:
            statuses.append(get(client, key=f"key-{number:08}").status_code)
    assert statuses == [200, 200, 429]


def test_unknown_keys_of_one_host_are_checked_so_often():
    house = IndexNowHouse(checks_site=Rate(2, 36_000.0))
    house.provider()
    with house.client() as client:
        assert [get(client, key=f"key-{number:08}").status_code for number in range(3)] == [200, 200, 429]
        assert get(client, key="key-00000000").status_code == 200
    assert len(house.checks) == 2


def test_thousands_of_requests_for_ever_new_hosts_cost_as_many_checks_as_may_be():
    house = IndexNowHouse(mode="open", checks=Rate(5, 360_000.0), rate=Rate(100_000, 60.0))
    house.verdict = WRONG
    with house.client() as client:
        statuses = [get(client, url("a", f"h{number}.example.org")).status_code for number in range(2000)]
    assert (statuses.count(403), statuses.count(429), len(house.checks)) == (5, 1995, 5)
    with house.store.read() as tx:
        assert len(rows_in(tx).site_keys()) == 5


def test_what_waits_is_bounded_for_each_site_and_in_all():
    house = IndexNowHouse(mode="open", waiting_site=10_000, waiting=15_000)
    house.verdict = SILENT
    with house.client() as client:
        assert [get(client, url(name)).status_code for name in "abc"] == [202, 202, 429]
        assert get(client, url("a", "other.example.org")).status_code == 202
        answer = get(client, url("a", "third.example.org"))
    assert (answer.status_code, "Retry-After" in answer.headers) == (429, True)
    assert house.held() == 3


def test_keys_are_bounded_for_each_site():
    house = IndexNowHouse(checks_site=Rate(100, 60.0))
    house.provider()
    with house.client() as client:
        statuses = [get(client, key=f"key-{number:08}").status_code for number in range(17)]
    assert statuses == [200] * 16 + [429]


def test_keys_that_somebody_made_up_do_not_keep_the_key_of_a_site_out():
    house = IndexNowHouse(checks_site=Rate(100, 60.0))
    house.provider()
    house.verdict = WRONG
    with house.client() as client:
        assert [get(client, key=f"key-{number:08}").status_code for number in range(40)] == [403] * 40
        with house.store.read() as tx:
            assert len(rows_in(tx).site_keys_of(SITE)) == 16
        house.verdict = Verdict("good")
        assert get(client).status_code == 200


def test_one_address_never_uses_up_the_checks_of_all():
    house = IndexNowHouse(mode="open", checks_address=Rate(2, 36_000.0), checks=Rate(3, 36_000.0))
    hosts = [url("a", f"h{number}.example.org") for number in range(4)]
    with house.client("192.0.2.1") as client:
        assert [get(client, one).status_code for one in hosts] == [200, 200, 429, 429]
    with house.client("192.0.2.2") as client:
        assert [get(client, one).status_code for one in hosts[2:]] == [200, 429]
    with house.client("192.0.2.1") as client:
        assert get(client, hosts[0]).status_code == 200  # of a known key


def test_one_address_never_uses_up_the_checks_of_a_host():
    house = IndexNowHouse(checks_site=Rate(4, 36_000.0))
    house.provider()
    told = {}
    for address in ("192.0.2.1", "192.0.2.2"):
        with house.client(address) as client:
            keys = [f"key-{address[-1]}{number:08}" for number in range(3)]
            told[address] = [get(client, key=key).status_code for key in keys]
    assert set(map(tuple, told.values())) == {(200, 200, 429)}


def test_what_nobody_uses_any_more_is_forgotten(house):
    with house.client() as client:
        assert get(client).status_code == 200
        wait_for(lambda: not house.held())
    house.keys.expire(NOW + 31 * 86_400)
    with house.store.read() as tx:
        assert rows_in(tx).site_keys() == []


def test_a_full_queue_lets_urls_wait_before_it():
    house = IndexNowHouse(queue_max=4)
    house.provider()
    with house.client() as client:
        for name in "abcdef":
            assert get(client, url(name)).status_code == 200
        wait_for(house.queued)
        with house.store.begin() as tx:
            waits = len(tx.queued_of(PID, 0, 100))
    assert waits + house.held() == 6
    assert 0 < waits < 6


def test_fields_that_mean_nothing_here_are_named_in_the_answer(house):
    with house.client() as client:
        answer = post(client, siteUrl="x", more=["a"], count=3, flag=True)
    assert (answer.status_code, answer.text) == (200, "ignored: siteUrl, more, count, flag\n")


def test_a_list_of_a_million_urls_is_refused_at_its_first_too_many(house):
    body = json.dumps({"host": SITE, "key": KEY, "urlList": ["http://x/"] * 1_000_000})
    with house.client() as client:
        answer = client.post("/indexnow", content=body, headers={"Content-Type": "application/json"})
    assert (answer.status_code, "10000" in answer.json()["detail"]) == (400, True)


def test_a_body_beyond_the_bound_is_not_read(house):
    def endless():
        yield b'{"host": "'
        for _ in range(30):
            yield b"x" * 1_000_000

    with house.client() as client:
        said = client.post(
            "/indexnow", content=b" " * 24_000_001, headers={"Content-Type": "application/json"}
        )
        unsaid = client.post("/indexnow", content=endless(), headers={"Content-Type": "application/json"})
    assert (said.status_code, unsaid.status_code) == (400, 400)


def test_an_unexpected_error_while_queueing_keeps_nothing_waiting_for_ever(house, monkeypatch, caplog):
    queue, failures = house.queueing.queue, iter([True, False])

    def fails_once(portionid, now):
        if next(failures, False):
            raise KeyError("a defect")
        return queue(portionid, now)

    monkeypatch.setattr(house.queueing, "queue", fails_once)
    with house.client() as client:
        assert get(client).status_code == 200
        wait_for(house.queued)
    assert "failed to queue" in caplog.text


def test_the_service_ends_though_there_is_work_at_that_moment(house):
    async def ends():
        for ticks in range(50):
            async with house.service.living():
                for _ in range(ticks % 10):
                    await asyncio.sleep(0.001)
                house.service._bell.set()

    with ThreadPoolExecutor(1) as thread:  # the loop of the tests is another one
        thread.submit(asyncio.run, asyncio.wait_for(ends(), 120)).result()


def test_by_default_indexnow_is_off():
    assert IndexNowRules().mode == "off"


def test_a_second_receiver_queues_nothing_twice(house):
    other = IndexNowHouse(house.store)
    with house.client() as client, other.client() as second:
        for number in range(20):
            assert post(client, url(f"a{number}")).status_code == 200
            assert post(second, url(f"b{number}")).status_code == 200
        wait_for(lambda: len(house.queued()) == 40 and not house.held())
    with house.store.read() as tx:
        assert tx.provider(PID).nurlproc == 40
