"""An app of a team: the package in docs/apps.md is built, installed beside the LCC, and used."""

import json
import re
import shutil
import signal
import sqlite3
import subprocess
import urllib.request
from contextlib import closing, contextmanager
from pathlib import Path
from urllib.parse import urlencode

import pytest
from test_cli import SITE, House

from lcc_scrapy.domain.entries import Operation
from tests.harness import wait_for
from tests.own_venv import install_beside_ours

PAGE = Path(__file__).parents[2] / "docs" / "apps.md"
FILES = dict(re.findall(r"^`([\w./]+)`\n\n```\w+\n(.*?)^```", PAGE.read_text(), re.MULTILINE | re.DOTALL))
pytestmark = pytest.mark.slow

APPS = {"LCC_APPS": "mypkg.titles"}
NEWS = b"<!doctype html><title>\n News &amp; more </title><h1>News</h1>"
WEATHER = b"<title>Weather</title>"


class WithTitles(House):
    """An LCC beside which the package is installed; commands know the app where ``LCC_APPS`` names it."""

    def __init__(self, folder, python):
        super().__init__(folder)
        self._command = [str(python), "-m", "lcc_scrapy.cli.main"]

    def run(self, *words, status=0, **settings):
        done = subprocess.run(
            [*self._command, *words], env=self.environment | settings, cwd=self.folder,
            capture_output=True, text=True, timeout=300, check=False,
        )  # fmt: skip
        assert done.returncode == status, (words, done.stdout, done.stderr)
        assert "Traceback" not in done.stderr
        return done

    def titled(self, *words, **settings):
        return self.run(*words, **APPS, **settings)

    @contextmanager
    def started(self, *words, **settings):
        """Run a command until the end of the block; gives the file that it logs into."""
        log = self.folder / "started.log"
        with log.open("wb") as out:
            process = subprocess.Popen(
                [*self._command, *words], env=self.environment | APPS | settings, cwd=self.folder,
                stdout=out, stderr=out,
            )  # fmt: skip
        try:
            yield log
        finally:
            process.send_signal(signal.SIGTERM)
            process.wait(300)
        assert process.returncode == 0, log.read_text()
        assert "Traceback" not in log.read_text(), log.read_text()

    @property
    def titles(self):
        return self.titles_in(self.data / "lcc.sqlite")

    @staticmethod
    def titles_in(file):
        with closing(sqlite3.connect(file)) as connection:
            rows = connection.execute("select url, title from titles").fetchall()
        return {url.removeprefix(SITE): title for url, title in rows}


def one_line(done):
    """Return what a command says that refuses to work."""
    (line,) = done.stderr.splitlines()
    return line


@pytest.fixture(scope="module")
def python(tmp_path_factory):
    """The interpreter of an environment with the package of the page."""
    folder = tmp_path_factory.mktemp("team")
    for name, text in FILES.items():
        file = folder / "mypkg" / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
    return install_beside_ours(folder / "venv", folder / "mypkg") / "python"


@pytest.fixture(scope="module")
def first(tmp_path_factory, python):
    """An LCC of some age that gets the app, with two pages the titles of which are known."""
    made = WithTitles(tmp_path_factory.mktemp("first"), python)
    made.lcc("init")
    said = made.titled("status", status=1)
    assert one_line(said) == "lcc: error: the database needs `lcc db upgrade` (waiting: titles 0001)"
    assert "CREATE TABLE titles" in made.titled("db", "upgrade", "--dry-run").stdout
    assert made.titled("db", "upgrade").stdout == "upgraded: titles 0001\n"
    made.add()
    for name, body in (("news", NEWS), ("weather", WEATHER)):
        made.push(name)
        made.fetch(body=body)
    assert made.titled("titles", "follow", "--once").stdout == ""
    return made


@pytest.fixture
def house(first, tmp_path, python):
    """A copy of it."""
    shutil.copytree(first.data, tmp_path / "lcc-data")
    made = WithTitles(tmp_path, python)
    assert made.titles == {"news": "News & more", "weather": "Weather"}
    return made


