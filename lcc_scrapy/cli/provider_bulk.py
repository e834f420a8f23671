"""``lcc provider add --from FILE``, and that of a front: many providers at once, from CSV or JSON lines."""

import csv
import io
import json
import os
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import click

from lcc_scrapy.cli import password, printing
from lcc_scrapy.cli.context import Failure, Lcc
from lcc_scrapy.cli.provider_options import columns, is_fetched_from, roots
from lcc_scrapy.domain.providers import Provider

if TYPE_CHECKING:
    from lcc_scrapy.db.tx import Store

_SHOWN = 20
"""Bad lines that are told."""
BATCH = 500
"""Providers that are added at a time, to each LCC in one transaction."""

_PID = click.IntRange(1, 10**18 - 1)
_OWN = ("pid", "root", "password")
Options = Mapping[str, click.Parameter]


class BadLine(Exception):
    """A line from which no provider can be made; says why."""


@dataclass(frozen=True, slots=True)
class Line:
    """A provider to be added. An empty password is to be made up."""

    number: int
    provider: Provider
    roots: list[str]
    password: str = field(repr=False)


@dataclass(frozen=True, slots=True)
class Bulk:
    """What was asked for. ``common`` are columns of providers whose lines say nothing else."""

    file: str
    passwords_to: Path | None
    skip_existing: bool
    dry_run: bool
    as_json: bool
    common: Mapping[str, Any]


class Adding(Protocol):
    """Where the providers of a file go: into one LCC, or into the sub-LCCs of a front."""

    def used(self, pids: Sequence[int]) -> Mapping[int, str]:
        """Return the pids among these that cannot be given to a new provider, with the reason."""

    def places(self, pids: Sequence[int]) -> Mapping[str, int] | None:
        """Choose where new providers go; return how many each place gets, None = there is only one."""

    def add(self, fresh: Sequence[tuple[Provider, Sequence[str]]]) -> None:
        """Add a batch of providers with their roots; raises ``LccError`` when a pid is or was in use."""


@dataclass(frozen=True, slots=True)
class OneLcc:
    """The ``Adding`` of one LCC."""

    store: "Store"

    def used(self, pids: Sequence[int]) -> Mapping[int, str]:
        """Return the pids among these that cannot be given to a new provider, with the reason."""
        from lcc_scrapy.providers.registration import used_pids

        return used_pids(self.store, pids)

    def places(self, _pids: Sequence[int]) -> None:
        """Choose nothing."""

    def add(self, fresh: Sequence[tuple[Provider, Sequence[str]]]) -> None:
        """Add a batch in one transaction."""
        from lcc_scrapy.providers.registration import add_many

        add_many(self.store, fresh)


@contextmanager
def one_lcc(lcc: Lcc) -> Iterator[OneLcc]:
    """Open the LCC of the data directory."""
    with lcc.store() as store:
        yield OneLcc(store)


def add_from(
    lcc: Lcc, bulk: Bulk, options: Options, opened: Callable[[], AbstractContextManager[Adding]]
) -> None:
    """Add the providers of a file, a batch at a time; nobody when a line is bad."""
    lines, bad = _read(lcc, bulk, options)
    with opened() as adding:
        used = adding.used([line.provider.pid for line in lines])
        there = [(line.number, used[line.provider.pid]) for line in lines if line.provider.pid in used]
        fresh = [line for line in lines if line.provider.pid not in used]
        if not bulk.skip_existing:
            bad += there
        if bad:
            _refuse(bulk, sorted(bad))
        places = adding.places([line.provider.pid for line in fresh])
        if not bulk.dry_run:
            _add(adding, bulk, fresh)
    _warn_of_unreachable(fresh)
    _report(bulk, len(fresh), len(there), places)


# --- reading -----------------------------------------------------------------------------------------


