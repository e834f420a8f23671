"""``lcccpstate``: from the lines of a whole site, forward what the LCC does not know yet (seed 000)."""

from __future__ import annotations

import sys
import tempfile
import uuid
from argparse import ArgumentTypeError, Namespace
from collections.abc import Sequence
from contextlib import closing, suppress
from dataclasses import dataclass, replace
from hashlib import sha256
from pathlib import Path
from typing import BinaryIO

from lcc_scrapy.push import pipe, unconfirmed
from lcc_scrapy.push.changes import Comparison, Counts, Known
from lcc_scrapy.push.command import Notes, Parser, Status, Stop, run
from lcc_scrapy.push.state import Damaged, Header, StateFile
from lcc_scrapy.wire.messages import Url
from lcc_scrapy.wire.writing import escape

PROG = "lcccpstate"

EXAMPLES = """\
lcccp commits the state when the LCC has accepted the set.

examples:
  file2url --find docroot -name '*.html' | lcccpstate --statefile=state.txt | lcccp …
  … | lcccpstate --statefile=state.txt --full | lcccp …          # send the whole site
  … | lcccpstate --statefile=state.txt > changes.txt             # send changes.txt by other means, then:
  lcccpstate --statefile=state.txt --commit
"""


def parser() -> Parser:
    """Return the parser of the command's options."""
    made = Parser(PROG, "Forward only URLs that are new, changed or removed since the last set.", EXAMPLES)
    add = made.add_argument
    add("--statefile", metavar="FILE", type=Path, required=True, help="the file that keeps the state")
    add("--full", action="store_true", help="forward the whole site; bind the state to this LCC anew")
    add(
        "--max-removal",
        metavar="PERCENT",
        type=_percent,
        default=50.0,
        help="refuse if a larger share of the known URLs is gone (default: 50; 100 = any)",
    )
    add("--commit", action="store_true", help="commit the pending state; read no input")
    add("--quiet", action="store_true", help="print warnings only")
    return made


