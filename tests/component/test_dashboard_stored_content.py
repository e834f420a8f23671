"""The content of a document in the dashboard: characters and pictures, and nothing that runs or loads anything."""

import html
import io
import re

import pytest
from argon2 import PasswordHasher

from lcc_scrapy.apps.dashboard import content_page, stored_page
from lcc_scrapy.content.decoding import BadCoding
from lcc_scrapy.feed.content import ContentGone
from lcc_scrapy.login import passwords
from tests.dashboard_house import EVIL, PNG, DashboardHouse

PAGE = '<html><script src="http://evil.example/x"></script>\t<b>caf\u00e9</b>\r\n\u202e\x1b[31m&amp;</html>'


@pytest.fixture(autouse=True)
def quick_passwords(monkeypatch):
    """One pass over little memory: how a password is hashed is tested elsewhere."""
    monkeypatch.setattr(passwords, "_HASHER", PasswordHasher(1, 8, 1))


@pytest.fixture
def house():
    return DashboardHouse()


def got(house, row, what="content", name="vera", **query):
    with house.browser(name) as client:
        return client.get(f"/dashboard/urls/{row.docid}/{what}", params=query)


def characters(told):
    return html.unescape(re.search("<pre>(.*)</pre>", told.text, re.DOTALL)[1])


def test_markup_is_shown_as_characters_and_what_cannot_be_seen_is_named(house):
    told = got(house, house.document(7, "page", [PAGE.encode()]))
    assert told.status_code == 200
    assert characters(told) == (
        '<html><script src="http://evil.example/x"></script>    <b>caf\u00e9</b>\n\\u202e\\x1b[31m&amp;</html>'
    )
    for wrong in ("<script", "<b>caf", "\u202e", "\x1b"):
        assert wrong not in told.text.split("<main>")[1]


def test_the_page_of_a_url_leads_to_the_content_and_does_not_show_it(house):
    row = house.document(7, "page", [b"the old one", b"the content itself"])
    with house.browser("sven") as client:
        shown = client.get("/dashboard/urls", params={"url": row.docid}).text
        assert "the content itself" not in shown
        assert f'/dashboard/urls/{row.docid}/content"' in shown
        earlier = re.search(rf"/dashboard/urls/{row.docid}/content\?version=\d+", shown)[0]
        assert "the old one" in client.get(earlier).text


@pytest.mark.parametrize(
    ("mimetype", "is_shown"),
    [("image/svg+xml", True), ("application/json", True), ("application/ld+json; charset=utf-8", True),
     ("text/x-python", True), ("application/pdf", False), ("image/tiff", False)],
)  # fmt: skip
def test_what_is_text_is_told_by_the_type_that_the_site_gave(house, mimetype, is_shown):
    told = got(house, house.document(7, "one", [b"<svg onload='alert(1)'>"], mimetype))
    assert ("&lt;svg onload" in told.text) is is_shown
    assert ("neither text nor a picture" in told.text) is not is_shown
    assert "<svg" not in told.text


@pytest.mark.parametrize(
    "body", [b"<&\x01" * 100_000, b"\xe2\x80\xae" * 70_000, b"\n" * 300_000, b"a" * 300_000]
)
def test_a_page_is_never_larger_than_a_hundred_kilobytes(house, body):
    told = got(house, house.document(7, "large", [body], "text/plain"))
    assert len(told.content) < 100_000
    assert "This is the beginning." in told.text


def test_a_character_that_is_cut_does_not_change_the_charset(house, monkeypatch):
    monkeypatch.setattr(stored_page, "READ", 4)
    monkeypatch.setattr(content_page, "READ", 4)
    row = house.document(7, "cut", ["\u00e9a\u00e9".encode()], "text/plain")
    house.charset(row, "")
    assert characters(got(house, row)).startswith("\u00e9a")
    assert characters(got(house, row, "text")).startswith("\u00e9a")