def _read(lcc: Lcc, bulk: Bulk, options: Options) -> tuple[list[Line], list[tuple[int, str]]]:
    lines: list[Line] = []
    bad: list[tuple[int, str]] = []
    first_of: dict[int, int] = {}
    context = click.get_current_context()
    for number, facts in _rows(_text(bulk.file)):
        try:
            line = _line(number, facts, lambda given: _columns(lcc, context, options, given), bulk)
        except BadLine as error:
            bad.append((number, str(error)))
            continue
        first = first_of.setdefault(line.provider.pid, number)
        if first == number:
            lines.append(line)
        else:
            bad.append((number, f"pid {line.provider.pid} stands in line {first} already"))
    if not lines and not bad:
        raise Failure(f"{bulk.file} names no provider")
    return lines, bad


def _text(file: str) -> str:
    try:
        raw = sys.stdin.buffer.read() if file == "-" else Path(file).read_bytes()
        return raw.decode("utf-8-sig")
    except OSError as error:
        raise Failure(f"cannot read {file}: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise Failure(f"cannot read {file}: not UTF-8") from error


def _rows(text: str) -> Iterator[tuple[int, dict[str, Any] | str]]:
    """Yield what each line says, or why it says nothing, with its number; blank lines are left out."""
    if text.lstrip().startswith("{"):
        for number, line in enumerate(text.split("\n"), 1):
            if line.strip():
                yield number, _of_json(line)
        return
    reader = csv.reader(io.StringIO(text, newline=""), strict=True)
    try:
        header = [name.strip() for name in next(reader, [])]
        begin = reader.line_num + 1
        for cells in reader:
            if cells:
                yield begin, _of_csv(header, cells)
            begin = reader.line_num + 1
    except csv.Error as error:
        yield reader.line_num, str(error)


def _of_json(line: str) -> dict[str, Any] | str:
    try:
        found = json.loads(line)
    except (ValueError, RecursionError):
        return "not JSON"
    return found if isinstance(found, dict) else "not a JSON object"


def _of_csv(header: Sequence[str], cells: Sequence[str]) -> dict[str, Any] | str:
    if len(cells) != len(header):
        return f"{len(cells)} columns, and {len(header)} in the first line"
    return {name: cell for name, cell in zip(header, cells, strict=True) if cell.strip()}


def _line(
    number: int, said: dict[str, Any] | str, checked: Callable[[dict[str, str]], dict[str, Any]], bulk: Bulk
) -> Line:
    """Make a provider of a line; raises ``BadLine``."""
    if isinstance(said, str):
        raise BadLine(said)
    facts = {name.replace("-", "_"): value for name, value in said.items() if value is not None}
    try:
        pid = _PID.convert(facts.pop("pid", ""), None, None)
        kept = roots(_several(facts.pop("root", "")))
        secret = _password(facts.pop("password", ""), bulk)
        values = checked({name: _word(name, value) for name, value in facts.items()})
    except click.ClickException as error:
        raise BadLine(error.format_message()) from None
    if not kept:
        raise BadLine("no root")
    return Line(
        number, Provider(pid, "", created=int(time.time()), **{**bulk.common, **values}), kept, secret
    )


def _several(value: object) -> tuple[str, ...]:
    return tuple(map(str, value)) if isinstance(value, list) else tuple(str(value).split())


def _word(name: str, value: object) -> str:
    """Write a value of JSON as it would stand on a command line."""
    if isinstance(value, dict | list):
        raise BadLine(f"{name}: expected a text, a number or true or false")
    return str(value)


def _password(value: object, bulk: Bulk) -> str:
    if value == "" and bulk.passwords_to is None:
        raise BadLine("no password, and no --passwords-to where one that is made up could be written")
    return password.checked(str(value), "this line") if value != "" else ""


def _columns(lcc: Lcc, context: click.Context, options: Options, given: dict[str, str]) -> dict[str, Any]:
    """Check values as those of options of the same names are."""
    unknown = given.keys() - options.keys()
    if unknown:
        raise BadLine(f"{min(unknown)}: there is no such column; those are {', '.join((*_OWN, *options))}")
    return columns({name: _value(context, options[name], text) for name, text in given.items()}, lcc.config)


def _value(context: click.Context, option: click.Parameter, text: str) -> Any:
    try:
        value = option.type.convert(text, option, context)
        return option.callback(context, option, value) if option.callback else value
    except click.BadParameter as error:
        raise BadLine(f"{option.name}: {error.message}") from None


# --- adding ------------------------------------------------------------------------------------------


def _add(adding: Adding, bulk: Bulk, lines: Sequence[Line]) -> None:
    """Add providers, a batch at a time; their passwords are on disk before the first of them."""
    from lcc_scrapy.login.passwords import made_up

    given = {line.number: line.password or made_up() for line in lines}
    if bulk.passwords_to is not None:
        _write_passwords(bulk.passwords_to, [line for line in lines if not line.password], given)
    with (
        printing.progress("adding", len(lines)) as progress,
        ThreadPoolExecutor(max_workers=os.cpu_count() or 1) as threads,
    ):
        for start in range(0, len(lines), BATCH):
            batch = lines[start : start + BATCH]
            hashes = threads.map(_hash, ((line, given[line.number]) for line in batch))
            with_hash = [
                replace(line.provider, password=one) for line, one in zip(batch, hashes, strict=True)
            ]
            adding.add([(one, line.roots) for one, line in zip(with_hash, batch, strict=True)])
            progress(start + len(batch))


def _hash(one: tuple[Line, str]) -> str:
    """Return the hash of a password: a slow one of what somebody thought of."""
    from lcc_scrapy.login.passwords import hash_made_up, hash_password

    line, secret = one
    return hash_password(secret) if line.password else hash_made_up(secret)


def _write_passwords(file: Path, lines: Sequence[Line], given: Mapping[int, str]) -> None:
    text = "pid,password\n" + "".join(f"{line.provider.pid},{given[line.number]}\n" for line in lines)
    try:
        descriptor = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    except OSError as error:
        raise Failure(f"cannot make {file}, which must not be there yet: {error.strerror}") from error
    with open(descriptor, "w", encoding="ascii") as out:  # noqa: PTH123 - of a descriptor
        out.write(text)
        out.flush()
        os.fsync(descriptor)


# --- telling -----------------------------------------------------------------------------------------


def _refuse(bulk: Bulk, bad: Sequence[tuple[int, str]]) -> None:
    if bulk.as_json:
        told = [{"line": number, "reason": reason} for number, reason in bad[:_SHOWN]]
        printing.as_json({"added": 0, "skipped": 0, "bad": len(bad), "errors": told})
    for number, reason in bad[:_SHOWN]:
        printing.note(f"{bulk.file}, line {number}: {reason}")
    if len(bad) > _SHOWN:
        printing.note(f"and {len(bad) - _SHOWN} more bad lines")
    raise Failure(f"{len(bad)} bad lines in {bulk.file}: no provider was added")


def _report(bulk: Bulk, added: int, skipped: int, places: Mapping[str, int] | None) -> None:
    if bulk.as_json:
        facts = {"added": added, "skipped": skipped, "bad": 0, "errors": [], "dry_run": bulk.dry_run}
        printing.as_json(facts if places is None else facts | {"subs": places})
        return
    what = "would be added" if bulk.dry_run else "added"
    where = "".join(f", {count} in sub-LCC {name}" for name, count in sorted((places or {}).items()))
    click.echo(f"{added} providers {what}{where}" + (f", {skipped} are there already" if skipped else ""))


def _warn_of_unreachable(lines: Sequence[Line]) -> None:
    """Say how many roots nothing could be fetched from because their addresses are private."""
    private = [root for line in lines if not line.provider.allowprivate for root in line.roots]
    count = sum(not is_fetched_from(root) for root in private)
    if count:
        printing.note(
            f"{count} roots have private addresses: nothing is fetched from them without allow-private"
        )
