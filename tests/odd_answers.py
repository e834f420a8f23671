"""Answers that browsers, curl, wget or Scrapy read although HTTP does not permit them, and some that nobody reads."""

import gzip
from collections.abc import Callable
from dataclasses import dataclass

OK = b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\n"
CHUNKED = OK + b"Transfer-Encoding: chunked\r\n\r\n"


@dataclass(frozen=True)
class Odd:
    """``wire`` makes the bytes of an answer around a body, ``length`` the length of the body on the wire."""

    wire: Callable[[bytes], bytes]
    length: Callable[[bytes], int] = len


def chunks(body: bytes, line: bytes = b"\r\n", extension: bytes = b"", trailers: bytes = b"") -> bytes:
    size = b"%x%b%b" % (len(body), extension, line)
    return size + body + line + b"0" + extension + line + trailers + line


def sized(fields: bytes = b"", start: bytes = OK) -> Odd:
    return Odd(lambda body: start + fields + b"Content-Length: %d\r\n\r\n" % len(body) + body)


def unsized(fields: bytes) -> Odd:
    return Odd(lambda body: OK + fields + b"\r\n" + body)


def chunked(fields: bytes) -> Odd:
    return Odd(lambda body: OK + fields + b"\r\n" + chunks(body))


def packed(missing: int) -> Odd:
    def cut(body: bytes) -> bytes:
        return gzip.compress(body, mtime=0)[:-missing]

    head = OK + b"Content-Encoding: gzip\r\nContent-Length: %d\r\n\r\n"
    return Odd(lambda body: head % len(cut(body)) + cut(body), lambda body: len(cut(body)))


TE = b"Transfer-Encoding: "

ODD_HEADS: dict[str, Odd] = {
    "equal lengths": Odd(lambda body: OK + b"Content-Length: %d\r\n" % len(body) * 2 + b"\r\n" + body),
    "a list of equal lengths": Odd(lambda body: OK + b"Content-Length: %d, %d\r\n\r\n" % (len(body), len(body)) + body),
    "equal lengths with zeros": Odd(lambda body: OK + b"Content-Length: %d,00%d\r\n\r\n" % (len(body), len(body)) + body),
    "a length beside chunks": chunked(b"Content-Length: 2\r\n" + TE + b"chunked\r\n"),
    "chunks beside a length": chunked(TE + b"chunked\r\nContent-Length: 2\r\n"),
    "unequal lengths beside chunks": chunked(TE + b"chunked\r\nContent-Length: 2\r\nContent-Length: 3\r\n"),
    "chunked in two lines": chunked(TE + b"chunked\r\n" + TE + b"Chunked\r\n"),
    "chunked, chunked": chunked(TE + b"chunked, chunked\r\n"),
    "identity, chunked": chunked(TE + b"identity, chunked\r\n"),
    "identity in a line before chunked": chunked(TE + b"identity\r\n" + TE + b"chunked\r\n"),
    "a blank before the colon of chunked": chunked(b"Transfer-Encoding : chunked\r\n"),
    "a folded chunked": chunked(b"Transfer-Encoding:\r\n chunked\r\n"),
    "identity beside a length": sized(TE + b"identity\r\n"),
    "an empty transfer coding beside a length": sized(TE + b"\r\n"),
    "an empty length": unsized(b"Content-Length: \r\n"),
    "an empty length beside a good one": sized(b"Content-Length:\r\n"),
    "a length of letters": unsized(b"Content-Length: two\r\n"),
    "a negative length": unsized(b"Content-Length: -2\r\n"),
    "a length with a plus": unsized(b"Content-Length: +2\r\n"),
    "a length with a point": unsized(b"Content-Length: 2.0\r\n"),
    "a length in hex": unsized(b"Content-Length: 0x2\r\n"),
    "a length of two numbers": unsized(b"Content-Length: 2 2\r\n"),
    "a length of 20 digits": unsized(b"Content-Length: 99999999999999999999\r\n"),
    "a line without a colon": sized(b"nonsense\r\n"),
    "a line without a name": sized(b": value\r\n"),
    "a name with a blank": sized(b"My Name: value\r\n"),
    "a name of octets": sized(b"X-\xff\xe4: value\r\n"),
    "a name in brackets": sized(b"[X]: value\r\n"),
    "a blank before the colon": Odd(lambda body: OK + b"Content-Length : %d\r\n\r\n" % len(body) + body),
    "a folded status line": sized(start=b"HTTP/1.1 200 OK\r\n folded: value\r\n"),
    "CR in a value": sized(b"X: a\rb\r\n"),
    "control characters in a value": sized(b"X: a\x01\x7fb\r\n"),
    "two blanks before the status": sized(start=b"HTTP/1.1  200 OK\r\n"),
    "no blank behind the status": sized(start=b"HTTP/1.1 200OK\r\n"),
    "http in small letters": sized(start=b"http/1.1 200 OK\r\n"),
    "HTTP/1.2": sized(start=b"HTTP/1.2 200 OK\r\n"),
    "100 with Connection: close": sized(start=b"HTTP/1.1 100 Continue\r\nConnection: close\r\n\r\n" + OK),
    "100 in HTTP/1.0": sized(start=b"HTTP/1.0 100 Continue\r\n\r\n" + OK),
    "lines that end with CR CR LF": Odd(
        lambda body: (OK + b"Content-Length: %d\r\n\r\n" % len(body)).replace(b"\r\n", b"\r\r\n") + body
    ),
}  # fmt: skip

