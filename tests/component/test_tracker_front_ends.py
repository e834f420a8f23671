"""The mirror tracker over HTTP: each form of its answers, what strangers send, and what its policy has."""

import email
import json
import re
from contextlib import contextmanager
from hashlib import md5
from urllib.parse import quote

import pytest
from lxml import etree
from starlette.testclient import TestClient

from lcc_scrapy.apps.tracker.lookup_routes import READING
from lcc_scrapy.apps.tracker.metalink import NAMESPACE
from lcc_scrapy.apps.tracker.rules.mirror_links import LINK_BYTES
from lcc_scrapy.apps.tracker.serving import make_app
from lcc_scrapy.config.config import load
from lcc_scrapy.config.project import PlainSettings
from lcc_scrapy.domain.errors import ConfigurationError
from tests.mirrors import NOW, Tracker
from tests.sqlite_store import sqlite_store

SHA = b"\x07" * 32
APP = {b"app.tgz": 5, b"doc": {b"README": 7}}
TREE = {b"pub": {b"own": 1, b"1.0": APP, b"alone": {b"x": 1}}}
ORIGIN = "http://www.example.org/pub/1.0/"
URN = f"urn:x-tracker:{md5(b'7README').hexdigest()}"
BROWSER = {"Accept": "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8"}


@pytest.fixture
def tracker():
    made = Tracker(sqlite_store())
    made.load("http://www.example.org/", TREE, digests={(b"pub", b"1.0"): [(b"app.tgz", SHA)]}, at=NOW)
    made.load("rsync://r.example.de/", {b"m": APP}, "de", at=NOW + 3)
    made.load("ftp://f.example.uk/", {b"m": APP}, "uk", at=NOW + 2)
    made.load("https://h.example.eu/", {b"m": APP}, "eu", at=NOW + 1)
    return made


RSYNC, FTP, HTTPS = "rsync://r.example.de/m/", "ftp://f.example.uk/m/", "https://h.example.eu/m/"


@contextmanager
def client(tracker, address="192.0.2.7", **settings):
    config = load(PlainSettings({}, {}), {"LCC_DATA_DIR": "/nowhere", **settings})
    serving = make_app(config, tracker.store)
    with TestClient(
        serving.app, base_url="http://tracker.example.org", follow_redirects=False, client=(address, 1)
    ) as made:
        made.serving = serving
        yield made


@pytest.fixture
def ask(tracker):
    with client(tracker) as made:
        yield made.get


@pytest.fixture
def policy(tmp_path):
    made = tmp_path / "policy.toml"
    made.write_text("")
    return made


def urls(answer):
    return [one["url"] for one in answer.json()["replicas"]]


def as_json(ask, url, more=""):
    return ask(f"/?format=json&url={url}{more}")


# --- what was found ------------------------------------------------------------------------------


def test_json_lists_the_replicas_best_first(ask):
    answer = ask(f"/?url={ORIGIN}app.tgz", headers={"Accept": "application/json"})
    assert (answer.status_code, answer.headers["content-type"]) == (200, "application/json")
    assert answer.json() == {
        "url": f"{ORIGIN}app.tgz",
        "known": True,
        "is_directory": False,
        "digest": SHA.hex(),
        "replicas": [
            {"url": f"{RSYNC}app.tgz", "domain": "de", "scanned": NOW + 3},
            {"url": f"{FTP}app.tgz", "domain": "uk", "scanned": NOW + 2},
            {"url": f"{HTTPS}app.tgz", "domain": "eu", "scanned": NOW + 1},
        ],
    }
    assert as_json(ask, f"{ORIGIN}app.tgz").json() == answer.json()


def test_domains_and_a_number_may_be_asked_for(ask):
    assert urls(as_json(ask, ORIGIN, "&tld=UK&tld=eu")) == [FTP, HTTPS]
    assert urls(as_json(ask, ORIGIN, "&limit=1")) == [RSYNC]
    assert urls(as_json(ask, ORIGIN, "&tld=&limit=")) == [RSYNC, FTP, HTTPS]