def ask(port, token, **query):
    asked = urllib.request.Request(
        f"http://127.0.0.1:{port}/v1/titles?{urlencode(query)}", headers={"Authorization": f"Bearer {token}"}
    )
    with urllib.request.urlopen(asked, timeout=300) as answer:
        return json.load(answer)


def test_a_new_lcc_has_its_table_at_once(tmp_path, python):
    made = WithTitles(tmp_path, python)
    made.titled("init")
    assert made.titles == {}
    assert made.titled("db", "upgrade").stdout == "the database is up to date\n"
    assert "\n  titles " in made.titled("--help").stdout


def test_it_follows_what_changes_and_goes_on_where_it_was(house):
    house.push("news")
    house.fetch(body=b"<title>Newer</title>")
    house.push("weather", operation=Operation.REMOVE)
    with house.started("titles", "follow", LCC_POLL="0.1"):
        wait_for(lambda: house.titles == {"news": "Newer"}, what="the titles")
        house.documents("plain")
        wait_for(lambda: house.titles == {"news": "Newer", "plain": ""}, what="the titles")
    (kept,) = house.json("status")["cursors"]
    assert (kept["owner"], kept["name"], kept["behind"]) == ("apps", "titles", 0)


def test_the_page_shows_what_a_token_is_for(house):
    everything = house.lcc("token", "add", "all").stdout.strip()
    nothing = house.lcc("token", "add", "other", "--provider", "8").stdout.strip()
    with house.started("web", LCC_WEB_ENDPOINT="127.0.0.1:0") as log:
        wait_for(lambda: "listening on" in log.read_text(), what="the server")
        port = int(re.search(r"listening on \S+:(\d+)$", log.read_text(), re.MULTILINE)[1])
        assert ask(port, everything, word="News") == [{"url": f"{SITE}news", "title": "News & more"}]
        assert ask(port, everything, word="%") == []
        assert ask(port, nothing, word="News") == []


def test_without_it_nothing_is_lost_and_with_it_a_backup_has_its_rows(house, tmp_path):
    missing = "which is not installed here, and their rows would be lost: install it (LCC_APPS)"
    backup, copy = tmp_path / "backup.sqlite", tmp_path / "copy.sqlite"
    before = house.titles
    assert one_line(house.run("db", "backup", str(backup), status=1)).endswith(f"of titles, {missing}")
    assert not backup.exists()
    house.titled("db", "backup", str(backup))
    assert house.titles_in(backup) == before
    house.push("news")
    house.fetch(body=b"<title>Newer</title>")
    house.titled("titles", "follow", "--once")

    later = house.titles
    assert missing in house.run("db", "restore", str(backup), "--yes", status=1).stderr
    assert missing in house.run("db", "copy", f"sqlite:///{copy}", status=1).stderr
    assert house.titles == later != before
    assert not copy.exists()

    house.titled("db", "restore", str(backup), "--yes")
    assert house.titles == before
    house.titled("titles", "follow", "--once")
    assert house.titles == before, "its cursor was of another life: it has begun anew"
    house.titled("db", "copy", f"sqlite:///{copy}")
    assert house.titles_in(copy) == before
    house.titled("titles", "follow", "--once", LCC_DATABASE_URL=f"sqlite:///{copy}")
    assert (
        house.titled("db", "upgrade", LCC_DATABASE_URL=f"sqlite:///{copy}").stdout
        == "the database is up to date\n"
    )


def test_a_left_out_app_keeps_its_rows_and_has_no_command(house, tmp_path):
    left_out = {"LCC_APPS": "mypkg.titles -titles"}
    done = house.run("titles", "follow", status=2, **left_out)
    assert "'titles' is a command of the app titles, which LCC_APPS leaves out." in done.stderr
    assert "titles" not in house.run("--help", **left_out).stdout
    backup = tmp_path / "backup.sqlite"
    house.run("db", "backup", str(backup), **left_out)
    house.run("db", "restore", str(backup), "--yes", **left_out)
    assert house.titles == {"news": "News & more", "weather": "Weather"}
