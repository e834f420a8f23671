"""The schema of a database and its numbered migrations (Alembic): those of the core, and of each app its own.

The core's are in ``db/migrations``; an app's revisions begin with 0001 and stand in a table of their own, so
that an app can come and go without the others. Those of an app that is left out (LCC_APPS) are applied too.

Alembic takes longer to import than most commands take to run: it is left alone while there is nothing to do.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from importlib import import_module
from io import StringIO
from pathlib import Path
from typing import TYPE_CHECKING, cast

from sqlalchemy import URL, Connection, MetaData, Table, inspect

from lcc_scrapy.db.sql.store import READING, SILENCE, SqlStore, named_errors
from lcc_scrapy.db.sql.urls import read_url
from lcc_scrapy.db.tables import views
from lcc_scrapy.domain.errors import ConfigurationError
from lcc_scrapy.runtime.apps import App, Apps, load, ours

if TYPE_CHECKING:
    from collections.abc import Callable

    from alembic.config import Config

VERSION_TABLE = "lcc_version"
_MIGRATIONS = Path(__file__).parent / "migrations"


@dataclass(frozen=True, slots=True)
class Line:
    """A line of revisions: the core's (no name) or an app's."""

    name: str
    folder: Path
    tables: str
    """Where its ``MetaData`` is, ``module:attribute``: who only looks for revisions does not import it."""

    @property
    def metadata(self) -> MetaData:
        """Return its tables."""
        return cast("MetaData", load(self.tables))

    @property
    def table(self) -> str:
        """Return the name of the table in which its present revision stands."""
        return f"{VERSION_TABLE}_{self.name}" if self.name else VERSION_TABLE

    def newest(self) -> str:
        """Return the revision of a database that is up to date, by the names of the migrations' files."""
        return max(file.name for file in self.folder.glob("[0-9]*.py")).partition("_")[0]

    def shown(self, revisions: "Iterable[str]") -> list[str]:
        """Return revisions as people read them: ``0044``, ``tracker 0001``."""
        return [f"{self.name} {one}".strip() for one in revisions]


CORE = Line("", _MIGRATIONS / "versions", "lcc_scrapy.db.tables:metadata")


def lines_of(apps: Apps | None = None) -> list[Line]:
    """Return the core's line and those of the installed apps (None = ours), in the order of upgrades."""
    installed = (ours() if apps is None else apps).installed
    return [CORE, *(_line(app) for app in installed if app.migrations)]


def _line(app: App) -> Line:
    return Line(app.name, Path(import_module(app.migrations).__path__[0]), app.tables)


def tables_of(apps: Apps | None = None) -> list[Table]:
    """Return all tables of the core and of the installed apps."""
    return [table for line in lines_of(apps) for table in line.metadata.sorted_tables]


def views_of(apps: Apps | None = None) -> set[str]:
    """Return the names of the views of the core and of the installed apps."""
    installed = (ours() if apps is None else apps).installed
    every = (views, *(load(app.views) for app in installed if app.views))
    return {name for one in every for name in one.tables}


def absent_apps(names: Iterable[str], apps: Apps | None = None) -> list[str]:
    """Return the apps that a database with tables of such ``names`` has, and that are not installed."""
    known = {line.table for line in lines_of(apps)}
    lines = {name for name in names if name.startswith(f"{VERSION_TABLE}_")}
    return sorted(name.removeprefix(f"{VERSION_TABLE}_") for name in lines - known)


def upgrade(
    url: str | URL, progress: "Callable[[int, int], None] | None" = None, *, apps: Apps | None = None
) -> list[str]:
    """Bring a database up to date; returns the revisions applied, oldest first.

    ``progress`` is told the rows that were changed, and how many there are as far as it is known. All or
    nothing on SQLite and PostgreSQL; MariaDB and MySQL commit each statement.
    """
    store = SqlStore(url, silence=None, pause=0)  # a migration of a large table may take hours
    applied: list[str] = []
    try:
        with named_errors(), store.engine.connect() as connection, connection.begin():
            for line, waiting in _pending(connection, lines_of(apps)):
                from alembic import command  # noqa: PLC0415 - see above

                config = _config(line)
                config.attributes["connection"] = connection
                if progress is not None:
                    config.attributes["progress"] = progress
                command.upgrade(config, "head")
                applied += line.shown(waiting)
            return applied
    finally:
        store.close()


def pending(url: str | URL, *, silence: int = SILENCE, apps: Apps | None = None) -> list[str]:
    """Return the revisions that ``upgrade`` would apply, oldest first; changes nothing, creates nothing.

    ``silence`` is as for ``SqlStore``. Raises ``ConfigurationError`` when the database is newer than this
    program.
    """
    return [one for line, waiting in _waiting(url, silence, apps) for one in line.shown(waiting)]


def _waiting(url: str | URL, silence: int, apps: Apps | None) -> list[tuple[Line, list[str]]]:
    lines = lines_of(apps)
    if is_missing_file(url):
        return [(line, _after(line, None)) for line in lines]
    store = SqlStore(url, silence=silence)
    try:
        with named_errors(), store.engine.connect() as connection:
            return list(_pending(connection.execution_options(**{READING: True}), lines))
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


def upgrade_sql(url: str, *, apps: Apps | None = None) -> str:
    """Return what ``upgrade`` would execute, as SQL text; "" = nothing."""
    text = StringIO()
    for line, waiting in _waiting(url, SILENCE, apps):
        from alembic import command  # noqa: PLC0415 - see above

        config = _config(line, text)
        config.attributes["url"] = url
        before = _after(line, None)[: -len(waiting)]
        command.upgrade(config, f"{before[-1] if before else 'base'}:head", sql=True)
    return text.getvalue()


def _config(line: Line, output: StringIO | None = None) -> "Config":
    from alembic.config import Config  # noqa: PLC0415 - see above

    config = Config(output_buffer=output) if output else Config()
    for option, path in {"script_location": _MIGRATIONS, "version_locations": line.folder}.items():
        config.set_main_option(option, str(path).replace("%", "%%"))
    config.set_main_option("path_separator", "newline")
    config.attributes["version_table"] = line.table
    return config


def _pending(connection: Connection, lines: Iterable[Line]) -> Iterator[tuple[Line, list[str]]]:
    """Yield the lines that have revisions which the database lacks, with these."""
    names = set(inspect(connection).get_table_names())
    for line in lines:
        current = None
        if line.table in names:
            query = f"SELECT version_num FROM {line.table}"  # noqa: S608 - names of ours
            current = connection.exec_driver_sql(query).scalar()
        if current != line.newest():
            yield line, _after(line, current)


def _after(line: Line, current: str | None) -> list[str]:
    from alembic.script import ScriptDirectory  # noqa: PLC0415 - see above

    scripts = ScriptDirectory.from_config(_config(line)).walk_revisions()
    known = [script.revision for script in scripts][::-1]
    if current is None:
        return known
    if current not in known:
        (shown,) = line.shown([current])
        raise ConfigurationError(
            f"the database has schema {shown}, which this version does not know: install the newer one"
        )
    return known[known.index(current) + 1 :]


def is_missing_file(url: str | URL) -> bool:
    """Tell whether a URL names an SQLite file that is not there."""
    parsed = read_url(url)
    file = parsed.database
    return parsed.get_backend_name() == "sqlite" and bool(file) and not Path(str(file)).exists()
