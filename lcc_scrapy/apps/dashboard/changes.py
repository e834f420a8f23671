"""The newest changes as a page, and as events: the same cells, whoever puts them into the table."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from markupsafe import Markup

from lcc_scrapy.apps.dashboard.layout import Name, link, shown, table
from lcc_scrapy.domain.cache import CachedUrl, Tombstone
from lcc_scrapy.domain.selection import happened
from lcc_scrapy.domain.shown import moment

LIMIT = 50
"""Changes that are shown."""

AMONG = 10_000
"""Newest changes among which those of a user's providers are looked for."""

SCRIPT = Path(__file__).with_suffix(".js").read_text(encoding="ascii")
"""Puts events into the table of the page, as text only."""

_COLUMNS = ("Change", "At", "What", "Provider", "URL")
_URL_SHOWN = 300
_PAGE = Markup(
    '<p><a href="/dashboard/changes">Reload</a></p><p id="live" role="status"></p>'
    '<div id="changes" data-after="{after}" data-most="{most}">{table}</div>'
    '<script src="/dashboard/changes.js" defer></script>'
)


class Cells(NamedTuple):
    """What is told of a change; ``docid`` leads to its page."""

    seq: int
    at: str
    what: str
    pid: int
    url: str
    docid: str


def cells_of(change: CachedUrl | Tombstone) -> Cells:
    """Return what is told of a change."""
    what = f"removed: {change.reason}" if isinstance(change, Tombstone) else "stored"
    url = shown(change.furl)
    url = url if len(url) <= _URL_SHOWN else url[: _URL_SHOWN - 1] + "\u2026"
    return Cells(change.seq, moment(happened(change)), shown(what), change.pid, url, change.urlkey.hex())


def event_text(change: CachedUrl | Tombstone) -> bytes:
    """Return a change as a server-sent event."""
    told = json.dumps(cells_of(change)._asdict())
    return f"id: {change.seq}\ndata: {told}\n\n".encode("ascii")


def body(changes: Sequence[CachedUrl | Tombstone], after: int) -> Markup:
    """Return the page; the script goes on behind ``after``."""
    rows = [_row(cells_of(one)) for one in changes]
    return _PAGE.format(after=after, most=LIMIT, table=table(_COLUMNS, rows))


def _row(told: Cells) -> list[object]:
    whose = link(f"/dashboard/providers/{told.pid}", told.pid)
    return [Name(told.seq), told.at, told.what, whose, link(f"/dashboard/urls?url={told.docid}", told.url)]