class Endless(io.RawIOBase):
    """A file that begins so and never ends, though its row says that it has some bytes."""

    def __init__(self, begin):
        self._begin = begin
        self.taken = 0

    def readable(self):
        return True

    def readinto(self, buffer):
        self.taken += len(buffer)
        assert self.taken < 10_000_000, "it is read on and on"
        part, self._begin = self._begin[: len(buffer)], self._begin[len(buffer) :]
        buffer[:] = part.ljust(len(buffer), b"x")
        return len(buffer)


def test_no_more_than_the_beginning_is_read(house):
    row = house.document(7, "endless", [b"x" * 9], "text/plain")
    begin = b""
    object.__setattr__(house.lcc, "open", lambda _: io.BufferedReader(Endless(begin)))
    assert "xxxx" in got(house, row).text
    assert got(house, row, "picture").status_code == 404
    begin = PNG
    assert got(house, row, "picture").status_code == 404


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (OSError("object storage is away"), "object storage is away"),
        (BadCoding("not what its Content-Encoding says"), "Content-Encoding"),
        (ContentGone("read on"), "Read on"),
    ],
)
def test_a_content_that_cannot_be_read_is_one_line(house, error, said):
    def fail(_):
        raise error

    row = house.document(7, "away", [b"x"])
    object.__setattr__(house.lcc, "open", fail)
    for what in ("content", "picture", "text"):
        told = got(house, row, what)
        assert told.status_code in {404, 422}
        assert said in told.text


# --- pictures ------------------------------------------------------------------------------------


def test_a_picture_is_loaded_by_its_page_alone_and_holds_to_a_policy_that_permits_nothing(house):
    row = house.picture(comment=b"dots")
    shown = got(house, row)
    source = re.search('<img class="stored" src="([^"]+)"', shown.text)[1]
    assert "img-src 'self'" in shown.headers["content-security-policy"]
    assert "image/png, 3 by 2 pixels" in shown.text
    with house.browser("sven") as client:
        told = client.get(source)
    assert told.content == PNG + b"dots"
    named = {
        "content-type": "image/png",
        "content-security-policy": "default-src 'none'; sandbox; frame-ancestors 'none'",
        "x-content-type-options": "nosniff",
        "cross-origin-resource-policy": "same-origin",
        "cache-control": "no-store",
        "content-disposition": f'attachment; filename="{row.docid}.png"',
    }
    assert {name: told.headers[name] for name in named} == named


def test_what_a_site_calls_a_picture_is_none_until_it_begins_as_one(house):
    row = house.document(7, "liar", [b"<script>alert(1)</script>"], "image/png")
    assert "<img" not in got(house, row).text
    assert got(house, row, "picture").status_code == 404


def test_what_begins_as_a_picture_is_served_as_one_whatever_its_site_says(house):
    row = house.document(7, "html", [PNG + b"<script>alert(1)</script>"], "text/html")
    assert got(house, row, "picture").headers["content-type"] == "image/png"


@pytest.mark.parametrize("size", [b"\x7f\xff\xff\xff\0\0\0\1", b"\0\1\0\0\0\1\0\0", b"\0\0\0\0\0\0\0\1"])
def test_a_picture_that_would_unpack_to_very_much_is_not_given_to_a_browser(house, size):
    row = house.document(7, "bomb", [PNG[:16] + size + PNG[24:]], "image/png")
    shown = got(house, row)
    assert "too large to be shown" in shown.text
    assert "<img" not in shown.text
    assert got(house, row, "picture").status_code == 404


def test_a_picture_of_too_many_bytes_is_not_shown(house, monkeypatch):
    monkeypatch.setattr(stored_page, "PICTURE_BYTES", len(PNG) + 3)
    assert got(house, house.picture(comment=b"abc"), "picture").status_code == 200
    row = house.picture(name="larger", comment=b"abcd")
    assert got(house, row, "picture").status_code == 404
    assert "<img" not in got(house, row).text


def test_contents_of_somebody_elses_provider_are_as_if_there_were_none(house):
    rows = [house.document(8, "page", [b"of eight"]), house.picture(8)]
    for row in rows:
        for what in ("content", "picture"):
            assert got(house, row, what, "sven").status_code == 404
            assert got(house, row, what, "vera").status_code in {200, 404}
    never = got(house, house.document(9, EVIL, [b"x"]), "content", "sven").text
    assert "of eight" not in never
