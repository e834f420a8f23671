"""Which texts are addresses that mail can go to: exactly one each, and nothing that steers a mail server."""

import re

from lcc_scrapy.domain.hostnames import ascii_name

ADDRESS_MAX = 254
"""Characters of an address, in the form in which it is sent (RFC 5321, erratum 1690)."""

_LOCAL_MAX = 64
_LOCAL = re.compile(r"[A-Za-z0-9!#$%&'*+/=?^_`{|}~-]+(\.[A-Za-z0-9!#$%&'*+/=?^_`{|}~-]+)*", re.ASCII)
"""A dot-atom (RFC 5322). Quoted names may contain anything, and hardly anybody has one: they are refused."""

_LABEL = r"[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?"
_DOMAIN = re.compile(rf"{_LABEL}(\.{_LABEL})*", re.ASCII)
_SENDER = re.compile(r"(?P<name>[^<>]*)<(?P<address>[^<>]*)>")


def address(text: str) -> str:
    """Return an address as it is sent: the domain in IDNA form and lower case, the name before it as it is.

    Raises ``ValueError`` for what is not one address: lists, routes, line breaks, blanks, quotes, comments,
    addresses of hosts in brackets, and names beyond ASCII, which not every mail server takes.
    """
    local, at, domain = text.rpartition("@")
    if len(text) > ADDRESS_MAX or not at or len(local) > _LOCAL_MAX or not _LOCAL.fullmatch(local):
        raise _not_an_address(text)
    sent = f"{local}@{_domain(domain, text)}"
    if len(sent) > ADDRESS_MAX:
        raise _not_an_address(text)
    return sent


def is_address(text: str) -> bool:
    """Tell whether mail can go there."""
    try:
        address(text)
    except ValueError:
        return False
    return True


def sender(text: str) -> tuple[str, str]:
    """Return the name and the address of ``LCC of Example <lcc@example.org>`` or of a bare address."""
    given = text.strip()
    match = _SENDER.fullmatch(given)
    if match is None:
        return "", address(given)
    if not match["name"].isprintable():
        raise _not_an_address(text)
    return match["name"].strip().strip('"'), address(match["address"])


def _domain(domain: str, whole: str) -> str:
    try:
        name = ascii_name(domain)
    except ValueError:
        raise _not_an_address(whole) from None
    if not _DOMAIN.fullmatch(name):
        raise _not_an_address(whole)
    return name


def _not_an_address(text: str) -> ValueError:
    return ValueError(f"{text[:80]!r}, expected one address like webmaster@example.org")
