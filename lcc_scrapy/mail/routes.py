"""The page behind the link in a mail: GET shows a button, POST unsubscribes (RFC 8058 posts without a page).

A GET changes nothing: programs that look for viruses open every link of a mail.
"""

from html import escape
from typing import Annotated

from fastapi import APIRouter, Query
from fastapi.responses import HTMLResponse

from lcc_scrapy.domain.errors import StoreUnavailable
from lcc_scrapy.mail.unsubscribing import PATH, Subscribers, Unsubscribing

TOKEN_MAX = 80

_HEADERS = {
    "Content-Security-Policy": "default-src 'none'; style-src 'unsafe-inline'; form-action 'self';"
    " frame-ancestors 'none'",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    "Cache-Control": "no-store",
}
_STYLE = "body{font:16px/1.5 sans-serif;max-width:40em;margin:2em auto;padding:0 1em}button{font:inherit}"
_UNKNOWN = "This link is not valid. Please take the whole link of the newest mail, or ask the operator."

Given = Annotated[str, Query(alias="t", max_length=TOKEN_MAX)]


def make_router(service: Unsubscribing) -> APIRouter:
    """Return the route ``/mail/unsubscribe``."""
    router = APIRouter()

    @router.get(PATH, include_in_schema=False)
    def ask(token: Given = "") -> HTMLResponse:
        """Show what the button does."""
        try:
            found = service.find(token)
        except StoreUnavailable:
            return _later()
        return _page(_question(*found, token), 200) if found else _page(_UNKNOWN, 404)

    @router.post(PATH, include_in_schema=False)
    def end(token: Given = "") -> HTMLResponse:
        """End the mail."""
        try:
            ended = service.end(token)
        except StoreUnavailable:
            return _later()
        return _page("Done: you get no more mail from this cache.", 200) if ended else _page(_UNKNOWN, 404)

    return router


def _question(kind: Subscribers, number: int, token: str) -> str:
    return (
        f"Press the button, and {kind.name} {number} gets no more mail about {kind.about}.</p>"
        f'<form method="post" action="?t={escape(token)}"><button>Unsubscribe</button></form><p>'
    )


def _later() -> HTMLResponse:
    return _page("The cache is off-line for a moment. Please try again in some minutes.", 503)


def _page(text: str, status: int) -> HTMLResponse:
    whole = (
        '<!doctype html><html lang="en"><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width"><title>Mail of a Local Content Cache</title>'
        f"<style>{_STYLE}</style><h1>Mail of a Local Content Cache</h1><p>{text}</p></html>"
    )
    return HTMLResponse(whole, status, _HEADERS)
