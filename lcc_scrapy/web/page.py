"""``/docs``: the OpenAPI description as a page, without script and without anything from elsewhere."""

from collections.abc import Iterator
from html import escape
from typing import Any

from fastapi import APIRouter, Request
from fastapi.responses import HTMLResponse

router = APIRouter()

_CSP = "default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'"
_STYLE = (
    "body{font:16px/1.5 sans-serif;max-width:60em;margin:2em auto;padding:0 1em}"
    "code,h2{font-family:monospace}table{border-collapse:collapse}"
    "td,th{border:1px solid #aaa;padding:.2em .6em;text-align:left;vertical-align:top}"
)


@router.get("/", include_in_schema=False)
@router.get("/docs", include_in_schema=False)
def page(request: Request) -> HTMLResponse:
    """Show the description of the API."""
    return HTMLResponse("".join(_lines(request.app.openapi())), headers={"Content-Security-Policy": _CSP})


def _lines(described: dict[str, Any]) -> Iterator[str]:
    info = described["info"]
    yield f'<!doctype html><html lang="en"><meta charset="utf-8"><title>{escape(info["title"])}</title>'
    yield f"<style>{_STYLE}</style><h1>{escape(info['title'])} {escape(info['version'])}</h1>"
    yield f'<p>{_prose(info["description"])} For programs: <a href="/openapi.json">openapi.json</a>.</p>'
    for path, operations in described["paths"].items():
        for method, operation in operations.items():
            yield from _operation(f"{method.upper()} {path}", operation)


def _operation(name: str, operation: dict[str, Any]) -> Iterator[str]:
    yield f"<h2>{escape(name)}</h2><p>{_prose(operation.get('description', ''))}</p>"
    parameters = operation.get("parameters", [])
    if parameters:
        rows = "".join(map(_row, parameters))
        yield f"<table><tr><th>parameter</th><th>in</th><th>meaning</th></tr>{rows}</table>"
    answers = operation["responses"].items()
    told = "; ".join(f"{status} {escape(answer['description'])}" for status, answer in answers)
    yield f"<p>Answers: {told}</p>"


def _row(parameter: dict[str, Any]) -> str:
    cells = (parameter["name"], parameter["in"], parameter.get("description", ""))
    return f"<tr>{''.join(f'<td>{_prose(cell)}</td>' for cell in cells)}</tr>"


def _prose(text: str) -> str:
    """Return text as HTML; what stands between backquotes is code."""
    parts = escape(text).split("`")
    return "".join(f"<code>{part}</code>" if number % 2 else part for number, part in enumerate(parts))
