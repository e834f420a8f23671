"""Registration over HTTP: the statements of seed 003 section 3, by the JSON API and by the pages."""

import asyncio
import re
import shlex
import threading
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from ipaddress import ip_network

import pytest

from lcc_scrapy.apps.registration.jobs import JOBS
from lcc_scrapy.apps.registration.rules import FILE, Kind, Wanted
from lcc_scrapy.apps.registration.service import Later
from lcc_scrapy.apps.registration.serving import ROUTES
from lcc_scrapy.apps.registration.steps import CHECKS, MAILS, Asked, Credentials
from lcc_scrapy.cli.web import unserved
from lcc_scrapy.config.config import load
from lcc_scrapy.config.project import PlainSettings
from lcc_scrapy.domain.errors import LccError
from lcc_scrapy.domain.providers import FIRST_PID, Provider
from lcc_scrapy.domain.roots import HttpUrl, Root
from lcc_scrapy.domain.throttling import Rate
from lcc_scrapy.login.passwords import hash_password, verify_password
from lcc_scrapy.providers import registration as providers
from lcc_scrapy.web.parts import Public
from tests.registration_site import NOW, Outbox, Registry, answer, little_site, redirect
from tests.sqlite_store import sqlite_store

DAY = 86400
API = "/v1/registrations"


@pytest.fixture
def site():
    with little_site() as made:
        yield made


@pytest.fixture
def registry(site):
    return Registry(site.port)


@pytest.fixture
def client(registry):
    with registry.client() as made:
        yield made


def begin(client, site, **more):
    told = client.post(API, json={"site": site.url, **more})
    assert told.status_code == 201, told.text
    return told.json()


def activate(client, given, **more):
    return client.post(f"{API}/{given['pid']}/activate", json={"password": given["password"], **more})


def test_what_cannot_be_done_just_now_is_told_so_by_api_and_page(client, registry, monkeypatch):
    def later(*_):
        raise Later("provider 7 is being moved just now: try again later")

    monkeypatch.setattr(registry.registrations, "begin_password", later)
    told = client.post(f"{API}/7/password")
    assert (told.status_code, told.json()["error"], told.headers["Retry-After"]) == (503, "later", "60")
    assert "being moved" in told.json()["detail"]
    page = client.post("/register/password", data={"pid": "7"})
    assert (page.status_code, "being moved" in page.text) == (503, True)


# --- the JSON API --------------------------------------------------------------------------------


def test_a_site_is_registered_in_two_requests(client, site, registry):
    given = begin(client, site)
    assert given == {
        "pid": FIRST_PID, "secret": given["secret"], "password": given["password"], "file": FILE,
        "url": site.url + FILE, "expires": NOW + 7 * DAY,
    }  # fmt: skip
    site.put(given["secret"])
    told = activate(client, given)
    assert told.status_code == 200, told.text
    facts = told.json()
    assert (facts["state"], facts["root"], facts["roots"]) == ("active", site.url, [site.url])
    assert registry.roots(FIRST_PID) == [site.url]
    assert verify_password(registry.provider(FIRST_PID).password, given["password"])
    assert told.headers["cache-control"] == "no-store"


def test_the_secret_is_no_part_of_the_request_for_the_file(client, site):
    given = begin(client, site)
    activate(client, given)
    ((path, headers),) = site.asked
    assert path == f"/{FILE}"
    for secret in (given["secret"], given["password"], str(given["pid"])):
        assert secret not in path + repr(headers)


def test_a_server_that_echoes_its_requests_proves_nothing(client, site, registry):
    site.files["*"] = lambda handler: answer(handler, f"{handler.path}\n{handler.headers}".encode())
    assert activate(client, begin(client, site)).status_code == 409
    assert registry.provider(FIRST_PID) is None


def test_failure_leaves_nothing_active_and_a_new_try_works(client, site, registry):
    given = begin(client, site)
    told = activate(client, given)
    assert (told.status_code, told.json()["error"]) == (409, "not-proved")
    assert registry.provider(FIRST_PID) is None
    site.put("0" * 40)
    assert activate(client, given).json() == told.json()
    site.put(given["secret"])
    assert activate(client, given).status_code == 200


