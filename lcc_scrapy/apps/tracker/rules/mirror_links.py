"""Mirrors in headers: ``Link: <…>; rel=duplicate; pri=1; geo=de`` (RFC 6249), and names of digests."""

from base64 import b64encode
from collections.abc import Iterable, Iterator, Sequence

LINK_BYTES = 4000
"""Of one Link header: clients and proxies bound headers."""

DIGESTS = {16: ("md5", "MD5"), 20: ("sha-1", "SHA"), 32: ("sha-256", "SHA-256"), 64: ("sha-512", "SHA-512")}
"""Names of digests by their bytes: in Metalink (RFC 5854) and in ``Digest`` (RFC 3230)."""

_COUNTRY_LENGTH = 2
_NO_COUNTRIES = frozenset({"ac", "eu", "su"})
"""Top-level domains of two letters that ISO 3166-1 does not have."""


def country_of(domain: str) -> str:
    """Return the country (ISO 3166-1) whose domain it is, "" = none."""
    if len(domain) != _COUNTRY_LENGTH or not domain.isalpha() or domain in _NO_COUNTRIES:
        return ""
    return "gb" if domain == "uk" else domain


def link_header(mirrors: Iterable[tuple[str, str]], more: Sequence[str] = (), anchor: str = "") -> str:
    """Return the value of Link: mirrors (URL, domain), best first, behind ``more`` links.

    ``anchor`` is what they are mirrors of where that is not the answer itself (RFC 8288, section 3.2). All
    URLs are escaped, and so have neither ">" nor a line's end. Links that do not fit are left out.
    """
    about = f'; anchor="{anchor}"' if anchor else ""
    links = [f"{one}{about}" for one in more]
    return ", ".join(_fitting([*links, *(f"{one}{about}" for one in _duplicates(mirrors))]))


def _duplicates(mirrors: Iterable[tuple[str, str]]) -> Iterator[str]:
    for number, (url, domain) in enumerate(mirrors, 1):
        country = country_of(domain)
        yield f"<{url}>; rel=duplicate; pri={number}{f'; geo={country}' if country else ''}"


def _fitting(links: Iterable[str]) -> Iterator[str]:
    room = LINK_BYTES
    for link in links:
        if len(link) + 2 <= room:
            room -= len(link) + 2
            yield link


def digest_header(digest: bytes) -> str:
    """Return the value of Digest for a digest of a content, "" = of no kind that is known."""
    known = DIGESTS.get(len(digest))
    return f"{known[1]}={b64encode(digest).decode()}" if known else ""
