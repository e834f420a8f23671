"""Databases that nobody may work with: half a copy, a backup, one that its LCC has left.

The fact ``closed`` (table ``lccinfo``) says why. Everything that opens a database looks at it first.
"""

from collections.abc import Container
from enum import StrEnum

from lcc_scrapy.db.tx import Tx
from lcc_scrapy.domain.errors import ConfigurationError

CLOSED = "closed"


class Closed(StrEnum):
    """Why a database is closed."""

    COPYING = "copying"
    RESTORING = "restoring"
    BACKUP = "backup"
    MOVED = "moved"


_WHAT_TO_DO = {
    Closed.COPYING: "the database holds half a copy: run `lcc db copy` again",
    Closed.RESTORING: "the database holds half of a backup: run `lcc db restore` again",
    Closed.BACKUP: "the database is a backup: put it back with `lcc db restore`",
    Closed.MOVED: (
        "this LCC has left this database for another one (`lcc db copy`):"
        " set LCC_DATABASE_URL to the one that was printed then"
    ),
}


def refuse_closed(tx: Tx, tolerated: Container[str] = ()) -> None:
    """Raise ``ConfigurationError`` when the database is closed for another reason than ``tolerated`` ones."""
    why = tx.info(CLOSED)
    if why and why not in tolerated:
        unknown = f"the database is closed ({why}), which this version does not know: install the newer one"
        raise ConfigurationError(_WHAT_TO_DO[Closed(why)] if why in list(Closed) else unknown)


def close(tx: Tx, why: Closed) -> None:
    """Let nobody work with the database from now on."""
    tx.set_info(CLOSED, why)


def reopen(tx: Tx) -> None:
    """Let everybody work with the database again."""
    tx.set_info(CLOSED, "")
