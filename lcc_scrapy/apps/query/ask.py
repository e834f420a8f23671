"""``lcc ask``: what changed, asked of an LCC elsewhere over its query socket."""

import hashlib
import json
import ssl
import sys
from dataclasses import replace
from pathlib import Path
from typing import IO, Any

import click

from lcc_scrapy.apps.query.client import Unanswered, connect
from lcc_scrapy.apps.query.client import ask as asking
from lcc_scrapy.apps.query.wire.messages import (
    Content,
    ContentEnds,
    Missing,
    Query,
    Reached,
    ResultBegins,
    ResultEnds,
    Row,
    Said,
    Wanted,
)
from lcc_scrapy.cli.context import CannotGoOn, Failure, Partial
from lcc_scrapy.cli.feed_options import Place, filters, place, places
from lcc_scrapy.domain.cursor import BadCursor, Position
from lcc_scrapy.domain.front_cursor import FrontPosition
from lcc_scrapy.domain.selection import Selection

_NUMBERS = {
    "seq", "pid", "mtime", "len", "fetched_time", "fetched_machineid", "fetched_fileid", "fetched_len",
    "confirmed_time", "removed_time",
}  # fmt: skip


@click.command()
@click.argument("address", metavar="HOST:PORT|SOCKET")
@places
@filters
@click.option("--limit", type=click.IntRange(1), metavar="N", help="Stop after N changes.")
@click.option(
    "--wait",
    type=click.IntRange(0),
    default=0,
    metavar="SECONDS",
    help="When nothing changed, wait so long for a change.",
)
@click.option(
    "--content",
    "folder",
    type=click.Path(file_okay=False, path_type=Path),
    metavar="FOLDER",
    help="Fetch contents too, into files of FOLDER called after their docids.",
)
@click.option(
    "--token-file",
    type=click.File("r", encoding="ascii"),
    metavar="FILE",
    help="A file whose first line is the token; '-' is stdin.",
)
@click.option("--tls", is_flag=True, help="Speak TLS, and go on only with a certificate that is trusted.")
@click.option(
    "--ca",
    type=click.Path(exists=True, dir_okay=False),
    metavar="FILE",
    help="With --tls: trust this certificate, or the ones it has signed, instead of the system's.",
)
@click.option(
    "--anew",
    metavar="NAME",
    multiple=True,
    help="Of a front: read sub-LCC NAME from its start, whatever the cursor says; may be repeated.",
)
def ask(
    *,
    address: str,
    cursor: str | None,
    cursor_file: Path | None,
    selection: Selection,
    limit: int | None,
    wait: int,
    folder: Path | None,
    token_file: IO[str] | None,
    tls: bool,
    ca: str | None,
    anew: tuple[str, ...],
) -> None:
    """Ask an LCC elsewhere what changed; print JSON lines.

    The other LCC runs `lcc query`, or is a front that runs `lcc front query`. This command needs no data
    directory.

    The cursor for the next time goes to stderr. Exit status 3: the cursor cannot be followed there; start
    over without one, or give the sub-LCCs that are named with --anew. Exit status 4: sub-LCCs of a front did
    not answer; their changes come the next time.

    \b
    lcc ask lcc.example.org:9001 --tls --token-file token --cursor-file position
    lcc ask /run/lcc/query --mimetype 'text/*' --content pages
    """  # noqa: D301
    query = Query(
        since_time=selection.since,
        limit=limit or 0,
        wait=wait,
        content=Wanted.INSIDE if folder else Wanted.NONE,
        token=token_file.readline().strip() if token_file else "",
        providers=selection.providers,
        mimetypes=selection.mimetypes,
        subtypes=selection.subtypes,
        url_prefixes=selection.url_prefixes,
        anew=anew,
    )
    context = ssl.create_default_context(cafile=ca) if tls else None
    if ca and not tls:
        raise click.UsageError("--ca goes with --tls")
    with place(cursor, cursor_file, parse=_cursor) as where, connect(address, context) as wire:
        since = str(where.since) if where.since else ""
        listener = _Listener(where, folder)
        for said in asking(wire, replace(query, since=since)):
            listener.hear(said)
    click.echo(f"cursor: {listener.position}", err=True)
    _end(listener.missing)


def _cursor(text: str) -> Position | FrontPosition:
    """Read a cursor of an LCC, or of a front."""
    try:
        return FrontPosition.parse(text)
    except BadCursor:
        return Position.parse(text)


def _end(missing: list[Missing]) -> None:
    """End with the status that tells what of a front is missing."""
    if over := [one.name for one in missing if one.start_over]:
        again = " ".join(f"--anew {name}" for name in over)
        raise CannotGoOn(
            f"sub-LCC {', '.join(over)} cannot go on from the cursor (the others go on: {again})"
        )
    if missing:
        names = ", ".join(one.name for one in missing)
        raise Partial(f"sub-LCC {names} did not answer; what is missing comes with the next run")


class _Listener:
    """Prints rows and writes contents; keeps how far it came."""

    def __init__(self, where: Place[Position | FrontPosition], folder: Path | None) -> None:
        self.position = ""
        self.missing: list[Missing] = []
        self._where = where
        self._folder = folder
        self._row: dict[str, Any] = {}
        self._file: IO[bytes] | None = None
        self._digest = hashlib.sha256()
        if folder is not None:
            folder.mkdir(parents=True, exist_ok=True)

    def hear(self, said: Said) -> None:
        """Take what is said; raises ``Unanswered`` for a row that is none."""
        try:
            self._hear(said)
        except (KeyError, ValueError) as error:
            raise Unanswered(f"what answers there is no LCC: a row with {str(error)[:100]}") from None

    def _hear(self, said: Said) -> None:
        match said:
            case ResultBegins():
                self._where.begin(_cursor(said.position))
            case Row():
                self._begin(said)
            case Content(data):
                self._take(data)
            case ContentEnds():
                self._complete()
            case Missing():
                self.missing.append(said)
            case Reached(position) | ResultEnds(position):
                self.position = position
                sys.stdout.flush()
                self._where.keep(_cursor(position))

    def _begin(self, row: Row) -> None:
        given = {name: int(value) if name in _NUMBERS else value for name, value in row.values.items()}
        self._row = {"op": row.op, **given, **({"content": row.content} if row.content else {})}
        if row.content == Wanted.INSIDE and self._folder is not None:
            self._digest = hashlib.sha256()
            self._file = self._part().open("wb")
        else:
            self._print()

    def _part(self) -> Path:
        """Name a file after the docid, which is made of hex digits if the LCC is one."""
        docid = f"{int(self._row['docid'], 16):032x}"
        assert self._folder is not None
        self._row["content"] = str(self._folder / docid)
        return self._folder / f"{docid}.part"

    def _take(self, data: bytes) -> None:
        self._digest.update(data)
        if self._file is not None:
            self._file.write(data)

    def _complete(self) -> None:
        if self._file is None:
            return
        self._file.close()
        part, self._file = Path(self._file.name), None
        if self._digest.hexdigest() != self._row.get("sha256"):
            part.unlink()
            raise Failure(f"the content of document {self._row['docid']} did not arrive as it was stored")
        part.replace(part.with_suffix(""))
        self._print()

    def _print(self) -> None:
        line = json.dumps(self._row, ensure_ascii=False) + "\n"
        sys.stdout.buffer.write(line.encode("utf-8", "backslashreplace"))
