"""The tables, with the names and columns of the seeds (003 section 6, 001 "Provider information").

Columns stand in the order of the fields of the values they are read into, derived ones (``curlhash``,
``furlhash``, ``furlkey``) behind them. URL text compares as bytes; ``urlkey`` and ``furlkey`` are 16 raw
bytes.

Migrations alone make tables. Here stands what statements need, and no type or option of one database that
SQLAlchemy would import its dialect for: those of MariaDB and PostgreSQL take longer than most lookups.
"""

from typing import Any

from sqlalchemy import (
    BINARY,
    VARBINARY,
    BigInteger,
    Boolean,
    Column,
    Double,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    SmallInteger,
    String,
    Table,
    Text,
)

from lcc_scrapy.db.records import IDLE_MAX, JOB_MAX, OUTCOME_STATE_MAX
from lcc_scrapy.domain.acis import EXTENSION_MAX, FORMAT_MAX, SUMMARY_MAX, TITLE_MAX
from lcc_scrapy.domain.audit import ACTION_MAX, DETAIL_MAX, WHO_MAX
from lcc_scrapy.domain.cache import CHARSET_MAX, ETAG_MAX, LAST_MODIFIED_MAX, PEER_MAX, STATUS_LINE_MAX
from lcc_scrapy.domain.cursor import CURSOR_MAX
from lcc_scrapy.domain.directives import OWNER_MAX
from lcc_scrapy.domain.entries import MIMETYPE_MAX, SUBTYPE_MAX
from lcc_scrapy.domain.indexnow import KEY_MAX, SITE_MAX
from lcc_scrapy.domain.named_cursors import NAME_MAX
from lcc_scrapy.domain.roots import URL_MAX
from lcc_scrapy.domain.sources import ERROR_MAX
from lcc_scrapy.domain.sources import ETAG_MAX as SOURCE_ETAG_MAX
from lcc_scrapy.domain.sources import MODIFIED_MAX as SOURCE_MODIFIED_MAX
from lcc_scrapy.domain.timeslots import HOURS_PER_WEEK
from lcc_scrapy.domain.tokens import LABEL_MAX, RESTRICTION_MAX
from lcc_scrapy.domain.tracker import ADAPTER_MAX, DOMAIN_MAX, VALIDATOR_MAX
from lcc_scrapy.domain.tracker import SITE_MAX as TRACKED_SITE_MAX
from lcc_scrapy.domain.tracker_rules import ZONE_MAX as TRACKER_ZONE_MAX
from lcc_scrapy.domain.urds import KEYWORD_MAX
from lcc_scrapy.domain.users import NAME_MAX as USER_MAX
from lcc_scrapy.domain.users import PROVIDERS_MAX

metadata = MetaData()
views = MetaData()
"""What is read like tables, and written as columns of others."""

Key = LargeBinary(16).with_variant(BINARY(16), "mysql", "mariadb")
Name = LargeBinary(255).with_variant(VARBINARY(255), "mysql", "mariadb")
"""Names of files and directories elsewhere: bytes, in the order of bytes."""
Digest = LargeBinary(64).with_variant(VARBINARY(64), "mysql", "mariadb")
Target = LargeBinary(4095).with_variant(VARBINARY(4095), "mysql", "mariadb")

BigKey = BigInteger().with_variant(Integer, "sqlite")


OF_A_PROCESS = {"of a process": True}
"""``info`` of a text column that names a running process: in a restored database it is empty."""


class _MediumText(Text):
    """The type of MariaDB and MySQL; its compiler goes by this name."""

    __visit_name__ = "MEDIUMTEXT"


class _MediumBlob(LargeBinary):
    """The type of MariaDB and MySQL; its compiler goes by this name."""

    __visit_name__ = "MEDIUMBLOB"


def _text(width: int) -> Any:
    return String(width).with_variant(String(width, collation="utf8mb4_bin"), "mysql", "mariadb")


def _ascii(width: int) -> Any:
    return String(width).with_variant(String(width, collation="ascii_bin"), "mysql", "mariadb")


Long = Text().with_variant(_MediumText(collation="utf8mb4_bin"), "mysql", "mariadb")
LongBytes = LargeBinary().with_variant(_MediumBlob(), "mysql", "mariadb")
Url = _text(URL_MAX)
Mask = _ascii(HOURS_PER_WEEK)


def _column(name: str, type_: Any, *, null: bool = False, **options: Any) -> Column[Any]:
    return Column(name, type_, nullable=null, **options)