def test_the_root_is_the_folder_of_the_file(client, site, registry):
    given = begin(client, site)
    site.put(given["secret"], "/docs/")
    told = activate(client, given, folder=site.url + "docs/")
    assert told.json()["roots"] == [site.url + "docs/"] == registry.roots(FIRST_PID)
    (root,) = map(Root.parse, registry.roots(FIRST_PID))
    assert root.covers(HttpUrl.parse(site.url + "docs/a"))
    assert not root.covers(HttpUrl.parse(site.url + "x"))


@pytest.mark.parametrize(
    "written", ["docs", "docs/", "docs/index.html", "docs/lcc-registration.txt", "docs/#top"]
)
def test_a_folder_may_be_written_in_several_ways(client, site, written):
    given = begin(client, site)
    site.put(given["secret"], "/docs/")
    assert activate(client, given, folder=site.url + written).json()["root"] == site.url + "docs/"


def test_a_secret_activates_once_and_the_file_may_be_removed_then(client, site, registry):
    given = begin(client, site)
    site.put(given["secret"])
    activate(client, given)
    before = registry.provider(FIRST_PID)
    for files in (dict(site.files), {}):
        site.files = files
        asked = len(site.asked)
        told = activate(client, given, folder=site.url + "other/")
        assert (told.status_code, told.json()["error"]) == (409, "already-active")
        assert len(site.asked) == asked, "nothing is looked for again"
    assert registry.provider(FIRST_PID) == before
    assert registry.roots(FIRST_PID) == [site.url]


def test_a_pair_that_expired_is_gone(client, site, registry):
    given = begin(client, site)
    site.put(given["secret"])
    registry.now += 7 * DAY
    told = activate(client, given)
    assert (told.status_code, told.json()["error"]) == (401, "not-known")
    assert "WWW-Authenticate" in told.headers
    for _ in JOBS(registry.store, registry.now):
        pass
    assert (registry.rows(), registry.provider(FIRST_PID), site.asked) == ([], None, [])


def test_hours_zone_bandwidth_and_address_are_taken_over(client, site, registry):
    given = begin(client, site, email="me@example.org", bandwidth="200k", hours="mon-fri 20-06",
                  timezone="Europe/Amsterdam")  # fmt: skip
    site.put(given["secret"])
    activate(client, given)
    made = registry.provider(FIRST_PID)
    assert (made.contact, made.bandwidth, made.timezone) == ("me@example.org", 200_000, "Europe/Amsterdam")
    assert (made.timeofday[:24], made.timeofday[-24:]) == ("0" * 20 + "1" * 4, "0" * 24)


@pytest.mark.parametrize(("asked", "granted"), [("2M", 1_000_000), ("", 1_000_000), (5000, 5000)])
def test_no_provider_gets_more_bandwidth_than_the_operator_grants(site, asked, granted):
    registry = Registry(site.port, bandwidth=1_000_000)
    with registry.client() as client:
        begin(client, site, bandwidth=asked)
    assert registry.rows()[0].bandwidth == granted


def test_the_password_may_be_shown_as_basic_authentication(client, site):
    given = begin(client, site)
    site.put(given["secret"])
    path = f"{API}/{given['pid']}/activate"
    assert client.post(path, auth=("1", given["password"])).status_code == 401
    assert client.post(path, auth=(str(given["pid"]), "wrong")).status_code == 401
    assert client.post(path, headers={"Authorization": "Basic ?"}).status_code == 401
    assert client.post(path).status_code == 401
    assert client.post(path, auth=(str(given["pid"]), given["password"])).status_code == 200


