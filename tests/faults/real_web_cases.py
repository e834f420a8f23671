"""The cases of kinds 1 to 7, 15 and 19: what a site answers later, elsewhere or beside; and the list of all."""

import time
from collections.abc import Callable
from dataclasses import replace
from email.utils import formatdate
from functools import cache

from tests.faults.real_web_case import DATE, NEW, OLD, RETRIES, TAG, Case, moved, status
from tests.faults.real_web_site import Asked, End, Reply, page, raw
from tests.faults.real_web_types import types
from tests.faults.real_web_wire import wire


def no_conditions(asked: Asked, fresh: Reply) -> Reply:
    """Answer 304 to whatever condition, as a server does that compares dates."""
    conditional = {"if-none-match", "if-modified-since"} & asked.headers.keys()
    return page(b"", "304 Not Modified", "Content-Type:", "Content-Length:") if conditional else fresh


# --- 1: a site that lags behind its push --------------------------------------------------------------


def _lagging() -> list[Case]:
    def fresh(asked: Asked) -> Reply:
        return page(NEW if "no-cache" in asked.headers.get("cache-control", "") else OLD)

    def tagged(asked: Asked) -> Reply:
        same = asked.headers.get("if-none-match") == '"old"'
        return (
            page(b"", "304 Not Modified", TAG, "Content-Type:", "Content-Length:")
            if same
            else page(OLD, "200 OK", TAG)
        )

    old, new, picture = page(OLD), page(NEW), page(OLD, "200 OK", "Content-Type: image/png")
    cut = page(NEW[:50], length=len(NEW), end=End.CLOSE)
    declared = [
        Case("1", "old page, then the new one", "once", (old, new)),
        Case("1", "old page, then the new one", "twice", (old, old, new)),
        Case("1", "old page, then the new one", "the old one is held", (old, new), held=OLD),
        Case("1", "old page, then the new one", "304 while it is old", (tagged, tagged, new)),
        Case("1", "old page, then the new one", "only no-cache gets it", (fresh,)),
        Case("1", "another type, then the page", "nothing held", (picture, new)),
        Case("1", "another type, then the page", "a copy is held", (picture, new), held=OLD),
        Case("1", "empty page, then the page", "nothing held", (page(b""), new)),
        Case("1", "empty page, then the page", "a copy is held", (page(b""), new), held=OLD),
        Case("1", "cut page, then the page", "a copy is held", (cut, new), held=OLD),
        Case("1", "never what was declared", "nothing held", (old,), OLD, (608,), requests=RETRIES),
        Case("1", "never what was declared", "empty over a copy", (page(b""),), OLD, (608,), held=OLD, requests=RETRIES),
        Case("1", "never what was declared", "cut over a copy", (cut,), OLD, (614,), held=OLD),
        Case("1", "never what was declared", "always 304 to the old tag", (tagged,), OLD, (608,), requests=RETRIES),
    ]  # fmt: skip
    return [replace(case, declared=NEW, compared=False) for case in declared]


# --- 2: 404 right after a declaration -----------------------------------------------------------------


def _missing() -> list[Case]:
    found = []
    for line in ("404 Not Found", "410 Gone"):
        gone, code, group = status(line), int(line[:3]), f"{line[:3]}, then the page"
        found += [
            Case("2", group, "a new page", (gone, page(NEW))),
            Case("2", group, "a new page, twice", (gone, gone, page(NEW))),
            Case("2", group, "a copy is held", (gone, page(NEW)), held=OLD),
            Case("2", group, "without md5", (gone, page(NEW)), held=OLD, declared=None),
            Case("2", f"{code} for ever", "nothing held", (gone,), None, (code,), requests=RETRIES),
            Case(
                "2", f"{code} for ever", "a copy is held", (gone,), None, (code,), held=OLD, requests=RETRIES
            ),
        ]
    found.append(
        Case(
            "2",
            "451 is final at once",
            "a copy is held",
            (status("451 No"),),
            None,
            (451,),
            held=OLD,
            requests=1,
        )
    )
    return [replace(case, declared=None if "without" in case.name else NEW, compared=False) for case in found]


# --- 3: conditions and redirects ----------------------------------------------------------------------


