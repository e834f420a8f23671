"""The first schema."""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import mysql

revision = "0001"
down_revision = None


def _text(width: int) -> sa.types.TypeEngine[str]:
    exact = mysql.VARCHAR(width, charset="utf8mb4", collation="utf8mb4_bin")
    return sa.String(width).with_variant(exact, "mysql", "mariadb")


def _ascii(width: int) -> sa.types.TypeEngine[str]:
    exact = mysql.VARCHAR(width, charset="ascii", collation="ascii_bin")
    return sa.String(width).with_variant(exact, "mysql", "mariadb")


_KEY = sa.LargeBinary(16).with_variant(mysql.BINARY(16), "mysql", "mariadb")
_NUMBER = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
_LONG = sa.Text().with_variant(
    mysql.MEDIUMTEXT(charset="utf8mb4", collation="utf8mb4_bin"), "mysql", "mariadb"
)


def upgrade() -> None:
    """Make all tables."""
    op.create_table(
        "pidb",
        sa.Column("pid", _NUMBER, primary_key=True, autoincrement=False),
        sa.Column("password", _ascii(255), nullable=False),
        sa.Column("filesmax", sa.BigInteger(), nullable=False),
        sa.Column("spacemax", sa.BigInteger(), nullable=False),
        sa.Column("fullsetsallowed", sa.Integer(), nullable=True),
        sa.Column("bandwidth", sa.BigInteger(), nullable=False),
        sa.Column("timeofday", _ascii(168), nullable=False),
        sa.Column("priority", sa.SmallInteger(), nullable=False),
        sa.Column("fileused", sa.BigInteger(), nullable=False),
        sa.Column("spaceused", sa.BigInteger(), nullable=False),
        sa.Column("lastconnseq", sa.BigInteger(), nullable=False),
        sa.Column("lastconnip", _ascii(45), nullable=False),
        sa.Column("nurlerrs", sa.BigInteger(), nullable=False),
        sa.Column("nurlproc", sa.BigInteger(), nullable=False),
        sa.Column("name", _text(255), nullable=False),
        sa.Column("contact", _text(255), nullable=False),
        sa.Column("state", _ascii(16), nullable=False),
        sa.Column("timezone", _ascii(64), nullable=False),
        sa.Column("fullsetwanted", _ascii(32), nullable=False),
        sa.Column("turngroup", _text(64), nullable=False),
        sa.Column("allowprivate", sa.Boolean(), nullable=False),
        sa.Column("ignorerobots", sa.Boolean(), nullable=False),
        sa.Column("strictmtime", sa.Boolean(), nullable=False),
        sa.Column("declared", _ascii(16), nullable=False),
        sa.Column("fullsetsused", sa.Integer(), nullable=False),
        sa.Column("fullsetsince", sa.BigInteger(), nullable=False),
        sa.Column("removedsince", sa.BigInteger(), nullable=False),
        sa.Column("removed", sa.BigInteger(), nullable=False),
        sa.Column("created", sa.BigInteger(), nullable=False),
        sa.Column("lastconntime", sa.BigInteger(), nullable=False),
        sa.Column("revision", sa.BigInteger(), nullable=False),
        sa.Column("wantedseq", sa.BigInteger(), nullable=False),
        sa.Column("confirmed", sa.BigInteger(), nullable=False),
        sa.Column("heldremovals", sa.BigInteger(), nullable=False),
        sa.Column("narrowing", sa.Boolean(), nullable=False),
    )
    op.create_index("ix_pidb_turngroup", "pidb", ["turngroup"])
    op.create_index("ix_pidb_revision", "pidb", ["revision"])
    op.create_table(
        "proots",
        sa.Column("rootid", _NUMBER, primary_key=True, autoincrement=True),
        sa.Column("pid", sa.BigInteger(), nullable=False),
        sa.Column("root", _text(2048), nullable=False),
    )
    op.create_index("ix_proots_pid", "proots", ["pid"])
    op.create_table(
        "qdb",
        sa.Column("urlkey", _KEY, primary_key=True),
        sa.Column("pid", sa.BigInteger(), nullable=False),
        sa.Column("curl", _text(2048), nullable=False),
        sa.Column("mimetype", _ascii(127), nullable=False),
        sa.Column("subtype", _text(255), nullable=False),
        sa.Column("burl", _text(2048), nullable=True),
        sa.Column("furl", _text(2048), nullable=False),
        sa.Column("mtime", sa.BigInteger(), nullable=True),
        sa.Column("len", sa.BigInteger(), nullable=True),
        sa.Column("md5", _ascii(32), nullable=True),
        sa.Column("timeofday", _ascii(168), nullable=False),
        sa.Column("psetid", sa.BigInteger(), nullable=False),
        sa.Column("position", sa.BigInteger(), nullable=False),
        sa.Column("operation", _ascii(8), nullable=False),
        sa.Column("version", sa.BigInteger(), nullable=False),
        sa.Column("tries", sa.Integer(), nullable=False),
        sa.Column("not_before", sa.BigInteger(), nullable=False),
        sa.Column("origin", _ascii(16), nullable=False),
        sa.Column("seen", sa.BigInteger(), nullable=False),
    )
    op.create_index("qdb_order", "qdb", ["pid", "timeofday", "not_before", "psetid", "position"])
    op.create_table(
        "qpsdb",
        sa.Column("psetid", sa.BigInteger(), primary_key=True, autoincrement=False),
        sa.Column("timeofday", _ascii(168), primary_key=True),
        sa.Column("pid", sa.BigInteger(), nullable=False),
        sa.Column("starttimeslot", sa.Integer(), nullable=False),
        sa.Column("pri", sa.SmallInteger(), nullable=False),
        sa.Column("nurls", sa.BigInteger(), nullable=False),
    )
    op.create_index("ix_qpsdb_pid", "qpsdb", ["pid"])
    op.create_table(
        "lccurl",
        sa.Column("urlkey", _KEY, primary_key=True),
        sa.Column("pid", sa.BigInteger(), nullable=False),
        sa.Column("curl", _text(2048), nullable=False),
        sa.Column("mimetype", _ascii(127), nullable=False),
        sa.Column("subtype", _text(255), nullable=False),
        sa.Column("burl", _text(2048), nullable=True),
        sa.Column("furl", _text(2048), nullable=False),
        sa.Column("mtime", sa.BigInteger(), nullable=True),
        sa.Column("len", sa.BigInteger(), nullable=True),
        sa.Column("md5", _ascii(32), nullable=True),
        sa.Column("timeofday", _ascii(168), nullable=False),
        sa.Column("fetched_time", sa.BigInteger(), nullable=False),
        sa.Column("fetched_machineid", sa.Integer(), nullable=False),
        sa.Column("fetched_fileid", sa.BigInteger(), nullable=False),
        sa.Column("fetched_len", sa.BigInteger(), nullable=False),
        sa.Column("fetched_md5", _ascii(32), nullable=False),
        sa.Column("sha256", _ascii(64), nullable=False),
        sa.Column("served_type", _text(127), nullable=False),
        sa.Column("served_charset", _text(64), nullable=False),
        sa.Column("file_encoding", _ascii(16), nullable=False),
        sa.Column("final_url", _text(2048), nullable=False),
        sa.Column("etag", _text(255), nullable=False),
        sa.Column("last_modified", _text(64), nullable=False),
        sa.Column("confirmed_time", sa.BigInteger(), nullable=False),
        sa.Column("origin", _ascii(16), nullable=False),
        sa.Column("seq", sa.BigInteger(), nullable=False),
        sa.Column("seen", sa.BigInteger(), nullable=False),
        sa.Column("held", sa.BigInteger(), nullable=False),
    )
    op.create_index("ix_lccurl_fetched_time", "lccurl", ["fetched_time"])
    op.create_index("lccurl_file", "lccurl", ["fetched_machineid", "fetched_fileid"])
    op.create_index("lccurl_pid", "lccurl", ["pid", "urlkey"])
    op.create_index("lccurl_seq", "lccurl", ["seq"], unique=True)
    op.create_table(
        "lccmeta",
        sa.Column("urlkey", _KEY, primary_key=True),
        sa.Column("status_line", _text(255), nullable=False),
        sa.Column("headers", _LONG, nullable=False),
        sa.Column("peer", _text(64), nullable=False),
        sa.Column("answered", sa.BigInteger(), nullable=False),
    )
    op.create_table(
        "tombstones",
        sa.Column("urlkey", _KEY, primary_key=True),
        sa.Column("pid", sa.BigInteger(), nullable=False),
        sa.Column("curl", _text(2048), nullable=False),
        sa.Column("mimetype", _ascii(127), nullable=False),
        sa.Column("furl", _text(2048), nullable=False),
        sa.Column("reason", _text(64), nullable=False),
        sa.Column("removed_time", sa.BigInteger(), nullable=False),
        sa.Column("seq", sa.BigInteger(), nullable=False),
    )
    op.create_index("tombstones_seq", "tombstones", ["seq"], unique=True)
    op.create_table(
        "fsmdb",
        sa.Column("machineid", sa.Integer(), primary_key=True, autoincrement=False),
        sa.Column("fileid", sa.BigInteger(), primary_key=True, autoincrement=False),
        sa.Column("len", sa.BigInteger(), nullable=False),
        sa.Column("not_before", sa.BigInteger(), nullable=False),
    )
    op.create_index("fsmdb_due", "fsmdb", ["machineid", "not_before"])
    op.create_table(
        "urlerrors",
        sa.Column("errorid", _NUMBER, primary_key=True, autoincrement=True),
        sa.Column("pid", sa.BigInteger(), nullable=False),
        sa.Column("code", sa.Integer(), nullable=False),
        sa.Column("text", _text(255), nullable=False),
        sa.Column("url", _text(2048), nullable=False),
        sa.Column("attributes", _LONG, nullable=False),
        sa.Column("at", sa.BigInteger(), nullable=False),
        sqlite_autoincrement=True,
    )
    op.create_index("urlerrors_pid", "urlerrors", ["pid", "errorid"])
    op.create_table(
        "outcomes",
        sa.Column("urlkey", _KEY, primary_key=True),
        sa.Column("pid", sa.BigInteger(), nullable=False),
        sa.Column("code", sa.Integer(), nullable=False),
        sa.Column("text", _text(255), nullable=False),
        sa.Column("at", sa.BigInteger(), nullable=False),
    )
    op.create_index("ix_outcomes_at", "outcomes", ["at"])
    op.create_table(
        "psets",
        sa.Column("psetid", sa.BigInteger(), primary_key=True, autoincrement=False),
        sa.Column("pid", sa.BigInteger(), nullable=False),
        sa.Column("connseq", sa.BigInteger(), nullable=False),
        sa.Column("setid", _text(128), nullable=False),
        sa.Column("digest", _ascii(64), nullable=False),
        sa.Column("full", sa.Boolean(), nullable=False),
        sa.Column("received", sa.BigInteger(), nullable=False),
        sa.Column("phase", _ascii(16), nullable=False),
        sa.Column("progress", sa.BigInteger(), nullable=False),
        sa.Column("absorbed", sa.BigInteger(), nullable=False),
        sa.Column("held", sa.BigInteger(), nullable=False),
        sa.Column("started", sa.BigInteger(), nullable=False),
        sa.Column("counted", sa.BigInteger(), nullable=False),
    )
    op.create_index("psets_file", "psets", ["pid", "connseq"])
    op.create_index("psets_setid", "psets", ["pid", "setid"])
    op.create_table(
        "logins",
        sa.Column("pid", sa.BigInteger(), primary_key=True, autoincrement=False),
        sa.Column("connseq", sa.BigInteger(), primary_key=True, autoincrement=False),
        sa.Column("uns", _ascii(36), nullable=False),
        sa.Column("at", sa.BigInteger(), nullable=False),
        sa.Column("passed", sa.Boolean(), nullable=False),
    )
    op.create_index("logins_uns", "logins", ["uns", "pid", "connseq"])
    op.create_table(
        "unses",
        sa.Column("uns", _ascii(36), primary_key=True),
        sa.Column("note", _text(255), nullable=False),
        sa.Column("seen", sa.BigInteger(), nullable=False),
    )
    op.create_table(
        "turns",
        sa.Column("turnkey", _text(64), primary_key=True),
        sa.Column("owner", _text(64), nullable=False),
        sa.Column("token", sa.BigInteger(), nullable=False),
        sa.Column("priority", sa.SmallInteger(), nullable=False),
        sa.Column("waiting", sa.BigInteger(), nullable=False),
        sa.Column("look_at", sa.Double(), nullable=False),
        sa.Column("not_before", sa.Double(), nullable=False),
        sa.Column("failures", sa.Integer(), nullable=False),
        sa.Column("failing_since", sa.Double(), nullable=False),
        sa.Column("arrivals", sa.BigInteger(), nullable=False),
    )
    op.create_index("turns_free", "turns", ["owner", "priority", "look_at"])
    op.create_table(
        "workers",
        sa.Column("owner", _text(64), primary_key=True),
        sa.Column("token", sa.BigInteger(), nullable=False),
        sa.Column("machineid", sa.Integer(), nullable=False),
        sa.Column("process", sa.BigInteger(), nullable=False),
        sa.Column("started", sa.BigInteger(), nullable=False),
        sa.Column("expires", sa.BigInteger(), nullable=False),
        sa.Column("places", sa.Integer(), nullable=False),
        sa.Column("in_use", sa.Integer(), nullable=False),
        sa.Column("held", sa.Integer(), nullable=False),
        sa.Column("rate", sa.BigInteger(), nullable=False),
        sa.Column("hungry", sa.Boolean(), nullable=False),
    )
    op.create_table(
        "machines",
        sa.Column("machineid", _NUMBER, primary_key=True, autoincrement=True),
        sa.Column("identity", _ascii(36), nullable=False),
        sa.Column("note", _text(255), nullable=False),
        sa.Column("created", sa.BigInteger(), nullable=False),
        sqlite_autoincrement=True,
    )
    op.create_index("machines_identity", "machines", ["identity"], unique=True)
    op.create_table(
        "counters",
        sa.Column("name", _ascii(32), primary_key=True),
        sa.Column("value", sa.BigInteger(), nullable=False),
    )
    op.create_table(
        "lccinfo",
        sa.Column("name", _ascii(32), primary_key=True),
        sa.Column("value", _text(255), nullable=False),
    )


def downgrade() -> None:
    """Take all tables away."""
    op.drop_table("lccinfo")
    op.drop_table("counters")
    op.drop_table("machines")
    op.drop_table("workers")
    op.drop_table("turns")
    op.drop_table("unses")
    op.drop_table("logins")
    op.drop_table("psets")
    op.drop_table("outcomes")
    op.drop_table("urlerrors")
    op.drop_table("fsmdb")
    op.drop_table("tombstones")
    op.drop_table("lccmeta")
    op.drop_table("lccurl")
    op.drop_table("qpsdb")
    op.drop_table("qdb")
    op.drop_table("proots")
    op.drop_table("pidb")
