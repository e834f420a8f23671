"""URL entries: what a provider says of one URL, its key, and the checks at the edge (seed 003 section 4).

A URL is identified by its provider, its conceptual URL (curl) and its mimetype, so that one curl may
have several views. The key is the first 16 bytes of SHA-256 over ``pid NUL curl NUL mimetype``; as 32
hex digits it is the *docid* in every export.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from enum import StrEnum
from hashlib import blake2b, sha256
from zlib import crc32

from lcc_scrapy.domain import timeslots
from lcc_scrapy.domain.errors import UrlRefused
from lcc_scrapy.domain.roots import URL_MAX, HttpUrl, Root, inside, not_below

MIMETYPE_MAX = 127
SUBTYPE_MAX = 255
EPOCH_MAX = 1 << 53
ANY_TYPE = "*/*"
"""The mimetype of a URL that is asked for whatever it is: what spiders found."""

NO_TYPE = "application/octet-stream"
"""The mimetype of what is served without one (RFC 9110 section 8.3)."""

RENDERED = "text/x-rendered-html"
"""The mimetype of what a browser makes of a page: reserved, no site may declare or serve it."""

SYNONYMS = {"c": "curl", "b": "burl", "f": "furl"}

_HALF, _SHORT = 1 << 31, (1 << 16) - 1
_NO_DIGITS = bytes(set(range(256)) - set(b"0123456789"))
_MIMETYPE = re.compile(r"[a-z0-9!#$&^_.+*-]+/[a-z0-9!#$&^_.+*-]+")
_SUBTYPE = re.compile(r"[^\s:][^:]*:.*")
_MD5 = re.compile(r"[0-9a-f]{32}")
_COMPACT_TIME = re.compile(r"\d{14}")
_HAS_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://")
_UNUSABLE = re.compile(r"[\x00-\x1f\x7f\ud800-\udfff]")


class Operation(StrEnum):
    """What an element of a set asks for."""

    UPDATE = "update"
    REMOVE = "remove"
    PRESENT = "present"
    """Refused, but its key was readable: a full set must not take it for absent."""


class Origin(StrEnum):
    """Who brought a URL into the LCC."""

    PUSH = "push"
    SPIDER = "spider"
    DIRECTIVE = "directive"
    SOURCE = "source"
    """A sitemap or feed of its provider named it."""
    SAMPLE = "sample"
    """Only in the queue: a document that its provider pushed is sampled."""
    REFETCH = "refetch"
    """Only in the queue: the same, because an operator asks for it."""
    INDEXNOW = "indexnow"
    """Only in the queue: submitted by IndexNow, which says no type; its document counts as pushed."""
    RENDERED = "rendered"
    """Only in the cache: a browser made it of a page."""


@dataclass(frozen=True, slots=True)
class Declared:
    """What the provider declares about the content: epoch seconds, bytes, 32 hex digits; None = not said."""

    mtime: int | None = None
    length: int | None = None
    md5: str | None = None

    def same_content(self, other: "Declared", *, strict_mtime: bool = False) -> bool:
        """Tell whether both surely speak of the same content; a missing md5 or len counts as changed."""
        if self.md5 is None or self.length is None:
            return False
        if (self.md5, self.length) != (other.md5, other.length):
            return False
        return not strict_mtime or (self.mtime is not None and self.mtime == other.mtime)


@dataclass(frozen=True, slots=True)
class UrlEntry:
    """One URL of a set, checked and normalised.

    ``burl`` is None when its provider says that it is not browsable; ``timeofday`` is a mask (empty =
    provider's own).
    """

    curl: str
    mimetype: str
    operation: Operation = Operation.UPDATE
    furl: str = ""
    burl: str | None = None
    subtype: str = ""
    declared: Declared = Declared()
    timeofday: str = timeslots.ALWAYS
    sent: str | None = None
    """The form of what it was submitted with (``domain.sent``); None = nobody submitted it."""


@dataclass(frozen=True, slots=True)
class EntryRules:
    """What the elements of one set are checked against."""

    mimetypes: tuple[str, ...]
    roots: tuple[Root, ...]
    urlprefix: str = ""
    timeofday: str = timeslots.ALWAYS
    slots: int = timeslots.HOURS_PER_WEEK
    url_length: int = URL_MAX
    """Characters of a URL, at most ``URL_MAX``, which is what can be stored and what removals may have."""


def urlkey(pid: int, curl: str, mimetype: str) -> bytes:
    """Return the 16-byte key of a URL; ``.hex()`` of it is the docid."""
    return sha256(f"{pid}\0{curl}\0{mimetype}".encode("utf-8", "surrogatepass")).digest()[:16]


def furlkey(pid: int, furl: str) -> bytes:
    """Return the 16-byte key of a fetch URL: by it one asks what is known of that place."""
    return sha256(f"{pid}\0{furl}".encode("utf-8", "surrogatepass")).digest()[:16]


def plain_mimetype(text: str) -> str:
    """Lower-case a mimetype and cut its parameters off."""
    return text.partition(";")[0].strip().lower()


def served_mimetype(mimetype: str) -> str:
    """Return a type that was served as the mimetype of a key; a long one may have been cut."""
    usable = len(mimetype) < MIMETYPE_MAX and _MIMETYPE.fullmatch(mimetype) and mimetype != RENDERED
    return mimetype if usable else NO_TYPE


def namehash(url: str) -> int:
    """Return the number (64 bits, signed) by which an index finds what is known of a URL.

    URLs that arrive together are to lie together, so that a batch touches few pages of the index. So its
    upper half tells the folder, and within that the last number of the name without its last three digits.
    Only the lower half has to be hard to make collide.
    """
    name = url.encode("utf-8", "surrogatepass")
    begin = name.rfind(b"/") + 1
    near = (crc32(name[:begin]) & _SHORT) << 16 | crc32(name[begin:].rstrip(_NO_DIGITS)[:-3]) & _SHORT
    return (near - _HALF) << 32 | int.from_bytes(blake2b(name, digest_size=4).digest(), "big")


def namehashes(curl: str, furl: str) -> tuple[int, int | None]:
    """Return the hashes of both names of a URL; None for the fetch URL where it is the same."""
    return namehash(curl), None if furl == curl else namehash(furl)


def is_type_pattern(text: str) -> bool:
    """Tell whether a text is a mimetype, ``type/*`` or ``*/*``."""
    kind, _, name = text.partition("/")
    return _MIMETYPE.fullmatch(text) is not None and (kind != "*" or name == "*")


def accepts(patterns: tuple[str, ...], mimetype: str) -> bool:
    """Tell whether one of the patterns (``text/*``, ``application/pdf``, ``*/*``) admits a mimetype."""
    return not {"*/*", mimetype, f"{mimetype.partition('/')[0]}/*"}.isdisjoint(patterns)


def with_prefix(prefix: str, url: str) -> str:
    """Put the set's ``urlprefix`` before a non-empty URL that has no ``scheme://``."""
    return url if not url or _HAS_SCHEME.match(url) else prefix + url


def readable_key(attributes: Mapping[str, str], rules: EntryRules) -> tuple[str, str] | None:
    """Return (curl, mimetype) of an element whose other attributes may be wrong, or None."""
    curl = with_prefix(rules.urlprefix, attributes.get("curl", ""))
    mimetype = plain_mimetype(attributes.get("mimetype", ""))
    if not curl or not _MIMETYPE.fullmatch(mimetype) or len(curl) > URL_MAX or len(mimetype) > MIMETYPE_MAX:
        return None
    return curl, mimetype


def fetch_url(attributes: Mapping[str, str], rules: EntryRules) -> str:
    """Return the absolute fetch URL of an element, as far as it can be told (for error reports)."""
    return with_prefix(rules.urlprefix, attributes.get("furl") or attributes.get("curl", ""))


def read_entry(attributes: Mapping[str, str], rules: EntryRules) -> UrlEntry:
    """Check one ``<url>`` element (canonical names) and return its entry.

    Raises ``UrlRefused`` with 701 to 708. Removals are not asked for an accepted mimetype or a root.
    """
    curl = with_prefix(rules.urlprefix, attributes.get("curl", ""))
    if not curl:
        raise UrlRefused(701)
    _check_length("curl", curl, URL_MAX)
    if _UNUSABLE.search(curl):
        raise UrlRefused(705, "control character in curl")
    mimetype = _mimetype(attributes.get("mimetype", ""))
    if _is_removal(attributes):
        return UrlEntry(curl, mimetype, Operation.REMOVE)
    _check_length("curl", curl, rules.url_length)
    if not accepts(rules.mimetypes, mimetype):
        raise UrlRefused(703, mimetype)
    where = fetch_url(attributes, rules)
    url = HttpUrl.parse(where)
    furl = str(url)
    _check_length("URL", furl, rules.url_length)
    if not inside(url, rules.roots):
        raise UrlRefused(704, not_below(rules.roots, url))
    return UrlEntry(
        curl,
        mimetype,
        Operation.UPDATE,
        furl,
        furl if curl == where and "burl" not in attributes else _burl(attributes, rules, curl, furl),
        _subtype(attributes.get("subtype", "")),
        Declared(
            _mtime(attributes.get("mtime", "")),
            _length(attributes.get("len", "")),
            _md5(attributes.get("md5", "")),
        ),
        _timeofday(attributes.get("timeofday", ""), rules),
    )


def _check_length(what: str, url: str, most: int) -> None:
    if len(url) > most:
        raise UrlRefused(707, f"{what} of {len(url)} characters, at most {most}")


def _is_removal(attributes: Mapping[str, str]) -> bool:
    operation = attributes.get("op", "")
    if operation not in {"", "update", "remove"}:
        raise UrlRefused(706, f"op {operation!r}, expected update or remove")
    return operation == "remove" or attributes.get("furl") == ""


def _mimetype(text: str) -> str:
    mimetype = plain_mimetype(text)
    if not mimetype:
        raise UrlRefused(702)
    if len(mimetype) > MIMETYPE_MAX:
        raise UrlRefused(707, f"mimetype of {len(mimetype)} characters, at most {MIMETYPE_MAX}")
    if not _MIMETYPE.fullmatch(mimetype) or mimetype == RENDERED:
        raise UrlRefused(706, f"mimetype {mimetype!r}")
    return mimetype


def _burl(attributes: Mapping[str, str], rules: EntryRules, curl: str, furl: str) -> str | None:
    burl = attributes.get("burl")
    if burl == "":
        return None
    if burl is None:
        return _browsable(curl) or furl
    try:
        url = str(HttpUrl.parse(with_prefix(rules.urlprefix, burl)))
        _check_length("URL", url, rules.url_length)
    except UrlRefused as error:
        raise UrlRefused(error.code, f"burl: {error.detail}") from None
    return url


def _browsable(curl: str) -> str | None:
    try:
        return str(HttpUrl.parse(curl))
    except UrlRefused:
        return None


def _subtype(text: str) -> str:
    usable = len(text) <= SUBTYPE_MAX and _SUBTYPE.fullmatch(text) and not _UNUSABLE.search(text)
    return text if usable else ""


def _md5(text: str) -> str | None:
    text = text.strip().lower()
    if text and not _MD5.fullmatch(text):
        raise UrlRefused(706, f"md5 {text!r}, expected 32 hex digits")
    return text or None


def _length(text: str) -> int | None:
    text = text.strip()
    if text and not (text.isascii() and text.isdigit() and len(text) < 19):  # noqa: PLR2004 - fits 63 bits
        raise UrlRefused(706, f"len {text!r}, expected a number of bytes")
    return int(text) if text else None


def _mtime(text: str) -> int | None:
    text = text.strip()
    if not text:
        return None
    try:
        moment = _epoch(text)
    except (ValueError, TypeError, OverflowError, IndexError):
        moment = -1
    if not 0 <= moment < EPOCH_MAX:
        raise UrlRefused(
            706, f"mtime {text!r}, expected epoch seconds, YYYYMMDDhhmmss, ISO 8601 or an HTTP date"
        )
    return moment


def _epoch(text: str) -> int:
    if _COMPACT_TIME.fullmatch(text):
        return _utc(datetime.strptime(text, "%Y%m%d%H%M%S").replace(tzinfo=UTC))
    if text.isascii() and text.isdigit():
        return int(text)
    if text[:1].isdigit():
        return _utc(datetime.fromisoformat(text))
    return _utc(parsedate_to_datetime(text))


def _utc(moment: datetime) -> int:
    return int((moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp())


def _timeofday(text: str, rules: EntryRules) -> str:
    if not text:
        return timeslots.ALWAYS
    mask = timeslots.parse_mask(text, rules.slots)
    if timeslots.never_opens(timeslots.intersect(mask, rules.timeofday)):
        raise UrlRefused(708)
    return mask


@dataclass(frozen=True, slots=True)
class RefusedUrl:
    """A URL of an accepted set that was refused, as far as it could be read; ``mimetype`` may be empty."""

    curl: str
    mimetype: str
    furl: str
    code: int
    text: str
