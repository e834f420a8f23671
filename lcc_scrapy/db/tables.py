"""The tables, with the names and columns of the seeds (003 section 6, 001 "Provider information").

Columns stand in the order of the fields of the values they are read into, derived ones (``curlhash``,
``furlhash``, ``furlkey``) behind them. URL text compares as bytes; ``urlkey`` and ``furlkey`` are 16 raw
bytes.

Migrations alone make tables. Here stands what statements need, and no type or option of one database that
SQLAlchemy would import its dialect for: those of MariaDB and PostgreSQL take longer than most lookups.
"""

from typing import Any

from sqlalchemy import (
    BigInteger,
    Boolean,
    Column,
    Double,
    Index,
    Integer,
    MetaData,
    SmallInteger,
    Table,
)

from lcc_scrapy.db.columns import (
    OF_A_PROCESS,
    BigKey,
    Key,
    Long,
    LongBytes,
    Mask,
    Url,
    ascii_exact,
    column,
    exact,
)
from lcc_scrapy.db.records import IDLE_MAX, JOB_MAX, OUTCOME_STATE_MAX
from lcc_scrapy.domain.acis import EXTENSION_MAX, FORMAT_MAX, SUMMARY_MAX, TITLE_MAX
from lcc_scrapy.domain.audit import ACTION_MAX, DETAIL_MAX, WHO_MAX
from lcc_scrapy.domain.cache import CHARSET_MAX, ETAG_MAX, LAST_MODIFIED_MAX, PEER_MAX, STATUS_LINE_MAX
from lcc_scrapy.domain.cursor import CURSOR_MAX
from lcc_scrapy.domain.directives import OWNER_MAX
from lcc_scrapy.domain.entries import MIMETYPE_MAX, SUBTYPE_MAX
from lcc_scrapy.domain.named_cursors import NAME_MAX
from lcc_scrapy.domain.tokens import LABEL_MAX, RESTRICTION_MAX
from lcc_scrapy.domain.urds import KEYWORD_MAX
from lcc_scrapy.domain.users import NAME_MAX as USER_MAX
from lcc_scrapy.domain.users import PROVIDERS_MAX

metadata = MetaData()
views = MetaData()
"""What is read like tables, and written as columns of others."""


def _namehashes() -> tuple[Column[Any], Column[Any]]:
    """Return the columns by which a row is found by its URLs; ``furlhash`` is NULL where both are one."""
    return column("curlhash", BigInteger), column("furlhash", BigInteger, null=True)


def _where_known(name: str, column: str) -> Index:
    """Return an index that leaves rows without a value out, where the database knows such (its migration)."""
    return Index(name, column)


def _by_name(table: str) -> tuple[Index, Index]:
    return Index(f"{table}_curlhash", "curlhash"), _where_known(f"{table}_furlhash", "furlhash")


pidb = Table(
    "pidb",
    metadata,
    Column("pid", BigKey, primary_key=True, autoincrement=False),
    column("password", ascii_exact(255)),
    column("filesmax", BigInteger),
    column("spacemax", BigInteger),
    column("fullsetsallowed", Integer, null=True),
    column("bandwidth", BigInteger),
    column("timeofday", Mask),
    column("priority", SmallInteger),
    column("fileused", BigInteger),
    column("spaceused", BigInteger),
    column("lastconnseq", BigInteger),
    column("lastconnip", ascii_exact(45)),
    column("nurlerrs", BigInteger),
    column("nurlproc", BigInteger),
    column("name", exact(255)),
    column("contact", exact(255)),
    column("state", ascii_exact(16)),
    column("timezone", ascii_exact(64)),
    column("fullsetwanted", ascii_exact(32)),
    column("turngroup", exact(64), index=True),
    column("allowprivate", Boolean),
    column("ignorerobots", Boolean),
    column("strictmtime", Boolean),
    column("declared", ascii_exact(16)),
    column("fullsetsused", Integer),
    column("fullsetsince", BigInteger),
    column("removedsince", BigInteger),
    column("removed", BigInteger),
    column("created", BigInteger),
    column("lastconntime", BigInteger),
    column("revision", BigInteger, index=True),
    column("wantedseq", BigInteger),
    column("confirmed", BigInteger),
    column("heldremovals", BigInteger),
    column("narrowing", Boolean),
    column("revisit", ascii_exact(64)),
    column("fallback", Double),
    column("fallingback", Boolean),
    column("countedsince", BigInteger),
    column("mimetypes", ascii_exact(1024)),
    column("orphans", ascii_exact(16)),
    column("atonce", SmallInteger),
    column("render", ascii_exact(16)),
    column("mismatched", Integer),
)

