"""How database servers must be set to keep what they commit, and what may cost something all the same."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from sqlalchemy import Connection, text

from lcc_scrapy.domain.errors import ConfigurationError


@dataclass(frozen=True, slots=True)
class _Rule:
    """A setting of a server, and with which values it keeps what it commits; the first is what is advised."""

    name: str
    good: tuple[str, ...]
    needed: bool = True
    """Else some storage does without."""


_MARIADB = (
    _Rule("innodb_flush_log_at_trx_commit", ("1",)),
    _Rule("innodb_doublewrite", ("ON", "1"), needed=False),
)
_RULES: dict[str, tuple[_Rule, ...]] = {
    "mysql": _MARIADB,
    "mariadb": _MARIADB,
    "postgresql": (
        _Rule("fsync", ("on",)),
        _Rule("synchronous_commit", ("on", "local", "remote_write", "remote_apply")),
        _Rule("full_page_writes", ("on",), needed=False),
    ),
}
_VALUES = {
    "mysql": "SHOW GLOBAL VARIABLES WHERE Variable_name IN :names",
    "postgresql": "SELECT name, setting FROM pg_settings WHERE name IN :names",
}
_VALUES["mariadb"] = _VALUES["mysql"]
_CLUSTER = "SHOW GLOBAL STATUS WHERE Variable_name = 'wsrep_cluster_size' AND Value > 0"
_STANDBYS = "SELECT count(*) FROM pg_stat_replication"


def check_durability(connection: Connection) -> None:
    """Refuse a server that would lose what it commits."""
    values = _values(connection)
    for rule in _RULES.get(connection.dialect.name, ()):
        if rule.needed and values[rule.name] not in rule.good:
            raise ConfigurationError(
                f"the database has {rule.name}={values[rule.name]}; the LCC needs {rule.good[0]},"
                " or a crash loses accepted URLs"
            )


def flushes(connection: Connection) -> str:
    """Return how a server keeps what it commits, and to how many others it passes that on."""
    told = [f"{name}={value}" for name, value in _values(connection).items()]
    if connection.dialect.name == "postgresql":
        told.append(f"standbys={connection.execute(text(_STANDBYS)).scalar_one()}")
    else:
        told += [f"{name}={value}" for name, value in connection.execute(text(_CLUSTER))]
    return ", ".join(told)


def doubts(connection: Connection) -> Iterator[str]:
    """Yield what may cost something after a power cut, or when a standby is promoted."""
    values = _values(connection)
    for rule in _RULES[connection.dialect.name]:
        if values[rule.name] not in rule.good:
            yield (
                f"{rule.name}={values[rule.name]}: a power cut may damage the database, unless its storage"
                " writes whole pages"
            )
    if connection.dialect.name != "postgresql":
        return
    waits = values["synchronous_standby_names"] and values["synchronous_commit"] != "local"
    if not waits and connection.execute(text(_STANDBYS)).scalar_one():
        yield (
            "no commit waits for the standby: promoted, it may lack what was accepted"
            " (synchronous_standby_names, synchronous_commit)"
        )


def _values(connection: Connection) -> Mapping[str, str]:
    kind = connection.dialect.name
    names = [rule.name for rule in _RULES.get(kind, ())]
    if not names:
        return {}
    if kind == "postgresql":
        names.append("synchronous_standby_names")
    listed = ", ".join(f"'{name}'" for name in names)
    asked = _VALUES[kind].replace(":names", f"({listed})")
    found: dict[str, str] = {row[0]: row[1] for row in connection.execute(text(asked))}
    return {name: found[name] for name in names}
