"""The queue under the names of the LCC's design (seed 003, section 6), as its SELECTs see it on MariaDB."""

import re
from pathlib import Path

import pytest
from little_lcc import key, update
from sqlalchemy import text

VIEWS = Path(__file__).parents[2] / "contrib/mariadb/seed-views.sql"
FETCH_NOW = "SELECT * FROM QPSDB WHERE STARTTIMESLOT = -1 ORDER BY PSETID;"
NEXT_URL = "SELECT * FROM QDB WHERE URL = firsturl"
OPENING = "SELECT * FROM QPSDB WHERE STARTTIMESLOT = st ORDER BY PSETID;"
NOON_OF_TUESDAY = "SET timestamp = UNIX_TIMESTAMP('2027-01-05 12:00:00')"
NIGHT, MORNING = "1" * 6 + "0" * 18, "0" * 8 + "11" + "0" * 14
STEPS = re.compile(r";\s*\n")


@pytest.fixture
def ask(lcc):
    """Return a function that runs a statement of the design, with values for its small letters."""
    with lcc.store.engine.connect() as connection:
        connection.exec_driver_sql("SET time_zone = '+00:00'")
        connection.exec_driver_sql(NOON_OF_TUESDAY)
        for step in filter(str.strip, STEPS.split(VIEWS.read_text())):
            connection.exec_driver_sql(step.replace("%", "%%"))

        def run(statement, st=0, firsturl=""):
            connection.exec_driver_sql("DROP PROCEDURE IF EXISTS seed")
            body = (
                f"CREATE PROCEDURE seed(IN st INT, IN firsturl CHAR(32)) BEGIN {statement.rstrip(';')}; END"
            )
            connection.exec_driver_sql(body)
            rows = connection.execute(text("CALL seed(:st, :firsturl)"), {"st": st, "firsturl": firsturl})
            return [dict(row) for row in rows.mappings().all()]

        yield run
        connection.exec_driver_sql("DROP PROCEDURE IF EXISTS seed")
        for view in ("QPSDB", "QDB", "QSLOTS"):
            connection.exec_driver_sql(f"DROP VIEW IF EXISTS {view}")
        connection.invalidate()  # its clock stands still


@pytest.mark.parametrize("store", ["mariadb"], indirect=True)
def test_the_selects_of_the_design_go_from_sets_to_their_urls_in_order(lcc, ask):
    lcc.push(update("a"), update("b", timeofday=NIGHT), update("c"), update("d", timeofday=MORNING))
    lcc.push(update("e"))
    first, second = ask(FETCH_NOW)
    assert (first["PID"], first["STARTTIMESLOT"], first["PSETID"] < second["PSETID"]) == (7, -1, True)
    assert (first["FIRSTURL"], first["LASTURL"]) == (key("a").hex(), key("c").hex())
    names, place = [], first["FIRSTURL"]
    while place:
        (row,) = ask(NEXT_URL, firsturl=place)
        names.append((row["CURL"].rpartition("/")[2], row["OPERATION"], row["PSETID"]))
        place = row["NEXTURLINSET"]
    assert names == [("a", "FETCH", first["PSETID"]), ("c", "FETCH", first["PSETID"])]
    assert second["FIRSTURL"] == second["LASTURL"] == key("e").hex()


@pytest.mark.parametrize("store", ["mariadb"], indirect=True)
def test_a_set_waits_in_the_slot_of_its_next_opening(lcc, ask):
    lcc.push(
        update("b", timeofday=NIGHT), update("d", timeofday=MORNING), update("w", timeofday="0" * 167 + "1")
    )
    assert ask(FETCH_NOW) == []
    slots = {
        slot: [row["FIRSTURL"] for row in ask(OPENING, st=slot)] for slot in (0, 24, 47, 48, 49, 56, 167)
    }
    waiting = {slot: found for slot, found in slots.items() if found}
    assert waiting == {48: [key("b").hex()], 56: [key("d").hex()], 167: [key("w").hex()]}
    lcc.change(timeofday="1" * 12 + "0" * 156)  # on Monday only
    assert [row["FIRSTURL"] for row in ask(OPENING, st=0)] == [key("b").hex()]