def test_in_mode_approve_the_operator_has_the_last_word(site):
    registry = Registry(site.port, mode="approve")
    with registry.client() as client:
        given = begin(client, site)
        site.put(given["secret"])
        told = activate(client, given)
        assert (told.status_code, told.json()["state"]) == (202, "approval")
        assert activate(client, given).status_code == 202
        assert registry.provider(FIRST_PID) is None
        registry.registrations.approve(FIRST_PID)
        assert activate(client, given).json()["error"] == "already-active"
    assert registry.roots(FIRST_PID) == [site.url]


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({}, "site"),
        ({"site": ""}, "site"),
        ({"site": "www.example.org"}, "site: write https:// or http:// in front: https://www.example.org"),
        ({"site": "ftp://x/"}, "site"),
        ({"site": "http://x/?a=b"}, "site: write the address of the folder only, up to the question mark"),
        ({"site": "http://x/.well-known/"}, "site: /.well-known is no place"),
        ({"site": "http://x/%2ewell-KNOWN/a/"}, "site: /.well-known is no place"),
        ({"site": "http://x/a/../b/"}, "site"),
        ({"site": "http://me@x/"}, "site"),
        ({"site": "http://x:22/"}, "site: port 22 is not permitted here"),
        ({"site": "http://x/\n"}, "site"),
        ({"site": "http://x/" + "a" * 3000}, "site"),
        ({"site": ["http://x/"]}, "site: send a text"),
        ({"site": "http://x/", "email": "a@b\r\nBcc: c@d"}, "email"),
        ({"site": "http://x/", "email": "nobody"}, "email"),
        ({"site": "http://x/", "bandwidth": "fast"}, "bandwidth"),
        ({"site": "http://x/", "bandwidth": 10**400}, "bandwidth"),
        ({"site": "http://x/", "bandwidth": 1.5}, "bandwidth"),
        ({"site": "http://x/", "hours": "at night"}, "hours"),
        ({"site": "http://x/", "hours": "0" * 168}, "hours"),
        ({"site": "http://x/", "timezone": "../../etc/passwd"}, "timezone"),
        ({"site": "http://x/", "mail": "yes"}, "mail: send true or false"),
        ({"site": "http://x/", "mail": True}, "mail: this cache sends no mail"),
        ({"site": "http://x/", "pid": 7}, "pid: there is no such field here"),
        ({"site": "http://x/", "é\n": 7}, r"\\xe9\\n: there is no such field here"),
        ([], "body"),
        (7, "body"),
    ],
)
def test_what_cannot_be_used_is_named_and_nothing_is_kept(client, registry, body, field):
    told = client.post(API, json=body)
    assert (told.status_code, told.json()["error"]) == (422, "bad-field"), told.text
    assert told.json()["detail"].startswith(field.replace("\\\\", "\\")), told.text
    assert registry.rows() == []


@pytest.mark.parametrize(
    "body", [b"{", b"[" * 16_000, b"\xff", b'{"site": "\\ud800"}', b'{"a":' * 3000, b"1" * 9000]
)
def test_what_is_no_json_is_told_so(client, registry, body):
    told = client.post(API, content=body, headers={"Content-Type": "application/json"})
    assert told.status_code == 422, told.text
    assert registry.rows() == []


def test_only_json_is_taken_by_the_api_and_only_forms_by_the_pages(client):
    assert client.post(API, data={"site": "http://x/"}).status_code == 422
    assert client.post("/register", json={"site": "http://x/"}).status_code == 422


@pytest.mark.parametrize(
    ("path", "kind"), [(API, "application/json"), ("/register", "application/x-www-form-urlencoded")]
)
def test_a_long_body_is_refused(client, registry, path, kind):
    for content in (b" " * 16_385, (b" " * 100 for _ in range(1000))):
        told = client.post(path, content=content, headers={"Content-Type": kind})
        assert told.status_code == 413
    assert registry.rows() == []


# --- further roots and lost passwords ------------------------------------------------------------


@pytest.fixture
def owner(registry):
    providers.add(registry.store, Provider(7, hash_password("a word")), ["http://other.example.org/"])


def test_a_further_root_is_proved_without_naming_its_folder_twice(client, site, registry, owner):
    told = client.post(f"{API}/7/roots", json={"folder": site.url + "b/"}, auth=("7", "a word"))
    assert told.status_code == 201
    assert "password" not in told.json()
    site.put(told.json()["secret"], "/b/")
    told = client.post(f"{API}/7/roots/activate", auth=("7", "a word"))
    assert (told.status_code, told.json()["root"]) == (200, site.url + "b/")
    assert registry.roots(7) == ["http://other.example.org/", site.url + "b/"]
    assert registry.rows() == []


