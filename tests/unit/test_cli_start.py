"""What commands of ``lcc`` import before they do anything, which is most of what a short one costs."""

import json
import os
import subprocess
import sys

import pytest

_PROGRAM = """\
import atexit, gc, json, sys

def tell():
    stays, full = gc.get_freeze_count(), gc.get_stats()[2]["collections"] - before
    print(json.dumps({"modules": [*sys.modules], "full": full, "stays": stays}))

before = gc.get_stats()[2]["collections"]
atexit.register(tell)
from lcc_scrapy.cli.main import main
main(sys.argv[1:])
"""
NEVER = {
    "aiohttp", "alembic", "argon2", "cryptography", "fastapi", "hyperlink", "lxml", "psycopg", "pyarrow", "pymysql",
    "redis", "rich", "scrapy", "sqlalchemy.dialects.mysql", "sqlalchemy.dialects.postgresql", "sqlalchemy.orm", "starlette",
    "trafilatura", "twisted", "uvicorn", "w3lib",
}  # fmt: skip
"""What looking something up in SQLite needs nothing of."""

FOR_HELP = NEVER - {"w3lib"} | {"sqlalchemy"}
"""What no help needs; ``export`` names its formats, which know it."""


class Started:
    """What a command printed, imported, and how often it looked through everything for garbage."""

    def __init__(self, folder, *words, **environment):
        clean = {name: text for name, text in os.environ.items() if not name.startswith(("LCC_", "SCRAPY_"))}
        self.done = subprocess.run(
            [sys.executable, "-c", _PROGRAM, *words],
            env={**clean, **environment}, cwd=folder, capture_output=True, text=True, check=False,
        )  # fmt: skip
        *self.lines, told = self.done.stdout.splitlines()
        found = json.loads(told)
        self.modules, self.full, self.stays = found["modules"], found["full"], found["stays"]

    def imported(self, among):
        return {name for name in among for one in self.modules if f"{one}.".startswith(f"{name}.")}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """The folder of an LCC with provider 7."""
    here = tmp_path_factory.mktemp("lcc")
    add = ("provider", "add", "7", "--root", "http://site.example/")
    assert Started(here, "init").done.returncode == 0
    assert Started(here, *add, LCC_PWD="wachtwoord").done.returncode == 0
    return here


@pytest.mark.parametrize(
    ("words", "status", "says"),
    [
        (("explain", "http://site.example/x"), 1, "it lies in the roots of provider 7"),
        (("status",), 0, "queue"),
        (("provider", "list"), 0, "7"),
        (("provider", "show", "7"), 0, "http://site.example/"),
        (("errors", "7"), 0, ""),
        (("versions", "http://site.example/x"), 1, "there is no document"),
    ],
    ids=lambda value: " ".join(value[:2]) if isinstance(value, tuple) else "",
)
def test_a_command_that_looks_something_up_imports_what_it_needs(folder, words, status, says):
    started = Started(folder, *words)
    assert started.done.returncode == status
    assert says in started.done.stdout + started.done.stderr
    assert started.imported(NEVER) == set()
    assert started.imported({"sqlalchemy"})


def test_explain_reads_no_page_and_writes_no_export(folder):
    started = Started(folder, "explain", "http://site.example/x")
    others = {"cli.status", "cli.provider", "users.exports", "spidering.html", "queue_manager", "wiring"}
    assert started.imported({f"lcc_scrapy.{name}" for name in others}) == set()


@pytest.mark.parametrize(
    "words", [("--help",), ("--version",), ("explain", "--help"), ("db", "--help")], ids=" ".join
)
def test_help_needs_neither_a_database_nor_a_reactor(tmp_path, words):
    started = Started(tmp_path, *words)
    assert started.done.returncode == 0
    assert started.imported(FOR_HELP) == set()


def test_completing_a_command_needs_neither_a_database_nor_a_reactor(tmp_path):
    started = Started(tmp_path, _LCC_COMPLETE="bash_complete", COMP_WORDS="lcc ex", COMP_CWORD="1")
    assert [line for line in started.lines if "explain" in line]
    assert started.imported(FOR_HELP) == set()


def test_commands_of_an_app_stand_in_the_group_that_they_name_unless_it_is_left_out(tmp_path):
    started = Started(tmp_path, "front", "query", "--help")
    assert "lcc front query" in started.lines[0]
    assert started.imported(FOR_HELP) == set()
    for left_out in (
        Started(tmp_path, "-s", "LCC_APPS=-query", "front", "query"),
        Started(tmp_path, "front", "query", LCC_APPS="-query"),
    ):
        assert left_out.done.returncode == 2
        assert "'query' is a command of the app query, which LCC_APPS leaves out" in left_out.done.stderr


def test_what_was_imported_is_not_looked_through_for_garbage(folder):
    started = Started(folder, "explain", "http://site.example/x")
    assert started.full == 0
    assert started.stays > 10_000
