"""The database servers that tests use: on this machine, or others that environment variables name."""

import os
from dataclasses import dataclass
from typing import Any

import pymysql
import sqlalchemy


@dataclass(frozen=True)
class Server:
    """A database server; the user that its URL names may create databases."""

    variable: str
    default: str
    package: str

    @property
    def url(self) -> sqlalchemy.URL:
        """Return where it is, without a database."""
        return sqlalchemy.make_url(os.environ.get(self.variable, self.default))

    @property
    def port(self) -> int:
        """Return its port, of MariaDB the usual one where the URL names none."""
        return self.url.port or 3306

    def url_of(self, database: str) -> str:
        """Return the SQLAlchemy URL of one of its databases."""
        return self.url.set(database=database).render_as_string(hide_password=False)


SERVERS = {
    "mariadb": Server("LCC_TEST_MARIADB", "mysql+pymysql://root@127.0.0.1:3306/", "mariadb-server"),
    "postgresql": Server(
        "LCC_TEST_POSTGRESQL", "postgresql+psycopg://postgres@127.0.0.1:5432/postgres", "postgresql"
    ),
}


def connect_mariadb(**options: Any) -> pymysql.Connection:
    """Connect to the MariaDB server as who may do everything; ``options`` as pymysql has them."""
    url = SERVERS["mariadb"].url
    return pymysql.connect(
        host=url.host, port=SERVERS["mariadb"].port, user=url.username, password=url.password or "", **options
    )
