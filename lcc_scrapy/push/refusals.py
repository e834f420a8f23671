"""URLs of which the LCC reported an error are marked in the state, and sent again when that may help.

A **refused** URL stands in the state with all its attributes, the code (``refused="704"``) and ``new="yes"``:
the LCC does not have it. The LCC's revision (``init_accepted``) changes with the roots, types and quota of a
provider. The next run then sends all that is refused. A URL is refused if a set's answer names it, or if a
login reports it with one of `CODES`: the LCC checks a quota when it fetches a URL, and a root may be removed
while a URL waits.

A **failed** URL (``failed="608 1 1764329136"``, see `Failure`) was taken, but its fetch did not end as it was
declared. Its site may have mended it since. So runs send it again after each of `AGAIN_AFTER`, whether or not
the LCC reports it once more, which it does not after a login that was cut.

A mark is for one content: a URL that changes is sent at once, without it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from hashlib import sha256

from lcc_scrapy.domain.errors import text_of
from lcc_scrapy.push import pipe
from lcc_scrapy.push.state import attributes_in, key_of
from lcc_scrapy.wire.messages import InitAccepted, Url, UrlError

CODES = frozenset({609, 610, *range(701, 709)})
"""What a login may report that a change of roots, types, quota or hours can mend."""

FAILURES = frozenset({404, 410, *range(500, 600), 603, 607, 608, 614})
"""What a login may report that time can mend."""

AGAIN_AFTER = (3600, 6 * 3600, 24 * 3600)
"""Seconds until a failed URL is sent again: the first since it was reported, the others since it was sent."""

SHOWN = 1000
"""So many standing refusals are kept to be shown; all are counted."""

_REFUSED = f' {pipe.REFUSED}="'.encode()
_FAILED = f' {pipe.FAILED}="'.encode()


@dataclass(frozen=True)
class Failure:
    """How a fetch failed, how often its URL was sent again, and when it is due next: epoch, 0 = never."""

    code: int
    resent: int
    due: int

    @classmethod
    def reported(cls, code: int, now: int) -> Failure:
        """Return that of a URL which was not marked so far."""
        return cls(code, 0, now + AGAIN_AFTER[0])

    @classmethod
    def of(cls, attributes: Mapping[str, str]) -> Failure | None:
        """Return what a line of a state is marked with."""
        try:
            code, resent, due = map(int, attributes[pipe.FAILED].split())
        except (KeyError, ValueError):
            return None
        return cls(code, max(0, resent), due)

    def is_due(self, now: int) -> bool:
        """Tell whether it is time; also where a clock that went wrong put it further off than it can be."""
        return self.due > 0 and not now < self.due <= now + AGAIN_AFTER[-1]

    def sent(self, now: int) -> Failure:
        """Return that of a URL which was sent again."""
        resent = self.resent + 1
        return Failure(self.code, resent, now + AGAIN_AFTER[resent] if resent < len(AGAIN_AFTER) else 0)

    def on(self, attributes: Mapping[str, str]) -> bytes:
        """Return a line of a state with this mark."""
        return pipe.write(Url({**attributes, pipe.FAILED: f"{self.code} {self.resent} {self.due}"}))


def is_refused(line: bytes) -> bool:
    """Tell whether a line of a state is marked; quick, as quotes in values are escaped."""
    return _REFUSED in line


def failure_of(line: bytes) -> Failure | None:
    """Return the failure that a line of a state is marked with."""
    return Failure.of(attributes_in(line)) if _FAILED in line else None


def with_failure_of(attributes: Mapping[str, str], line: bytes) -> bytes:
    """Return a line of a state with the failure of another one."""
    failure = Failure.of(attributes)
    return line if failure is None else failure.on(attributes_in(line))


def without_failure(line: bytes) -> bytes:
    """Return a line of a state as it goes to lcccp."""
    if _FAILED not in line:
        return line
    attributes = attributes_in(line)
    del attributes[pipe.FAILED]
    return pipe.write(Url(attributes))


def marked(line: bytes, code: int | str) -> bytes:
    """Return a line of a state as that of a refused URL."""
    return pipe.write(Url({**pipe.unmarked(attributes_in(line)), pipe.NEW: "yes", pipe.REFUSED: str(code)}))


def told(line: bytes) -> bytes:
    """Return a line as that of a URL which the LCC took, if it was marked as refused."""
    return pipe.write(Url(pipe.unmarked(attributes_in(line)))) if is_refused(line) else line


def keys_of(error: UrlError, urlprefix: str) -> Iterator[bytes]:
    """Yield the keys that a URL may have in the state: as it was sent, and without the prefix."""
    curl = error.attributes.get("curl") or error.attributes.get("c", "")
    mimetype = error.attributes.get("mimetype", "")
    yield key_of({"curl": curl, "mimetype": mimetype})
    if urlprefix and curl.startswith(urlprefix):
        yield key_of({"curl": curl[len(urlprefix) :], "mimetype": mimetype})


def reported(login: InitAccepted, urlprefix: str) -> dict[bytes, int]:
    """Return the codes of what a login reports as refused or failed, by key; a refusal counts more."""
    found = sorted(login.errors, key=lambda error: error.code in CODES)
    wanted = (error for error in found if error.code in CODES | FAILURES)
    return {key: error.code for error in wanted for key in keys_of(error, urlprefix)}


@dataclass
class Standing:
    """What a state is marked with after a set was accepted: refused URLs, and how many are sent again."""

    count: int = 0
    first: list[UrlError] = field(default_factory=list)
    again: int = 0

    def note(self, line: bytes) -> None:
        """Count a line."""
        if is_refused(line):
            attributes = attributes_in(line)
            code = int(attributes.get(pipe.REFUSED) or 0)
            self.count += 1
            if len(self.first) < SHOWN:
                self.first.append(UrlError(code, text_of(code), "", pipe.unmarked(attributes)))
        elif (failure := failure_of(line)) is not None:
            self.again += failure.due > 0


@dataclass
class Verdict:
    """What a set's answer makes of the lines of the pending state.

    ``codes`` are those of its refused URLs, by key. ``judged``: all that was refused before was in the set.
    What was due at the time ``now`` was in it, too.
    """

    codes: dict[bytes, int] = field(default_factory=dict)
    judged: bool = False
    now: int = 0
    standing: Standing = field(default_factory=Standing)

    def refuse(self, error: UrlError, urlprefix: str) -> None:
        """Take note of a refused URL."""
        self.codes.update(dict.fromkeys(keys_of(error, urlprefix), error.code))

    def over(self, lines: Iterable[bytes]) -> Iterator[bytes]:
        """Yield the lines as the state has them from now on."""
        for line in lines:
            line = self._of(line)  # noqa: PLW2901
            self.standing.note(line)
            yield line

    def _of(self, line: bytes) -> bytes:
        code = self.codes.get(key_of(attributes_in(line))) if self.codes else None
        if code is not None:
            return marked(line, code)
        failure = failure_of(line)
        if failure is not None and failure.is_due(self.now):
            return failure.sent(self.now).on(attributes_in(line))
        return told(line) if self.judged else line


@dataclass(frozen=True)
class Again:
    """Lines of the pending state to send besides what changed; ``digest`` names them, empty = none.

    ``failed``: how many of them are sent again because their fetch failed.
    """

    count: int = 0
    digest: str = ""
    failed: int = 0

    @classmethod
    def of(cls, lines: Iterable[bytes]) -> Again:
        """Count lines, reading them once."""
        count, failed, digest = 0, 0, sha256()
        for line in lines:
            digest.update(line)
            count += 1
            failed += _FAILED in line
        return cls(count, digest.hexdigest() if count else "", failed)


@dataclass(frozen=True)
class Choice:
    """Which lines of the pending state are sent again at the time ``now``: failed ones that are due.

    ``refused``: those that are refused, too. ``all_but``: every line that has none of these keys.
    """

    now: int
    refused: bool = False
    all_but: Collection[bytes] | None = None

    def among(self, lines: Iterable[bytes]) -> Iterator[bytes]:
        """Yield these lines."""
        return filter(self._has, lines)

    def _has(self, line: bytes) -> bool:
        if self.all_but is not None:
            return key_of(attributes_in(line)) not in self.all_but
        failure = failure_of(line)
        return (self.refused and is_refused(line)) or (failure is not None and failure.is_due(self.now))


def with_marks(lines: Iterable[bytes], codes: Mapping[bytes, int], now: int) -> Iterator[bytes]:
    """Yield the lines, those with these keys marked as refused or failed."""
    for line in lines:
        attributes = attributes_in(line)
        code = codes.get(key_of(attributes))
        if code is None or (code in FAILURES and is_refused(line)):
            yield line
        elif code in FAILURES:
            before = Failure.of(attributes)
            failure = replace(before, code=code) if before else Failure.reported(code, now)
            yield failure.on(attributes)
        else:
            yield marked(line, code)
