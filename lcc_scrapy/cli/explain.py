"""``lcc explain``: everything about a URL."""

import time
from typing import TYPE_CHECKING, Any

import click

from lcc_scrapy.cli import printing
from lcc_scrapy.cli.context import Failure, Lcc, pass_lcc

if TYPE_CHECKING:
    from lcc_scrapy.db.records import Spidered
    from lcc_scrapy.domain.cache import CachedUrl
    from lcc_scrapy.domain.queue import QueuedUrl
    from lcc_scrapy.queue.explanation import Known, Surroundings


@click.command()
@click.argument("url")
@click.option("--provider", "pid", type=click.IntRange(1), metavar="PID", help="Only this provider's URL.")
@printing.json_option
@pass_lcc
def explain(lcc: Lcc, url: str, pid: int | None, *, as_json: bool) -> None:
    """Tell whether a URL is cached or waits, and why.

    URL is a conceptual URL, a fetch URL or a docid. Exit status 1: the LCC does not know the URL.

    \b
    lcc explain http://www.example.org/news.html
    lcc explain 0123456789abcdef0123456789abcdef --json
    """  # noqa: D301
    from lcc_scrapy.queue import explanation

    with lcc.store() as store:
        known = explanation.explain(store, url, _surroundings(lcc), pid)
        where = "" if known else _where(explanation.in_roots_of(store, url))
    if not known:
        raise Failure(f"nothing is known of {printing.plain(url)}: it was not submitted, or long ago{where}")
    now = int(time.time())
    shown = [_as_dict(lcc, one, now) for one in known]
    if as_json:
        printing.as_json(shown)
        return
    for number, one in enumerate(shown):
        if number:
            click.echo()
        printing.facts(_lines(one))


def _surroundings(lcc: Lcc) -> "Surroundings":
    from lcc_scrapy.machine.data_directory import running_workers
    from lcc_scrapy.queue.explanation import Surroundings

    running = bool(running_workers(lcc.config.data_dir))
    return Surroundings(time.time(), lcc.config.timezone, running, paced=lcc.config.turns.paced)


def _where(pids: list[int]) -> str:
    """Tell in whose roots a URL lies of which nothing is known."""
    if not pids:
        return "; it lies outside the roots of all providers"
    return f"; it lies in the roots of provider {', '.join(map(str, pids))}"


def _as_dict(lcc: Lcc, known: "Known", now: int) -> dict[str, Any]:
    gone = known.tombstone
    return {
        "docid": known.urlkey.hex(),
        "pid": known.pid,
        "curl": known.curl,
        "mimetype": known.mimetype,
        "state": known.state,
        "cached": _cached(lcc, known.cached) if known.cached else None,
        "queued": _queued(known.queued, known) if known.queued else None,
        "removed": {"at": gone.removed_time, "reason": gone.reason, "seq": gone.seq} if gone else None,
        "visits": _visits(known.visits) if known.visits else None,
        "owners": [{"owner": one.owner, "reach": one.reach} for one in known.owners],
        "last_failure": _last_failure(known, now) if known.outcome else None,
    }


def _last_failure(known: "Known", now: int) -> dict[str, Any]:
    outcome = known.outcome
    assert outcome is not None
    return {
        "at": outcome.at,
        "seconds_ago": max(0, now - outcome.at),
        "code": outcome.code,
        "text": outcome.text,
        "state": outcome.state,
        "since_then": known.since_then,
    }


def _cached(lcc: Lcc, row: "CachedUrl") -> dict[str, Any]:
    return {
        "fetched": row.fetched_time,
        "confirmed": row.confirmed_time,
        "path": lcc.path_of()(row.fetched_machineid, row.fetched_fileid),
        "seq": row.seq,
        "origin": row.origin,
        "furl": row.furl,
        "burl": row.burl,
        "final_url": row.final_url,
        "removal_held": bool(row.held),
        "declared": {"mimetype": row.mimetype, "len": row.len, "md5": row.md5, "mtime": row.mtime},
        "served": {
            "mimetype": row.served_type,
            "charset": row.served_charset,
            "len": row.fetched_len,
            "md5": row.fetched_md5,
            "sha256": row.sha256,
        },
    }


def _visits(row: "Spidered") -> dict[str, Any]:
    return {
        "depth": row.depth,
        "visited": row.visited,
        "answered": row.answered,
        "every": row.every,
        "changes": row.changes,
        "due": row.due,
    }


def _queued(row: "QueuedUrl", known: "Known") -> dict[str, Any]:
    return {
        "why": known.waits.reason if known.waits else "",
        "until": int(known.waits.until) if known.waits else 0,
        "before": known.before,
        "set": row.psetid,
        "operation": row.operation,
        "tries": row.tries,
        "not_before": row.not_before,
        "hours": printing.hours(row.timeofday),
        "furl": row.furl,
    }


def _lines(one: dict[str, Any]) -> list[tuple[str, object]]:
    lines: list[tuple[str, object]] = [
        ("URL", one["curl"]),
        ("provider", one["pid"]),
        ("mimetype", one["mimetype"]),
        ("docid", one["docid"]),
        ("state", one["state"]),
    ]
    lines += _cached_lines(one["cached"]) if one["cached"] else [("cached", "no")]
    lines += _queued_lines(one["queued"]) if one["queued"] else [("waiting", "no")]
    if one["removed"]:
        gone = one["removed"]
        lines.append(("removed", f"{printing.moment(gone['at'])}, {gone['reason']} (change {gone['seq']})"))
    if one["visits"] and one["visits"]["due"]:
        visits = one["visits"]
        due = printing.moment(visits["due"])
        lines.append(
            ("visits", f"last ended {printing.moment(visits['visited'])}, next adaptive one due {due}")
        )
    if one["owners"]:
        lines.append(("owners", ", ".join(map(_owner, one["owners"]))))
    if one["last_failure"]:
        last = one["last_failure"]
        lines.append(("refused" if last["state"] == "refused" else "last failure", _failure(last)))
    return lines


def _failure(last: dict[str, Any]) -> str:
    told = f"{last['code']} {last['text']}, {printing.moment(last['at'])}"
    told = f"{told} ({printing.ago(last['seconds_ago'])} ago)"
    if last["state"] == "stored":
        return f"{told}; stored all the same"
    return f"{told}; since then {last['since_then']}" if last["since_then"] else told


def _owner(one: dict[str, Any]) -> str:
    links = {0: "", 1: " and 1 link from there"}.get(one["reach"], f" and {one['reach']} links from there")
    return (one["owner"] or "nobody in particular") + links


def _cached_lines(row: dict[str, Any]) -> list[tuple[str, object]]:
    return [
        (
            "cached",
            f"fetched {printing.moment(row['fetched'])}, confirmed {printing.moment(row['confirmed'])}",
        ),
        ("change", row["seq"]),
        ("file", row["path"]),
        ("fetched from", row["final_url"] or row["furl"]),
        ("declared", _shown(row["declared"])),
        ("served", _shown(row["served"])),
        *([("held", "its removal waits for the operator")] if row["removal_held"] else []),
    ]


def _shown(facts: dict[str, Any]) -> str:
    return (
        ", ".join(f"{name} {value}" for name, value in facts.items() if value not in {None, ""}) or "nothing"
    )


def _queued_lines(row: dict[str, Any]) -> list[tuple[str, object]]:
    tries = f", {row['tries']} tries" if row["tries"] else ""
    return [
        ("waiting", f"{row['operation']}, set {row['set']}, {row['before']} before it{tries}"),
        ("why", row["why"]),
    ]
