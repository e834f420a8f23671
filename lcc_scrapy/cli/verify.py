"""``lcc verify``: rows, files and counters against each other."""

from collections import Counter
from dataclasses import asdict
from typing import TYPE_CHECKING

import click

from lcc_scrapy.cli import printing
from lcc_scrapy.cli.context import FAILED, Lcc

if TYPE_CHECKING:
    from lcc_scrapy.ops.verification import Finding


@click.command()
@click.option(
    "--repair", is_flag=True, help="Fetch lost content again, delete files nobody needs, correct counters."
)
@click.option(
    "--rebuild-queue",
    is_flag=True,
    help="Look at no files: make counters, set parts and turns anew from the URLs that wait.",
)
@click.option("--quick", is_flag=True, help="Compare sizes only, without reading the files.")
@printing.json_option
@click.pass_context
def verify(ctx: click.Context, *, repair: bool, rebuild_queue: bool, quick: bool, as_json: bool) -> None:
    """Check rows, content files and counters against each other.

    May run while crawls go on. Exit status 0: all is well, or was repaired; 1: something was found.

    \b
    lcc verify --quick
    lcc verify --repair
    lcc verify --rebuild-queue
    """  # noqa: D301
    from lcc_scrapy.ops.verification import Verification

    lcc = ctx.find_object(Lcc)
    assert lcc is not None
    findings: Counter[str] = Counter()
    found: list[dict[str, object]] = []
    with lcc.store() as store:
        with store.read() as tx:
            total = 2 * tx.totals()["cached"]
        content = lcc.content(store)
        with printing.progress("verifying", total) as progress:
            work = Verification(
                store,
                content,
                lcc.config.policy,
                digests=not quick,
                repair=repair or rebuild_queue,
                progress=progress,
            )
            for finding in work.rebuild_queue() if rebuild_queue else work.run():
                findings[finding.kind] += 1
                if as_json:
                    found.append(asdict(finding))
                else:
                    click.echo(_line(finding))
    repair = repair or rebuild_queue
    summary = {"documents": work.documents, "files": work.files, "found": dict(findings), "repaired": repair}
    if as_json:
        printing.as_json({**summary, "findings": found})
    else:
        click.echo(_summary(summary, findings.total()))
    ctx.exit(FAILED if findings and not repair else 0)


def _line(finding: "Finding") -> str:
    done = " (repaired)" if finding.repaired else ""
    return f"{finding.kind}: {finding.docid + ' ' if finding.docid else ''}{finding.detail}{done}"


def _summary(summary: dict[str, object], count: int) -> str:
    looked = f"{summary['documents']} documents and {summary['files']} files looked at"
    if not count:
        return f"{looked}: all is well"
    return f"{looked}: {count} found" + (", all repaired" if summary["repaired"] else "")
