"""The rows of a provider whose root moves, under their new names: portions, each of them one transaction.

Each may be done twice: what is renamed does not begin with the old root any more.
"""

import json
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from lcc_scrapy.apps.renaming.rules import Renaming
from lcc_scrapy.apps.renaming.store import rows_in
from lcc_scrapy.cache.last_outcomes import storable
from lcc_scrapy.db.records import DocumentLink, Irrelevant, LastOutcome, Ownership, Spidered
from lcc_scrapy.db.tx import Store, Tx
from lcc_scrapy.domain.cache import key_after, renamed_to
from lcc_scrapy.domain.entries import furlkey, urlkey
from lcc_scrapy.domain.policy import QueuePolicy
from lcc_scrapy.kit.renaming import RenamingHook
from lcc_scrapy.providers.registration import NoSuchProvider, lock
from lcc_scrapy.queue.unit_of_work import UnitOfWork


@dataclass(frozen=True, slots=True)
class RenamedRows:
    """What a renaming makes of rows of one provider; ``now`` in epoch seconds."""

    store: Store
    pid: int
    renaming: Renaming
    now: int
    policy: QueuePolicy
    hooks: Sequence[RenamingHook]

    def _batch(self, tx: Tx, keys: Iterable[bytes]) -> UnitOfWork:
        batch = UnitOfWork(tx, [self.pid], keys, self.now, self.policy)
        if self.pid not in batch.providers:
            raise NoSuchProvider(self.pid)
        return batch

    # --- documents -------------------------------------------------------------------------------

    def documents(self, keys: Sequence[bytes]) -> int:
        """Rename documents, with their links and the interests in them; return how many."""
        with self.store.begin() as tx:
            batch = self._batch(tx, keys)
            named = {key: self.renaming.document(row) for key, row in batch.cached.items()}
            renamed = {key: row for key, row in named.items() if row != batch.cached[key]}
            batch.add([row.urlkey for key, row in renamed.items() if row.urlkey != key])
            furls = {batch.cached[key].furl: row.furl for key, row in renamed.items()}
            links = self._links(tx, {key: row.urlkey for key, row in named.items()})
            taken = set(batch.cached) - set(named)
            for key, row in list(renamed.items()):
                if row.urlkey in taken:  # only what came after the check: the newer one stays
                    batch.drop_cached(key, renamed_to(row.docid), guarded=False)
                    del renamed[key]
                    links.pop(row.urlkey, None)
                elif row.urlkey != key:
                    taken.add(row.urlkey)
            batch.rename(renamed)
            batch.flush()
            tx.put_links(links, self.pid)
            self._places(tx, furls)
        return len(renamed)

    def _links(self, tx: Tx, keys: Mapping[bytes, bytes]) -> dict[bytes, list[DocumentLink]]:
        """Return the links of documents (new keys, by former ones) that are to be stored anew."""
        found: dict[bytes, list[DocumentLink]] = {}
        for key, links in rows_in(tx).links_among(keys).items():
            renamed = [replace(one, url=self.renaming.url(one.url)) for one in links]
            if renamed != links or keys[key] != key:
                found[keys[key]] = renamed
        return found

    def _places(self, tx: Tx, furls: Mapping[str, str]) -> None:
        """Let interests, and what apps keep, follow URLs that are fetched from elsewhere now."""
        places = {furlkey(self.pid, old): furlkey(self.pid, new) for old, new in furls.items() if old != new}
        if not places:
            return
        interests = [row for rows in tx.owners_of(places).values() for row in rows]
        moved = [replace(row, furlkey=places[row.furlkey]) for row in interests]
        there = tx.ownerships([(row.furlkey, row.owner) for row in moved])
        tx.put_owners([_together(row, there.get((row.furlkey, row.owner))) for row in moved])
        tx.delete_owners([(row.furlkey, row.owner) for row in interests])
        for hook in self.hooks:
            hook.moved(tx, places)

    # --- waiting URLs ----------------------------------------------------------------------------

    def waiting(self, keys: Sequence[bytes]) -> int:
        """Rename URLs that wait to be fetched; return how many."""
        with self.store.begin() as tx:
            batch = self._batch(tx, keys)
            rows = sorted(batch.queued.values(), key=lambda row: (row.psetid, row.position))
            renamed = [(row, named) for row in rows if (named := self.renaming.waiting(row)) != row]
            batch.add([named.urlkey for row, named in renamed if named.urlkey != row.urlkey])
            for row, named in renamed:
                if named.urlkey == row.urlkey:
                    batch.put_queued(named)
                    continue
                batch.drop_queued(row.urlkey)
                if named.urlkey not in batch.queued:
                    batch.put_queued(named)
            batch.flush()
            self._places(tx, {row.furl: named.furl for row, named in renamed})
        return len(renamed)

    # --- what spiders found ----------------------------------------------------------------------

    def spidered(self, keys: Sequence[bytes]) -> int:
        """Rename URLs that spiders found, and the documents that they were found in; return how many."""
        with self.store.begin() as tx:
            lock(tx, self.pid)
            rows = list(tx.spidered(keys).values())
            parents = self._parents(tx, {row.parent for row in rows if row.parent is not None})
            renamed = [(row, named) for row in rows if (named := self._found(row, parents)) != row]
            tx.delete_spidered([row.furlkey for row, _ in renamed])
            fresh = {named.furlkey: named for _, named in renamed}
            there = tx.spidered(fresh)
            tx.insert_spidered([named for key, named in fresh.items() if key not in there])
            self._places(tx, {row.furl: named.furl for row, named in renamed})
        return len(renamed)

    def _found(self, row: Spidered, parents: Mapping[bytes, bytes]) -> Spidered:
        furl = self.renaming.url(row.furl)
        parent = row.parent if row.parent is None else parents.get(row.parent, row.parent)
        return replace(row, furlkey=furlkey(self.pid, furl), furl=furl, parent=parent)

    def _parents(self, tx: Tx, keys: Collection[bytes]) -> dict[bytes, bytes]:
        """Return the keys that documents have, or are going to have, by their former ones."""
        there = {key: self.renaming.document(row).urlkey for key, row in tx.cached(keys).items()}
        gone = tx.tombstones(set(keys) - set(there))
        renamed = {key: key_after(row.reason) for key, row in gone.items()}
        return there | {key: named for key, named in renamed.items() if named is not None}

    # --- the rest --------------------------------------------------------------------------------

    def outcomes(self, rows: Sequence[LastOutcome]) -> int:
        """Rename the last outcomes of URLs; return how many."""
        renamed = {row.urlkey: named for row in rows if (named := self._outcome(row)) != row}
        if not renamed:
            return 0
        with self.store.begin() as tx:
            lock(tx, self.pid)
            rows_in(tx).delete_outcomes(list(renamed))
            tx.put_outcomes(list(renamed.values()))
        return len(renamed)

    def _outcome(self, row: LastOutcome) -> LastOutcome:
        if urlkey(row.pid, row.curl or row.furl, row.mimetype) != row.urlkey:
            return row  # its names are cut or blanked, or not known
        curl, furl = (storable(self.renaming.url(url)) for url in (row.curl, row.furl))
        key = urlkey(row.pid, curl or furl, row.mimetype)
        submitted = None if row.submitted is None else self._submitted(row.submitted)
        return replace(row, urlkey=key, curl=curl, furl=furl, submitted=submitted)

    def _submitted(self, text: str) -> str:
        said = json.loads(text)
        if "burl" in said:
            said["burl"] = self.renaming.url(said["burl"])
        return json.dumps(said)

    def irrelevant(self, rows: Sequence[Irrelevant]) -> int:
        """Rename what is left of documents that concerned nobody; return how many.

        Only its tombstone tells the type that is in its key: without that, it is visited like a new URL.
        """
        with self.store.begin() as tx:
            lock(tx, self.pid)
            tombstones = tx.tombstones([row.urlkey for row in rows])
            keys = {row.urlkey: row.urlkey for row in rows}
            for key, one in tombstones.items():
                keys[key] = urlkey(one.pid, self.renaming.url(one.curl), one.mimetype)
            renamed = {row.urlkey: self.renaming.url(row.furl) for row in rows}
            changed = [row for row in rows if renamed[row.urlkey] != row.furl]
            links = self._links(tx, keys)
            former = [row.urlkey for row in changed]
            tx.delete_irrelevant(former)
            tx.delete_links(former)
            kept = [row for row in changed if row.urlkey in tombstones]
            tx.put_irrelevant(
                [replace(row, urlkey=keys[row.urlkey], furl=renamed[row.urlkey]) for row in kept]
            )
            lost = set(former) - set(tombstones)
            tx.put_links({key: one for key, one in links.items() if key not in lost}, self.pid)
            self._places(tx, {row.furl: renamed[row.urlkey] for row in changed})
        return len(changed)

    def of_apps(self) -> Counter[str]:
        """Rename what apps keep; return how many of each kind."""
        with self.store.begin() as tx:
            lock(tx, self.pid)
            counts: Counter[str] = Counter()
            for hook in self.hooks:
                counts.update(hook.renamed(tx, self.pid, self.renaming.url))
            return counts


def _together(row: Ownership, there: Ownership | None) -> Ownership:
    """Return an interest that comes to a place where the same owner may have one already."""
    if there is None:
        return row
    reach, asked = max(row.reach, there.reach), max(row.asked, there.asked)
    return replace(row, reach=reach, asked=asked, due=row.due or there.due)