@pytest.mark.parametrize(
    ("url", "known"),
    [
        ("http://www.example.org/pub/alone/", True),
        ("http://www.example.org/nothing/", False),
        ("http://elsewhere.example.org/", False),
    ],
    ids=range(3),
)
def test_without_replicas_the_answer_is_404_in_every_form(ask, url, known):
    answer = as_json(ask, url)
    assert (answer.status_code, answer.json()["known"], urls(answer)) == (404, known, [])
    page = ask(f"/?url={url}")
    assert page.status_code == 404
    assert ("no exact replicas" if known else "no server that this tracker lists") in page.text.lower()
    for path in (f"/redirect?url={url}", f"/?format=meta4&url={url}"):
        refused = ask(path)
        assert (refused.status_code, "location" in refused.headers) == (404, False)
    assert all("link" not in one.headers for one in (answer, page))


def test_the_page_has_a_row_for_each_replica(ask):
    answer = ask(f"/?url={ORIGIN}&tld=de", headers=BROWSER)
    assert (answer.status_code, answer.headers["content-type"]) == (200, "text/html; charset=utf-8")
    assert (
        f'<td><code>{RSYNC}</code></td><td title="Domain">de</td><td title="Listed (UTC)">2027-01-15 08:00</td>'
        in answer.text
    )
    assert 'value="de"' in answer.text
    assert "Metalink" not in answer.text
    page = ask(f"/?url={ORIGIN}app.tgz").text
    assert f'<a href="{HTTPS}app.tgz" rel="noreferrer">{HTTPS}app.tgz</a>' in page
    assert "Metalink" in page


def test_the_form_alone_is_a_page_without_script(ask):
    for path in ("/", "/?url=", "/redirect"):
        answer = ask(path)
        assert (answer.status_code, "<script" in answer.text) == (200, False)
        rules = answer.headers["content-security-policy"]
        assert "default-src 'none'" in rules
        assert "script-src" not in rules
        assert "unsafe" not in rules


def test_the_bookmark_and_the_link_name_the_tracker(tracker, ask):
    script = "javascript:location.href=&#39;{}/?url=&#39;+encodeURIComponent(location.href)"
    for host in ("tracker.example.org", "x'+alert(1)+'", "a b", '"><b>', "x/y?z"):
        assert "javascript:" not in ask("/", headers={"Host": host}).text, "nobody has said where it is"
    with client(tracker, LCC_TRACKER_URL="https://t.example.org/mirrors") as made:
        shown = made.get("/", headers={"Host": "x"}).text
        assert script.format("https://t.example.org/mirrors") in shown
        assert "&lt;a href=&#34;https://t.example.org/mirrors/?url=ftp://" in shown


def test_metalink_names_the_file_its_digest_and_its_mirrors(ask):
    answer = ask(f"/?url={ORIGIN}app.tgz", headers={"Accept": "application/metalink4+xml"})
    assert (answer.status_code, answer.headers["content-type"]) == (200, "application/metalink4+xml")
    (file,) = etree.fromstring(answer.content).findall(f"{{{NAMESPACE}}}file")
    assert file.get("name") == "app.tgz"
    assert [(one.tag.rpartition("}")[2], dict(one.attrib), one.text) for one in file] == [
        ("hash", {"type": "sha-256"}, SHA.hex()),
        ("url", {"priority": "1", "location": "de"}, f"{RSYNC}app.tgz"),
        ("url", {"priority": "2", "location": "gb"}, f"{FTP}app.tgz"),
        ("url", {"priority": "3"}, f"{HTTPS}app.tgz"),
    ]
    other = etree.fromstring(ask(f"/?format=meta4&url={ORIGIN}doc/README").content)
    assert not other.findall(f".//{{{NAMESPACE}}}hash")


@pytest.mark.parametrize("url", [ORIGIN, f"{ORIGIN}doc"])
def test_a_directory_has_no_metalink(ask, url):
    answer = ask(f"/?format=meta4&url={url}")
    assert (answer.status_code, answer.json()["detail"]) == (
        404,
        "a Metalink is of one file that has mirrors",
    )


# --- headers -------------------------------------------------------------------------------------


def test_lists_have_the_mirrors_as_links_of_the_url(ask):
    for more in ("", "&format=json"):
        link = ask(f"/?url={ORIGIN}{more}").headers["link"].split(", ")
        about = f'anchor="{ORIGIN}"'
        assert link == [
            f"<{RSYNC}>; rel=duplicate; pri=1; geo=de; {about}",
            f"<{FTP}>; rel=duplicate; pri=2; geo=gb; {about}",
            f"<{HTTPS}>; rel=duplicate; pri=3; {about}",
        ]


