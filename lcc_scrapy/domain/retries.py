"""What follows a failed fetch (design section 5 "Failures"): a decision as a value.

Failures of the *host* delay all its URLs in the turn, which keep their places. Failures of the *URL* send it
to the end of its set, marked, a few times; then they are final and told to the provider. A single answer does
not tell one from the other. So after each wait another URL is asked for; once one is answered, those that
failed before it failed by themselves.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import ceil
from zlib import crc32

from lcc_scrapy.domain.errors import Retried, codes_retried

UNAVAILABLE = 503
HOST_CODES = frozenset({429, 503, *codes_retried(Retried.HOST)})
URL_RETRY_CODES = frozenset({401, 403, 408, 425, *codes_retried(Retried.URL)})
SERVER_ERRORS = range(500, 600)
GONE_CODES = frozenset({401, 403, 404, 410, 451})
"""Final answers about the URL itself: the cached copy goes with it."""
MISSING_CODES = frozenset({404, 410})
"""Those that a cache before the site may still give of a page that its provider has just declared."""

HOST_BACKOFF_FIRST = 60.0
HOST_BACKOFF_MAX = 3600.0
RETRY_AFTER_MAX = 86400.0
HOST_BACKOFF_LEAST = 1.0

BLAMED_MAX = 100
"""URLs of a failing host that are remembered: more than are asked for within ``LCC_HOST_PATIENCE``."""
BROKEN_MAX = 8
"""Broken sections of a host that are remembered, the latest ones."""


@dataclass(frozen=True, slots=True)
class Retry:
    """Try the URL again, from ``at`` (epoch seconds) on."""

    at: float


@dataclass(frozen=True, slots=True)
class GiveUp:
    """The failure is final; ``removes_copy`` tells whether the cached copy goes."""

    removes_copy: bool


def is_host_level(code: int) -> bool:
    """Tell whether a failure speaks of the host, so that every URL of the turn would fail alike."""
    return code in HOST_CODES


def is_its_own(code: int, tries: int) -> bool:
    """Tell whether a URL that had ``tries`` of its own before is to blame, whatever its host does."""
    return code == UNAVAILABLE and tries > 0


def may_get_better(code: int, *, declared: bool) -> bool:
    """Tell whether a failure is tried again; ``declared``: the URL was declared since it was fetched."""
    if code in URL_RETRY_CODES or (declared and code in MISSING_CODES):
        return True
    return code in SERVER_ERRORS and code not in {501, 505}


def after_failure(
    code: int, tries: int, now: float, delays: tuple[float, ...], *, declared: bool = False
) -> Retry | GiveUp:
    """Decide about a URL that failed with ``code`` after ``tries`` earlier failures.

    ``delays`` (seconds) are those between tries; an empty tuple means that the first failure is final.
    ``declared`` is as in ``may_get_better``.
    """
    if may_get_better(code, declared=declared) and tries < len(delays):
        return Retry(now + delays[tries])
    return GiveUp(code in GONE_CODES)


Blamed = tuple[bytes, int, int, int]
"""A URL that failed as its host may have: (key, pid, its tries then, ``section_of`` it)."""


@dataclass(frozen=True, slots=True)
class Backoff:
    """How a turn waits for one host: epoch seconds, and ``wait`` in seconds.

    After ``failures`` in a row, ``since`` is when they began, ``wait`` is the last wait, and ``blamed`` are
    the URLs that failed, each once: the next request is for another one. With no failures, the host answered
    last at ``since``, and ``wait`` is the next wait, a quarter of the last one, until that is long ago.

    ``broken`` are sections (``section_of``) that failed while another one answered, and have not answered
    since. After a failure in one of them the host is ``early``: one URL of another section is asked for
    before ``not_before``.
    """

    not_before: float = 0.0
    failures: int = 0
    since: float = 0.0
    wait: float = 0.0
    blamed: tuple[Blamed, ...] = ()
    broken: tuple[int, ...] = ()
    early: bool = False

    def failed_again(
        self, now: float, retry_after: float, first: float, section: int | None = None
    ) -> "Backoff":
        """Return what follows another failure at ``now``; ``retry_after`` is what the whole host asks for.

        ``section``: that of the URL, if its failure may be its own. After an early request, the wait that
        it cut short is added.
        """
        wait = min(self._next_wait(now, first), HOST_BACKOFF_MAX)
        begins = max(now, self.not_before) if self.early else now
        until = max(begins + wait, now + min(retry_after, RETRY_AFTER_MAX))
        return Backoff(
            not_before=float(ceil(until)),  # as rows are set aside
            failures=self.failures + 1,
            since=self.since if self.failures else now,
            wait=wait,
            blamed=self.blamed,
            broken=() if self.is_over(now) else self.broken,
            early=not self.failures and not self.is_over(now) and section in self.broken,
        )

    def failed_beside(self, now: float, retry_after: float, section: int | None = None) -> "Backoff":
        """Return what follows when another fetch fails that began before the last failure: the same wait."""
        until = max(self.not_before, now + min(retry_after, RETRY_AFTER_MAX))
        return replace(self, not_before=until, early=self.early and section in self.broken)

    def asked_from(self) -> float:
        """Return from when on a URL is asked for."""
        return 0.0 if self.early else self.not_before

    def _next_wait(self, now: float, first: float) -> float:
        if self.failures:
            return 2.0 * self.wait
        return first if self.is_over(now) else self.wait

    def answered(self, now: float, section: int | None = None) -> "Backoff":
        """Return what is left when a URL of a section has answered.

        The next wait is a quarter, at least a second.
        """
        wait = min(self.wait, max(HOST_BACKOFF_LEAST, self.wait / 4))
        broken = dict.fromkeys((*self.broken, *(failed for *_, failed in self.blamed)))
        others = tuple(one for one in broken if one != section)
        return Backoff(since=now, wait=wait, broken=others[-BROKEN_MAX:])

    def mended(self, section: int) -> "Backoff":
        """Return the same after a URL of a section answered while the host did not fail."""
        return replace(self, broken=tuple(one for one in self.broken if one != section))

    def is_over(self, now: float) -> bool:
        """Tell whether nothing has to be remembered any more."""
        return not self.failures and now >= self.since + HOST_BACKOFF_MAX

    def blames(self, url: Blamed) -> "Backoff":
        """Return the same with another URL that failed; the first of very many are forgiven."""
        others = [one for one in self.blamed if one[0] != url[0]]
        return replace(self, blamed=(*others, url)[-BLAMED_MAX:])

    def moved(self, step: float) -> "Backoff":
        """Return the same wait on a clock that was moved by ``step`` seconds."""
        if not self.failures:
            return self
        return replace(self, not_before=self.not_before + step, since=self.since + step)


NO_BACKOFF = Backoff()

_NUMBERS = re.compile(r"\d+")


def section_of(url: str) -> int:
    """Return a number that URLs of one kind share: the same path but for its numbers, whatever the query."""
    return crc32(_NUMBERS.sub("", url.partition("?")[0]).encode())


def next_to_ask(urls: Sequence[str], backoff: Backoff) -> int | None:
    """Return which of the waiting URLs of a failing host, in their order, is asked for next.

    That is one of a section that has not failed: the first, then the last, then others far from those
    before, so that a run of broken ones is soon left. Where there is none, it is any URL in the same way,
    but None if the host is asked early: URLs that are broken alike prove nothing.
    """
    failed = {*backoff.broken, *(section for *_, section in backoff.blamed)}
    others = [n for n, url in enumerate(urls) if section_of(url) not in failed]
    if backoff.early and not others:
        return None
    among = others or range(len(urls))
    if backoff.failures <= 1 or not backoff.blamed:
        return among[0]
    return among[int(_spread(backoff.failures - 1) * (len(among) - 1))]


def _spread(number: int) -> float:
    """Return 1, 1/2, 1/4, 3/4, 1/8, 5/8 …: each far from those before (van der Corput's sequence)."""
    if number == 1:
        return 1.0
    share, part = 0.0, 0.5
    number -= 1
    while number:
        share += part * (number & 1)
        number, part = number >> 1, part / 2
    return share


def host_delay(failures: int, retry_after: float = 0.0, first: float = HOST_BACKOFF_FIRST) -> float:
    """Return the seconds of a wait after the n-th failure in a row; Retry-After is honoured."""
    growing = min(first * 2.0 ** min(failures - 1, 16), HOST_BACKOFF_MAX)
    return max(growing, min(retry_after, RETRY_AFTER_MAX))


def due_after_failures(failures: int, now: int, first: float, retry_after: float = 0.0) -> int:
    """Return when a source or server is looked at again after so many failures, as hosts of documents are."""
    return now + max(1, int(host_delay(failures, retry_after, first)))
