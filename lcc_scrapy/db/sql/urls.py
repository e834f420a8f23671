"""The URL of a database, as somebody wrote it."""

import re

from sqlalchemy import URL, make_url
from sqlalchemy.exc import ArgumentError

from lcc_scrapy.domain.errors import ConfigurationError

_SECOND_AT = re.compile(r"[^:/]*:[^@]*@.*@", re.DOTALL)
_PORT_MAX = 65535


def read_url(given: str | URL) -> URL:
    """Read a URL of SQLAlchemy. Raises ``ConfigurationError``, which shows nothing of it.

    SQLAlchemy ends a password at its first ``@``, and would show the rest of it as part of the host.
    """
    if isinstance(given, URL):
        return given
    if _SECOND_AT.match(given.partition("://")[2]):
        raise ConfigurationError("two @ in the URL of a database: write those of its password as %40")
    try:
        made = make_url(given)
    except ArgumentError:
        raise ConfigurationError(
            "no URL of a database, for example mysql://lcc:secret@db.example.org/lcc"
        ) from None
    except ValueError:
        raise ConfigurationError("the port in the URL of the database is no number") from None
    if made.port is not None and not 0 < made.port <= _PORT_MAX:
        raise ConfigurationError(f"the port in the URL of the database is not one from 1 to {_PORT_MAX}")
    return made
