"""``lcc urd``: who wants to know what of which pages."""

import codecs
import io
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, replace
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, cast

import click

from lcc_scrapy.cli import printing
from lcc_scrapy.cli.context import Lcc, LccGroup, pass_lcc
from lcc_scrapy.cli.urd_due import due
from lcc_scrapy.domain.directives import DEPTH_MAX
from lcc_scrapy.domain.urd_rules import TIME_MAX
from lcc_scrapy.domain.urds import LEVELS, Keyword, Method, Process, Urd

if TYPE_CHECKING:
    from lcc_scrapy.annotation.interests import Interests

_IMPORTS = ("jsonl", "xml")
_EXPORTS = (*_IMPORTS, "opensearch")
_PAGE = 1000
_MS = 1000
_FIRST = 64
_BITE = 64 * 1024
_WORDS_SHOWN = 5
_COLUMNS = (
    "id", "owner", "uri", "timing", "depth", "urgency", "threshold", "process", "looks for", "refused",
)  # fmt: skip
Option = Callable[[Callable[..., Any]], Callable[..., Any]]


@click.group(cls=LccGroup)
def urd() -> None:
    """Keep what interests the owners of URDs: which pages, and what in them.

    `lcc annotate` compares pages with them as they are cached. A change acts on the next page.

    \b
    lcc urd add anna http://www.example.org/ --keyword ibm --keyword 'java virtual machine=4'
    lcc urd list --owner anna
    lcc urd import profiles.xml
    """  # noqa: D301


urd.add_command(due)


# --- options that add and set have in common ---------------------------------------------------------


def _milliseconds(_ctx: click.Context, _param: click.Parameter, text: str | None) -> int | None:
    from lcc_scrapy.domain.notations import duration

    try:
        return None if text is None else int(duration(text) * _MS)
    except (ValueError, OverflowError) as error:
        raise click.BadParameter(str(error)) from None


def _keywords(
    _ctx: click.Context, _param: click.Parameter, given: tuple[str, ...]
) -> tuple[Keyword, ...] | None:
    return tuple(map(_keyword, given)) or None


def _keyword(text: str) -> Keyword:
    key, equals, weight = text.rpartition("=")
    if equals and weight.isascii() and weight.isdigit():
        return Keyword(key, int(weight[:10]))
    return Keyword(text)


_OPTIONS: tuple[Option, ...] = (
    click.option(
        "--keyword",
        "keywords",
        multiple=True,
        callback=_keywords,
        metavar="WORDS[=WEIGHT]",
        help="A word or phrase to look for, and what each occurrence counts (1); may be repeated.",
    ),
    click.option(
        "--process",
        "processtype",
        type=click.Choice([str(one) for one in Process]),
        help="What is done with pages in scope: look for keywords, ask the rule, or compare with the version"
        " before. Default: rule where a rule is given, else filter.",
    ),
    click.option("--rule", metavar="RULE", help="""For example 'all(ibm, not("java beans"))'."""),
    click.option(
        "--threshold", type=click.IntRange(0), help="The relevance from which a page matters. Default: 1."
    ),
    click.option(
        "--urgency",
        type=click.IntRange(LEVELS[0], LEVELS[-1]),
        help="0 = in the daily digest, 1 = soon, 2 = at once. Default: 1.",
    ),
    click.option(
        "--timing",
        callback=_milliseconds,
        metavar="DURATION",
        help="How often to ask for the page, for example 10m; 0 = never. Default: 0.",
    ),
    click.option(
        "--depth",
        type=click.IntRange(0, DEPTH_MAX),
        help="How many links to follow from there. Default: 0.",
    ),
    click.option(
        "--method",
        type=click.Choice([str(one) for one in Method]),
        help="Whether the LCC asks for the page (pull), or its provider tells (push). Default: pull.",
    ),
    click.option(
        "--expires",
        callback=_milliseconds,
        metavar="DURATION",
        help="How long from now it counts, for example 90d; 0 = for ever. Default: 0.",
    ),
)


def _urd_options(command: Callable[..., Any]) -> Callable[..., Any]:
    for option in reversed(_OPTIONS):
        command = option(command)
    return command


def _given(options: dict[str, Any]) -> dict[str, Any]:
    """Return the fields of a URD that were given."""
    fields = {name: value for name, value in options.items() if value is not None}
    if "expires" in fields:
        fields["expires"] = int(time.time() * _MS) + fields["expires"] if fields["expires"] else None
        if fields["expires"] is not None and fields["expires"] > TIME_MAX:
            raise click.UsageError("--expires: too long")
    for name, kind in (("method", Method), ("processtype", Process)):
        if name in fields:
            fields[name] = kind(fields[name])
    if fields.get("rule"):
        fields.setdefault("processtype", Process.RULE)
    return fields