proots = Table(
    "proots",
    metadata,
    Column("rootid", BigKey, primary_key=True, autoincrement=True),
    column("pid", BigInteger, index=True),
    column("root", Url),
)

qdb = Table(
    "qdb",
    metadata,
    Column("id", BigKey, primary_key=True, autoincrement=True),
    column("urlkey", Key),
    column("pid", BigInteger),
    column("curl", Url),
    column("mimetype", ascii_exact(MIMETYPE_MAX)),
    column("subtype", exact(SUBTYPE_MAX)),
    column("burl", Url, null=True),
    column("furl", Url),
    column("mtime", BigInteger, null=True),
    column("len", BigInteger, null=True),
    column("md5", ascii_exact(32), null=True),
    column("timeofday", Mask),
    column("psetid", BigInteger),
    column("position", BigInteger),
    column("operation", ascii_exact(8)),
    column("version", BigInteger),
    column("tries", Integer),
    column("not_before", BigInteger),
    column("origin", ascii_exact(16)),
    column("seen", BigInteger),
    column("sent", Long, null=True),
    column("last_etag", exact(ETAG_MAX)),
    column("furlkey", Key, null=True),
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
    column("pid", BigInteger, index=True),
    column("starttimeslot", Integer),
    column("pri", SmallInteger),
    column("nurls", BigInteger),
)

lccurl = Table(
    "lccurl",
    metadata,
    Column("urlkey", Key, primary_key=True),
    column("pid", BigInteger),
    column("curl", Url),
    column("mimetype", ascii_exact(MIMETYPE_MAX)),
    column("subtype", exact(SUBTYPE_MAX)),
    column("burl", Url, null=True),
    column("furl", Url),
    column("mtime", BigInteger, null=True),
    column("len", BigInteger, null=True),
    column("md5", ascii_exact(32), null=True),
    column("timeofday", Mask),
    column("fetched_time", BigInteger, index=True),
    column("fetched_machineid", Integer),
    column("fetched_fileid", BigInteger),
    column("fetched_len", BigInteger),
    column("fetched_md5", ascii_exact(32)),
    column("sha256", ascii_exact(64)),
    column("served_type", exact(MIMETYPE_MAX)),
    column("served_charset", exact(CHARSET_MAX)),
    column("file_encoding", ascii_exact(16)),
    column("final_url", Url),
    column("etag", exact(ETAG_MAX)),
    column("last_modified", exact(LAST_MODIFIED_MAX)),
    column("confirmed_time", BigInteger),
    column("origin", ascii_exact(16)),
    column("seq", BigInteger),
    column("seen", BigInteger),
    column("held", BigInteger),
    column("subtype_seq", BigInteger),
    column("head_len", Integer),
    column("owners_seq", BigInteger),
    column("confirmed_seq", BigInteger),
    column("furlkey", Key, null=True, index=True),
    *_namehashes(),
    column("answer_line", exact(STATUS_LINE_MAX), null=True),
    column("answer_headers", Long, null=True),
    column("answer_peer", exact(PEER_MAX), null=True),
    column("answer_time", BigInteger, null=True),
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
    column("status_line", exact(STATUS_LINE_MAX)),
    column("headers", Long),
    column("peer", exact(PEER_MAX)),
    column("answered", BigInteger),
)

