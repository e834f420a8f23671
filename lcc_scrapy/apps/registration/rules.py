"""Registration: a site owner proves to be in a position to alter a site (seed 003 section 3).

A secret and a password are given out as a pair. The owner places the secret in a file of a fixed name. When
the file was retrieved the password is active, and the folder of the file is a root. The secret is no part of
the request for the file, so that a server which echoes its requests proves nothing.
"""

import hmac
import re
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import cache
from hashlib import sha256
from typing import Any
from urllib.parse import unquote
from zoneinfo import available_timezones

from lcc_scrapy.domain import timeslots
from lcc_scrapy.domain.errors import BadField, UrlRefused
from lcc_scrapy.domain.notations import listed, size
from lcc_scrapy.domain.references import redirect
from lcc_scrapy.domain.roots import HttpUrl, Root
from lcc_scrapy.domain.timeslots import ALWAYS

OFF, APPROVE, OPEN = "off", "approve", "open"

FILE = "lcc-registration.txt"
"""The name of the file with the secret."""

BODY_MAX = 1024
"""Bytes of that file that are read at most."""

ROOTS_MAX = 100
"""Roots that a provider may have by its own proofs."""

PASSWORD_ROOTS_MAX = 5
"""Roots of a provider that may get a new password by proofs: one is wanted for each of them."""

CONTACT_MAX = 254
_BANDWIDTH_MAX = (1 << 63) - 1
_MAIL = re.compile(r"[A-Za-z0-9.!#$%&'*+/=?^_`{|}~-]{1,64}@[A-Za-z0-9-]{1,63}(\.[A-Za-z0-9-]{1,63}){1,8}")
_SECRET = re.compile(rb"[0-9a-f]{40}")
_FILE_LIKE = re.compile(r"[^/]+\.(?:html?|php|txt|xml|aspx?|jsp|cgi)", re.IGNORECASE)
WITH_TLS = "lccs://"
"""Before the address of an update notification server: it has TLS."""
_UNS = re.compile(r"(?:\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9.-]+):(\d{1,5})")
_PORT_MAX = 65535


class Kind(StrEnum):
    """What a proof is for."""

    PROVIDER = "provider"
    ROOT = "root"
    PASSWORD = "password"  # noqa: S105 - the word itself


class Stage(StrEnum):
    """How far a registration is. One that is complete has no row any more."""

    WAITING = "waiting"
    """For its proof."""
    PROVED = "proved"
    """It waits for the operator's approval."""


@dataclass(frozen=True, slots=True)
class Registration:
    """What is kept of a registration until it is complete (table ``registrations``). Times: epoch seconds.

    ``secret`` is the SHA-256 of the secret, ``password`` the hash of the password (empty for a further root,
    which needs none), ``site`` the folder that was named first, ``root`` the one that was proved (empty
    before). ``bandwidth``, ``timeofday``, ``timezone`` and ``contact`` are as in ``pidb``.
    """

    secret: str
    pid: int
    kind: str
    stage: str
    site: str
    password: str
    contact: str
    bandwidth: int
    timeofday: str
    timezone: str
    root: str
    address: str
    created: int
    expires: int

    def proved(self, root: str, expires: int) -> "Registration":
        """Return it as it waits for approval."""
        return replace(self, stage=Stage.PROVED, root=root, expires=expires)


@dataclass(frozen=True, slots=True)
class Wanted:
    """What a site owner asks for, checked. ``site`` is a folder, ``bandwidth`` 0 = no limit."""

    site: HttpUrl
    contact: str = ""
    bandwidth: int = 0
    timeofday: str = ALWAYS
    timezone: str = ""


def digest_of(secret: str) -> str:
    """Return what is kept of a secret: enough for one of 160 random bits."""
    return sha256(secret.encode("utf-8", "surrogatepass")).hexdigest()


def proves(digest: str, body: bytes) -> bool:
    """Tell whether the body of the file is exactly the secret; one line end may follow."""
    text = body.removesuffix(b"\n").removesuffix(b"\r")
    found = sha256(text).hexdigest()
    return _SECRET.fullmatch(text) is not None and hmac.compare_digest(found, digest)


# --- what people write ---------------------------------------------------------------------------


def folder_of(text: str, allowed: frozenset[int], field: str = "site") -> HttpUrl:
    """Read the address of a site, a folder or a page in it; returns the folder, its path ends in a slash.

    Raises ``BadField`` that says what to write instead.
    """
    text = text.strip()
    if not text:
        raise BadField(field, "write the address of your site, for example https://www.example.org/")
    if "://" not in text:
        raise BadField(field, f"write https:// or http:// in front: https://{text[:200]}")
    if "?" in text:
        raise BadField(field, "write the address of the folder only, up to the question mark and without it")
    folder = _folder(text.partition("#")[0], field)
    check_place(folder, allowed, field)
    return folder