def _conditions() -> list[Case]:
    held = page(OLD, "200 OK", TAG, DATE)

    def fresh(asked: Asked) -> Reply:
        return no_conditions(asked, page(NEW))

    def same(asked: Asked) -> Reply:
        known = asked.headers.get("if-none-match") == '"old"'
        return page(b"", "304 Not Modified", TAG, "Content-Type:", "Content-Length:") if known else page(NEW)

    group = "validators go to another URL"
    to_r1 = {"page.html": (moved("r1.html"),), "r1.html": (held,)}
    alone = {"page.html": (held,)}
    cases = [
        Case("3", group, "the redirect leads elsewhere", (moved("r2.html"),), earlier=to_r1, further={"r2.html": (fresh,)}),
        Case("3", group, "the redirect becomes a page", (fresh,), earlier=to_r1),
        Case("3", group, "the page becomes a redirect", (moved("r2.html"),), earlier=alone, further={"r2.html": (fresh,)}),
        Case("3", "the URL that gave them gets them", "by a redirect", (moved("r1.html"),), OLD, earlier=to_r1,
             further={"r1.html": (same,)}),
        Case("3", "the URL that gave them gets them", "directly", (same,), OLD, earlier=alone),
    ]  # fmt: skip
    return [replace(case, held=OLD, compared=False) for case in cases]


# --- 4: statuses 600 to 999 ---------------------------------------------------------------------------


def _statuses() -> list[Case]:
    return [
        Case(
            "4", "statuses 600 to 999", str(code), (status(f"{code} Strange"),), None, (500,), site="statuses"
        )
        for code in range(600, 1000)
    ]


# --- 5: the status decides, whatever the body does ----------------------------------------------------

DEFECTS: dict[str, Callable[[str], Reply]] = {
    "cut": lambda head: raw(f"{head}Content-Length: 99\r\n\r\nhalf".encode()),
    "cut chunks": lambda head: raw(f"{head}Transfer-Encoding: chunked\r\n\r\n5\r\nhe".encode()),
    "bad chunks": lambda head: raw(f"{head}Transfer-Encoding: chunked\r\n\r\nxyz\r\nhe".encode()),
    "no gzip": lambda head: raw(f"{head}Content-Encoding: gzip\r\nContent-Length: 5\r\n\r\nplain".encode()),
    "unknown coding": lambda head: raw(f"{head}Content-Encoding: exotic\r\nContent-Length: 5\r\n\r\nplain".encode()),
    "longer": lambda head: raw(f"{head}Content-Length: 2\r\n\r\nlonger".encode()),
    "stalls behind 100 kB": lambda head: raw(f"{head}Content-Length: 999999\r\n\r\n".encode() + b"x" * 100_000, 40.0),
}  # fmt: skip
STALLING = (302, 404, 410, 500)
"""Statuses of bodies that stall: each takes its time out where the body is waited for."""
REDIRECTS = (301, 302, 303, 307, 308)
ASK_AGAIN = (429, 503)
GIVEN_UP = {401: None, 403: None, 404: None, 410: None, 451: None}


def _bodies() -> list[Case]:
    found = []
    for number, defect in enumerate(DEFECTS):
        for code in range(300, 600):
            if code in ASK_AGAIN or (defect.startswith("stalls") and code not in STALLING):
                continue
            found.append(
                _of_a_status(code, defect, is_held=code in GIVEN_UP or code % len(DEFECTS) == number)
            )
        found += [_busy(code, defect) for code in ASK_AGAIN]
        found.append(
            Case(
                "5",
                "404 of robots.txt",
                defect,
                (page(NEW),),
                robots=(DEFECTS[defect]("HTTP/1.1 404 Not Found\r\n"),),
            )
        )
    return found


def _of_a_status(code: int, defect: str, *, is_held: bool) -> Case:
    reply = DEFECTS[defect](
        f"HTTP/1.1 {code} Status\r\n" + ("Location: /target.html\r\n" if code in REDIRECTS else "")
    )
    held = OLD if is_held and code != 304 else None
    if code in REDIRECTS:
        return Case("5", "redirect with a broken body", f"{code} {defect}", (reply,), held=held,
                    further={"/target.html": (page(NEW),)}, site=f"5 redirects {defect}")  # fmt: skip
    group = "3xx" if code < 400 else "4xx" if code < 500 else "5xx"
    told = 613 if code < 400 else code
    site = f"{code} {defect}" if defect.startswith("stalls") else f"5 {group} {defect}"
    kept = None if code in GIVEN_UP else held
    return Case(
        "5", f"{group} with a broken body", f"{code} {defect}", (reply,), kept, (told,), held=held, site=site
    )


def _busy(code: int, defect: str) -> Case:
    reply = DEFECTS[defect](f"HTTP/1.1 {code} Busy\r\nRetry-After: 2\r\n")
    return Case("5", "Retry-After of a broken 429 or 503", f"{code} {defect}", (reply, page(NEW)), gap=1.9,
                site=f"{code} {defect}", compared=False)  # fmt: skip


# --- 6: one broken URL among good ones ----------------------------------------------------------------


