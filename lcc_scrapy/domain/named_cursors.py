"""Cursors that the LCC keeps for content users, by name: so that it knows how far each of them is behind."""

from dataclasses import dataclass
from typing import Protocol

from lcc_scrapy.domain.errors import LccError

NAME = r"[A-Za-z0-9][A-Za-z0-9._-]*"
NAME_MAX = 64
MOST = 100
"""Named cursors of one owner."""


class TooMany(LccError):
    """One owner keeps no more than ``MOST`` cursors here."""


@dataclass(frozen=True, slots=True)
class NamedCursor:
    """How far somebody has come (table ``cursors``): everything up to ``seq``, noted ``at`` (epoch seconds).

    ``owner`` is the label of the tokens that may read and move it, ``cursor`` the text to go on with.
    """

    owner: str
    name: str
    cursor: str
    seq: int
    at: int


class NamedCursors(Protocol):
    """Where named cursors are kept. Calls block."""

    def of(self, owner: str) -> list[NamedCursor]:
        """Return all cursors of an owner by name."""

    def find(self, owner: str, name: str) -> NamedCursor | None:
        """Return a cursor, None when there is none of this name."""

    def keep(self, cursor: NamedCursor) -> None:
        """Add or move a cursor; raises ``TooMany``."""

    def drop(self, owner: str, name: str) -> bool:
        """Forget a cursor; tells whether there was one."""
