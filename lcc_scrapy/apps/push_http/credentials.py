"""Who pushes: a provider's id and password, or its push token, from the ``Authorization`` header."""

import base64
import binascii

from lcc_scrapy.wire.messages import Init

HEADER_MAX = 4096
"""Characters of the header; a longer one holds no password of ours."""


class BadCredentials(Exception):
    """The header cannot be read; the text says what was expected."""


def init_of(header: bytes) -> Init | None:
    """Return the login that a header stands for, None for no header; raises ``BadCredentials``.

    A bearer token (RFC 6750) names no provider: the login service knows whose it is.
    """
    if not header:
        return None
    scheme, _, given = header.strip().partition(b" ")
    if len(header) <= HEADER_MAX and scheme.lower() == b"basic":
        return _basic(given.strip())
    if len(header) <= HEADER_MAX and scheme.lower() == b"bearer":
        return Init("", given.strip().decode("latin-1"))
    raise BadCredentials("Authorization: Basic (PID:PASSWORD) or Bearer (a push token) is expected")


def _basic(given: bytes) -> Init:
    """Read RFC 7617; who does not say UTF-8 means Latin-1."""
    try:
        pair = base64.b64decode(given, validate=True)
    except binascii.Error:
        raise BadCredentials("Authorization: Basic is followed by PID:PASSWORD in base64") from None
    pid, colon, password = pair.partition(b":")
    if not colon:
        raise BadCredentials("Authorization: Basic is followed by PID:PASSWORD in base64")
    return Init(_text(pid), _text(password))


def _text(given: bytes) -> str:
    try:
        return given.decode()
    except UnicodeDecodeError:
        return given.decode("latin-1")
