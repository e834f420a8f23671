"""The pages of the dashboard, each a thin layer over what reads and words it. Blocking."""

import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import tzinfo
from http import HTTPStatus
from pathlib import Path
from typing import NamedTuple
from urllib.parse import urlencode

from fastapi import Request, Response
from markupsafe import Markup

from lcc_scrapy.apps.dashboard import (
    audit_log,
    changes,
    content_page,
    links_in,
    overview,
    provider_list,
    provider_page,
    search_page,
    stored_page,
    url_page,
    workers,
)
from lcc_scrapy.apps.dashboard.access import PATH, Visitor
from lcc_scrapy.apps.dashboard.actions import Actions, Wish
from lcc_scrapy.apps.dashboard.answers import (
    DIGITS_MAX,
    NUMBER_MAX,
    NoSuchPage,
    NotForYou,
    now_of,
    number,
    to,
)
from lcc_scrapy.apps.dashboard.layout import FIND_MAX, find_form, page, shown
from lcc_scrapy.apps.dashboard.settings import DashboardRules
from lcc_scrapy.apps.dashboard.store import rows_in
from lcc_scrapy.db.records import FEED
from lcc_scrapy.db.tx import Store
from lcc_scrapy.domain.login_limits import ThrottleRules
from lcc_scrapy.domain.notations import Networks
from lcc_scrapy.domain.policy import QueuePolicy
from lcc_scrapy.domain.roots import URL_MAX
from lcc_scrapy.domain.shown import number as plain
from lcc_scrapy.domain.users import Action
from lcc_scrapy.domain.versions import Version
from lcc_scrapy.feed.fts5_search import Fts5Search
from lcc_scrapy.feed.store_feed import head_of
from lcc_scrapy.machine.data_directory import running_workers
from lcc_scrapy.ops.status import Here, Troubles
from lcc_scrapy.providers.registration import NoSuchProvider, find
from lcc_scrapy.queue.explanation import Surroundings
from lcc_scrapy.web import html
from lcc_scrapy.web.access import lcc_of

_DOCID = re.compile("[0-9a-fA-F]{32}")

Values = dict[str, str]
Handler = Callable[[Request, Visitor, Values], Response]


class Terms(NamedTuple):
    """What the dashboard goes by.

    ``zone`` is that of providers without one of their own; ``here`` is what of the LCC lies on this machine.
    ``paced``: how many bodies a worker may have under way that are behind a limit. ``crawls_expected``: crawl
    processes, 0 = any number. ``troubles`` are those of apps.
    """

    rules: DashboardRules
    login: ThrottleRules
    policy: QueuePolicy
    queue_max: int
    zone: tzinfo
    proxies: Networks
    web_url: str
    here: Here
    paced: int
    crawls_expected: int
    troubles: Sequence[Troubles] = ()