# --- commands ----------------------------------------------------------------------------------------


@urd.command()
@click.argument("owner")
@click.argument("uri")
@_urd_options
@printing.json_option
@pass_lcc
def add(lcc: Lcc, /, *, owner: str, uri: str, as_json: bool, **options: Any) -> None:
    """Add a URD: OWNER wants to know of URI.

    URI is a page, a folder if it ends in /, or * for the whole cache. What is cached
    already is looked at, too.

    \b
    lcc urd add anna http://www.example.org/ --keyword ibm --keyword research=3
    lcc urd add anna '*' --rule 'all(ibm, near/5(java, "virtual machine"))' --urgency 2
    lcc urd add bert http://www.example.org/prices.html --process change --timing 10m
    """  # noqa: D301
    with _interests(lcc) as interests:
        made = interests.add(Urd(0, owner, uri, **_given(options)))
    _tell(made, "added", as_json=as_json)


@urd.command("set")
@click.argument("urdid", metavar="ID", type=click.IntRange(1))
@click.option("--uri", help="Which page, folder or *.")
@click.option("--no-keywords", is_flag=True, help="Take all keywords away.")
@_urd_options
@printing.json_option
@pass_lcc
def set_(
    lcc: Lcc, /, *, urdid: int, uri: str | None, no_keywords: bool, as_json: bool, **options: Any
) -> None:
    """Change URD ID: what is given replaces what it says.

    --keyword replaces all of its keywords. Pages that are cached already are looked at again.

    \b
    lcc urd set 3 --threshold 10 --urgency 2
    lcc urd set 3 --keyword ibm=2 --expires 90d
    """  # noqa: D301
    given = _given({"uri": uri, **options}) | ({"keywords": ()} if no_keywords else {})
    if given.get("processtype", Process.RULE) is not Process.RULE:
        given.setdefault("rule", "")
    if not given:
        raise click.UsageError("say what is to change, for example --threshold 10")
    with _interests(lcc) as interests:
        before = interests.get(urdid)
        after = interests.change(urdid, lambda one: replace(one, **given))
    _tell(after, "unchanged" if after == before else "changed", as_json=as_json)


@urd.command()
@click.argument("urdids", metavar="ID...", type=click.IntRange(1), nargs=-1, required=True)
@pass_lcc
def remove(lcc: Lcc, *, urdids: tuple[int, ...]) -> None:
    """Remove URDs; all or, if one is not there, none.

    \b
    lcc urd remove 3
    lcc urd remove 4 5 6
    """  # noqa: D301
    with _interests(lcc) as interests:
        gone = interests.remove(urdids)
    for one in gone:
        click.echo(f"URD {one.urdid} of {printing.plain(one.owner)} removed: {one.uri}")


@urd.command("list")
@click.option("--owner", metavar="NAME", help="Only those of this owner.")
@printing.json_option
@pass_lcc
def list_(lcc: Lcc, *, owner: str | None, as_json: bool) -> None:
    """List all URDs, by number, with the reason why a page cannot be asked for.

    \b
    lcc urd list
    lcc urd list --owner anna --json
    """  # noqa: D301
    with _interests(lcc) as interests:
        urds = _with_refusals(interests, owner)
        if as_json:
            printing.json_list({**_facts(one), "refused": why} for one, why in urds)
            return
        if not printing.table(_COLUMNS, ((*_row(one), why) for one, why in urds)):
            printing.note("no URDs yet: `lcc urd add` makes one")


@urd.command("import")
@click.argument("file", type=click.File("rb"))
@click.option("--format", "form", type=click.Choice(_IMPORTS), help="Default: recognised from its content.")
@click.option("--owner", default="", metavar="NAME", help="The owner of those that name none.")
@click.option("--dry-run", is_flag=True, help="Check FILE; add nothing.")
@printing.json_option
@pass_lcc
def import_(lcc: Lcc, *, file: IO[bytes], form: str | None, owner: str, dry_run: bool, as_json: bool) -> None:
    """Add the URDs of FILE; - is stdin. All or, if anything is wrong, none.

    One that has the id of a URD of the same owner replaces it. What is not in FILE stays.

    \b
    lcc urd import profiles.xml
    lcc urd import profiles.jsonl --owner anna --dry-run
    lcc urd export | lcc -s LCC_DATA_DIR=/srv/other urd import -
    """  # noqa: D301
    with _interests(lcc) as interests, printing.progress("reading") as shown:
        urds = []
        for one in _reader(file, form, owner):
            urds.append(one)
            if not len(urds) % _PAGE:
                shown(len(urds))
        if dry_run:
            done = {"checked": len(urds)}
        else:
            shown(0, len(urds))
            done = asdict(interests.take_in(urds, shown))
    if as_json:
        printing.as_json(done)
    else:
        click.echo(", ".join(f"{count} {name}" for name, count in done.items()))


