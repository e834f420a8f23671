"""What follows when a site does not serve what its provider declared.

A cache before the site may serve the former page, an empty one or a 404 for a while after a push. So such an
answer is tried again, a bounded number of times, before it is believed; decisions are values. Meanwhile no
answer takes the place of a copy that is as declared.

A *mismatch* is a 200 with another type (607), or with another length or digest (608) than declared.
"""

from dataclasses import dataclass
from enum import Enum

from lcc_scrapy.domain.cache import CachedUrl
from lcc_scrapy.domain.entries import Declared

OTHER_TYPE, OTHER_CONTENT = 607, 608
MISMATCHES = frozenset({OTHER_TYPE, OTHER_CONTENT})

MISMATCHES_IN_A_ROW = 20
"""Last tries of a provider that mismatch, with no match in between: from then on the first answer counts."""

_MD5_OF_NOTHING = "d41d8cd98f00b204e9800998ecf8427e"


class Copy(Enum):
    """What the cache holds of a URL whose answer is judged."""

    NONE = "none"
    OTHER = "other"
    AS_DECLARED = "as declared"


@dataclass(frozen=True, slots=True)
class Mismatch:
    """What follows a mismatch: whether the body is stored, and when the URL is tried again.

    ``again`` (epoch seconds) is 0 after the last try, which the provider is told of. ``conditional``: the
    next request may say which bytes came last, for they are not needed a second time.
    """

    stored: bool
    again: float = 0.0
    conditional: bool = True


NOT_TRIED_AGAIN = (
    "its site serves other contents than declared: mismatches are not tried again until one matches"
)
"""What is said of such a provider."""


def is_mismatching(in_a_row: int) -> bool:
    """Tell whether the first answer of a provider's site counts, after so many mismatches in a row."""
    return in_a_row >= MISMATCHES_IN_A_ROW


def next_try(tries: int, delays: tuple[float, ...], now: float, in_a_row: int = 0) -> float:
    """Return when a URL that was tried so often before is tried again; 0 = that was its last try.

    ``in_a_row`` counts the last tries of its provider that mismatched, with no match in between.
    """
    if tries >= len(delays) or is_mismatching(in_a_row):
        return 0.0
    return now + delays[tries]


def after_mismatch(
    code: int,
    *,
    empty: bool,
    copy: Copy,
    strict: bool,
    tries: int,
    delays: tuple[float, ...],
    now: float,
    in_a_row: int = 0,
) -> Mismatch:
    """Decide about a mismatch after ``tries`` earlier ones; ``empty``: no bytes came, and some were declared.

    New bytes of the declared type are stored at once, so that freshness does not wait; those of another type
    and an empty body only at the last try, if nothing better is there.
    """
    wanted = not strict and copy is not Copy.AS_DECLARED and not (empty and copy is Copy.OTHER)
    again = next_try(tries, delays, now, in_a_row)
    stored = wanted and (not again or (code == OTHER_CONTENT and not empty))
    may_be_last = tries + 1 >= len(delays) or is_mismatching(in_a_row + 1)
    return Mismatch(stored, again, conditional=stored or not wanted or not may_be_last)


def is_empty(declared: Declared, length: int) -> bool:
    """Tell whether no bytes came where some were declared."""
    if length:
        return False
    return bool(declared.length) or declared.md5 not in {None, _MD5_OF_NOTHING}


def agrees(cached: CachedUrl, declared: Declared) -> bool:
    """Tell whether a copy is what was declared, as far as md5 or len say anything."""
    if declared.md5 is None and declared.length is None:
        return False
    return declared.md5 in {None, cached.fetched_md5} and declared.length in {None, cached.fetched_len}


def differs(cached: CachedUrl) -> bool:
    """Tell whether what is held of a document is not what its provider declared last."""
    declared = cached.declared
    said = declared.md5 is not None or declared.length is not None
    return said and not agrees(cached, declared)


def is_right(cached: CachedUrl) -> bool:
    """Tell whether what is held of a document is what its provider declared last, if it declared anything."""
    return agrees(cached, cached.declared)


def copy_of(cached: CachedUrl | None, *declared: Declared) -> Copy:
    """Return what a copy is beside some declarations."""
    if cached is None:
        return Copy.NONE
    return Copy.AS_DECLARED if any(agrees(cached, one) for one in declared) else Copy.OTHER


def one_more(ended: float, now: float, delays: tuple[float, ...]) -> float:
    """Return from when on a declaration may be asked for once more whose tries ended; 0 = now."""
    due = ended + (delays[-1] if delays else 0.0)
    return due if due > now else 0.0


def strong(etag: str) -> str:
    """Return an entity tag that stands for equal bytes (RFC 9110 section 8.8.3), or nothing."""
    quoted = len(etag) > 2 and etag[0] == etag[-1] == '"'  # noqa: PLR2004 - more than the quotes
    return etag if quoted else ""
