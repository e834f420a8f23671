"""Sources, their files, and the URLs that these listed."""

from sqlalchemy import BigInteger, Column, Index, Integer, MetaData, Table

from lcc_scrapy.apps.sources.rules import ERROR_MAX, ETAG_MAX, MODIFIED_MAX
from lcc_scrapy.db.columns import (
    OF_A_PROCESS,
    OF_OTHER_ROWS,
    BigKey,
    Key,
    Url,
    ascii_exact,
    column,
    exact,
    numbers_of,
    of_a_provider,
)

METADATA = MetaData()
SOURCEID = "source"
"""The counter of sources, which whoever claims one locks."""

sources = Table(
    "sources",
    METADATA,
    Column("sourceid", BigKey, primary_key=True, autoincrement=False, info=numbers_of(SOURCEID)),
    column("pid", BigInteger),
    column("kind", ascii_exact(16)),
    column("url", Url),
    column("every", BigInteger),
    column("created", BigInteger),
    column("due", BigInteger),
    column("owner", exact(64), info=OF_A_PROCESS),
    column("claimed", BigInteger),
    column("failures", Integer),
    column("error", exact(ERROR_MAX)),
    column("at", BigInteger),
    column("changed", BigInteger),
    column("listed", BigInteger),
    column("queued", BigInteger),
    column("removed", BigInteger),
    column("held", BigInteger),
    column("refused", BigInteger),
    column("callback", ascii_exact(64)),
    column("secret", ascii_exact(64)),
    column("hub", Url),
    column("topic", Url),
    column("lease", BigInteger),
    column("asked", ascii_exact(16)),
    Index("sources_pid", "pid"),
    Index("sources_due", "due"),
    Index("sources_callback", "callback"),
    info=of_a_provider("sourceid", claimed=0, lease=0, asked=""),  # a hub is told where it is now
)

sourcefiles = Table(
    "sourcefiles",
    METADATA,
    Column("fileid", BigKey, primary_key=True, autoincrement=False),
    column("sourceid", BigInteger),
    column("url", Url),
    column("parent", BigInteger),
    column("role", ascii_exact(16)),
    column("etag", exact(ETAG_MAX)),
    column("modified", exact(MODIFIED_MAX)),
    column("told", BigInteger),
    column("read", BigInteger),
    column("listed", BigInteger),
    Index("sourcefiles_sourceid", "sourceid"),
    info=OF_OTHER_ROWS,
)

sourceurls = Table(
    "sourceurls",
    METADATA,
    Column("fileid", BigInteger, primary_key=True, autoincrement=False),
    Column("furlkey", Key, primary_key=True),
    column("stamp", BigInteger),
    Index("sourceurls_furlkey", "furlkey"),
    info=OF_OTHER_ROWS,
)