versions = Table(
    "versions",
    metadata,
    Column("seq", BigInteger, primary_key=True, autoincrement=False),
    column("urlkey", Key),
    column("pid", BigInteger),
    column("replaced_time", BigInteger),
    column("fetched_time", BigInteger),
    column("fetched_machineid", Integer),
    column("fetched_fileid", BigInteger),
    column("fetched_len", BigInteger),
    column("fetched_md5", ascii_exact(32)),
    column("sha256", ascii_exact(64)),
    column("served_type", exact(MIMETYPE_MAX)),
    column("served_charset", exact(CHARSET_MAX)),
    column("file_encoding", ascii_exact(16)),
    column("final_url", Url),
    column("etag", exact(ETAG_MAX)),
    column("last_modified", exact(LAST_MODIFIED_MAX)),
    Index("versions_key", "urlkey"),
    Index("versions_pid", "pid", "urlkey", "replaced_time"),
    Index("versions_file", "fetched_machineid", "fetched_fileid"),
)

links = Table(
    "links",
    metadata,
    Column("urlkey", Key, primary_key=True),
    column("words", BigInteger),
    column("body", LongBytes),
)

linkwords = Table(
    "linkwords",
    metadata,
    Column("wordsid", BigKey, primary_key=True, autoincrement=True),
    column("pid", BigInteger, index=True),
    column("body", LongBytes),
    sqlite_autoincrement=True,
)

spidered = Table(
    "spidered",
    metadata,
    Column("furlkey", Key, primary_key=True),
    column("pid", BigInteger),
    column("furl", Url),
    column("depth", Integer),
    column("parent", Key, null=True),
    column("found", BigInteger),
    column("visited", BigInteger),
    column("code", Integer),
    column("answered", BigInteger),
    column("every", BigInteger),
    column("changes", Integer),
    column("due", BigInteger),
    Index("spidered_visits", "pid", "visited", "furlkey"),
    Index("spidered_due", "pid", "due", "furlkey"),
    Index("spidered_pid", "pid", "furlkey"),
)

owners = Table(
    "owners",
    metadata,
    Column("furlkey", Key, primary_key=True),
    Column("owner", exact(OWNER_MAX), primary_key=True),
    column("pid", BigInteger),
    column("reach", Integer),
    column("due", Boolean),
    column("asked", Integer),
    Index("owners_due", "pid", "due", "furlkey", "owner"),
    Index("owners_owner", "owner", "pid", "furlkey"),
)

irrelevant = Table(
    "irrelevant",
    metadata,
    Column("urlkey", Key, primary_key=True),
    column("pid", BigInteger),
    column("furl", Url),
    column("etag", exact(ETAG_MAX)),
    column("last_modified", exact(LAST_MODIFIED_MAX)),
    column("sha256", ascii_exact(64)),
    column("terms", ascii_exact(64)),
    column("dropped", BigInteger),
    column("furlkey", Key),
    Index("irrelevant_furlkey", "furlkey"),
    Index("irrelevant_pid", "pid", "urlkey"),
)

unwanted = Table(
    "unwanted",
    metadata,
    Column("urlkey", Key, primary_key=True),
    column("seq", BigInteger),
)

withdrawals = Table(
    "withdrawals",
    metadata,
    Column("owner", exact(OWNER_MAX), primary_key=True),
    column("changes", BigInteger),
)

scans = Table(
    "scans",
    metadata,
    Column("pid", BigKey, primary_key=True, autoincrement=False),
    column("seq", BigInteger),
    column("terms", ascii_exact(64)),
    column("since", BigInteger),
    column("at", BigInteger),
    column("pages", BigInteger),
    column("urls", BigInteger),
    column("rules", ascii_exact(64)),
    column("taken", BigInteger),
)

misses = Table(
    "misses",
    metadata,
    Column("pid", BigInteger, primary_key=True, autoincrement=False),
    Column("day", Integer, primary_key=True, autoincrement=False),
    column("pushed", BigInteger),
    column("sampled", BigInteger),
    column("missed", BigInteger),
    column("watched", BigInteger),
    Index("misses_day", "day"),
)

suspects = Table(
    "suspects",
    metadata,
    Column("urlkey", Key, primary_key=True),
    column("pid", BigInteger),
    column("found", BigInteger),
    Index("suspects_pid", "pid", "found"),
)

