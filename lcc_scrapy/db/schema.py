"""The database's schema and its numbered migrations (Alembic, in ``db/migrations``).

Alembic takes longer to import than most commands take to run: it is left alone while there is nothing to do.
"""

from io import StringIO
from pathlib import Path
from typing import TYPE_CHECKING

from sqlalchemy import URL, Connection, inspect

from lcc_scrapy.db.sql.store import READING, SILENCE, SqlStore, named_errors
from lcc_scrapy.db.sql.urls import read_url
from lcc_scrapy.domain.errors import ConfigurationError

if TYPE_CHECKING:
    from collections.abc import Callable

    from alembic.config import Config

VERSION_TABLE = "lcc_version"
_MIGRATIONS = Path(__file__).parent / "migrations"


def upgrade(url: str | URL, progress: "Callable[[int, int], None] | None" = None) -> list[str]:
    """Bring a database up to date; returns the revisions applied, oldest first.

    ``progress`` is told the rows that were changed, and how many there are as far as it is known. All or
    nothing on SQLite and PostgreSQL; MariaDB and MySQL commit each statement.
    """
    store = SqlStore(url, silence=None, pause=0)  # a migration of a large table may take hours
    try:
        with named_errors(), store.engine.connect() as connection, connection.begin():
            applied = _pending(connection)
            if applied:
                from alembic import command  # noqa: PLC0415 - see above

                config = _config()
                config.attributes["connection"] = connection
                if progress is not None:
                    config.attributes["progress"] = progress
                command.upgrade(config, "head")
            return applied
    finally:
        store.close()


def pending(url: str | URL, *, silence: int = SILENCE) -> list[str]:
    """Return the revisions that ``upgrade`` would apply, oldest first; changes nothing, creates nothing.

    ``silence`` is as for ``SqlStore``. Raises ``ConfigurationError`` when the database is newer than this
    program.
    """
    if is_missing_file(url):
        return _after(None)
    store = SqlStore(url, silence=silence)
    try:
        with named_errors(), store.engine.connect() as connection:
            return _pending(connection.execution_options(**{READING: True}))
    finally:
        store.close()


def is_empty(url: str | URL) -> bool:
    """Tell whether no LCC ever used a database that can be reached."""
    store = SqlStore(url)
    try:
        with named_errors(), store.engine.connect() as connection:
            return not inspect(connection.execution_options(**{READING: True})).has_table(VERSION_TABLE)
    finally:
        store.close()


def upgrade_sql(url: str) -> str:
    """Return what ``upgrade`` would execute, as SQL text."""
    waiting = pending(url)
    if not waiting:
        return ""
    from alembic import command  # noqa: PLC0415 - see above

    text = StringIO()
    config = _config(text)
    config.attributes["url"] = url
    known = _after(None)
    before = known[: -len(waiting)]
    command.upgrade(config, f"{before[-1] if before else 'base'}:head", sql=True)
    return text.getvalue()


def _config(output: StringIO | None = None) -> "Config":
    from alembic.config import Config  # noqa: PLC0415 - see above

    config = Config(output_buffer=output) if output else Config()
    config.set_main_option("script_location", str(_MIGRATIONS).replace("%", "%%"))
    return config


def _pending(connection: Connection) -> list[str]:
    if not inspect(connection).has_table(VERSION_TABLE):
        return _after(None)
    current = connection.exec_driver_sql(f"SELECT version_num FROM {VERSION_TABLE}").scalar()  # noqa: S608
    return [] if current == newest() else _after(current)


def newest() -> str:
    """Return the revision of a database that is up to date, by the names of the migrations' files."""
    return max(file.name for file in (_MIGRATIONS / "versions").glob("[0-9]*.py")).partition("_")[0]


def _after(current: str | None) -> list[str]:
    from alembic.script import ScriptDirectory  # noqa: PLC0415 - see above

    scripts = ScriptDirectory.from_config(_config()).walk_revisions()
    known = [script.revision for script in scripts][::-1]
    if current is None:
        return known
    if current not in known:
        raise ConfigurationError(
            f"the database has schema {current}, which this version does not know: install the newer one"
        )
    return known[known.index(current) + 1 :]


def is_missing_file(url: str | URL) -> bool:
    """Tell whether a URL names an SQLite file that is not there."""
    parsed = read_url(url)
    file = parsed.database
    return parsed.get_backend_name() == "sqlite" and bool(file) and not Path(str(file)).exists()
