"""What an app is: a folder, or a team's package, that the core reaches by one frozen ``App`` alone.

The core knows no app by name. It asks ``Apps`` for parts of a kind ("jobs", "checks", ...), and gets those
of the apps that are at work here, in the order of ``lcc_scrapy.apps.APPS``.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib import import_module
from typing import Any

from lcc_scrapy.apps import APPS
from lcc_scrapy.domain.errors import ConfigurationError

_NAME = re.compile("[a-z][a-z0-9_]{0,39}")
_WORD = re.compile(r"-\w+|[^\W\d]\w*(\.[^\W\d]\w*)*")


@dataclass(frozen=True, slots=True)
class App:
    """One app. Its parts are named ``module:attribute`` and imported when somebody needs them."""

    name: str
    """A word of a-z, 0-9 and _: that of its folder, of its table ``lcc_version_NAME``, and of ``-NAME``."""
    summary: str
    needs: tuple[str, ...] = ()
    """Names of apps that it imports, which stand before it: without one of them it is left out, too."""
    prefixes: tuple[str, ...] = ()
    """Of its settings: ``TRACKER`` for ``LCC_TRACKER`` and ``LCC_TRACKER_...``."""
    settings: str = ""
    """A frozen data class of ``setting(...)``, which ``Config.of`` reads."""
    tables: str = ""
    """``MetaData`` of its own; the ``info`` of each table says what happens to its rows (``db.columns``)."""
    views: str = ""
    """``MetaData`` of what is read like tables, and made by its migrations out of them."""
    migrations: str = ""
    """The package of its Alembic revisions, ``0001`` and on."""
    commands: Mapping[str, str] = field(default_factory=dict, hash=False)
    """Its commands by name; ``"front query"`` is one of the group ``front``. Those of the core go first."""
    public_routes: str = ""
    """``web.parts.PublicRoutes``: what strangers may ask of LCC_PUSH_ENDPOINTS."""
    api_routes: str = ""
    """``web.parts.ApiRoutes``: what content users and operators may ask of LCC_WEB_ENDPOINT."""
    subscribers: str = ""
    """``mail.unsubscribing.Subscribers``: who gets mail with a link in it that ends it."""
    provider_options: str = ""
    """``cli.provider_options.ProviderOptions``: more of ``lcc provider set`` and ``show``."""
    troubles: str = ""
    """``ops.status.Troubles``: what is wrong, for the overview of the dashboard."""
    jobs: str = ""
    """``ops.housekeeping.Further``: work at the end of the daily sweep."""
    worker: str = ""
    """``app.worker_parts.MakeWorkerPart``: what runs in each crawl process beside its fetching."""
    provider: str = ""
    """``providers.registration.ProviderHook``: what becomes of its rows when a provider goes."""
    renaming: str = ""
    """``kit.renaming.RenamingHook``: what becomes of its rows when a root of a provider gets another URL."""
    checks: str = ""
    """``ops.doctor.Check``: what ``lcc doctor`` looks at."""
    factories: Mapping[str, Mapping[str, str]] = field(default_factory=dict, hash=False)
    """By kind and name. ``contents``: ``content.store.MakeContents``, by the scheme of LCC_CONTENT_URL."""


def load(part: str) -> Any:
    """Return what a part names."""
    module, _, attribute = part.partition(":")
    return getattr(import_module(module), attribute)


class Apps:
    """The apps that are ``installed``, and of these the ones at work.

    Not at work are those that are ``left_out`` by name, and those that need one which is not at work. The
    tables, migrations and settings of an app that is left out stay; it has no command, route or job.
    """

    def __init__(self, installed: Iterable[App], left_out: Iterable[str] = ()) -> None:
        self.installed = tuple(installed)
        self.left_out = frozenset(left_out)
        unknown = self.left_out - {app.name for app in self.installed}
        if unknown:
            known = ", ".join(app.name for app in self.installed)
            raise ConfigurationError(f"LCC_APPS: there is no app {min(unknown)}; there are {known or 'none'}")
        self._at_work, self._absent = self._sorted()

    def _sorted(self) -> tuple[dict[str, App], dict[str, str]]:
        """Return the apps at work, and why the others are not, by name."""
        at_work: dict[str, App] = {}
        absent = dict.fromkeys(self.left_out, "LCC_APPS leaves out")
        names = {app.name for app in self.installed}
        for app in self.installed:
            needed = next((name for name in app.needs if name not in at_work), None)
            if needed is not None:
                why = absent.get(needed) or ("comes after it" if needed in names else "is not installed")
                absent.setdefault(app.name, f"needs {needed}, which {why}")
            elif app.name not in absent:
                at_work[app.name] = app
        return at_work, absent

    def __iter__(self) -> Iterator[App]:
        return iter(self._at_work.values())

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Apps):
            return NotImplemented
        return (self.installed, self.left_out) == (other.installed, other.left_out)

    def __hash__(self) -> int:
        return hash((self.installed, self.left_out))

    def parts(self, kind: str) -> Iterator[Any]:
        """Yield the parts of a kind of the apps at work, imported."""
        return (load(part) for app in self if (part := getattr(app, kind)))

    def every(self, kind: str) -> Iterator[Any]:
        """Yield the parts of a kind of all installed apps: those that keep rows whole."""
        return (load(part) for app in self.installed if (part := getattr(app, kind)))

    def commands(self, group: str = "") -> dict[str, str]:
        """Return the commands that stand in a group, by their names there."""
        found = {}
        for app in self:
            for path, part in app.commands.items():
                where, _, name = path.rpartition(" ")
                if where == group:
                    found[name] = part
        return found

    def lacking(self) -> Iterator[str]:
        """Yield a line for each app that is left out because of one that it needs."""
        for app in self.installed:
            if app.name in self._absent.keys() - self.left_out:
                yield f"{app.name} is left out: it {self._absent[app.name]}"

    def without(self, command: str) -> str | None:
        """Return the app that would have a command, and why it is not at work; None = none has it."""
        return self._missing(lambda app: command in app.commands)

    def factories(self, kind: str) -> dict[str, str]:
        """Return the factories of a kind, by their names."""
        return {name: part for app in self for name, part in app.factories.get(kind, {}).items()}

    def without_factory(self, kind: str, name: str) -> str | None:
        """Return the app that would have a factory, and why it is not at work; None = none has it."""
        return self._missing(lambda app: name in app.factories.get(kind, {}))

    def _missing(self, has_it: Callable[[App], bool]) -> str | None:
        missing = (app.name for app in self.installed if app.name in self._absent and has_it(app))
        return next((f"{name}, which {self._absent[name]}" for name in missing), None)

    def owner_of(self, setting: str) -> App | None:
        """Return the installed app that a setting belongs to by its prefix, the longest that fits."""
        name = f"{setting.removeprefix('LCC_')}_"
        owners = {prefix: app for app in self.installed for prefix in app.prefixes}
        fitting = [prefix for prefix in owners if name.startswith(f"{prefix}_")]
        return owners[max(fitting, key=len)] if fitting else None


NO_APPS = Apps(())


@cache
def ours() -> Apps:
    """Return the apps of this repository."""
    return Apps(_app_in(module) for module in APPS)


def read_apps(text: Any) -> Apps:
    """Read LCC_APPS: modules with an ``APP``, which are added, and ``-NAME`` of apps that are left out.

    Raises ``ValueError`` for what is neither, and ``ConfigurationError`` for what there is not.
    """
    words = text.replace(",", " ").split() if isinstance(text, str) else text
    if not isinstance(words, (list, tuple)):
        raise ValueError(f"{words!r}, expected modules (mypkg.titles) and -NAMEs")  # noqa: TRY004 - see above
    for word in words:
        if not isinstance(word, str) or not _WORD.fullmatch(word):
            raise ValueError(f"{word!r}, expected a module (mypkg.titles), or -NAME")
    added = [_app_in(word) for word in words if not word.startswith("-")]
    every = (*ours().installed, *added)
    _refuse_twice("apps", [app.name for app in every])
    _refuse_twice("commands", [command for app in every for command in app.commands])
    kinds = ((kind, name) for app in every for kind, made in app.factories.items() for name in made)
    _refuse_twice("factories of", [" ".join(one) for one in kinds])
    return Apps(every, (word[1:] for word in words if word.startswith("-")))


def _refuse_twice(what: str, names: list[str]) -> None:
    twice = {name for name in names if names.count(name) > 1}
    if twice:
        raise ConfigurationError(f"LCC_APPS: there are two {what} {min(twice)}")


def _app_in(module: str) -> App:
    try:
        found = getattr(import_module(module), "APP", None)
    except ModuleNotFoundError as error:
        for_it = "" if error.name == module else f", which {module} needs"
        raise ConfigurationError(f"LCC_APPS: there is no module {error.name}{for_it}") from None
    except (ImportError, SyntaxError) as error:
        raise ConfigurationError(f"LCC_APPS: {module} cannot be imported: {error}") from error
    if found is None:
        raise ConfigurationError(f"LCC_APPS: {module} has no APP")
    if not isinstance(found, App):
        raise ConfigurationError(f"LCC_APPS: {module}.APP is no App")
    if not _NAME.fullmatch(found.name):
        raise ConfigurationError(
            f"LCC_APPS: {module}.APP is named {found.name!r}, expected a word of a-z, 0-9, _"
        )
    if bool(found.tables) != bool(found.migrations):
        raise ConfigurationError(f"LCC_APPS: {module}.APP has tables without migrations, or these alone")
    return found