class Pages:
    """Handlers: each gets the request, who is signed in, and the fields of its form."""

    def __init__(self, store: Store, terms: Terms) -> None:
        self._store = store
        self._terms = terms
        self._index = Fts5Search(Path(terms.rules.search_index)) if terms.rules.search_index else None
        self._actions = Actions(store, terms.policy, terms.queue_max)

    def home(self, request: Request, whose: Visitor, values: Values) -> Response:
        """Show the overview; who sees some providers only gets these."""
        del values
        if whose.user.pids is not None:
            return to(f"{PATH}/providers")
        now = now_of(request)
        terms = self._terms
        shown = overview.read(self._store, terms.here, terms.crawls_expected, terms.troubles, now)
        return page("Overview", overview.body(shown, now), whose)

    def find(self, request: Request, whose: Visitor, values: Values) -> Response:
        """Go to a provider, a URL, or what is found."""
        del whose, values
        text = request.query_params.get("q", "").strip()[:FIND_MAX]
        return to(found_at(text, texts=self._index is not None))

    def search(self, request: Request, whose: Visitor, values: Values) -> Response:
        """Show providers and texts that have some words; without an index there is no such page."""
        del values
        if self._index is None:
            raise NoSuchPage
        text = request.query_params.get("q", "").strip()[:FIND_MAX]
        wanted = provider_list.asked({"q": text}, whose.user, now_of(request))
        few = replace(wanted, limit=search_page.PROVIDERS + 1)
        with self._store.read() as tx:
            head = head_of(tx)
            providers = rows_in(tx).provider_page(few) if text else []
        found = search_page.read(self._store, self._index, text, head, whose.user)
        return page("Search", search_page.body(text, found, providers, head, whose.user), whose)

    def providers(self, request: Request, whose: Visitor, values: Values) -> Response:
        """List providers."""
        del values
        now = now_of(request)
        wanted = provider_list.asked(request.query_params, whose.user, now)
        with self._store.read() as tx:
            listed = provider_list.read(tx, wanted)
        return page("Providers", provider_list.body(listed, wanted, now, self._terms.zone), whose)

    def provider(self, request: Request, whose: Visitor, values: Values) -> Response:
        """Show a provider."""
        del values
        now, pid = now_of(request), _seen(request, whose)
        with self._store.read() as tx:
            found = provider_page.read(tx, pid, now)
        body = _done(request) + provider_page.body(found, whose, now, self._terms.zone)
        return page(provider_page.title(found.provider), body, whose)

    def held(self, request: Request, whose: Visitor, values: Values) -> Response:
        """Show the held removals of a provider, to be confirmed."""
        del values
        pid = _seen(request, whose)
        if not whose.user.may(Action.CONFIRM_REMOVALS):
            raise NotForYou(Action.CONFIRM_REMOVALS)
        with self._store.read() as tx:
            one = find(tx, pid)
            rows = tx.cached(tx.held(pid, provider_page.HELD_SHOWN))
        body = provider_page.held_body(one, list(rows.values()), whose)
        return page(f"Held removals of provider {pid}", body, whose)

    def doer(self, action: Action) -> Handler:
        """Return what carries an action out."""

        def do(request: Request, whose: Visitor, values: Values) -> Response:
            pid = _seen(request, whose)
            if not whose.user.may(action):
                raise NotForYou(action)
            count = self._actions.do(Wish(whose.user, action, pid, values, now_of(request)))
            return to(f"{PATH}/providers/{pid}?done={action}&count={count}")

        return do

    def url(self, request: Request, whose: Visitor, values: Values) -> Response:
        """Show what is known of a URL."""
        del values
        url = request.query_params.get("url", "").strip()[:URL_MAX]
        form = find_form(url if url.isprintable() else "")
        if not url:
            return page("Find a URL", form, whose)
        found = url_page.read(self._store, url, self._surroundings(request), whose.user)
        title = f"URL: {shown(url)}"
        if not found:
            told = html.alert(url_page.where(self._store, url, whose.user))
            return page(title, form + told, whose, HTTPStatus.NOT_FOUND)
        return page(title, form + url_page.body(found, now_of(request)), whose)

    def text(self, request: Request, whose: Visitor, values: Values) -> Response:
        """Show the text of a document, or of an earlier content."""
        del values
        url, contents, place = self._content(request, whose)
        text = content_page.text_of(contents[place], lcc_of(request).open)
        return page("Text", content_page.text_body(url, contents[place], text), whose)

    def compared(self, request: Request, whose: Visitor, values: Values) -> Response:
        """Show what the content behind an earlier one changed."""
        del values
        url, contents, place = self._content(request, whose)
        opened = lcc_of(request).open
        old, new = contents[place], contents[max(place - 1, 0)]
        texts = content_page.text_of(old, opened), content_page.text_of(new, opened)
        return page("What changed", content_page.changes_body(url, old, texts), whose)

    def content(self, request: Request, whose: Visitor, values: Values) -> Response:
        """Show a content as it is stored: its characters, or a picture."""
        del values
        url, contents, place = self._content(request, whose)
        stored = stored_page.read(contents[place], lcc_of(request).open)
        return page("Content", stored_page.body(url, contents[place], stored), whose, pictures=True)

    def picture(self, request: Request, whose: Visitor, values: Values) -> Response:
        """Return a picture itself."""
        del values
        _, contents, place = self._content(request, whose)
        return stored_page.picture(contents[place], lcc_of(request).open)

    def links_to(self, request: Request, whose: Visitor, values: Values) -> Response:
        """Show pages that link to a URL, of one provider, or of all to who sees all."""
        del values
        query, sees_all = request.query_params, whose.user.pids is None
        pid = number(query["pid"]) if query.get("pid") else None
        if not (sees_all if pid is None else whose.user.sees(pid)):
            raise NoSuchProvider(pid or 0)
        url, after = query.get("url", "").strip()[:URL_MAX], query.get("after", "")
        if not url or not (after == "" or _DOCID.fullmatch(after)):
            raise NoSuchPage
        asked = links_in.Asked(url, pid, bytes.fromhex(after))
        with self._store.read() as tx:
            found = links_in.read(tx, asked)
        return page("Pages that link to a URL", links_in.body(asked, found, sees_all=sees_all), whose)

    def _content(self, request: Request, whose: Visitor) -> tuple[str, list[Version], int]:
        docid, seq = str(request.path_params["docid"]), request.query_params.get("version")
        if not _DOCID.fullmatch(docid):
            raise NoSuchPage
        with self._store.read() as tx:
            url, contents = content_page.contents_of(tx, docid, whose.user)
        return url, contents, content_page.place_of(contents, number(seq) if seq else None)

    def _surroundings(self, request: Request) -> Surroundings:
        running = bool(running_workers(self._terms.here.data_dir))
        return Surroundings(lcc_of(request).now(), self._terms.zone, running, paced=self._terms.paced)

    def workers(self, request: Request, whose: Visitor, values: Values) -> Response:
        """Show the crawl processes; for who sees some providers only there is no such page."""
        del values
        if whose.user.pids is not None:
            raise NoSuchPage
        now = now_of(request)
        return page("Workers", workers.body(workers.read(self._store, self._terms.here, now), now), whose)

    def newest(self, request: Request, whose: Visitor, values: Values) -> Response:
        """Show the newest changes; a script adds what comes."""
        del request, values
        with self._store.read() as tx:
            after = tx.peek(FEED)
            found = rows_in(tx).newest_changes(after, changes.LIMIT, changes.AMONG, whose.user.pids)
        return page("Changes", changes.body(found, after), whose, live=True)

    def audit(self, request: Request, whose: Visitor, values: Values) -> Response:
        """Show who did what; provider-owners see what concerns their providers."""
        del values
        before = number(request.query_params.get("before", str(NUMBER_MAX)), 19)
        with self._store.read() as tx:
            found = tx.audits(before, audit_log.LIMIT + 1, whose.user.pids)
        return page("Audit log", audit_log.body(found), whose)