def _namehashes() -> tuple[Column[Any], Column[Any]]:
    """Return the columns by which a row is found by its URLs; ``furlhash`` is NULL where both are one."""
    return _column("curlhash", BigInteger), _column("furlhash", BigInteger, null=True)


def _where_known(name: str, column: str) -> Index:
    """Return an index that leaves rows without a value out, where the database knows such (its migration)."""
    return Index(name, column)


def _by_name(table: str) -> tuple[Index, Index]:
    return Index(f"{table}_curlhash", "curlhash"), _where_known(f"{table}_furlhash", "furlhash")


pidb = Table(
    "pidb",
    metadata,
    Column("pid", BigKey, primary_key=True, autoincrement=False),
    _column("password", _ascii(255)),
    _column("filesmax", BigInteger),
    _column("spacemax", BigInteger),
    _column("fullsetsallowed", Integer, null=True),
    _column("bandwidth", BigInteger),
    _column("timeofday", Mask),
    _column("priority", SmallInteger),
    _column("fileused", BigInteger),
    _column("spaceused", BigInteger),
    _column("lastconnseq", BigInteger),
    _column("lastconnip", _ascii(45)),
    _column("nurlerrs", BigInteger),
    _column("nurlproc", BigInteger),
    _column("name", _text(255)),
    _column("contact", _text(255)),
    _column("state", _ascii(16)),
    _column("timezone", _ascii(64)),
    _column("fullsetwanted", _ascii(32)),
    _column("turngroup", _text(64), index=True),
    _column("allowprivate", Boolean),
    _column("ignorerobots", Boolean),
    _column("strictmtime", Boolean),
    _column("declared", _ascii(16)),
    _column("fullsetsused", Integer),
    _column("fullsetsince", BigInteger),
    _column("removedsince", BigInteger),
    _column("removed", BigInteger),
    _column("created", BigInteger),
    _column("lastconntime", BigInteger),
    _column("revision", BigInteger, index=True),
    _column("wantedseq", BigInteger),
    _column("confirmed", BigInteger),
    _column("heldremovals", BigInteger),
    _column("narrowing", Boolean),
    _column("revisit", _ascii(64)),
    _column("fallback", Double),
    _column("fallingback", Boolean),
    _column("countedsince", BigInteger),
    _column("mimetypes", _ascii(1024)),
    _column("orphans", _ascii(16)),
    _column("atonce", SmallInteger),
    _column("render", _ascii(16)),
    _column("mismatched", Integer),
)

proots = Table(
    "proots",
    metadata,
    Column("rootid", BigKey, primary_key=True, autoincrement=True),
    _column("pid", BigInteger, index=True),
    _column("root", Url),
)

qdb = Table(
    "qdb",
    metadata,
    Column("id", BigKey, primary_key=True, autoincrement=True),
    _column("urlkey", Key),
    _column("pid", BigInteger),
    _column("curl", Url),
    _column("mimetype", _ascii(MIMETYPE_MAX)),
    _column("subtype", _text(SUBTYPE_MAX)),
    _column("burl", Url, null=True),
    _column("furl", Url),
    _column("mtime", BigInteger, null=True),
    _column("len", BigInteger, null=True),
    _column("md5", _ascii(32), null=True),
    _column("timeofday", Mask),
    _column("psetid", BigInteger),
    _column("position", BigInteger),
    _column("operation", _ascii(8)),
    _column("version", BigInteger),
    _column("tries", Integer),
    _column("not_before", BigInteger),
    _column("origin", _ascii(16)),
    _column("seen", BigInteger),
    _column("sent", Long, null=True),
    _column("last_etag", _text(ETAG_MAX)),
    _column("furlkey", Key, null=True),
    *_namehashes(),
    Index("qdb_order", "pid", "timeofday", "not_before", "psetid", "position"),
    Index("qdb_urlkey", "urlkey", unique=True),
    Index("qdb_pid", "pid", "id"),
    *_by_name("qdb"),
    _where_known("ix_qdb_furlkey", "furlkey"),
)

qpsdb = Table(
    "qpsdb",
    metadata,
    Column("psetid", BigInteger, primary_key=True, autoincrement=False),
    Column("timeofday", Mask, primary_key=True),
    _column("pid", BigInteger, index=True),
    _column("starttimeslot", Integer),
    _column("pri", SmallInteger),
    _column("nurls", BigInteger),
)

