"""The cases of kinds 9, 13, 14 and 16: codings, ends and frames of answers, and bytes behind them."""

import gzip
import io
import tarfile
import zlib
from dataclasses import replace
from functools import cache

import brotli
from backports import zstd

from tests.faults.real_web_case import NEW, OLD, Case, moved
from tests.faults.real_web_site import End, Reply, page, raw

HTML = b"Content-Type: text/html\r\n"
OK = b"HTTP/1.1 200 OK\r\n" + HTML
LENGTH = b"Content-Length: %d\r\n" % len(NEW)
CHUNKED = b"Transfer-Encoding: chunked\r\n"
CHUNKS = b"%x\r\n%b\r\n0\r\n\r\n" % (len(NEW), NEW)
PACKED = gzip.compress(NEW, mtime=0)
HALVES = (NEW[: len(NEW) // 2], NEW[len(NEW) // 2 :])


# --- 9: content that is packed, and said to be so once too often ---------------------------------------


@cache
def archive() -> bytes:
    """Return a .tar.gz file."""
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w:gz") as tar:
        entry = tarfile.TarInfo("page.html")
        entry.size = len(NEW)
        tar.addfile(entry, io.BytesIO(NEW))
    return packed.getvalue()


PACKERS = {
    "gzip": gzip.compress,
    "x-gzip": gzip.compress,
    "deflate": zlib.compress,
    "br": brotli.compress,
    "zstd": zstd.compress,
}


def _codings() -> list[Case]:
    found = []
    for coding, pack in PACKERS.items():
        file = archive() if coding.endswith("gzip") else pack(NEW)
        reply = page(file, "200 OK", "Content-Type: application/gzip", f"Content-Encoding: {coding}")
        name = f"/9/{coding}/release.tar.gz"
        found.append(
            Case("9", "packed file declared as it is sent", coding, (reply,), file, declared=file, mimetype="application/gzip",
                 path=name)
        )  # fmt: skip
        usual = page(pack(NEW), "200 OK", f"Content-Encoding: {coding}")
        found.append(Case("9", "packed page declared as it is read", coding, (usual,), declared=NEW))
    plain = page(archive(), "200 OK", "Content-Type: application/x-gzip", "Content-Encoding: x-gzip")
    by_name = page(archive(), "200 OK", "Content-Type: application/octet-stream", "Content-Encoding: gzip")
    undeclared = "a .tar.gz of which nothing is declared"
    return [
        *found,
        Case("9", undeclared, "by type", (plain,), archive(), mimetype="application/x-gzip", path="/9/by-type/release"),
        Case("9", undeclared, "by name", (by_name,), archive(), mimetype="application/octet-stream",
             path="/9/by-name/release.tar.gz"),
    ]  # fmt: skip


# --- 13: TLS that ends without close_notify ------------------------------------------------------------


def _tls() -> list[Case]:
    half, whole = raw(OK, b"\r\n", HALVES[0], end=End.CUT), raw(OK, b"\r\n", NEW, end=End.CLOSE)
    ragged = raw(OK, b"\r\n", NEW, end=End.CUT)
    shorter = [raw(OK, b"\r\n", NEW[:size], end=End.CUT) for size in range(50, 90)]
    cases = [
        Case("13", "cut body without a length", "then whole", (half, whole)),
        Case("13", "cut body without a length", "a copy is held", (half, whole), held=OLD),
        Case("13", "cut body without a length", "never whole", tuple(shorter), OLD, (614,), held=OLD, compared=False),
        Case("13", "whole body, no close_notify", "as declared", (ragged,), declared=NEW, requests=1),
        Case("13", "whole body, no close_notify", "the same twice", (ragged,), requests=2),
        Case("13", "whole body, no close_notify", "with a length", (raw(OK, LENGTH, b"\r\n", NEW, end=End.CUT),), requests=1),
        Case("13", "whole body, no close_notify", "in chunks", (raw(OK, CHUNKED, b"\r\n", CHUNKS, end=End.CUT),), requests=1),
    ]  # fmt: skip
    return [replace(case, tls=True) for case in cases]


# --- 14: answers that all four others read -------------------------------------------------------------


def _head(*lines: bytes, start: bytes = b"HTTP/1.1 200 OK", body: bytes = NEW) -> bytes:
    return b"\r\n".join([start, b"Content-Type: text/html", *lines, b"", body])


CL = LENGTH.rstrip()
TE = CHUNKED.rstrip()
LENIENT: dict[str, bytes] = {
    "equal lengths": _head(CL, CL),
    "equal lengths in one field": _head(CL + b", %d" % len(NEW)),
    "length, then chunks": _head(CL, TE, body=CHUNKS),
    "chunks, then length": _head(TE, CL, body=CHUNKS),
    "chunks and a wrong length": _head(b"Content-Length: 3", TE, body=CHUNKS),
    "chunked twice": _head(TE, TE, body=CHUNKS),
    "chunked twice in one field": _head(TE + b", chunked", body=CHUNKS),
    "identity and a length": _head(b"Transfer-Encoding: identity", CL),
    "identity before chunked": _head(b"Transfer-Encoding: identity, chunked", body=CHUNKS),
    "empty length": _head(b"Content-Length:"),
    "length that is no number": _head(b"Content-Length: unknown"),
    "bytes behind the length": _head(CL, body=NEW + b"more"),
    "a line behind the length": _head(CL, body=NEW + b"\r\n"),
    "chunk lines with bare LF": _head(TE, body=CHUNKS.replace(b"\r\n", b"\n")),
    "blanks behind chunk sizes": _head(TE, body=CHUNKS.replace(b"\r\n", b"  \r\n", 1)),
    "empty chunk extension": _head(TE, body=CHUNKS.replace(b"\r\n", b";\r\n", 1)),
    "malformed trailers": _head(TE, body=CHUNKS[:-2] + b"no trailer\r\n\r\n"),
    "malformed line without a colon": _head(b"nonsense", CL),
    "line with a blank before its colon": _head(b"X-Made-By : hand", CL),
    "length with a blank before its colon": _head(b"Content-Length : %d" % len(NEW)),
    "line with an octet below 32": _head(b"X-Odd: a\x01b", CL),
    "line with an empty name": _head(b": nothing", CL),
    "line with a name of other octets": _head("Größe: 1".encode(), CL),
    "folded line": _head(b"X-Long: one\r\n two", CL),
    "300 fields": _head(*(b"X-Field-%d: value" % number for number in range(300)), CL),
    "a head of 200 kB": _head(*(b"X-Field-%d: %b" % (number, b"v" * 4000) for number in range(50)), CL),
    "two blanks behind the version": _head(CL, start=b"HTTP/1.1  200 OK"),
    "no blank behind the status": _head(CL, start=b"HTTP/1.1 200OK"),
    "small letters": _head(CL, start=b"http/1.1 200 OK"),
    "status line without a reason": _head(CL, start=b"HTTP/1.1 200"),
    "lines with bare LF": _head(CL).replace(b"\r\n", b"\n"),
    "100 with Connection: close": b"HTTP/1.1 100 Continue\r\nConnection: close\r\n\r\n" + _head(CL),
    "100 in HTTP/1.0": b"HTTP/1.0 100 Continue\r\n\r\n" + _head(CL),
    "gzip without its last 8 bytes": _head(b"Content-Encoding: gzip", body=PACKED[:-8]),
    "gzip without its last 8 bytes, with a length": _head(
        b"Content-Encoding: gzip", b"Content-Length: %d" % (len(PACKED) - 8), body=PACKED[:-8]
    ),
}
REFUSED: dict[str, bytes] = {
    "different lengths": _head(CL, b"Content-Length: 3"),
    "different lengths in one field": _head(CL + b", 3"),
    "a malformed line that names a framing": _head(b"Transfer-Encoding\x01: chunked", CL),
    "a malformed line that names a length": _head(b"x Content-Length 5", CL),
    "a malformed line that names a coding": _head(b"Content-Encoding gzip", CL, body=NEW),
    "gzip;q=1": _head(b"Content-Encoding: gzip;q=1", b"Content-Length: %d" % len(PACKED), body=PACKED),
    "gzip cut in its middle": _head(b"Content-Encoding: gzip", body=PACKED[: len(PACKED) // 2]),
    "chunks cut in their middle": _head(TE, body=CHUNKS[: len(CHUNKS) // 2]),
    "chunk without a size": _head(TE, body=b";\r\n" + CHUNKS),
    "chunk of negative size": _head(TE, body=b"-5\r\n" + CHUNKS),
}


def with_body(data: bytes, body: bytes) -> bytes:
    """Return one of these answers with another body, padded to the length of the usual one."""
    assert len(body) <= len(NEW)
    body = body.ljust(len(NEW))
    usual, packed = PACKED[:-8], gzip.compress(body, mtime=0)[:-8]
    return data.replace(usual, packed).replace(b"%d" % len(usual), b"%d" % len(packed)).replace(NEW, body)


def _lenient() -> list[Case]:
    group, robots = "odd answers that browsers read", "the same as robots.txt"
    found = [Case("14", group, name, (raw(data),)) for name, data in LENIENT.items()]
    for name, data in LENIENT.items():
        rules = raw(with_body(data, b"User-agent: *\nDisallow: /elsewhere/\n"))
        found.append(Case("14", robots, name, (page(NEW),), robots=(rules,), compared=False))
    return found + [
        Case(
            "14",
            "refused, for its end is not sure",
            name,
            (raw(data),),
            OLD,
            (614,),
            held=OLD,
            compared=False,
        )
        for name, data in REFUSED.items()
    ]


# --- 16: bytes behind an answer on a connection that is kept -------------------------------------------

WRONG = b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: 5\r\n\r\nwrong"
LATE = {
    "a page": WRONG,
    "half a page": WRONG[:-3],
    "an end of line": b"\r\n",
    "garbage": b"\x00garbage\r\n\r\n",
}
DELAYS = (0.0, 0.001, 0.002, 0.004, 0.02)


def _late() -> list[Case]:
    found = []
    for name, data in LATE.items():
        for delay in DELAYS:
            late = f"{name} {delay * 1000:.0f} ms late"
            redirect = moved("target.html")
            found += [
                Case("16", "page, then late bytes", late, (_behind(page(NEW), delay, data),), site="late"),
                Case("16", "redirect, then late bytes", late, (_behind(redirect, delay, data),), site="late",
                     further={"target.html": (page(NEW),)}),
                Case("16", "page behind late bytes", late, (page(NEW),), site="late"),
            ]  # fmt: skip
    return found


def _behind(reply: Reply, delay: float, data: bytes) -> Reply:
    return replace(reply, pieces=(*reply.pieces, delay, data) if delay else (reply.head + data,))


def wire() -> list[Case]:
    return [case for part in (_codings, _tls, _lenient, _late) for case in part()]