def found_at(text: str, *, texts: bool = False) -> str:
    """Return the page that a search is for: of a provider's number, a URL, a docid, or else a list.

    ``texts``: those of documents are searched too.
    """
    if text.isascii() and text.isdigit() and len(text) <= DIGITS_MAX:
        return f"{PATH}/providers/{int(text)}"
    if "://" in text or _DOCID.fullmatch(text):
        return f"{PATH}/urls?{urlencode({'url': text})}"
    return f"{PATH}/{'search' if texts else 'providers'}?{urlencode({'q': text})}"


def _seen(request: Request, whose: Visitor) -> int:
    """Return the provider that a path names; for who may not see it there is none."""
    pid = number(str(request.path_params["number"]))
    if not whose.user.sees(pid):
        raise NoSuchProvider(pid)
    return pid


def _done(request: Request) -> Markup:
    """Say what was done just now; of what an address tells, nothing else is repeated."""
    action, count = request.query_params.get("done", ""), request.query_params.get("count", "")
    if action not in set(Action) or not (count.isascii() and count.isdigit() and len(count) <= DIGITS_MAX):
        return Markup("")
    many = f": {plain(int(count))} URLs" if action in {Action.RETRY, Action.CONFIRM_REMOVALS} else ""
    return html.good(f"Done: {action}{many}")
