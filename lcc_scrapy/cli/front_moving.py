"""``lcc front move`` and ``lcc front split``: providers go from one sub-LCC to another."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import click

from lcc_scrapy.cli import printing
from lcc_scrapy.cli.context import Lcc, pass_lcc
from lcc_scrapy.domain.errors import ConfigurationError
from lcc_scrapy.domain.front import FrontError, Moving, SubLcc, next_to_move

if TYPE_CHECKING:
    from lcc_scrapy.db.sql.store import SqlStore
    from lcc_scrapy.feed.content import Content
    from lcc_scrapy.front.directory import Directory
    from lcc_scrapy.front.moved_documents import Files
    from lcc_scrapy.front.moving import Mover


_CONTENT = click.option(
    "--content", metavar="DIR",
    help="The LCC_CONTENT_DIR of the sub-LCC that has it, mounted here, or its LCC_CONTENT_URL.",
)  # fmt: skip
_TOKEN_FILE = click.option(
    "--token-file", type=click.Path(exists=True, dir_okay=False, path_type=Path), metavar="FILE",
    help="A token (scope `files`) of that sub-LCC, whose machines run `lcc files`.",
)  # fmt: skip


@click.command()
@click.argument("pid", type=click.IntRange(0))
@click.option("--to", "name", metavar="NAME", required=True, help="The sub-LCC that gets it.")
@_CONTENT
@_TOKEN_FILE
@click.option("--give-up", is_flag=True, help="Let it stay, if nothing was copied yet.")
@pass_lcc
def move(
    lcc: Lcc, *, pid: int, name: str, content: str | None, token_file: Path | None, give_up: bool
) -> None:
    """Move provider PID to sub-LCC NAME, with documents, files, queue, errors, versions and counts.

    Run it on a crawl machine of NAME, with the settings of that sub-LCC and LCC_FRONT_DATABASE_URL. Both
    sub-LCCs need a --database (`lcc front set`). Meanwhile the provider gets 103 (try again later), and
    nothing is fetched from it. After a kill, run the same command again: it goes on where it was.

    \b
    lcc front move 7 --to b --content /mnt/lcc-a/content
    lcc front move 7 --to b --token-file files-token-of-a
    lcc front move 7 --to b --give-up
    """  # noqa: D301
    from lcc_scrapy.cli.front import opened

    with opened(lcc) as directory:
        begun, source = _begun(directory, pid, name)
        if source == name:
            click.echo(f"provider {pid} is in sub-LCC {name} already")
        elif give_up:
            _give_up(directory, begun, pid, source)
        else:
            with _mover(lcc, directory, source, name, (content, token_file)) as mover:
                mover.run(begun or mover.begin(pid, source, name))
            click.echo(f"provider {pid} is in sub-LCC {name} now")


@click.command()
@click.argument("source", metavar="NAME")
@click.option("--to", "name", metavar="NAME", required=True, help="The sub-LCC that gets them.")
@click.option("--dry-run", is_flag=True, help="Only say which would move.")
@_CONTENT
@_TOKEN_FILE
@pass_lcc
def split(
    lcc: Lcc, *, source: str, name: str, dry_run: bool, content: str | None, token_file: Path | None
) -> None:
    """Move providers of sub-LCC NAME to another one, until both have as many URLs as the other.

    Each time the largest one moves that does not make the other fuller. Providers that share a turn stay.
    All that `lcc front move` needs is needed here. After a kill, run the same command again.

    \b
    lcc front split a --to b --dry-run --content /mnt/lcc-a/content
    lcc front split a --to b --content /mnt/lcc-a/content
    """  # noqa: D301
    from lcc_scrapy.cli.front import opened

    with opened(lcc) as directory:
        _check_databases(directory, source, name)
        with _mover(lcc, directory, source, name, (content, token_file)) as mover:
            for begun in directory.all_moving(source, name):
                _say(begun.pid, name, dry_run=dry_run)
                if not dry_run:
                    mover.run(begun)
            sizes, target = mover.sizes()
            while (pid := next_to_move(sizes, target)) is not None:
                _say(pid, name, dry_run=dry_run)
                if not dry_run:
                    mover.run(mover.begin(pid, source, name))
                target += sizes.pop(pid)
    printing.note(f"sub-LCC {source} keeps {sum(sizes.values())} URLs, {name} has {target}")


def _say(pid: int, name: str, *, dry_run: bool) -> None:
    click.echo(f"provider {pid} {'would move' if dry_run else 'moves'} to sub-LCC {name}")


def _give_up(directory: "Directory", begun: Moving | None, pid: int, source: str) -> None:
    from lcc_scrapy.front import moving

    if begun is None:
        raise FrontError(f"provider {pid} does not move")
    with _opened(directory.sub(source)) as store:
        moving.give_up(directory, store, begun)
    click.echo(f"provider {pid} stays in sub-LCC {source}")


@contextmanager
def _mover(
    lcc: Lcc,
    directory: "Directory",
    source: str,
    name: str,
    reached: tuple[str | None, Path | None],
) -> Iterator["Mover"]:
    """Give what moves providers; ``reached`` are the options that say how the source's files are."""
    from lcc_scrapy.front.moved_rows import tables_of_apps
    from lcc_scrapy.front.moving import Mover
    from lcc_scrapy.ops.copying import refuse_absent_apps

    _check_target(lcc, directory.sub(name))
    with _opened(directory.sub(source)) as store:
        refuse_absent_apps(store, lcc.config.apps)
        contents = _contents(lcc, store, *reached)
        with lcc.store() as target, _files(lcc, target) as files:
            grace = int(lcc.config.policy.file_grace)
            tables, hooks = tables_of_apps(lcc.config.apps), list(lcc.config.apps.every("provider"))
            yield Mover(directory, store, target, contents, files, grace, tables, hooks, printing.note)


