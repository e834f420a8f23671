"""High-water marks: numbers that were given out once and must never be given out again."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from lcc_scrapy.db.sql.snapshot import Snapshot
from lcc_scrapy.db.tables import counters, lccinfo, metadata, pidb
from lcc_scrapy.feed.store_feed import GENERATION

Numbers = Mapping[str, int]


@dataclass(frozen=True, slots=True)
class HighWater:
    """The last numbers given out: by every counter, to every provider's logins (pid: number), and to the
    rows of the tables that the database numbers itself (table: number).
    """

    generation: int = 0
    counters: Numbers = field(default_factory=dict)
    logins: Numbers = field(default_factory=dict)
    rows: Numbers = field(default_factory=dict)

    @classmethod
    def of(cls, seen: Snapshot) -> "HighWater":
        """Read them from a database."""
        facts = {row["name"]: row["value"] for page in seen.pages(lccinfo) for row in page}
        return cls(
            int(facts.get(GENERATION, 0)),
            {row["name"]: row["value"] for page in seen.pages(counters) for row in page},
            {str(row["pid"]): row["lastconnseq"] for page in seen.pages(pidb) for row in page},
            {table.name: seen.last_number(table) for table in metadata.sorted_tables},
        )

    def __or__(self, other: "HighWater") -> "HighWater":
        """Return the higher number of each."""
        return HighWater(
            max(self.generation, other.generation),
            _higher(self.counters, other.counters),
            _higher(self.logins, other.logins),
            _higher(self.rows, other.rows),
        )


def _higher(mine: Numbers, theirs: Numbers) -> Numbers:
    return {name: max(mine.get(name, 0), theirs.get(name, 0)) for name in mine.keys() | theirs.keys()}
