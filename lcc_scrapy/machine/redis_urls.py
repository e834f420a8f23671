"""A Redis that Sentinels watch: whoever they say is the master now.

Sentinel fails over by what most of its processes see, and clients ask it for the master with each new
connection (https://redis.io/docs/latest/develop/reference/sentinel-clients/).
"""

from dataclasses import dataclass
from typing import Any, Self
from urllib.parse import unquote, urlsplit

FORM = "redis+sentinel://[USER:PASSWORD@]HOST[:26379][,HOST…]/NAME[/DATABASE]"
SCHEMES = {"redis+sentinel": False, "rediss+sentinel": True}
"""Whether it is TLS, by scheme."""

_PORT = 26379


def is_sentinel(url: str) -> bool:
    """Tell whether a URL names Sentinels."""
    return url.partition("://")[0].lower() in SCHEMES


@dataclass(frozen=True, slots=True)
class SentinelUrl:
    """Where Sentinels are, and their name for the master. User and password are those of Redis."""

    sentinels: tuple[tuple[str, int], ...]
    name: str
    database: int = 0
    user: str | None = None
    password: str | None = None
    tls: bool = False

    @classmethod
    def parse(cls, text: str) -> Self:
        """Read a URL of the form ``FORM``; raises ``ValueError``, whose text tells nothing of the URL."""
        scheme, _, rest = text.partition("://")
        place, _, path = rest.partition("/")
        login, at, hosts = place.rpartition("@")
        user, _, password = login.partition(":")
        name, _, database = path.partition("/")
        sentinels = tuple(map(_address, hosts.split(",")))
        if scheme.lower() not in SCHEMES or not name or not (database or "0").isdecimal():
            raise ValueError(FORM)
        return cls(
            sentinels,
            unquote(name),
            int(database or 0),
            (unquote(user) or None) if at else None,
            (unquote(password) or None) if at else None,
            SCHEMES[scheme.lower()],
        )

    def client(self, **options: Any) -> Any:
        """Return a client of the master; it asks for it with its first command. ``options`` are redis-py's.

        ``socket_timeout`` and ``socket_connect_timeout`` hold for the Sentinels too.
        """
        from redis import sentinel  # noqa: PLC0415 - an extra

        made: Any = sentinel.Sentinel  # it has no types
        times = {key: value for key, value in options.items() if key.startswith("socket_")}
        tls = {"ssl": True} if self.tls else {}
        return made(self.sentinels, sentinel_kwargs=times | tls).master_for(
            self.name, db=self.database, username=self.user, password=self.password, **tls, **options
        )


class SentinelRedis:
    """What makes clients of URLs, as redis-py's ``Redis`` does; scrapy-redis may have it as ``redis_cls``."""

    @staticmethod
    def from_url(url: str, **options: Any) -> Any:
        """Return a client of the master; raises ``ValueError``."""
        return SentinelUrl.parse(url).client(**options)


def _address(text: str) -> tuple[str, int]:
    parts = urlsplit(f"//{text}")
    try:
        host, port = parts.hostname, parts.port
    except ValueError:
        raise ValueError(FORM) from None
    if not host or parts.path or parts.query or "@" in text:
        raise ValueError(FORM)
    return host, port or _PORT
