"""Every table has its place when a provider moves to another LCC."""

from collections import Counter

from lcc_scrapy.db import columns, schema, tables
from lcc_scrapy.db.sql import move_verbs
from lcc_scrapy.db.sql.move_verbs import KEYS, OF_DOCUMENTS, OF_THE_LCC, keys_of


def test_each_table_is_named_once():
    others = (move_verbs.MADE_ANEW, move_verbs.LEFT_EMPTY)
    named = Counter([*KEYS, *OF_DOCUMENTS, *OF_THE_LCC, *(one for some in others for one in some)])
    assert named == dict.fromkeys(tables.metadata.tables, 1)


def test_tables_of_apps_say_what_becomes_of_their_rows():
    of_apps = [table for table in schema.tables_of() if table.metadata is not tables.metadata]
    assert of_apps
    known = (columns.OF_THE_LCC, columns.OF_OTHER_ROWS)
    moving = [table for table in of_apps if columns.KEYS in table.info]
    assert [table.name for table in of_apps if table not in moving and table.info not in known] == []
    for table in moving:
        assert {"pid", *keys_of(table), *table.info[columns.THERE]} <= set(table.c.keys()), table.name
    with_pid = {table.name for table in of_apps if "pid" in table.c} - {table.name for table in moving}
    assert with_pid <= {"registrations"}, "of strangers"


def test_rows_of_providers_are_found_by_keys_that_no_two_of_them_share():
    of_apps = {table: keys_of(table) for table in schema.tables_of() if columns.KEYS in table.info}
    for table, keys in (
        {tables.metadata.tables[name]: keys for name, keys in KEYS.items()} | of_apps
    ).items():
        unique = [table.primary_key, *(index for index in table.indexes if index.unique)]
        assert any({column.name for column in one.columns} <= {"pid", *keys} for one in unique), table.name


def test_tables_of_the_lcc_have_no_rows_of_providers_but_those_that_strangers_asked_for():
    with_pid = {name for name in OF_THE_LCC if "pid" in tables.metadata.tables[name].c}
    assert with_pid <= {"workers", "aequeue", "aci", "alerts", "audit"}