def _begun(directory: "Directory", pid: int, name: str) -> tuple[Moving | None, str]:
    """Return the move that was begun, if there is one, and the sub-LCC that the provider comes from."""
    target, begun = directory.sub(name), directory.moving(pid)
    if begun is not None:
        if begun.target != name:
            raise FrontError(f"provider {pid} moves to sub-LCC {begun.target}: say --to {begun.target}")
        return begun, begun.source
    source = directory.sub_of(pid)
    if source is None:
        raise FrontError(f"provider {pid} is not assigned to any sub-LCC: `lcc front assign {pid}`")
    _check_databases(directory, source.name, target.name)
    return None, source.name


def _check_databases(directory: "Directory", *names: str) -> None:
    for one in map(directory.sub, names):
        if not one.database:
            raise FrontError(
                f"sub-LCC {one.name}: set its database, `lcc front set {one.name} --database URL`"
            )


def _check_target(lcc: Lcc, target: SubLcc) -> None:
    if lcc.home.lcc_id != target.lccid:
        raise ConfigurationError(
            f"this is LCC {lcc.home.lcc_id}, sub-LCC {target.name} is {target.lccid}: run it there"
        )


@contextmanager
def _opened(source: SubLcc) -> Iterator["SqlStore"]:
    from lcc_scrapy.db import schema
    from lcc_scrapy.db.sql.store import SqlStore

    if schema.is_missing_file(source.database) or schema.pending(source.database):
        raise ConfigurationError(
            f"sub-LCC {source.name}: there is no LCC in its --database, or it needs `lcc db upgrade`"
        )
    store = SqlStore(source.database)
    try:
        yield store
    finally:
        store.close()


def _contents(lcc: Lcc, source: "SqlStore", place: str | None, token_file: Path | None) -> "Content":
    """Return what reads the contents of the source: at a place, and else from its machines."""
    from lcc_scrapy.content.store import content_store, factory_of
    from lcc_scrapy.feed.content import LocalContent, StoredContent
    from lcc_scrapy.feed.remote_content import OtherMachines
    from lcc_scrapy.ops.machines import MachineAddresses

    if place and "://" in place:
        return StoredContent(content_store(place, Path(), 0, factory_of(place, lcc.config.apps)))
    if place and not Path(place).is_dir():
        raise click.BadParameter(f"{place!r} is no folder", param_hint="--content")
    if place is None and token_file is None:
        raise click.UsageError("say how its files are reached: --content DIR or --token-file FILE")
    others = None
    if token_file is not None:
        token = token_file.read_text(encoding="ascii").strip()
        others = OtherMachines(MachineAddresses(source, lcc.config.files_machines), token)
    return LocalContent(Path(place or "/nonexistent"), others)


@contextmanager
def _files(lcc: Lcc, target: "SqlStore") -> Iterator["Files"]:
    """Be a worker of this machine for a while: what a kill leaves behind is removed as that of a crawl."""
    from lcc_scrapy.app.opening import machine_number
    from lcc_scrapy.cache.file_ids import FileIds
    from lcc_scrapy.content.files import ContentFiles
    from lcc_scrapy.front.moved_documents import Files
    from lcc_scrapy.machine.data_directory import WorkerSlot

    machineid = machine_number(lcc.config, target)
    slot = WorkerSlot(lcc.config.data_dir, machineid)
    unfinished = ContentFiles(lcc.config.content_dir, machineid, slot.number)
    unfinished.prepare()
    ids = FileIds(target, machineid, slot.owner)
    try:
        yield Files(lcc.content(target), unfinished, ids)
        ids.release()
    finally:
        slot.release()
