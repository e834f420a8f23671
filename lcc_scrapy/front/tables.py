"""The tables of a front's database."""

from sqlalchemy import BigInteger, Column, MetaData, String, Table

from lcc_scrapy.domain.tokens import LABEL_MAX, RESTRICTION_MAX

metadata = MetaData()
_TEXT = 255
_NAME = 64
fedb = Table(
    "fedb",
    metadata,
    Column("name", String(_NAME), primary_key=True),
    Column("uns", String(_TEXT), nullable=False),
    Column("lccid", String(_NAME), nullable=False),
    Column("web", String(_TEXT), nullable=False),
    Column("token_file", String(_TEXT), nullable=False),
    Column("database", String(_TEXT), nullable=False),
    Column("capacity", BigInteger, nullable=False),
    Column("state", String(16), nullable=False),
)
pmdb = Table(
    "pmdb",
    metadata,
    Column("pid", BigInteger, primary_key=True, autoincrement=False),
    Column("sub", String(_NAME), nullable=False, index=True),
)
moves = Table(
    "moves",
    metadata,
    Column("number", BigInteger, primary_key=True, autoincrement=False),
    Column("pid", BigInteger, nullable=False),
    Column("source", String(_NAME), nullable=False),
    Column("target", String(_NAME), nullable=False),
    Column("source_seq", BigInteger, nullable=False),
    Column("target_seq", BigInteger),
)
moving = Table(
    "moving",
    metadata,
    Column("pid", BigInteger, primary_key=True, autoincrement=False),
    Column("source", String(_NAME), nullable=False),
    Column("target", String(_NAME), nullable=False),
    Column("state", String(16), nullable=False),
    Column("step", String(16), nullable=False),
    Column("number", BigInteger, nullable=False),
)
tokens = Table(
    "tokens",
    metadata,
    Column("digest", String(_NAME), primary_key=True),
    Column("label", String(LABEL_MAX), nullable=False),
    Column("scopes", String(_TEXT), nullable=False),
    Column("providers", String(RESTRICTION_MAX), nullable=False),
    Column("mimetypes", String(RESTRICTION_MAX), nullable=False),
    Column("created", BigInteger, nullable=False),
    Column("expires", BigInteger, nullable=False),
    Column("used", BigInteger, nullable=False),
)
info = Table(
    "frontinfo",
    metadata,
    Column("name", String(_NAME), primary_key=True),
    Column("value", String(_TEXT), nullable=False),
)
given = Table(
    "given",
    metadata,
    Column("pid", BigInteger, primary_key=True, autoincrement=False),
    Column("look_at", BigInteger, nullable=False, index=True),
)
