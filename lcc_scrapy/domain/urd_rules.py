"""What a URD may say, whoever wrote it: the rules for files, commands and HTTP alike."""

import re
from dataclasses import replace

from lcc_scrapy.domain.boolean_rules import parse_rule
from lcc_scrapy.domain.directives import DEPTH_MAX, checked_owner
from lcc_scrapy.domain.errors import LccError, UrlRefused
from lcc_scrapy.domain.roots import HttpUrl
from lcc_scrapy.domain.urds import (
    EVERYTHING,
    KEYWORD_MAX,
    KEYWORDS_MAX,
    LEVELS,
    WEIGHT_MAX,
    Keyword,
    Method,
    Process,
    Urd,
)
from lcc_scrapy.domain.words import words_of_keyword

PROTOCOLS = ("http", "https")
TIMING_LEAST = 1000
"""Milliseconds between two checks of a page."""

TIMING_MAX = 10 * 365 * 86_400_000
THRESHOLD_MAX = 10**12
TIME_MAX = 2**53
"""Epoch milliseconds; JSON of other programs holds no larger whole number."""

NEVER = 2**62
"""When a page is due that nobody asks for."""

URDS_MAX = 10_000
"""URDs that one owner may have over the network; operators may give more."""

_PORT_MAX = 65_535
_SHOWN = 60
_UNWRITABLE = re.compile("[^\t\n\x20-\x7e\xa0-\ud7ff\ue000-\ufdcf\ufdf0-\ufffd\U00010000-\U0010ffff]")
"""What no XML document can hold, or shows nothing but harm on a terminal."""

_BREAKS = re.compile("[\t\n]")


class BadUrd(LccError):
    """A URD cannot be taken; the text says in one line what is wrong with it."""


class NoSuchUrd(LccError):
    """There is no URD of this number, or none of this owner."""


class TooManyUrds(LccError):
    """One owner has no more than ``URDS_MAX`` URDs over the network."""


def checked(urd: Urd) -> Urd:
    """Return a URD with its URL in normal form; raises ``BadUrd``.

    ``protocol`` and ``port`` are those of the URL if there is one: what was written only has to be possible.
    """
    _check_numbers(urd)
    _check_owner(urd.owner)
    if urd.protocol not in PROTOCOLS:
        raise BadUrd(f"protocol {urd.protocol[:_SHOWN]!r}, expected http or https")
    _check_keywords(urd.keywords)
    _check_process(urd)
    return _placed(urd)


def due_at(urd: Urd) -> int:
    """Return when its page is to be asked for next, or it expires (epoch ms); ``NEVER`` where nobody asks."""
    if urd.timing == 0 or urd.method is Method.PUSH or urd.uri == EVERYTHING:
        return NEVER
    due = urd.lastcheck + urd.timing
    return due if urd.expires is None else min(due, urd.expires)  # then what it reached ends


def same_interest(one: Urd, other: Urd) -> bool:
    """Tell whether two URDs say the same, whatever their numbers."""
    return replace(one, revision=0) == replace(other, revision=0)


def _check_numbers(urd: Urd) -> None:
    if urd.timing:
        _check("timing", urd.timing, TIMING_LEAST, TIMING_MAX)
    _check("lastcheck", urd.lastcheck, 0, TIME_MAX)
    _check("port", urd.port, 1, _PORT_MAX)
    _check("depth", urd.depth, 0, DEPTH_MAX)
    _check("urgency", urd.urgency, LEVELS[0], LEVELS[-1])
    _check("threshold", urd.threshold, 0, THRESHOLD_MAX)
    if urd.expires is not None:
        _check("expires", urd.expires, 1, TIME_MAX)


def _check(name: str, value: int, least: int, most: int) -> None:
    if not least <= value <= most:
        raise BadUrd(f"{name} {str(value)[:_SHOWN]}, expected a whole number from {least} to {most}")


def _check_owner(name: str) -> None:
    try:
        checked_owner(name)
    except ValueError as error:
        raise BadUrd(str(error)) from None


def _check_keywords(keywords: tuple[Keyword, ...]) -> None:
    if len(keywords) > KEYWORDS_MAX:
        raise BadUrd(f"{len(keywords)} keywords, at most {KEYWORDS_MAX}")
    seen: dict[str, str] = {}
    for one in keywords:
        words = _words(one)
        if words in seen:
            raise BadUrd(f"keywords {seen[words][:_SHOWN]!r} and {one.key[:_SHOWN]!r} are the same words")
        seen[words] = one.key


def _words(one: Keyword) -> str:
    """Return what a keyword is compared as; raises ``BadUrd``."""
    if not 0 < len(one.key) <= KEYWORD_MAX:
        raise BadUrd(f"keyword of {len(one.key)} characters, expected 1 to {KEYWORD_MAX}")
    if _UNWRITABLE.search(one.key) or _BREAKS.search(one.key):
        raise BadUrd(f"keyword {one.key[:_SHOWN]!r}, expected a word or a phrase in one line")
    _check(f"weight of {one.key[:_SHOWN]!r}:", one.weight, 1, WEIGHT_MAX)
    try:
        return " ".join(words_of_keyword(one.key))
    except ValueError as error:
        raise BadUrd(str(error)) from None


def _check_process(urd: Urd) -> None:
    if _UNWRITABLE.search(urd.rule):
        raise BadUrd("rule: a control character in it")
    if bool(urd.rule) != (urd.processtype is Process.RULE):
        raise BadUrd("a rule goes with processtype `rule`, and that with a rule")
    _check_rule(urd.rule)
    if urd.processtype is Process.FILTER and not urd.keywords:
        raise BadUrd("no keyword: processtype `filter` looks for at least one")


def _check_rule(rule: str) -> None:
    if not rule:
        return
    try:
        parse_rule(rule)
    except ValueError as error:
        raise BadUrd(str(error)) from None


def _placed(urd: Urd) -> Urd:
    if urd.uri != EVERYTHING:
        url = _url(urd.uri)
        return replace(urd, uri=str(url), protocol=url.scheme, port=url.port)
    if urd.timing or urd.depth:
        raise BadUrd(f"uri {EVERYTHING!r} names no page: timing and depth have to be 0")
    return urd


def _url(text: str) -> HttpUrl:
    try:
        return HttpUrl.parse(text)
    except UrlRefused as refused:
        raise BadUrd(f"uri {text[:_SHOWN]!r}: {refused.detail}") from None
