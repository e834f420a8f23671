"""Run by Alembic: migrates over the connection, or writes the SQL, that ``db.schema`` prepared."""

from alembic import context

attributes = context.config.attributes
connection = attributes.get("connection")
if connection is None:
    context.configure(
        url=attributes["url"],
        version_table=attributes["version_table"],
        literal_binds=True,
        dialect_opts={"paramstyle": "named"},
    )
else:
    context.configure(
        connection=connection, version_table=attributes["version_table"], transactional_ddl=True
    )

with context.begin_transaction():
    context.run_migrations()
