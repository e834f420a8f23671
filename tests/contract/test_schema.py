"""Migrations: numbered, repeatable, and equal to the tables the code works with."""

import json
import logging
import re

import pytest
import sqlalchemy
from alembic import command
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from any_rows import all_rows, put_rows, row

from lcc_scrapy.db import schema
from lcc_scrapy.db.records import DocumentLink, LastOutcome
from lcc_scrapy.db.sql.store import SqlStore, make_engine
from lcc_scrapy.db.tables import metadata, views
from lcc_scrapy.domain.entries import furlkey, namehashes
from lcc_scrapy.domain.errors import ConfigurationError, StoreUnavailable
from tests.made_databases import statements_of, upgrade

KINDS = ("sqlite", "mariadb", "postgresql")
ANSWER = ("answer_line", "answer_headers", "answer_peer", "answer_time")
PLACES = ("owners_seq", "confirmed_seq")
LATER = {"id", "furlkey", "curlhash", "furlhash", "head_len", "sent", "last_etag", *PLACES, *ANSWER}
REVISIONS = [
    "0001",
    "0002",
    "0003",
    "0004",
    "0005",
    "0006",
    "0007",
    "0008",
    "0009",
    "0010",
    "0011",
    "0012",
    "0013",
    "0014",
    "0015",
    "0016",
    "0017",
    "0018",
    "0021",
    "0022",
    "0023",
    "0024",
    "0025",
    "0030",
    "0031",
    "0032",
    "0035",
    "0036",
    "0039",
    "0040",
    "0041",
    "0042",
    "0043",
    "0044",
]
OF_APPS = [one for line in schema.lines_of()[1:] for one in line.shown(schema._after(line, None))]
EVERY = [*REVISIONS, *OF_APPS]
METADATA = [line.metadata for line in schema.lines_of()]


@pytest.fixture
def fresh(tmp_path):
    """The address of an SQLite database that does not exist."""
    return f"sqlite:///{tmp_path / '100%' / 'lcc.sqlite'}"


@pytest.mark.parametrize("kind", KINDS)
def test_the_migrations_make_exactly_the_tables_of_the_code(databases, kind):
    engine = make_engine(databases.url(kind))
    options = {
        "compare_type": True,
        "target_metadata": METADATA,
        "include_name": lambda name, kind, _: kind != "table" or not name.startswith(schema.VERSION_TABLE),
    }
    with engine.connect() as connection:
        assert compare_metadata(MigrationContext.configure(connection, opts=options), METADATA) == []
    engine.dispose()


@pytest.mark.parametrize("kind", KINDS)
def test_an_upgraded_database_is_current_and_upgrading_again_does_nothing(databases, kind):
    address = databases.url(kind)
    assert schema.pending(address) == []
    assert (schema.pending(address), schema.upgrade(address), schema.upgrade_sql(address)) == ([], [], "")


def test_looking_at_a_database_that_does_not_exist_creates_nothing(fresh, tmp_path):
    assert schema.pending(fresh) == EVERY
    assert schema.pending(fresh)
    assert "CREATE TABLE lccurl" in schema.upgrade_sql(fresh)
    assert list(tmp_path.iterdir()) == []


def test_an_upgrade_names_the_revisions_that_it_applied(fresh, tmp_path):
    (tmp_path / "100%").mkdir()
    assert schema.upgrade(fresh) == EVERY
    assert schema.pending(fresh) == []


def test_an_upgrade_that_fails_leaves_nothing_behind(fresh, tmp_path):
    (tmp_path / "100%").mkdir()
    engine = make_engine(fresh)
    with engine.begin() as connection:
        connection.exec_driver_sql("CREATE TABLE machines (x INTEGER)")
    with pytest.raises(StoreUnavailable, match="machines"):
        schema.upgrade(fresh)
    assert sqlalchemy.inspect(engine).get_table_names() == ["machines"]
    engine.dispose()


