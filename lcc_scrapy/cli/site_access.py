"""How the sites of a provider are reached, for people who look at it: never with what is secret."""

from collections.abc import Iterator
from typing import Any

from lcc_scrapy.cli import printing
from lcc_scrapy.domain.errors import ConfigurationError
from lcc_scrapy.domain.site_access import ProviderAccess


def access_of(path: str, pid: int) -> ProviderAccess | None:
    """Return what the file of LCC_CREDENTIALS_FILE says of a provider, None = nothing.

    Who may look at a provider need not be one who may read that file: then a note says so.
    """
    from lcc_scrapy.http.credentials import providers_in

    try:
        return providers_in(path).get(pid)
    except ConfigurationError as error:
        printing.note(f"how its sites are reached is not known: {error}")
        return None


def facts(access: ProviderAccess | None) -> dict[str, Any] | None:
    """Return it for JSON: the proxy, whether that wants a password, and what each origin is sent."""
    if access is None:
        return None
    proxy = access.proxy
    return {
        "proxy": str(proxy) if proxy else None,
        "proxy_password": bool(proxy and proxy.authorization),
        "origins": {str(origin): site.kinds for origin, site in access.sites.items()},
    }


def lines(access: ProviderAccess | None) -> Iterator[tuple[str, object]]:
    """Yield it in words; nothing where sites are reached directly and without credentials."""
    if access is None:
        return
    if access.proxy:
        yield "proxy", f"{access.proxy}{' with a password' if access.proxy.authorization else ''}"
    for origin, site in access.sites.items():
        yield "credentials", f"{origin}: {site}"