def test_a_redirect_has_the_mirrors_its_metalink_and_the_digest(ask):
    answer = ask(f"/redirect?url={ORIGIN}app.tgz&tld=uk&tld=eu")
    assert (answer.status_code, answer.headers["location"]) == (302, f"{FTP}app.tgz")
    described, *mirrors = answer.headers["link"].split(", ")
    assert mirrors == [
        f"<{FTP}app.tgz>; rel=duplicate; pri=1; geo=gb", f"<{HTTPS}app.tgz>; rel=duplicate; pri=2"
    ]  # fmt: skip
    assert described.endswith('>; rel=describedby; type="application/metalink4+xml"')
    metalink = ask(described[2 : described.index(">")])
    assert metalink.headers["content-type"] == "application/metalink4+xml"
    assert f"{FTP}app.tgz" in metalink.text
    assert RSYNC not in metalink.text
    assert answer.headers["digest"] == "SHA-256=BwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwc="
    assert "digest" not in ask(f"/redirect?url={ORIGIN}doc/README").headers


def test_the_link_header_is_bounded(tracker, ask):
    name = b"n" * 200
    tree = {name: {name: {name: {b"f": 3}}}}
    for number in range(20):
        tracker.load(f"http://m{number}.example.de/", tree, "de")
    path = "n" * 200
    answer = as_json(ask, f"http://m0.example.de/{path}/{path}/{path}/f", "&limit=1000")
    assert len(answer.json()["replicas"]) == 19
    assert 0 < len(answer.headers["link"]) <= LINK_BYTES


def test_an_answer_is_for_the_client_alone_and_the_same_one_is_not_sent_twice(ask):
    for path in (f"/?url={ORIGIN}", "/", f"/uri-res/N2Ls?{URN}"):
        answer = ask(path)
        assert answer.headers["cache-control"] == "private, max-age=60"
        assert answer.headers["vary"].startswith("Accept")
        again = ask(path, headers={"If-None-Match": answer.headers["etag"]})
        assert (again.status_code, again.content) == (304, b"")
        assert ask(path, headers={"If-None-Match": '"x"'}).status_code == 200


def test_a_redirect_that_leads_elsewhere_now_is_no_answer_that_a_client_has(ask, tracker):
    first = ask(f"/redirect?url={ORIGIN}")
    assert "etag" not in first.headers
    assert ask(f"/redirect?url={ORIGIN}", headers={"If-None-Match": "*"}).status_code == 302


@pytest.mark.parametrize("format_", ["html", "json"])
def test_what_is_not_found_is_not_found_for_who_has_any_answer_either(ask, format_):
    answer = ask(f"/?format={format_}&url=http://elsewhere.example/x", headers={"If-None-Match": "*"})
    assert answer.status_code == 404
    assert answer.headers["cache-control"] == "private, max-age=60"


def test_the_limit_counts_after_what_cannot_be_followed(tracker):
    with client(tracker, LCC_TRACKER_REPLICAS="1") as made:
        assert made.get(f"/redirect?url={ORIGIN}").headers["location"] == FTP
        assert made.get(f"/redirect?url={ORIGIN}&limit=1").headers["location"] == FTP
        assert urls(as_json(made.get, ORIGIN)) == [RSYNC]
        names = [made.get(f"/uri-res/{one}?{URN}") for one in ("N2L", "N2Ls")]
        assert names[0].headers["location"] == f"{FTP}doc/"
        assert len(names[1].text.splitlines()) == 2


def test_heads_and_nothing_else_may_be_asked_for_beside_contents(tracker):
    with client(tracker) as made:
        answer = made.head(f"/redirect?url={ORIGIN}")
        assert (answer.status_code, answer.headers["location"]) == (302, FTP)
        refused = made.post("/")
        assert (refused.status_code, refused.headers["allow"].split(", ")) == (405, READING)


# --- redirects -----------------------------------------------------------------------------------


def test_the_policy_of_a_network_redirects_who_names_no_format(tracker, policy):
    policy.write_text('[[network]]\nfrom = ["192.0.2.0/24"]\nown = ["eu"]\nanswer = "redirect"\n')
    with client(tracker, LCC_TRACKER_POLICY=str(policy)) as inside:
        for headers in (BROWSER, {"Accept": "*/*"}):
            answer = inside.get(f"/?url={ORIGIN}app.tgz", headers=headers)
            assert (answer.status_code, answer.headers["location"]) == (302, f"{HTTPS}app.tgz")
        assert inside.get(f"/?url={ORIGIN}&format=html").status_code == 200
        assert inside.get(f"/?url={ORIGIN}", headers={"Accept": "application/json"}).status_code == 200
        assert inside.get("/?url=http://nowhere.example.org/").status_code == 404
        assert inside.get(f"/?url={ORIGIN}&tld=de").status_code == 200, "rsync only: nothing follows that"
    with client(tracker, "198.51.100.1", LCC_TRACKER_POLICY=str(policy)) as outside:
        assert outside.get(f"/?url={ORIGIN}").status_code == 200


