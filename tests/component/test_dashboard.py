"""The dashboard: signing in, what each role sees and does, and what hostile providers and sites try."""

import html
import re
from dataclasses import replace
from urllib.parse import urlencode

import pytest
from argon2 import PasswordHasher
from starlette.testclient import TestClient

from lcc_scrapy.apps.alarms.rules import Alarm
from lcc_scrapy.apps.alarms.store import TROUBLES
from lcc_scrapy.apps.dashboard.access import Access
from lcc_scrapy.apps.dashboard.routes import terms_of
from lcc_scrapy.cli.web_api import make_api
from lcc_scrapy.config.config import config_of
from lcc_scrapy.db.records import EVERYBODY, PAUSED, Fetched, LongFetch, TurnDelta, WorkerRow
from lcc_scrapy.domain.entries import urlkey
from lcc_scrapy.domain.fetch_counts import span_of
from lcc_scrapy.domain.login_limits import ThrottleRules
from lcc_scrapy.domain.throttling import Rate
from lcc_scrapy.domain.users import Action, digest_of
from lcc_scrapy.login import passwords, people
from tests.dashboard_house import EVIL, DashboardHouse, key_of, post, sign_in
from tests.sqlite_store import sqlite_store
from tests.web_house import NOW

OUR_SCRIPT = '<script src="/dashboard/changes.js" defer></script>'
STORED = {"url": f"http://www.example.org/7/stored {EVIL}"}
DOCID = urlkey(7, STORED["url"], "text/html").hex()
OF_DOCUMENT = [
    f"/urls?{urlencode(STORED)}",
    f"/urls/{DOCID}/text",
    f"/urls/{DOCID}/content",
    f"/urls/{DOCID}/changes?version=1",
    f"/urls/links-to?{urlencode({'url': STORED['url'], 'pid': 7})}",
]
PAGES = [
    "",
    "/workers",
    *OF_DOCUMENT,
    "/providers",
    "/providers/7",
    "/providers/7/confirm-removals",
    "/audit",
]
FIELDS = {
    Action.PAUSE: {}, Action.RESUME: {}, Action.ASK: {}, Action.RETRY: {"code": "503"}, Action.WANT_FULL: {"reason": "old files"},
    Action.CONFIRM_REMOVALS: {"sure": "yes"},
}  # fmt: skip


@pytest.fixture(autouse=True)
def quick_passwords(monkeypatch):
    """One pass over little memory: how a password is hashed is tested elsewhere."""
    monkeypatch.setattr(passwords, "_HASHER", PasswordHasher(1, 8, 1))


@pytest.fixture
def house():
    made = DashboardHouse()
    made.waiting()
    made.document(7, f"stored {EVIL}", [f"<title>{EVIL}</title><p>{text(n)}".encode() for n in range(2)])
    return made


def text(number):
    return html.escape(f"{number} {EVIL}. All the same.")


# --- signing in ----------------------------------------------------------------------------------


def test_a_session_is_a_new_secret_that_no_script_and_no_other_site_can_use(house):
    with house.browser() as client:
        assert client.get("/dashboard/providers").status_code == 401
        told = sign_in(client, "otto")
        cookie = told.headers["set-cookie"]
        for part in ("HttpOnly", "SameSite=strict", "Path=/dashboard", "Max-Age=3600"):
            assert part in cookie
        assert "Secure" not in cookie
        assert client.get("/dashboard/providers").status_code == 200
        with house.store.read() as tx:
            assert tx.session(client.cookies["lcc_dashboard"]) is None, "the database has its digest only"


def test_over_tls_the_cookie_does_not_leave_it():
    with DashboardHouse(web_url="https://lcc.example.org").browser() as client:
        assert "Secure" in sign_in(client, "otto").headers["set-cookie"]


def test_an_id_that_somebody_planted_is_never_the_session(house):
    with house.browser() as client:
        client.cookies.set("lcc_dashboard", "planted", path="/dashboard")
        made = re.search("lcc_dashboard=([^;]+)", sign_in(client, "otto").headers["set-cookie"])[1]
        assert made != "planted"
    with house.browser() as other:
        other.cookies.set("lcc_dashboard", "planted", path="/dashboard")
        assert other.get("/dashboard/providers").status_code == 401


