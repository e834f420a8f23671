"""What a request needs to get through: the proxy, password and client certificate of its provider and origin.

They are added to a request as it is sent, and nowhere else: what is stored, logged or passed to a project's
components never has them. A redirect makes a new request, which gets what its own origin is for.
"""

import ssl
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from lcc_scrapy.domain.errors import ConfigurationError
from lcc_scrapy.domain.roots import HttpUrl
from lcc_scrapy.domain.site_access import (
    NOTHING,
    ProviderAccess,
    Proxy,
    Secret,
    SiteCredentials,
    SiteOrigin,
    parse,
)
from lcc_scrapy.http.digest import DigestSession
from lcc_scrapy.http.outgoing import tls_context
from lcc_scrapy.http.request import Origin, Request
from lcc_scrapy.http.socks import check_installed

_AUTHORIZATION, _PROXY_AUTHORIZATION = b"authorization", b"proxy-authorization"


class Access(NamedTuple):
    """How one request is sent. ``identity``: TLS with a client certificate, None = without.

    ``digest`` answers a site that asks for the password by HTTP Digest, None = nobody does.
    """

    proxy: Proxy | None = None
    authorization: Secret = NOTHING
    identity: ssl.SSLContext | None = None
    digest: DigestSession | None = None


DIRECT = Access()


class Credentials:
    """What the operator's file says. ``verify``: whether the certificates of sites must verify."""

    def __init__(self, path: str = "", *, verify: bool = True) -> None:
        self._verify = verify
        self._providers: dict[int, dict[SiteOrigin | None, Access]] = {}
        self.read(path)

    def read(self, path: str) -> None:
        """Take what the file says now, an empty path = nothing; raises ``ConfigurationError``.

        If it raises, all is as it was before.
        """
        self._providers = {pid: self._accesses(access) for pid, access in providers_in(path).items()}

    def of(self, pid: int, url: HttpUrl) -> Access:
        """Return how a provider's URL is asked for; ``DIRECT`` if there is nothing special about it."""
        accesses = self._providers.get(pid)
        if accesses is None:
            return DIRECT
        return accesses.get(SiteOrigin.of(url)) or accesses[None]

    def viewer(self, pid: int, url: HttpUrl) -> int:
        """Return for whom an answer is good: for the provider alone, or for all, 0."""
        return 0 if self.of(pid, url) == DIRECT else pid

    def _accesses(self, provider: ProviderAccess) -> dict[SiteOrigin | None, Access]:
        if provider.proxy and provider.proxy.socks:
            check_installed()
        found: dict[SiteOrigin | None, Access] = {None: Access(provider.proxy)}
        for origin, site in provider.sites.items():
            identity = self._identity(site) if site.certificate else None
            digest = DigestSession(site.digest) if site.digest else None
            found[origin] = Access(provider.proxy, site.authorization, identity, digest)
        return found

    def _identity(self, site: SiteCredentials) -> ssl.SSLContext:
        context = tls_context(verify=self._verify)
        try:
            context.load_cert_chain(site.certificate, site.key_file, password="")  # nobody is asked for one
        except (OSError, ValueError) as error:
            files = " and ".join(dict.fromkeys((site.certificate, site.key_file)))
            raise ConfigurationError(f"LCC_CREDENTIALS_FILE: {files} cannot be used: {_why(error)}") from None
        return context


def providers_in(path: str) -> dict[int, ProviderAccess]:
    """Return what a file says of each provider, an empty path = of none; raises ``ConfigurationError``."""
    try:
        return parse(Path(path).read_text(encoding="utf-8"), str(Path(path).parent)) if path else {}
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigurationError(f"LCC_CREDENTIALS_FILE: {path}: {_why(error)}") from None
    except ConfigurationError as error:
        raise ConfigurationError(f"LCC_CREDENTIALS_FILE: {path}: {error}") from None


def _why(error: Exception) -> str:
    if isinstance(error, ssl.SSLError):
        return f"TLS says {error.reason or 'that they do not fit'}"
    return getattr(error, "strerror", None) or type(error).__name__


def request_to(
    url: HttpUrl,
    fields: Sequence[tuple[bytes, bytes]],
    access: Access = DIRECT,
    method: str = "GET",
    data: bytes = b"",
    *,
    pid: int = 0,
) -> Request:
    """Return the request for a URL of a provider, 0 = of none.

    An Authorization among its ``fields`` goes before that of ``access``.
    """
    proxy, target = access.proxy, url.target
    origin = Origin(url.host, url.port, url.scheme == "https", proxy, access.identity, pid)
    if (access.digest or access.authorization) and not brings_own(fields):
        said = access.digest.answer(method, target) if access.digest else access.authorization
        fields = [*fields, (b"Authorization", said)] if said else fields
    if proxy is None:
        return Request(origin, target, fields, method, data)
    fields = [field for field in fields if field[0].lower() != _PROXY_AUTHORIZATION]
    if not (origin.tls or proxy.socks):
        target = str(url)
        fields += [(b"Proxy-Authorization", proxy.authorization)] if proxy.authorization else []
    return Request(origin, target, fields, method, data)


def brings_own(fields: Sequence[tuple[bytes, bytes]]) -> bool:
    """Tell whether a request has an Authorization of its own."""
    return any(name.lower() == _AUTHORIZATION for name, _ in fields)
