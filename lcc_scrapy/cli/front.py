"""``lcc front``: several sub-LCCs behind one front."""

from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from lcc_scrapy.cli import printing
from lcc_scrapy.cli.context import Lcc, OpenGroup, never_to_be_tried_again, pass_lcc
from lcc_scrapy.cli.front_moving import move, split
from lcc_scrapy.cli.front_providers import provider_add
from lcc_scrapy.cli.front_reading import follow, select, web
from lcc_scrapy.domain.errors import ConfigurationError
from lcc_scrapy.domain.front import FrontError, SubLcc, SubState, place

if TYPE_CHECKING:
    from lcc_scrapy.front.directory import Directory


@click.group(cls=OpenGroup)
def front() -> None:
    """Let several sub-LCCs look like one LCC.

    docs/front.md tells how; LCC_FRONT_DATABASE_URL says where the front keeps what it knows.

    \b
    lcc front init
    lcc front add a --uns 192.0.2.1:9000 --database mysql+pymysql://lcc@192.0.2.1/lcc
    lcc front provider-add 7 --password-file secret --root http://www.example.org/
    lcc front uns
    """  # noqa: D301


@contextmanager
def opened(lcc: Lcc, *, check: bool = True) -> Iterator["Directory"]:
    """Open the front's database."""
    from lcc_scrapy.front.directory import Directory

    directory = Directory(lcc.config.front_database_url)
    try:
        if check:
            directory.check()
        yield directory
    finally:
        directory.close()


@front.command()
@pass_lcc
def init(lcc: Lcc) -> None:
    """Make the front's database; nothing happens when it is there.

    \b
    lcc front init
    lcc -s LCC_FRONT_DATABASE_URL=mysql+pymysql://lcc@db/front front init
    """  # noqa: D301
    from lcc_scrapy.db.sql.urls import read_url

    if read_url(lcc.config.front_database_url).get_backend_name() == "sqlite":
        lcc.config.data_dir.mkdir(parents=True, exist_ok=True)
    with opened(lcc, check=False) as directory:
        directory.create()
        directory.check()
    click.echo("the front is ready: `lcc front add` makes sub-LCCs known to it")


_STATES = [one.value for one in SubState]
_NAME = click.argument("name")
_OPTIONS = (
    click.option("--uns", metavar="HOST:PORT", help="Its UNS: an endpoint `haproxy:tcp:…` of it."),
    click.option("--web", metavar="URL", help="Its `lcc web`, for content users of the front."),
    click.option("--token-file", metavar="FILE", help="File with a token (scope `read`) for it."),
    click.option("--database", metavar="URL", help="Its LCC_DATABASE_URL, to see how full it is."),
    click.option("--capacity", metavar="N", type=click.IntRange(0), help="URLs that it holds; 0 = no limit."),
    click.option(
        "--state",
        type=click.Choice(_STATES),
        help="full = it takes no new providers.",
    ),
)


def _options(command: Any) -> Any:
    for option in reversed(_OPTIONS):
        command = option(command)
    return command


@front.command()
@_NAME
@_options
@pass_lcc
def add(lcc: Lcc, /, *, name: str, **given: Any) -> None:
    """Make sub-LCC NAME known.

    \b
    lcc front add a --uns 192.0.2.1:9000 --database mysql+pymysql://lcc@192.0.2.1/lcc --capacity 10000000
    """  # noqa: D301
    if not given["uns"]:
        raise click.UsageError("say where its UNS is: --uns HOST:PORT")
    sub = _changed(SubLcc(name, ""), given)
    with opened(lcc) as directory:
        directory.add(_identified(lcc, directory, sub))
    click.echo(f"sub-LCC {name} added: {sub.uns}")


@front.command("set")
@_NAME
@_options
@pass_lcc
def set_(lcc: Lcc, /, *, name: str, **given: Any) -> None:
    """Change what is known of sub-LCC NAME.

    \b
    lcc front set a --state full
    """  # noqa: D301
    with opened(lcc) as directory:
        directory.change(_identified(lcc, directory, _changed(directory.sub(name), given)))
    click.echo(f"sub-LCC {name} changed")


def _changed(sub: SubLcc, given: dict[str, Any]) -> SubLcc:
    changed = replace(sub, **{name: value for name, value in given.items() if value is not None})
    host, _, port = changed.uns.rpartition(":")
    if not host or not port.isdigit() or int(port) > 65_535:  # noqa: PLR2004 - the largest of TCP
        raise click.BadParameter(f"{changed.uns!r}, expected HOST:PORT", param_hint="--uns")
    if given["database"]:
        changed = replace(changed, lccid=_its_id(changed.database))
    if given["token_file"]:
        changed = replace(changed, token_file=str(Path(changed.token_file).resolve()))
    return changed


def _identified(lcc: Lcc, directory: "Directory", sub: SubLcc) -> SubLcc:
    """Return a sub-LCC with the id that its HTTP API tells, where it is not known otherwise."""
    from lcc_scrapy.front.feed import FrontFeed

    if sub.lccid or not (sub.web and sub.token_file):
        return sub
    with closing(FrontFeed(directory, lcc.config.front_patience)) as feed:
        return replace(sub, lccid=feed.lccid(sub))


