"""First steps of the pipe: content is decoded; links, markup, scripts go; references become characters."""

from io import BytesIO

from lcc_scrapy.feed.plain_text import Paragraphs, html_of, paragraphs_of_html


def text_of(body: bytes, mimetype: str, charset: str, *, link_texts: bool = True) -> Paragraphs | None:
    """Return title and paragraphs of a page; None = it is no text.

    ``body`` without content coding; ``charset`` as the site said, "" = it did not. ``link_texts``: what links
    show stays; their markup always goes.
    """
    page = html_of(BytesIO(body), mimetype.partition(";")[0].strip().lower(), charset)
    return None if page is None else paragraphs_of_html(page, link_texts=link_texts)
