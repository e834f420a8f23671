"""How sites are reached: what the operator's file may say, and that no mistake in it shows a secret."""

from base64 import b64decode

import pytest

from lcc_scrapy.domain.digest import Login
from lcc_scrapy.domain.errors import ConfigurationError
from lcc_scrapy.domain.site_access import Proxy, Secret, SiteOrigin, basic, parse

SECRET = "s3cr3t-0f-n0b0dy"
SITE = SiteOrigin("https", "www.example.com", 443)


def site(lines: str, origin: str = "https://www.example.com") -> str:
    return f'[provider.7."{origin}"]\n{lines}\n'


def test_a_provider_has_a_proxy_and_credentials_for_origins() -> None:
    text = '[provider.7]\nproxy = "https://proxy.example.org:3129"\nproxy_user = "lcc"\n'
    text += f'proxy_password = "{SECRET}"\n'
    text += site('user = "löwe"\npassword = "a:b"\nclient_certificate = "lcc.pem"\nclient_key = "/k/lcc.key"')
    text += site(
        'authorization = "Bearer x"\nclient_certificate = "all.pem"', "https://api.example.com:8443/"
    )
    found = parse(text, "/etc/lcc")
    assert found.keys() == {7}
    assert found[7].proxy == Proxy("proxy.example.org", 3129, True, basic("lcc", SECRET), private=True)
    one, other = found[7].sites.values()
    assert list(found[7].sites) == [SITE, SiteOrigin("https", "api.example.com", 8443)]
    assert b64decode(one.authorization.removeprefix(b"Basic ")).decode() == "löwe:a:b"
    assert (one.certificate, one.key_file) == ("/etc/lcc/lcc.pem", "/k/lcc.key")
    assert (other.authorization, other.certificate, other.key_file) == (
        b"Bearer x",
        "/etc/lcc/all.pem",
        "/etc/lcc/all.pem",
    )


@pytest.mark.parametrize("text", ["", "[provider.7]\n", '[provider.7]\nproxy = ""\n'])
def test_nothing_said_is_nothing_special(text: str) -> None:
    assert [(one.proxy, one.sites) for one in parse(text).values()] in ([], [(None, {})])


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("http://proxy.example.org", "http://proxy.example.org:80"),
        ("https://proxy.example.org/", "https://proxy.example.org:443"),
        ("http://[::1]:3128", "http://[::1]:3128"),
    ],
)
def test_a_proxy_without_a_port_listens_at_the_usual_one(url: str, shown: str) -> None:
    assert str(parse(f'[provider.7]\nproxy = "{url}"')[7].proxy) == shown


@pytest.mark.parametrize(
    ("lines", "shown", "login"),
    [
        ('proxy = "socks5://p"', "socks5://p:1080", ("", "")),
        ('proxy = "socks5h://[::1]:9050"', "socks5h://[::1]:9050", ("", "")),
        ('proxy = "socks5://p:80"', "socks5://p:80", ("", "")),
        ('proxy = "socks5://u:a@b/%3A@p"', "socks5://p:1080", ("u", "a@b/:")),
        ('proxy = "socks5://p"\nproxy_user = "u"\nproxy_password = "a%3A"', "socks5://p:1080", ("u", "a%3A")),
    ],
)
def test_a_proxy_may_speak_socks(lines: str, shown: str, login: tuple[str, str]) -> None:
    proxy = parse(f"[provider.7]\n{lines}\nplain_text = true")[7].proxy
    assert proxy is not None
    assert (str(proxy), proxy.login, proxy.private, proxy.tls) == (shown, login, True, False)
    assert not login[1] or login[1] not in repr(proxy)


def test_a_host_is_compared_as_urls_are() -> None:
    found = parse(site('user = "lcc"', "https://WWW.Example.COM:443/"))
    assert list(found[7].sites) == [SITE]