tombstones = Table(
    "tombstones",
    metadata,
    Column("urlkey", Key, primary_key=True),
    column("pid", BigInteger),
    column("curl", Url),
    column("mimetype", ascii_exact(MIMETYPE_MAX)),
    column("furl", Url),
    column("reason", exact(64)),
    column("removed_time", BigInteger),
    column("seq", BigInteger),
    *_namehashes(),
    Index("tombstones_seq", "seq", unique=True),
    *_by_name("tombstones"),
)

moved = Table(
    "moved",
    metadata,
    Column("seq", BigInteger, primary_key=True, autoincrement=False),
    Column("move", BigInteger, primary_key=True, autoincrement=False),
    column("was", BigInteger),
)

fsmdb = Table(
    "fsmdb",
    metadata,
    Column("machineid", Integer, primary_key=True, autoincrement=False),
    Column("fileid", BigInteger, primary_key=True, autoincrement=False),
    column("len", BigInteger),
    column("not_before", BigInteger),
    Index("fsmdb_due", "machineid", "not_before"),
)

fileblocks = Table(
    "fileblocks",
    metadata,
    Column("machineid", Integer, primary_key=True, autoincrement=False),
    Column("block", BigInteger, primary_key=True, autoincrement=False),
    column("first", BigInteger),
    column("owner", exact(64), info=OF_A_PROCESS),
    column("token", BigInteger),
)

urlerrors = Table(
    "urlerrors",
    metadata,
    Column("errorid", BigKey, primary_key=True, autoincrement=True),
    column("pid", BigInteger),
    column("code", Integer),
    column("text", exact(255)),
    column("url", Url),
    column("attributes", Long),
    column("at", BigInteger),
    column("sent", Long, null=True),
    Index("urlerrors_pid", "pid", "errorid"),
    sqlite_autoincrement=True,
)

outcomes = Table(
    "outcomes",
    metadata,
    Column("urlkey", Key, primary_key=True),
    column("pid", BigInteger),
    column("code", Integer),
    column("text", exact(255)),
    column("at", BigInteger, index=True),
    column("state", ascii_exact(OUTCOME_STATE_MAX)),
    column("curl", Url),
    column("mimetype", ascii_exact(MIMETYPE_MAX)),
    column("furl", Url),
    column("submitted", Long, null=True),
    *_namehashes(),
    Index("outcomes_state", "pid", "state", "at", "urlkey"),
    *_by_name("outcomes"),
)

psets = Table(
    "psets",
    metadata,
    Column("psetid", BigInteger, primary_key=True, autoincrement=False),
    column("pid", BigInteger),
    column("connseq", BigInteger),
    column("setid", exact(128)),
    column("digest", ascii_exact(64)),
    column("full", Boolean),
    column("received", BigInteger),
    column("phase", ascii_exact(16)),
    column("progress", BigInteger),
    column("absorbed", BigInteger),
    column("held", BigInteger),
    column("started", BigInteger),
    column("counted", BigInteger),
    column("upto", Key, null=True),
    column("absent", BigInteger),
    column("unfetched", BigInteger),
    Index("psets_file", "pid", "connseq"),
    Index("psets_setid", "pid", "setid"),
)

logins = Table(
    "logins",
    metadata,
    Column("pid", BigInteger, primary_key=True, autoincrement=False),
    Column("connseq", BigInteger, primary_key=True, autoincrement=False),
    column("uns", ascii_exact(36)),
    column("at", BigInteger),
    column("passed", Boolean),
    column("stage", ascii_exact(8)),
    column("overtaken", Boolean),
    Index("logins_uns", "uns", "pid", "connseq"),
)

overtaking = Table(
    "overtaking",
    metadata,
    Column("urlkey", Key, primary_key=True),
    column("pid", BigInteger),
    column("connseq", BigInteger),
    Index("overtaking_pid", "pid", "urlkey"),
)

unses = Table(
    "unses",
    metadata,
    Column("uns", ascii_exact(36), primary_key=True),
    column("note", exact(255)),
    column("seen", BigInteger),
)

