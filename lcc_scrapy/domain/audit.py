"""The audit log: who did what, when, to which provider."""

from dataclasses import dataclass

ACTION_MAX = 32
WHO_MAX = 64
DETAIL_MAX = 255

KEPT = 400 * 86_400
"""Seconds for which entries are kept."""

COMMAND = "command"
"""Where something was done: by ``lcc`` on a machine of the LCC."""

EVERYBODY = 0
"""The pid of what concerns no single provider."""


@dataclass(frozen=True, slots=True)
class AuditEntry:
    """One row of ``audit``. ``entryid`` 0 = the database gives one; ``at`` in epoch seconds.

    ``who`` is a user who signed in, or, of a command, a user of the machine. ``action`` is named as the
    command is.
    """

    entryid: int
    at: int
    who: str
    place: str
    action: str
    pid: int = EVERYBODY
    detail: str = ""
