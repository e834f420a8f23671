"""The context of every command: settings, data directory and database, opened when first needed."""

import os
import pwd
import time
from collections.abc import Callable, Container, Iterator
from contextlib import closing, contextmanager
from functools import cached_property
from typing import TYPE_CHECKING, Any, cast

import click

from lcc_scrapy.domain.cursor import BadCursor, StartOver
from lcc_scrapy.domain.errors import ConfigurationError, DiskFailed, InUse, LccError
from lcc_scrapy.runtime.apps import Apps, load

if TYPE_CHECKING:
    from scrapy.settings import Settings

    from lcc_scrapy.config.config import Config
    from lcc_scrapy.content.store import ContentStore
    from lcc_scrapy.db.auditing import Audited
    from lcc_scrapy.db.sql.store import SqlStore
    from lcc_scrapy.db.tx import Store
    from lcc_scrapy.feed.store_feed import StoreFeed
    from lcc_scrapy.machine.data_directory import DataDirectory

FAILED = 1
UNWORKABLE = 2
START_OVER = 3
PARTIAL = 4
_WHO_MAX = 64
_APPS = "lcc_scrapy.apps"
"""Where click's context keeps the apps."""

NOT_FOR_OTHERS = 0o027
"""What ``lcc`` takes away from the rights of every file and folder that it makes."""


class Failure(click.ClickException):
    """An error that is one line on stderr; exit status 1."""

    exit_code = FAILED

    def show(self, file: Any = None) -> None:
        """Print the line."""
        click.echo(f"lcc: error: {self.message}", file=file, err=file is None)


class CannotGoOn(Failure):
    """A cursor that cannot be followed; exit status 3."""

    exit_code = START_OVER


class Partial(Failure):
    """Some sub-LCCs of a front did not answer; exit status 4."""

    exit_code = PARTIAL


class BrokenDisk(Failure):
    """A disk that fails; exit status 74."""

    exit_code = os.EX_IOERR


class Unworkable(Failure):
    """A value cannot be used, or a daemon cannot work before the operator has mended something; status 2."""

    exit_code = UNWORKABLE


class LccGroup(click.Group):
    """A group whose commands end with one clear line when something of the LCC's refuses to work."""

    def invoke(self, ctx: click.Context) -> Any:
        """Run a command."""
        try:
            with _not_for_others():
                return super().invoke(ctx)
        except StartOver as error:
            raise CannotGoOn(_line(str(error))) from error
        except BadCursor as error:
            raise Unworkable(_line(str(error))) from error
        except DiskFailed as error:
            raise BrokenDisk(_line(str(error))) from error
        except LccError as error:
            raise Failure(_line(str(error))) from error
        except BrokenPipeError:
            raise
        except OSError as error:
            place = f": {error.filename}" if error.filename else ""
            raise Failure(f"{error.strerror or error}{place}") from error


class OpenGroup(LccGroup):
    """A group to which apps add commands: those named ``"GROUP NAME"`` in ``App.commands``."""

    def path(self, name: str = "") -> str:
        """Return how apps name the group, or a command in it."""
        return f"{self.name} {name}".strip()

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names of all commands; where LCC_APPS is wrong those of the core, and a warning."""
        try:
            of_apps = apps_at_work(ctx).commands(self.path())
        except LccError as error:
            click.echo(f"lcc: warning: {error}", err=True)
            of_apps = {}
        return sorted({*super().list_commands(ctx), *of_apps})

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Return a command, imported when it is needed; None where there is none of this name."""
        own = super().get_command(ctx, cmd_name)
        if own is not None:
            return own
        apps = apps_at_work(ctx)
        part = apps.commands(self.path()).get(cmd_name)
        if part is not None:
            return cast("click.Command", load(part))
        app = apps.without(self.path(cmd_name))
        if app is not None:
            ctx.fail(f"{cmd_name!r} is a command of the app {app}.")
        return None


def apps_at_work(ctx: click.Context) -> Apps:
    """Return the apps at work here, as -s, the environment and the project say."""
    from lcc_scrapy.config.config import apps_of, given_settings

    if _APPS not in ctx.meta:
        ctx.meta[_APPS] = apps_of(given_settings(ctx.find_root().params.get("settings", {})))
    return cast("Apps", ctx.meta[_APPS])


@contextmanager
def _not_for_others() -> Iterator[None]:
    """Keep what is made meanwhile from users of the machine who are neither owner nor in its group."""
    before = os.umask(NOT_FOR_OTHERS)
    os.umask(before | NOT_FOR_OTHERS)
    try:
        yield
    finally:
        os.umask(before)