def test_a_lost_password_is_replaced_by_a_proof_at_every_root(client, site, registry, owner):
    providers.change(registry.store, 7, {}, lambda _: [site.url + "a/", site.url + "b"])
    given = client.post(f"{API}/7/password").json()
    assert set(given) == {"pid", "secret", "password", "file", "expires"}, "strangers are told no roots"
    site.put(given["secret"], "/a/")
    path, body = f"{API}/7/password/activate", {"password": given["password"]}
    assert client.post(path, json=body).status_code == 409
    assert verify_password(registry.provider(7).password, "a word")
    site.put(given["secret"], "/b/")
    assert client.post(path, json=body).status_code == 200
    assert verify_password(registry.provider(7).password, given["password"])
    assert client.post(path, json=body).json()["error"] == "already-active"


def test_whether_a_provider_exists_does_not_show(client, registry, owner):
    there, absent = (client.post(f"{API}/{pid}/password") for pid in (7, 8))
    assert (there.status_code, set(there.json())) == (absent.status_code, set(absent.json()))
    told = [
        client.post(f"{API}/{one.json()['pid']}/password/activate", json={"password": one.json()["password"]})
        for one in (there, absent)
    ]
    assert told[0].json() == told[1].json()
    roots = [
        client.post(f"{API}/{pid}/roots", json={"folder": "http://x/"}, auth=(str(pid), "no"))
        for pid in (7, 8)
    ]
    assert roots[0].json() == roots[1].json()


@pytest.mark.parametrize("mode", ["off", "approve", "open"])
def test_registration_is_served_where_it_is_on(mode, tmp_path):
    config = load(PlainSettings({}, {}), {"LCC_DATA_DIR": str(tmp_path), "LCC_REGISTRATION": mode})
    assert bool([*ROUTES.routes(Public(config, sqlite_store(), uns=None))]) == (mode != "off")


@pytest.mark.parametrize(
    "name", ["LCC_REGISTRATION=open", "LCC_INDEXNOW=known", "LCC_PUBLIC_URL=https://l.example"]
)
def test_what_nobody_serves_is_told(name, tmp_path):
    setting, _, value = name.partition("=")
    there = {"LCC_DATA_DIR": str(tmp_path), setting: value}
    assert unserved(load(PlainSettings({}, {}), there)) == [setting]
    assert unserved(load(PlainSettings({}, {}), there | {"LCC_PUSH_ENDPOINTS": "127.0.0.1:9443"})) == []


# --- hostile sites -------------------------------------------------------------------------------


def fails(client, site, registry, caplog, reason):
    """Register, have the file looked for, and be told nothing of why it failed."""
    caplog.clear()
    given = begin(client, site)
    site.put(given["secret"], "/good/")
    told = activate(client, given)
    assert (told.status_code, told.json()["error"]) == (409, "not-proved"), told.text
    assert told.json()["detail"].endswith("Nothing was changed: mend it and try again")
    assert registry.provider(given["pid"]) is None
    line = next(line for line in caplog.messages if line.startswith("no proof"))
    assert reason in line
    assert f"pid {given['pid']}" in line
    assert given["secret"] not in caplog.text
    assert given["password"] not in caplog.text
    return told.json()


def test_every_failure_has_one_text_and_its_reason_in_the_log(client, site, registry, caplog):
    caplog.set_level("INFO")
    with little_site() as other:
        other.files["*"] = b"x"
        secretless = [
            ("answers 404", None),
            ("to another host", redirect(f"http://localhost:{other.port}/good/{FILE}")),
            ("to another host", redirect("//192.0.2.1/" + FILE)),
            ("to another host", redirect("//2130706434/" + FILE)),
            ("no URL", redirect("//[127.0.0.1]/" + FILE)),
            ("to another file", redirect("/good/other.txt")),
            ("to another file", redirect(f"/good/{FILE}?a")),
            ("well-known", redirect(f"/.well-known/{FILE}")),
            ("port", redirect(f"http://127.0.0.1:{other.port}/{FILE}")),
            ("no URL", redirect("file:///etc/passwd")),
            ("too many redirects", redirect(f"/{FILE}")),
            ("not exactly", b""),
            ("not exactly", b"<html>"),
            ("more than 1024 bytes", b"a" * 1025),
            ("compressed", lambda handler: answer(handler, b"x", **{"Content-Encoding": "gzip"})),
            ("BadHead", lambda handler: handler.wfile.write(b"SSH-2.0\r\n")),
            ("answers 500", lambda handler: answer(handler, b"", 500)),
            ("answers 206", lambda handler: answer(handler, b"", 206)),
        ]
        told = []
        for reason, served in secretless:
            site.files = {"*": served} if served is not None else {}
            told.append(fails(client, site, registry, caplog, reason))
        assert all(one == told[0] for one in told)
        assert other.asked == []


