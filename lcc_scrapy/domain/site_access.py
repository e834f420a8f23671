"""How the sites of providers are reached: through which proxy, with which password or client certificate.

An operator's file in TOML says so (``LCC_CREDENTIALS_FILE``)::

    [provider.7]
    proxy = "http://proxy.example.org:3128"

    [provider.7."https://www.example.com"]
    user = "lcc"
    password = "secret"

What is sent to a site belongs to one provider and one origin: scheme, host and port.
"""

import tomllib
from base64 import b64encode
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import PurePath
from typing import Any, NamedTuple
from urllib.parse import unquote, urlsplit

from lcc_scrapy.domain.digest import Login
from lcc_scrapy.domain.errors import ConfigurationError, UrlRefused
from lcc_scrapy.domain.roots import HttpUrl

_PROXY_PORTS = {"http": 80, "https": 443}
_SOCKS_PORT = 1080
_SOCKS_TEXT = 255
"""Bytes of a user or password at most (RFC 1929)."""

SOCKS, SOCKS_NAMES = "socks5", "socks5h"
"""SOCKS proxies (RFC 1928): one that is told addresses, and one that looks up names itself."""

_TEXTS = frozenset({"user", "password", "authorization", "client_certificate", "client_key"})
_PROXY_TEXTS = frozenset({"proxy", "proxy_user", "proxy_password"})
_PLAIN_TEXT, _DIGEST = "plain_text", "digest"


class Secret(bytes):
    """What is shown to nobody: not in the ``repr`` of what holds it either."""

    def __repr__(self) -> str:
        return "***"

    __str__ = __repr__


NOTHING = Secret()