def test_signing_in_again_ends_the_session_before(house):
    with house.browser("otto") as client:
        before = client.cookies["lcc_dashboard"]
        sign_in(client, "vera")
        assert client.cookies["lcc_dashboard"] != before
    with house.browser() as thief:
        thief.cookies.set("lcc_dashboard", before, path="/dashboard")
        assert thief.get("/dashboard/providers").status_code == 401


def test_signing_out_ends_the_session_also_for_who_kept_the_cookie(house):
    with house.browser("otto") as client:
        kept = client.cookies["lcc_dashboard"]
        assert post(client, "/sign-out").status_code == 303
        client.cookies.set("lcc_dashboard", kept, path="/dashboard")
        assert client.get("/dashboard/providers").status_code == 401


def test_a_session_ends_in_time_and_with_any_change_of_its_user(house):
    with house.browser("otto") as client:
        house.now += 3599
        assert client.get("/dashboard/providers").status_code == 200
        house.now += 1
        assert client.get("/dashboard/providers").status_code == 401
        sign_in(client, "otto")
        people.change(house.store, "otto", role="viewer")
        assert client.get("/dashboard/providers").status_code == 401
        sign_in(client, "otto")
        people.remove(house.store, "otto")
        assert client.get("/dashboard/providers").status_code == 401


def test_a_wrong_password_signs_nobody_in(house):
    house.user("paula", "operator", password="")
    pairs = [("otto", "wrong"), ("nobody", "x"), ("otto", ""), ("", ""), (EVIL[:-1], "x"), ("paula", "")]
    with house.browser() as client:
        for name, password in pairs:
            told = sign_in(client, name, password)
            assert (told.status_code, "set-cookie" in told.headers) == (401, False)
            assert "do not belong together" in told.text
            assert "<script" not in told.text


def test_who_guesses_has_to_wait_and_the_user_at_another_address_does_not():
    slow = ThrottleRules(per_address=Rate(2, 3600), per_id=Rate(1000, 3600))
    house = DashboardHouse(login=slow)
    with house.browser() as client:
        assert [sign_in(client, "otto", "wrong").status_code for _ in range(3)] == [401, 401, 429]
        told = sign_in(client, "otto")
        assert (told.status_code, int(told.headers["retry-after"]) > 1) == (429, True)
    with house.browser("otto", address="::1"):
        pass


# --- over which connections ----------------------------------------------------------------------


def test_the_dashboard_is_off_for_who_comes_over_a_network_in_plain_text(house):
    with house.browser(address="192.0.2.7") as client:
        for told in (
            client.get("/dashboard/providers"),
            client.get("/dashboard/sign-in"),
            sign_in(client, "otto"),
        ):
            assert (told.status_code, "TLS" in told.text) == (403, True)


def test_a_trusted_proxy_may_bring_anybody():
    with DashboardHouse(proxies="192.0.2.7").browser("otto", address="192.0.2.7") as client:
        assert client.get("/dashboard/providers").status_code == 200


def test_a_proxy_names_the_user_and_nobody_else_may():
    house = DashboardHouse(proxies="192.0.2.7", header="remote-user")
    with house.browser(address="192.0.2.7") as client:
        client.headers["Remote-User"] = "otto"
        assert "otto (operator)" in client.get("/dashboard/providers").text
        assert post(client, "/providers/7/pause").status_code == 303
        assert house.state(7) == "paused"
        client.headers["Remote-User"] = "nobody"
        assert client.get("/dashboard/providers").status_code == 401
    with house.browser(address="127.0.0.1") as client:
        client.headers["Remote-User"] = "otto"
        assert client.get("/dashboard/providers").status_code == 401


def test_without_the_setting_the_header_means_nothing():
    with DashboardHouse(proxies="192.0.2.7").browser(address="192.0.2.7") as client:
        client.headers["Remote-User"] = "otto"
        assert client.get("/dashboard/providers").status_code == 401


