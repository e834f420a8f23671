"""``lcc status`` and ``lcc errors``: what the LCC is doing, and what went wrong for a provider."""

import time
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import click

from lcc_scrapy.cli import fetch_counts, printing, push_misses
from lcc_scrapy.cli.context import Lcc, pass_lcc
from lcc_scrapy.domain.convergence import NOT_TRIED_AGAIN, is_mismatching
from lcc_scrapy.domain.providers import Wanted

if TYPE_CHECKING:
    from lcc_scrapy.db.tx import Tx
    from lcc_scrapy.domain.providers import Provider

_SHOWN = 10
"""Providers named one by one."""


@click.command()
@printing.json_option
@pass_lcc
def status(lcc: Lcc, *, as_json: bool) -> None:
    """Show queue, cache, spool, providers and crawl processes.

    \b
    lcc status
    lcc status --json
    """  # noqa: D301
    facts = _facts(lcc)
    if as_json:
        printing.as_json(facts)
    else:
        printing.facts(_lines(facts))


def _facts(lcc: Lcc) -> dict[str, Any]:
    from lcc_scrapy.app.opening import here
    from lcc_scrapy.feed.store_feed import head_of
    from lcc_scrapy.ops.status import read
    from lcc_scrapy.providers.registration import all_providers

    now = int(time.time())
    with lcc.store() as store:
        providers = all_providers(store)
        facts = read(store, here(lcc.config), now)
        with store.read() as tx:
            head, totals = head_of(tx), tx.totals()
            cursors = _cursors(tx, head.seq)
            missed = push_misses.all_facts(tx, providers, now, lcc.config.policy.push_grace)
    return {
        "lcc": head.lcc,
        "generation": head.generation,
        "data_dir": str(lcc.config.data_dir),
        **facts,
        "versions": totals["versions"],
        "doomed_files": totals["doomed"],
        "held_by_provider": {one.pid: one.heldremovals for one in providers if one.heldremovals},
        "expiring": {one.pid: one.fileused for one in providers if _is_expiring(one)},
        "mismatching": {one.pid: one.mismatched for one in providers if is_mismatching(one.mismatched)},
        "not_pushed": missed,
        "seq": head.seq,
        "cursors": cursors,
        "full_sets_wanted": sum(bool(provider.fullsetwanted) for provider in providers),
    }


def _is_expiring(provider: "Provider") -> bool:
    """Tell whether documents of a provider have expired, and it has not sent the others anew since."""
    return provider.fullsetwanted == Wanted.EXPIRED_FILES and provider.fileused > 0


def _cursors(tx: "Tx", head: int) -> list[dict[str, object]]:
    """Return the named cursors of `lcc web`, and how many changes each is behind at most."""
    return [
        {"owner": one.owner, "name": one.name, "behind": max(head - one.seq, 0), "moved": one.at}
        for one in tx.named_cursors()
    ]


def _lines(facts: dict[str, Any]) -> list[tuple[str, object]]:
    providers = ", ".join(f"{count} {state}" for state, count in sorted(facts["providers"].items()))
    workers = ", ".join(map(_crawl, facts["workers"]))
    spool = facts["spool"]
    return [
        ("data directory", facts["data_dir"]),
        ("queue", f"{facts['queued']} URLs"),
        *fetch_counts.lines(facts["fetched"]),
        ("cache", f"{facts['documents']} documents, {printing.size(facts['bytes'])}"),
        *([("versions", f"{facts['versions']} earlier contents of documents")] if facts["versions"] else []),
        *([("types", _refused(facts["refused_types"]))] if facts["refused_types"] else []),
        ("providers", providers or "none"),
        ("full sets", f"{facts['full_sets_wanted']} providers are asked for a full set"),
        ("spool", f"{spool['sets']} sets, {printing.size(spool['bytes'])}"),
        *(("disk", f"{printing.size(free)} free at {folder}") for folder, free in facts["disks"].items()),
        *([("disk", f"intake and fetching have stopped: {facts['short']}")] if facts["short"] else []),
        ("UNS", ", ".join(_seen(uns) for uns in facts["unses"]) or "never seen: start `lcc uns` or a crawl"),
        ("crawls", workers or "none: start `scrapy crawl lcc_push`"),
        (
            "fetching",
            f"{facts['in_use']} URLs now, of {facts['places']} at a time; {_at_work_on(facts['turns'])}",
        ),
        *(
            [("slowly", f"{facts['paced']} more URLs, limited by the bandwidth of their providers")]
            if facts["paced"]
            else []
        ),
        *(("idle", _hands_out_nothing(one)) for one in facts["workers"] if one["idle"]),
        *(("jobs", _longest_job(one)) for one in facts["workers"] if one["longest_job"]),
        *(("failing", _fails(one)) for one in facts["failing_hosts"]),
        ("traffic", f"{printing.size(facts['bytes_per_second'])}/s"),
        *([("paused", "all fetching; `lcc provider resume --all` resumes it")] if facts["paused"] else []),
        ("feed", f"at change {facts['seq']}"),
        *([("cursors", _farthest(facts["cursors"]))] if facts["cursors"] else []),
        ("old files", f"{facts['doomed_files']} files of replaced or removed documents wait to be deleted"),
        ("held", f"{facts['held_removals']} removals wait for `lcc provider confirm-removals`"),
        *_of_providers("", "provider {pid}: {count}", facts["held_by_provider"]),
        *_of_providers(
            "expiring",
            "provider {pid}: its documents expire, nobody has confirmed them; {count} remain",
            facts["expiring"],
        ),
        *_of_providers(
            "mismatches",
            f"provider {{pid}}: {NOT_TRIED_AGAIN} ({{count}} in a row)",
            facts["mismatching"],
        ),
        *_not_pushed(facts["not_pushed"]),
    ]