def _its_id(database: str) -> str:
    """Return the id of the LCC in a database; an error where there is none."""
    from sqlalchemy.exc import SQLAlchemyError

    from lcc_scrapy.db import schema
    from lcc_scrapy.db.sql.store import SqlStore
    from lcc_scrapy.feed.store_feed import LCC_ID

    try:
        if schema.pending(database):
            raise ConfigurationError("--database: there is no LCC in it, or it needs `lcc db upgrade`")
        store = SqlStore(database)
    except (SQLAlchemyError, ImportError) as error:
        raise ConfigurationError(f"--database: {getattr(error, 'orig', None) or error}") from None
    try:
        with store.read() as tx:
            return tx.info(LCC_ID) or ""
    finally:
        store.close()


@front.command()
@_NAME
@pass_lcc
def remove(lcc: Lcc, *, name: str) -> None:
    """Forget sub-LCC NAME, which must have no providers.

    \b
    lcc front remove a
    """  # noqa: D301
    with opened(lcc) as directory:
        directory.remove(name)
    click.echo(f"sub-LCC {name} forgotten")


@front.command("list")
@printing.json_option
@pass_lcc
def list_(lcc: Lcc, *, as_json: bool) -> None:
    """List the sub-LCCs, with the number of their providers and how full they are.

    \b
    lcc front list
    lcc front list --json
    """  # noqa: D301
    with opened(lcc) as directory:
        subs, providers = directory.subs(), directory.providers()
    urls = _urls(subs)
    rows = [
        {**asdict(one), "providers": providers.get(one.name, 0), "urls": urls.get(one.name)} for one in subs
    ]
    if as_json:
        printing.as_json([{**row, "database": _without_password(row["database"])} for row in rows])
        return
    columns = ("name", "uns", "web", "state", "providers", "urls", "capacity")
    if not printing.table(columns, [[row[name] for name in columns] for row in rows]):
        printing.note("no sub-LCCs yet: `lcc front add`")


def _without_password(database: str) -> str:
    from lcc_scrapy.db.sql.urls import read_url

    return read_url(database).render_as_string() if database else ""


def _urls(subs: list[SubLcc]) -> dict[str, int]:
    """Return the documents and waiting URLs of sub-LCCs; of one that does not answer nothing is known."""
    from lcc_scrapy.front.sub_stores import SubStores

    with SubStores(subs) as opened_ones:
        for name, why in opened_ones.silent.items():
            printing.note(f"sub-LCC {name}: {why}")
        return opened_ones.urls


@front.command()
@click.argument("pid", type=click.IntRange(0))
@click.option("--to", "name", metavar="NAME", help="The sub-LCC; without it, the least full one.")
@pass_lcc
def assign(lcc: Lcc, *, pid: int, name: str | None) -> None:
    """Give provider PID to a sub-LCC. Add it there too, with `lcc provider add`.

    A PID is given once, whatever sub-LCC it belongs to. The name of the sub-LCC is printed.

    \b
    lcc front assign 7
    lcc front assign 7 --to a
    """  # noqa: D301
    with opened(lcc) as directory:
        if name is None:
            subs = directory.subs()
            urls = _urls(subs)
            answering = [one for one in subs if one.name in urls or not one.database]
            name = place(answering, directory.load(urls)).name
        directory.assign(pid, name)
    click.echo(name)


@front.command()
@click.argument("pid", type=click.IntRange(0))
@pass_lcc
def withdraw(lcc: Lcc, *, pid: int) -> None:
    """Forget which sub-LCC has provider PID. What the sub-LCC has of it stays there.

    \b
    lcc front withdraw 7
    """  # noqa: D301
    with opened(lcc) as directory:
        directory.withdraw(pid)
    click.echo(f"provider {pid} is assigned to no sub-LCC now")


@front.command()
@click.argument("pid", type=click.IntRange(0))
@pass_lcc
def show(lcc: Lcc, *, pid: int) -> None:
    """Print the name of the sub-LCC that has provider PID.

    \b
    lcc front show 7
    """  # noqa: D301
    with opened(lcc) as directory:
        sub, moving = directory.sub_of(pid), directory.moving(pid)
    if moving is not None:
        printing.note(f"it moves from sub-LCC {moving.source} to {moving.target}, step: {moving.step}")
    if sub is None:
        raise FrontError(f"provider {pid} is not assigned to any sub-LCC: `lcc front assign {pid}`")
    click.echo(sub.name)


@front.command()
@pass_lcc
@never_to_be_tried_again()
def uns(lcc: Lcc) -> None:
    """Listen for providers, and pass each on to the UNS of its sub-LCC.

    It listens at LCC_UNS_ENDPOINTS, as `lcc uns` does. The sub-LCCs listen at `haproxy:tcp:` endpoints, and
    have this machine's address in LCC_UNS_PROXIES. It runs until SIGTERM or Ctrl-C; the log goes to stderr,
    or to LOG_FILE.

    \b
    lcc front uns
    LCC_UNS_ENDPOINTS=ssl:9000:privateKey=key.pem:certKey=chain.pem lcc front uns
    """  # noqa: D301
    from scrapy.utils.reactor import install_reactor

    from lcc_scrapy.cli.front_process import FrontProcess
    from lcc_scrapy.machine import logs
    from lcc_scrapy.settings import ASYNCIO_REACTOR

    config = lcc.config
    if not config.uns_listen.endpoints:
        raise ConfigurationError("LCC_UNS_ENDPOINTS is empty: say where to listen")
    logs.begin(lcc.settings, config.log_format)
    install_reactor(ASYNCIO_REACTOR)  # asyncio's own loop in any case: decision 44
    from twisted.internet import reactor  # noqa: TID251 - just installed

    FrontProcess(config, reactor, lcc.settings).run()


front.add_command(provider_add)
front.add_command(move)
front.add_command(split)
front.add_command(select)
front.add_command(follow)
front.add_command(web)
