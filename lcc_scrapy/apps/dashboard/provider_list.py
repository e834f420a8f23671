"""The list of providers: which are asked for, and how they are shown."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import tzinfo
from urllib.parse import urlencode
from zoneinfo import ZoneInfo

from markupsafe import Markup

from lcc_scrapy.apps.dashboard.layout import link, paired, table
from lcc_scrapy.apps.dashboard.store import FAILURES, ProviderPage, rows_in
from lcc_scrapy.db.records import ProviderSet, StoredTurn
from lcc_scrapy.db.tx import Tx
from lcc_scrapy.domain.fetch_counts import HOUR, since
from lcc_scrapy.domain.providers import Provider, State
from lcc_scrapy.domain.shown import moment, number, size
from lcc_scrapy.domain.timeslots import next_permitted
from lcc_scrapy.domain.users import User
from lcc_scrapy.queue.fetch_counts import FAILING

LIMIT = 50
"""Providers of one page."""

SEARCH_MAX = 200
_DIGITS_MAX = 18

ORDERS: Mapping[str, str] = {
    "pid": "Provider", "name": "Name", "state": "State", "fileused": "Documents", "spaceused": "Space",
    "nurlproc": "Queue", "nurlerrs": "Errors", "heldremovals": "Held", "lastconntime": "Last login",
    FAILURES: "Failed fetches, 1 h",
}  # fmt: skip
"""The columns by which the list can be sorted."""

_TEXTS = frozenset({"name", "state"})


def asked(query: Mapping[str, str], user: User, now: int) -> ProviderPage:
    """Return which page of the list a query asks for; what it has wrong is ignored."""
    order = query.get("order", "pid")
    search = query.get("q", "").strip()[:SEARCH_MAX]
    state = query.get("state", "")
    order = order if order in ORDERS else "pid"
    return ProviderPage(
        order,
        LIMIT + 1,
        query.get("falling") == "1",
        _after(order, query),
        search if search.isprintable() else "",
        state if state in set(State) else "",
        user.pids,
        since(now, HOUR),
        FAILING,
    )


def _after(order: str, query: Mapping[str, str]) -> tuple[str | int, int] | None:
    value, pid = query.get("value", ""), _whole(query.get("after", ""))
    if pid is None:
        return None
    if order in _TEXTS:
        return (value, pid) if value.isprintable() else None
    whole = _whole(value)
    return None if whole is None else (whole, pid)


def _whole(text: str) -> int | None:
    return int(text) if text.isascii() and text.isdigit() and len(text) <= _DIGITS_MAX else None


@dataclass(frozen=True, slots=True)
class Listed:
    """A page of the list, with what else is told of its providers."""

    providers: Sequence[Provider]
    more: bool
    sets: Mapping[int, ProviderSet]
    turns: Mapping[str, StoredTurn]
    failures: Mapping[int, int]


def read(tx: Tx, page: ProviderPage) -> Listed:
    """Read a page: a handful of statements, however many providers there are."""
    its = rows_in(tx)
    found = its.provider_page(page)
    rows = found[:LIMIT]
    pids = [one.pid for one in rows]
    return Listed(
        rows,
        len(found) > LIMIT,
        its.last_sets(pids),
        its.turns_of([one.turnkey for one in rows]),
        its.count_failures(pids, page.since, page.failing),
    )


def next_slot(one: Provider, turn: StoredTurn | None, now: float, zone: tzinfo) -> str:
    """Say when a provider may be fetched from next."""
    if one.state != State.ACTIVE:
        return ""
    its_zone = ZoneInfo(one.timezone) if one.timezone else zone
    opens = next_permitted(one.timeofday, now, its_zone)
    waits = max(opens, turn.not_before if turn is not None else 0.0)
    if waits == float("inf"):
        return "never"
    return moment(waits) if waits > now else "now"


def body(listed: Listed, page: ProviderPage, now: float, zone: tzinfo) -> Markup:
    """Return the list, with a form to search and sort."""
    columns = [*(_heading(name, page) for name in ORDERS), Markup("Last set"), Markup("Next slot")]
    rows = [_row(one, listed, now, zone) for one in listed.providers]
    shown = table(columns, rows) if rows else Markup("<p>There is no such provider.</p>")
    return _form(page) + shown + _next(listed, page)


def _row(one: Provider, listed: Listed, now: float, zone: tzinfo) -> list[object]:
    pset = listed.sets.get(one.pid)
    sent = (
        "" if pset is None else f"{moment(pset.started)} {'full' if pset.full else 'partial'}, {pset.phase}"
    )
    return [
        link(f"/dashboard/providers/{one.pid}", one.pid),
        one.name,
        Markup('<span class="{}">{}</span>').format("" if one.state == State.ACTIVE else "bad", one.state),
        used(one.fileused, one.filesmax, number),
        used(one.spaceused, one.spacemax, size),
        one.nurlproc,
        one.nurlerrs,
        one.heldremovals,
        moment(one.lastconntime),
        listed.failures.get(one.pid, 0),
        sent,
        next_slot(one, listed.turns.get(one.turnkey), now, zone),
    ]


def used(count: int, limit: int, write: Callable[[int], str]) -> str:
    """Say how much of a quota is used; 0 = there is none."""
    return f"{write(count)} of {write(limit)}" if limit else write(count)


def _query(page: ProviderPage, **changed: object) -> str:
    given = {
        "q": page.search, "state": page.state, "order": page.order, "falling": 1 if page.falling else "",
        **changed,
    }  # fmt: skip
    return f"/dashboard/providers?{urlencode({name: value for name, value in given.items() if value != ''})}"


def _heading(name: str, page: ProviderPage) -> Markup:
    is_it = name == page.order
    falling = not page.falling if is_it else name not in {"pid", *_TEXTS}
    arrow = (" \u25bc" if page.falling else " \u25b2") if is_it else ""
    href = _query(page, order=name, falling=1 if falling else "")
    return Markup('<a href="{}">{}</a>{}').format(href, ORDERS[name], arrow)


def _form(page: ProviderPage) -> Markup:
    def option(value: str, called: str, chosen: str) -> Markup:
        selected = Markup(" selected") if value == chosen else Markup("")
        return Markup('<option value="{}"{}>{}</option>').format(value, selected, called)

    states = Markup("").join(option(one, one or "any state", page.state) for one in ("", *State))
    orders = Markup("").join(option(name, called, page.order) for name, called in ORDERS.items())
    text = Markup(
        '<input id="q" name="q" type="search" value="{}" maxlength="{}"'
        ' placeholder="number, name, contact or root">'
    ).format(page.search, SEARCH_MAX)
    fields = [
        paired(Markup('<label for="q">Find</label>'), text),
        _choice("state", "State", states),
        _choice("order", "Sort by", orders),
    ]
    return Markup(
        '<form class="search" method="get" action="/dashboard/providers" role="search">{}'
        '<label><input type="checkbox" name="falling" value="1"{}> highest first</label>'
        "<button>Show</button></form>"
    ).format(Markup("").join(fields), Markup(" checked") if page.falling else Markup(""))


def _choice(name: str, called: str, options: Markup) -> Markup:
    return paired(
        Markup('<label for="{}">{}</label>').format(name, called),
        Markup('<select id="{0}" name="{0}">{1}</select>').format(name, options),
    )


def _next(listed: Listed, page: ProviderPage) -> Markup:
    if not listed.more:
        return Markup("")
    last = listed.providers[-1]
    value = listed.failures[last.pid] if page.order == FAILURES else getattr(last, page.order)
    href = _query(page, value=value, after=last.pid)
    return Markup('<p><a href="{}" rel="next">Next {}</a></p>').format(href, LIMIT)
