"""``lcc token`` as operators run it."""

import pytest
from test_cli import House, one_error

from lcc_scrapy.domain.tokens import digest_of


@pytest.fixture
def house(tmp_path):
    made = House(tmp_path)
    made.lcc("init")
    return made


def test_a_token_is_printed_once_and_listed_without_its_secret(house):
    words = (
        "--scope",
        "read",
        "--provider",
        "7",
        "--mimetype",
        "Text/*",
        "--expires",
        "90d",
    )
    secret = house.lcc("token", "add", "search engine", *words).stdout.strip()
    (listed,) = house.json("token", "list")
    assert listed["id"] == digest_of(secret)[:12]
    assert (listed["label"], listed["scopes"], listed["providers"]) == (
        "search engine",
        ["read"],
        ["7"],
    )
    assert (listed["mimetypes"], listed["used"], listed["expired"]) == (["text/*"], 0, False)
    assert listed["expires"] - listed["created"] == 90 * 86400
    assert secret not in house.lcc("token", "list").stdout
    assert secret.encode() not in (house.data / "lcc.sqlite").read_bytes()


def test_a_token_is_revoked_by_its_id(house):
    house.lcc("token", "add", "one", "--expires", "0")
    (listed,) = house.json("token", "list")
    assert listed["expires"] == 0
    assert "of one revoked" in house.lcc("token", "revoke", listed["id"]).stdout
    assert house.json("token", "list") == []
    assert "no token" in one_error(house.lcc("token", "revoke", listed["id"], status=1))


@pytest.mark.parametrize(
    "words",
    [
        ("",), ("x" * 65,), ("a\nb",), ("a", "--scope", "write"), ("a", "--expires", "soon"), ("a", "--mimetype", "text"),
        ("a", "--scope", "files", "--provider", "7"), ("a", "--scope", "metrics", "--mimetype", "text/html"),
    ],
)  # fmt: skip
def test_what_cannot_be_a_token_is_refused(house, words):
    house.lcc("token", "add", *words, status=2)
    assert house.json("token", "list") == []
