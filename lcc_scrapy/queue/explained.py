"""What is known of a URL, as ``lcc explain`` and the dashboard tell it."""

from collections.abc import Callable
from typing import Any

from lcc_scrapy.db.records import Spidered
from lcc_scrapy.domain.cache import CachedUrl
from lcc_scrapy.domain.convergence import differs
from lcc_scrapy.domain.queue import DUE, QueuedUrl
from lcc_scrapy.domain.shown import ago, hours, moment
from lcc_scrapy.queue.explanation import Known

PathOf = Callable[[int, int], str]
"""Returns where the file of (machine, file id) lies; "" = it is not told."""


def as_dict(known: Known, path_of: PathOf, now: int) -> dict[str, Any]:
    """Return it by the names that ``lcc explain --json`` has; ``now`` in epoch seconds."""
    gone = known.tombstone
    return {
        "docid": known.urlkey.hex(),
        "pid": known.pid,
        "curl": known.curl,
        "mimetype": known.mimetype,
        "state": known.state,
        "cached": _cached(known.cached, path_of) if known.cached else None,
        "queued": _queued(known.queued, known) if known.queued else None,
        "removed": {"at": gone.removed_time, "reason": gone.reason, "seq": gone.seq} if gone else None,
        "visits": _visits(known.visits) if known.visits else None,
        "owners": [{"owner": one.owner, "reach": one.reach} for one in known.owners],
        "last_failure": _last_failure(known, now) if known.outcome else None,
    }


def _last_failure(known: Known, now: int) -> dict[str, Any]:
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


def _cached(row: CachedUrl, path_of: PathOf) -> dict[str, Any]:
    return {
        "fetched": row.fetched_time,
        "confirmed": row.confirmed_time,
        "path": path_of(row.fetched_machineid, row.fetched_fileid),
        "seq": row.seq,
        "origin": row.origin,
        "furl": row.furl,
        "burl": row.burl,
        "final_url": row.final_url,
        "removal_held": bool(row.held),
        "as_declared": not differs(row),
        "declared": {"mimetype": row.mimetype, "len": row.len, "md5": row.md5, "mtime": row.mtime},
        "served": {
            "mimetype": row.served_type,
            "charset": row.served_charset,
            "len": row.fetched_len,
            "md5": row.fetched_md5,
            "sha256": row.sha256,
        },
    }


def _visits(row: Spidered) -> dict[str, Any]:
    return {
        "depth": row.depth,
        "visited": row.visited,
        "answered": row.answered,
        "every": row.every,
        "changes": row.changes,
        "due": row.due,
    }


def _queued(row: QueuedUrl, known: Known) -> dict[str, Any]:
    return {
        "why": known.waits.reason if known.waits else "",
        "until": int(known.waits.until) if known.waits else 0,
        "before": known.before,
        "set": row.psetid,
        "operation": row.operation,
        "tries": row.tries,
        "not_before": row.not_before if row.not_before > DUE else 0,
        "hours": hours(row.timeofday),
        "furl": row.furl,
    }


def lines(one: dict[str, Any]) -> list[tuple[str, object]]:
    """Return what ``as_dict`` gives as names with their values, in words."""
    told: list[tuple[str, object]] = [
        ("URL", one["curl"]),
        ("provider", one["pid"]),
        ("mimetype", one["mimetype"]),
        ("docid", one["docid"]),
        ("state", one["state"]),
    ]
    told += _cached_lines(one["cached"]) if one["cached"] else [("cached", "no")]
    if one["cached"] and not one["cached"]["as_declared"]:
        told.append(("differs", _differs(waits=bool(one["queued"]))))
    told += _queued_lines(one["queued"]) if one["queued"] else [("waiting", "no")]
    if one["removed"]:
        gone = one["removed"]
        told.append(("removed", f"{moment(gone['at'])}, {gone['reason']} (change {gone['seq']})"))
    if one["visits"] and one["visits"]["due"]:
        visits = one["visits"]
        due = moment(visits["due"])
        told.append(("visits", f"last ended {moment(visits['visited'])}, next adaptive one due {due}"))
    if one["owners"]:
        told.append(("owners", ", ".join(map(_owner, one["owners"]))))
    if one["last_failure"]:
        last = one["last_failure"]
        told.append(("refused" if last["state"] == "refused" else "last failure", _failure(last)))
    return told


def _differs(*, waits: bool) -> str:
    """Tell what follows where the site has served something else than its provider declared."""
    what = "what is held is not what was declared"
    if waits:
        return f"{what}: its site is asked again"
    return f"{what}: its site was asked as often as it may be; `lcc retry` asks once more, so does a push"


def _failure(last: dict[str, Any]) -> str:
    told = f"{last['code']} {last['text']}, {moment(last['at'])}"
    told = f"{told} ({ago(last['seconds_ago'])} ago)"
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
            f"fetched {moment(row['fetched'])}, confirmed {moment(row['confirmed'])}",
        ),
        ("change", row["seq"]),
        *([("file", row["path"])] if row["path"] else []),
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
