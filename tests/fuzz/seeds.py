"""Where fuzzing begins: valid inputs of every target."""

import gzip
import zlib
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import brotli

from lcc_scrapy.apps.query.wire import writing
from lcc_scrapy.apps.query.wire.messages import (
    Query,
    QueryRejected,
    Reached,
    ResultBegins,
    ResultEnds,
    Row,
    Wanted,
    What,
)
from lcc_scrapy.content.decoding import zstd
from lcc_scrapy.domain.cursor import Position
from lcc_scrapy.domain.entries import Declared, Operation, UrlEntry
from lcc_scrapy.machine.disk import FolderSync
from lcc_scrapy.uns.spool_file import SpoolHeader
from lcc_scrapy.uns.spool_writer import SpoolWriter
from tests.faults.streams import transcripts

URLS = (
    "http://www.example.org/dir/a?b=c#d", "https://www.example.org/dir/%64/..;x/%2e%2e/", "http://WWW.example.org:80/d%69r/é",
    "http://port.example.org:8080/a%20b/c", "http://[2001:db8::1]:80/x", "http://xn--bcher-kva.example/%C3%A9/y", "../x//y\\z",
    "//user:pw@www.example.org/dir/", "http://www.example.org\\@evil.example/dir/", "http://ｗｗｗ.example。org/dir/",
)  # fmt: skip
JSON_SETS = (
    b'{"set":"partial","urlprefix":"http://h/","urls":["a",{"c":"b","mtime":5,"md5":null}]}',
    b' {"set" : "full", "ifabsent": true, "urls" : [ ] } ',
    b'{"set":"full"}\n"http://h/a"\r\n\n{"curl":"b \\u00e4 \\"x\\"","op":"remove"}',
)
HTTP_ANSWERS = (
    b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: 4\r\n\r\nbody",
    b"HTTP/1.0 404 Not Found\r\nConnection: keep-alive\r\nContent-Length: 0\r\n\r\n",
    (b"HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\nHTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
    b"4;a=b\r\nbody\r\n0\r\nX-Sum: 1\r\n\r\n"),
    b"HTTP/1.1 200\nX: a\n  b\n\nuntil it is closed", b"HTTP/1.1 304 Not Modified\r\nContent-Length: 9\r\n\r\n",
)  # fmt: skip
NOTATIONS = (
    "mon-fri 20-06, !sat 12-14", "0-8", "!12-14", "01" * 12, str(Position("lcc", 1, 99)), "120", "User-agent: *\nDisallow: /a*b$\nAllow: /",
    "Sun, 06 Nov 1994 08:49:37 GMT\nSat, 21 Nov 2026 12:00:00 +0100",
)  # fmt: skip
QUERIES = (
    Query(),
    Query(
        token="lcc_x",
        since="abc",
        limit=3,
        wait=5,
        content=Wanted.INSIDE,
        mimetypes=("text/*",),
        subtypes=("\x01\\",),
    ),
    Query(
        What.ROWS,
        docids=("0" * 32, "f" * 32),
        providers=(7, 8),
        url_prefixes=("http://www.example.org/é?a&b",),
    ),
)
ANSWER = b"".join(
    (
        writing.begin(ResultBegins("an-lcc", "p")),
        writing.row(Row("upsert", {"docid": "0" * 32, "curl": "http://a/\x01\\"}, Wanted.INSIDE)),
        writing.content(b"some content" * 9),
        writing.content_end(),
        writing.row(Row("remove", {"docid": "1" * 32})),
        writing.reached(Reached("q")),
        writing.broken_off(QueryRejected(803, "later", 5)),
        writing.end(ResultEnds("q", 1, 1)),
    )
)


def spooled() -> bytes:
    entries = [
        UrlEntry(
            "http://a/b",
            "text/html",
            Operation.UPDATE,
            "http://a/b",
            None,
            "lang: nl",
            Declared(1, 2, "0" * 32),
        ),
        UrlEntry("http://a/é", "text/html", Operation.REMOVE),
        UrlEntry("http://a/c", "text/html", Operation.PRESENT),
    ]
    with TemporaryDirectory() as folder:
        writer = SpoolWriter(
            Path(folder) / "x.set", SpoolHeader(7, 3, 1), lambda _: None, 1 << 30, FolderSync(Path(folder))
        )
        for entry in entries:
            writer.add(entry)
        return writer.commit().read_bytes()


READERS = (
    "codec", "conversation", "json_set", "url", "spool_file", "content_coding", "notations", "query", "answer", "http_answer",
)  # fmt: skip
"""Targets that read something, in the order in which ``targets.cost`` counts them."""


def seeds(target: str) -> Iterator[bytes]:
    body = b"a body of some length, and more of it " * 9
    if target == "codec":
        yield from (b"\x07" + text for text in transcripts(7, "x"))
    elif target == "conversation":
        yield from (b"\x20\xff\0\0" + text for text in transcripts(7, "x"))
    elif target == "json_set":
        yield from (b"\x07" + text for text in JSON_SETS)
    elif target == "url":
        yield from (text.encode() for text in URLS)
    elif target == "query":
        yield from (b"\x06" + writing.query(one) for one in QUERIES)
    elif target == "answer":
        yield b"\x06" + ANSWER
    elif target == "http_answer":
        yield from (b"\x06" + stream for stream in HTTP_ANSWERS)
    elif target == "spool_file":
        yield spooled()
    elif target == "cost":
        for number, name in enumerate(READERS):
            yield from (bytes([number]) + data for data in seeds(name))
    elif target == "notations":
        yield from (text.encode() for text in NOTATIONS)
    else:
        coded = (gzip.compress(body) * 2, zlib.compress(body), brotli.compress(body), zstd.compress(body))
        yield from (bytes([number, 9]) + data for number, data in enumerate(coded))
