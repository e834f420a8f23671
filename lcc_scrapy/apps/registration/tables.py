"""Registrations until they are complete."""

from sqlalchemy import BigInteger, Column, Index, MetaData, Table

from lcc_scrapy.db.columns import OF_THE_LCC, Mask, Url, ascii_exact, column, exact

METADATA = MetaData()

registrations = Table(
    "registrations",
    METADATA,
    Column("secret", ascii_exact(64), primary_key=True),
    column("pid", BigInteger, index=True),
    column("kind", ascii_exact(16)),
    column("stage", ascii_exact(16)),
    column("site", Url),
    column("password", ascii_exact(255)),
    column("contact", exact(255)),
    column("bandwidth", BigInteger),
    column("timeofday", Mask),
    column("timezone", ascii_exact(64)),
    column("root", Url),
    column("address", ascii_exact(45)),
    column("created", BigInteger),
    column("expires", BigInteger),
    Index("registrations_expires", "expires"),
    info=OF_THE_LCC,
)