def _not_pushed(sampled: dict[int, dict[str, Any]]) -> Iterator[tuple[str, object]]:
    """Write a line for each of the providers that miss most."""
    most = sorted(sampled.items(), key=lambda one: -one[1]["share"]["value"] if one[1]["share"] else 0.0)
    for pid, facts in most[:_SHOWN]:
        yield "not pushed", f"provider {pid}: {push_misses.in_words(facts)}"
    if len(most) > _SHOWN:
        yield "not pushed", f"and {len(most) - _SHOWN} more providers, see --json"


def _crawl(worker: dict[str, Any]) -> str:
    """Name a crawl process: a worker is called by its machine and its number on that."""
    machine, _, number = worker["worker"].partition("/")
    return f"worker {number} on machine {machine} (process {worker['process']})"


def _at_work_on(turns: int) -> str:
    return f"the crawls hold leases of {turns} provider{'' if turns == 1 else 's'} or groups"


def _refused(count: int) -> str:
    return f"{count} URLs were refused for their type (703): see `lcc provider set --mimetype`"


def _hands_out_nothing(worker: dict[str, Any]) -> str:
    return f"worker {worker['worker']} hands out no URL: {worker['idle']}"


def _fails(host: dict[str, Any]) -> str:
    since, next_ = printing.moment(host["since"]), printing.moment(host["next_request"])
    return f"host {host['host']} of {host['turn']} has failed since {since}, next request at {next_}"


def _longest_job(worker: dict[str, Any]) -> str:
    """Say which recent job of a worker's store thread took longest."""
    took = f"{worker['longest_job_ms']} ms ({worker['longest_job']})"
    return f"the longest recent one of worker {worker['worker']} took {took}"


def _farthest(cursors: list[dict[str, Any]]) -> str:
    last = max(cursors, key=lambda one: one["behind"])
    behind = f"{last['name']} of {last['owner']} is {last['behind']} changes behind, the most of all"
    return f"{len(cursors)} named; {behind}"


def _seen(uns: dict[str, Any]) -> str:
    return f"at {uns['host']} (last heartbeat {printing.moment(uns['seen'])})"


def _of_providers(name: str, text: str, counts: dict[int, int]) -> Iterator[tuple[str, object]]:
    """Write a line for each of the providers with most of something."""
    most = sorted(counts.items(), key=lambda one: (-one[1], one[0]))
    for pid, count in most[:_SHOWN]:
        yield name, text.format(pid=pid, count=count)
    if len(most) > _SHOWN:
        yield name, f"and {len(most) - _SHOWN} more providers, see --json"


@click.command()
@click.argument("pid", type=click.IntRange(1))
@printing.json_option
@pass_lcc
def errors(lcc: Lcc, pid: int, *, as_json: bool) -> None:
    """Show the URL errors of a provider, newest last.

    The LCC deletes them when the provider has read them at a login.

    \b
    lcc errors 7
    """  # noqa: D301
    from lcc_scrapy.providers.registration import find

    with lcc.store() as store, store.read() as tx:
        total = find(tx, pid).nurlerrs
        kept = tx.errors(pid, lcc.config.policy.errors_kept)
    if as_json:
        found = [
            {"code": e.code, "text": e.text, "url": e.url, "at": e.at, "submitted": e.submitted} for e in kept
        ]
        printing.as_json({"pid": pid, "total": total, "errors": found})
        return
    printing.table(
        ("at", "code", "text", "url"), [(printing.moment(e.at), e.code, e.text, e.url) for e in kept]
    )
    printing.note(f"provider {pid}: {total} errors since its last connection, {len(kept)} of them kept")