ODD_BODIES: dict[str, Odd] = {
    "bytes behind the length": Odd(lambda body: sized().wire(body) + b"more"),
    "an answer behind the length": Odd(lambda body: sized().wire(body) * 2),
    "bytes behind the chunks": Odd(lambda body: CHUNKED + chunks(body) + b"more"),
    "bytes behind 204": Odd(lambda body: sized().wire(body) + b"\0"),
    "chunk lines with bare LF": Odd(lambda body: CHUNKED + chunks(body, line=b"\n")),
    "bare LF behind a chunk": Odd(lambda body: CHUNKED + b"%x\r\n%b\n0\r\n\r\n" % (len(body), body)),
    "an empty extension": Odd(lambda body: CHUNKED + chunks(body, extension=b";")),
    "a blank and an empty extension": Odd(lambda body: CHUNKED + chunks(body, extension=b" ;")),
    "control characters in an extension": Odd(lambda body: CHUNKED + chunks(body, extension=b";a=\x01")),
    "a trailer without a colon": Odd(lambda body: CHUNKED + chunks(body, trailers=b"nonsense\r\n")),
    "a trailer without a name": Odd(lambda body: CHUNKED + chunks(body, trailers=b": x\r\n")),
    "a trailer with NUL": Odd(lambda body: CHUNKED + chunks(body, trailers=b"X: \0\r\n")),
    "a trailer with bare LF": Odd(lambda body: CHUNKED + chunks(body, trailers=b"X: y\n")),
}

LARGE_HEADS = {
    "300 fields": sized(b"".join(b"X-%d: y\r\n" % number for number in range(300))),
    "200 KB of head": sized(b"".join(b"X-%d: %b\r\n" % (number, b"y" * 4000) for number in range(50))),
}

ODD_PACKED = {f"gzip without its last {missing} bytes": packed(missing) for missing in range(1, 9)}

CLOSED = {**ODD_HEADS, **ODD_BODIES}
"""What is read, and the connection is closed then."""

ODD = {**CLOSED, **LARGE_HEADS, **ODD_PACKED}
"""What is read."""

_LENGTH = b"Content-Length: 5\r\n"
_END = b"\r\nhello"
AMBIGUOUS: dict[str, bytes] = {
    "unequal lengths": OK + _LENGTH + b"Content-Length: 6\r\n" + _END,
    "a list of unequal lengths": OK + b"Content-Length: 5, 6\r\n" + _END,
    "a number and letters": OK + _LENGTH + b"Content-Length: five\r\n" + _END,
    "CR before a length": OK + b"X: a\rContent-Length: 5\r\n" + _END,
    "CR before chunked": OK + b"X: a\rTransfer-Encoding: chunked\r\n\r\n" + chunks(b"hello"),
    "a vertical tab before a length": OK + b"\x0bContent-Length: 5\r\n" + _END,
    "a coding in a line without a colon": OK + b"Content-Encoding gzip\r\n" + _LENGTH + _END,
    "an octet behind a framing name": OK + b"Transfer-Encoding\xa0: chunked\r\n\r\n" + chunks(b"hello"),
    "a framing name in a fold of a bad line": OK + b"bad\r\n content-length: 5\r\n" + _LENGTH + _END,
    "a framing name in the status line": b"HTTP/1.1 200 OK\rContent-Length: 5\r\nX: y\r\n" + _END,
    "a transfer coding that is not known": OK + TE + b"xchunked\r\n\r\n" + chunks(b"hello"),
    "gzip, chunked": OK + TE + b"gzip, chunked\r\n\r\n" + chunks(b"hello"),
    "chunked in quotes": OK + TE + b'"chunked"\r\n\r\n' + chunks(b"hello"),
    "chunked with a parameter": OK + TE + b"chunked;a=b\r\n\r\n" + chunks(b"hello"),
    "chunked behind a vertical tab": OK + TE + b"\x0bchunked\r\n\r\n" + chunks(b"hello"),
    "NUL in the head": OK + b"X: \0\r\n" + _LENGTH + _END,
    "NUL in a status line": b"HTTP/1.1 200 O\0K\r\n" + _LENGTH + _END,
    "a status of four digits": b"HTTP/1.1 2000 OK\r\n" + _LENGTH + _END,
    "a status of two digits": b"HTTP/1.1 20 OK\r\n" + _LENGTH + _END,
    "a status below 100": b"HTTP/1.1 099 OK\r\n" + _LENGTH + _END,
    "a status of letters": b"HTTP/1.1 2x0 OK\r\n" + _LENGTH + _END,
    "a version without a point": b"HTTP/1 200 OK\r\n" + _LENGTH + _END,
    "a blank before a size": CHUNKED + b" 5\r\nhello\r\n0\r\n\r\n",
    "a size with 0x": CHUNKED + b"0x5\r\nhello\r\n0\r\n\r\n",
    "a size with an underscore": CHUNKED + b"0_5\r\nhello\r\n0\r\n\r\n",
    "a size with a plus": CHUNKED + b"+5\r\nhello\r\n0\r\n\r\n",
    "a size of 16 digits": CHUNKED + b"1000000000000005\r\nhello\r\n0\r\n\r\n",
    "an empty size": CHUNKED + b"\r\nhello\r\n0\r\n\r\n",
    "CR in an extension": CHUNKED + b"5;a\rb\r\nhello\r\n0\r\n\r\n",
    "a chunk longer than its size": CHUNKED + b"3\r\nhello\r\n0\r\n\r\n",
    "a chunk without a line break": CHUNKED + b"5\r\nhello0\r\n\r\n",
    "no empty line behind the last chunk": CHUNKED + b"5\r\nhello\r\n0\r\n",
    "no last chunk": CHUNKED + b"5\r\nhello\r\n",
}
"""Answers whose end, or whose kind, different recipients would see in different places."""