def test_what_the_policy_forbids_is_in_no_answer(tracker, policy):
    policy.write_text('allowed = ["uk", "eu"]\nforbidden = ["f.example.uk"]\n')
    with client(tracker, LCC_TRACKER_POLICY=str(policy)) as made:
        paths = (
            f"/?url={ORIGIN}app.tgz", f"/?url={ORIGIN}app.tgz&tld=de", f"/?url={ORIGIN}app.tgz&tld=uk",
            f"/redirect?url={ORIGIN}app.tgz", f"/?format=meta4&url={ORIGIN}app.tgz",
            f"/uri-res/N2L?{URN}", f"/uri-res/N2Ls?{URN}", f"/uri-res/N2Rs?{URN}",
        )  # fmt: skip
        for path in paths:
            answer = made.get(path)
            told = answer.text + repr(answer.headers)
            assert "f.example.uk" not in told, path
            assert "r.example.de" not in told, path
        assert urls(as_json(made.get, ORIGIN)) == [HTTPS]


def test_only_proxies_are_believed_about_the_address(tracker, policy):
    policy.write_text('[[network]]\nfrom = ["203.0.113.0/24"]\nallowed = ["eu"]\n')
    settings = {"LCC_TRACKER_POLICY": str(policy), "LCC_WEB_PROXIES": "10.0.0.0/8"}
    told = {"X-Forwarded-For": "203.0.113.9"}
    with client(tracker, "10.1.1.1", **settings) as proxy, client(tracker, **settings) as stranger:
        path = f"/?format=json&url={ORIGIN}"
        assert urls(proxy.get(path, headers=told)) == [HTTPS]
        assert len(urls(stranger.get(path, headers=told))) == 3
    with client(tracker, "", **settings) as nobody:
        assert len(urls(nobody.get(path))) == 3


def test_sighup_reads_the_policy_again_and_a_broken_one_changes_nothing(tracker, policy, caplog):
    with client(tracker, LCC_TRACKER_POLICY=str(policy)) as made:
        assert len(urls(as_json(made.get, ORIGIN))) == 3
        policy.write_text('allowed = ["eu"]\n')
        made.serving.renew()
        assert urls(as_json(made.get, ORIGIN)) == [HTTPS]
        policy.write_text("allowed = 1\n")
        made.serving.renew()
        assert urls(as_json(made.get, ORIGIN)) == [HTTPS]
        assert "allowed is a list of texts: the old policy stays in use" in caplog.text
    with pytest.raises(ConfigurationError, match="allowed is a list"):
        make_app(load(PlainSettings({}, {}), {"LCC_TRACKER_POLICY": str(policy)}), tracker.store)


# --- names (RFC 2169) ----------------------------------------------------------------------------


def test_n2l_redirects_to_the_best_directory(ask):
    answer = ask(f"/uri-res/N2L?{URN}")
    assert (answer.status_code, answer.headers["location"]) == (303, f"{FTP}doc/")


def test_n2l_tells_squid_one_url_in_a_line(ask):
    answer = ask(f"/uri-res/N2L?{URN}", headers={"Accept": "text/plain"})
    assert (answer.status_code, answer.text) == (200, f"{FTP}doc/\r\n")
    assert answer.headers["content-type"].startswith("text/plain")


def test_n2ls_lists_all_directories(ask):
    where = [f"{RSYNC}doc/", f"{FTP}doc/", f"{HTTPS}doc/", f"{ORIGIN}doc/"]
    answer = ask(f"/uri-res/N2Ls?{URN}")
    assert answer.headers["content-type"].startswith("text/uri-list")
    assert answer.text == "".join(f"{line}\r\n" for line in (f"# {URN}", *where))
    listed = ask(f"/uri-res/N2Ls?{URN}", headers={"Accept": "application/json"}).json()
    assert (listed["urn"], [one["url"] for one in listed["replicas"]]) == (URN, where)
    page = ask(f"/uri-res/N2Ls?{URN}", headers=BROWSER)
    assert all(f"{one}" in page.text for one in where)


