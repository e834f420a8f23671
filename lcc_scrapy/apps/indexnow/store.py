"""Keys of sites that submit by IndexNow, and the URLs that wait for them, as rows."""

from collections.abc import Sequence
from typing import Any

from sqlalchemy import delete, func, select, tuple_, update

from lcc_scrapy.apps.indexnow import tables as t
from lcc_scrapy.apps.indexnow.rules import GOOD, Portion, SiteKey
from lcc_scrapy.db.sql import many
from lcc_scrapy.db.sql.rows import OnConnection, RowsOf, put
from lcc_scrapy.db.tx import Tx

_KEYS = RowsOf(t.indexnow, SiteKey)
_PORTIONS = RowsOf(t.indexnowurls, Portion)


class IndexNowRows(OnConnection):
    """What one transaction can do with them."""

    def site_key(self, digest: str) -> SiteKey | None:
        """Return what is known of a key without locking it."""
        return next(iter(_KEYS.by_keys(self._c, [digest])), None)

    def lock_site_key(self, digest: str) -> SiteKey | None:
        """Return what is known of a key, and keep others from changing it until the transaction ends."""
        return next(iter(_KEYS.by_keys(self._c, [digest], lock=True)), None)

    def put_site_key(self, row: SiteKey) -> None:
        """Add or replace a key."""
        put(self._c, t.indexnow, _KEYS.as_dict(row))

    def site_keys(self, after: tuple[str, str] = ("", ""), limit: int = 1000) -> list[SiteKey]:
        """Return keys behind (site, digest), in this order."""
        c = t.indexnow.c
        query = _KEYS.select().where(tuple_(c.site, c.digest) > tuple_(*after))
        return _KEYS.read(self._c, query.order_by(c.site, c.digest).limit(limit))

    def site_keys_of(self, site: str, limit: int = 1000) -> list[SiteKey]:
        """Return the keys of a site, by digest."""
        c = t.indexnow.c
        return _KEYS.read(self._c, _KEYS.select().where(c.site == site).order_by(c.digest).limit(limit))

    def site_keys_due(self, state: str, upto: int, limit: int) -> list[SiteKey]:
        """Return keys in a state whose ``due`` is not later than ``upto``, the earliest first."""
        c = t.indexnow.c
        query = _KEYS.select().where(c.state == state, c.due <= upto)
        return _KEYS.read(self._c, query.order_by(c.due, c.digest).limit(limit))

    def count_site_keys(self, state: str) -> int:
        """Count the keys in a state."""
        query = select(func.count()).select_from(t.indexnow).where(t.indexnow.c.state == state)
        return int(self._c.execute(query).scalar_one())

    def forget_site_keys(self, state: str, before: int, limit: int = 1000) -> int:
        """Remove some keys in a state that were not used since ``before`` and wait for nothing."""
        c, p = t.indexnow.c, t.indexnowurls.c
        waiting = select(p.portionid).where(p.digest == c.digest).exists()
        query = select(c.digest).where(c.state == state, c.seen < before, ~waiting).limit(limit)
        old = list(self._c.execute(query).scalars())
        _KEYS.delete(self._c, old)
        return len(old)

    def delete_site_keys(self, digests: Sequence[str]) -> None:
        """Forget keys."""
        _KEYS.delete(self._c, digests)

    def add_portions(self, rows: Sequence[Portion]) -> None:
        """Let URLs wait; they get numbers by themselves, rising."""
        names = _PORTIONS.names[1:]
        values = [tuple(getattr(row, name) for name in names) for row in rows]
        many.insert(self._c, t.indexnowurls.name, names, values)

    def portions_of_good_keys(self, after: int, limit: int) -> list[int]:
        """Return the next numbers behind ``after`` of portions whose keys are good."""
        p, k = t.indexnowurls.c, t.indexnow.c
        query = select(p.portionid).join(t.indexnow, k.digest == p.digest)
        query = query.where(p.portionid > after, k.state == GOOD)
        return list(self._c.execute(query.order_by(p.portionid).limit(limit)).scalars())

    def lock_portion(self, portionid: int) -> Portion | None:
        """Return a portion, and keep others from taking it until the transaction ends."""
        return next(iter(_PORTIONS.by_keys(self._c, [portionid], lock=True)), None)

    def cut_portion(self, portionid: int, urls: str, count: int) -> None:
        """Leave only these URLs (JSON) in a portion; none = remove it."""
        c = t.indexnowurls.c
        which: Any = c.portionid == portionid
        if count:
            self._c.execute(update(t.indexnowurls).where(which).values(urls=urls, count=count))
        else:
            self._c.execute(delete(t.indexnowurls).where(which))

    def drop_portions_of(self, digest: str) -> int:
        """Remove what waits for a key; return how many URLs."""
        c = t.indexnowurls.c
        query = select(func.coalesce(func.sum(c["count"]), 0)).where(c.digest == digest)
        count = int(self._c.execute(query).scalar_one())
        self._c.execute(delete(t.indexnowurls).where(c.digest == digest))
        return count

    def drop_portions(self, before: int, limit: int = 1000) -> int:
        """Remove some portions that wait since before ``before``; return how many."""
        c = t.indexnowurls.c
        query = select(c.portionid).where(c.at < before).order_by(c.portionid).limit(limit)
        old = list(self._c.execute(query).scalars())
        _PORTIONS.delete(self._c, old)
        return len(old)

    def portions_waiting(self, site: str | None = None) -> int:
        """Return the bytes that wait, as ``Portion.size`` counts them: of a site, or of all."""
        c = t.indexnowurls.c
        query = select(func.coalesce(func.sum(c.size), 0))
        return int(self._c.execute(query if site is None else query.where(c.site == site)).scalar_one())

    def urls_waiting(self, site: str) -> int:
        """Return how many URLs of a site wait."""
        c = t.indexnowurls.c
        query = select(func.coalesce(func.sum(c["count"]), 0)).where(c.site == site)
        return int(self._c.execute(query).scalar_one())


def rows_in(tx: Tx) -> IndexNowRows:
    """Return the rows of this app in a transaction."""
    return IndexNowRows.over(tx)
