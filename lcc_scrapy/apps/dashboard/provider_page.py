"""The page of one provider: what is known of it, and what can be done."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, tzinfo
from typing import Any
from zoneinfo import ZoneInfo

from markupsafe import Markup

from lcc_scrapy.apps.dashboard import audit_log, fetches
from lcc_scrapy.apps.dashboard.access import Visitor
from lcc_scrapy.apps.dashboard.layout import Name, facts, form_key, link, link_to_url, paired, shown, table
from lcc_scrapy.apps.dashboard.provider_list import next_slot, used
from lcc_scrapy.apps.dashboard.store import rows_in
from lcc_scrapy.db.records import PAUSED, FailingHost, Head, ProviderSet, StoredTurn, UrlErrorRecord
from lcc_scrapy.db.tx import Tx
from lcc_scrapy.domain.audit import EVERYBODY, AuditEntry
from lcc_scrapy.domain.cache import CachedUrl
from lcc_scrapy.domain.convergence import NOT_TRIED_AGAIN, is_mismatching
from lcc_scrapy.domain.providers import Provider, State, Wanted
from lcc_scrapy.domain.queue import QueuedUrl
from lcc_scrapy.domain.shown import hours, moment, number, size
from lcc_scrapy.domain.timeslots import HOURS_PER_DAY, HOURS_PER_WEEK
from lcc_scrapy.domain.users import Action
from lcc_scrapy.providers.registration import find
from lcc_scrapy.queue import host_waits
from lcc_scrapy.queue.fetch_counts import of_late
from lcc_scrapy.web import html

ROWS = 10
"""Of sets, waiting URLs, errors and entries of the audit log that are shown."""

HELD_SHOWN = 100
"""Held removals that are shown one by one."""

_HEAD = (-1, -1)
_MASKS = 50
"""Queues, by their hours, that are looked at for the next URLs."""

_LAST = 2**62
_DAYS = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")
_NOTHING = Markup("")


@dataclass(frozen=True, slots=True)
class Shown:
    """What a page tells of a provider."""

    provider: Provider
    roots: Sequence[str]
    turn: StoredTurn | None
    hosts: Sequence[FailingHost]
    sets: Sequence[ProviderSet]
    queue: Sequence[QueuedUrl]
    errors: Sequence[UrlErrorRecord]
    fetched: Mapping[str, Any]
    audit: Sequence[AuditEntry]
    all_paused: bool


def read(tx: Tx, pid: int, now: int) -> Shown:
    """Read what the page tells; raises ``NoSuchProvider``."""
    one = find(tx, pid)
    masks = tx.masks([pid]).get(pid, [])[:_MASKS]
    heads = tx.heads([Head(pid, mask, _HEAD, ROWS) for mask in masks])
    waiting = sorted(
        (row for rows in heads.values() for row in rows), key=lambda row: (row.psetid, row.position)
    )
    return Shown(
        one,
        tx.roots(pid),
        tx.turn(one.turnkey),
        host_waits.failing(tx, one.turnkey),
        rows_in(tx).newest_sets(pid, ROWS),
        waiting[:ROWS],
        tx.errors(pid, ROWS)[::-1],
        of_late(tx, now, pid),
        tx.audits(_LAST, ROWS, {pid, EVERYBODY}),
        bool(tx.info(PAUSED)),
    )


def body(page: Shown, whose: Visitor, now: float, zone: tzinfo) -> Markup:
    """Return the page."""
    its_zone = ZoneInfo(page.provider.timezone) if page.provider.timezone else zone
    parts = [
        _troubles(page, now),
        _actions(page, whose),
        facts(_facts(page, now, zone)),
        Markup("<h2>Hours</h2><p>{} ({})</p>").format(hours(page.provider.timeofday), str(its_zone)),
        week(page.provider.timeofday, now, its_zone),
        Markup("<h2>Fetches</h2>"), fetches.results(page.fetched),
        Markup("<h2>Newest sets</h2>"), _sets(page.sets),
        Markup("<h2>Next in the queue</h2>"), _queue(page.queue),
        Markup("<h2>Newest errors</h2>"), _errors(page.errors),
    ]  # fmt: skip
    if whose.user.pids is None:
        parts += [Markup("<h2>Who did what</h2>"), audit_log.entries(page.audit)]
    return Markup("").join(parts)


def _troubles(page: Shown, now: float) -> Markup:
    """Say first why the provider is not served."""
    one = page.provider
    said: list[str] = []
    if page.all_paused:
        said.append("all fetching is paused")
    if one.state != State.ACTIVE:
        said.append(f"this provider is {one.state}: nothing is fetched from it")
    said += host_waits.lines(page.hosts, now)
    if one.heldremovals:
        said.append(f"{number(one.heldremovals)} removals are held until they are confirmed")
    if is_mismatching(one.mismatched):
        said.append(f"{NOT_TRIED_AGAIN} ({number(one.mismatched)} in a row)")
    return Markup("").join(map(html.alert, said))


def _facts(page: Shown, now: float, zone: tzinfo) -> list[tuple[str, object]]:
    one = page.provider
    oldest = page.fetched["oldest_waiting"]
    return [
        ("Name", one.name),
        ("Contact", one.contact),
        ("State", one.state),
        *(("Root", root) for root in page.roots),
        ("Documents", used(one.fileused, one.filesmax, number)),
        ("Space", used(one.spaceused, one.spacemax, size)),
        ("Queue", f"{number(one.nurlproc)} URLs"),
        *([("Oldest waiting", _oldest(oldest))] if oldest else []),
        ("Next slot", next_slot(one, page.turn, now, zone)),
        ("Bandwidth", f"{size(one.bandwidth)}/s" if one.bandwidth else "no limit of its own"),
        ("Priority", str(one.priority)),
        ("Errors", f"{number(one.nurlerrs)} since its last login"),
        ("Full set wanted", one.fullsetwanted or "no"),
        ("Last login", f"{moment(one.lastconntime)} from {one.lastconnip}" if one.lastconntime else "never"),
    ]


def _oldest(oldest: Mapping[str, Any]) -> Markup:
    return Markup("{}since {}").format(link_to_url(oldest["url"]), moment(oldest["since"]))


def week(mask: str, now: float, zone: tzinfo) -> Markup:
    """Return the hours of a week as a grid: what is open, and which hour it is."""
    week_mask = (mask or "1") * (HOURS_PER_WEEK // len(mask or "1"))
    local = datetime.fromtimestamp(now, UTC).astimezone(zone)
    this = local.weekday() * HOURS_PER_DAY + local.hour
    rows = Markup("").join(_day(day, week_mask, this) for day in range(7))
    head = Markup("").join(Markup("<th>{}</th>").format(hour if hour % 6 == 0 else "") for hour in range(24))
    return Markup('<table class="week" aria-hidden="true"><tr><th></th>{}</tr>{}</table>').format(head, rows)


def _day(day: int, mask: str, this: int) -> Markup:
    slots = range(day * HOURS_PER_DAY, (day + 1) * HOURS_PER_DAY)
    kinds = [
        " ".join([*(["on"] if mask[slot] == "1" else []), *(["now"] if slot == this else [])])
        for slot in slots
    ]
    cells = Markup("").join(
        Markup('<td class="{}"></td>').format(kind) if kind else Markup("<td></td>") for kind in kinds
    )
    return Markup("<tr><th>{}</th>{}</tr>").format(_DAYS[day], cells)


def _sets(sets: Sequence[ProviderSet]) -> Markup:
    if not sets:
        return Markup("<p>It sent none of late.</p>")
    rows = [
        [
            Name(one.psetid),
            moment(one.started),
            "full" if one.full else "partial",
            one.phase,
            one.held,
            one.setid,
        ]
        for one in sets
    ]
    return table(["Set", "Begun", "Kind", "Absorbed", "Held removals", "Its own id"], rows)


def _queue(rows: Sequence[QueuedUrl]) -> Markup:
    if not rows:
        return Markup("<p>Nothing waits that could be fetched now.</p>")
    made = [
        [link_to_url(one.furl), one.operation, Name(one.psetid), one.tries, hours(one.timeofday)]
        for one in rows
    ]
    return table(["URL", "Operation", "Set", "Tries", "Hours"], made)


def _errors(errors: Sequence[UrlErrorRecord]) -> Markup:
    if not errors:
        return Markup("<p>None since its last login.</p>")
    return table(
        ["At", "Code", "Text", "URL"],
        [[moment(e.at), Name(e.code), e.text, link_to_url(e.url)] for e in errors],
    )


# --- actions -------------------------------------------------------------------------------------


def _actions(page: Shown, whose: Visitor) -> Markup:
    one = page.provider
    forms = {
        Action.PAUSE: ("Pause", _NOTHING, one.state == State.ACTIVE),
        Action.RESUME: ("Resume", _NOTHING, one.state not in {State.ACTIVE, State.MOVING, State.IN_TRANSIT}),
        Action.RETRY: ("Retry failed URLs", _codes_field(), one.state in {State.ACTIVE, State.PAUSED}),
        Action.ASK: ("Ask its failing hosts now", _NOTHING, True),
        Action.WANT_FULL: ("Want a full set", _reason_field(), True),
    }
    made = [
        _form(one.pid, action, called, form_key(whose) + fields)
        for action, (called, fields, sensible) in forms.items()
        if sensible and whose.user.may(action)
    ]
    if one.heldremovals and whose.user.may(Action.CONFIRM_REMOVALS):
        path = f"/dashboard/providers/{one.pid}/{Action.CONFIRM_REMOVALS}"
        made.append(link(path, f"Confirm {number(one.heldremovals)} held removals …"))
    return Markup("<div>{}</div>").format(Markup("").join(made))


def _form(pid: int, action: Action, called: str, fields: Markup) -> Markup:
    return Markup(
        '<form class="inline" method="post" action="/dashboard/providers/{pid}/{action}">{fields}'
        "<button>{called}</button></form>"
    ).format(pid=pid, action=str(action), fields=fields, called=called)


def _codes_field() -> Markup:
    return paired(
        Markup('<label for="code">Codes</label>'),
        Markup('<input id="code" name="code" size="8" placeholder="all, or 503" autocomplete="off">'),
    )


def _reason_field() -> Markup:
    options = Markup("").join(Markup("<option>{}</option>").format(str(one)) for one in Wanted if one)
    return paired(
        Markup('<label for="reason">Reason</label>'),
        Markup('<select id="reason" name="reason">{}</select>').format(options),
    )


def held_body(one: Provider, rows: Sequence[CachedUrl], whose: Visitor) -> Markup:
    """Return the held removals of a provider, and the form that confirms them."""
    if not one.heldremovals:
        return Markup("<p>No removals are held.</p>") + link(f"/dashboard/providers/{one.pid}", "Back")
    listed = table(
        ["URL", "Fetched", "Bytes"],
        [[link_to_url(r.furl), moment(r.fetched_time or 0), r.fetched_len] for r in rows],
    )
    more = one.heldremovals - len(rows)
    box = Markup(
        '<label><input type="checkbox" name="sure" value="yes" required> Remove {} documents</label>'
    )
    form = _form(
        one.pid, Action.CONFIRM_REMOVALS, "Confirm", form_key(whose) + box.format(number(one.heldremovals))
    )
    left = Markup("<p>And {} more.</p>").format(number(more)) if more > 0 else _NOTHING
    return form + link(f"/dashboard/providers/{one.pid}", "Back") + listed + left


def title(one: Provider) -> str:
    """Return the title of a provider's page."""
    return f"Provider {one.pid}{f': {shown(one.name)}' if one.name else ''}"
