"""URLs of a Redis that is several servers: Sentinels watch it, or it is a cluster.

Sentinel fails over by what most of its processes see, and clients ask it for the master with each new
connection (https://redis.io/docs/latest/develop/reference/sentinel-clients/). A cluster has each key on one
of its nodes, and tells which one (https://redis.io/docs/latest/operate/oss_and_stack/reference/cluster-spec/).
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any, Self
from urllib.parse import unquote, urlsplit

FORMS = (
    "redis+sentinel://[USER:PASSWORD@]HOST[:26379][,HOST…]/NAME[/DATABASE]"
    " or redis+cluster://[USER:PASSWORD@]HOST[:6379][,HOST…]"
)
_SENTINEL_PORT, _PORT = 26379, 6379


def errors() -> tuple[type[Exception], ...]:
    """Return what commands of clients raise; a cluster's error is no ``RedisError``."""
    from redis.exceptions import RedisClusterException, RedisError  # noqa: PLC0415 - an extra

    return RedisError, RedisClusterException, OSError


def why(error: object) -> str:
    """Return the reason of a client's error; Sentinel's goes on with all of its clients."""
    return str(error).partition(" : <")[0]


def class_of(url: str) -> Any:
    """Return what makes clients of such a URL (``from_url``), None where redis-py's own class does."""
    return _CLASSES.get(url.partition("://")[0].lower())


@dataclass(frozen=True, slots=True)
class Servers:
    """Several servers of one URL: their addresses, what follows them, and the login of Redis."""

    addresses: tuple[tuple[str, int], ...]
    path: tuple[str, ...] = ()
    user: str | None = None
    password: str | None = None
    tls: bool = False

    @classmethod
    def parse(cls, text: str, port: int) -> Self:
        """Read a URL; ``port`` is that of servers without one.

        Raises ``ValueError``, whose text is ``FORMS``: nothing of the URL.
        """
        scheme, _, rest = text.partition("://")
        place, _, path = rest.partition("/")
        if "?" in path or "#" in path:  # options of redis-py: there are none here
            raise ValueError(FORMS)
        login, at, hosts = place.rpartition("@")
        user, _, password = login.partition(":")
        return cls(
            tuple(_address(one, port) for one in hosts.split(",")),
            tuple(unquote(part) for part in path.removesuffix("/").split("/") if path),
            (unquote(user) or None) if at else None,
            (unquote(password) or None) if at else None,
            scheme.lower().startswith("rediss"),
        )

    def options(self, given: Mapping[str, Any]) -> dict[str, Any]:
        """Return options of redis-py: what the URL says of logins and TLS goes before what is given."""
        said = {"username": self.user, "password": self.password, "ssl": self.tls or None}
        elsewhere = {key: value for key, value in given.items() if key not in {"host", "port"}}
        return elsewhere | {key: value for key, value in said.items() if value is not None}


class SentinelRedis:
    """Makes clients of whoever is the master, as redis-py's ``Redis`` does of one server.

    scrapy-redis may have it as ``redis_cls``.
    """

    @staticmethod
    def from_url(url: str, **options: Any) -> Any:
        """Return a client; it asks for the master with its first command. Raises ``ValueError``.

        ``socket_timeout`` and ``socket_connect_timeout`` hold for the Sentinels too.
        """
        from redis import sentinel  # noqa: PLC0415 - an extra

        servers = Servers.parse(url, _SENTINEL_PORT)
        name, database, *more = (*servers.path, "", "")
        if not name or any(more) or not (database or "0").isdecimal():
            raise ValueError(FORMS)
        made: Any = sentinel.Sentinel  # it has no types
        asking = {key: value for key, value in options.items() if key.startswith("socket_")}
        asking["retry"] = _no_retry()  # the next Sentinel is asked
        if servers.tls:
            asking["ssl"] = True
        number = {"db": int(database)} if database else {}
        return made(servers.addresses, sentinel_kwargs=asking).master_for(
            name, **servers.options(options) | number
        )


class ClusterRedis:
    """A client of a cluster, made with its first command: redis-py asks for the nodes when it makes one.

    scrapy-redis may have it as ``redis_cls``.
    """

    def __init__(self, make: Callable[[], Any]) -> None:
        self._make = make

    @classmethod
    def from_url(cls, url: str, **options: Any) -> Self:
        """Return a client; any node that is named tells of the others. Raises ``ValueError``."""
        from redis import cluster  # noqa: PLC0415 - an extra

        servers = Servers.parse(url, _PORT)
        if servers.path not in {(), ("0",)}:  # a cluster has one database
            raise ValueError(FORMS)
        for name in ("retry_on_timeout", "db"):  # a default of scrapy-redis, which warns; REDIS_DB
            options.pop(name, None)
        made: Any = cluster  # its nodes have no types
        nodes = [made.ClusterNode(*address) for address in servers.addresses]
        return cls(partial(made.RedisCluster, startup_nodes=nodes, **servers.options(options)))

    @cached_property
    def _client(self) -> Any:
        return self._make()

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        return getattr(self._client, name)


_CLASSES = {
    "redis+sentinel": SentinelRedis,
    "rediss+sentinel": SentinelRedis,
    "redis+cluster": ClusterRedis,
    "rediss+cluster": ClusterRedis,
}


def _no_retry() -> Any:
    from redis.backoff import NoBackoff  # noqa: PLC0415 - an extra
    from redis.retry import Retry  # noqa: PLC0415

    return Retry(NoBackoff(), 0)


def _address(text: str, port: int) -> tuple[str, int]:
    parts = urlsplit(f"//{text}")
    try:
        host, given = parts.hostname, parts.port
    except ValueError:
        raise ValueError(FORMS) from None
    if not host or parts.path or parts.query or "@" in text:
        raise ValueError(FORMS)
    return host, given or port