def test_a_database_of_a_newer_version_is_refused(fresh, tmp_path):
    (tmp_path / "100%").mkdir()
    schema.upgrade(fresh)
    engine = make_engine(fresh)
    with engine.begin() as connection:
        connection.exec_driver_sql(f"UPDATE {schema.VERSION_TABLE} SET version_num = '9999'")
    engine.dispose()
    for verb in (schema.pending, schema.upgrade, schema.upgrade_sql):
        with pytest.raises(ConfigurationError, match="9999"):
            verb(fresh)


@pytest.mark.parametrize("address", ["mysql://root@127.0.0.1/x", "postgresql://postgres@127.0.0.1/x"])
def test_the_sql_can_be_had_for_every_dialect(address, monkeypatch):
    lines = schema.lines_of()
    monkeypatch.setattr(schema, "_waiting", lambda *_: [(line, schema._after(line, None)) for line in lines])
    text = schema.upgrade_sql(address)
    assert text.count("CREATE TABLE") - text.count("DROP TABLE") == len(schema.tables_of()) + len(lines)
    assert ("utf8mb4_bin" in text) == address.startswith("mysql")


def test_upgrading_leaves_logging_as_it_is(fresh, tmp_path):
    (tmp_path / "100%").mkdir()
    mine = logging.getLogger("somebody.else")
    before = (logging.root.level, logging.root.handlers[:], mine.disabled)
    schema.upgrade(fresh)
    assert (logging.root.level, logging.root.handlers[:], mine.disabled) == before


@pytest.mark.parametrize("kind", KINDS)
def test_documents_of_the_first_schema_outlive_the_upgrade(databases, kind):
    address = databases.empty(kind)
    engine = make_engine(address)
    table = metadata.tables["lccurl"]
    values = row(table, 1)
    for later in ("subtype_seq", *LATER):
        values.pop(later, None)
    with engine.begin() as connection:
        config = schema._config(schema.CORE)
        config.attributes["connection"] = connection
        command.upgrade(config, "0001")
        connection.execute(table.insert(), values)
    assert schema.upgrade(address) == [*REVISIONS[1:], *OF_APPS]
    hashes = dict(zip(("curlhash", "furlhash"), namehashes(values["curl"], values["furl"]), strict=True))
    added = {"subtype_seq": 0, "head_len": 0, "furlkey": furlkey(values["pid"], values["furl"]), **hashes}
    added |= dict.fromkeys(ANSWER) | dict.fromkeys(PLACES, 0)
    with engine.connect() as connection:
        assert connection.execute(table.select()).one()._asdict() == {**values, **added}
    engine.dispose()


@pytest.mark.parametrize("kind", KINDS)
def test_an_upgrade_that_was_interrupted_behind_its_tables_goes_on(databases, kind):
    address = databases.empty(kind)
    engine = make_engine(address)
    tables = [metadata.tables[name] for name in ("qdb", "lccurl")]
    rows = {table: [row(table, number) for number in range(1, 8)] for table in tables}
    with engine.begin() as connection:
        config = schema._config(schema.CORE)
        config.attributes["connection"] = connection
        command.upgrade(config, "0002")
        for table in tables:
            known = [column for column in table.columns if column.name not in LATER]
            values = [{column.name: one[column.name] for column in known} for one in rows[table]]
            connection.execute(sqlalchemy.insert(table), values)
        if kind == "mariadb":
            connection.exec_driver_sql("ALTER TABLE qdb ADD furlkey BINARY(16)")
            metadata.tables["links"].create(connection)
    schema.upgrade(address)
    with engine.connect() as connection:
        for table in tables:
            found = connection.execute(sqlalchemy.select(table.c.furlkey, table.c.pid, table.c.furl)).all()
            assert len(found) == 7
            assert all(bytes(filled) == furlkey(pid, furl) for filled, pid, furl in found)
    engine.dispose()


