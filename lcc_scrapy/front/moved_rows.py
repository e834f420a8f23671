"""Rows of a provider on their way to another LCC: how far they are, and what the target makes of them."""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

from sqlalchemy import Table

from lcc_scrapy.db import columns
from lcc_scrapy.db.schema import tables_of
from lcc_scrapy.db.sql.move_verbs import BY_PROVIDER, Record
from lcc_scrapy.db.tx import Tx
from lcc_scrapy.domain.front import FrontError
from lcc_scrapy.intake.absorbing import PSETID
from lcc_scrapy.runtime.apps import Apps

PORTION = 500
"""Rows of one transaction."""

LINKED = "irrelevant"
"""The table, beside that of documents, whose rows may have links."""


@dataclass(frozen=True, slots=True)
class Progress:
    """How far the target is: kept in its ``lccinfo``, written with the rows it speaks of.

    ``offsets`` are added to numbers that counters gave out, those of sets and of apps. ``place`` is the key
    of the last row of ``table`` that was copied, None = none was.
    """

    number: int
    offsets: Mapping[str, int]
    table: str = ""
    place: list[Any] | None = None

    @classmethod
    def read(cls, tx: Tx, pid: int) -> "Progress | None":
        """Return it as the target has it, None = nothing was copied.

        Raises ``FrontError`` when another version of this program wrote it.
        """
        text = tx.info(_info(pid))
        values = json.loads(text) if text else None
        if values is None:
            return None
        if len(values) != len(fields(cls)):
            raise FrontError(f"the move of provider {pid} was begun by another version: end it with that one")
        return cls(*values)

    def write(self, tx: Tx, pid: int) -> None:
        """Keep it."""
        values = (self.number, self.offsets, self.table, self.place)
        tx.set_info(_info(pid), json.dumps(values, ensure_ascii=False, separators=(",", ":")))

    @staticmethod
    def forget(tx: Tx, pid: int) -> None:
        """Forget it: the move is over."""
        tx.set_info(_info(pid), "")

    def note(self, tx: Tx, pid: int, after: "Progress") -> bool:
        """Go on from this progress; False = an earlier try did.

        Raises ``FrontError`` when another command moves the provider, too.
        """
        reached = Progress.read(tx, pid)
        if reached == after:
            return False
        if reached != self:
            raise FrontError(f"provider {pid} is moved by another command, too")
        after.write(tx, pid)
        return True

    @property
    def psets(self) -> int:
        """Return what is added to numbers of sets."""
        return self.offsets[PSETID]

    def at(self, row: Record, keys: Sequence[str]) -> "Progress":
        """Return it for when a row was the last one that was copied."""
        return replace(self, place=place(row, keys))


def _info(pid: int) -> str:
    return f"move:{pid}"


def changed(table: Table | str, row: Record, progress: Progress) -> Record:
    """Return a row as the target has it: numbers that an LCC gives out are its own."""
    if isinstance(table, Table):
        return _changed_of_app(table, row, progress)
    if table in {"proots", "urlerrors", "linkwords"}:
        return {name: value for name, value in row.items() if name != BY_PROVIDER[table][0]}
    if table == "psets":
        return row | {"psetid": row["psetid"] + progress.psets}
    if table == "qdb":
        seen = row["seen"] + progress.psets if row["seen"] else 0
        own = {name: value for name, value in row.items() if name != "id"}
        return own | {"psetid": row["psetid"] + progress.psets, "seen": seen}
    return row


def tables_of_apps(apps: Apps) -> dict[str, Table]:
    """Return the tables of installed apps whose rows move with their provider, by name."""
    return {one.name: one for one in tables_of(apps) if columns.KEYS in one.info}


def numbered(tables: Iterable[Table]) -> dict[str, list[tuple[Table | str, str]]]:
    """Return the columns with numbers that counters give out, by counter."""
    found: dict[str, list[tuple[Table | str, str]]] = {}
    for table in tables:
        for column in table.columns:
            if columns.COUNTER in column.info:
                found.setdefault(column.info[columns.COUNTER], []).append((table, column.name))
    return found


def _changed_of_app(table: Table, row: Record, progress: Progress) -> Record:
    own = dict[str, Any](table.info[columns.THERE])
    for column in table.columns:
        if columns.COUNTER in column.info:
            own[column.name] = row[column.name] + progress.offsets[column.info[columns.COUNTER]]
        elif column.info == columns.OF_A_PROCESS:
            own[column.name] = ""
    return row | own


def place(row: Record, keys: Sequence[str]) -> list[Any]:
    """Return the key of a row as JSON can hold it."""
    key = [row[name] for name in keys]
    return [{"hex": bytes(part).hex()} if isinstance(part, bytes | memoryview) else part for part in key]


def key(place: Sequence[Any] | None) -> list[Any] | None:
    """Return the key of a row that ``place`` wrote."""
    if place is None:
        return None
    return [bytes.fromhex(part["hex"]) if isinstance(part, dict) else part for part in place]
