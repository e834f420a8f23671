"""Settings of the browser that renders pages."""

from dataclasses import dataclass

from lcc_scrapy.domain import notations as read
from lcc_scrapy.domain.settings import LIVE, setting


def _hosts(text: str) -> tuple[str, ...]:
    hosts = read.words(text.lower())
    wrong = next((host for host in hosts if "/" in host or "**" in host), "")
    if wrong:
        raise ValueError(f"{wrong!r}, expected hosts such as cdn.example.net, *.example.org or *")
    return hosts


# fmt: off
@dataclass(frozen=True, slots=True)
class RenderRules:
    """Bounds of the browser; sizes in bytes, times in seconds."""

    browser: str = setting("LCC_RENDER_BROWSER", "", str.strip, "Chromium that [renders pages](rendering.md): a path. Empty = `chromium` or `google-chrome` of the system, else the one that Playwright installed.")
    sandbox: bool = setting("LCC_RENDER_SANDBOX", "yes", read.flag, "Whether Chromium keeps pages in its sandbox. It cannot where the crawl runs as root; `no` is for machines where nothing else is to be protected.")
    pages: int = setting("LCC_RENDER_PAGES", "2", read.at_least_one, "Pages that the browser of one crawl process renders at a time; others wait in their turns.", LIVE)
    seconds: float = setting("LCC_RENDER_SECONDS", "20s", read.duration, "How long a page may take to render. Then it is stored as it is by then.", LIVE)
    requests: int = setting("LCC_RENDER_REQUESTS", "100", read.whole, "Requests that one page may make of sites while it is rendered; further ones fail in the page.", LIVE)
    size: int = setting("LCC_RENDER_BYTES", "20M", read.size, "Bytes that one page may transfer while it is rendered; beyond that its requests fail. A rendition is at most LCC_MEMORY_BODY long.", LIVE)
    memory: int = setting("LCC_RENDER_MEMORY", "1G", read.size, "Memory that the process of one page may take, and the rest of the browser; then it is killed. The page is stored as served; others that were open are rendered again.", LIVE)
    cache: int = setting("LCC_RENDER_CACHE", "64M", read.size, "Scripts and style sheets that are kept in memory, so that pages of a provider need not fetch the same again; 0 = none.", LIVE)
    hosts: tuple[str, ...] = setting("LCC_RENDER_HOSTS", "", _hosts, "Hosts that pages may ask while they are rendered, besides those of their provider's roots: `cdn.example.net *.example.org`, `*` = all. Their robots.txt holds, and private addresses are never asked.", LIVE)
# fmt: on
