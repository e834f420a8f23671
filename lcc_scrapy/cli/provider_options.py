"""The options of ``lcc provider add`` and ``set``: the columns they stand for, and what apps add."""

import re
from collections.abc import Callable, Mapping, Sequence
from datetime import tzinfo
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

import click

from lcc_scrapy.cli import printing
from lcc_scrapy.cli.context import Failure, apps_at_work
from lcc_scrapy.domain import addresses, timeslots
from lcc_scrapy.domain.entries import is_type_pattern
from lcc_scrapy.domain.errors import UrlRefused
from lcc_scrapy.domain.providers import AT_ONCE_MAX, Render
from lcc_scrapy.domain.roots import Root

if TYPE_CHECKING:
    from lcc_scrapy.config.config import Config
    from lcc_scrapy.db.tx import Tx
    from lcc_scrapy.domain.providers import Provider

_DEFAULT = "default"
_GROUP = re.compile(r"[A-Za-z][\w.-]{0,62}", re.ASCII)
"""A group's name is a turn key, as are pids: it never looks like one of these."""
_TEXT_MAX = 255
_TYPES_MAX = 1024
_COUNT_MAX = (1 << 63) - 1
Command = Callable[..., Any]


def _size(_ctx: click.Context, _param: click.Parameter, text: str | None) -> int | None:
    from lcc_scrapy.domain.notations import size

    try:
        value = None if text is None else size(text)
    except ValueError as error:
        raise click.BadParameter(str(error)) from None
    if value is not None and value > _COUNT_MAX:
        raise click.BadParameter(f"{text!r} is too large")
    return value


def _zone(_ctx: click.Context, _param: click.Parameter, text: str | None) -> str | None:
    if text in {None, _DEFAULT}:
        return text and ""
    try:
        zone: tzinfo = ZoneInfo(str(text))
    except (ZoneInfoNotFoundError, ValueError, OSError):
        raise click.BadParameter(f"{text!r}, expected a name like Europe/Amsterdam") from None
    return str(zone)


def _revisit(_ctx: click.Context, _param: click.Parameter, text: str | None) -> str | None:
    from lcc_scrapy.domain.notations import revisits

    if text in {None, _DEFAULT}:
        return text and ""
    try:
        return str(revisits(text))
    except ValueError as error:
        raise click.BadParameter(str(error)) from None


def _full_sets(_ctx: click.Context, _param: click.Parameter, text: str | None) -> int | str | None:
    if text is None or text == "unlimited":
        return text
    if not (text.isascii() and text.isdigit() and len(text) < 10):  # noqa: PLR2004 - fits a column
        raise click.BadParameter(f"{text!r}, expected a number or unlimited")
    return int(text)


def _one_line(_ctx: click.Context, _param: click.Parameter, text: str | None) -> str | None:
    if text is not None and (len(text) > _TEXT_MAX or not text.isprintable()):
        raise click.BadParameter(f"expected one line of at most {_TEXT_MAX} characters")
    return text


def _group(_ctx: click.Context, _param: click.Parameter, text: str | None) -> str | None:
    if text and not _GROUP.fullmatch(text):
        raise click.BadParameter(f"{text!r}, expected a letter, then letters, digits, '.', '_' or '-'")
    return text


def _render(_ctx: click.Context, _param: click.Parameter, yes: bool | None) -> str | None:
    return None if yes is None else Render.YES if yes else Render.ENDED


def _allowed(_ctx: click.Context, _param: click.Parameter, text: str | None) -> float | None:
    from lcc_scrapy.domain.notations import share

    try:
        return None if text is None else share(text)
    except ValueError as error:
        raise click.BadParameter(str(error)) from None


