"""``lcc directives``: requests for URLs, with how far to go from there and who wants to know."""

import shutil
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, BinaryIO

import click

from lcc_scrapy.cli import printing
from lcc_scrapy.cli.context import Failure, Lcc, pass_lcc

if TYPE_CHECKING:
    from lcc_scrapy.db.sql.store import SqlStore
    from lcc_scrapy.domain.directives import Directive, Territories

BATCH = 1000
"""Directives, or owners in them, that are taken in one transaction."""

_SHOWN = 20
"""Wrong directives that are told one by one."""

_FORMS = ("text", "xml", "jsonl")


@click.command()
@click.argument("file", type=click.File("rb"))
@click.option(
    "--provider",
    "pid",
    type=click.IntRange(1),
    metavar="PID",
    help="Only URLs in this provider's roots.",
)
@click.option(
    "--format",
    "form",
    type=click.Choice(_FORMS),
    help="Format of FILE. Default: recognised from its content.",
)
@click.option("--withdraw", is_flag=True, help="Take back what FILE asks for, whatever the depth.")
@click.option("--skip-bad", is_flag=True, help="Skip bad lines and take the rest.")
@printing.json_option
@pass_lcc
def directives(
    lcc: Lcc,
    file: BinaryIO,
    pid: int | None,
    form: str | None,
    *,
    withdraw: bool,
    skip_bad: bool,
    as_json: bool,
) -> None:
    """Ask for the URLs that FILE names.

    Each line is [link, parent link, depth, {owners}]; FILE may be - for stdin.

    What is not in the LCC yet waits to be fetched; `scrapy crawl lcc_spider` follows
    links from there. If anything in FILE is wrong, nothing of it is taken.

    With --withdraw, the owners in FILE do not ask for these URLs any more. What they
    reach from their other directives and URDs stays theirs.

    \b
    lcc directives requests
    echo '[http://www.example.org/news.html, , 1, {anna, bert}]' | lcc directives -
    lcc directives requests.xml --provider 7 --skip-bad --json
    lcc directives requests --withdraw
    """  # noqa: D301
    from lcc_scrapy.spidering.directives import territories

    what = "withdrawing" if withdraw else "taking"
    with lcc.store() as store, _whole(file) as whole, printing.progress(what) as shown:
        source = Source(whole, form or _looks_like(whole), territories(store, pid))
        count, bad = _check(source)
        if bad and not skip_bad:
            raise Failure(
                f"{bad} of {count} directives are wrong: none was taken (--skip-bad takes the rest)"
            )
        taking = Withdrawing(lcc, store) if withdraw else Taking(lcc, store)
        for one in source.good():
            taking.add(*one)
            shown(taking.taken, count - bad)
        taking.flush()
    if as_json:
        printing.as_json({"directives": taking.taken, **taking.done(), "wrong": bad})
    else:
        click.echo(taking.told())


class Source:
    """The directives of a file, which may be read several times, each with its provider."""

    def __init__(self, file: BinaryIO, form: str, territories: "Territories") -> None:
        self._file = file
        self._form = form
        self._territories = territories
        self._start = file.tell()

    def read(self) -> "Iterator[tuple[int, int, Directive | str]]":
        """Yield line, provider and directive, or line, 0 and what is wrong."""
        from lcc_scrapy.wire.directives import READERS, Unreadable

        self._file.seek(self._start)
        try:
            for number, said in READERS[self._form](self._file):
                yield number, *self._placed(said)
        except Unreadable as error:
            raise Failure(f"{printing.plain(error)}; nothing was taken") from None

    def _placed(self, said: "Directive | str") -> "tuple[int, Directive | str]":
        if isinstance(said, str):
            return 0, said
        try:
            return self._territories.whose(said.link), said
        except ValueError as error:
            return 0, str(error)

    def good(self) -> "Iterator[tuple[int, Directive]]":
        """Yield provider and directive of those that are right."""
        return ((pid, said) for _, pid, said in self.read() if not isinstance(said, str))