lccurl = Table(
    "lccurl",
    metadata,
    Column("urlkey", Key, primary_key=True),
    _column("pid", BigInteger),
    _column("curl", Url),
    _column("mimetype", _ascii(MIMETYPE_MAX)),
    _column("subtype", _text(SUBTYPE_MAX)),
    _column("burl", Url, null=True),
    _column("furl", Url),
    _column("mtime", BigInteger, null=True),
    _column("len", BigInteger, null=True),
    _column("md5", _ascii(32), null=True),
    _column("timeofday", Mask),
    _column("fetched_time", BigInteger, index=True),
    _column("fetched_machineid", Integer),
    _column("fetched_fileid", BigInteger),
    _column("fetched_len", BigInteger),
    _column("fetched_md5", _ascii(32)),
    _column("sha256", _ascii(64)),
    _column("served_type", _text(MIMETYPE_MAX)),
    _column("served_charset", _text(CHARSET_MAX)),
    _column("file_encoding", _ascii(16)),
    _column("final_url", Url),
    _column("etag", _text(ETAG_MAX)),
    _column("last_modified", _text(LAST_MODIFIED_MAX)),
    _column("confirmed_time", BigInteger),
    _column("origin", _ascii(16)),
    _column("seq", BigInteger),
    _column("seen", BigInteger),
    _column("held", BigInteger),
    _column("subtype_seq", BigInteger),
    _column("head_len", Integer),
    _column("owners_seq", BigInteger),
    _column("confirmed_seq", BigInteger),
    _column("furlkey", Key, null=True, index=True),
    *_namehashes(),
    _column("answer_line", _text(STATUS_LINE_MAX), null=True),
    _column("answer_headers", Long, null=True),
    _column("answer_peer", _text(PEER_MAX), null=True),
    _column("answer_time", BigInteger, null=True),
    *_by_name("lccurl"),
    Index("lccurl_seq", "seq", unique=True),
    _where_known("lccurl_confirmed_seq", "confirmed_seq"),
    Index("lccurl_pid", "pid", "urlkey"),
    Index("lccurl_file", "fetched_machineid", "fetched_fileid"),
)

lccmeta = Table(
    "lccmeta",
    views,
    Column("urlkey", Key, primary_key=True),
    _column("status_line", _text(STATUS_LINE_MAX)),
    _column("headers", Long),
    _column("peer", _text(PEER_MAX)),
    _column("answered", BigInteger),
)

versions = Table(
    "versions",
    metadata,
    Column("seq", BigInteger, primary_key=True, autoincrement=False),
    _column("urlkey", Key),
    _column("pid", BigInteger),
    _column("replaced_time", BigInteger),
    _column("fetched_time", BigInteger),
    _column("fetched_machineid", Integer),
    _column("fetched_fileid", BigInteger),
    _column("fetched_len", BigInteger),
    _column("fetched_md5", _ascii(32)),
    _column("sha256", _ascii(64)),
    _column("served_type", _text(MIMETYPE_MAX)),
    _column("served_charset", _text(CHARSET_MAX)),
    _column("file_encoding", _ascii(16)),
    _column("final_url", Url),
    _column("etag", _text(ETAG_MAX)),
    _column("last_modified", _text(LAST_MODIFIED_MAX)),
    Index("versions_key", "urlkey"),
    Index("versions_pid", "pid", "urlkey", "replaced_time"),
    Index("versions_file", "fetched_machineid", "fetched_fileid"),
)

links = Table(
    "links",
    metadata,
    Column("urlkey", Key, primary_key=True),
    _column("words", BigInteger),
    _column("body", LongBytes),
)

linkwords = Table(
    "linkwords",
    metadata,
    Column("wordsid", BigKey, primary_key=True, autoincrement=True),
    _column("pid", BigInteger, index=True),
    _column("body", LongBytes),
    sqlite_autoincrement=True,
)

spidered = Table(
    "spidered",
    metadata,
    Column("furlkey", Key, primary_key=True),
    _column("pid", BigInteger),
    _column("furl", Url),
    _column("depth", Integer),
    _column("parent", Key, null=True),
    _column("found", BigInteger),
    _column("visited", BigInteger),
    _column("code", Integer),
    _column("answered", BigInteger),
    _column("every", BigInteger),
    _column("changes", Integer),
    _column("due", BigInteger),
    Index("spidered_visits", "pid", "visited", "furlkey"),
    Index("spidered_due", "pid", "due", "furlkey"),
    Index("spidered_pid", "pid", "furlkey"),
)

owners = Table(
    "owners",
    metadata,
    Column("furlkey", Key, primary_key=True),
    Column("owner", _text(OWNER_MAX), primary_key=True),
    _column("pid", BigInteger),
    _column("reach", Integer),
    _column("due", Boolean),
    _column("asked", Integer),
    Index("owners_due", "pid", "due", "furlkey", "owner"),
    Index("owners_owner", "owner", "pid", "furlkey"),
)