def test_what_was_visited_before_adaptive_visits_is_due_at_once(fresh, tmp_path):
    (tmp_path / "100%").mkdir()
    engine = make_engine(fresh)
    with engine.begin() as connection:
        config = schema._config(schema.CORE)
        config.attributes["connection"] = connection
        command.upgrade(config, "0005")
        for number, (visited, code) in enumerate([(50, 0), (60, 404), (0, 0)]):
            values = (number.to_bytes(16, "big"), f"http://x/{number}", visited, code)
            connection.exec_driver_sql("INSERT INTO spidered VALUES (?, 7, ?, 0, NULL, 5, ?, ?)", values)
    schema.upgrade(fresh)
    with engine.connect() as connection:
        rows = connection.exec_driver_sql("SELECT answered, every, changes, due FROM spidered ORDER BY furl")
        assert [tuple(one) for one in rows] == [(50, 0, 0, 50), (0, 0, 0, 60), (0, 0, 0, 0)]
    engine.dispose()


@pytest.mark.parametrize("kind", KINDS)
def test_providers_of_whom_spiders_know_urls_are_marked_by_the_upgrade(databases, kind):
    address = databases.empty(kind)
    engine = make_engine(address)
    spidered, scans = metadata.tables["spidered"], metadata.tables["scans"]
    known = [{**row(spidered, number), "pid": pid} for number, pid in ((1, 7), (2, 7), (4, 8))]
    with engine.begin() as connection:
        config = schema._config(schema.CORE)
        config.attributes["connection"] = connection
        command.upgrade(config, "0008")
        connection.execute(spidered.insert(), known)
        connection.execute(scans.insert(), [{**row(scans, 1), "pid": 8, "pages": 5}])
    assert schema.upgrade(address) == [*REVISIONS[8:], *OF_APPS]
    with engine.connect() as connection:
        found = connection.execute(sqlalchemy.select(scans.c.pid, scans.c.pages).order_by(scans.c.pid))
        assert [tuple(one) for one in found] == [(7, 0), (8, 5)]
    engine.dispose()


@pytest.mark.parametrize("kind", KINDS)
def test_rows_that_are_there_get_the_hashes_of_their_urls_in_portions(databases, kind):
    address = databases.empty(kind)
    engine = make_engine(address)
    tables = [metadata.tables[name] for name in ("qdb", "lccurl", "tombstones", "urlerrors")]
    count = 1203
    with engine.begin() as connection:
        config = schema._config(schema.CORE)
        config.attributes["connection"] = connection
        command.upgrade(config, "0009")
        for table in tables:
            names = [column.name for column in table.columns if column.name not in LATER - {"furlkey"}]
            rows = [row(table, number) for number in range(1, count + 1)]
            values = [
                {n: v for n, v in one.items() if n in names} | _urls(table, i) for i, one in enumerate(rows)
            ]
            connection.execute(sqlalchemy.insert(table), values)
        if kind == "mariadb":  # where an upgrade was interrupted before
            connection.exec_driver_sql("ALTER TABLE qdb ADD curlhash BIGINT NOT NULL DEFAULT 0")
    told = []
    applied = schema.upgrade(address, lambda *done: told.append(done))
    assert applied == [*REVISIONS[REVISIONS.index("0010") :], *OF_APPS]
    assert told[7] == (4 * count, 4 * count)  # of schema 0010
    assert told[-1] == (3 * count, 3 * count)  # of 0023, where nothing has an outcome yet
    assert len(told) == (4 + 3) * 2
    with engine.connect() as connection:
        for table in tables[:-1]:
            found = connection.execute(sqlalchemy.select(table.c.curlhash, table.c.furlhash)).all()
            expected = [namehashes(f"http://x/{i}", f"http://x/{i // 2 * 2}") for i in range(count)]
            assert sorted(map(tuple, found), key=str) == sorted(expected, key=str)
        left = {column["name"] for column in sqlalchemy.inspect(connection).get_columns("urlerrors")}
    assert left & {"curlhash", "furlhash"} == set()  # schema 0017 finds failures among the outcomes
    engine.dispose()


