"""Contents of documents as pages: their text, and what changed. Nothing of a site's markup gets here."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import IO

from markupsafe import Markup

from lcc_scrapy.apps.dashboard.layout import link, link_to_url, shown
from lcc_scrapy.db.tx import Tx
from lcc_scrapy.domain.cache import CachedUrl
from lcc_scrapy.domain.changes import changes_between, sentences_of
from lcc_scrapy.domain.entries import plain_mimetype
from lcc_scrapy.domain.shown import moment, number
from lcc_scrapy.domain.users import User
from lcc_scrapy.domain.versions import Version, version_of
from lcc_scrapy.feed.content import ContentGone, ContentLost
from lcc_scrapy.feed.plain_text import Paragraphs, html_of, paragraphs_of_html

READ = 500_000
"""Bytes of a content that are read."""

SHOWN = 40_000
"""Characters of a text that are shown."""

Open = Callable[[CachedUrl | Version], IO[bytes]]


def contents_of(tx: Tx, docid: str, user: User) -> tuple[str, list[Version]]:
    """Return a document's URL with its contents, newest first; raises ``ContentGone``.

    For who may not see its provider there is none.
    """
    key = bytes.fromhex(docid)
    row, gone = tx.cached([key]).get(key), tx.tombstones([key]).get(key)
    at = row or gone
    found = [*([version_of(row, 0)] if row else []), *tx.versions([key]).get(key, [])]
    if at is None or not found or not user.sees(at.pid):
        raise ContentGone(f"there is no content of document {docid}")
    return at.furl, found


def place_of(contents: list[Version], seq: int | None) -> int:
    """Return which of the contents has a ``seq``, None = the newest; raises ``ContentGone``."""
    found = (place for place, one in enumerate(contents) if seq in {None, one.seq})
    place = next(found, None)
    if place is None:
        raise ContentGone(f"there is no version {seq} of this document: it is not kept, or never was there")
    return place


@contextmanager
def opening(one: Version, opened: Open) -> Iterator[IO[bytes]]:
    """Open a content; raises ``ContentLost`` where reading fails, as with object storage that is away."""
    try:
        with opened(one) as content:
            yield content
    except OSError as error:
        raise ContentLost(f"the content of document {one.docid} cannot be read now: {error}") from None


def text_of(one: Version, opened: Open) -> Paragraphs | None:
    """Return the text of a content; None = it has none."""
    with opening(one, opened) as content:
        page = html_of(content, plain_mimetype(one.served_type), one.served_charset, READ)
    return None if page is None else paragraphs_of_html(page)


def text_body(url: str, one: Version, text: Paragraphs | None) -> Markup:
    """Return the page of a text."""
    if text is None:
        return head(url, one) + Markup("<p>It has no text: it is {}.</p>").format(shown(one.served_type))
    whole = "\n".join(map(shown, text.paragraphs))
    cut = (
        Markup("<p>This is the beginning.</p>")
        if len(whole) > SHOWN or one.fetched_len > READ
        else Markup("")
    )
    title = Markup("<p><b>{}</b></p>").format(shown(text.title)) if text.title else Markup("")
    return head(url, one) + title + Markup("<pre>{}</pre>").format(whole[:SHOWN]) + cut


def changes_body(url: str, old: Version, texts: tuple[Paragraphs | None, Paragraphs | None]) -> Markup:
    """Return the page of what the next content changed."""
    before, after = (sentences_of(one.paragraphs) if one else [] for one in texts)
    found = changes_between(before, after)
    if found is None:
        return head(url, old) + Markup("<p>The next content has the same sentences.</p>")
    lines = Markup("\n").join(map(_line, found.diff.splitlines()))
    cut = Markup("<p>This is the beginning.</p>") if found.cut else Markup("")
    return head(url, old) + Markup("<pre>{}</pre>").format(lines) + cut


def head(url: str, one: Version, what: str = "text") -> Markup:
    """Return what is told above a content; ``what`` is the page of the newest one."""
    until = f", replaced {moment(one.replaced_time)}" if one.replaced_time else ""
    told = f"fetched {moment(one.fetched_time)}{until}, {number(one.fetched_len)} bytes"
    here = f"/dashboard/urls/{one.docid}"
    return Markup("<p>{}</p><p>{}, change {} {}</p>").format(
        link_to_url(url), told, one.seq, link(f"{here}/{what}", "Newest")
    )


def _line(text: str) -> Markup:
    tag = {"+": "ins", "-": "del"}.get(text[:1])
    if tag is None:
        return Markup("{}").format(shown(text))
    return Markup("<{0}>{1}</{0}>").format(Markup(tag), shown(text))  # noqa: S704 - of our own