@contextmanager
def never_to_be_tried_again() -> Iterator[None]:
    """Tell what the operator must mend from what may pass, for those who start a daemon again."""
    try:
        yield
    except InUse:
        raise
    except ConfigurationError as error:
        raise Unworkable(_line(str(error))) from error


def _line(text: str) -> str:
    return " ".join(text.split())


def _os_user() -> str:
    """Return who runs this command: who called sudo, where that is how."""
    try:
        name = pwd.getpwuid(os.getuid()).pw_name
    except KeyError:
        name = str(os.getuid())
    behind = os.environ.get("SUDO_USER", "") if name == "root" else ""
    return (f"{behind} as {name}" if behind.isprintable() and behind else name)[:_WHO_MAX]


class Lcc:
    """One run of ``lcc``. ``given`` are the ``-s NAME=VALUE`` of its command line."""

    def __init__(self, given: dict[str, str]) -> None:
        self.given = given

    @cached_property
    def settings(self) -> "Settings":
        """The project's Scrapy settings, or Scrapy's own outside a project: for what runs Scrapy."""
        from lcc_scrapy.config.config import project_settings

        return project_settings(self.given)

    @cached_property
    def config(self) -> "Config":
        """All settings, checked; warns of those that look like ours and are not."""
        from lcc_scrapy.config import config

        settings = config.given_settings(self.given)
        unknown = config.unknown_settings(settings)
        if unknown:
            click.echo(f"lcc: warning: unknown setting {', '.join(unknown)}", err=True)
        return config.load(settings)

    @cached_property
    def home(self) -> "DataDirectory":
        """The data directory, which must exist."""
        from lcc_scrapy.machine.data_directory import DataDirectory

        return DataDirectory.find(self.config.data_dir)

    @contextmanager
    def store(self, tolerated: Container[str] = ()) -> Iterator["SqlStore"]:
        """Open the database of the data directory, up to date and its own (see ``opening.open_store``)."""
        from lcc_scrapy.app import opening
        from lcc_scrapy.feed.store_feed import StoreFeed

        lcc_id = self.home.lcc_id
        store = opening.open_store(self.config, tolerated=tolerated)
        try:
            if StoreFeed(store).head().lcc != lcc_id:
                raise ConfigurationError(
                    f"the data directory {self.config.data_dir} and the database belong to different LCCs:"
                    " correct LCC_DATA_DIR or LCC_DATABASE_URL"
                )
            yield store
        finally:
            store.close()

    @contextmanager
    def audited(self, action: str, pid: int = 0, detail: str = "") -> Iterator["Audited"]:
        """Open the database for one action, which the audit log then tells of (see ``auditing.Audited``)."""
        with self.store() as store:
            yield self.audited_in(store, action, pid, detail)

    @staticmethod
    def audited_in(store: "Store", action: str, pid: int = 0, detail: str = "") -> "Audited":
        """Return a store for one action, of which the audit log in it then tells."""
        from lcc_scrapy.db.auditing import Audited
        from lcc_scrapy.domain.audit import ACTION_MAX, COMMAND, DETAIL_MAX, AuditEntry

        entry = AuditEntry(
            0, int(time.time()), _os_user(), COMMAND, action[:ACTION_MAX], pid, detail[:DETAIL_MAX]
        )
        return Audited(store, entry)

    @contextmanager
    def feed(self) -> Iterator["StoreFeed"]:
        """Open the feed as content users read it: from replicas where there are any."""
        from lcc_scrapy.app import opening
        from lcc_scrapy.feed.store_feed import StoreFeed

        lags = bool(self.config.read_database_url)
        with closing(opening.open_reads(self.config, self.home)) if lags else self.store() as store:
            yield StoreFeed(store, lags=lags)

    @contextmanager
    def reads(self, store: "SqlStore") -> Iterator["SqlStore"]:
        """Open the replicas that content users read from, or give ``store`` where there are none."""
        from lcc_scrapy.app import opening

        if not self.config.read_database_url:
            yield store
            return
        with closing(opening.open_reads(self.config, self.home)) as reads:
            yield reads

    def content(self, store: "SqlStore") -> "ContentStore":
        """Return this machine's contents."""
        from lcc_scrapy.app import opening

        return opening.contents_of_machine(self.config, opening.machine_number(self.config, store))

    def path_of(self) -> Callable[[int, int], str]:
        """Return what gives the path of (machine, file), or its URL in object storage."""
        from lcc_scrapy.content.files import relative_name

        place = self.config.content_url.partition("?")[0].rstrip("/") or os.fspath(self.config.content_dir)
        return lambda machineid, fileid: f"{place}/{relative_name(machineid, fileid)}"


pass_lcc = click.make_pass_decorator(Lcc)