MISTAKES = {
    "user = 1": "expected tables [provider.PID]",
    "provider = 1": "expected tables [provider.PID]",
    "provider.7 = 1": "provider.7: expected a table",
    "[provider.07]": "provider.07: expected the number",
    "[provider.0]": "expected the number",
    "[provider.x]": "expected the number",
    '[provider.7]\nproxi = "http://p"': "provider.7: proxi is not known, expected some of plain_text, proxy",
    '[provider.7]\nproxy = "socks4://p:1080"': "expected http://HOST:PORT",
    f'[provider.7]\nproxy = "socks5://u:{SECRET}@p"': "in plain text",
    f'[provider.7]\nproxy = "socks5://u:{SECRET}@p:port"\nplain_text = true': "proxy: expected socks5://HOST",
    f'[provider.7]\nproxy = "socks5h://u:{SECRET}@p/path"\nplain_text = true': "proxy: expected socks5h://HOST",
    f'[provider.7]\nproxy = "socks5://u:{SECRET}@p"\nproxy_user = "u"': "not both",
    f'[provider.7]\nproxy = "socks5://p"\nproxy_password = "{SECRET}"': "user of the proxy: expected 1 to 255",
    f'[provider.7]\nproxy = "socks5://u:{SECRET * 20}@p"': "password of the proxy: expected 1 to 255",
    f'[provider.7]\nproxy = "socks5://u:{SECRET}é@p"': "password of the proxy: expected 1 to 255",
    '[provider.7]\nproxy = "socks5://u@p"': "password of the proxy: expected 1 to 255",
    f'[provider.7]\nproxy = "socks5://u%3Av:{SECRET}@p"': "expected no colon",
    '[provider.7]\nproxy = "http://"': "expected http://HOST:PORT",
    '[provider.7]\nproxy = "http://p/path"': "expected http://HOST:PORT",
    '[provider.7]\nproxy = "http://p:port"': "provider.7: proxy: ",
    f'[provider.7]\nproxy = "http://lcc:{SECRET}@p"': "expected its user in proxy_user",
    f'[provider.7]\nproxy_user = "u"\nproxy_password = "{SECRET}"': "proxy_user without a proxy",
    f'[provider.7]\nproxy = "https://p"\nproxy_password = "{SECRET}"': "proxy_password without proxy_user",
    f'[provider.7]\nproxy = "http://p"\nproxy_user = "u"\nproxy_password = "{SECRET}"': "in plain text",
    site(f'user = "u"\npassword = "{SECRET}"', "http://www.example.com"): "in plain text",
    site(f'authorization = "Bearer {SECRET}"', "http://www.example.com"): "in plain text",
    site(f'user = "u"\npassword = "{SECRET}"\nauthorization = "x"'): "not both",
    site(f'password = "{SECRET}"'): "password without user",
    site(f'user = "u:v"\npassword = "{SECRET}"'): "a colon",
    site(f'user = "u"\npassword = "{SECRET}\\r\\nX: y"'): "password: expected one line",
    site(f'authorization = "{SECRET}é"'): "expected ASCII",
    site("user = 7"): "user: expected one line of text",
    site('plain_text = "yes"'): "plain_text: expected true or false",
    site('client_key = "k.pem"'): "client_key without client_certificate",
    site('client_certificate = "c.pem"', "http://www.example.com"): "needs https",
    site("digest = true"): "digest without user",
    site('user = "u"\ndigest = "yes"'): "digest: expected true or false",
    site(f'user = "u"\npassword = "{SECRET}"\ndigest = true\nauthorization = "x"'): "not both",
    site(f'user = "u"\npassword = "{SECRET}"\ndigest = true', "http://www.example.com"): "in plain text",
    "[provider.7]\ndigest = true": "digest is not known",
    site('user = "u"', "https://www.example.com/path"): "scheme, host and port only",
    site('user = "u"', "ftp://www.example.com"): "expected http or https",
    site('user = "u"') + site('user = "v"', "https://www.example.com:443"): "two tables for https://www.exam",
    f'[provider.7]\nproxy_password = "{SECRET}': "not TOML: at ",
    f"[provider.7]\nproxy_password = {SECRET}": "not TOML: at ",
}


@pytest.mark.parametrize("text", MISTAKES)
def test_a_mistake_is_named_and_no_secret_repeated(text: str) -> None:
    with pytest.raises(ConfigurationError) as caught:
        parse(text)
    assert MISTAKES[text] in str(caught.value)
    assert SECRET not in str(caught.value)


def test_a_site_may_ask_by_digest_and_then_gets_no_password() -> None:
    (found,) = parse(site(f'user = "u"\npassword = "{SECRET}"\ndigest = true'))[7].sites.values()
    assert (found.authorization, found.digest) == (b"", Login("u", SECRET))
    assert str(found) == "password"
    assert SECRET not in f"{found!r}"


def test_without_tls_a_password_is_sent_if_the_operator_says_so() -> None:
    text = '[provider.7]\nproxy = "http://p"\nproxy_user = "u"\nplain_text = true\n'
    text += site('user = "v"\nplain_text = true', "http://www.example.com")
    found = parse(text)[7]
    assert found.proxy is not None
    assert found.proxy.authorization == basic("u", "")
    assert next(iter(found.sites.values())).authorization == basic("v", "")


def test_secrets_are_shown_to_nobody() -> None:
    found = parse(
        f'[provider.7]\nproxy = "https://p"\nproxy_user = "u"\nproxy_password = "{SECRET}"\n'
        + site(f'user = "u"\npassword = "{SECRET}"\nclient_certificate = "c.pem"')
    )[7]
    told = f"{found} {found!r} {found.proxy} {Secret(SECRET.encode())} {list(found.sites.values())}"
    for word in (SECRET, basic("u", SECRET).decode()):
        assert word not in told
    assert str(found) == "by https://p:443; https://www.example.com with password and client certificate"
