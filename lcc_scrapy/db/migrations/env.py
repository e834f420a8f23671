"""Run by Alembic: migrates over the connection, or writes the SQL, that ``db.schema`` prepared."""

from alembic import context

from lcc_scrapy.db.schema import VERSION_TABLE
from lcc_scrapy.db.tables import metadata

connection = context.config.attributes.get("connection")
if connection is None:
    context.configure(
        url=context.config.attributes["url"],
        target_metadata=metadata,
        version_table=VERSION_TABLE,
        literal_binds=True,
        dialect_opts={"paramstyle": "named"},
    )
else:
    context.configure(
        connection=connection,
        target_metadata=metadata,
        version_table=VERSION_TABLE,
        transactional_ddl=True,
    )

with context.begin_transaction():
    context.run_migrations()
