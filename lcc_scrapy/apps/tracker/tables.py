"""Domains, servers, their directories with links and digests, and the rules of scans."""

from sqlalchemy import BigInteger, Boolean, Column, Index, Integer, MetaData, Table

from lcc_scrapy.apps.tracker.rules.scans import ZONE_MAX
from lcc_scrapy.apps.tracker.rules.tracked import ADAPTER_MAX, DOMAIN_MAX, SITE_MAX, VALIDATOR_MAX
from lcc_scrapy.db.columns import (
    OF_A_PROCESS,
    OF_THE_LCC,
    BigKey,
    Digest,
    Key,
    Name,
    Target,
    Url,
    ascii_exact,
    column,
    exact,
)
from lcc_scrapy.domain.timeslots import HOURS_PER_WEEK

METADATA = MetaData()
VIEWS = MetaData()

tr_domain = Table(
    "tr_domain",
    METADATA,
    Column("domain", ascii_exact(DOMAIN_MAX), primary_key=True),
    column("created", BigInteger),
    column("peer", Url),
    column("generation", BigInteger),
    column("validator", exact(VALIDATOR_MAX)),
    column("checked", BigInteger),
    column("error", exact(255)),
    column("owner", exact(64), info=OF_A_PROCESS),
    column("claimed", BigInteger),
    info=OF_THE_LCC,
)

tr_host = Table(
    "tr_host",
    METADATA,
    Column("hostid", BigKey, primary_key=True, autoincrement=False),
    column("domain", ascii_exact(DOMAIN_MAX)),
    column("url", Url),
    column("site", ascii_exact(SITE_MAX)),
    column("created", BigInteger),
    column("first", BigInteger),
    column("dirs", BigInteger),
    column("files", BigInteger),
    column("links", BigInteger),
    column("digests", BigInteger),
    column("unsound", BigInteger),
    column("scanned", BigInteger),
    column("adapter", ascii_exact(ADAPTER_MAX)),
    column("validator", exact(VALIDATOR_MAX)),
    column("due", BigInteger),
    column("owner", exact(64), info=OF_A_PROCESS),
    column("claimed", BigInteger),
    column("failures", Integer),
    column("error", exact(255)),
    Index("tr_host_domain", "domain", "hostid"),
    Index("tr_host_site", "site"),
    Index("tr_host_due", "due"),
    Index("tr_host_claimed", "claimed"),
    info=OF_THE_LCC,
)

tr_rules = Table(
    "tr_rules",
    METADATA,
    Column("hostid", BigKey, primary_key=True, autoincrement=False),
    column("every", BigInteger),
    column("timeofday", ascii_exact(HOURS_PER_WEEK)),
    column("timezone", ascii_exact(ZONE_MAX)),
    column("bandwidth", BigInteger),
    column("private", Boolean),
    info=OF_THE_LCC,
)

tr_load = Table(
    "tr_load",
    METADATA,
    Column("first", BigKey, primary_key=True, autoincrement=False),
    column("dirs", BigInteger),
    column("claimed", BigInteger),
    info=OF_THE_LCC,
)

tr_dir = Table(
    "tr_dir",
    METADATA,
    Column("dirid", BigKey, primary_key=True, autoincrement=False),
    column("hostid", BigInteger),
    column("parent", BigInteger),
    column("first", BigInteger),
    column("dirs", Integer),
    column("name", Name),
    column("md5", Key, null=True),
    column("sha", Key, null=True),
    column("tag", Integer, null=True),
    Index("tr_dir_tag", "tag"),
    info=OF_THE_LCC,
)

tr_link = Table(
    "tr_link",
    METADATA,
    Column("dirid", BigInteger, primary_key=True, autoincrement=False),
    Column("name", Name, primary_key=True),
    column("target", Target),
    info=OF_THE_LCC,
)

tr_hash = Table(
    "tr_hash",
    METADATA,
    Column("dirid", BigInteger, primary_key=True, autoincrement=False),
    Column("name", Name, primary_key=True),
    column("digest", Digest),
    info=OF_THE_LCC,
)

tr_digests = Table(
    "tr_digests",
    VIEWS,
    Column("dirid", BigInteger, primary_key=True),
    column("domain", ascii_exact(DOMAIN_MAX)),
    column("url", Url),
    column("parent", BigInteger),
    column("name", Name),
    column("md5", Key, null=True),
    column("sha", Key, null=True),
    column("scanned", BigInteger),
)