@pytest.mark.parametrize("around", ["{}\r\n", "{}", "{}\n"])
def test_one_line_end_may_follow_the_secret(client, site, around):
    given = begin(client, site)
    site.files[f"/{FILE}"] = around.format(given["secret"]).encode()
    assert activate(client, given).status_code == 200


@pytest.mark.parametrize("around", [" {}", "{}\n\n", "{} ", "\ufeff{}", "{0}\n{0}", "{}\0", "<p>{}"])
def test_anything_else_around_the_secret_is_not_the_secret(client, site, around):
    given = begin(client, site)
    site.files[f"/{FILE}"] = around.format(given["secret"]).encode()
    assert activate(client, given).status_code == 409


def test_a_redirect_on_the_same_host_gives_the_folder_where_the_file_is(client, site, registry):
    given = begin(client, site)
    site.put(given["secret"], "/~eve/")
    site.files[f"/{FILE}"] = redirect(f"/~eve/{FILE}", 301)
    assert activate(client, given).json()["root"] == site.url + "~eve/"
    assert registry.roots(FIRST_PID) == [site.url + "~eve/"]


def test_a_wall_that_sets_a_cookie_and_redirects_to_itself_is_passed(client, site):
    given = begin(client, site)

    def wall(handler):
        if handler.headers["Cookie"] == "passed=yes":
            answer(handler, given["secret"].encode())
        else:
            answer(handler, b"", 302, **{"Location": f"/x/../{FILE}", "Set-Cookie": "passed=yes"})

    site.files[f"/{FILE}"] = wall
    assert activate(client, given).json()["root"] == site.url


def test_a_huge_file_is_not_taken_in(client, site, registry, caplog):
    sent = []

    def huge(handler):
        handler.send_response(200)
        handler.send_header("Content-Length", str(10**9))
        handler.end_headers()
        try:
            for _ in range(1000):
                handler.wfile.write(b"a" * 10**6)
                sent.append(10**6)
        except OSError:
            pass

    site.files["*"] = huge
    fails(client, site, registry, caplog, "more than 1024 bytes")
    assert sum(sent) < 10**8


def test_a_site_at_a_private_address_is_not_connected_to(site, caplog):
    registry = Registry(site.port, private=False)
    with registry.client() as client:
        urls = [
            site.url,
            f"http://localhost:{site.port}/",
            f"http://[::1]:{site.port}/",
            f"http://[::ffff:7f00:1]:{site.port}/",
        ]
        for url in urls:
            told = client.post(API, json={"site": url})
            given = told.json()
            site.put(given["secret"])
            assert activate(client, given).status_code == 409
    assert site.asked == [], "the canary saw nobody"
    assert len([line for line in caplog.messages if line.startswith("no proof")]) == len(urls)


def test_a_folder_on_another_host_than_the_registered_one_is_not_looked_at(client, site, registry):
    given = begin(client, site)
    told = activate(client, given, folder="http://elsewhere.example.org/")
    assert (told.status_code, told.json()["error"]) == (422, "bad-field")
    assert "write a folder on 127.0.0.1" in told.json()["detail"]
    assert site.asked == []


def test_two_claims_of_one_root_need_two_files(client, site, registry):
    """Each proves what it can: a file holds one secret, and the secret of the one is not that of the other."""
    mine, theirs = begin(client, site), begin(client, site)
    site.put(mine["secret"])
    assert activate(client, theirs).status_code == 409
    assert activate(client, mine).status_code == 200
    assert registry.provider(theirs["pid"]) is None


# --- crowds --------------------------------------------------------------------------------------


