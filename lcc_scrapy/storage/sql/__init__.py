"""The store on SQL: SQLite, MariaDB/MySQL, PostgreSQL through SQLAlchemy Core."""

from lcc_scrapy.storage.sql.store import SqlStore

__all__ = ["SqlStore"]