def _broken_host() -> list[Case]:
    broken = Case(
        "6", "the broken URL", "503", (status("503 Busy"),), None, (503,), site="one broken", compared=False
    )
    good = [
        Case(
            "6",
            "30 good URLs behind one with 503",
            f"{number}",
            (page(NEW),),
            site="one broken",
            compared=False,
        )
        for number in range(30)
    ]
    waits = status("503 Busy", "Retry-After: 3600")
    named = Case(
        "6", "Retry-After 1 h of one URL", "the good one", (page(NEW),), site="one waits", compared=False
    )
    return [
        broken,
        *good,
        replace(named, name="the waiting one", script=(waits,), group="", wants=None),
        named,
    ]


# --- 7: octets in Location ----------------------------------------------------------------------------


def _octets() -> list[Case]:
    found = []
    for octet in range(0x80, 0x100):
        char, code = chr(octet), f"%{octet:02X}"
        for where, mark in (("path", "caf"), ("query", "z?q=")):
            found.append(
                Case("7", f"octets 80 to FF in the {where} of Location", code, (moved(f"{mark}{char}.html"),), held=OLD,
                     further={f"{mark}{code}.html": (page(NEW),)})
            )  # fmt: skip
    text = "caf\u00e9".encode().decode("latin-1")
    found.append(
        Case(
            "7",
            "UTF-8 in Location",
            "path",
            (moved(f"{text}.html"),),
            further={"caf%C3%A9.html": (page(NEW),)},
        )
    )
    host = Case(
        "7",
        "a host in other octets than UTF-8",
        "Latin-1",
        (moved("http://b\xfccher.example/"),),
        OLD,
        (613,),
        held=OLD,
    )
    return [*found, replace(host, compared=False)]


# --- 15: a wall of cookies ----------------------------------------------------------------------------


def _walls() -> list[Case]:
    def behind(cookie: str, *lines: str, to: str = "page.html") -> Callable[[Asked], Reply]:
        def step(asked: Asked) -> Reply:
            if cookie in asked.headers.get("cookie", ""):
                return page(NEW)
            return page(b"", "302 Found", f"Location: {to}", *(lines or (f"Set-Cookie: {cookie}; Path=/",)))

        return step

    def two(asked: Asked) -> Reply:
        cookies = asked.headers.get("cookie", "")
        if "a=1" in cookies and "b=2" in cookies:
            return page(NEW)
        return page(
            b"",
            "302 Found",
            "Location: page.html",
            f"Set-Cookie: {'b=2' if 'a=1' in cookies else 'a=1'}; Path=/",
        )

    group = "a redirect to itself that sets a cookie"
    return [
        Case("15", group, "one", (behind("seen=yes"),)),
        Case("15", group, "without a path", (behind("seen=yes", "Set-Cookie: seen=yes"),)),
        Case("15", group, "HttpOnly, SameSite", (behind("seen=yes", "Set-Cookie: seen=yes; HttpOnly; SameSite=Lax; Path=/"),)),
        Case("15", group, "two, one after the other", (two,)),
        Case("15", group, "two at once", (behind("b=2", "Set-Cookie: a=1; Path=/", "Set-Cookie: b=2; Path=/"),)),
    ]  # fmt: skip


# --- 19 -----------------------------------------------------------------------------------------------


def _small() -> list[Case]:
    tag = '"' + "e" * 300 + '"'

    def whole(asked: Asked) -> Reply:
        condition = asked.headers.get("if-none-match", "")
        return status("500 Cut") if condition and condition != tag else page(NEW)

    def later(_asked: Asked) -> Reply:
        return status("503 Busy", f"Retry-After: {_asctime(4)}")

    def undated(_asked: Asked) -> Reply:
        return status("503 Busy", f"Retry-After: {formatdate(time.time() + 4, usegmt=True)}")

    long = {"page.html": (page(OLD, "200 OK", f"ETag: {tag}"),)}
    return [
        Case("19", "an ETag of 302 characters", "is not cut", (whole,), held=OLD, earlier=long, compared=False),
        Case("19", "Retry-After as a date", "asctime", (later, page(NEW)), gap=2.5, site="asctime", compared=False),
        Case("19", "Retry-After as a date", "without Date", (undated, page(NEW)), gap=2.5, site="undated", compared=False),
    ]  # fmt: skip


def _asctime(ahead: float) -> str:
    return time.asctime(time.gmtime(time.time() + ahead))


@cache
def cases() -> tuple[Case, ...]:
    parts = (
        _lagging,
        _missing,
        _conditions,
        _statuses,
        _bodies,
        _broken_host,
        _octets,
        types,
        wire,
        _walls,
        _small,
    )
    return tuple(case for part in parts for case in part())
