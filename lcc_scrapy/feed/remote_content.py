"""Content files of other machines, got from the `lcc files` that runs there.

Which machine is where, machines registered in the LCC's own database, or the operator says so
(``LCC_FILES_MACHINES``), so private addresses are as good as any. A redirect is an error.
"""

import io
from collections.abc import Callable
from typing import IO
from urllib.parse import urlsplit

from lcc_scrapy.domain.cache import CachedUrl
from lcc_scrapy.domain.versions import Version
from lcc_scrapy.feed.content import ContentElsewhere
from lcc_scrapy.http.answer import HttpError
from lcc_scrapy.http.blocking import Body, Exchanges
from lcc_scrapy.http.outgoing import NoConnection
from lcc_scrapy.http.request import Origin, Request

CONNECTIONS = 20
SILENCE = 30.0
"""Seconds that another machine has to connect, to answer, and between two pieces of a file."""

_BLOCK = 256 * 1024
_OK, _NOT_THERE = 200, 404


class OtherMachines:
    """A ``feed.content.Content`` of other machines; ``address_of`` says where each is (None = not known).

    It may be used by several threads at a time.
    """

    def __init__(self, address_of: Callable[[int], str | None], token: str) -> None:
        self._address_of = address_of
        self._token = token
        self._exchanges = Exchanges(CONNECTIONS)

    def open(self, row: CachedUrl | Version) -> IO[bytes]:
        """Return a content as it is stored; raises ``FileNotFoundError`` or ``ContentElsewhere``."""
        machine = row.fetched_machineid
        address = self._address_of(machine)
        if address is None:
            raise ContentElsewhere(
                f"the content of document {row.docid} lies on machine {machine}:"
                " start `lcc files` there, mount its content folder, or name it in LCC_FILES_MACHINES"
            )
        url = f"{address}/v1/files/{machine}/{row.fetched_fileid}"
        try:
            request = authorized(url, self._token)
            connection = self._exchanges.ask(request, patience=SILENCE, deadline=0.0)
        except (HttpError, NoConnection, TimeoutError, ValueError) as error:
            raise ContentElsewhere(f"machine {machine} does not answer ({url}): {reason(error)}") from error
        status = connection.answer.status
        if status == _OK:
            body = Body(self._exchanges, connection, lambda error: cut_off(url, error))
            return io.BufferedReader(body, _BLOCK)
        self._exchanges.release(connection)
        if status == _NOT_THERE:
            raise FileNotFoundError(url)
        raise ContentElsewhere(f"machine {machine} refuses its files ({url}): {status}")

    def close(self) -> None:
        """Close all connections."""
        self._exchanges.close()


def authorized(url: str, token: str, *fields: tuple[bytes, bytes]) -> Request:
    """Return the request of who has a token; raises ``ValueError`` where the address is none."""
    parts = urlsplit(url)
    tls = parts.scheme == "https"
    origin = Origin(parts.hostname or "", parts.port or (443 if tls else 80), tls)
    shown = [(b"Authorization", b"Bearer " + token.encode()), (b"Accept-Encoding", b"identity"), *fields]
    return Request(origin, parts.path + (parts.query and f"?{parts.query}"), shown)


def cut_off(url: str, error: HttpError) -> ContentElsewhere:
    """Return the error for a content of which the end is missing."""
    return ContentElsewhere(f"{url} was cut off: {reason(error)}")


def reason(error: BaseException) -> str:
    """Return what an error says, or its name."""
    return str(error) or type(error).__name__