def _percent(text: str) -> float:
    try:
        value = float(text[:-1] if text.endswith("%") else text)
    except ValueError:
        value = -1
    if not 0 <= value <= 100:  # noqa: PLR2004
        raise ArgumentTypeError(f"{text!r} is not a number from 0 to 100")
    return value


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command; returns its exit status."""
    return run(PROG, lambda: _main(parser().parse_args(argv)))


def _main(options: Namespace) -> int:
    notes = Notes(PROG, quiet=options.quiet)
    path = _state_path(options.statefile)
    state = StateFile(path)
    with state.locked():
        try:
            if options.commit:
                return _commit(state)
            wish = Wish(full=options.full, max_removal=options.max_removal)
            found = compare(state, sys.stdin.buffer, sys.stdout.buffer, wish, notes)
            return _told(found, notes)
        except Damaged as error:
            raise Stop(
                Status.BAD_INPUT,
                f"{path} cannot be used: {error}. Run once with --full: it sends the whole site",
            ) from None


def _state_path(given: Path) -> Path:
    path = given.absolute()
    if escape(str(path)) != escape(str(path).encode(errors="replace").decode()):
        raise Stop(Status.USAGE, "--statefile: the path has bytes that are not UTF-8")
    if not path.parent.is_dir():
        raise Stop(Status.NO_INPUT, f"{path.parent}: no such folder")
    return path


def _commit(state: StateFile) -> int:
    header = state.header(pending=True)
    if header is None:
        raise Stop(Status.BAD_INPUT, f"nothing to commit: there is no {state.pending}")
    state.commit(header)
    return Status.DONE


@dataclass(frozen=True)
class Wish:
    """How a site is compared. ``max_removal``: per cent; ``undated_is_same``: see `Comparison`."""

    full: bool = False
    max_removal: float = 50.0
    undated_is_same: bool = False


@dataclass(frozen=True)
class Compared:
    """What came of it; ``fault``: why the input is not complete, "" when it is."""

    counts: Counts
    full: bool
    fault: str


def compare(state: StateFile, lines: BinaryIO, out: BinaryIO, wish: Wish, notes: Notes) -> Compared:
    """Write the hand-over, the set and its end mark to ``out``, and the pending state to its file.

    The state must be locked. Raises `Damaged`, and `Stop` with 65 for what is no whole site.
    """
    reading = pipe.Reading(lines)
    with closing(_known(state, forced=wish.full)) as known, tempfile.TemporaryFile() as spool:
        comparison = Comparison(known, spool, undated_is_same=wish.undated_is_same)
        _take_all(reading, comparison, notes)
        comparison.finish(complete=not reading.fault)
        _guard(comparison, known, wish.max_removal)
        full = _is_full(state, reading.fault, notes, forced=wish.full)
        base = Header(id=known.header.id) if wish.full else known.header
        header = _next_header(state, base, comparison, full=full)
        state.write_pending(header, comparison.state_lines())
        hand_over = pipe.HandOver(str(state.path), header.id, full)
        _forward(out, hand_over, comparison, partial=bool(reading.fault))
    return Compared(comparison.counts, full, reading.fault)


def _told(found: Compared, notes: Notes) -> int:
    notes.tell(f"{found.counts}{'; the whole site is forwarded' if found.full else ''}")
    if not found.fault:
        return Status.DONE
    named = " but what it names" if found.counts.gone else ""
    notes.warn(
        f"input not complete ({found.fault}): updates are forwarded, nothing is taken for removed{named}"
    )
    return Status.BAD_INPUT


def _known(state: StateFile, *, forced: bool) -> Known:
    tolerated = (Damaged,) if forced else ()
    with suppress(*tolerated):
        unconfirmed.record(state)
    with suppress(*tolerated):
        return Known.load(state)
    return Known()


def _take_all(reading: pipe.Reading, comparison: Comparison, notes: Notes) -> None:
    progress = notes.progress()
    for line in reading:
        if isinstance(line, pipe.HandOver):
            raise Stop(Status.BAD_INPUT, "the input comes from another lcccpstate; nothing forwarded")
        if isinstance(line, Url) and not (line.attributes.get("curl") and line.attributes.get("mimetype")):
            raise Stop(
                Status.BAD_INPUT, f"line {reading.number}: <url> without curl or mimetype; nothing forwarded"
            )
        comparison.take(line)
        progress.show(f"{reading.entries:,} URLs: {comparison.counts}")
    progress.clear()
    if comparison.counts.twice:
        notes.warn(f"{comparison.counts.twice:,} URLs were given twice; the first one counts")


def _guard(comparison: Comparison, known: Known, percent: float) -> None:
    if comparison.too_many_removals(percent):
        raise Stop(
            Status.BAD_INPUT,
            f"{comparison.counts.gone:,} of {known.count:,} known URLs would be removed; is the site "
            "mounted and whole? Nothing forwarded, state unchanged. If it is right: --max-removal 100",
        )


def _is_full(state: StateFile, fault: str, notes: Notes, *, forced: bool) -> bool:
    """Decide whether the whole site goes out; an incomplete input cannot stand for it."""
    if forced and fault:
        raise Stop(Status.BAD_INPUT, f"input not complete ({fault}): no full set; nothing forwarded")
    wish = state.wish()
    if wish and not fault:
        notes.tell(f"the LCC asked for a full set ({wish})")
    return forced or bool(wish and not fault)


def _next_header(state: StateFile, base: Header, comparison: Comparison, *, full: bool) -> Header:
    """Name the next state and its set: a set whose acceptance was never learned keeps its id."""
    digest = sha256(b"full" if full else b"partial")
    for line in comparison.set_lines(full=full):
        digest.update(line)
    header = replace(base, id=str(uuid.uuid4()), base=base.id, set=digest.hexdigest())
    try:
        pending = state.header(pending=True)
    except Damaged:
        return header
    if pending and (pending.base, pending.set) == (header.base, header.set):
        return replace(header, id=pending.id)
    return header


def _forward(out: BinaryIO, hand_over: pipe.HandOver, comparison: Comparison, *, partial: bool) -> None:
    count = 0
    out.write(pipe.write(hand_over))
    for line in comparison.set_lines(full=hand_over.full):
        out.write(line)
        count += 1
    out.write(pipe.write(pipe.End(count, partial)))
    out.flush()


if __name__ == "__main__":
    sys.exit(main())