def _folder(text: str, field: str) -> HttpUrl:
    try:
        url = HttpUrl.parse(text)
        path, _, last = url.path.rpartition("/")
        if last and not _FILE_LIKE.fullmatch(last):
            path = url.path
        folder = replace(url, path=f"{path}/")
        HttpUrl.parse(str(folder) + FILE)
        Root.parse(str(folder))
    except UrlRefused as error:
        raise BadField(field, f"this address cannot be used: {error.detail}") from None
    return folder


def check_place(folder: HttpUrl, allowed: frozenset[int], field: str) -> None:
    """Refuse folders that prove nothing, and ports that are not for sites; raises ``BadField``."""
    if folder.port not in allowed:
        raise BadField(field, f"port {folder.port} is not permitted here")
    if _first_segment(folder.path) == ".well-known":
        raise BadField(field, "/.well-known is no place for the file: name the folder of your documents")


def _first_segment(path: str) -> str:
    return unquote(path).lstrip("/").partition("/")[0].lower()


def root_of(asked: HttpUrl, answered: HttpUrl) -> str:
    """Return the root that a file proves: the folder in which it was found.

    ``asked`` and ``answered`` are URLs of the file, of one host. http stays http where it led to https: such
    a root covers both.
    """
    found = replace(answered, path=answered.path.removesuffix(FILE))
    if asked.scheme == "http" and asked.has_default_port and answered.has_default_port:
        found = replace(found, scheme="http", port=80)
    return str(Root(found))


def redirected(asked: HttpUrl, location: bytes, allowed: frozenset[int]) -> HttpUrl:
    """Return where a redirect leads; raises ``BadField`` unless it is the same file name on the same host."""
    try:
        target = redirect(location, asked)
    except UrlRefused:
        raise BadField("redirect", "to what is no URL") from None
    if target.host != asked.host:
        raise BadField("redirect", "to another host")
    if target.query or not target.path.endswith(f"/{FILE}"):
        raise BadField("redirect", "to another file")
    folder = replace(target, path=target.path.removesuffix(FILE))
    try:
        Root.parse(str(folder))
    except UrlRefused as error:
        raise BadField("redirect", error.detail) from None
    check_place(folder, allowed, "redirect")
    return target


def contact_of(text: str) -> str:
    """Read an e-mail address; empty = none."""
    text = text.strip()
    if text and (len(text) > CONTACT_MAX or not _MAIL.fullmatch(text)):
        raise BadField("email", "this is no e-mail address; leave it empty if you want no mail")
    return text


def bandwidth_of(text: str, most: int) -> int:
    """Read bytes per second; empty or 0 = as many as the operator grants, ``most`` (0 = no limit)."""
    try:
        value = size(text.strip() or "0")
    except (ValueError, OverflowError):
        value = -1
    if not 0 <= value <= _BANDWIDTH_MAX:
        raise BadField("bandwidth", "write bytes per second, for example 200k or 2M; 0 = no limit")
    return min(value or most, most) if most else value


def hours_of(text: str, slots: int) -> str:
    """Read the hours in which documents may be fetched, as ``timeslots.parse_mask``; empty = any."""
    if text.strip().lower() in {"", "always"}:
        return ALWAYS
    try:
        mask = timeslots.parse_mask(text, slots)
    except UrlRefused as error:
        raise BadField("hours", error.detail) from None
    if timeslots.never_opens(mask):
        raise BadField("hours", "these leave no hour in which anything may be fetched")
    return mask


def zone_of(text: str) -> str:
    """Read the name of a time zone; empty = the operator's."""
    text = text.strip()
    if text and text not in _zones():
        raise BadField("timezone", "write a name like Europe/Amsterdam")
    return text


@cache
def _zones() -> frozenset[str]:
    return frozenset(available_timezones())


# --- what the operator writes --------------------------------------------------------------------


def ports(text: Any) -> frozenset[int]:
    """Read ports separated by blanks."""
    found = frozenset(int(one) for one in listed(text) if one.isascii() and one.isdigit())
    if len(found) != len(set(listed(text))) or not found or max(found) > _PORT_MAX or min(found) < 1:
        raise ValueError(f"{text!r}, expected ports like 80 443 8080")
    return found


def uns_addresses(text: Any) -> tuple[str, ...]:
    """Read ``host:port`` pairs, separated by blanks; ``lccs://`` before one says that it has TLS."""
    found = listed(text)
    for one in found:
        match = _UNS.fullmatch(one.removeprefix(WITH_TLS))
        if match is None or int(match[1]) > _PORT_MAX:
            raise ValueError(
                f"{one!r}, expected for example uns.example.org:9000 or {WITH_TLS}uns.example.org:9000"
            )
    return found
