"""Subscribing: a source's hub is asked to tell of changes, before the subscription that there is ends."""

from dataclasses import dataclass

from lcc_scrapy.apps.sources import websub
from lcc_scrapy.apps.sources.registry import Registry
from lcc_scrapy.apps.sources.rules import Source
from lcc_scrapy.apps.sources.running import Run
from lcc_scrapy.domain.errors import LccError, UrlRefused
from lcc_scrapy.domain.references import http_url
from lcc_scrapy.domain.roots import HttpUrl
from lcc_scrapy.kit.fetching import REDIRECTS, CannotFetch, Fetcher, Whose, joined
from lcc_scrapy.kit.work import Work

ANSWER_MAX = 100_000
"""Bytes of a hub's answer that are read."""

_FORM = [("Content-Type", "application/x-www-form-urlencoded")]
_SAME_METHOD = frozenset({307, 308})


@dataclass(frozen=True, slots=True)
class Subscriber:
    """Asks hubs. ``public_url`` is where they reach this LCC; empty = nowhere, so that nothing is asked."""

    registry: Registry
    work: Work
    fetcher: Fetcher
    public_url: str

    async def renew(self, run: Run, now: int) -> None:
        """Subscribe as the file says that was just read, unless that holds for long; notes what is wrong."""
        if not self.public_url:
            run.report.note("LCC_PUBLIC_URL is not set: no hub is asked, the feed is looked at only")
            return
        topic = _usable(run.topic, run.base) or run.source.url
        usable = dict.fromkeys(hub for hub in (_usable(one, run.base) for one in run.hubs) if hub)
        hubs = sorted(usable, key=lambda hub: hub != run.source.hub)  # the one that knows us comes first
        if not hubs:
            run.report.note("it names no hub: it is looked at only")
        for hub in hubs:
            try:
                await self._subscribe(run, hub, topic, now)
            except LccError as error:
                run.report.note(f"hub {hub}: {error}")
            else:
                return

    async def _subscribe(self, run: Run, hub: str, topic: str, now: int) -> None:
        source = await self.work(self.registry.get, run.source.sourceid)
        if websub.needs_subscription(source, hub, topic, now):
            source = await self.work(self.registry.prepared, source.sourceid, hub, topic)
            await self.ask(source, websub.SUBSCRIBE, run.whose)

    async def ask(self, source: Source, mode: str, whose: Whose) -> None:
        """Send a request to a source's hub, which verifies it at the callback; raises ``CannotFetch``."""
        hubs = Whose(whose.hosts, whose.private, anywhere=True, pid=whose.pid)
        url, data = HttpUrl.parse(source.hub), websub.form(source, self.public_url, mode)
        for _ in range(REDIRECTS + 1):
            with await self.fetcher.ask(url, hubs, _FORM, data=data, most=ANSWER_MAX) as answer:
                if 200 <= answer.status < 300:  # noqa: PLR2004
                    return
                if answer.status not in _SAME_METHOD:
                    said = b"".join(answer.pieces())[:100].decode("utf-8", "replace")
                    raise CannotFetch(f"it answers {answer.status} {said}".strip())
                url = joined(url, answer.header(b"location"))
        raise CannotFetch(f"more than {REDIRECTS} redirects")


def _usable(written: str, base: str) -> str:
    try:
        return str(http_url(written, base)) if written else ""
    except UrlRefused:
        return ""
