"""The pages of owners: signing in, alerts, profiles and recipients; without script, out of reach of others."""

import re
from html import unescape

import pytest

from lcc_scrapy.annotation.signing_in import LASTS
from lcc_scrapy.domain.tokens import READ, digest_of, is_token
from lcc_scrapy.domain.urds import Process
from lcc_scrapy.login.sessions import MOST
from tests.alert_house import aci
from tests.owner_house import OwnerHouse

FORM = {"Content-Type": "application/x-www-form-urlencoded"}
EVIL = '"><script>alert(1)</script>'
PROFILE = {
    "uri": "http://www.example.org/", "processtype": "filter", "keywords": "lamps = 3\nred shoes", "rule": "", "threshold": "2",
    "urgency": "2", "timing": "10m", "depth": "0", "expires": "2030-12-31", "do": "save",
}  # fmt: skip


@pytest.fixture
def house():
    return OwnerHouse()


@pytest.fixture
def browser(house):
    with house.client("") as made:
        sign_in(house, made)
        yield made


def sign_in(house, client, owner="alice"):
    told = client.post("/my/sign-in", data={"token": house.owner(owner)}, follow_redirects=False)
    assert (told.status_code, told.headers["location"]) == (303, "/my/alerts"), told.text
    return told


def post(client, path, data, **options):
    page = client.get("/my/recipients").text
    key = re.search(r'name="form" value="([0-9a-f]{64})"', page)[1]
    return client.post(path, data={**data, "form": key}, follow_redirects=False, **options)


def urds(house):
    with house.store.read() as tx:
        return tx.urds_of("alice", 0, 10)


# --- signing in ----------------------------------------------------------------------------------


def test_the_token_is_asked_for_once_and_no_script_can_read_it(house):
    with house.client("") as client:
        asked = client.get("/my/alerts")
        assert (asked.status_code, "Token" in asked.text) == (401, True)
        cookie = sign_in(house, client).headers["set-cookie"]
        for part in ("HttpOnly", "SameSite=strict", "Path=/my"):
            assert part in cookie
        assert "Secure" not in cookie
        assert client.get("/my/alerts").status_code == 200
        assert post(client, "/my/sign-out", {}).status_code == 303
        assert client.get("/my/alerts").status_code == 401


def test_over_tls_the_cookie_does_not_leave_it():
    house = OwnerHouse(web_url="https://lcc.example.org")
    with house.client("") as client:
        assert "Secure" in sign_in(house, client).headers["set-cookie"]


@pytest.mark.parametrize("token", ["", "x", "lcc_" + "A" * 32, EVIL])
def test_a_wrong_token_signs_nobody_in(house, token):
    with house.client("") as client:
        told = client.post("/my/sign-in", data={"token": token})
        assert told.status_code == 401
        assert "set-cookie" not in told.headers
        assert "<script" not in told.text


def test_a_token_for_reading_signs_nobody_in(house):
    with house.client("") as client:
        told = client.post("/my/sign-in", data={"token": house.token("alice", READ)})
        assert (told.status_code, "not for" in told.text) == (401, True)


def test_a_revoked_token_ends_the_visit(house, browser):
    (token,) = house.tokens.all()
    house.tokens.revoke(token.tokenid)
    assert browser.get("/my/alerts").status_code == 401


def test_the_cookie_holds_a_session_and_no_token(house, browser):
    shown = browser.cookies["lcc_owner"]
    assert not is_token(shown)
    assert house.tokens.find(digest_of(shown)) is None
    with house.store.read() as tx:
        assert tx.session(digest_of(shown)) is None  # what the database has is of these pages only


def test_a_session_that_was_ended_is_good_for_nobody_who_copied_it(house, browser):
    shown = browser.cookies["lcc_owner"]
    post(browser, "/my/sign-out", {})
    with house.client("") as thief:
        assert thief.get("/my/alerts", headers={"Cookie": f"lcc_owner={shown}"}).status_code == 401


def test_signing_in_again_ends_the_session_that_the_browser_had(house, browser):
    before = browser.cookies["lcc_owner"]
    sign_in(house, browser)
    assert browser.get("/my/alerts").status_code == 200
    with house.client("") as thief:
        assert thief.get("/my/alerts", headers={"Cookie": f"lcc_owner={before}"}).status_code == 401


def test_a_session_ends_with_its_time(house, browser):
    house.now += LASTS - 1
    assert browser.get("/my/alerts").status_code == 200
    house.now += 1
    assert browser.get("/my/alerts").status_code == 401


def test_a_token_has_few_sessions_and_the_newest_stay(house):
    token, shown = house.owner(), []
    with house.client("") as client:
        for _ in range(MOST + 2):
            house.now += 1
            client.cookies.clear()
            client.post("/my/sign-in", data={"token": token}, follow_redirects=False)
            shown.append(client.cookies["lcc_owner"])
        client.cookies.clear()
        told = [client.get("/my/alerts", headers={"Cookie": f"lcc_owner={one}"}).status_code for one in shown]
    assert told == [401, 401] + [200] * MOST


