"""The requests of one fetch: which URL gets what, from the first one to where its site leads."""

from dataclasses import replace
from typing import Any

import pytest
from scrapy.downloadermiddlewares.httpproxy import HttpProxyMiddleware
from scrapy.http import Headers, Response

from lcc_scrapy.domain.providers import Provider
from lcc_scrapy.domain.queue import QueuedUrl, Ticket
from lcc_scrapy.domain.roots import Root
from lcc_scrapy.fetch.download_handler import BODY, CONDITIONAL, TicketRequest, fields_of
from lcc_scrapy.fetch.redirects import Chain
from lcc_scrapy.fetch.turn import FetchFailed
from lcc_scrapy.queue.leases import Member

LATEST, FIRST, SECOND = (f"http://a.example/{name}" for name in ("latest", "r1.html", "r2.html"))
ROW = QueuedUrl(
    b"k" * 16, 7, LATEST, "text/html", "", None, LATEST, None, None, None, "", 1, 1, "fetch", 1, 0, 0
)
MEMBER = Member(
    Provider(7, ""),
    tuple(map(Root.parse, ["http://a.example/", "http://b.example/", "https://straße.example/"])),
)
OWN = [(b"Accept", b"text/html"), (b"Authorization", b"Basic eA=="), (b"X-Team", b"1")]
VALIDATORS = [(b"If-None-Match", b'"1"'), (b"If-Modified-Since", b"yesterday")]


def ticket(validated: str = "", *, etag: str = '"1"', last_modified: str = "yesterday") -> Ticket:
    return Ticket(ROW, "7", 1, etag, last_modified, validated)


def chain(its: Ticket | None = None, member: Member = MEMBER, own: Any = OWN) -> Chain:
    request = TicketRequest((its or ticket()).row.furl, meta={"x": 1})
    request.fields = own
    return Chain(request, its or ticket(), member)


def led(to: str | bytes, status: int = 302, **headers: str) -> Response:
    location = to if isinstance(to, bytes) else to.encode()
    fields = {name.replace("_", "-"): value for name, value in headers.items()}
    return Response("http://any.example/", status=status, headers=Headers({**fields, "Location": location}))


def conditions(one: Chain) -> list[tuple[bytes, bytes]]:
    found = [field for field in fields_of(one.request) if field[0].startswith(b"If-")]
    assert (CONDITIONAL in one.request.meta) == bool(found)
    return found


def value_of(one: Chain, name: bytes) -> bytes | None:
    found = [value for field, value in fields_of(one.request) if field.lower() == name.lower()]
    assert len(found) < 2
    assert one.request.headers.get(name) == (found[0] if found else None), "components see what is sent"
    return found[0] if found else None


# --- conditions ----------------------------------------------------------------------------------


@pytest.mark.parametrize("validated", ["", LATEST])
def test_a_page_that_was_served_without_redirects_is_asked_for_conditionally(validated: str) -> None:
    assert conditions(chain(ticket(validated))) == VALIDATORS


@pytest.mark.parametrize("now", [FIRST, SECOND, "http://b.example/r1.html", "/r1.html?x", "/R1.html"])
def test_validators_go_only_to_the_url_that_gave_them(now: str) -> None:
    one = chain(ticket(FIRST))
    assert conditions(one) == []
    one.follow(led(now))
    assert conditions(one) == (VALIDATORS if now == FIRST else [])


def test_where_a_page_became_a_redirect_its_validators_stay_behind() -> None:
    one = chain(ticket(LATEST))
    assert conditions(one) == VALIDATORS
    one.follow(led(FIRST))
    assert conditions(one) == []
    one.follow(led("latest"))
    assert conditions(one) == VALIDATORS, "it has led back"


def test_a_later_redirect_may_lead_to_the_url_that_gave_them_however_it_is_written() -> None:
    one = chain(ticket("http://a.example/x//r1.html"))
    for to in (SECOND, "//A.Example:80/y/../x/./z/\t..//r1.html#part"):
        assert conditions(one) == []
        one.follow(led(to))
    assert one.request.url == "http://a.example/x//r1.html"
    assert conditions(one) == VALIDATORS


def test_each_validator_goes_alone_where_there_is_only_one() -> None:
    assert conditions(chain(ticket(last_modified=""))) == VALIDATORS[:1]
    assert conditions(chain(ticket(etag=""))) == VALIDATORS[1:]
    assert conditions(chain(ticket(etag="", last_modified=""))) == []


def test_pages_that_a_browser_renders_are_asked_for_unconditionally() -> None:
    member = Member(replace(MEMBER.provider, render="yes"), MEMBER.roots)
    assert conditions(chain(member=member)) == []


# --- headers and cookies ---------------------------------------------------------------------------