@urd.command()
@click.option(
    "--format", "form", type=click.Choice(_EXPORTS), default="jsonl", show_default=True,
    help="opensearch: queries of a percolator, for the bulk interface of Elasticsearch and OpenSearch.",
)  # fmt: skip
@click.option("--owner", metavar="NAME", help="Only those of this owner.")
@click.option(
    "-o", "--output", type=click.Path(dir_okay=False, path_type=Path), default="-", metavar="FILE",
    help="Where to write; - is stdout, the default.",
)  # fmt: skip
@pass_lcc
def export(lcc: Lcc, *, form: str, owner: str | None, output: Path) -> None:
    """Write all URDs, by number, as `lcc urd import` reads them.

    \b
    lcc urd export -o profiles.jsonl
    lcc urd export --owner anna --format xml
    lcc urd export --format opensearch -o percolator.ndjson
    """  # noqa: D301
    from lcc_scrapy.cli.output_file import tidy_when_told_to_stop, to_file

    with _interests(lcc) as interests, tidy_when_told_to_stop(), to_file(output) as out:
        for piece in _written(form, _all(interests, owner)):
            out.write(piece)


# --- helpers of commands -----------------------------------------------------------------------------


@contextmanager
def _interests(lcc: Lcc) -> "Iterator[Interests]":
    from lcc_scrapy.annotation.interests import Interests

    with lcc.store() as store:
        yield Interests(store)


def _pages(interests: "Interests", owner: str | None) -> Iterator[list[Urd]]:
    after = 0
    while page := interests.of(owner, after, _PAGE):
        yield page
        after = page[-1].urdid


def _all(interests: "Interests", owner: str | None) -> Iterator[Urd]:
    return (one for page in _pages(interests, owner) for one in page)


def _with_refusals(interests: "Interests", owner: str | None) -> Iterator[tuple[Urd, str]]:
    for page in _pages(interests, owner):
        refused = interests.refusals(page)
        yield from ((one, refused.get(one.urdid, "")) for one in page)


def _reader(file: IO[bytes], form: str | None, owner: str) -> Iterator[Urd]:
    """Read a file, whose format shows at its first byte that is no blank."""
    from lcc_scrapy.annotation.urd_formats import read_json_lines
    from lcc_scrapy.annotation.urd_xml import read_xml

    begun = io.BufferedReader(cast(io.RawIOBase, file))  # click's files are as good as raw ones
    try:
        if (form or _looks_like(begun.peek(_FIRST))) == "xml":
            yield from read_xml(iter(lambda: begun.read(_BITE), b""), owner)
        else:
            yield from read_json_lines(begun, owner)
    finally:
        begun.detach()  # click closes it


def _looks_like(begun: bytes) -> str:
    first = begun.removeprefix(codecs.BOM_UTF8).lstrip()[:1]
    return "xml" if first in {b"<", b"\xff", b"\xfe"} else "jsonl"


def _written(form: str, urds: Iterable[Urd]) -> Iterator[bytes]:
    from lcc_scrapy.annotation.percolator import bulk_lines
    from lcc_scrapy.annotation.urd_formats import json_lines_of, xml_of

    if form == "opensearch":
        yield from map(bulk_lines, urds)
        return
    yield from (text.encode() for text in (xml_of if form == "xml" else json_lines_of)(urds))


def _facts(one: Urd) -> dict[str, Any]:
    from lcc_scrapy.annotation.urd_formats import record_of

    return {**record_of(one), "revision": one.revision}


def _row(one: Urd) -> printing.Row:
    timing = printing.span(one.timing // _MS) if one.timing else "never"
    return (
        one.urdid, one.owner, one.uri, timing, one.depth, one.urgency, one.threshold,
        one.processtype, one.rule or _words(one.keywords),
    )  # fmt: skip


def _words(keywords: tuple[Keyword, ...]) -> str:
    shown = [f"{one.key}={one.weight}" if one.weight != 1 else one.key for one in keywords[:_WORDS_SHOWN]]
    more = len(keywords) - _WORDS_SHOWN
    return ", ".join(shown) + (f" and {more} more" if more > 0 else "")


def _tell(one: Urd, what: str, *, as_json: bool) -> None:
    if as_json:
        printing.as_json(_facts(one))
    else:
        click.echo(f"URD {one.urdid} of {printing.plain(one.owner)} {what}: {one.uri}")