def test_two_such_headers_name_nobody():
    house = DashboardHouse(proxies="192.0.2.7", header="remote-user")
    with house.browser(address="192.0.2.7") as client:
        headers = [("Remote-User", "otto"), ("Remote-User", "vera")]
        assert client.get("/dashboard/providers", headers=headers).status_code == 401


# --- what holds for every page -------------------------------------------------------------------


def test_pages_run_nothing_lie_in_no_frame_and_are_kept_nowhere(house):
    with house.browser("otto") as client:
        for path in [*PAGES, "/sign-in", "/providers/99", "/providers/x"]:
            told = client.get(f"/dashboard{path}")
            policy = told.headers["content-security-policy"]
            assert policy.startswith("default-src 'none'")
            assert "frame-ancestors 'none'" in policy
            assert "unsafe" not in policy
            assert told.headers["x-frame-options"] == "DENY"
            assert told.headers["cache-control"] == "no-store"
            assert " style=" not in told.text


def test_what_providers_wrote_stays_text(house):
    at_work(house, 0, idle=EVIL, job=EVIL)
    with house.browser("otto") as client:
        post(client, "/providers/7/want-full", reason="x<script>")
        for path in PAGES:
            shown = client.get(f"/dashboard{path}").text.replace(OUR_SCRIPT, "")
            for wrong in ("<script", "<img", "\u202e"):
                assert wrong not in shown
            if path in {"", "/workers", "/changes", *OF_DOCUMENT, "/providers", "/providers/7"}:
                assert "&lt;script&gt;" in shown
                assert "\\u202e" in shown


def test_thousands_of_counts_stand_apart_and_names_are_as_they_are(house):
    house.provider(12345, "large", fileused=1234567, filesmax=2000000, nurlproc=1000, heldremovals=4321)
    with house.browser("otto") as client:
        page = client.get("/dashboard/providers/12345").text
        for part in (
            "1\u202f234\u202f567 of 2\u202f000\u202f000",
            "1\u202f000 URLs",
            "4\u202f321 removals are held",
            "Provider 12345",
        ):
            assert part in page
        listed = client.get("/dashboard/providers?q=large").text
        for part in ('<td class="n" data-l="Queue">1\u202f000</td>', ">12345</a>"):
            assert part in listed
        told = client.get("/dashboard/providers/12345?done=retry&count=1000").text
        assert "Done: retry: 1\u202f000 URLs" in told


def test_what_stands_in_an_address_is_not_repeated_as_markup(house):
    with house.browser("otto") as client:
        for query in (
            "?done=<script>&count=1",
            "?done=pause&count=<script>",
            "?q=%22%3E<script>",
            "?url=%22%3E<script>",
        ):
            for path in ("", "/find", "/urls", "/providers", "/providers/7"):
                assert "<script" not in client.get(f"/dashboard{path}{query}").text


def test_no_page_is_shown_to_who_is_not_signed_in(house):
    with house.browser() as client:
        for path in PAGES:
            told = client.get(f"/dashboard{path}")
            assert (told.status_code, "example.org" in told.text) == (401, False)


# --- roles ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "permitted"),
    [("vera", set()), ("otto", set(Action)), ("sven", {Action.RETRY, Action.WANT_FULL})],
)
def test_each_role_does_what_it_may_and_leaves_a_trace(house, name, permitted):
    with house.browser(name) as client:
        for action in Action:
            page = client.get("/dashboard/providers/7").text
            assert (f'/providers/7/{action}"' in page) is (action in permitted), action
            told = post(client, f"/providers/7/{action}", **FIELDS[action])
            assert told.status_code == (303 if action in permitted else 403)
    noted = [one for one in Action if one in permitted and one != Action.RETRY]  # there was nothing to retry
    assert house.log()[::-1] == [(name, "dashboard", one, 7) for one in noted]


