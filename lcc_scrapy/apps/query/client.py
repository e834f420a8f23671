"""Asking an LCC over its query socket, from another machine or another program.

::

    with connect("lcc.example.org:9001", tls=ssl.create_default_context()) as wire:
        for said in ask(wire, Query(since=cursor, token=secret)):
            ...
"""

import socket
import ssl
from collections.abc import Iterator

from lcc_scrapy.apps.query.wire import writing
from lcc_scrapy.apps.query.wire.messages import Query, QueryRejected, ResultEnds, Said
from lcc_scrapy.apps.query.wire.reading import NotUnderstood, ResultReader
from lcc_scrapy.domain.cursor import StartOver
from lcc_scrapy.domain.errors import LccError
from lcc_scrapy.wire.sockets import send_at_once

START_OVER = 802
PATIENCE = 120.0
"""Seconds without a byte after which an LCC counts as gone, beside those that a query waits for."""
_RECEIVE = 64 * 1024


class Unreachable(LccError):
    """There is no query socket at that address, or its certificate is not trusted."""


class Unanswered(LccError):
    """The answer did not arrive, or not all of it. Ask again, from the last position."""


class Rejected(LccError):
    """The LCC turned the query away, with a ``code`` of the protocol."""

    def __init__(self, message: QueryRejected) -> None:
        super().__init__(message.text)
        self.code = message.code
        self.retry_after = message.retry_after


def connect(place: str, tls: ssl.SSLContext | None = None) -> socket.socket:
    """Connect to ``HOST:PORT``, ``[v6]:PORT`` or the path of a Unix socket; raises ``Unreachable``."""
    try:
        if "/" in place or ":" not in place:
            return _connect_to_path(place)
        host, _, port = place.rpartition(":")
        host = host.removeprefix("[").removesuffix("]")
        plain = socket.create_connection((host, int(port)), PATIENCE)
        send_at_once(plain)
    except ValueError:
        raise Unreachable(f"{place!r}, expected HOST:PORT or the path of a Unix socket") from None
    except OSError as error:
        raise Unreachable(f"cannot connect to {place}: {error.strerror or error}") from None
    return plain if tls is None else _encrypted(plain, tls, host, place)


def _connect_to_path(path: str) -> socket.socket:
    wire = socket.socket(socket.AF_UNIX)
    try:
        wire.connect(path)
    except OSError:
        wire.close()
        raise
    return wire


def _encrypted(plain: socket.socket, tls: ssl.SSLContext, host: str, place: str) -> socket.socket:
    try:
        return tls.wrap_socket(plain, server_hostname=host)
    except ssl.SSLCertVerificationError as error:
        plain.close()
        raise Unreachable(f"{place}: certificate not trusted: {error.verify_message}") from None
    except OSError as error:
        plain.close()
        raise Unreachable(f"{place}: no TLS: {error.strerror or error}") from None


def ask(wire: socket.socket, query: Query) -> Iterator[Said]:
    """Yield what is said to a query, the ``ResultEnds`` last.

    Raises ``StartOver``, ``Rejected``, or ``Unanswered`` when the answer breaks off.
    """
    wire.settimeout(PATIENCE + query.wait)
    reader = ResultReader()
    try:
        wire.sendall(writing.query(query))
        while data := wire.recv(_RECEIVE):
            for said in reader.feed(data):
                if isinstance(said, QueryRejected):
                    raise _error_of(said)
                yield said
                if isinstance(said, ResultEnds):
                    return
    except NotUnderstood as error:
        raise Unanswered(f"what answers there is no query socket of an LCC ({error})") from None
    except OSError as error:
        raise Unanswered(f"the answer broke off: {error.strerror or error}") from None
    raise Unanswered("the answer broke off: the connection was closed")


def _error_of(message: QueryRejected) -> LccError:
    return StartOver(message.text) if message.code == START_OVER else Rejected(message)