@pytest.mark.parametrize("kind", KINDS)
def test_waiting_urls_outlive_the_way_to_another_key_and_back(databases, kind):
    address = databases.empty(kind)
    engine = make_engine(address)
    qdb = metadata.tables["qdb"]
    before = {**row(qdb, 1), **_urls(qdb, 1), "urlkey": b"b" * 16, "sent": None}
    del before["last_etag"]
    rows = [before, {**before, "urlkey": b"a" * 16, **_urls(qdb, 12345)}]
    with engine.begin() as connection:
        _to("0022", connection)
        connection.execute(sqlalchemy.insert(qdb), rows)
        earlier = _rows_of(connection, qdb)
    assert schema.upgrade(address) == [*REVISIONS[REVISIONS.index("0023") :], *OF_APPS]
    with engine.begin() as connection:
        assert [{**one, **_hashed(one), "last_etag": ""} for one in rows] == sorted(
            _rows_of(connection, qdb), key=_by_curl
        )
        numbers = connection.execute(sqlalchemy.select(qdb.c.id, qdb.c.urlkey).order_by(qdb.c.id)).all()
        assert [number for number, _ in numbers] == [1, 2]
        if kind == "sqlite":  # where they lie as they came
            assert [key for _, key in numbers] == [b"b" * 16, b"a" * 16]
        _to("0022", connection, down=True)
        columns = {one["name"] for one in sqlalchemy.inspect(connection).get_columns("qdb")}
        assert "id" not in columns
    with engine.connect() as connection:
        back = _rows_of(connection, qdb)
        assert [without_hashes(one) for one in back] == [without_hashes(one) for one in earlier]
    engine.dispose()
    assert schema.upgrade(address) == REVISIONS[REVISIONS.index("0023") :]


ANSWERED = ("HTTP/1.1 200 Schön", '[["Server", "é𝄞"]]', "192.0.2.1")


@pytest.mark.parametrize("kind", KINDS)
def test_answers_outlive_the_way_into_the_rows_of_their_documents_and_back(databases, kind):
    address = databases.empty(kind)
    engine = make_engine(address)
    lccurl = metadata.tables["lccurl"]
    answers = views.tables["lccmeta"]
    documents = [{**row(lccurl, number), **dict.fromkeys(ANSWER)} for number in (1, 2, 3)]
    documents.sort(key=lambda one: one["urlkey"])
    known = [{name: one[name] for name in one if name not in {*ANSWER, *PLACES}} for one in documents]
    said = [
        dict(zip(answers.columns.keys(), (documents[number]["urlkey"], *ANSWERED, number), strict=True))
        for number in (0, 2)
    ]
    with engine.begin() as connection:
        _to("0024", connection)
        connection.execute(sqlalchemy.insert(lccurl), known)
        connection.execute(sqlalchemy.insert(answers), said)
        if kind == "mariadb":  # where an upgrade was interrupted before
            connection.exec_driver_sql("ALTER TABLE lccurl ADD answer_headers MEDIUMTEXT")
    assert schema.upgrade(address) == [*REVISIONS[REVISIONS.index("0025") :], *OF_APPS]
    with engine.begin() as connection:
        assert _rows_of(connection, answers) == said
        rows = [tuple(one[name] for name in ANSWER) for one in _rows_of(connection, lccurl)]
        assert rows == [(*ANSWERED, 0), (None,) * 4, (*ANSWERED, 2)]
        kept = [{name: one[name] for name in known[0]} for one in _rows_of(connection, lccurl)]
        assert kept == known
        assert "lccmeta" in sqlalchemy.inspect(connection).get_view_names()
        _to("0024", connection, down=True)
    with engine.connect() as connection:
        assert "lccmeta" in sqlalchemy.inspect(connection).get_table_names()
        assert _rows_of(connection, answers) == said
        left = {one["name"] for one in sqlalchemy.inspect(connection).get_columns("lccurl")}
        assert left == set(known[0])
    engine.dispose()
    assert schema.upgrade(address) == REVISIONS[REVISIONS.index("0025") :]