def test_no_action_reaches_the_provider_of_somebody_else(house):
    with house.browser("sven") as client:
        for action in Action:
            told = post(client, f"/providers/8/{action}", **FIELDS[action])
            assert told.status_code == 404
            assert "There is no provider 8" in told.text
    assert (house.state(8), house.log()) == ("active", [])


def said(page):
    return re.search(r"<main>(.*)</main>", page, re.DOTALL)[1]


def test_no_page_tells_of_the_provider_of_somebody_else(house):
    with house.browser("sven") as client:
        never_was = said(client.get("/dashboard/providers/98").text)
        for path in ("/providers/8", "/providers/8/confirm-removals", "/providers/99"):
            told = client.get(f"/dashboard{path}")
            assert told.status_code == 404
            assert said(told.text) == never_was.replace("98", path.split("/")[2])


def test_the_list_of_an_owner_has_the_owners_providers_only(house):
    with house.browser("sven") as client:
        for query in ("", "?q=8", "?q=example", "?order=name&falling=1", "?value=&after=0", "?state=active"):
            shown = client.get(f"/dashboard/providers{query}").text
            assert set(re.findall(r"/dashboard/providers/(\d+)", shown)) <= {"7"}


def test_an_owner_sees_of_the_audit_log_what_concerns_own_providers(house):
    with house.browser("otto") as client:
        for pid in (7, 8):
            post(client, f"/providers/{pid}/pause")
    with house.browser("sven") as client:
        shown = client.get("/dashboard/audit").text
    assert set(re.findall(r"/dashboard/providers/(\d+)", shown)) == {"7"}


def test_an_owner_does_not_withdraw_what_the_operator_wants(house):
    with house.browser("otto") as client:
        post(client, "/providers/7/want-full", reason="cache crash")
    with house.browser("sven") as client:
        assert post(client, "/providers/7/want-full", reason="").status_code == 422
    with house.store.read() as tx:
        assert tx.provider(7).fullsetwanted == "cache crash"


# --- forms ---------------------------------------------------------------------------------------


def test_a_form_of_another_page_does_nothing(house):
    with house.browser("vera") as other:
        foreign = key_of(other)
    with house.browser("otto") as client:
        key = key_of(client)
        for action in Action:
            refused(client, action, key, foreign)
    assert (house.state(7), house.log()) == ("active", [])


def refused(client, action, key, foreign):
    for wrong in ("", "x", foreign):
        assert post(client, f"/providers/7/{action}", wrong, **FIELDS[action]).status_code == 403
    for headers in ({"Sec-Fetch-Site": "cross-site"}, {"Origin": "https://evil.example"}):
        form = {"form": key, **FIELDS[action]}
        told = client.post(f"/dashboard/providers/7/{action}", data=form, headers=headers)
        assert told.status_code == 403
    assert client.get(f"/dashboard/providers/7/{action}").status_code in {200, 405}


def test_nobody_is_signed_in_by_a_form_of_another_site(house):
    with house.browser() as client:
        form = {"name": "otto", "password": "x"}
        headers = {"Origin": "https://evil.example"}
        assert client.post("/dashboard/sign-in", data=form, headers=headers).status_code == 403


def test_removals_are_confirmed_by_a_tick_only(house):
    with house.browser("otto") as client:
        assert post(client, "/providers/7/confirm-removals").status_code == 422
        assert house.log() == []
        assert post(client, "/providers/7/confirm-removals", sure="yes").status_code == 303


def test_codes_that_are_none_are_said(house):
    with house.browser("otto") as client:
        for code in ("x", "99", "800", "503;", "\u0663\u0663\u0663"):
            assert post(client, "/providers/7/retry", code=code).status_code == 422


# --- the list ------------------------------------------------------------------------------------


def listed(page):
    return [int(pid) for pid in re.findall(r'<a href="/dashboard/providers/(\d+)">', page)]


