"""``lcc provider rename-root``: a root of a provider gets another URL, and nothing is fetched again."""

import time
from collections import Counter
from collections.abc import Iterator, Mapping

import click

from lcc_scrapy.cli import printing
from lcc_scrapy.cli.context import Lcc, pass_lcc

_RENAMED = {
    "documents": "documents",
    "waiting": "waiting URLs",
    "found": "URLs that spiders found",
    "irrelevant": "documents that concerned nobody",
    "outcomes": "last outcomes",
}
_OUTSIDE = {
    "dropped": "waiting URLs outside its roots dropped",
    "removed": "documents outside its roots removed",
    "held": "documents outside its roots held",
}


@click.command("rename-root")
@click.argument("pid", type=click.IntRange(1, 10**18 - 1))
@click.argument("old")
@click.argument("new")
@click.option("--dry-run", is_flag=True, help="Count what would be renamed, and change nothing.")
@click.option("--give-up", is_flag=True, help="Let OLD stay, if no document was renamed yet.")
@click.option("--json", "as_json", is_flag=True, help="Print the outcome as JSON.")
@pass_lcc
def rename_root(
    lcc: Lcc, pid: int, old: str, new: str, *, dry_run: bool, give_up: bool, as_json: bool
) -> None:
    """Give a root another URL: another scheme, host or path. Nothing is fetched again.

    Documents below OLD are called as if they had been fetched below NEW. Content users see each leave, and
    come under its new name. Meanwhile the provider rests. When it was interrupted, run it again. While it
    waits for a fetch or a set to end, it may be given up.

    \b
    lcc provider rename-root 7 http://www.example.org/ https://www.example.org/ --dry-run
    lcc provider rename-root 7 http://www.example.org/ https://www.example.org/
    lcc provider rename-root 7 http://www.example.org/ https://www.example.org/ --give-up
    """  # noqa: D301
    from lcc_scrapy.apps.renaming.rules import Renaming
    from lcc_scrapy.apps.renaming.service import RootRenaming
    from lcc_scrapy.domain.roots import Root
    from lcc_scrapy.providers.registration import find

    if dry_run and give_up:
        raise click.UsageError("--dry-run and --give-up do not go together")
    renaming = Renaming.between(Root.parse(old), Root.parse(new))
    detail = f"{old} {new} given up" if give_up else f"{old} {new}"
    hooks = list(lcc.config.apps.every("renaming"))
    kinds = {**_RENAMED, **{kind: words for one in hooks for kind, words in one.kinds.items()}, **_OUTSIDE}
    told = lcc.store() if dry_run else lcc.audited("provider rename-root", pid, detail)
    with told as store:
        with store.read() as tx:
            documents = find(tx, pid).fileused
        work = RootRenaming(store, pid, renaming, int(time.time()), lcc.config.policy, hooks=hooks)
        if give_up:
            counts = _counted("giving up", documents, work.give_up())
        else:
            counts = _counted("looking at its documents", documents, work.check())
            if not dry_run:
                counts = _counted("renaming", documents, work.run(printing.note))
    said = {"pid": pid, "old": str(renaming.old), "new": str(renaming.new), "dry_run": dry_run}
    said["given_up"] = give_up
    if as_json:
        printing.as_json(said | {kind: counts[kind] for kind in kinds})
        return
    if give_up:
        click.echo(f"{renaming.old} stays: {_in_words(counts, kinds)} changed")
        return
    verb = "would be renamed" if dry_run else "renamed"
    click.echo(f"{renaming.old} {verb} to {renaming.new}: {_in_words(counts, kinds)}")


def _counted(what: str, documents: int, steps: Iterator["Counter[str]"]) -> "Counter[str]":
    counts: Counter[str] = Counter()
    with printing.progress(what, documents) as progress:
        for step in steps:
            counts += step
            progress(counts["looked_at"])
    return counts


def _in_words(counts: "Counter[str]", kinds: Mapping[str, str]) -> str:
    others = [f"{counts[kind]} {words}" for kind, words in kinds.items() if counts[kind]]
    return ", ".join(others) or "0 documents"
