"""HTTP Digest: the examples of RFC 7616, and challenges as sites write them."""

import re
import time

import pytest

from lcc_scrapy.domain.digest import Challenge, Login, challenge_in
from lcc_scrapy.http.digest import DigestSession

REALM, TARGET = "http-auth@example.org", "/dir/index.html"
NONCE = "7ypf/xlj9XXwfDPEoM4URrv/xwf94BcCAzFZH4GiTo0v"
CNONCE = "f2/wE4q74E6zIJEtWaHKaf5wv/H5QzzpXusqGemxURZJ"
OPAQUE = "FQhe/qaU925kfnzjev0ciny7QMkPqMAFRtzCUYo5tdS"
MUFASA = Login("Mufasa", "Circle of Life")


def field(algorithm: str = "MD5", qop: str = 'qop="auth, auth-int", ', nonce: str = NONCE) -> bytes:
    text = f'Digest realm="{REALM}", {qop}algorithm={algorithm}, nonce="{nonce}", opaque="{OPAQUE}"'
    return text.encode()


@pytest.mark.parametrize(
    ("algorithm", "response"),
    [
        ("MD5", "8ca523f5e9506fed4657c9700eebdbec"),
        ("SHA-256", "753927fa0e85d155564e2e272a28d1802ca10daf4496794697cf8db5856cb6c1"),
    ],
)
def test_the_examples_of_rfc_7616(algorithm: str, response: str) -> None:
    asked = challenge_in([field(algorithm)])
    assert asked == Challenge(REALM, NONCE, algorithm, OPAQUE)
    said = MUFASA.answer(asked, "GET", TARGET, 1, CNONCE).decode()
    assert said == (
        f'Digest username="Mufasa", realm="{REALM}", uri="{TARGET}", algorithm={algorithm}, nonce="{NONCE}", '
        f'nc=00000001, cnonce="{CNONCE}", qop=auth, response="{response}", opaque="{OPAQUE}"'
    )


def response(algorithm: str, count: int = 1, cnonce: str = CNONCE, method: str = "GET") -> str:
    said = MUFASA.answer(Challenge(REALM, NONCE, algorithm), method, TARGET, count, cnonce).decode()
    found = re.search(r'response="([0-9a-f]+)"', said)
    assert found is not None
    return found[1]


def test_all_that_is_asked_about_changes_the_answer() -> None:
    made = {
        response("MD5"),
        response("MD5", 2),
        response("MD5", cnonce="x"),
        response("MD5", method="POST"),
        response("MD5-sess"),
    }
    assert len(made) == 5


def test_the_best_known_algorithm_is_taken_wherever_it_stands() -> None:
    sha, md5, new = field("SHA-256"), field("MD5"), field("SHA-512-256")
    for fields in (
        [md5, sha, new],
        [b"Basic realm=x, " + md5 + b", " + sha],
        [new, b"Negotiate YWJj==", sha, md5],
    ):
        asked = challenge_in(fields)
        assert asked is not None
        assert asked.algorithm == "SHA-256"


ALGORITHMS = ("MD5", "MD5-sess", "SHA-256", "SHA-256-sess")


@pytest.mark.parametrize("before", ALGORITHMS)
@pytest.mark.parametrize("now", ALGORITHMS)
def test_a_site_that_offered_sha_256_is_never_answered_by_md5(before: str, now: str) -> None:
    first = challenge_in([field(before)])
    found = challenge_in([field(now, nonce="another")], first)
    is_worse = before.startswith("SHA") and now.startswith("MD5")
    assert (found is None) == is_worse
    assert challenge_in([field(now), field("SHA-256")], first) == Challenge(
        REALM, NONCE, *((now, OPAQUE) if now.startswith("SHA") else ("SHA-256", OPAQUE))
    )


@pytest.mark.parametrize(
    "asked",
    [
        b"",
        b'Basic realm="x"',
        b"Digest",
        b'Digest realm="x", qop="auth"',
        field("SHA-512-256"),
        field(qop=""),
        field(qop='qop="auth-int", '),
        field(nonce=""),
        field(nonce="a\0b"),
        field(nonce="n" * 10_000),
    ],
)
def test_what_cannot_be_answered_is_no_challenge(asked: bytes) -> None:
    assert challenge_in([asked]) is None


def test_quotes_and_languages_are_kept() -> None:
    asked = challenge_in([b'digest REALM="a \\"b\\", c=d", Nonce=n, qop=auth, stale=TRUE, nonce=other'])
    assert asked == Challenge('a "b", c=d', "n")
    said = Login('l"e', "ü").answer(asked, "GET", "/", 1, "c")
    assert b'username="l\\"e", realm="a \\"b\\", c=d"' in said
    assert b"opaque" not in said
    assert b"username*=UTF-8''l%C3%B6we, " in Login("löwe", "ü").answer(asked, "GET", "/", 1, "c")


@pytest.mark.parametrize("text", [b'a="', b'a="\\"', b"a=,", b'Digest nonce="n', b"Digest,", b'\\"="'])
def test_reading_a_challenge_costs_little(text: bytes) -> None:
    began = time.process_time()
    challenge_in([text * (8000 // len(text))])
    assert time.process_time() - began < 5


def test_a_login_shows_no_password() -> None:
    assert "Circle" not in repr(MUFASA)


def test_a_session_keeps_to_the_better_algorithm() -> None:
    session = DigestSession(Login("u", "secret"))
    assert session.hear([(b"WWW-Authenticate", field("SHA-256"))])
    assert not session.hear([(b"WWW-Authenticate", field("MD5"))])
    assert b"SHA-256" in session.answer("GET", "/")