class Proxy(NamedTuple):
    """A proxy. ``authorization`` is what it is told in Proxy-Authorization; empty = nothing.

    ``private``: it may have a private address, because an operator named it. ``socks`` is ``SOCKS`` or
    ``SOCKS_NAMES``, empty = it speaks HTTP; ``authorization`` is ``user:password`` then.
    """

    host: str
    port: int
    tls: bool = False
    authorization: Secret = NOTHING
    private: bool = False
    socks: str = ""

    @property
    def login(self) -> tuple[str, str]:
        """User and password at a SOCKS proxy, empty = none."""
        user, _, password = self.authorization.decode("ascii").partition(":")
        return user, password

    def __str__(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{self.socks or ('https' if self.tls else 'http')}://{host}:{self.port}"


class SiteOrigin(NamedTuple):
    """To whom something may be sent."""

    scheme: str
    host: str
    port: int

    @classmethod
    def of(cls, url: HttpUrl) -> "SiteOrigin":
        """Return the origin of a URL."""
        return cls(url.scheme, url.host, url.port)

    def __str__(self) -> str:
        return str(HttpUrl(*self, "/", "")).removesuffix("/")


@dataclass(frozen=True, slots=True)
class SiteCredentials:
    """What a site wants to see: an Authorization, a client certificate, or both; empty = not.

    ``certificate`` and ``key_file`` are paths of files in PEM, which may be the same. ``digest`` is the login
    of a site that is told no password, but answers made of it.
    """

    authorization: Secret = NOTHING
    certificate: str = ""
    key_file: str = ""
    digest: Login | None = None

    @property
    def kinds(self) -> list[str]:
        """Name what there is, without what is secret."""
        there = {"password": self.authorization or self.digest, "client certificate": self.certificate}
        return [name for name, value in there.items() if value]

    def __str__(self) -> str:
        return " and ".join(self.kinds) or "nothing"


@dataclass(frozen=True, slots=True)
class ProviderAccess:
    """How one provider's sites are reached."""

    proxy: Proxy | None = None
    sites: Mapping[SiteOrigin, SiteCredentials] = field(default_factory=dict)

    def __str__(self) -> str:
        way = f"by {self.proxy}" if self.proxy else "directly"
        return "; ".join([way, *(f"{origin} with {site}" for origin, site in self.sites.items())])


def parse(text: str, folder: str = "") -> dict[int, ProviderAccess]:
    """Read a file by provider; relative paths in it begin in ``folder``.

    Raises ``ConfigurationError``, which repeats no secret.
    """
    try:
        content = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise ConfigurationError(f"not TOML: {str(error).rpartition(' (')[2].rstrip(')')}") from None
    tables = content.pop("provider", {})
    if content or not isinstance(tables, dict):
        raise ConfigurationError(f"{_first(content)}: expected tables [provider.PID]")
    return {_pid(name): _provider(f"provider.{name}", table, folder) for name, table in tables.items()}


def basic(user: str, password: str) -> Secret:
    """Return what is said by HTTP Basic (RFC 7617)."""
    return Secret(b"Basic " + b64encode(f"{user}:{password}".encode()))


def _pid(name: str) -> int:
    if not (name.isascii() and name.isdigit() and name == str(int(name)) and int(name)):
        raise ConfigurationError(f"provider.{name}: expected the number of a provider")
    return int(name)


def _provider(where: str, table: Any, folder: str) -> ProviderAccess:
    _check_table(where, table)
    sites = {name: value for name, value in table.items() if "://" in name}
    own = {name: value for name, value in table.items() if name not in sites}
    _check_values(where, own, _PROXY_TEXTS, {_PLAIN_TEXT})
    found: dict[SiteOrigin, SiteCredentials] = {}
    for name, value in sites.items():
        origin = _origin(f'{where}."{name}"', name)
        if origin in found:
            raise ConfigurationError(f"{where}: two tables for {origin}")
        found[origin] = _site(f'{where}."{name}"', origin, value, PurePath(folder))
    return ProviderAccess(_proxy(where, own), found)


def _proxy(where: str, table: dict[str, Any]) -> Proxy | None:
    if table.get("proxy", "").partition("://")[0] in {SOCKS, SOCKS_NAMES}:
        return _socks(where, table)
    said = _said(where, table, "proxy_user", "proxy_password")
    if not table.get("proxy"):
        if said:
            raise ConfigurationError(f"{where}: proxy_user without a proxy")
        return None
    proxy = proxy_of(f"{where}: proxy", table["proxy"])._replace(authorization=said, private=True)
    if said and not proxy.tls:
        _check_plain_text(where, table)
    return proxy


def _socks(where: str, table: dict[str, Any]) -> Proxy:
    """Read a SOCKS proxy, whose user and password may stand in its URL, percent-encoded."""
    scheme, _, rest = table["proxy"].partition("://")
    login, _, host = rest.rpartition("@")
    user, password = table.get("proxy_user", ""), table.get("proxy_password", "")
    if login:
        if user or password:
            raise ConfigurationError(f"{where}: expected a user in proxy or in proxy_user, not both")
        user, password = (unquote(part) for part in login.partition(":")[::2])
    try:
        proxy = proxy_of("", f"http://{host}")
        port = urlsplit(f"http://{host}").port or _SOCKS_PORT
    except ConfigurationError:
        raise ConfigurationError(f"{where}: proxy: expected {scheme}://HOST:PORT") from None
    said = _socks_login(where, user, password)
    if said:
        _check_plain_text(where, table)
    return Proxy(proxy.host, port, False, said, private=True, socks=scheme)


def _socks_login(where: str, user: str, password: str) -> Secret:
    if not (user or password):
        return NOTHING
    for name, value in (("user", user), ("password", password)):
        if not (value.isascii() and value.isprintable() and 0 < len(value) <= _SOCKS_TEXT):
            text = f"expected 1 to {_SOCKS_TEXT} printable ASCII characters for SOCKS"
            raise ConfigurationError(f"{where}: {name} of the proxy: {text}")
    if ":" in user:
        raise ConfigurationError(f"{where}: user of the proxy: expected no colon")
    return Secret(f"{user}:{password}".encode("ascii"))


def proxy_of(where: str, url: str) -> Proxy:
    """Read the URL of an HTTP proxy, without a user; raises ``ConfigurationError``."""
    try:
        parts = urlsplit(url)
        port = parts.port or _PROXY_PORTS.get(parts.scheme, 0)
    except ValueError as error:
        raise ConfigurationError(f"{where}: {error}") from None
    if "@" in parts.netloc:
        raise ConfigurationError(f"{where}: expected its user in proxy_user")
    known = parts.scheme in _PROXY_PORTS and parts.hostname and parts.path in {"", "/"}
    if not known or parts.query or parts.fragment:
        raise ConfigurationError(f"{where}: expected http://HOST:PORT or https://HOST:PORT")
    return Proxy(str(parts.hostname), port, parts.scheme == "https")


def _origin(where: str, text: str) -> SiteOrigin:
    try:
        url = HttpUrl.parse(text)
    except UrlRefused as error:
        raise ConfigurationError(f"{where}: {error.detail}") from None
    if url.path != "/" or url.query:
        raise ConfigurationError(f"{where}: expected scheme, host and port only")
    return SiteOrigin.of(url)


def _site(where: str, origin: SiteOrigin, table: Any, folder: PurePath) -> SiteCredentials:
    _check_table(where, table)
    _check_values(where, table, _TEXTS, {_PLAIN_TEXT, _DIGEST})
    if table.get(_DIGEST) and not table.get("user"):
        raise ConfigurationError(f"{where}: digest without user")
    said = _said(where, table, "user", "password")
    given = table.get("authorization", "")
    if said and given:
        raise ConfigurationError(f"{where}: expected user or authorization, not both")
    if (said or given) and origin.scheme != "https":
        _check_plain_text(where, table)
    files = _certificate(where, origin, table, folder)
    if table.get(_DIGEST):
        return SiteCredentials(NOTHING, *files, Login(table["user"], table.get("password", "")))
    return SiteCredentials(said or Secret(given.encode()), *files)


def _certificate(where: str, origin: SiteOrigin, table: dict[str, Any], folder: PurePath) -> tuple[str, str]:
    """Return the files of a client certificate and of its key, empty = there is none."""
    certificate, key = table.get("client_certificate", ""), table.get("client_key", "")
    if not certificate:
        if key:
            raise ConfigurationError(f"{where}: client_key without client_certificate")
        return "", ""
    if origin.scheme != "https":
        raise ConfigurationError(f"{where}: a client certificate needs https")
    return str(folder / certificate), str(folder / (key or certificate))


def _said(where: str, table: dict[str, Any], user: str, password: str) -> Secret:
    """Return what two keys say by HTTP Basic, empty where they are missing."""
    if not table.get(user):
        if password in table:
            raise ConfigurationError(f"{where}: {password} without {user}")
        return NOTHING
    if ":" in table[user]:
        raise ConfigurationError(f"{where}: {user} has a colon, which HTTP Basic does not permit")
    return basic(table[user], table.get(password, ""))


def _check_table(where: str, table: Any) -> None:
    if not isinstance(table, dict):
        raise ConfigurationError(f"{where}: expected a table")


def _check_values(where: str, table: dict[str, Any], texts: frozenset[str], flags: set[str]) -> None:
    for name, value in table.items():
        if name not in texts | flags:
            known = ", ".join(sorted(texts | flags))
            raise ConfigurationError(f"{where}: {name} is not known, expected some of {known}")
        if name in flags and not isinstance(value, bool):
            raise ConfigurationError(f"{where}: {name}: expected true or false")
        if name in texts and not (isinstance(value, str) and (not value or value.isprintable())):
            raise ConfigurationError(f"{where}: {name}: expected one line of text")
    if not table.get("authorization", "").isascii():
        raise ConfigurationError(f"{where}: authorization: expected ASCII characters")


def _check_plain_text(where: str, table: dict[str, Any]) -> None:
    """Refuse to send a password without TLS, unless the operator said so."""
    if not table.get(_PLAIN_TEXT):
        text = f"a password would go in plain text; {_PLAIN_TEXT} = true permits that"
        raise ConfigurationError(f"{where}: {text}")


def _first(names: Mapping[str, Any]) -> str:
    return next(iter(names), "provider")