@pytest.mark.parametrize("order", ["pid", "name", "fileused", "nurlproc"])
@pytest.mark.parametrize("falling", ["", "1"])
def test_pages_of_the_list_follow_each_other_without_gap_or_repetition(order, falling):
    house = DashboardHouse()
    for pid in range(100, 220):
        house.provider(pid, name=f"n{pid % 7}", fileused=pid % 5, nurlproc=pid % 3)
    with house.browser("otto") as client:
        path, seen = f"/dashboard/providers?order={order}&falling={falling}", []
        while path:
            page = client.get(path).text
            seen += listed(page)
            found = re.search(r'href="([^"]+)" rel="next"', page)
            path = found and found[1].replace("&amp;", "&")
    with house.store.read() as tx:
        rows = sorted(tx.providers(), key=lambda one: one.pid)
    rows.sort(key=lambda one: getattr(one, order), reverse=bool(falling))
    assert seen == [one.pid for one in rows]


def test_providers_are_found_by_number_name_root_and_state(house):
    with house.browser("otto") as client:
        post(client, "/providers/7/pause")
        wanted = {
            "q=8": [8],
            "q=org/9": [9],
            "q=%25": [],
            "state=paused": [7],
            "q=SCRIPT": [7, 8, 9],
        }
        for query, found in wanted.items():
            assert listed(client.get(f"/dashboard/providers?{query}").text) == found, query


# --- the overview --------------------------------------------------------------------------------

QUIET = NOW - NOW % 600 + 300
"""Within a span of counts."""


def counted(house, ago, **results):
    counts = {Fetched(EVERYBODY, name, {"failed": 404}.get(name, 0)): n for name, n in results.items()}
    with house.store.begin() as tx:
        tx.count_fetches(counts, span_of(QUIET - ago))


def at_work(house, number, **values):
    with house.store.begin() as tx:
        tx.put_worker(WorkerRow(f"2/{number}", 1, 2, 4711, NOW, house.now + 60, 8, 3, 5, **values))


def overview_of(house):
    with house.browser("otto") as client:
        return said(client.get("/dashboard").text)


def test_the_overview_says_first_what_keeps_fetching_from_going_on(tmp_path):
    house = DashboardHouse(folder=tmp_path, troubles=[TROUBLES])
    assert "0 crawl processes are at work, 2 are expected: start `lcc crawl`" in html.unescape(
        overview_of(house)
    )
    at_work(house, 0)
    assert "1 crawl processes are at work, 2 are expected" in overview_of(house)
    at_work(house, 1)
    shown = overview_of(house)
    assert "Nothing is wrong" in shown
    assert "they hold 10 turns" in shown
    at_work(house, 1, idle=f"no room {EVIL}")
    with house.store.begin() as tx:
        tx.set_info(PAUSED, "1")
        tx.set_info("alarm held", Alarm(1, True, NOW, True, NOW).text)
        tx.set_info("alarm disk", Alarm(2, False, NOW, False, NOW).text)
    alerts = re.findall(r'role="alert">([^<]*)', overview_of(house))
    assert [one.split(":")[0] for one in alerts] == [
        "All fetching is paused",
        "Worker 2/1 hands out no URL",
        "Alarm since 2027-01-15 08",
    ]
    assert "removals are held" in alerts[2]


@pytest.mark.parametrize(("apps", "troubles"), [("", (TROUBLES,)), ("-alarms", ())])
def test_the_overview_asks_the_apps_that_are_at_work(tmp_path, apps, troubles):
    terms = terms_of(config_of({"LCC_DATA_DIR": str(tmp_path), "LCC_APPS": apps, "LCC_ALARM_WORKERS": "3"}))
    assert terms.troubles == troubles
    assert terms.crawls_expected == 3


@pytest.mark.parametrize(("apps", "there"), [("", 200), ("-dashboard", 404)])
def test_the_http_api_is_there_with_the_dashboard_and_without_it(tmp_path, apps, there):
    config, store = config_of({"LCC_DATA_DIR": str(tmp_path), "LCC_APPS": apps}), sqlite_store()
    with TestClient(make_api(config, store, store).app, client=("127.0.0.1", 50_000)) as client:
        assert client.get("/openapi.json").status_code == 200
        assert client.get("/v1/changes").status_code == 401
        assert client.get("/dashboard/sign-in").status_code == there


