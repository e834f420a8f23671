"""The keys of sites, and what waits for their check or for the queue."""

from sqlalchemy import BigInteger, Column, Index, Integer, MetaData, Table

from lcc_scrapy.apps.indexnow.rules import KEY_MAX, SITE_MAX
from lcc_scrapy.db.columns import OF_THE_LCC, BigKey, Long, Url, ascii_exact, column, exact

METADATA = MetaData()

indexnow = Table(
    "indexnow",
    METADATA,
    Column("digest", ascii_exact(64), primary_key=True),
    column("site", ascii_exact(SITE_MAX)),
    column("keytext", ascii_exact(KEY_MAX)),
    column("location", Url),
    column("state", ascii_exact(8)),
    column("since", BigInteger),
    column("seen", BigInteger),
    column("checked", BigInteger),
    column("due", BigInteger),
    column("tries", Integer),
    column("reason", exact(255)),
    column("accepted", BigInteger),
    column("refused", BigInteger),
    Index("indexnow_site", "site", "digest"),
    Index("indexnow_due", "state", "due"),
    info=OF_THE_LCC,
)

indexnowurls = Table(
    "indexnowurls",
    METADATA,
    Column("portionid", BigKey, primary_key=True, autoincrement=True),
    column("digest", ascii_exact(64), index=True),
    column("site", ascii_exact(SITE_MAX)),
    column("at", BigInteger),
    column("size", BigInteger),
    column("count", Integer),
    column("urls", Long),
    Index("indexnowurls_site", "site", "size"),
    info=OF_THE_LCC,
)
