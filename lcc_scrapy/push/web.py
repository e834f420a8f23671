"""One HTTP/1.1 exchange with a server that the user named, over a connection of its own."""

from __future__ import annotations

import re
import ssl
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field

from lcc_scrapy.push import link
from lcc_scrapy.push.http_reader import HttpReader, NotHttp
from lcc_scrapy.push.link import Lost, Unreachable

_URL = re.compile(
    r"(https?)://(?:\[([0-9A-Fa-f:.]+)\]|([A-Za-z0-9._-]+))(?::(\d{1,5}))?(/[!-\"$-~]*)?", re.ASCII
)
_PORTS = {"http": 80, "https": 443}
AGENT = "lcc-push"


@dataclass(frozen=True)
class HttpUrl:
    """An ``http://`` or ``https://`` URL without a password in it."""

    scheme: str
    host: str
    port: int
    path: str

    @classmethod
    def parse(cls, text: str) -> HttpUrl:
        """Read a URL; raises ValueError."""
        found = _URL.fullmatch(text)
        if found is None or not 0 < int(found[4] or 1) < 1 << 16:
            raise ValueError(text)
        return cls(found[1], found[2] or found[3], int(found[4] or _PORTS[found[1]]), found[5] or "/")

    @property
    def authority(self) -> str:
        """Host and port as they stand in a URL."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return host if self.port == _PORTS[self.scheme] else f"{host}:{self.port}"

    @property
    def is_safe(self) -> bool:
        """Tell whether nobody on the way can read what is sent."""
        return self.scheme == "https" or link.is_local(self.host)

    def __str__(self) -> str:
        return f"{self.scheme}://{self.authority}{self.path}"


@dataclass(frozen=True)
class Dial:
    """How connections are made. ``timeout`` bounds every silence, ``whole`` an answer: see `link.Link`."""

    timeout: float = 60.0
    tls: ssl.SSLContext | None = None
    whole: float = link.ANSWER_SECONDS
    clock: Callable[[], float] = time.monotonic


@dataclass(frozen=True)
class Request:
    """What is asked; a body of None or bytes has a length, any other goes out in chunks."""

    url: HttpUrl
    method: str = "GET"
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    body: bytes | Iterable[bytes] | None = None

    def blocks(self) -> Iterable[bytes]:
        """Yield what goes over the wire."""
        yield self._head()
        if isinstance(self.body, bytes):
            yield self.body
        elif self.body is not None:
            for block in self.body:
                yield b"%x\r\n%s\r\n" % (len(block), block)
            yield b"0\r\n\r\n"

    def _head(self) -> bytes:
        headers = {"Host": self.url.authority, "User-Agent": AGENT, "Connection": "close"}
        headers.update(self.headers)
        if isinstance(self.body, bytes):
            headers["Content-Length"] = str(len(self.body))
        elif self.body is not None:
            headers["Transfer-Encoding"] = "chunked"
        lines = [
            f"{self.method} {self.url.path} HTTP/1.1",
            *(f"{name}: {value}" for name, value in headers.items()),
        ]
        return "\r\n".join([*lines, "", ""]).encode("latin-1")


class Cut(Lost):
    """A body without a length ended with a connection that was cut: nobody knows whether it is whole."""

    def __init__(self, text: str, reader: HttpReader) -> None:
        super().__init__(text)
        self.reader = reader


def exchange(
    request: Request,
    dial: Dial,
    take: Callable[[HttpReader, bytes], None],
    settled: Callable[[HttpReader], bool] = lambda _: False,
) -> HttpReader:
    """Send a request and read its answer; ``take`` gets the body as it comes, behind the head.

    Ends early when it is ``settled``. Raises `Unreachable`, and `Lost` when no whole answer came. An answer
    whose status decides is whole with its head.
    """
    reader, url = HttpReader(), request.url

    def arrived(data: bytes) -> None:
        if not data and connection.was_cut:
            return
        body = reader.feed(data)
        if body:
            take(reader, body)

    def is_over() -> bool:
        return reader.complete or settled(reader)

    tls = (dial.tls or ssl.create_default_context()) if url.scheme == "https" else None
    made = link.connect(url.host, url.port, dial.timeout, tls)
    connection = link.Link(made, dial.timeout, arrived, url.authority, whole=dial.whole, clock=dial.clock)
    try:
        all(connection.send(block, is_over) for block in request.blocks())
        connection.receive_until(is_over)
    except (NotHttp, Lost) as error:
        if not reader.decides:
            raise _no_answer(error, url.authority) from None
    finally:
        connection.close(politely=False)
    if not is_over():
        _check_cut(reader, url.authority)
    return reader


def _no_answer(error: Exception, authority: str) -> Exception:
    if isinstance(error, NotHttp):
        return Unreachable(f"{authority}: what answers there is no web server ({error})")
    return error


def _check_cut(reader: HttpReader, authority: str) -> None:
    if not reader.decides:
        said = f"{authority} closed the connection before its answer was whole"
        raise Cut(said, reader) if reader.until_close else Lost(said)


def read(request: Request, dial: Dial, most: int) -> tuple[HttpReader, bytes]:
    """Return an answer with its body, of which only the first ``most`` bytes are kept."""
    found = bytearray()

    def take(_reader: HttpReader, body: bytes) -> None:
        found.extend(body[: most - len(found)])

    return exchange(request, dial, take, lambda _: len(found) >= most), bytes(found)


def retry_after(reader: HttpReader) -> int:
    """Return the seconds of Retry-After, 0 = not said (dates are not read)."""
    text = reader.headers.get("retry-after", "")
    return int(text) if text.isascii() and text.isdigit() and len(text) < 7 else 0  # noqa: PLR2004 - days