def test_the_overview_counts_what_waits_and_what_is_held(tmp_path):
    house = DashboardHouse(folder=tmp_path)
    house.waiting(started=NOW - 7300)
    (tmp_path / "spool").mkdir()
    (tmp_path / "spool" / "1.set").write_bytes(b"x" * 2000)
    with house.browser("otto") as client:
        post(client, "/providers/8/pause")
    shown = overview_of(house)
    for told in (
        "of provider <a",
        "for 2 h 1 min",
        "1 sets, 2.0 kB",
        ">3</a>",
        ">2 active</a>",
        ">1 paused</a>",
        f"free at {tmp_path}",
    ):
        assert told in shown, told


def test_charts_have_their_numbers_in_words_and_in_a_table(house):
    house.now = QUIET
    counted(house, 0, stored=30, failed=10)
    counted(house, 4000, stored=7)
    shown = overview_of(house)
    assert "40 fetches since Fri 07:00Z, 10 of them failed" in shown
    assert "47 fetches since Thu 08:00Z, 10 of them failed" in shown
    assert shown.count("<svg") == shown.count('role="img"') == shown.count("<desc") == 2
    assert len(re.findall('<rect class="tried"', shown)) == 1 + 2
    assert len(re.findall('<rect class="failed"', shown)) == 1 + 1
    assert 'height="25.0"' in shown
    assert "404 " in shown
    hour = re.search(r"<tbody>(.*?)</tbody>", shown)[1]
    assert hour.count("<tr>") == 7


def test_an_owner_gets_the_own_providers_instead_of_the_overview(house):
    with house.browser("sven") as client:
        told = client.get("/dashboard", follow_redirects=False)
        assert (told.status_code, told.headers["location"]) == (303, "/dashboard/providers")
        assert "Overview" not in client.get("/dashboard").text


def test_workers_are_shown_with_the_turns_that_have_most_waiting(house):
    with house.browser("otto") as client:
        assert "No crawl process is at work" in client.get("/dashboard/workers").text
        at_work(house, 0, job=f"job {EVIL}", job_ms=70, idle=EVIL)
        with house.store.begin() as tx:
            tx.add_to_turns(
                {str(key): TurnDelta(waiting=key) for key in range(100, 111)} | {EVIL: TurnDelta(999)}
            )
            tx.lease_turns([EVIL, *map(str, range(100, 111))], "2/0", 3)
            tx.put_fetches(
                [
                    LongFetch("110", "2/0", 3, b"k" * 16, NOW - 90, 0, 2000, 0),
                    LongFetch("109", "2/0", 2, b"k" * 16, NOW - 95, 0, 2000, 0),
                ]
            )
        shown = client.get("/dashboard/workers").text
        assert "2027-01-15 08:01:00Z" in shown
        assert re.findall(r'href="/dashboard/providers/(\d+)"', shown) == [
            str(key) for key in range(110, 101, -1)
        ]
        assert ("for 1 min 30 s, 2.0 kB" in shown, "1 min 35 s" in shown) == (True, False)
        assert "<script" not in shown


def test_no_owner_sees_workers(house):
    at_work(house, 0)
    with house.browser("sven") as client:
        told, never = client.get("/dashboard/workers"), client.get("/dashboard/providers/x")
        assert (told.status_code, said(told.text)) == (404, said(never.text))
        assert "Workers" not in told.text


@pytest.mark.parametrize(
    ("text", "where"),
    [
        ("7", "/providers/7"),
        (" 007 ", "/providers/7"),
        ("http://a/?b=c&d", "/urls?url=http%3A%2F%2Fa%2F%3Fb%3Dc%26d"),
        ("0" * 31 + "F", "/urls?url=" + "0" * 31 + "F"),
        ("0" * 31 + "g", "/providers?q=" + "0" * 31 + "g"),
        ("//evil.example\r\nX: y", "/providers?q=%2F%2Fevil.example%0D%0AX%3A+y"),
        ("\u0667", "/providers?q=%D9%A7"),
        ("", "/providers?q="),
    ],
)
def test_a_search_leads_to_a_provider_a_url_or_the_list(house, text, where):
    with house.browser("otto") as client:
        told = client.get("/dashboard/find", params={"q": text}, follow_redirects=False)
    assert (told.status_code, told.headers["location"]) == (303, f"/dashboard{where}")


