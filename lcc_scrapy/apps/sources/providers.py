"""What becomes of sources when their provider goes, or a root of it gets another URL."""

from collections.abc import Callable, Mapping
from dataclasses import replace

from lcc_scrapy.apps.sources.store import rows_in
from lcc_scrapy.db.tx import Tx
from lcc_scrapy.kit.renaming import RenamingHook
from lcc_scrapy.providers.registration import ProviderHook


class _Removal:
    def removed(self, tx: Tx, pid: int, limit: int) -> bool:
        return rows_in(tx).remove_some(pid, limit)


class _Renaming:
    kinds: Mapping[str, str] = {"sources": "files of sources"}

    def renamed(self, tx: Tx, pid: int, name: Callable[[str], str]) -> Mapping[str, int]:
        """Rename the sitemaps and feeds of a provider, of which there are few."""
        count, rows = 0, rows_in(tx)
        for source in rows.sources(pid):
            rows.put_source(replace(source, url=name(source.url)))
            files = [(one, replace(one, url=name(one.url))) for one in rows.source_files(source.sourceid)]
            changed = [named for one, named in files if named != one]
            rows.put_source_files(changed)
            count += len(changed)
        return {"sources": count}

    def moved(self, tx: Tx, places: Mapping[bytes, bytes]) -> None:
        rows_in(tx).relist(places)


REMOVAL: ProviderHook = _Removal()
RENAMING: RenamingHook = _Renaming()
