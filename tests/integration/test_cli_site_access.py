"""``lcc provider show`` says how a provider's sites are reached, and nothing that is secret."""

import json

import pytest
from test_cli import House

FILE = """
[provider.7]
proxy = "http://proxy.example.org"
proxy_user = "proxy-user-canary"
proxy_password = "proxy-password-canary"
plain_text = true

[provider.7."https://www.example.com"]
user = "user-canary"
password = "password-canary"
client_certificate = "lcc.pem"

[provider.7."https://other.example.com:8443"]
authorization = "Bearer token-canary"

[provider.8."https://www.example.net"]
client_certificate = "lcc.pem"

[provider.10]
proxy = "https://proxy.example.org:8443"
"""


@pytest.fixture
def house(tmp_path):
    made = House(tmp_path)
    made.lcc("init")
    for pid in (7, 8, 9, 10):
        made.add(pid)
    file = tmp_path / "credentials.toml"
    file.write_text(FILE)
    made.settings["LCC_CREDENTIALS_FILE"] = str(file)
    return made


def test_proxy_and_origins_are_shown_and_no_secret(house):
    shown = house.lcc("provider", "show", "7").stdout
    lines = [" ".join(line.split()) for line in shown.splitlines()]
    assert "proxy http://proxy.example.org:80 with a password" in lines
    assert "credentials https://www.example.com: password and client certificate" in lines
    assert "credentials https://other.example.com:8443: password" in lines
    as_json = house.lcc("provider", "show", "7", "--json").stdout
    assert json.loads(as_json)["access"] == {
        "proxy": "http://proxy.example.org:80",
        "proxy_password": True,
        "origins": {
            "https://www.example.com": ["password", "client certificate"],
            "https://other.example.com:8443": ["password"],
        },
    }
    assert "canary" not in shown + as_json


def test_of_a_provider_without_a_proxy_only_origins_are_shown(house):
    shown = house.lcc("provider", "show", "8").stdout
    assert "proxy" not in shown
    assert "https://www.example.net: client certificate" in shown
    access = house.json("provider", "show", "8")["access"]
    assert access == {
        "proxy": None, "proxy_password": False, "origins": {"https://www.example.net": ["client certificate"]},
    }  # fmt: skip


def test_a_proxy_that_wants_no_password_is_shown_without_one(house):
    lines = house.lcc("provider", "show", "10").stdout.splitlines()
    assert ["proxy", "https://proxy.example.org:8443"] in [line.split() for line in lines]
    access = house.json("provider", "show", "10")["access"]
    assert access == {"proxy": "https://proxy.example.org:8443", "proxy_password": False, "origins": {}}


def test_socks_and_digest_are_shown_as_others_are(house, tmp_path):
    (tmp_path / "credentials.toml").write_text(
        '[provider.9]\nproxy = "socks5h://user-canary:password-canary@proxy.example.org"\nplain_text = true\n'
        '[provider.9."https://www.example.com"]\nuser = "canary"\npassword = "canary"\ndigest = true\n'
    )
    shown = house.lcc("provider", "show", "9", "--json").stdout
    assert json.loads(shown)["access"] == {
        "proxy": "socks5h://proxy.example.org:1080",
        "proxy_password": True,
        "origins": {"https://www.example.com": ["password"]},
    }
    assert "canary" not in shown


@pytest.mark.parametrize("file", ["there", "none"])
def test_where_nothing_is_said_nothing_is_shown(house, file):
    if file == "none":
        del house.settings["LCC_CREDENTIALS_FILE"]
    shown = house.lcc("provider", "show", "9")
    assert "credentials" not in shown.output
    assert house.json("provider", "show", "9")["access"] is None


@pytest.mark.parametrize("content", [None, "nonsense", '[provider.7]\nproxy = "canary://x"'])
def test_a_file_that_cannot_be_read_is_a_note(house, tmp_path, content):
    file = tmp_path / "credentials.toml"
    file.unlink()
    if content is not None:
        file.write_text(content)
    shown = house.lcc("provider", "show", "7")
    assert "how its sites are reached is not known: LCC_CREDENTIALS_FILE" in shown.stderr
    assert "provider" in shown.stdout
    assert json.loads(house.lcc("provider", "show", "7", "--json").stdout)["access"] is None