# --- one URL -------------------------------------------------------------------------------------


def url_page(client, url):
    told = client.get("/dashboard/urls", params={"url": url})
    return told.status_code, html.unescape(said(told.text))


def test_the_page_of_a_url_tells_all_that_is_known_of_a_document(house):
    with house.browser("otto") as client:
        for name in (STORED["url"], DOCID):
            status, shown = url_page(client, name)
            assert status == 200
            for told in (
                "cached",
                "HTTP/1.1 200 OK",
                "X-Evil: ",
                "What its site answered",
                "And 1 more.",
                "nofollow",
                f"/dashboard/urls/{DOCID}/text",
                f"/dashboard/urls/{DOCID}/changes?version=1",
            ):
                assert told in shown, told


def test_the_page_of_a_url_says_why_it_waits(house):
    with house.browser("otto") as client:
        post(client, "/providers/7/pause")
        shown = url_page(client, house.waiting(name="x", psetid=2).furl)[1]
        assert "its provider is paused" in shown
        assert "1 before it" in shown


def test_what_is_not_known_lies_in_somebodys_roots_or_in_nobodys(house):
    with house.browser("otto") as client:
        status, shown = url_page(client, "http://www.example.org/8/x")
        assert (status, "roots of provider 8" in shown) == (404, True)
        for url in (
            "http://elsewhere/",
            "x",
            "\0",
            "0" * 32,
            "http://" + "a" * 9000,
            "http://[/",
            "\ud7ff\U0010ffff",
        ):
            status, shown = url_page(client, url)
            assert (status, "roots" in shown) == (404, False)


def test_one_url_may_be_many_documents_of_which_some_are_shown(house):
    for number in range(11):
        house.document(8, "many", mimetype=f"text/x{number}")
    with house.browser("otto") as client:
        shown = url_page(client, "http://www.example.org/8/many")[1]
    assert (shown.count("<h2>"), "There are more" in shown) == (10, True)


def test_an_owner_learns_nothing_of_urls_of_somebody_else(house):
    other, waits = house.document(8, "secret", [b"old", b"new"]), house.waiting(8, "waits", psetid=2)
    house.document(7, "../8/secret")
    with house.browser("sven") as client:
        for path in (
            "/urls?url={}",
            "/urls/{}/text",
            "/urls/{}/changes?version=3",
            "/urls/{}/text?version=3",
        ):
            answers = set()
            for docid in (other.docid, waits.urlkey.hex(), "0" * 32):
                told = client.get("/dashboard" + path.format(docid))
                answers.add((told.status_code, said(told.text).replace(docid, "")))
            assert [status for status, _ in answers] == [404], path
        never = url_page(client, "http://www.example.org/8/never-was")
        assert (never[0], "roots" in never[1]) == (404, False)
        for url in (other.furl, waits.furl):
            assert url_page(client, url) == (404, never[1].replace("http://www.example.org/8/never-was", url))


def test_of_a_url_of_two_providers_an_owner_sees_the_own_part(house):
    with house.store.begin() as tx:
        row = next(iter(tx.cached([bytes.fromhex(DOCID)]).values()))
        tx.insert_cached([replace(row, urlkey=b"8" * 16, pid=8, seq=90)])
    with house.browser("otto") as client:
        assert url_page(client, STORED["url"])[1].count("<h2>") == 2
    with house.browser("sven") as client:
        shown = url_page(client, STORED["url"])[1]
        assert (shown.count("<h2>"), "Provider 8" in shown) == (1, False)