def test_an_upgrade_that_was_interrupted_before_its_view_goes_on(databases):
    address = databases.empty("mariadb")
    engine = make_engine(address)
    with engine.begin() as connection:
        _to("0025", connection)
        connection.exec_driver_sql(f"UPDATE {schema.VERSION_TABLE} SET version_num = '0024'")
        connection.exec_driver_sql("DROP VIEW lccmeta")
    assert schema.upgrade(address) == [*REVISIONS[REVISIONS.index("0025") :], *OF_APPS]
    assert sqlalchemy.inspect(engine).get_view_names() == sorted(schema.views_of())
    engine.dispose()


@pytest.mark.parametrize("kind", KINDS)
def test_tables_that_the_core_had_before_they_were_an_apps_stay_with_their_rows(databases, kind):
    address = databases.empty(kind)
    schema.upgrade(address)
    engine = make_engine(address)
    put_rows(address)
    before = all_rows(address)
    with engine.begin() as connection:
        for line in schema.lines_of()[1:]:
            connection.exec_driver_sql(f"DROP TABLE {line.table}")
    assert schema.upgrade(address) == OF_APPS
    assert all_rows(address) == before
    assert sqlalchemy.inspect(engine).get_view_names() == sorted(schema.views_of())
    engine.dispose()


def without_hashes(values):
    gone = {"curlhash", "furlhash", "last_etag"}
    return {name: value for name, value in values.items() if name not in gone}


def _by_curl(values):
    return len(values["curl"])


def _hashed(values):
    return dict(zip(("curlhash", "furlhash"), namehashes(values["curl"], values["furl"]), strict=True))


def _rows_of(connection, table):
    there = {one["name"] for one in sqlalchemy.inspect(connection).get_columns(table.name)}
    names = [column for column in table.columns if column.name in there - {"id"}]
    rows = connection.execute(sqlalchemy.select(*names).order_by(table.c.urlkey))
    return [one._asdict() for one in rows]


def _to(revision, connection, *, down=False):
    config = schema._config(schema.CORE)
    config.attributes["connection"] = connection
    (command.downgrade if down else command.upgrade)(config, revision)


@pytest.mark.parametrize("kind", KINDS)
def test_full_sets_under_way_are_judged_anew_by_the_upgrade(databases, kind):
    address = databases.empty(kind)
    engine = make_engine(address)
    psets = metadata.tables["psets"]
    phases = ["keys", "absent", "removals", "holds", "entries", "absorbed"]
    said = {"progress": 5, "counted": 6, "absent": 7, "unfetched": 8, "upto": b"k" * 16}
    with engine.begin() as connection:
        _to("0022", connection)
        rows = [{**row(psets, number), **said, "phase": phase} for number, phase in enumerate(phases, 1)]
        connection.execute(sqlalchemy.insert(psets), rows)
    assert schema.upgrade(address) == [*REVISIONS[REVISIONS.index("0023") :], *OF_APPS]
    with engine.connect() as connection:
        query = sqlalchemy.select(psets.c.phase, *(psets.c[name] for name in said))
        found = sorted(tuple(one) for one in connection.execute(query))
    began, other = (0, 6, 7, 8, None), tuple(said.values())
    expected = [("absorbed", *other), ("entries", *other), ("holds", *began), ("removals", *began)]
    assert [one for one in found if one[0] != "keys"] == expected
    assert sorted(one[1:] for one in found if one[0] == "keys") == [(0, 0, 0, 0, None), began]
    engine.dispose()


