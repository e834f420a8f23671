"""Pages for people: plain HTML, no script. ``Markup.format`` escapes whatever is put in."""

from base64 import b64encode
from collections.abc import Iterable, Mapping
from hashlib import sha256

from fastapi.responses import HTMLResponse
from markupsafe import Markup

_STYLE = (
    "body{font:1rem/1.5 sans-serif;max-width:40em;margin:1.5em auto;padding:0 1em;color:#111;background:#fff}"
    "label{display:block;margin-top:1em;font-weight:bold}"
    "input[type=text],input[type=password],input[type=email]{width:100%;box-sizing:border-box;"
    "font:inherit;padding:.4em;border:1px solid #555}"
    "small{display:block;color:#444}code,pre{font-family:monospace;overflow-wrap:anywhere}"
    "pre{background:#f2f2f2;padding:.6em;white-space:pre-wrap;font-size:.85em}"
    "button{font:inherit;margin-top:1.2em;padding:.5em 1.2em}"
    ".alert{border-left:.4em solid #b00020;padding:.3em .8em;background:#fdecee}"
    ".good{border-left:.4em solid #0a6b2d;padding:.3em .8em;background:#e9f6ec}"
    "hr{margin-top:1.5em}nav a{display:inline-block;margin-right:1em}"
    ":focus-visible{outline:3px solid #0050c8;outline-offset:2px}"
    "textarea,select,input[type=number]{width:100%;box-sizing:border-box;font:inherit;padding:.4em;"
    "border:1px solid #555}textarea{font-family:monospace;font-size:.9em}"
    "article{border-top:1px solid #bbb;padding-top:.6em;margin-top:1.2em}"
    "h2{font-size:1.15em;margin:.4em 0;overflow-wrap:anywhere}p{overflow-wrap:anywhere}"
    "mark{background:#ffe680;color:#111}ins{color:#0a6b2d}del{color:#b00020}"
    "pre ins,pre del{text-decoration:none}"
    ".facts{color:#444;font-size:.85em;margin:.2em 0}form.inline{display:inline-block;margin-right:.8em}"
    "table{border-collapse:collapse;width:100%}td:first-child{overflow-wrap:anywhere}"
    "th,td{text-align:left;vertical-align:top;padding:.3em .8em .3em 0}tr{border-bottom:1px solid #bbb}"
    "td+td,th+th{white-space:nowrap}form+h2{margin-top:1.6em}"
    "@media(max-width:40em){thead{display:none}td{display:inline-block}td:first-child{display:block}"
    "td+td::before{content:attr(title)' '}}"
    "form.inline button{margin-top:.4em;padding:.3em .8em}summary{cursor:pointer;margin-top:.4em}"
)
_PAGE = Markup(
    '<!doctype html><html lang="en"><head><meta charset="utf-8">'
    '<meta name="viewport" content="width=device-width, initial-scale=1"><title>{title}</title>'
    "<style>{style}</style></head><body><main><h1>{title}</h1>{body}</main>"
    "<hr><nav>{nav}</nav></body></html>"
)
_FIELD = Markup(
    '<label for="{name}">{label}</label>'
    '<input id="{name}" name="{name}" type="{kind}" value="{value}" aria-describedby="{name}-note"'
    ' autocomplete="off"{more}><small id="{name}-note">{note}</small>'
)
_LINES = Markup(
    '<label for="{name}">{label}</label>'
    '<textarea id="{name}" name="{name}" rows="{rows}" aria-describedby="{name}-note">\n{value}</textarea>'
    '<small id="{name}-note">{note}</small>'
)
_CHOICE = Markup(
    '<label for="{name}">{label}</label>'
    '<select id="{name}" name="{name}" aria-describedby="{name}-note">{options}</select>'
    '<small id="{name}-note">{note}</small>'
)
_HIDDEN = Markup('<input type="hidden" name="{name}" value="{value}">')
_CHECK = Markup(
    '<label><input type="checkbox" name="{name}" value="yes"{checked}> {label}</label><small>{note}</small>'
)
_BUTTON = Markup(
    '<form class="inline" method="post" action="{action}">{fields}'
    '<button type="submit">{label}</button></form>'
)
_FORM = Markup('<form method="post" action="{action}">{fields}<button type="submit">{button}</button></form>')


