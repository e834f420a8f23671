"""Databases of several servers: which one is connected to, and when it is left for another.

psycopg has a list of hosts of its own. PyMySQL has none: here it gets one, written the same way
(``?host=db1:3306&host=db2:3306``).
"""

from collections.abc import Iterable
from typing import Any

from sqlalchemy import URL, Engine, event
from sqlalchemy.engine import ExceptionContext

Host = tuple[str, int]

_PORT = 3306
_REFUSES = frozenset({1047, 1290, 1792, 1836, "25006"})
"""What a server answers that cannot write now: a Galera node apart from its cluster, a standby, a former
primary. Others may: its connections are not used again."""

_SEES_ALL = "SET SESSION wsrep_sync_wait = 1"
"""A Galera node that lags first catches up with what was committed anywhere before a statement that reads."""


def hosts_of(url: URL) -> tuple[URL, list[Host]]:
    """Return the hosts that the query of a MariaDB or MySQL URL names, and the URL without them."""
    given = url.query.get("host", ())
    texts = (given,) if isinstance(given, str) else given
    return url.difference_update_query(["host"]), [_host(text) for text in texts]


def _host(text: str) -> Host:
    name, colon, port = text.rpartition(":")
    if not colon or text.endswith("]"):
        return text.strip("[]"), _PORT
    return name.strip("[]"), int(port)


def connect_in_order(engine: Engine, hosts: Iterable[Host]) -> None:
    """Let an engine connect to the first of these hosts that works; raises what the last one answered."""
    in_order = list(hosts)

    @event.listens_for(engine, "do_connect")
    def connect(dialect: Any, _record: object, arguments: Any, options: dict[str, Any]) -> Any:
        for host, port in in_order[:-1]:
            try:
                return _working(dialect.connect(*arguments, **{**options, "host": host, "port": port}))
            except dialect.loaded_dbapi.Error:
                continue
        host, port = in_order[-1]
        return _working(dialect.connect(*arguments, **{**options, "host": host, "port": port}))


def _working(connection: Any) -> Any:
    """Return a connection if its server takes transactions: a Galera node apart from its cluster does not."""
    try:
        connection.begin()
        connection.rollback()
    except BaseException:
        connection.close()
        raise
    return connection


def catch_up_first(connection: Any, _record: object) -> None:
    """Where a connection is to a Galera node, let what it reads be no older than the cluster."""
    with connection.cursor() as cursor:
        if cursor.execute("SHOW VARIABLES LIKE 'wsrep_on'") and cursor.fetchone()[1] == "ON":
            cursor.execute(_SEES_ALL)


def leave_who_refuses(context: ExceptionContext) -> None:
    """Throw connections away whose server cannot write, so that the next one is made anew."""
    error = context.original_exception
    number = getattr(error, "sqlstate", None) or next(iter(getattr(error, "args", ())), None)
    if isinstance(number, int | str) and number in _REFUSES:
        context.is_disconnect = True