@pytest.mark.slow
def test_ten_thousand_registrations_from_one_64_get_in_as_far_as_the_limit_allows(site):
    registry = Registry(site.port, per_address=Rate(10, 3600.0), proxies=(ip_network("198.51.100.1/32"),))
    got = []
    with registry.client("198.51.100.1") as client:
        for number in range(10_000):
            registry.clock += 0.006
            headers = {"X-Forwarded-For": f"2001:db8:1:2::{number:x}"}
            got.append(
                client.post(API, json={"site": f"http://h{number}.example.org/"}, headers=headers).status_code
            )
        other = client.post(API, json={"site": "http://a/"}, headers={"X-Forwarded-For": "2001:db8:1:3::1"})
    assert got.count(201) == 10
    assert got.count(429) == 9_990
    assert len(registry.rows()) == 11
    assert other.status_code == 201, "the neighbours are not held up"


def test_one_host_is_registered_no_more_often_than_may_be(site):
    registry = Registry(site.port, per_host=Rate(2, 3600.0))
    for number, status in enumerate((201, 201, 429)):
        with registry.client(f"192.0.2.{number}") as client:
            told = client.post(API, json={"site": site.url})
            assert told.status_code == status
    assert int(told.headers["Retry-After"]) == 1800


def test_fields_of_an_address_that_has_registered_enough_are_not_read(site, monkeypatch):
    registry = Registry(site.port, per_address=Rate(1, 3600.0))
    nonsense = {"site": site.url, "bandwidth": "1" + " " * 4000 + "!"}
    with registry.client() as client:
        assert client.post(API, json=nonsense).status_code == 422
        assert client.post(API, json={"site": site.url}).status_code == 201, "nonsense counts nothing"
        monkeypatch.setattr("lcc_scrapy.apps.registration.steps.rules_of", None)
        assert client.post(API, json=nonsense).status_code == 429


def test_proofs_are_bounded_by_address_provider_and_host(site):
    registry = Registry(site.port, proofs=Rate(3, 60.0))
    with registry.client() as client:
        given = begin(client, site)
        assert [activate(client, given).status_code for _ in range(4)] == [409, 409, 409, 429]
    with registry.client("192.0.2.9") as client:
        assert activate(client, given).status_code == 429, "the host is left alone"
    assert len(site.asked) == 3
    providers.add(registry.store, Provider(7, hash_password("a word")), ["http://x/"])
    path = f"{API}/7/roots"
    told = []
    for number in range(5):
        with registry.client(f"198.51.100.{number}") as client:
            told.append(
                client.post(path, json={"folder": "http://x/"}, auth=("7", f"guess {number}")).status_code
            )
    assert told == [401, 401, 401, 429, 429]


def test_guesses_of_strangers_do_not_keep_a_provider_from_where_it_was_before(site):
    registry = Registry(site.port, proofs=Rate(5, 60.0))
    providers.add(registry.store, Provider(7, hash_password("a word")), [site.url])
    path, folder = f"{API}/7/roots", {"folder": site.url + "b/"}

    def tell(address, password):
        with registry.client(address) as client:
            return client.post(path, json=folder, auth=("7", password)).status_code

    assert tell("192.0.2.1", "a word") == 201
    assert [tell(f"198.51.100.{number}", "guess") for number in range(6)] == [401] * 4 + [429] * 2
    assert [tell("192.0.2.1", "a word") for _ in range(5)] == [201] * 4 + [429]


def test_who_asks_for_a_new_password_is_not_known_as_the_provider(site):
    registry = Registry(site.port, proofs=Rate(2, 60.0))
    providers.add(registry.store, Provider(7, hash_password("a word")), [site.url])
    with registry.client("198.51.100.1") as client:
        given = client.post(f"{API}/7/password").json()
        auth = ("7", given["password"])
        assert client.post(f"{API}/7/password/activate", auth=auth).status_code == 409
    told = []
    for number in (1, 2, 3):
        registry.clock += 30.0
        with registry.client(f"198.51.100.{number}") as client:
            for _ in range(2):
                body = {"folder": site.url}
                told.append(client.post(f"{API}/7/roots", json=body, auth=("7", "guess")).status_code)
    assert told.count(401) == 4


def test_a_host_is_the_same_with_a_dot_at_its_end(site):
    registry = Registry(site.port, per_host=Rate(1, 3600.0))
    with registry.client() as client:
        assert client.post(API, json={"site": "http://www.example.org/"}).status_code == 201
        assert client.post(API, json={"site": "http://www.example.org./"}).status_code == 429


