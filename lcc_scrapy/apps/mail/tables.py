"""What each provider was told by mail."""

from sqlalchemy import BigInteger, Boolean, Column, Integer, MetaData, Table

from lcc_scrapy.db.columns import ascii_exact, column, exact, of_a_provider

METADATA = MetaData()

mailstates = Table(
    "mailstates",
    METADATA,
    Column("pid", BigInteger, primary_key=True, autoincrement=False),
    column("since", BigInteger),
    column("due", BigInteger),
    column("wanted", ascii_exact(32)),
    column("wanted_at", BigInteger),
    column("held", BigInteger),
    column("held_at", BigInteger),
    column("refused", exact(255)),
    column("off", Boolean),
    column("tries", Integer),
    column("not_before", BigInteger),
    info=of_a_provider("pid"),
)