class Layout:
    """How pages look: ``style`` is CSS, ``frame`` is HTML with {title}, {style}, {body} and {nav}.

    Both are of our own. ``sources`` is what else than this style the pages may load: "img-src 'self'".
    """

    def __init__(self, style: str, frame: Markup, sources: str = "") -> None:
        self._style = Markup(style)  # noqa: S704 - of our own
        self._frame = frame
        policy = f"default-src 'none'; style-src '{_source(style)}'; {sources and f'{sources}; '}"
        self._headers = {
            "Content-Security-Policy": f"{policy}form-action 'self'; base-uri 'none'; frame-ancestors 'none'",
            "Cache-Control": "no-store",
            # with no-referrer, browsers would not say where a form comes from
            "Referrer-Policy": "same-origin",
        }

    def page(
        self,
        title: str,
        body: Markup,
        nav: Markup,
        status: int = 200,
        headers: Mapping[str, str] | None = None,
    ) -> HTMLResponse:
        """Return a page."""
        made = self._frame.format(title=title, style=self._style, body=body, nav=nav)
        return HTMLResponse(str(made), status, {**self._headers, **(headers or {})})


def _source(text: str) -> str:
    """Return how a policy names a style or script that stands in the page."""
    return f"sha256-{b64encode(sha256(text.encode()).digest()).decode()}"


_LAYOUT = Layout(_STYLE, _PAGE)


def page(
    title: str, body: Markup, nav: Markup, status: int = 200, headers: Mapping[str, str] | None = None
) -> HTMLResponse:
    """Return a page; ``nav`` stands at its end."""
    return _LAYOUT.page(title, body, nav, status, headers)


def paragraph(text: str, **values: object) -> Markup:
    """Return a paragraph; ``text`` is HTML of our own, what is put into it is escaped."""
    return Markup("<p>") + Markup(text).format(**values) + Markup("</p>")  # noqa: S704 - of our own


def alert(text: str) -> Markup:
    """Return a line that says what went wrong; screen readers say it at once."""
    return Markup('<p class="alert" role="alert">{}</p>').format(text[:1].upper() + text[1:])


def good(text: str) -> Markup:
    """Return a line that says what went well."""
    return Markup('<p class="good" role="status">{}</p>').format(text)


def literal(text: str) -> Markup:
    """Return text to be copied as it is."""
    return Markup("<pre>{}</pre>").format(text)


def items(parts: Iterable[Markup]) -> Markup:
    """Return a numbered list."""
    inside = Markup("").join(Markup("<li>{}</li>").format(part) for part in parts)
    return Markup("<ol>{}</ol>").format(inside)


def field(
    name: str, label: str, note: str, value: str = "", *, kind: str = "text", required: bool = False
) -> Markup:
    """Return a field with its label and a line that says what to write."""
    more = Markup(" required") if required else Markup("")
    return _FIELD.format(name=name, label=label, note=note, value=value, kind=kind, more=more)


def number(name: str, label: str, note: str, value: int, *, least: int, most: int) -> Markup:
    """Return a field for a whole number."""
    more = Markup(' min="{}" max="{}"').format(least, most)
    return _FIELD.format(name=name, label=label, note=note, value=value, kind="number", more=more)


def lines(name: str, label: str, note: str, value: str = "", rows: int = 5) -> Markup:
    """Return a field for several lines."""
    return _LINES.format(name=name, label=label, note=note, value=value, rows=rows)


def choice(name: str, label: str, note: str, options: Mapping[str, str], chosen: str) -> Markup:
    """Return a list of which one is chosen; ``options`` are values with what they are called."""
    each = Markup("").join(
        Markup('<option value="{}"{}>{}</option>').format(
            value, Markup(" selected") if value == chosen else Markup(""), called
        )
        for value, called in options.items()
    )
    return _CHOICE.format(name=name, label=label, note=note, options=each)


def hidden(name: str, value: object) -> Markup:
    """Return a field that is sent back as it is."""
    return _HIDDEN.format(name=name, value=value)


def check(name: str, label: str, note: str, *, checked: bool) -> Markup:
    """Return a box to be ticked."""
    return _CHECK.format(
        name=name, label=label, note=note, checked=Markup(" checked") if checked else Markup("")
    )


def button(action: str, label: str, *fields: Markup) -> Markup:
    """Return a form that is a button only, beside others."""
    return _BUTTON.format(action=action, fields=Markup("").join(fields), label=label)


def form(action: str, button: str, *fields: Markup) -> Markup:
    """Return a form that is posted to this server."""
    return _FORM.format(action=action, button=button, fields=Markup("").join(fields))
