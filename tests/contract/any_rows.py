"""Rows for every table there is, made of nothing but the columns' types: none can be forgotten."""

from hashlib import sha256

from sqlalchemy import BigInteger, Boolean, Float, Integer, LargeBinary, SmallInteger, String, Text, select
from sqlalchemy.dialects import mysql

from lcc_scrapy.db.schema import tables_of
from lcc_scrapy.db.sql.store import make_engine

ROWS = 7
TABLES = tables_of()


def row(table, number):
    """Make a row that differs from those with other numbers in every column that can."""
    return {
        column.name: _value(column, number)
        for column in table.columns
        if column is not table.autoincrement_column
    }


def _value(column, number):
    if column.nullable and number % 3 == 0:
        return None
    key = list(column.table.primary_key)
    if len(key) > 1 and column is key[0]:
        number = number // 3 + 1
    return _of_type(column.type, column.name, number)


def _of_type(type_, name, number):
    if isinstance(type_, Boolean):
        return number % 2 == 0
    if isinstance(type_, LargeBinary):
        return b"\0" + sha256(f"{name}{number}".encode()).digest()[:13] + b" \0"
    if isinstance(type_, Float):
        return 1_800_000_000.1 + number
    if isinstance(type_, BigInteger):
        return 2**62 - number
    if isinstance(type_, (SmallInteger, Integer)):
        return 30_000 - number
    assert isinstance(type_, (String, Text)), f"what would be a value of {type_!r}?"
    return _text(type_, f"{number} {name}")


def _text(type_, words):
    exact = type_.dialect_impl(mysql.dialect())
    width = exact.length or 70_000
    letters = "~\\%'" if exact.collation == "ascii_bin" else "é𝄞漢\\%'"
    blanks = 2
    return (words[: width - blanks] + letters * width)[: width - blanks] + " " * blanks


def put_rows(url):
    """Fill every table; the database itself numbers the rows of those that it numbers."""
    engine = make_engine(url)
    with engine.begin() as connection:
        for table in TABLES:
            connection.execute(table.insert(), [row(table, number) for number in range(1, ROWS + 1)])
    engine.dispose()


def all_rows(url):
    """Return every row of every table, by primary key."""
    engine = make_engine(url)
    with engine.begin() as connection:
        found = {
            table.name: sorted(
                (tuple(one) for one in connection.execute(select(table))),
                key=lambda one: one[: len(table.primary_key)],
            )
            for table in TABLES
        }
    engine.dispose()
    return found


def next_number(url, table):
    """Insert one more row, and return the number that the database gives to it."""
    engine = make_engine(url)
    with engine.begin() as connection:
        number = connection.execute(table.insert(), row(table, 99)).inserted_primary_key[0]
    engine.dispose()
    return number


def execute(url, *statements):
    engine = make_engine(url)
    with engine.begin() as connection:
        for statement in statements:
            connection.exec_driver_sql(statement) if isinstance(statement, str) else connection.execute(
                statement
            )
    engine.dispose()
