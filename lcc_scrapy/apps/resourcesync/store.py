"""Publications of ResourceSync, kept among the facts about the LCC."""

from lcc_scrapy.apps.resourcesync.publications import MOST, Publication, noted
from lcc_scrapy.db.tx import Store, Tx
from lcc_scrapy.domain.cursor import Position

_IN_A_FACT = 7
_FACTS = range(-(-MOST // _IN_A_FACT))


class StorePublications:
    """The ``resourcesync.publications.Publications`` of a store.

    Facts are short: ``published.<n>`` holds some of them, as ``generation seq@at seq@at …``.
    """

    def __init__(self, store: Store) -> None:
        self._store = store

    def publish(self, head: Position, now: int) -> list[Publication]:
        """Note that the feed is told up to ``head`` now; return all that is remembered, oldest first."""
        with self._store.read() as tx:
            known = _known(tx, head.generation)
        if known and known[-1].seq >= head.seq:
            return known
        with self._store.begin() as tx:
            notes = noted(_known(tx, head.generation), head.seq, now)
            for number in _FACTS:
                some = notes[number * _IN_A_FACT : (number + 1) * _IN_A_FACT]
                text = " ".join([str(head.generation), *(f"{one.seq}@{one.at}" for one in some)])
                tx.set_info(_name(number), text if some else "")
        return notes


def _known(tx: Tx, generation: int) -> list[Publication]:
    found: list[Publication] = []
    for number in _FACTS:
        of, *some = (tx.info(_name(number)) or "").split() or [""]
        if of != str(generation):
            break
        found += [Publication(*map(int, one.split("@"))) for one in some]
    return found


def _name(number: int) -> str:
    return f"published.{number}"