def test_texts_are_shown_without_markup_and_cut(house):
    long = house.document(8, "long", [b"<p>" + b"word " * 20_000, b"\x00\xff", b"<p>newest"])
    with house.browser("otto") as client:
        newest, cut = (
            client.get(f"/dashboard/urls/{long.docid}/text{which}") for which in ("", "?version=3")
        )
        assert "<pre>newest</pre>" in newest.text
        assert "This is the beginning." in cut.text
        assert len(cut.content) < 50_000
        for wrong in ("?version=99", "?version=1", "?version=x", f"?version={'9' * 30}"):
            assert client.get(f"/dashboard/urls/{long.docid}/text{wrong}").status_code == 404
        for docid in ("x", "..", "0" * 33, f"{long.docid}%00"):
            assert client.get(f"/dashboard/urls/{docid}/text").status_code == 404


def test_what_is_no_text_is_not_shown(house):
    picture = house.document(8, "p", [b"GIF89a<script>"], mimetype="image/gif")
    with house.browser("otto") as client:
        shown = client.get(f"/dashboard/urls/{picture.docid}/text").text
    assert ("It has no text: it is image/gif." in shown, "GIF89a" in shown) == (True, False)


def test_changes_are_those_to_the_next_content(house):
    row = house.document(8, "c", [b"<p>One. Two.", b"<p>One. Three.", b"<p>One. Three."])
    with house.browser("otto") as client:
        first, second = (client.get(f"/dashboard/urls/{row.docid}/changes?version={n}").text for n in (3, 4))
    assert "<del>-Two.</del>" in first
    assert "<ins>+Three.</ins>" in first
    assert "same sentences" in second


def test_a_content_that_is_lost_is_said(house):
    house.shelf.contents.clear()
    with house.browser("otto") as client:
        assert client.get(f"/dashboard/urls/{DOCID}/text").status_code == 404


# --- changes -------------------------------------------------------------------------------------


def test_the_page_of_changes_runs_the_one_script_of_this_server_and_no_other_page_does(house):
    with house.browser("otto") as client:
        for path in [*PAGES, "/sign-in"]:
            policy = client.get(f"/dashboard{path}").headers["content-security-policy"]
            assert ("script-src 'self'; connect-src 'self'" in policy) is (path == "/changes")
        script = client.get("/dashboard/changes.js")
        assert script.headers["content-type"].startswith("text/javascript")
        assert script.headers["x-content-type-options"] == "nosniff"
        for wrong in ("innerHTML", "insertAdjacentHTML", "eval", "document.write"):
            assert wrong not in script.text


def test_the_newest_changes_come_first_and_go_on_where_the_script_begins(house):
    house.document(8, "newest")
    with house.browser("otto") as client:
        shown = client.get("/dashboard/changes").text
        assert re.findall(r"urls\?url=([0-9a-f]{32})", shown)[1] == DOCID
        assert 'data-after="3" data-most="50"' in shown
        assert "/8/newest</a>" in shown


def test_an_owner_sees_changes_of_own_providers_only(house):
    other = house.document(8, "secret")
    with house.browser("sven") as client:
        shown = client.get("/dashboard/changes").text
        assert (DOCID in shown, other.docid in shown, "secret" in shown) == (True, False, False)


def test_events_are_for_who_is_signed_in(house):
    with house.browser() as client:
        told = client.get("/dashboard/changes/events")
        assert (told.status_code, told.headers["content-type"]) == (403, "text/plain; charset=utf-8")
    with house.browser(address="192.0.2.7") as client:
        assert client.get("/dashboard/changes/events").status_code == 403


def test_of_sessions_it_is_known_which_are_as_they_were(house):
    access = Access(house.store, house.rules, (), "")
    with house.browser("otto") as client:
        digest = digest_of(client.cookies["lcc_dashboard"])
    with house.store.read() as tx:
        otto, sven = tx.user("otto"), tx.user("sven")
    seen = [
        (otto, digest),
        (otto, ""),
        (sven, ""),
        (otto, "0" * 64),
        (replace(otto, role="viewer"), digest),
    ]
    assert access.still_good(seen, NOW) == [True, True, True, False, False]
    assert access.still_good(seen, NOW + 3600) == [False, True, True, False, False]
    people.change(house.store, "sven", pids={8})
    assert access.still_good(seen, NOW)[2] is False