@pytest.mark.parametrize("kind", KINDS)
def test_outcomes_of_an_earlier_schema_outlive_the_upgrade_and_are_found_by_their_key(databases, kind):
    address = databases.empty(kind)
    engine = make_engine(address)
    old = {"urlkey": b"k" * 16, "pid": 7, "code": 404, "text": "Not Found", "at": 5}
    with engine.begin() as connection:
        config = schema._config(schema.CORE)
        config.attributes["connection"] = connection
        command.upgrade(config, "0015")
        connection.execute(sqlalchemy.insert(metadata.tables["outcomes"]), old)
    engine.dispose()
    assert "0017" in schema.upgrade(address)
    store = SqlStore(address)
    with store.read() as tx:
        assert tx.outcomes_named(old["urlkey"].hex()) == [LastOutcome(*old.values())]
        assert tx.outcomes_named("") == []
    store.close()


def _urls(table, number):
    """Return two URLs of a row, of which each second is the same."""
    curl, furl = f"http://x/{number}", f"http://x/{number // 2 * 2}"
    if table.name == "urlerrors":
        return {"url": furl, "attributes": json.dumps({"curl": curl})}
    return {"curl": curl, "furl": furl}


@pytest.mark.parametrize("table", ["qdb", "lccurl", "tombstones", "outcomes"])
@pytest.mark.parametrize("column", ["curlhash", "furlhash"])
def test_names_of_urls_are_looked_up_in_an_index(fresh, tmp_path, table, column):
    (tmp_path / "100%").mkdir()
    schema.upgrade(fresh)
    engine = make_engine(fresh)
    with engine.connect() as connection:
        plan = connection.exec_driver_sql(
            f"EXPLAIN QUERY PLAN SELECT * FROM {table} WHERE {column} = ?", (5,)
        ).all()
    engine.dispose()
    assert [f"INDEX {table}_{column} " in line.detail for line in plan] == [True]


@pytest.mark.parametrize(
    ("question", "index"),
    [
        ("SELECT urlkey FROM qdb WHERE operation = 'fetch' AND furlkey IN (?, ?)", "ix_qdb_furlkey"),
        (
            "SELECT column1 FROM (VALUES (?), (?)) WHERE EXISTS (SELECT 1 FROM qdb WHERE urlkey = column1)",
            "qdb_urlkey",
        ),
        ("SELECT id FROM qdb WHERE pid = ? AND id > ? ORDER BY id LIMIT 1 OFFSET 4999", "qdb_pid"),
        ("SELECT count(*) FROM qdb WHERE pid = 7 AND id > ? AND id <= ? AND origin = 'push'", "qdb_pid"),
    ],
)
def test_what_arrivals_ask_is_looked_up_in_an_index(fresh, tmp_path, question, index):
    (tmp_path / "100%").mkdir()
    schema.upgrade(fresh)
    engine = make_engine(fresh)
    with engine.connect() as connection:
        plan = connection.exec_driver_sql(f"EXPLAIN QUERY PLAN {question}", (b"a", b"b")).all()
        (kept,) = connection.exec_driver_sql("SELECT sql FROM sqlite_master WHERE name = 'ix_qdb_furlkey'")
    assert any(index in line.detail for line in plan)
    assert kept[0].endswith("WHERE furlkey IS NOT NULL")
    engine.dispose()


def test_an_upgrade_can_be_taken_back(fresh, tmp_path):
    (tmp_path / "100%").mkdir()
    schema.upgrade(fresh)
    engine = make_engine(fresh)
    with engine.begin() as connection:
        config = schema._config(schema.CORE)
        config.attributes["connection"] = connection
        for line in schema.lines_of():
            config = schema._config(line)
            config.attributes["connection"] = connection
            command.downgrade(config, "base")
    left = sqlalchemy.inspect(engine).get_table_names()
    assert left == sorted(line.table for line in schema.lines_of())
    engine.dispose()


def test_the_newest_revision_is_known_without_alembic():
    assert REVISIONS[-1] == schema.CORE.newest()


