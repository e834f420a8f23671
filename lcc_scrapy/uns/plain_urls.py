"""Runs of URL elements that are spelled alike, read by one regular expression instead of a parser."""

import re
from functools import lru_cache

from lcc_scrapy.domain.runs import PLAIN
from lcc_scrapy.uns.grammar import CANONICAL
from lcc_scrapy.wire.messages import UrlRun

_BLANKS = " \t\r\n"
_REQUIRED = frozenset({"curl", "mimetype"})


class Spelling:
    """The name of an element, and the attributes in their order: each behind one blank, in double quotes.

    Only plain values (``domain.runs``) are read, and ``&amp;`` in them.
    """

    def __init__(self, element: str, attributes: tuple[str, ...]) -> None:
        self._sent = attributes
        self._names = [CANONICAL[name] for name in attributes]
        values = [f' {name}="({PLAIN[CANONICAL[name]]})"' for name in attributes]
        self._element = re.compile(f"<{element}{''.join(values)} ?/>")

    def read(self, text: bytes) -> tuple[UrlRun | None, bytes]:
        """Read the run with which ``text`` begins; return it, or None, and what follows it.

        ``text`` is UTF-8 at a place where an element of a set may begin.
        """
        width = len(self._names) + 1
        parts = self._element.split(text.decode("latin-1"))
        between = parts[:-1:width]
        if "".join(between).strip(_BLANKS):
            count = next(number for number, gap in enumerate(between) if gap.strip(_BLANKS))
            parts = self._element.split(text.decode("latin-1"), count) if count else []
        columns = {name: parts[at::width] for at, name in enumerate(self._names, 1)}
        if len(parts) <= 1 or (b"&" in text and not _unescape(columns)):
            return None, text
        return UrlRun(columns, self._sent), text[len(text) - len(parts[-1]) :]


def _unescape(columns: dict[str, list[str]]) -> bool:
    """Resolve ``&amp;``; False when there are references to anything else."""
    for name, column in columns.items():
        values = "\n".join(column)
        if values.count("&") != values.count("&amp;"):
            return False
        columns[name] = values.replace("&amp;", "&").split("\n")
    return True


def spelling_of(names: tuple[str, ...]) -> Spelling | None:
    """Return the spelling of an element that is called and has attributes like this, if it can be plain."""
    canonical = {CANONICAL.get(name, "") for name in names[1:]}
    plain = len(canonical) == len(names) - 1 and _REQUIRED <= canonical <= set(PLAIN)
    return _spelling(*names) if plain else None


@lru_cache(maxsize=256)
def _spelling(element: str, *attributes: str) -> Spelling:
    return Spelling(element, attributes)