def test_n2rs_has_a_part_for_each_directory_the_best_one_last(ask):
    answer = ask(f"/uri-res/N2Rs?{URN}")
    head = f"Content-Type: {answer.headers['content-type']}\r\n\r\n".encode()
    message = email.message_from_bytes(head + answer.content)
    assert message.get_content_type() == "multipart/alternative"
    assert not message.defects
    parts = message.get_payload()
    assert [part.get_param("url") for part in parts] == [
        f"{ORIGIN}doc/", f"{HTTPS}doc/", f"{FTP}doc/", f"{RSYNC}doc/"
    ]  # fmt: skip
    assert {part.get_param("access-type") for part in parts} == {"URL"}


def test_names_that_are_equivalent_get_identical_answers(ask):
    digits = URN.rpartition(":")[2]
    for name in (f"URN:X-Tracker:{digits.upper()}", f"urn:X-TRACKER:{digits}"):
        for service in ("N2L", "N2Ls", "N2Rs"):
            one, other = ask(f"/uri-res/{service}?{URN}"), ask(f"/uri-res/{service}?{name}")
            assert (one.status_code, one.content) == (other.status_code, other.content)


@pytest.mark.parametrize(
    ("name", "status"),
    [
        ("urn:x-tracker:" + "0" * 32, 404),
        ("", 422),
        ("urn:x-tracker:", 422),
        ("urn:x-tracker:" + "0" * 31, 422),
        ("urn:x-tracker:" + "g" * 32, 422),
        ("urn:x-tracker:" + " 0" * 16, 422),
        ("urn:isbn:" + "0" * 32, 422),
        ("urn:x-tracker:" + "%30" * 32, 422),
        ("urn:x-tracker:" + "ü" * 32, 422),
        ("urn:x-tracker:" + "0" * 60_000, 422),
    ],
    ids=range(10),
)
def test_a_name_that_is_none_or_stands_for_nothing_is_told(ask, name, status):
    for service in ("N2L", "N2Ls", "N2Rs"):
        answer = ask(f"/uri-res/{service}?{name}")
        assert (answer.status_code, "location" in answer.headers) == (status, False)
        assert len(answer.content) < 400
    assert ask(f"/uri-res/N2C?{name}").status_code == 404


# --- what strangers send -------------------------------------------------------------------------

RELATION, IN_QUOTES = re.compile("rel=([a-z]*)"), re.compile(r'<[^>"]*>|"[^"]*"')
ODD = [
    b'"><script>alert(1)<\\', b"a\r\nSet-Cookie: x=1", b"' onmouseover='x", b"javascript:", b"<b>&amp;",
    "bücher".encode(), b"\xff\xfe", b"x>; rel=next", b"+ %41?#;", b"a&b=c",
]  # fmt: skip


@pytest.mark.parametrize("name", ODD, ids=range(len(ODD)))
def test_odd_names_of_mirrors_are_only_text_in_every_answer(tracker, ask, name):
    tree = {name: {name: 3}}
    tracker.load("http://a.example.org/", tree)
    tracker.load("http://b.example.de/", {b"m": tree, b"x": 1}, "de")
    escaped = "".join(f"%{one:02X}" for one in name)
    asked = f"http://a.example.org/{escaped}/{escaped}".replace("%", "%25")
    listed = as_json(ask, asked)
    assert listed.status_code == 200
    (url,) = urls(listed)
    assert url.startswith("http://b.example.de/m/")
    moved = ask(f"/redirect?url={asked}")
    assert moved.headers["location"] == url
    page, meta4 = ask(f"/?format=html&url={asked}"), ask(f"/?format=meta4&url={asked}")
    (file,) = etree.fromstring(meta4.content).findall(f"{{{NAMESPACE}}}file")
    assert re.fullmatch(r"[^/\\\\\ufffd]+", file.get("name"))
    assert file.get("name").isprintable()
    for answer in (listed, moved, page, meta4):
        assert "set-cookie" not in answer.headers
        assert RELATION.findall(IN_QUOTES.sub("", answer.headers["link"])) == ["describedby", "duplicate"]
    for bad in ("<script", "<b>", " onmouseover='"):
        assert bad not in page.text
    assert urls(as_json(ask, quote(url, safe=""))) == [
        f"http://a.example.org/{url[len('http://b.example.de/m/') :]}"
    ]