irrelevant = Table(
    "irrelevant",
    metadata,
    Column("urlkey", Key, primary_key=True),
    _column("pid", BigInteger),
    _column("furl", Url),
    _column("etag", _text(ETAG_MAX)),
    _column("last_modified", _text(LAST_MODIFIED_MAX)),
    _column("sha256", _ascii(64)),
    _column("terms", _ascii(64)),
    _column("dropped", BigInteger),
    _column("furlkey", Key),
    Index("irrelevant_furlkey", "furlkey"),
    Index("irrelevant_pid", "pid", "urlkey"),
)

unwanted = Table(
    "unwanted",
    metadata,
    Column("urlkey", Key, primary_key=True),
    _column("seq", BigInteger),
)

withdrawals = Table(
    "withdrawals",
    metadata,
    Column("owner", _text(OWNER_MAX), primary_key=True),
    _column("changes", BigInteger),
)

scans = Table(
    "scans",
    metadata,
    Column("pid", BigKey, primary_key=True, autoincrement=False),
    _column("seq", BigInteger),
    _column("terms", _ascii(64)),
    _column("since", BigInteger),
    _column("at", BigInteger),
    _column("pages", BigInteger),
    _column("urls", BigInteger),
    _column("rules", _ascii(64)),
    _column("taken", BigInteger),
)

misses = Table(
    "misses",
    metadata,
    Column("pid", BigInteger, primary_key=True, autoincrement=False),
    Column("day", Integer, primary_key=True, autoincrement=False),
    _column("pushed", BigInteger),
    _column("sampled", BigInteger),
    _column("missed", BigInteger),
    _column("watched", BigInteger),
    Index("misses_day", "day"),
)

suspects = Table(
    "suspects",
    metadata,
    Column("urlkey", Key, primary_key=True),
    _column("pid", BigInteger),
    _column("found", BigInteger),
    Index("suspects_pid", "pid", "found"),
)

tombstones = Table(
    "tombstones",
    metadata,
    Column("urlkey", Key, primary_key=True),
    _column("pid", BigInteger),
    _column("curl", Url),
    _column("mimetype", _ascii(MIMETYPE_MAX)),
    _column("furl", Url),
    _column("reason", _text(64)),
    _column("removed_time", BigInteger),
    _column("seq", BigInteger),
    *_namehashes(),
    Index("tombstones_seq", "seq", unique=True),
    *_by_name("tombstones"),
)

moved = Table(
    "moved",
    metadata,
    Column("seq", BigInteger, primary_key=True, autoincrement=False),
    Column("move", BigInteger, primary_key=True, autoincrement=False),
    _column("was", BigInteger),
)

fsmdb = Table(
    "fsmdb",
    metadata,
    Column("machineid", Integer, primary_key=True, autoincrement=False),
    Column("fileid", BigInteger, primary_key=True, autoincrement=False),
    _column("len", BigInteger),
    _column("not_before", BigInteger),
    Index("fsmdb_due", "machineid", "not_before"),
)

fileblocks = Table(
    "fileblocks",
    metadata,
    Column("machineid", Integer, primary_key=True, autoincrement=False),
    Column("block", BigInteger, primary_key=True, autoincrement=False),
    _column("first", BigInteger),
    _column("owner", _text(64), info=OF_A_PROCESS),
    _column("token", BigInteger),
)

urlerrors = Table(
    "urlerrors",
    metadata,
    Column("errorid", BigKey, primary_key=True, autoincrement=True),
    _column("pid", BigInteger),
    _column("code", Integer),
    _column("text", _text(255)),
    _column("url", Url),
    _column("attributes", Long),
    _column("at", BigInteger),
    _column("sent", Long, null=True),
    Index("urlerrors_pid", "pid", "errorid"),
    sqlite_autoincrement=True,
)

outcomes = Table(
    "outcomes",
    metadata,
    Column("urlkey", Key, primary_key=True),
    _column("pid", BigInteger),
    _column("code", Integer),
    _column("text", _text(255)),
    _column("at", BigInteger, index=True),
    _column("state", _ascii(OUTCOME_STATE_MAX)),
    _column("curl", Url),
    _column("mimetype", _ascii(MIMETYPE_MAX)),
    _column("furl", Url),
    _column("submitted", Long, null=True),
    *_namehashes(),
    Index("outcomes_state", "pid", "state", "at", "urlkey"),
    *_by_name("outcomes"),
)