LINKS_BEFORE = sqlalchemy.text("INSERT INTO links VALUES (:urlkey, :position, :url, 'a', :nofollow)")


def _with_links_of_0030(engine, documents):
    """Fill a database of schema 0030: so many documents, of providers 1 to 3, with a few links each."""
    lccurl = metadata.tables["lccurl"]
    rows = [{**row(lccurl, number), "pid": number % 3 + 1} for number in range(1, documents + 1)]
    links = [
        {"urlkey": one["urlkey"], "position": at, "url": f"http://x/é{n % 7}/{at}", "nofollow": at == 2}
        for n, one in enumerate(rows)
        for at in range(n % 5)
    ]
    with engine.begin() as connection:
        _to("0030", connection)
        there = {one["name"] for one in sqlalchemy.inspect(connection).get_columns("lccurl")}
        connection.execute(
            sqlalchemy.insert(lccurl), [{name: one[name] for name in one if name in there} for one in rows]
        )
        connection.execute(LINKS_BEFORE, links)
        connection.execute(LINKS_BEFORE, {**links[0], "urlkey": b"of no document"})
    found = {one["urlkey"]: [] for one in rows}
    for one in links:
        found[one["urlkey"]].append(DocumentLink(one["url"], "a", one["nofollow"]))
    return found


def _links(address, keys):
    store = SqlStore(address)
    with store.read() as tx:
        found = {key: tx.links_of(key) for key in keys}
    store.close()
    return found


@pytest.mark.parametrize("kind", KINDS)
def test_links_outlive_the_way_into_one_row_for_each_document(databases, kind):
    address = databases.empty(kind)
    engine = make_engine(address)
    links = _with_links_of_0030(engine, 450)
    told = []
    assert schema.upgrade(address, lambda *done: told.append(done))[0] == "0031"
    assert _links(address, links) == links
    assert _links(address, [b"of no document"]) == {b"of no document": []}
    assert [done for done, _ in told] == [200, 361]
    with engine.begin() as connection:
        assert not sqlalchemy.inspect(connection).has_table("links_rebuilt")
        _to("0030", connection, down=True)
    assert schema.upgrade(address)[0] == "0031"
    engine.dispose()


STEPS_OF_0031 = {
    "tables": ("INSERT INTO linkwords", 1),
    "first page": ("INSERT INTO links_rebuilt", 1),
    "last page": ("INSERT INTO links_rebuilt", 2),
    "drop": ("DROP TABLE links", 1),
    "rename": ("ALTER TABLE links_rebuilt", 1),
}


@pytest.mark.parametrize("at", STEPS_OF_0031)
def test_a_conversion_of_links_that_was_killed_goes_on(databases, at):
    address = databases.empty("mariadb")
    engine = make_engine(address)
    links = _with_links_of_0030(engine, 450)
    begins, left = STEPS_OF_0031[at]

    def kill(connection, cursor, statement, *_):
        nonlocal left
        left -= " ".join(statement.split()).startswith(begins)
        if left == 0:
            raise KeyboardInterrupt

    sqlalchemy.event.listen(engine, "before_cursor_execute", kill)
    with pytest.raises(KeyboardInterrupt), engine.begin() as connection:
        _to("0031", connection)
    assert schema.upgrade(address)[0] == "0031"
    assert _links(address, links) == links
    engine.dispose()


def timeless(url):
    """Return what makes a database, without the moment of the upgrade that a column has for its default."""
    return [
        (re.sub(r"DEFAULT \d{10}\b", "DEFAULT now", text), values)
        for text, values in statements_of(sqlalchemy.make_url(url))
    ]


@pytest.mark.slow
def test_a_database_that_is_made_for_a_test_is_as_migrations_make_it(databases):
    made, migrated = databases.empty("mariadb"), databases.empty("mariadb")
    upgrade(made)
    schema.upgrade(migrated)
    assert timeless(made) == timeless(migrated)
    assert schema.pending(made) == []