@pytest.mark.parametrize("cookie", ["", "x", "A" * 32, "owner " + "A" * 32, EVIL.replace('"', "'")])
def test_a_cookie_that_is_no_session_is_nobody(house, cookie):
    with house.client("") as client:
        told = client.get("/my/alerts", headers={"Cookie": f"lcc_owner={cookie}"})
        assert told.status_code == 401


def test_nobody_sends_more_than_a_token_before_being_signed_in(house):
    with house.client("") as client:
        assert client.post("/my/sign-in", data={"token": "%" * 1024}).status_code == 413
        assert client.post("/my/profiles/new", data={"keywords": "%" * 100_000}).status_code == 401


def test_a_percent_sign_that_escapes_nothing_is_no_form(browser):
    told = browser.post("/my/profiles/new", content=b"keywords=5%", headers=FORM)
    assert (told.status_code, "write %25" in told.text) == (422, True)


def test_the_cookie_is_no_token_for_the_api(browser):
    assert browser.get("/v1/acis").status_code == 401


# --- what holds for every page -------------------------------------------------------------------


@pytest.mark.parametrize(
    "path", ["/my/alerts", "/my/profiles", "/my/profiles/new", "/my/recipients", "/my/sign-in"]
)
def test_pages_run_nothing_and_are_kept_nowhere(browser, path):
    told = browser.get(path)
    assert told.status_code == 200
    policy = told.headers["content-security-policy"]
    assert "default-src 'none'" in policy
    assert "unsafe" not in policy
    assert told.headers["cache-control"] == "no-store"
    assert "<script" not in told.text
    assert " style=" not in told.text
    assert " on" not in re.sub(r">[^<]*<", "><", told.text)


def test_forms_of_other_pages_do_nothing(house, browser):
    given = {"channel": "mail", "address": "a@example.org", "format": ""}
    for form in ({}, {"form": ""}, {"form": "0" * 64}, {"form": "é"}):
        assert browser.post("/my/recipients", data={**given, **form}).status_code == 403
    crossed = post(browser, "/my/recipients", given, headers={"Sec-Fetch-Site": "cross-site"})
    assert crossed.status_code == 403
    crossed = post(browser, "/my/recipients", given, headers={"Origin": "https://evil.example"})
    assert crossed.status_code == 403
    foreign = browser.post(
        "/my/sign-in", data={"token": house.owner()}, headers={"Origin": "https://evil.example"}
    )
    assert "set-cookie" not in foreign.headers
    with house.store.read() as tx:
        assert tx.recipients(None, 0, 10) == []


def test_the_key_of_a_form_is_that_of_one_visitor(house, browser):
    with house.client("") as other:
        sign_in(house, other, "bob")
        key = re.search(r'name="form" value="([0-9a-f]{64})"', other.get("/my/recipients").text)[1]
    given = {"channel": "mail", "address": "a@example.org", "format": "", "form": key}
    assert browser.post("/my/recipients", data=given).status_code == 403


@pytest.mark.parametrize(
    "path", ["/my/profiles/9", "/my/profiles/x", f"/my/profiles/{10**30}", "/my/alerts?before=x"]
)
def test_what_is_not_there_is_said_so(browser, path):
    told = browser.get(path)
    assert told.status_code == 404
    assert "there is no" in told.text.lower()


# --- alerts --------------------------------------------------------------------------------------


def test_alerts_are_shown_with_what_was_found_and_what_changed(house, browser):
    diff = "--- before\n+++ now\n-old <b>price</b>\n+new price\n"
    changed = f'{{"added": ["new price"], "removed": ["old <b>price</b>"], "diff": {diff!r}}}'.replace(
        "'", '"'
    )
    house.found(aci(1), aci(2, "bob", title="Secret of Bob"), aci(3, title="Prices", detail=changed))
    page = browser.get("/my/alerts").text
    assert page.index("Prices") < page.index("Page 1")
    assert "all about <mark>lamps</mark>" in page
    assert "<ins>new price</ins>" in page
    assert "<del>-old &lt;b&gt;price&lt;/b&gt;</del>" in page
    assert "Secret of Bob" not in page


def test_alerts_come_in_pages(house, browser):
    house.found(*(aci(n) for n in range(1, 46)))
    seen, path = [], "/my/alerts"
    while path:
        page = browser.get(path).text
        seen += re.findall(r"Page (\d+)</a>", page)
        found = re.search(r'href="(/my/alerts\?before=\d+)"', page)
        path = found and found[1]
    assert seen == [str(n) for n in range(45, 0, -1)]


def test_what_sites_wrote_is_text(house, browser):
    detail = '{"extracts": [{"text": "<img src=x>", "marks": [[0, 4]]}], "diff": "+<img src=x>"}'
    house.found(aci(1, title=EVIL, uri="javascript:alert(1)", detail=detail))
    page = browser.get("/my/alerts").text
    for text in ("<script", "<img", 'href="javascript'):
        assert text not in page