class Taking:
    """Takes directives in batches, one transaction for each provider in a batch."""

    def __init__(self, lcc: Lcc, store: "SqlStore") -> None:
        self._config = lcc.config
        self._store = store
        self._batch: dict[int, list[Directive]] = {}
        self._size = 0
        self.taken = 0
        self.queued = 0

    def done(self) -> dict[str, int]:
        """Return what became of them, for JSON."""
        return {"queued": self.queued}

    def told(self) -> str:
        """Return what became of them, in words."""
        return f"{self.taken} directives taken, {self.queued} URLs to be fetched for them"

    def add(self, pid: int, one: "Directive") -> None:
        """Take one, at once or with others."""
        self._batch.setdefault(pid, []).append(one)
        self._size += max(1, len(one.owners))
        if self._size >= BATCH:
            self.flush()

    def flush(self) -> None:
        """Take those that are left."""
        from lcc_scrapy.spidering.directives import Directives, NotTaken
        from lcc_scrapy.spidering.submitting import Spidering, Terms

        terms = Terms(queue_max=self._config.queue_max)
        for pid, asked in self._batch.items():
            spidering = Spidering(self._store, pid, terms, self._config.policy)
            while spidering.locate():
                pass
            try:
                self.queued += Directives(spidering).ask(asked, int(time.time()))
            except NotTaken as error:
                raise Failure(f"{error}; {self.taken} were taken, FILE may be given again") from error
            self.taken += len(asked)
        self._batch, self._size = {}, 0


class Withdrawing(Taking):
    """Takes directives back, and then what their owners do not reach any more."""

    def __init__(self, lcc: Lcc, store: "SqlStore") -> None:
        super().__init__(lcc, store)
        self.ended = 0

    def done(self) -> dict[str, int]:
        """Return what became of them, for JSON."""
        return {"withdrawn": self.queued, "ended": self.ended}

    def told(self) -> str:
        """Return what became of them, in words."""
        return f"{self.queued} requests of owners withdrawn, {self.ended} interests in URLs ended"

    def flush(self) -> None:
        """Take those back that are left, and carry this out; what was noted before a kill, too."""
        from lcc_scrapy.spidering.directives import Directives
        from lcc_scrapy.spidering.submitting import Spidering, Terms
        from lcc_scrapy.spidering.withdrawing import carry_out

        for pid, asked in self._batch.items():
            spidering = Spidering(self._store, pid, Terms(), self._config.policy)
            self.queued += Directives(spidering).withdraw(asked)
            self.taken += len(asked)
        self._batch, self._size = {}, 0
        self.ended += sum(carry_out(self._store))


def _check(source: Source) -> tuple[int, int]:
    """Tell what is wrong; returns how many directives there are, and how many of them are wrong."""
    count = bad = 0
    for number, _, said in source.read():
        count += 1
        if isinstance(said, str):
            bad += 1
            if bad <= _SHOWN:
                click.echo(f"lcc: line {number}: {printing.plain(said)}", err=True)
    if bad > _SHOWN:
        click.echo(f"lcc: and {bad - _SHOWN} more", err=True)
    return count, bad


@contextmanager
def _whole(file: BinaryIO) -> Iterator[BinaryIO]:
    """Return what can be read twice: the file itself, or a copy of a pipe."""
    if file.seekable():
        yield file
        return
    with tempfile.TemporaryFile() as copy:
        shutil.copyfileobj(file, copy)
        copy.seek(0)
        yield copy


def _looks_like(file: BinaryIO) -> str:
    start = file.tell()
    first = file.read(64).removeprefix(b"\xef\xbb\xbf").lstrip()[:1]
    file.seek(start)
    return {b"<": "xml", b"\xff": "xml", b"\xfe": "xml", b"{": "jsonl"}.get(first, "text")