class Held:
    """A blocking call that lets nobody go on before it is told to; it knows who is in it."""

    def __init__(self):
        self.inside = 0
        self._go = threading.Event()

    def __call__(self, *_, **__):
        self.inside += 1
        assert self._go.wait(60)
        raise LccError("no")

    def most(self, call, honest, least):
        """Call it several times at once; return how many were inside when an honest step was over."""

        async def story():
            tasks = [asyncio.ensure_future(call(number)) for number in range(9)]
            while self.inside < least:
                await asyncio.sleep(0)
            await honest()
            inside = self.inside
            self._go.set()
            await asyncio.gather(*tasks, return_exceptions=True)
            return inside

        with ThreadPoolExecutor(1) as apart:
            return apart.submit(asyncio.run, asyncio.wait_for(story(), 60)).result()


@pytest.mark.parametrize("name", ["begin_root", "find"])
def test_few_passwords_are_checked_at_a_time_and_nobody_else_waits_for_them(name, monkeypatch):
    registry, held, who = Registry(), Held(), Credentials(7, "x")
    monkeypatch.setattr(registry.registrations, name, held)
    calls = {
        "begin_root": lambda number: registry.steps.begin_root(who, "http://x/", str(number)),
        "find": lambda number: registry.steps.prove(who, Kind.ROOT, "", str(number)),
    }
    honest = partial(registry.steps.begin, Asked("http://y/"), "y")
    assert held.most(calls[name], honest, CHECKS) == CHECKS


def test_a_mail_server_that_hangs_holds_up_no_registration():
    outbox, held = Outbox(), Held()
    outbox.send = held
    registry = Registry(mailer=outbox)
    given = registry.registrations.begin(Wanted(HttpUrl.parse("http://x/"), "a@example.org"), "x")
    honest = partial(registry.steps.begin, Asked("http://y/"), "y")
    assert held.most(lambda _: registry.steps.mail(given), honest, MAILS) == MAILS


# --- mail ----------------------------------------------------------------------------------------


def test_the_pair_is_mailed_if_that_is_asked_for(site):
    outbox = Outbox()
    registry = Registry(site.port, mailer=outbox)
    with registry.client() as client:
        begin(client, site, email="me@example.org")
        assert outbox.sent == []
        told = client.post(API, json={"site": site.url, "mail": True})
        assert told.json()["detail"].startswith("email: write the address")
        given = begin(client, site, email="me@example.org", mail=True)
        outbox.trouble = LccError("the mail server is away")
        assert begin(client, site, email="me@example.org", mail=True)
    ((to, _, text),) = outbox.sent
    assert to == "me@example.org"
    for part in (given["secret"], given["password"], str(given["pid"]), site.url + FILE, "7 days"):
        assert part in text


# --- the pages -----------------------------------------------------------------------------------


def fields(text):
    return dict(re.findall(r'name="(\w+)" (?:type="\w+" )?value="([^"]*)"', text))


def test_a_site_is_registered_by_the_pages_and_the_result_is_on_the_page(client, site, registry):
    assert 'action="/register"' in client.get("/register").text
    told = client.post(
        "/register", data={"site": site.url, "email": "", "bandwidth": "", "hours": "", "timezone": ""}
    )
    assert told.status_code == 201
    hidden = fields(told.text)
    secret = re.search(r"echo (\w{40}) &gt;", told.text)[1]
    assert hidden["folder"] == site.url
    failed = client.post("/register/activate", data=hidden)
    assert (failed.status_code, "Try again" in failed.text) == (409, True)
    assert fields(failed.text) == hidden
    assert f"Open <code>{site.url}{FILE}</code>" in failed.text
    site.put(secret)
    done = client.post("/register/activate", data=hidden)
    assert (done.status_code, "Your password is active" in done.text) == (200, True)
    for part in (site.url, str(FIRST_PID), hidden["password"], "lcc-push", "lcccp", "ask the operator"):
        assert part in done.text
    assert registry.roots(FIRST_PID) == [site.url]