psets = Table(
    "psets",
    metadata,
    Column("psetid", BigInteger, primary_key=True, autoincrement=False),
    _column("pid", BigInteger),
    _column("connseq", BigInteger),
    _column("setid", _text(128)),
    _column("digest", _ascii(64)),
    _column("full", Boolean),
    _column("received", BigInteger),
    _column("phase", _ascii(16)),
    _column("progress", BigInteger),
    _column("absorbed", BigInteger),
    _column("held", BigInteger),
    _column("started", BigInteger),
    _column("counted", BigInteger),
    _column("upto", Key, null=True),
    _column("absent", BigInteger),
    _column("unfetched", BigInteger),
    Index("psets_file", "pid", "connseq"),
    Index("psets_setid", "pid", "setid"),
)

logins = Table(
    "logins",
    metadata,
    Column("pid", BigInteger, primary_key=True, autoincrement=False),
    Column("connseq", BigInteger, primary_key=True, autoincrement=False),
    _column("uns", _ascii(36)),
    _column("at", BigInteger),
    _column("passed", Boolean),
    _column("stage", _ascii(8)),
    _column("overtaken", Boolean),
    Index("logins_uns", "uns", "pid", "connseq"),
)

overtaking = Table(
    "overtaking",
    metadata,
    Column("urlkey", Key, primary_key=True),
    _column("pid", BigInteger),
    _column("connseq", BigInteger),
    Index("overtaking_pid", "pid", "urlkey"),
)

unses = Table(
    "unses",
    metadata,
    Column("uns", _ascii(36), primary_key=True),
    _column("note", _text(255)),
    _column("seen", BigInteger),
)

turns = Table(
    "turns",
    metadata,
    Column("turnkey", _text(64), primary_key=True),
    _column("owner", _text(64), info=OF_A_PROCESS),
    _column("token", BigInteger),
    _column("priority", SmallInteger),
    _column("waiting", BigInteger),
    _column("look_at", Double),
    _column("not_before", Double),
    _column("arrivals", BigInteger),
    Index("turns_free", "owner", "priority", "look_at"),
)

failinghosts = Table(
    "failinghosts",
    metadata,
    Column("turnkey", _text(64), primary_key=True),
    Column("host", _text(300), primary_key=True),
    _column("not_before", Double),
    _column("failures", Integer),
    _column("since", Double),
    _column("wait", Double),
    _column("blamed", Long),
)

workers = Table(
    "workers",
    metadata,
    Column("owner", _text(64), primary_key=True),
    _column("token", BigInteger),
    _column("machineid", Integer),
    _column("process", BigInteger),
    _column("started", BigInteger),
    _column("expires", BigInteger),
    _column("places", Integer),
    _column("in_use", Integer),
    _column("held", Integer),
    _column("rate", BigInteger),
    _column("hungry", Boolean),
    _column("pid", BigInteger),
    _column("paced", Integer),
    _column("job_ms", BigInteger),
    _column("job", _ascii(JOB_MAX)),
    _column("idle", _text(IDLE_MAX)),
)

fetches = Table(
    "fetches",
    metadata,
    Column("turnkey", _text(64), primary_key=True),
    _column("owner", _text(64), info=OF_A_PROCESS),
    _column("token", BigInteger),
    _column("urlkey", Key),
    _column("since", BigInteger),
    _column("paced", BigInteger),
    _column("transferred", BigInteger),
    _column("size", BigInteger),
    Index("fetches_owner", "owner"),
)

machines = Table(
    "machines",
    metadata,
    Column("machineid", BigKey, primary_key=True, autoincrement=True),
    _column("identity", _ascii(36)),
    _column("note", _text(255)),
    _column("created", BigInteger),
    _column("address", _text(255)),
    Index("machines_identity", "identity", unique=True),
    sqlite_autoincrement=True,
)

counters = Table(
    "counters",
    metadata,
    Column("name", _ascii(32), primary_key=True),
    _column("value", BigInteger),
)

lccinfo = Table(
    "lccinfo",
    metadata,
    Column("name", _ascii(32), primary_key=True),
    _column("value", _text(255)),
)

tokens = Table(
    "tokens",
    metadata,
    Column("digest", _ascii(64), primary_key=True),
    _column("label", _text(LABEL_MAX)),
    _column("scopes", _ascii(64)),
    _column("providers", _ascii(RESTRICTION_MAX)),
    _column("mimetypes", _ascii(RESTRICTION_MAX)),
    _column("created", BigInteger),
    _column("expires", BigInteger),
    _column("used", BigInteger),
)

