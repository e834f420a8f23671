"""Types and kinds of columns, for the tables of the core and of apps (see ``db.tables``)."""

from typing import Any

from sqlalchemy import BINARY, VARBINARY, BigInteger, Column, Integer, LargeBinary, String, Text

from lcc_scrapy.domain.roots import URL_MAX
from lcc_scrapy.domain.timeslots import HOURS_PER_WEEK

Key = LargeBinary(16).with_variant(BINARY(16), "mysql", "mariadb")
Name = LargeBinary(255).with_variant(VARBINARY(255), "mysql", "mariadb")
"""Names of files and directories elsewhere: bytes, in the order of bytes."""
Digest = LargeBinary(64).with_variant(VARBINARY(64), "mysql", "mariadb")
Target = LargeBinary(4095).with_variant(VARBINARY(4095), "mysql", "mariadb")

BigKey = BigInteger().with_variant(Integer, "sqlite")


MOVES = "moves"
OF_THE_LCC = {MOVES: "stays"}
"""``info`` of an app's table whose rows stay when a provider moves away: they are a machine's or an LCC's."""

OF_OTHER_ROWS = {MOVES: "goes"}
"""``info`` of an app's table whose rows belong to rows of a provider, and are made anew where it moves to."""

KEYS, THERE, COUNTER = "keys", "there", "counter"


def of_a_provider(*keys: str, **there: object) -> dict[str, Any]:
    """Return the ``info`` of an app's table whose rows move with their provider, whose column is ``pid``.

    No two rows of it have the same ``keys``. In the other LCC they have the values ``there``.
    """
    return {MOVES: "moves", KEYS: keys, THERE: there}


def numbers_of(counter: str) -> dict[str, Any]:
    """Return the ``info`` of a column whose numbers a counter gives out: rows that move get other ones."""
    return {COUNTER: counter}


OF_A_PROCESS = {"of a process": True}
"""``info`` of a text column that names a running process: in a restored database it is empty."""


class _MediumText(Text):
    """The type of MariaDB and MySQL; its compiler goes by this name."""

    __visit_name__ = "MEDIUMTEXT"


class _MediumBlob(LargeBinary):
    """The type of MariaDB and MySQL; its compiler goes by this name."""

    __visit_name__ = "MEDIUMBLOB"


def exact(width: int) -> Any:
    """Return the type of text that compares as bytes, ``width`` characters at most."""
    return String(width).with_variant(String(width, collation="utf8mb4_bin"), "mysql", "mariadb")


def ascii_exact(width: int) -> Any:
    """Return the same for ASCII."""
    return String(width).with_variant(String(width, collation="ascii_bin"), "mysql", "mariadb")


Long = Text().with_variant(_MediumText(collation="utf8mb4_bin"), "mysql", "mariadb")
LongBytes = LargeBinary().with_variant(_MediumBlob(), "mysql", "mariadb")
Url = exact(URL_MAX)
Mask = ascii_exact(HOURS_PER_WEEK)


def column(name: str, type_: Any, *, null: bool = False, **options: Any) -> Column[Any]:
    """Return a column, NOT NULL unless ``null``."""
    return Column(name, type_, nullable=null, **options)