def test_the_push_addresses_of_the_operator_are_on_the_page(site):
    registry = Registry(site.port, push_url="https://push.example.org", uns=("uns.example.org:9000",))
    with registry.client() as client:
        given = begin(client, site)
        site.put(given["secret"])
        told = client.post("/register/activate", data={"pid": given["pid"], "password": given["password"]})
        for part in (
            "https://push.example.org",
            "--uns=uns.example.org:9000",
            "server = https://push.example.org",
        ):
            assert part in told.text


def test_a_notification_server_with_tls_is_asked_with_tls(site):
    registry = Registry(site.port, uns=("lccs://uns.example.org:9000",))
    with registry.client() as client:
        given = begin(client, site)
        site.put(given["secret"])
        told = client.post("/register/activate", data={"pid": given["pid"], "password": given["password"]})
        for part in ("--uns=uns.example.org:9000 --tls", "server = lccs://uns.example.org:9000"):
            assert part in told.text


def test_a_root_with_odd_characters_is_quoted_for_the_shell(client, site):
    odd = "/a';$(id)&/"
    given = begin(client, site)
    site.put(given["secret"], odd)
    told = activate(client, given, folder=site.url.rstrip("/") + odd).json()
    assert shlex.split(told["lines"]["commands"])[-1] == f"--urlprefix={told['root']}"
    assert told["root"] == site.url.rstrip("/") + odd


def test_a_further_root_and_a_new_password_by_the_pages(client, site, registry, owner):
    told = client.post("/register/root", data={"pid": "7", "password": "a word", "folder": site.url})
    secret = re.search(r"echo (\w{40}) &gt;", told.text)[1]
    site.put(secret)
    told = client.post("/register/root/activate", data=fields(told.text))
    assert (told.status_code, "yours to push now" in told.text) == (200, True)
    assert "a word" not in told.text
    providers.change(registry.store, 7, {}, lambda _: [site.url])
    told = client.post("/register/password", data={"pid": "7"})
    site.put(re.search(r"echo (\w{40}) &gt;", told.text)[1])
    told = client.post("/register/password/activate", data=fields(told.text))
    assert (told.status_code, "new password is active" in told.text) == (200, True)


def test_what_was_written_is_shown_again_and_is_no_markup(client):
    evil = '"><script>alert(1)</script>'
    told = client.post("/register", data={"site": evil, "email": evil, "hours": "{site}", "timezone": "x"})
    assert told.status_code == 422
    assert "<script" not in told.text
    assert told.text.count("&lt;script&gt;") >= 2
    told = client.post("/register/activate", data={"pid": "7", "password": "a hidden word", "folder": evil})
    assert "a hidden word" not in told.text


def test_pages_run_no_script_and_are_kept_nowhere(client):
    for path in ("", "/activate", "/root", "/root/activate", "/password", "/password/activate"):
        told = client.get("/register" + path)
        assert told.status_code == 200
        policy = told.headers["content-security-policy"]
        assert policy.startswith("default-src 'none'; style-src 'sha256-")
        assert "form-action 'self'; base-uri 'none'; frame-ancestors 'none'" in policy
        assert told.headers["cache-control"] == "no-store"
        assert "<script" not in told.text
        assert "style=" not in told.text


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"Sec-Fetch-Site": "cross-site"}, 403),
        ({"Sec-Fetch-Site": "same-site"}, 403),
        ({"Origin": "http://evil.example.org"}, 403),
        ({"Origin": "null"}, 403),
        ({"Origin": "http://[::1"}, 403),
        ({"Sec-Fetch-Site": "same-origin", "Origin": "http://behind-a-proxy"}, 201),
        ({"Origin": "http://lcc.example.org"}, 201),
        ({}, 201),
    ],
)
def test_forms_of_other_sites_are_refused(client, registry, headers, status):
    assert client.post("/register", data={"site": "http://x/"}, headers=headers).status_code == status
    assert client.post(API, json={"site": "http://x/"}, headers=headers).status_code == status
    assert len(registry.rows()) == (2 if status == 201 else 0)


@pytest.mark.parametrize(
    "body", ["site=a&site=b", "&".join(f"f{n}=1" for n in range(50)), "a=%ff", "x=1", "site=%00"]
)
def test_forms_that_no_page_of_ours_sends_are_refused(client, registry, body):
    headers = {"Content-Type": "application/x-www-form-urlencoded"}
    assert client.post("/register", content=body, headers=headers).status_code == 422
    assert registry.rows() == []