registrations = Table(
    "registrations",
    metadata,
    Column("secret", _ascii(64), primary_key=True),
    _column("pid", BigInteger, index=True),
    _column("kind", _ascii(16)),
    _column("stage", _ascii(16)),
    _column("site", Url),
    _column("password", _ascii(255)),
    _column("contact", _text(255)),
    _column("bandwidth", BigInteger),
    _column("timeofday", Mask),
    _column("timezone", _ascii(64)),
    _column("root", Url),
    _column("address", _ascii(45)),
    _column("created", BigInteger),
    _column("expires", BigInteger),
    Index("registrations_expires", "expires"),
)

tallies = Table(
    "tallies",
    metadata,
    Column("name", _ascii(64), primary_key=True),
    _column("value", BigInteger),
)

mailstates = Table(
    "mailstates",
    metadata,
    Column("pid", BigInteger, primary_key=True, autoincrement=False),
    _column("since", BigInteger),
    _column("due", BigInteger),
    _column("wanted", _ascii(32)),
    _column("wanted_at", BigInteger),
    _column("held", BigInteger),
    _column("held_at", BigInteger),
    _column("refused", _text(255)),
    _column("off", Boolean),
    _column("tries", Integer),
    _column("not_before", BigInteger),
)

fetchcounts = Table(
    "fetchcounts",
    metadata,
    Column("pid", BigInteger, primary_key=True, autoincrement=False),
    Column("begun", BigInteger, primary_key=True, autoincrement=False),
    Column("result", _ascii(16), primary_key=True),
    Column("code", Integer, primary_key=True, autoincrement=False),
    _column("count", BigInteger),
    Index("fetchcounts_result", "begun", "result"),
)

cursors = Table(
    "cursors",
    metadata,
    Column("owner", _text(LABEL_MAX), primary_key=True),
    Column("name", _ascii(NAME_MAX), primary_key=True),
    _column("cursor", _ascii(CURSOR_MAX)),
    _column("seq", BigInteger),
    _column("at", BigInteger),
)

users = Table(
    "users",
    metadata,
    Column("name", _ascii(USER_MAX), primary_key=True),
    _column("role", _ascii(16)),
    _column("providers", _ascii(PROVIDERS_MAX)),
    _column("password", _ascii(255)),
    _column("created", BigInteger),
)

sessions = Table(
    "sessions",
    metadata,
    Column("digest", _ascii(64), primary_key=True),
    _column("name", _ascii(USER_MAX), index=True),
    _column("created", BigInteger),
    _column("expires", BigInteger, index=True),
)

audit = Table(
    "audit",
    metadata,
    Column("entryid", BigKey, primary_key=True, autoincrement=True),
    _column("at", BigInteger, index=True),
    _column("who", _text(WHO_MAX)),
    _column("place", _ascii(16)),
    _column("action", _ascii(ACTION_MAX)),
    _column("pid", BigInteger),
    _column("detail", _text(DETAIL_MAX)),
    Index("audit_pid", "pid", "entryid"),
    sqlite_autoincrement=True,
)

sources = Table(
    "sources",
    metadata,
    Column("sourceid", BigKey, primary_key=True, autoincrement=False),
    _column("pid", BigInteger),
    _column("kind", _ascii(16)),
    _column("url", Url),
    _column("every", BigInteger),
    _column("created", BigInteger),
    _column("due", BigInteger),
    _column("owner", _text(64), info=OF_A_PROCESS),
    _column("claimed", BigInteger),
    _column("failures", Integer),
    _column("error", _text(ERROR_MAX)),
    _column("at", BigInteger),
    _column("changed", BigInteger),
    _column("listed", BigInteger),
    _column("queued", BigInteger),
    _column("removed", BigInteger),
    _column("held", BigInteger),
    _column("refused", BigInteger),
    _column("callback", _ascii(64)),
    _column("secret", _ascii(64)),
    _column("hub", Url),
    _column("topic", Url),
    _column("lease", BigInteger),
    _column("asked", _ascii(16)),
    Index("sources_pid", "pid"),
    Index("sources_due", "due"),
    Index("sources_callback", "callback"),
)

sourcefiles = Table(
    "sourcefiles",
    metadata,
    Column("fileid", BigKey, primary_key=True, autoincrement=False),
    _column("sourceid", BigInteger),
    _column("url", Url),
    _column("parent", BigInteger),
    _column("role", _ascii(16)),
    _column("etag", _text(SOURCE_ETAG_MAX)),
    _column("modified", _text(SOURCE_MODIFIED_MAX)),
    _column("told", BigInteger),
    _column("read", BigInteger),
    _column("listed", BigInteger),
    Index("sourcefiles_sourceid", "sourceid"),
)

