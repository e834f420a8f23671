"""On PYTHONPATH, makes SQLite look like a version with which the LCC uses the write-ahead log."""

import sqlite3

sqlite3.sqlite_version_info = (3, 51, 3)