@pytest.mark.parametrize(("web_url", "status"), [("http://lcc.example.org", 200), ("", 500)])
def test_the_page_shows_the_address_of_the_feed_whatever_host_the_browser_names(web_url, status):
    house = OwnerHouse(web_url=web_url)
    house.found(aci(1))
    with house.client("") as client:
        sign_in(house, client)
        shown = client.get("/my/alerts", headers={"Host": "evil.example"}).text
        (address,) = re.findall(rf"<pre>{web_url}(/v1/acis/atom\?key=\S+)</pre>", shown)
        assert client.get(address, headers={"Host": "evil.example"}).status_code == status


# --- profiles ------------------------------------------------------------------------------------


def test_a_profile_is_made_changed_and_removed(house, browser):
    assert post(browser, "/my/profiles/new", PROFILE).headers["location"] == "/my/profiles"
    (urd,) = urds(house)
    assert [(one.key, one.weight) for one in urd.keywords] == [("lamps", 3), ("red shoes", 1)]
    assert (urd.timing, urd.urgency, urd.threshold, urd.expires) == (600_000, 2, 2, 1924905600000)
    page = unescape(browser.get(f"/my/profiles/{urd.urdid}").text)
    for text in ('value="10m"', "lamps = 3\nred shoes = 1", 'value="2030-12-31"'):
        assert text in page
    assert post(browser, f"/my/profiles/{urd.urdid}", PROFILE | {"processtype": "change"}).status_code == 303
    assert urds(house)[0].processtype == Process.CHANGE
    assert f"Profile {urd.urdid}" in browser.get("/my/profiles").text
    assert post(browser, f"/my/profiles/{urd.urdid}/remove", {}).status_code == 303
    assert urds(house) == []


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("uri", "ftp://example.org/"),
        ("keywords", ""),
        ("keywords", "lamps = many"),
        ("threshold", "-1"),
        ("timing", "soon"),
        ("timing", "99999999999d"),
        ("expires", "31.12.2030"),
        ("urgency", "7"),
        ("processtype", "x"),
        ("uri", EVIL),
    ],
)
def test_what_cannot_be_used_is_said_above_the_form_which_stays(house, browser, field, value):
    told = post(browser, "/my/profiles/new", PROFILE | {field: value})
    assert told.status_code == 422
    assert 'role="alert"' in told.text
    assert "<script" not in told.text
    if field != "keywords":
        assert "lamps = 3" in told.text
    assert urds(house) == []


def test_a_profile_is_tried_on_cached_pages_and_not_saved(house, browser):
    house.shelf.add("a", b"<title>Lights</title><p>All about lamps and more lamps.")
    house.shelf.add("b", b"<p>Nothing of the kind.")
    told = post(browser, "/my/profiles/new", PROFILE | {"do": "try"})
    assert told.status_code == 200, told.text
    assert "Of 2 pages" in told.text
    assert "<mark>lamps</mark>" in told.text
    assert "lamps = 3" in told.text, "the form is still there"
    assert urds(house) == []


def test_nobody_changes_the_profiles_of_others(house, browser):
    post(browser, "/my/profiles/new", PROFILE)
    (urd,) = urds(house)
    with house.client("") as bob:
        sign_in(house, bob, "bob")
        assert bob.get(f"/my/profiles/{urd.urdid}").status_code == 404
        assert post(bob, f"/my/profiles/{urd.urdid}", PROFILE).status_code == 404
        assert post(bob, f"/my/profiles/{urd.urdid}/remove", {}).status_code == 404
    assert urds(house) == [urd]


# --- recipients ----------------------------------------------------------------------------------


def test_recipients_are_added_switched_and_removed(house, browser):
    given = {"channel": "mail", "address": "a@example.org", "format": "", "digest": "yes"}
    assert post(browser, "/my/recipients", given).status_code == 303
    page = browser.get("/my/recipients").text
    assert "a@example.org" in page
    assert "daily digest" in page
    for do, off in (("off", True), ("on", False)):
        assert post(browser, "/my/recipients/1", {"do": do}).status_code == 303
        with house.store.read() as tx:
            assert tx.recipient(1).off is off
    assert post(browser, "/my/recipients/1", {"do": "explode"}).status_code == 422
    assert post(browser, "/my/recipients/1", {"do": "remove"}).status_code == 303
    assert "a@example.org" not in browser.get("/my/recipients").text


def test_the_secret_of_a_webhook_is_shown_once(browser):
    given = {"channel": "webhook", "address": "https://example.org/hook", "format": "json"}
    first = re.search(r"<pre>(whsec_\S+)</pre>", post(browser, "/my/recipients", given).text)[1]
    assert "whsec_" not in browser.get("/my/recipients").text
    second = re.search(r"<pre>(whsec_\S+)</pre>", post(browser, "/my/recipients/1", {"do": "secret"}).text)[1]
    assert first != second


@pytest.mark.parametrize("address", ["http://example.org/", EVIL, "https://127.0.0.1:x/"])
def test_an_address_that_cannot_be_used_is_said_so(browser, address):
    told = post(browser, "/my/recipients", {"channel": "webhook", "address": address, "format": ""})
    assert (told.status_code, 'role="alert"' in told.text) == (422, True)
    assert "<script" not in told.text