sourceurls = Table(
    "sourceurls",
    metadata,
    Column("fileid", BigInteger, primary_key=True, autoincrement=False),
    Column("furlkey", Key, primary_key=True),
    _column("stamp", BigInteger),
    Index("sourceurls_furlkey", "furlkey"),
)

indexnow = Table(
    "indexnow",
    metadata,
    Column("digest", _ascii(64), primary_key=True),
    _column("site", _ascii(SITE_MAX)),
    _column("keytext", _ascii(KEY_MAX)),
    _column("location", Url),
    _column("state", _ascii(8)),
    _column("since", BigInteger),
    _column("seen", BigInteger),
    _column("checked", BigInteger),
    _column("due", BigInteger),
    _column("tries", Integer),
    _column("reason", _text(255)),
    _column("accepted", BigInteger),
    _column("refused", BigInteger),
    Index("indexnow_site", "site", "digest"),
    Index("indexnow_due", "state", "due"),
)

indexnowurls = Table(
    "indexnowurls",
    metadata,
    Column("portionid", BigKey, primary_key=True, autoincrement=True),
    _column("digest", _ascii(64), index=True),
    _column("site", _ascii(SITE_MAX)),
    _column("at", BigInteger),
    _column("size", BigInteger),
    _column("count", Integer),
    _column("urls", Long),
    Index("indexnowurls_site", "site", "size"),
)

urd = Table(
    "urd",
    metadata,
    Column("urdid", BigKey, primary_key=True, autoincrement=True),
    _column("owner", _text(OWNER_MAX)),
    _column("uri", Url),
    _column("timing", BigInteger),
    _column("lastcheck", BigInteger),
    _column("port", Integer),
    _column("protocol", _ascii(8)),
    _column("method", _ascii(8)),
    _column("processtype", _ascii(16)),
    _column("rule", Long),
    _column("depth", Integer),
    _column("urgency", SmallInteger),
    _column("threshold", BigInteger),
    _column("expires", BigInteger, null=True),
    _column("revision", BigInteger),
    _column("due", BigInteger),
    _column("run_upto", Key, null=True),
    _column("urihash", BigInteger),
    _column("refused", _text(255)),
    Index("urd_owner", "owner", "urdid"),
    Index("urd_due", "due"),
    Index("urd_urgency", "urgency", "due"),
    Index("urd_urihash", "urihash", "urdid"),
    Index("urd_revision", "revision", unique=True),
    Index("urd_run", "run_upto"),
    sqlite_autoincrement=True,
)

urd_keyword = Table(
    "urd_keyword",
    metadata,
    Column("urdid", BigInteger, primary_key=True, autoincrement=False),
    Column("position", Integer, primary_key=True, autoincrement=False),
    _column("key", _text(KEYWORD_MAX)),
    _column("weight", Integer),
)

removed_urds = Table(
    "removed_urds",
    metadata,
    Column("revision", BigInteger, primary_key=True, autoincrement=False),
    _column("urdid", BigInteger),
)

aequeue = Table(
    "aequeue",
    metadata,
    Column("urlkey", Key, primary_key=True),
    _column("seq", BigInteger),
    _column("position", BigInteger),
    _column("since", BigInteger),
    _column("urdids", Long),
    _column("base", BigInteger),
    Index("aequeue_position", "position", unique=True),
)

aci = Table(
    "aci",
    metadata,
    Column("urlkey", Key, primary_key=True),
    Column("seq", BigInteger, primary_key=True, autoincrement=False),
    Column("owner", _text(OWNER_MAX), primary_key=True),
    _column("number", BigInteger),
    _column("urdid", BigInteger),
    _column("pid", BigInteger),
    _column("extension", _text(EXTENSION_MAX)),
    _column("format", _text(FORMAT_MAX)),
    _column("relevance", BigInteger),
    _column("updatetime", BigInteger),
    _column("filesize", BigInteger),
    _column("uri", Url),
    _column("urgency", SmallInteger),
    _column("docbase", _ascii(64)),
    _column("expired", Boolean),
    _column("title", _text(TITLE_MAX)),
    _column("summary", _text(SUMMARY_MAX)),
    _column("detail", Long),
    _column("made", BigInteger),
    Index("aci_number", "number", unique=True),
    Index("aci_owner", "owner", "number"),
    Index("aci_expired", "expired", "made"),
)

