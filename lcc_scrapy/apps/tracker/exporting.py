"""Keeps a folder with the exports of all own domains current, for other trackers.

One process at a time writes into a folder.
"""

import asyncio
import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from lcc_scrapy.apps.tracker.exchange import (
    MANIFEST_MAX,
    NEW,
    BadExchange,
    Manifest,
    domain_of,
    export,
    is_file_name,
    manifest_name,
)
from lcc_scrapy.apps.tracker.store import rows_in
from lcc_scrapy.db.tx import Store
from lcc_scrapy.domain.errors import ConfigurationError, LccError
from lcc_scrapy.kit.work import Work
from lcc_scrapy.machine.sole_process import SoleProcess

_LOCK = "exports"
_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Exports:
    """The exports of one store in a folder, which is made when something is first written into it.

    All verbs are blocking.
    """

    store: Store
    folder: Path

    def bring_up_to_date(self, now: int) -> list[Manifest]:
        """Export the own domains that have changed, and remove what is of others; returns what was written.

        Nothing where another process does so now. Raises ``ConfigurationError`` where nothing can be written.
        """
        made = [self.bring(domain, now) for domain in self.outdated()]
        return [one for one in made if one is not None]

    def outdated(self) -> list[str]:
        """Return the own domains that have changed, and remove what is of others and what a kill left."""
        with self._alone() as alone:
            if not alone:
                return []
            own, written = self.wanted(), self.written()
            for path in list(self.folder.iterdir()):
                domain = domain_of(path.name.removesuffix(NEW))
                if domain and (domain not in own or path.name.endswith(NEW)):
                    path.unlink(missing_ok=True)
            return [domain for domain, generation in own.items() if written.get(domain) != generation]

    def bring(self, domain: str, now: int) -> Manifest | None:
        """Export a domain; None = another process does so, or its servers change all the time."""
        with self._alone() as alone:
            try:
                return export(self.store, domain, self.folder, now) if alone else None
            except BadExchange as error:
                _log.warning("export: %s", error)
                return None

    @contextmanager
    def _alone(self) -> Iterator[bool]:
        """Tell whether no other process writes into the folder until the block ends."""
        try:
            self.folder.mkdir(exist_ok=True)
            sole = SoleProcess(self.folder, _LOCK)
            try:
                yield sole.take()
            finally:
                sole.release()
        except OSError as error:
            raise ConfigurationError(f"LCC_TRACKER_EXPORTS: {self.folder}: {error.strerror}") from None

    def manifests(self) -> Iterator[Manifest]:
        """Yield what is exported, by domain."""
        for path in sorted(self.folder.glob("*.json")):
            found = self._manifest(path.stem)
            if found is not None:
                yield found

    def wanted(self) -> dict[str, int]:
        """Return the generations of the own domains."""
        with self.store.read() as tx:
            domains = rows_in(tx).tracked_domains()
        return {one.domain: one.generation for one in domains if not one.peer and one.generation}

    def written(self) -> dict[str, int]:
        """Return the generations that are exported."""
        return {one.domain: one.generation for one in self.manifests()}

    def _manifest(self, domain: str) -> Manifest | None:
        path = self.folder / manifest_name(domain)
        if not is_file_name(path.name):
            return None
        try:
            with path.open("rb") as file:
                return Manifest.parse_of(domain, file.read(MANIFEST_MAX + 1))
        except (OSError, BadExchange):
            return None


@dataclass(slots=True)
class Exporter:
    """Exports domains when they have changed; ``told`` hears what was written. ``poll`` in seconds."""

    exports: Exports
    work: Work
    poll: float
    now: Callable[[], float]
    told: Callable[[Manifest], object] = lambda _: None

    async def once(self) -> None:
        """Export what has changed, each domain as a job of its own; raises ``ConfigurationError``."""
        for domain in await self.work(self.exports.outdated):
            made = await self.work(self.exports.bring, domain, int(self.now()))
            if made is not None:
                self.told(made)

    async def forever(self) -> None:
        """Export what changes, until cancelled."""
        done: dict[str, int] | None = None
        while True:
            try:
                if await self.work(self.exports.wanted) != done:
                    await self.once()
                    done = await self.work(self.exports.written)
            except LccError as error:
                _log.warning("export: %s", error)
            await asyncio.sleep(self.poll)
