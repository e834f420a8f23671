"""An LCC moves to another database in the middle of its work, and another one is restored from a backup."""

import hashlib
import json
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.database_servers import connect_mariadb
from tests.harness import Lcc, Nginx, _mariadb_url, wait_for

pytestmark = [pytest.mark.acceptance]

PAGES = 200


@pytest.fixture
def mariadb() -> Iterator[str]:
    """The address of an empty MariaDB database."""
    url, name = _mariadb_url()
    yield url
    with connect_mariadb() as connection, connection.cursor() as cursor:
        cursor.execute(f"drop database {name}")


def write_page(site: Path, number: int, words: str = "") -> None:
    path = site / f"{number:04d}.html"
    path.write_text(f"<p>{number} {words} {hashlib.sha256(str(number).encode()).hexdigest() * 20}</p>\n")


@pytest.fixture
def site(tmp_path: Path, nginx: Nginx) -> Path:
    folder = tmp_path / "site"
    folder.mkdir()
    for number in range(PAGES):
        write_page(folder, number)
    nginx.start({"site": folder})
    return folder


def requests(nginx: Nginx) -> list[str]:
    return [served.uri[1:] for served in nginx.log("site") if served.uri != "/robots.txt"]


def select(lcc: Lcc, cursor: str, *options: str) -> list[dict[str, object]]:
    done = lcc.lcc("select", "--format", "jsonl", "--cursor-file", cursor, *options)
    return [json.loads(line) for line in done.stdout.splitlines()]


def documents(lcc: Lcc) -> dict[str, bytes]:
    rows = lcc.sql("select furl, fetched_machineid, fetched_fileid from lccurl")
    return {
        furl.rpartition("/")[2]: lcc.path_of(machineid, fileid).read_bytes()
        for furl, machineid, fileid in rows
    }


def files(site: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in site.iterdir()}


def test_an_lcc_moves_from_sqlite_to_mariadb_in_mid_life(
    mariadb: str, make_lcc: Callable[..., Lcc], nginx: Nginx, site: Path
) -> None:
    prefix = f"http://127.0.0.1:{nginx.ports['site']}/"
    lcc = make_lcc()
    lcc.add_provider(1, prefix, "--bandwidth", "5k")
    lcc.start()
    assert lcc.push(site, 1, prefix, "-name '*.html'").returncode == 0
    wait_for(lambda: lcc.sql("select count(*) from lccurl")[0][0] >= PAGES // 5, what="a part of the pages")
    lcc.lcc("provider", "pause", "1")
    seen = select(lcc, "cursor", "--limit", "20")
    refusal = lcc.lcc("db", "copy", mariadb, check=False)
    assert refusal.returncode == 1
    assert "stop them first" in refusal.stderr
    assert lcc.stop() == 0
    assert lcc.sql("select count(*) from qdb")[0][0] > PAGES // 5, "all was fetched: the test shows nothing"

    copied = lcc.lcc("db", "copy", mariadb)
    assert f"LCC_DATABASE_URL={mariadb}" in copied.stdout
    assert "set LCC_DATABASE_URL" in lcc.lcc("status", check=False).stderr
    assert "set LCC_DATABASE_URL" in lcc.refused()

    lcc.database_url = lcc.settings["LCC_DATABASE_URL"] = mariadb
    seen += select(lcc, "cursor", "--limit", "20")
    lcc.lcc("provider", "set", "1", "--bandwidth", "0")
    lcc.lcc("provider", "resume", "1")
    lcc.start()
    lcc.wait_until_fetched()
    seen += select(lcc, "cursor")
    assert [row["seq"] for row in seen] == list(range(1, PAGES + 1))
    assert {str(row["furl"]).removeprefix(prefix) for row in seen} == files(site).keys()
    assert requests(nginx) == sorted(files(site))
    assert documents(lcc) == files(site)

    for state in ("state.txt", "another.txt"):
        assert lcc.push(site, 1, prefix, "-name '*.html'", state=state).returncode == 0
    lcc.wait_until_fetched()
    assert set(Counter(requests(nginx)).values()) == {1}
    assert select(lcc, "cursor") == []
    write_page(site, 7, "news")
    assert lcc.push(site, 1, prefix, "-name '*.html'").returncode == 0
    lcc.wait_until_fetched()
    assert [(row["seq"], row["furl"]) for row in select(lcc, "cursor")] == [(PAGES + 1, prefix + "0007.html")]
    assert lcc.stop() == 0
    assert lcc.lcc("verify").returncode == 0


@pytest.mark.parametrize(("database", "damage"), [("sqlite", "garbage"), ("mariadb", "emptied")])
def test_an_lcc_is_restored_from_a_backup(
    database: str, damage: str, make_lcc: Callable[..., Lcc], nginx: Nginx, site: Path
) -> None:
    prefix = f"http://127.0.0.1:{nginx.ports['site']}/"
    lcc = make_lcc(database)
    lcc.add_provider(1, prefix)
    lcc.start()
    assert lcc.push(site, 1, prefix, "-name '*.html'").returncode == 0
    wait_for(lambda: lcc.sql("select count(*) from lccurl")[0][0] >= 20, what="some pages")
    lcc.lcc("db", "backup", "backup.sqlite")
    lcc.wait_until_fetched()
    for number in (1, 2, 3):
        write_page(site, number, "changed")
    write_page(site, PAGES, "added")
    (site / "0000.html").unlink()
    assert lcc.push(site, 1, prefix, "-name '*.html'").returncode == 0
    lcc.wait_until_fetched()
    assert len(select(lcc, "cursor")) == PAGES + 1
    used = dict(lcc.sql("select fetched_fileid, sha256 from lccurl"))
    assert lcc.stop() == 0

    if damage == "garbage":
        database_file = lcc.folder / "lcc-data/lcc.sqlite"
        database_file.write_bytes(b"garbage" * 10_000)
        refusal = lcc.lcc("db", "restore", "backup.sqlite", "--yes", check=False)
        assert "move it away" in refusal.stderr
        database_file.rename(lcc.folder / "damaged")
    else:
        for table in ("lccurl", "lccmeta", "tombstones"):
            empty(lcc, table)
    lcc.lcc("db", "restore", "backup.sqlite", "--yes")
    assert lcc.lcc("select", "--cursor-file", "cursor", check=False).returncode == 3
    lcc.lcc("verify", "--repair")

    lcc.start()
    assert lcc.check(1)["full_set_wanted"] == "cache crash"
    for _ in range(2):  # the first one learns of the wish
        assert lcc.push(site, 1, prefix, "-name '*.html'").returncode == 0
    lcc.wait_until_fetched()
    assert documents(lcc) == files(site)
    assert lcc.check(1)["full_set_wanted"] is False
    again = dict(lcc.sql("select fetched_fileid, sha256 from lccurl"))
    assert all(used[fileid] == again[fileid] for fileid in used.keys() & again.keys())
    assert min(again.keys() - used.keys()) > max(used)
    told = {op: [] for op in ("upsert", "remove")}
    for row in select(lcc, "new cursor"):
        told[row["op"]].append(str(row["furl"]).removeprefix(prefix))
    assert sorted(told["upsert"]) == sorted(files(site))
    assert told["remove"] == ["0000.html"]
    assert lcc.stop() == 0
    assert lcc.lcc("verify").returncode == 0


def empty(lcc: Lcc, table: str) -> None:
    name = lcc.database_url.rpartition("/")[2]
    with connect_mariadb(database=name, autocommit=True) as connection:
        connection.cursor().execute(f"delete from {table}")
