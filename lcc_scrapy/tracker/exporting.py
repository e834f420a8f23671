"""Keeps a folder with the exports of all own domains current, for other trackers.

One process at a time writes into a folder.
"""

import asyncio
import logging
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from lcc_scrapy.db.tx import Store
from lcc_scrapy.domain.errors import ConfigurationError, LccError
from lcc_scrapy.machine.sole_process import SoleProcess
from lcc_scrapy.sources.work import Work
from lcc_scrapy.tracker.exchange import (
    MANIFEST_MAX,
    BadExchange,
    Manifest,
    export,
    is_file_name,
    manifest_name,
)

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
        try:
            self.folder.mkdir(exist_ok=True)
            sole = SoleProcess(self.folder, _LOCK)
            if not sole.take():
                return []
            try:
                return list(self._written(now))
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
            return {
                one.domain: one.generation for one in tx.tracked_domains() if not one.peer and one.generation
            }

    def written(self) -> dict[str, int]:
        """Return the generations that are exported."""
        return {one.domain: one.generation for one in self.manifests()}

    def _written(self, now: int) -> Iterator[Manifest]:
        own = self.wanted()
        for manifest in self.manifests():
            if manifest.domain not in own:
                self._remove(manifest)
        for domain, generation in own.items():
            known = self._manifest(domain)
            if known is None or known.generation != generation:
                try:
                    yield export(self.store, domain, self.folder, now)
                except BadExchange as error:
                    _log.warning("export: %s", error)

    def _manifest(self, domain: str) -> Manifest | None:
        path = self.folder / manifest_name(domain)
        if not is_file_name(path.name):
            return None
        try:
            with path.open("rb") as file:
                return Manifest.parse_of(domain, file.read(MANIFEST_MAX + 1))
        except (OSError, BadExchange):
            return None

    def _remove(self, manifest: Manifest) -> None:
        for name in (manifest_name(manifest.domain), *(one.name for one in manifest.files)):
            (self.folder / name).unlink(missing_ok=True)


@dataclass(slots=True)
class Exporter:
    """Exports domains when they have changed; ``told`` hears what was written. ``poll`` in seconds."""

    exports: Exports
    work: Work
    poll: float
    now: Callable[[], float]
    told: Callable[[Manifest], object] = lambda _: None

    async def once(self) -> None:
        """Export what has changed; raises ``ConfigurationError``."""
        for made in await self.work(self.exports.bring_up_to_date, int(self.now())):
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