@pytest.mark.parametrize("accept", ["text/html", "application/json"])
@pytest.mark.parametrize(
    "query",
    [
        "url=file:///etc/passwd", "url=javascript:alert(1)", "url=http://user:pw@www.example.org/", "url=http://",
        "url=http://[::1/", "url=//evil.example.org/", "url=http://www.example.org/..%2F", "url=data:text/html,x",
        "url=http://www.example.org/&limit=0", "url=http://www.example.org/&limit=1001",
        "url=http://www.example.org/&limit=\u0663", "url=http://www.example.org/&tld=a_b",
        "url=http://www.example.org/&tld=%3Cscript%3E", "url=a&url=b", "format=xml", "x=1", "%3Cscript%3E=1",
        "url=http://www.example.org/&" + "&".join(["tld=de"] * 21), "url=http://x/" + "a" * 3000,
        "url=http://x/" + "a" * 60_000, "&" * 60_000, "url=%00", "url=http://www.example.org:99999/",
    ],
    ids=range(23),
)  # fmt: skip
def test_a_question_that_is_none_is_refused_in_a_line(ask, query, accept):
    for path in ("/", "/redirect"):
        answer = ask(f"{path}?{query}", headers={"Accept": accept})
        assert (answer.status_code, "location" in answer.headers) == (422, False), answer.text
        assert len(answer.content) < 10_000
        if accept == "application/json":
            assert answer.json()["error"] == "bad-question"
        else:
            assert 'class="alert"' in answer.text
            assert "<script" not in answer.text


def test_nobody_is_redirected_to_what_no_registered_server_has(ask):
    for url in (
        "http://evil.example.org/",
        "http://www.example.org.evil.example.org/pub/1.0/",
        ORIGIN + "../x",
    ):
        answer = ask(f"/redirect?url={url}")
        assert "location" not in answer.headers
        assert answer.status_code in {404, 422}
        assert f'href="{url}' not in answer.text


def test_a_link_may_have_the_url_as_it_is(tracker, ask):
    tree = {b"c++": {b"a b": 1, "ü".encode(): 2, b"\xff": 3, b"a\nb": 4}}
    tracker.load("ftp://a.example.org/", tree)
    tracker.load("ftp://b.example.org/", {b"m": tree, b"x": 1})
    for name, told in (("a%20b",) * 2, ("%C3%BC",) * 2, ("ü", "%C3%BC"), ("%FF",) * 2, ("a%0Ab",) * 2):
        assert urls(as_json(ask, f"ftp://a.example.org/c++/{name}")) == [f"ftp://b.example.org/m/c++/{told}"]
    assert urls(as_json(ask, "ftp%3A%2F%2Fa.example.org%2Fc%2B%2B%2Fa%2520b")) == [
        "ftp://b.example.org/m/c++/a%20b"
    ]
    assert urls(as_json(ask, "%20ftp://a.example.org/c++/%23top%20")) == ["ftp://b.example.org/m/c++/"]


def test_the_database_away_is_told_and_nothing_of_its_inside(tracker, ask, monkeypatch):
    from lcc_scrapy.domain.errors import StoreUnavailable

    def away():
        raise StoreUnavailable("secret-host refused")

    monkeypatch.setattr(tracker.store, "snapshot", away)
    for path in (f"/?url={ORIGIN}", f"/redirect?url={ORIGIN}", f"/uri-res/N2L?{URN}"):
        answer = ask(path)
        assert (answer.status_code, answer.headers["retry-after"]) == (503, "10")
        assert "secret" not in answer.text


def test_look_ups_do_not_run_on_the_loop(tracker, ask, monkeypatch):
    import asyncio

    def on_no_loop():
        with pytest.raises(RuntimeError):
            asyncio.get_running_loop()
        return snapshot()

    snapshot = tracker.store.snapshot
    monkeypatch.setattr(tracker.store, "snapshot", on_no_loop)
    for path in (f"/?url={ORIGIN}", f"/redirect?url={ORIGIN}", f"/uri-res/N2L?{URN}"):
        assert ask(path).status_code < 400


def test_json_has_no_bytes_beyond_ascii(ask):
    answer = as_json(ask, "http://www.example.org/pub/%C3%BC/")
    assert json.loads(answer.content)["url"] == "http://www.example.org/pub/ü/"
    assert answer.content.isascii()
