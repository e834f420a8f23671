"""What follows a failed fetch (design section 5 "Failures"): a decision as a value.

Failures of the *host* delay the whole turn and keep the URL in its place. Failures of the *URL* send it
to the end of its set, marked, a few times; then they are final and told to the provider.
"""

from dataclasses import dataclass

from lcc_scrapy.domain.errors import Retried, codes_retried

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


@dataclass(frozen=True, slots=True)
class Backoff:
    """How long a turn waits for its host, and since when that has been failing (epoch seconds)."""

    not_before: float = 0.0
    failures: int = 0
    failing_since: float = 0.0

    def failed_again(self, now: float, retry_after: float, first: float) -> "Backoff":
        """Return what follows another failure at ``now``; see ``host_delay``."""
        failures = self.failures + 1
        delay = host_delay(failures, retry_after, first)
        return Backoff(now + delay, failures, self.failing_since or now)

    def moved(self, step: float) -> "Backoff":
        """Return the same wait on a clock that was moved by ``step`` seconds."""
        if not self.failures:
            return self
        return Backoff(self.not_before + step, self.failures, self.failing_since + step)


NO_BACKOFF = Backoff()


def host_delay(failures: int, retry_after: float = 0.0, first: float = HOST_BACKOFF_FIRST) -> float:
    """Return the seconds a turn waits after its n-th host failure in a row; Retry-After is honoured."""
    growing = min(first * 2.0 ** min(failures - 1, 16), HOST_BACKOFF_MAX)
    return max(growing, min(retry_after, RETRY_AFTER_MAX))


def due_after_failures(failures: int, now: int, first: float, retry_after: float = 0.0) -> int:
    """Return when a source or server is looked at again after so many failures, as hosts of documents are."""
    return now + max(1, int(host_delay(failures, retry_after, first)))