def _types(_ctx: click.Context, _param: click.Parameter, given: tuple[str, ...] | str) -> str | None:
    """Return patterns of types as they are kept; None where none were given. One text comes from a table."""
    texts = (given,) if isinstance(given, str) else given
    if not texts or texts == (_DEFAULT,):
        return "" if texts else None
    patterns = [pattern for text in texts for pattern in re.split(r"[,\s]+", text.lower()) if pattern]
    for pattern in patterns:
        if not is_type_pattern(pattern):
            raise click.BadParameter(f"{pattern!r}, expected a type such as text/html, image/* or */*")
    kept = " ".join(dict.fromkeys(patterns))
    if not kept or len(kept) > _TYPES_MAX:
        raise click.BadParameter(f"expected 1 to {_TYPES_MAX} characters of patterns")
    return kept


def _declared(_ctx: click.Context, _param: click.Parameter, text: str | None) -> str | None:
    return "" if text == _DEFAULT else text


_OPTIONS = (
    click.option("--name", callback=_one_line, help="Name of the provider, for people."),
    click.option("--contact", callback=_one_line, help="How to reach the provider, for people."),
    click.option(
        "--bandwidth",
        callback=_size,
        metavar="BYTES",
        help="Bytes per second, for example 200k; 0 = no limit.",
    ),
    click.option(
        "--timeofday",
        metavar="HOURS",
        help="Hours in which the LCC may fetch, for example 'mon-fri 20-06'; always = any hour.",
    ),
    click.option(
        "--timezone",
        callback=_zone,
        metavar="ZONE",
        help="Time zone of these hours, for example Europe/Amsterdam; default = the LCC's.",
    ),
    click.option(
        "--priority",
        type=click.Choice(["0", "1", "2"]),
        help="2 is fetched first, then 1, then 0 (default).",
    ),
    click.option(
        "--at-once",
        type=click.IntRange(1, AT_ONCE_MAX),
        metavar="N",
        help="URLs that are fetched at a time, with consent of its owner; 1 (default) = one after the other.",
    ),
    click.option(
        "--render/--no-render",
        default=None,
        callback=_render,
        help="Whether a browser renders its pages, for sites whose text and links come by JavaScript.",
    ),
    click.option(
        "--group",
        callback=_group,
        metavar="NAME",
        help="Providers of a group share one turn and the smallest of their limits; '' = a turn of its own.",
    ),
    click.option(
        "--mimetype",
        "mimetypes",
        multiple=True,
        callback=_types,
        metavar="PATTERN",
        help="An accepted type, for example 'image/*' or '*/*' for all; may be repeated;"
        " default = LCC_MIMETYPES.",
    ),
    click.option(
        "--filesmax",
        type=click.IntRange(0, _COUNT_MAX),
        metavar="N",
        help="Limit on documents; 0 = no limit.",
    ),
    click.option(
        "--spacemax",
        callback=_size,
        metavar="BYTES",
        help="Limit on stored bytes, for example 10G; 0 = no limit.",
    ),
    click.option(
        "--fullsets",
        callback=_full_sets,
        metavar="N",
        help="Unrequested full sets per LCC_FULLSET_PERIOD: a number or unlimited.",
    ),
    click.option(
        "--allow-private/--no-allow-private",
        default=None,
        help="Fetch from private, loopback and link-local addresses too.",
    ),
    click.option("--ignore-robots/--no-ignore-robots", default=None, help="Ignore robots.txt."),
    click.option(
        "--strict-mtime/--no-strict-mtime",
        default=None,
        help="Fetch a document again even if only its declared mtime changed.",
    ),
    click.option(
        "--declared",
        type=click.Choice(["record", "strict", _DEFAULT]),
        callback=_declared,
        help="Content that differs from its declaration: stored and reported (record), or refused (strict).",
    ),
    click.option(
        "--revisit",
        callback=_revisit,
        metavar="INTERVALS",
        help="How often spiders revisit its pages, for example 1h..30d; default = LCC_REVISIT.",
    ),
    click.option(
        "--orphans",
        type=click.Choice(["keep", "confirm", "remove"]),
        help="What to do with documents that spiders found and no stored page links to any more.",
    ),
    click.option(
        "--fallback",
        callback=_allowed,
        metavar="SHARE",
        help="Visit its documents too while it fails to push more than SHARE of its changes, for example 20%;"
        " 0 = never.",
    ),
)
_COLUMN_OF = {
    "at_once": "atonce",
    "group": "turngroup",
    "allow_private": "allowprivate",
    "ignore_robots": "ignorerobots",
    "strict_mtime": "strictmtime",
    "fullsets": "fullsetsallowed",
}


