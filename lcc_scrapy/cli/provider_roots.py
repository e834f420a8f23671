"""After a change of roots, ``lcc provider set`` removes documents and waiting URLs outside of them."""

import time
from collections import Counter
from collections.abc import Iterator
from typing import TYPE_CHECKING

import click

from lcc_scrapy.cli import printing

if TYPE_CHECKING:
    from lcc_scrapy.db.tx import Store
    from lcc_scrapy.domain.policy import QueuePolicy


def apply_roots(store: "Store", pid: int, policy: "QueuePolicy") -> None:
    """Bring the rows of a provider in line with its roots, if need be, and say what came of it."""
    from lcc_scrapy.providers.narrowing import Narrowing
    from lcc_scrapy.providers.registration import find

    with store.read() as tx:
        documents = find(tx, pid).fileused
    done: Counter[str] = Counter()
    with printing.progress("looking at its documents", documents) as progress:
        for step in Narrowing(store, pid, int(time.time()), policy).run():
            done.update(removed=len(step.removed), held=step.held, released=step.released)
            done.update(dropped=step.dropped, looked_at=step.looked_at)
            progress(done["looked_at"])
    for line in _lines(pid, done):
        click.echo(line)


def _lines(pid: int, done: Counter[str]) -> Iterator[str]:
    if done["removed"]:
        yield f"{done['removed']} documents outside its roots removed"
    if done["held"]:
        yield (
            f"{done['held']} documents outside its roots are held, they are too many for a day:"
            f" `lcc provider confirm-removals {pid}` removes them"
        )
    if done["released"]:
        yield f"{done['released']} held documents are inside its roots again, and stay"
    if done["dropped"]:
        yield f"{done['dropped']} waiting URLs outside its roots dropped; their provider is told (704)"
