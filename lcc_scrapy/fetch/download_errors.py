"""Errors of downloads: those of our own client as Scrapy's exceptions, which a team's middlewares know.

What Scrapy has no exception for is one of those below.
"""

import errno
import os
import socket
import ssl

from scrapy.exceptions import (
    CannotResolveHostError,
    DownloadCancelledError,
    DownloadConnectionRefusedError,
    DownloadFailedError,
    DownloadTimeoutError,
    ResponseDataLossError,
)

from lcc_scrapy.content.decoding import BadCoding
from lcc_scrapy.content.sink import TooLarge
from lcc_scrapy.domain.errors import Exhausted
from lcc_scrapy.http.answer import BadBody, HttpError
from lcc_scrapy.http.connection import Silence
from lcc_scrapy.http.outgoing import NoConnection, NoProxy, NotPublic


class AddressRefused(DownloadConnectionRefusedError):
    """The address is private, loopback, link-local or otherwise not for this provider (615)."""


class TlsFailed(DownloadConnectionRefusedError):
    """No TLS connection, or a certificate that does not verify (612)."""


class ConnectTimedOut(DownloadTimeoutError):
    """No connection within the time allowed (602: it speaks of the host)."""


class BodyTooLarge(DownloadCancelledError):
    """The body is larger than ``LCC_FETCH_MAX_BYTES``, or its limit needs longer for it than may be (604)."""


class TypeNotAccepted(DownloadCancelledError):
    """The site serves a mimetype that is not wanted (703)."""


class PasswordRefused(DownloadFailedError):
    """The site does not know the password that an operator has for it: that says nothing of a page."""

    def __init__(self, text: str = "the site refuses the password of LCC_CREDENTIALS_FILE") -> None:
        super().__init__(text)


_SCRAPYS: tuple[tuple[type[BaseException], type[Exception]], ...] = (
    (TooLarge, BodyTooLarge),
    (BadCoding, ResponseDataLossError),
    (BadBody, ResponseDataLossError),
    (Silence, DownloadTimeoutError),
    (HttpError, DownloadFailedError),
    (NotPublic, AddressRefused),
    (socket.gaierror, CannotResolveHostError),
    (ssl.SSLError, TlsFailed),
    (TimeoutError, ConnectTimedOut),
    (OSError, DownloadConnectionRefusedError),
)


def translated(error: BaseException, url: str) -> Exception:
    """Return Scrapy's exception for what went wrong, so that a team's middlewares know it.

    What this process lacks itself is ``Exhausted``.
    """
    cause = error.cause if isinstance(error, NoConnection) else error
    text = f"{url}: {str(error) or 'no connection in time'}"
    if _is_exhausted(cause):
        return Exhausted(text)
    if isinstance(error, NoProxy):
        return DownloadConnectionRefusedError(text)
    return next(theirs for ours, theirs in _SCRAPYS if isinstance(cause, ours))(text)


_OURS = frozenset({errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM})
"""What ``socket`` and ``connect`` say when the system has no descriptor or buffer left for us."""


def _is_exhausted(error: BaseException) -> bool:
    if isinstance(error, socket.gaierror):
        return not _has_descriptors()
    return isinstance(error, OSError) and error.errno in _OURS


def _has_descriptors() -> bool:
    """Tell whether a name server could be asked: the resolver does not say why it could not."""
    try:
        for _ in range(2):
            os.close(os.open(os.devnull, os.O_RDONLY))
    except OSError:
        return False
    return True
