"""The tables, with the names and columns of the seeds (003 section 6, 001 "Provider information").

Columns stand in the order of the fields of the values they are read into. URL text compares as bytes;
``urlkey`` is 16 raw bytes.
"""

from typing import Any

from sqlalchemy import (
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
from sqlalchemy.dialects import mysql

from lcc_scrapy.domain.cache import CHARSET_MAX, ETAG_MAX, LAST_MODIFIED_MAX, PEER_MAX, STATUS_LINE_MAX
from lcc_scrapy.domain.entries import MIMETYPE_MAX, SUBTYPE_MAX
from lcc_scrapy.domain.roots import URL_MAX
from lcc_scrapy.domain.timeslots import HOURS_PER_WEEK

metadata = MetaData()

Key = LargeBinary(16).with_variant(mysql.BINARY(16), "mysql", "mariadb")
BigKey = BigInteger().with_variant(Integer, "sqlite")


OF_A_PROCESS = {"of a process": True}
"""``info`` of a text column that names a running process: in a restored database it is empty."""


def _text(width: int) -> Any:
    exact = mysql.VARCHAR(width, charset="utf8mb4", collation="utf8mb4_bin")
    return String(width).with_variant(exact, "mysql", "mariadb")


def _ascii(width: int) -> Any:
    exact = mysql.VARCHAR(width, charset="ascii", collation="ascii_bin")
    return String(width).with_variant(exact, "mysql", "mariadb")


Long = Text().with_variant(mysql.MEDIUMTEXT(charset="utf8mb4", collation="utf8mb4_bin"), "mysql", "mariadb")
Url = _text(URL_MAX)
Mask = _ascii(HOURS_PER_WEEK)


def _column(name: str, type_: Any, *, null: bool = False, **options: Any) -> Column[Any]:
    return Column(name, type_, nullable=null, **options)


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
    _column("psetid", BigInteger),
    _column("position", BigInteger),
    _column("operation", _ascii(8)),
    _column("version", BigInteger),
    _column("tries", Integer),
    _column("not_before", BigInteger),
    _column("origin", _ascii(16)),
    _column("seen", BigInteger),
    Index("qdb_order", "pid", "timeofday", "not_before", "psetid", "position"),
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
    Index("lccurl_seq", "seq", unique=True),
    Index("lccurl_pid", "pid", "urlkey"),
    Index("lccurl_file", "fetched_machineid", "fetched_fileid"),
)

lccmeta = Table(
    "lccmeta",
    metadata,
    Column("urlkey", Key, primary_key=True),
    _column("status_line", _text(STATUS_LINE_MAX)),
    _column("headers", Long),
    _column("peer", _text(PEER_MAX)),
    _column("answered", BigInteger),
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
    Index("tombstones_seq", "seq", unique=True),
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
    Index("logins_uns", "uns", "pid", "connseq"),
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
    _column("failures", Integer),
    _column("failing_since", Double),
    _column("arrivals", BigInteger),
    Index("turns_free", "owner", "priority", "look_at"),
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
)

machines = Table(
    "machines",
    metadata,
    Column("machineid", BigKey, primary_key=True, autoincrement=True),
    _column("identity", _ascii(36)),
    _column("note", _text(255)),
    _column("created", BigInteger),
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