recipients = Table(
    "recipients",
    metadata,
    Column("recipientid", BigKey, primary_key=True, autoincrement=True),
    _column("owner", _text(OWNER_MAX)),
    _column("channel", _ascii(16)),
    _column("address", Url),
    _column("format", _ascii(8)),
    _column("digest", Boolean),
    _column("secret", _ascii(64)),
    _column("off", Boolean),
    _column("created", BigInteger),
    _column("refused", _text(255)),
    _column("tries", Integer),
    _column("not_before", BigInteger),
    _column("due", BigInteger),
    _column("deadline", BigInteger),
    Index("recipients_owner", "owner", "recipientid"),
    Index("recipients_due", "channel", "due"),
    sqlite_autoincrement=True,
)

alerts = Table(
    "alerts",
    metadata,
    Column("number", BigInteger, primary_key=True, autoincrement=False),
    Column("recipientid", BigInteger, primary_key=True, autoincrement=False),
    _column("state", _ascii(16)),
    _column("tries", Integer),
    _column("not_before", BigInteger),
    _column("deadline", BigInteger),
    _column("sent", BigInteger),
    _column("digest", BigInteger),
    Index("alerts_due", "recipientid", "state", "not_before"),
    Index("alerts_deadline", "recipientid", "state", "deadline"),
    Index("alerts_state", "state", "deadline"),
)

tr_domain = Table(
    "tr_domain",
    metadata,
    Column("domain", _ascii(DOMAIN_MAX), primary_key=True),
    _column("created", BigInteger),
    _column("peer", Url),
    _column("generation", BigInteger),
    _column("validator", _text(VALIDATOR_MAX)),
    _column("checked", BigInteger),
    _column("error", _text(255)),
    _column("owner", _text(64), info=OF_A_PROCESS),
    _column("claimed", BigInteger),
)

tr_host = Table(
    "tr_host",
    metadata,
    Column("hostid", BigKey, primary_key=True, autoincrement=False),
    _column("domain", _ascii(DOMAIN_MAX)),
    _column("url", Url),
    _column("site", _ascii(TRACKED_SITE_MAX)),
    _column("created", BigInteger),
    _column("first", BigInteger),
    _column("dirs", BigInteger),
    _column("files", BigInteger),
    _column("links", BigInteger),
    _column("digests", BigInteger),
    _column("unsound", BigInteger),
    _column("scanned", BigInteger),
    _column("adapter", _ascii(ADAPTER_MAX)),
    _column("validator", _text(VALIDATOR_MAX)),
    _column("due", BigInteger),
    _column("owner", _text(64), info=OF_A_PROCESS),
    _column("claimed", BigInteger),
    _column("failures", Integer),
    _column("error", _text(255)),
    Index("tr_host_domain", "domain", "hostid"),
    Index("tr_host_site", "site"),
    Index("tr_host_due", "due"),
    Index("tr_host_claimed", "claimed"),
)

tr_rules = Table(
    "tr_rules",
    metadata,
    Column("hostid", BigKey, primary_key=True, autoincrement=False),
    _column("every", BigInteger),
    _column("timeofday", _ascii(HOURS_PER_WEEK)),
    _column("timezone", _ascii(TRACKER_ZONE_MAX)),
    _column("bandwidth", BigInteger),
    _column("private", Boolean),
)

tr_load = Table(
    "tr_load",
    metadata,
    Column("first", BigKey, primary_key=True, autoincrement=False),
    _column("dirs", BigInteger),
    _column("claimed", BigInteger),
)

tr_dir = Table(
    "tr_dir",
    metadata,
    Column("dirid", BigKey, primary_key=True, autoincrement=False),
    _column("hostid", BigInteger),
    _column("parent", BigInteger),
    _column("first", BigInteger),
    _column("dirs", Integer),
    _column("name", Name),
    _column("md5", Key, null=True),
    _column("sha", Key, null=True),
    _column("tag", Integer, null=True),
    Index("tr_dir_tag", "tag"),
)

tr_link = Table(
    "tr_link",
    metadata,
    Column("dirid", BigInteger, primary_key=True, autoincrement=False),
    Column("name", Name, primary_key=True),
    _column("target", Target),
)

tr_hash = Table(
    "tr_hash",
    metadata,
    Column("dirid", BigInteger, primary_key=True, autoincrement=False),
    Column("name", Name, primary_key=True),
    _column("digest", Digest),
)

tr_digests = Table(
    "tr_digests",
    views,
    Column("dirid", BigInteger, primary_key=True),
    _column("domain", _ascii(DOMAIN_MAX)),
    _column("url", Url),
    _column("parent", BigInteger),
    _column("name", Name),
    _column("md5", Key, null=True),
    _column("sha", Key, null=True),
    _column("scanned", BigInteger),
)
