"""The cases of kinds 10 and 17: what Content-Type says, and where a reference leads."""

from tests.faults.real_web_case import NEW, OLD, Case, moved
from tests.faults.real_web_site import Reply, page, raw

# --- 10: Content-Type, by "extract a MIME type" of the Fetch Standard -----------------------------------

HTML = (
    "text/html",
    "TEXT/HTML",
    " text/html ",
    "text/html;",
    "text/html; charset=utf-8",
    "text/html;charset=utf-8;",
    'text/html; charset="utf-8"',
    'text/html; charset="utf-8',
    "text/html; charset",
    "text/html; =utf-8",
    "text/html;;;charset=utf-8",
    "text/html; charset=utf-8; charset=latin1",
    "text/html ;charset=utf-8",
    "text/html;\tcharset=utf-8",
    "text/html, text/html",
    "text/plain, text/html",
    "text/html, */*",
    "*/*, text/html",
    "nonsense, text/html",
    "text/html, nonsense",
    ", text/html",
    "text/html,",
    'text/plain;a=",", text/html',
    "text/html;(comment)",
    "text/html; charset=utf-8 (comment)",
)
NONE = (
    "",
    "html",
    "text",
    "/html",
    "text/",
    "text/html charset=utf-8",
    "text/html (comment)",
    '"text/html"',
    '"text/html";charset=utf-8',
    "text /html",
    "text/ html",
    "te(xt/html",
    "*/*",
    "text/html\u00e9",
    "<text/html>",
    "charset=utf-8",
    "@text/html",
)
PLAIN = ("text/plain", "text/html, text/plain", "text/plain;charset=utf-8, */*", "image/png, text/plain; x")
PDF = b"%PDF-1.7\n" + b"x" * 90


def _of_type(value: str, body: bytes = NEW) -> Reply:
    return page(body, "200 OK", f"Content-Type: {value}")


def _types() -> list[Case]:
    found = [
        Case("10", "read as text/html", repr(value), (_of_type(value),), stored_type="text/html")
        for value in HTML
    ]
    found += [
        Case(
            "10", "no valid type: the declared one", repr(value), (_of_type(value),), stored_type="text/html"
        )
        for value in NONE
    ]
    found += [
        Case("10", "another valid type is told", repr(value), (_of_type(value),), NEW, (607,))
        for value in PLAIN
    ]
    two = raw(
        b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Type: text/html\r\nContent-Length: %d\r\n\r\n"
        % len(NEW),
        NEW,
    )
    empty = raw(b"HTTP/1.1 200 OK\r\nContent-Type: \r\nContent-Length: %d\r\n\r\n" % len(NEW), NEW)
    sniffed = "no type, and HTML or PDF that is not declared"
    return [
        *found,
        Case("10", "read as text/html", "two fields, the last counts", (two,), stored_type="text/html"),
        Case("10", "no valid type: the declared one", "an empty field", (empty,), stored_type="text/html"),
        Case("10", "no valid type: the declared one", "PDF", (_of_type("", PDF),), PDF, mimetype="application/pdf",
             stored_type="application/pdf"),
        Case("10", sniffed, "HTML as PDF", (_of_type(""),), NEW, (607,), mimetype="application/pdf"),
        Case("10", sniffed, "PDF as HTML", (_of_type("", PDF),), PDF, (607,)),
    ]  # fmt: skip


# --- 17: references, by the URL Standard ----------------------------------------------------------------

REFERENCES = {
    "z.html": "/17/x//y/z.html",
    "./z.html": "/17/x//y/z.html",
    "../z.html": "/17/x//z.html",
    "../../z.html": "/17/x/z.html",
    "../../../../../z.html": "/z.html",
    "/17//z.html": "/17//z.html",
    "a//b/z.html": "/17/x//y/a//b/z.html",
    "a/..//z.html": "/17/x//y//z.html",
    "a/../z.html": "/17/x//y/z.html",
    "a/./z.html": "/17/x//y/a/z.html",
    "%2e%2E/z.html": "/17/x//z.html",
    ".%2e/z.html": "/17/x//z.html",
    "%2e/z.html": "/17/x//y/z.html",
    "?q": "/17/x//y/rel?q",
    "?": "/17/x//y/rel?",
    "z.html?a/../b": "/17/x//y/z.html?a/../b",
    "z.html#fragment": "/17/x//y/z.html",
    "z;a=b": "/17/x//y/z;a=b",
    "z.html;../y": "/17/x//y/z.html;../y",
    ":z": "/17/x//y/:z",
    "..\\z.html": "/17/x//z.html",
    "\\17\\z.html": "/17/z.html",
    "a\\z.html": "/17/x//y/a/z.html",
    " z.html ": "/17/x//y/z.html",
    "z%": "/17/x//y/z%",
    "z%zz": "/17/x//y/z%zz",
    "z z": "/17/x//y/z%20z",
    'z"z': "/17/x//y/z%22z",
    "z<z>": "/17/x//y/z%3Cz%3E",
    "z{z}": "/17/x//y/z%7Bz%7D",
    "z^z": "/17/x//y/z%5Ez",
    "z`z": "/17/x//y/z%60z",
    "z?q='": "/17/x//y/z?q=%27",
    "z\tz": "/17/x//y/zz",
    "..": "/17/x//",
    ".": "/17/x//y/",
    "a/..": "/17/x//y/",
}
"""By reference, on a page ``/17/x//y/rel``, the path that a browser asks for; every case has another number for x."""
ABSOLUTE = {
    "//HOST/17/abs/z.html": "/17/abs/z.html",
    "///HOST/17/abs/z2.html": "/17/abs/z2.html",
    "http:///HOST/17/abs/z3.html": "/17/abs/z3.html",
    "http:/17/abs/z4.html": "/17/abs/z4.html",
    "http:z.html": "/17/x//y/z.html",
    "\\\\HOST\\17\\abs\\z5.html": "/17/abs/z5.html",
    "http:\\\\HOST\\17\\abs\\z6.html": "/17/abs/z6.html",
    "http://HOST/17/root/../abs/z7.html": "/17/abs/z7.html",
    "http://HOST/17/abs/./z8.html": "/17/abs/z8.html",
    "HTTP://HOST/17/abs/z9.html": "/17/abs/z9.html",
}
"""The same where ``HOST`` is the site's own."""


def _references() -> list[Case]:
    found = []
    for group, refs in (("relative references", REFERENCES), ("absolute references", ABSOLUTE)):
        for number, (reference, path) in enumerate(refs.items()):
            folder = f"/17/{group[0]}{number}"
            found.append(
                Case("17", group, repr(reference), (moved(reference),), held=OLD, path=f"{folder}//y/rel",
                     further={path.replace("/17/x", folder): (page(NEW),)})
            )  # fmt: skip
    dots = "dot segments of an absolute Location"
    for number, reference in enumerate(
        ("http://HOST/17/in/a/../z.html", "http://HOST/17/out/../in/z.html", "../in/z.html")
    ):
        found.append(
            Case("17", dots, repr(reference), (moved(reference),), path="/17/in/page.html", root="/17/in/",
                 site=f"17 {dots} {number}", further={"/17/in/z.html": (page(NEW),)})
        )  # fmt: skip
    out = "http://HOST/17/in/../z.html"
    found.append(
        Case("17", "dot segments that leave the root", repr(out), (moved(out),), None, (605,), path="/17/in/page.html",
             root="/17/in/", site="17 out", further={"/17/z.html": (page(NEW),)}, compared=False)
    )  # fmt: skip
    return found


def types() -> list[Case]:
    return [*_types(), *_references()]
