"""The frame of the pages of registration."""

from collections.abc import Mapping

from fastapi.responses import HTMLResponse
from markupsafe import Markup

from lcc_scrapy.web import html

_NAV = Markup(
    '<a href="/register">Register a site</a><a href="/register/activate">The file is there</a>'
    '<a href="/register/root">Another folder</a><a href="/register/password">Lost password</a>'
)


def page(
    title: str, body: Markup, status: int = 200, headers: Mapping[str, str] | None = None
) -> HTMLResponse:
    """Return a page."""
    return html.page(title, body, _NAV, status, headers)