def provider_options(command: Command) -> Command:
    """Give a command the options that stand for columns of a provider."""
    for option in reversed(_OPTIONS):
        command = option(command)
    return command


class ProviderOptions(Protocol):
    """What an app knows of each provider: ``App.provider_options``."""

    @property
    def options(self) -> Sequence[click.Option]:
        """Those of ``lcc provider set``; the value of one that is not given is None."""

    def change(self, tx: "Tx", pid: int, given: Mapping[str, Any]) -> None:
        """Change a provider by some of these options, by their names, of which there is one at least."""

    def shown(self, config: "Config", tx: "Tx", provider: "Provider") -> Mapping[str, str]:
        """Return what ``lcc provider show`` says besides: words by what they are about."""


class OpenCommand(click.Command):
    """A command that has the options of apps, too."""

    def get_params(self, ctx: click.Context) -> list[click.Parameter]:
        """Return all arguments and options; raises ``ConfigurationError`` where LCC_APPS is wrong."""
        params = super().get_params(ctx)
        for part in apps_at_work(ctx).parts("provider_options"):
            params[-1:-1] = part.options  # before --help
        return params


_FROM_OPTIONS = (
    click.option(
        "--from",
        "file",
        metavar="FILE",
        help="Add the providers of a file: CSV with a header, or JSON lines; - is stdin.",
    ),
    click.option(
        "--passwords-to",
        type=click.Path(dir_okay=False, path_type=Path),
        metavar="FILE",
        help="With --from: make up the passwords that are missing there, and write them to this new file.",
    ),
    click.option("--skip-existing", is_flag=True, help="With --from: leave pids that are in use alone."),
)


def from_options(command: Command) -> Command:
    """Give a command the options for many providers at once."""
    for option in reversed(_FROM_OPTIONS):
        command = option(command)
    return command


def columns(given: Mapping[str, Any], config: "Config") -> dict[str, Any]:
    """Return the columns to set; options that were not given are left out."""
    values = {_COLUMN_OF.get(name, name): value for name, value in given.items() if value is not None}
    if values.get("fullsetsallowed") == "unlimited":
        values["fullsetsallowed"] = None
    if "priority" in values:
        values["priority"] = int(values["priority"])
    if "timeofday" in values:
        values["timeofday"] = _mask(values["timeofday"], config.timeofday_slots)
    return values


def _mask(text: str, slots: int) -> str:
    if text.strip().lower() == "always":
        return timeslots.ALWAYS
    try:
        mask = timeslots.parse_mask(text, slots)
    except UrlRefused as error:
        raise click.BadParameter(error.detail, param_hint="--timeofday") from None
    if timeslots.never_opens(mask):
        raise click.BadParameter(
            f"{text!r} has no permitted hour; `lcc provider pause` stops fetching", param_hint="--timeofday"
        )
    return mask


def roots(texts: tuple[str, ...]) -> list[str]:
    """Check roots and return them as they are kept, each once."""
    try:
        return list(dict.fromkeys(str(Root.parse(text)) for text in texts))
    except UrlRefused as error:
        raise Failure(error.detail) from error


def is_fetched_from(root: str) -> bool:
    """Tell whether something may be fetched from a root that is not allowed to have a private address."""
    host = Root.parse(root).url.host
    is_address = ":" in host or host.replace(".", "").isdigit()
    return host != "localhost" and (not is_address or addresses.is_public(host))


def warn_of_private(texts: list[str], *, allowed: bool) -> None:
    """Say so when nothing could be fetched from a root because its address is private."""
    for text in [] if allowed else texts:
        if not is_fetched_from(text):
            host = Root.parse(text).url.host
            printing.note(f"{host} is a private address: nothing is fetched from it without --allow-private")