def test_what_components_added_for_one_url_does_not_go_to_the_next() -> None:
    one = chain()
    one.request.headers["X-Signature"] = "of /latest"
    one.request.meta[BODY] = "of the redirect"
    one.follow(led(FIRST))
    assert value_of(one, b"X-Signature") is None
    assert value_of(one, b"X-Team") == b"1"
    assert BODY not in one.request.meta


def test_a_project_s_proxy_is_set_anew_for_the_next_url() -> None:
    one, proxies = chain(), HttpProxyMiddleware()
    proxies.proxies = {"http": (b"dGVhbTpzZWNyZXQ=", "http://192.0.2.9:3128")}
    for _ in range(3):
        proxies.process_request(one.request)
        assert one.request.headers["Proxy-Authorization"] == b"Basic dGVhbTpzZWNyZXQ="
        one.follow(led(FIRST))
        assert one.request.meta == {"x": 1}


@pytest.mark.parametrize(
    ("to", "keeps"),
    [
        ("/r1.html", True),
        ("http://a.example/x", True),
        ("https://a.example/x", True),
        ("http://a.example:80/x", True),
        ("http://b.example/", False),
        ("https://straße.example/", False),
    ],
)
def test_a_password_of_the_settings_does_not_follow_to_another_origin(to: str, *, keeps: bool) -> None:
    one = chain(own=[*OWN, (b"Cookie", b"of=settings")])
    one.follow(led(to))
    assert (value_of(one, b"Authorization") is not None) == keeps
    assert value_of(one, b"Cookie") == (b"of=settings" if keeps else None)
    one.follow(led(LATEST))
    assert (value_of(one, b"Authorization") is not None) == keeps, "a site cannot send it back and forth"


def test_a_wall_that_sets_a_cookie_and_redirects_to_itself_sees_it_again() -> None:
    one = chain()
    assert value_of(one, b"Cookie") is None
    one.follow(led(LATEST, set_cookie="seen=yes; Path=/; Domain=example"))
    assert value_of(one, b"Cookie") == b"seen=yes"
    assert conditions(one) == VALIDATORS
    one.follow(led("http://b.example/"))
    assert value_of(one, b"Cookie") is None
    one.follow(led(LATEST, set_cookie="other=1"))
    assert value_of(one, b"Cookie") == b"seen=yes", "that of b.example stays there"
    assert value_of(chain(), b"Cookie") is None, "the next fetch knows nothing of it"


def test_a_cookie_joins_the_one_of_the_settings_in_one_header() -> None:
    one = chain(own=[*OWN, (b"cookie", b"of=settings")])
    one.follow(led("/r1.html", set_cookie="seen=yes; Path=/"))
    assert value_of(one, b"Cookie") == b"of=settings; seen=yes"


# --- where it leads --------------------------------------------------------------------------------


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_redirects_are_counted_and_followed_from_where_they_are(status: int) -> None:
    its = ticket()
    one = chain(its)
    for to, url in [
        ("x//y/", "http://a.example/x//y/"),
        ("z", "http://a.example/x//y/z"),
        ("../w", "http://a.example/x//w"),
    ]:
        one.follow(led(to, status))
        assert one.request.url == url
    assert its.trip.hops == 3


@pytest.mark.parametrize(
    ("to", "code"),
    [
        ("", 613), ("http://[/", 613), ("mailto:x", 613), ("ftp://a.example/", 613), ("http://u:p@a.example/", 613), ("http://a.example:0/", 613),
        (b"http://a\xe9.example/", 613), ("/" + "x" * 3000, 613), ("http://c.example/", 605), ("http://a.example:81/", 605), ("https://b.example:80/", 605),
        ("/a%2f..%2fb", 605), ("/..;/b", 605), ("http://strasse.example/", 605), ("http://a.example.c.example/", 605),
    ],
)  # fmt: skip
def test_a_redirect_that_cannot_be_followed_ends_the_fetch(to: str | bytes, code: int) -> None:
    its = ticket()
    with pytest.raises(FetchFailed) as failed:
        chain(its).follow(led(to))
    assert failed.value.code == code
    assert "p@" not in failed.value.detail
    assert its.trip.hops == 0


def test_a_fetch_that_may_begin_nowhere_says_which_root_is_missing() -> None:
    outside = Ticket(replace(ROW, furl="http://c.example/"), "7", 1)
    with pytest.raises(FetchFailed) as failed:
        chain(outside)
    assert (failed.value.code, failed.value.detail[:9]) == (704, "not below")
    member = Member(MEMBER.provider, (Root.parse("http://strasse.example/"),))
    with pytest.raises(FetchFailed) as failed:
        chain(Ticket(replace(ROW, furl="http://xn--strae-oqa.example/x"), "7", 1), member)
    assert failed.value.detail.endswith("add the root http://xn--strae-oqa.example/")