turns = Table(
    "turns",
    metadata,
    Column("turnkey", exact(64), primary_key=True),
    column("owner", exact(64), info=OF_A_PROCESS),
    column("token", BigInteger),
    column("priority", SmallInteger),
    column("waiting", BigInteger),
    column("look_at", Double),
    column("not_before", Double),
    column("arrivals", BigInteger),
    Index("turns_free", "owner", "priority", "look_at"),
)

failinghosts = Table(
    "failinghosts",
    metadata,
    Column("turnkey", exact(64), primary_key=True),
    Column("host", exact(300), primary_key=True),
    column("not_before", Double),
    column("failures", Integer),
    column("since", Double),
    column("wait", Double),
    column("blamed", Long),
)

workers = Table(
    "workers",
    metadata,
    Column("owner", exact(64), primary_key=True),
    column("token", BigInteger),
    column("machineid", Integer),
    column("process", BigInteger),
    column("started", BigInteger),
    column("expires", BigInteger),
    column("places", Integer),
    column("in_use", Integer),
    column("held", Integer),
    column("rate", BigInteger),
    column("hungry", Boolean),
    column("pid", BigInteger),
    column("paced", Integer),
    column("job_ms", BigInteger),
    column("job", ascii_exact(JOB_MAX)),
    column("idle", exact(IDLE_MAX)),
)

fetches = Table(
    "fetches",
    metadata,
    Column("turnkey", exact(64), primary_key=True),
    column("owner", exact(64), info=OF_A_PROCESS),
    column("token", BigInteger),
    column("urlkey", Key),
    column("since", BigInteger),
    column("paced", BigInteger),
    column("transferred", BigInteger),
    column("size", BigInteger),
    Index("fetches_owner", "owner"),
)

machines = Table(
    "machines",
    metadata,
    Column("machineid", BigKey, primary_key=True, autoincrement=True),
    column("identity", ascii_exact(36)),
    column("note", exact(255)),
    column("created", BigInteger),
    column("address", exact(255)),
    Index("machines_identity", "identity", unique=True),
    sqlite_autoincrement=True,
)

counters = Table(
    "counters",
    metadata,
    Column("name", ascii_exact(32), primary_key=True),
    column("value", BigInteger),
)

lccinfo = Table(
    "lccinfo",
    metadata,
    Column("name", ascii_exact(32), primary_key=True),
    column("value", exact(255)),
)

tokens = Table(
    "tokens",
    metadata,
    Column("digest", ascii_exact(64), primary_key=True),
    column("label", exact(LABEL_MAX)),
    column("scopes", ascii_exact(64)),
    column("providers", ascii_exact(RESTRICTION_MAX)),
    column("mimetypes", ascii_exact(RESTRICTION_MAX)),
    column("created", BigInteger),
    column("expires", BigInteger),
    column("used", BigInteger),
)

tallies = Table(
    "tallies",
    metadata,
    Column("name", ascii_exact(64), primary_key=True),
    column("value", BigInteger),
)

fetchcounts = Table(
    "fetchcounts",
    metadata,
    Column("pid", BigInteger, primary_key=True, autoincrement=False),
    Column("begun", BigInteger, primary_key=True, autoincrement=False),
    Column("result", ascii_exact(16), primary_key=True),
    Column("code", Integer, primary_key=True, autoincrement=False),
    column("count", BigInteger),
    Index("fetchcounts_result", "begun", "result"),
)

cursors = Table(
    "cursors",
    metadata,
    Column("owner", exact(LABEL_MAX), primary_key=True),
    Column("name", ascii_exact(NAME_MAX), primary_key=True),
    column("cursor", ascii_exact(CURSOR_MAX)),
    column("seq", BigInteger),
    column("at", BigInteger),
)

users = Table(
    "users",
    metadata,
    Column("name", ascii_exact(USER_MAX), primary_key=True),
    column("role", ascii_exact(16)),
    column("providers", ascii_exact(PROVIDERS_MAX)),
    column("password", ascii_exact(255)),
    column("created", BigInteger),
)

sessions = Table(
    "sessions",
    metadata,
    Column("digest", ascii_exact(64), primary_key=True),
    column("name", ascii_exact(USER_MAX), index=True),
    column("created", BigInteger),
    column("expires", BigInteger, index=True),
)

