"""How long a database server keeps the transaction of a machine that is gone.

A killed process closes its connections, and its server undoes what was under way. A machine that loses its
power closes nothing: its server waits for the next statement, two hours by default, and keeps the rows that
were locked. So each session tells its server for how long it may be silent within a transaction.
"""

from collections.abc import Iterator
from typing import Any

from sqlalchemy import Connection, text

LONGEST_SILENCE = 30.0
"""Seconds, where nobody says otherwise: half of the default of ``LCC_LEASE``."""

_MYSQLS_DEFAULT = 28_800
_MARIADBS_KEEPALIVE = ("tcp_keepalive_time", "tcp_keepalive_interval", "tcp_keepalive_probes")


def bound_silence(connection: Any, seconds: float) -> None:
    """Let the server end a transaction of this session (of a driver) that is silent for so long.

    MySQL has no such bound: there the session ends with any silence, also outside of transactions.
    """
    whole = max(1, round(seconds))
    if hasattr(connection, "get_server_info"):
        bound = "idle_transaction_timeout" if "MariaDB" in connection.get_server_info() else "wait_timeout"
        with connection.cursor() as cursor:
            cursor.execute(f"SET SESSION {bound} = {whole}, net_write_timeout = {whole}")
        return
    probe = max(1, whole // 6)
    connection.execute(
        f"SET idle_in_transaction_session_timeout = {1000 * whole};"
        f" SET tcp_user_timeout = {1000 * whole};"
        f" SET tcp_keepalives_idle = {max(1, whole - 3 * probe)};"
        f" SET tcp_keepalives_interval = {probe}; SET tcp_keepalives_count = 3"
    )
    connection.commit()


def permit_silence(connection: Connection) -> None:
    """Let one transaction last as long as its reader takes; its session ends with it."""
    if connection.dialect.name == "sqlite":
        return
    connection.detach()
    if connection.dialect.name == "postgresql":
        connection.exec_driver_sql("SET idle_in_transaction_session_timeout = 0")
    elif getattr(connection.dialect, "is_mariadb", False):
        connection.exec_driver_sql("SET SESSION idle_transaction_timeout = 0")
    else:
        connection.exec_driver_sql(f"SET SESSION wait_timeout = {_MYSQLS_DEFAULT}")


def unbounded(connection: Connection, seconds: float) -> Iterator[str]:
    """Yield why a server would wait longer than ``seconds`` for a machine that is gone."""
    for name, value in _bounds(connection).items():
        if not 0 < value <= max(1, round(seconds)):
            yield f"{name}={value}: a machine that loses its power keeps its locks for longer than LCC_LEASE"
    if not getattr(connection.dialect, "is_mariadb", False):
        return
    asked = f"SELECT @@global.{', @@global.'.join(_MARIADBS_KEEPALIVE)}"
    after, every, times = connection.execute(text(asked)).one()
    if not after or after + every * times > 2 * seconds:
        yield (
            f"tcp_keepalive_time={after}, tcp_keepalive_interval={every}, tcp_keepalive_probes={times}:"
            " connections of a machine that loses its power stay open; set"
            f" {round(seconds)}, 10 and 3 in the server's configuration"
        )


def _bounds(connection: Connection) -> dict[str, int]:
    """Return what is set for this session, in seconds; 0 = for ever."""
    if connection.dialect.name == "postgresql":
        name = "idle_in_transaction_session_timeout"
        asked = text("SELECT setting FROM pg_settings WHERE name = :name")
        return {name: int(connection.execute(asked, {"name": name}).scalar_one()) // 1000}
    name = "idle_transaction_timeout" if getattr(connection.dialect, "is_mariadb", False) else "wait_timeout"
    return {name: int(connection.execute(text(f"SELECT @@session.{name}")).scalar_one())}
