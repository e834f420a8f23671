"""Refused URLs are marked in the state, and sent again when the LCC would decide otherwise.

A refused URL stands in the state with all its attributes, the code (``refused="704"``) and ``new="yes"``.
It is not sent again while its line and the LCC's revision stay the same. The revision (``init_accepted``)
changes with the roots, types and quota of a provider. Then lcccp takes the refused URLs out of the pending
state.

A URL is refused if a set's answer names it, or if a login reports it with one of `CODES`: the LCC checks a
quota when it fetches a URL, and a root may be removed while a URL waits. Other failed fetches are not
refusals.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from hashlib import sha256

from lcc_scrapy.domain.errors import text_of
from lcc_scrapy.push import pipe
from lcc_scrapy.push.state import attributes_in, key_of
from lcc_scrapy.wire.messages import InitAccepted, Url, UrlError

CODES = frozenset({609, 610, *range(701, 709)})
"""What a login may report that a change of roots, types, quota or hours can mend."""

SHOWN = 1000
"""So many standing refusals are kept to be shown; all are counted."""

_MARKED = f' {pipe.REFUSED}="'.encode()


def is_refused(line: bytes) -> bool:
    """Tell whether a line of a state is marked; quick, as quotes in values are escaped."""
    return _MARKED in line


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
    """Return the codes of what a login reports as refused, by key."""
    found = (error for error in login.errors if error.code in CODES)
    return {key: error.code for error in found for key in keys_of(error, urlprefix)}


@dataclass
class Standing:
    """What is refused in a state after a set was accepted."""

    count: int = 0
    first: list[UrlError] = field(default_factory=list)

    def note(self, line: bytes) -> None:
        """Count a line."""
        attributes = attributes_in(line)
        code = int(attributes.get(pipe.REFUSED) or 0)
        self.count += 1
        if len(self.first) < SHOWN:
            self.first.append(UrlError(code, text_of(code), "", pipe.unmarked(attributes)))


@dataclass
class Verdict:
    """What a set's answer makes of the lines of the pending state.

    ``codes`` are those of its refused URLs, by key. ``judged``: all that was refused before was in the set.
    """

    codes: dict[bytes, int] = field(default_factory=dict)
    judged: bool = False
    standing: Standing = field(default_factory=Standing)

    def refuse(self, error: UrlError, urlprefix: str) -> None:
        """Take note of a refused URL."""
        self.codes.update(dict.fromkeys(keys_of(error, urlprefix), error.code))

    def over(self, lines: Iterable[bytes]) -> Iterator[bytes]:
        """Yield the lines as the state has them from now on."""
        for line in lines:
            line = self._of(line)  # noqa: PLW2901
            if is_refused(line):
                self.standing.note(line)
            yield line

    def _of(self, line: bytes) -> bytes:
        code = self.codes.get(key_of(attributes_in(line))) if self.codes else None
        if code is not None:
            return marked(line, code)
        return told(line) if self.judged else line


@dataclass(frozen=True)
class Again:
    """Lines of the pending state to send besides what changed; ``digest`` names them, empty = none."""

    count: int = 0
    digest: str = ""

    @classmethod
    def of(cls, lines: Iterable[bytes]) -> Again:
        """Count lines, reading them once."""
        count, digest = 0, sha256()
        for line in lines:
            digest.update(line)
            count += 1
        return cls(count, digest.hexdigest() if count else "")


def chosen(lines: Iterable[bytes], *, all_but: Collection[bytes] | None) -> Iterator[bytes]:
    """Yield the refused lines; with ``all_but``, every line that has none of these keys."""
    if all_but is None:
        return (line for line in lines if is_refused(line))
    return (line for line in lines if key_of(attributes_in(line)) not in all_but)


def with_marks(lines: Iterable[bytes], codes: Mapping[bytes, int]) -> Iterator[bytes]:
    """Yield the lines, those with these keys marked as refused."""
    for line in lines:
        code = codes.get(key_of(attributes_in(line)))
        yield line if code is None else marked(line, code)