audit = Table(
    "audit",
    metadata,
    Column("entryid", BigKey, primary_key=True, autoincrement=True),
    column("at", BigInteger, index=True),
    column("who", exact(WHO_MAX)),
    column("place", ascii_exact(16)),
    column("action", ascii_exact(ACTION_MAX)),
    column("pid", BigInteger),
    column("detail", exact(DETAIL_MAX)),
    Index("audit_pid", "pid", "entryid"),
    sqlite_autoincrement=True,
)

urd = Table(
    "urd",
    metadata,
    Column("urdid", BigKey, primary_key=True, autoincrement=True),
    column("owner", exact(OWNER_MAX)),
    column("uri", Url),
    column("timing", BigInteger),
    column("lastcheck", BigInteger),
    column("port", Integer),
    column("protocol", ascii_exact(8)),
    column("method", ascii_exact(8)),
    column("processtype", ascii_exact(16)),
    column("rule", Long),
    column("depth", Integer),
    column("urgency", SmallInteger),
    column("threshold", BigInteger),
    column("expires", BigInteger, null=True),
    column("revision", BigInteger),
    column("due", BigInteger),
    column("run_upto", Key, null=True),
    column("urihash", BigInteger),
    column("refused", exact(255)),
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
    column("key", exact(KEYWORD_MAX)),
    column("weight", Integer),
)

removed_urds = Table(
    "removed_urds",
    metadata,
    Column("revision", BigInteger, primary_key=True, autoincrement=False),
    column("urdid", BigInteger),
)

aequeue = Table(
    "aequeue",
    metadata,
    Column("urlkey", Key, primary_key=True),
    column("seq", BigInteger),
    column("position", BigInteger),
    column("since", BigInteger),
    column("urdids", Long),
    column("base", BigInteger),
    Index("aequeue_position", "position", unique=True),
)

aci = Table(
    "aci",
    metadata,
    Column("urlkey", Key, primary_key=True),
    Column("seq", BigInteger, primary_key=True, autoincrement=False),
    Column("owner", exact(OWNER_MAX), primary_key=True),
    column("number", BigInteger),
    column("urdid", BigInteger),
    column("pid", BigInteger),
    column("extension", exact(EXTENSION_MAX)),
    column("format", exact(FORMAT_MAX)),
    column("relevance", BigInteger),
    column("updatetime", BigInteger),
    column("filesize", BigInteger),
    column("uri", Url),
    column("urgency", SmallInteger),
    column("docbase", ascii_exact(64)),
    column("expired", Boolean),
    column("title", exact(TITLE_MAX)),
    column("summary", exact(SUMMARY_MAX)),
    column("detail", Long),
    column("made", BigInteger),
    Index("aci_number", "number", unique=True),
    Index("aci_owner", "owner", "number"),
    Index("aci_expired", "expired", "made"),
)

recipients = Table(
    "recipients",
    metadata,
    Column("recipientid", BigKey, primary_key=True, autoincrement=True),
    column("owner", exact(OWNER_MAX)),
    column("channel", ascii_exact(16)),
    column("address", Url),
    column("format", ascii_exact(8)),
    column("digest", Boolean),
    column("secret", ascii_exact(64)),
    column("off", Boolean),
    column("created", BigInteger),
    column("refused", exact(255)),
    column("tries", Integer),
    column("not_before", BigInteger),
    column("due", BigInteger),
    column("deadline", BigInteger),
    Index("recipients_owner", "owner", "recipientid"),
    Index("recipients_due", "channel", "due"),
    sqlite_autoincrement=True,
)

alerts = Table(
    "alerts",
    metadata,
    Column("number", BigInteger, primary_key=True, autoincrement=False),
    Column("recipientid", BigInteger, primary_key=True, autoincrement=False),
    column("state", ascii_exact(16)),
    column("tries", Integer),
    column("not_before", BigInteger),
    column("deadline", BigInteger),
    column("sent", BigInteger),
    column("digest", BigInteger),
    Index("alerts_due", "recipientid", "state", "not_before"),
    Index("alerts_deadline", "recipientid", "state", "deadline"),
    Index("alerts_state", "state", "deadline"),
)
