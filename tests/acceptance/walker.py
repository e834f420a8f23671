"""A walk over a site by its links, of another make than the LCC's: html.parser and urllib, one page after the other."""

import urllib.error
import urllib.request
from dataclasses import dataclass, field
from html.parser import HTMLParser
from urllib.parse import quote, urldefrag, urljoin, urlsplit

PARTS = {"search", "stylesheet", "icon", "shortcut", "preload", "preconnect"}
"""Link elements that name parts of a page, not other pages."""


class Links(HTMLParser):
    """Collects where a page points."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[str] = []

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        said = {name: value or "" for name, value in attributes}
        if tag in {"a", "area"} and "nofollow" not in said.get("rel", ""):
            self.found.append(said.get("href", ""))
        elif tag in {"frame", "iframe"}:
            self.found.append(said.get("src", ""))
        elif tag == "link" and not PARTS & set(said.get("rel", "").lower().split()):
            self.found.append(said.get("href", ""))


@dataclass
class Walk:
    """``pages``: what was served, by URL, with its type; ``missing``: URLs that were not."""

    pages: dict[str, str] = field(default_factory=dict)
    missing: set[str] = field(default_factory=set)
    depths: dict[str, int] = field(default_factory=dict)


def walk(start: str, root: str) -> Walk:
    """Visit everything below ``root`` that can be reached from ``start``."""
    seen, done = [start], Walk(depths={start: 0})
    for url in seen:  # grows
        try:
            with urllib.request.urlopen(url, timeout=300) as answer:
                kind, body = answer.headers.get_content_type(), answer.read()
        except urllib.error.HTTPError:
            done.missing.add(url)
            continue
        done.pages[url] = kind
        if kind not in {"text/html", "application/xhtml+xml"}:
            continue
        parser = Links()
        parser.feed(body.decode("utf-8", "replace"))
        for href in parser.found:
            target = _absolute(url, href)
            if target.startswith(root) and target not in done.depths:
                done.depths[target] = done.depths[url] + 1
                seen.append(target)
    return done


def _absolute(base: str, href: str) -> str:
    if not href.strip() or href.startswith("#"):
        return ""
    url = urldefrag(urljoin(base, href.strip())).url
    parts = urlsplit(url)
    return parts._replace(path=quote(parts.path, safe="/%:=&?~+!$,;'@()*")).geturl()
