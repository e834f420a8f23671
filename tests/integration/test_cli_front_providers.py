"""``lcc front provider-add``: one provider in one of several real sub-LCCs, whatever happens meanwhile."""

import json
import subprocess
import sys
from contextlib import closing

import pytest
from test_cli import SITE, House, one_error

from lcc_scrapy.domain.front import FrontError
from lcc_scrapy.domain.providers import Provider
from lcc_scrapy.front.directory import Directory
from lcc_scrapy.front.new_providers import NewProviders, Place
from lcc_scrapy.front.sub_stores import SubStores

ADD = ("front", "provider-add")
GIVEN = ("--password-file", "-", "--root", SITE)


class Front(House):
    """A front without an LCC of its own, and what its sub-LCCs have."""

    def __init__(self, folder):
        super().__init__(folder)
        self.subs = {}
        self.lcc("front", "init")

    def sub(self, name, *options, url=""):
        (self.folder / name).mkdir()
        made = self.subs[name] = House(self.folder / name, url)
        made.lcc("init")
        self.lcc("front", "add", name, "--uns", "h:1", "--database", made.url, *options)
        return made

    def add(self, pid, *options, status=0, secret="secret"):
        return self.lcc(*ADD, str(pid), *GIVEN, *options, stdin=f"{secret}\n", status=status)

    def placed(self):
        """Return the pids that each sub-LCC has, and the one that PMDB names for each of these."""
        there = {
            name: [one["pid"] for one in sub.json("provider", "list")] for name, sub in self.subs.items()
        }
        with closing(Directory(f"sqlite:///{self.data}/front.sqlite")) as directory:
            for name, pids in there.items():
                assert [directory.sub_of(pid).name for pid in pids] == [name] * len(pids)
            assert sum(directory.providers().values()) == sum(map(len, there.values()))
        return there


@pytest.fixture
def front(tmp_path):
    made = Front(tmp_path)
    made.sub("a", "--capacity", "10")
    made.sub("b", "--capacity", "10")
    return made


def test_the_least_full_sub_lcc_gets_a_provider_with_all_that_was_said_of_it(front):
    front.subs["a"].add(1)
    front.lcc("front", "assign", "1", "--to", "a")
    front.subs["a"].push("x", pid=1)
    added = front.add(7, "--bandwidth", "200k", "--name", "Seven")
    assert added.stdout == f"provider 7 added in sub-LCC b: {SITE}\n"
    shown = front.subs["b"].json("provider", "show", "7")
    assert (shown["bandwidth"], shown["name"], shown["roots"]) == (200_000, "Seven", [SITE])
    (told,) = front.subs["b"].json("audit")
    assert (told["action"], told["pid"], told["detail"]) == ("provider add", 7, "by the front")
    assert front.placed() == {"a": [1], "b": [7]}


def test_sub_names_one_even_if_it_is_full(front):
    front.lcc("front", "set", "b", "--state", "full")
    front.add(7)
    front.add(8, "--sub", "b")
    assert front.placed() == {"a": [7], "b": [8]}
    front.lcc("front", "set", "a", "--state", "full")
    assert "no active sub-LCC has room" in one_error(front.add(9, status=1))
    assert "no sub-LCC c" in one_error(front.add(9, "--sub", "c", status=1))
    assert front.placed() == {"a": [7], "b": [8]}


def test_one_that_is_down_gets_nobody_and_holds_up_nobody(front):
    (front.subs["a"].data / "lcc.sqlite").rename(front.folder / "away")
    added = front.add(7)
    assert added.stdout.startswith("provider 7 added in sub-LCC b")
    assert (
        "a: the file of its database is not there; it was not asked whether it has a provider 7"
        in added.stderr
    )
    refused = front.add(8, "--sub", "a", status=1)
    assert refused.stderr.splitlines()[-1].endswith("sub-LCC a: the file of its database is not there")
    (front.folder / "away").rename(front.subs["a"].data / "lcc.sqlite")
    assert front.placed() == {"a": [], "b": [7]}


def test_a_database_of_another_lcc_or_none_is_no_place(front):
    front.lcc("front", "add", "c", "--uns", "h:1")
    with (
        closing(Directory(f"sqlite:///{front.data}/front.sqlite")) as directory,
        directory._engine.begin() as rows,
    ):
        rows.exec_driver_sql("update fedb set lccid = 'other' where name = 'a'")
    added = front.add(7)
    assert "its --database is not known" in added.stderr
    assert "not other; it was not asked" in added.stderr
    assert "set its database" in front.add(8, "--sub", "c", status=1).stderr
    assert front.placed() == {"a": [], "b": [7]}


def test_a_pid_is_given_once_over_all_sub_lccs(front):
    front.add(7, "--sub", "a")
    assert "assigned to sub-LCC a: say --sub a" in one_error(front.add(7, "--sub", "b", status=1))
    front.subs["b"].add(8)
    assert "`lcc front assign 8 --to b`" in one_error(front.add(8, status=1))
    front.subs["b"].lcc("provider", "remove", "8", "--yes")
    assert "never used again; take another" in one_error(front.add(8, "--sub", "a", status=1))
    assert front.placed() == {"a": [7], "b": []}


def test_a_provider_that_was_assigned_is_added_where_it_belongs(front):
    front.lcc("front", "assign", "7", "--to", "b")
    front.add(7)
    assert front.placed() == {"a": [], "b": [7]}


def test_one_that_was_assigned_to_a_sub_lcc_and_is_in_another_is_not_added(front):
    front.subs["b"].add(8)
    front.lcc("front", "assign", "8", "--to", "a")
    assert "sub-LCC b: provider 8 exists already" in one_error(front.add(8, status=1))
    assert front.subs["a"].json("provider", "list") == []


def test_twice_makes_one_provider_and_another_one_is_refused(front):
    front.add(7, "--sub", "b", "--bandwidth", "1k")
    assert front.add(7, "--bandwidth", "1k").stdout == "provider 7 is in sub-LCC b already\n"
    before = front.subs["b"].json("provider", "list")
    for options, secret, what in (
        (("--bandwidth", "2k"), "secret", "bandwidth"),
        (("--bandwidth", "1k"), "other", "password"),
        (("--bandwidth", "1k", "--root", "http://www.example.net/"), "secret", "roots"),
    ):
        error = one_error(front.add(7, *options, secret=secret, status=1))
        assert f"exists already in sub-LCC b, with another {what}" in error
    assert front.subs["b"].json("provider", "list") == before
    assert len(front.subs["b"].json("audit")) == 1


def test_a_dry_run_asks_for_no_password_and_changes_nothing(front):
    front.lcc("front", "set", "a", "--state", "full")
    dry = front.lcc(*ADD, "7", "--root", SITE, "--dry-run")
    assert dry.stdout == f"provider 7 would be added in sub-LCC b: {SITE}\n"
    facts = {"pid": 7, "sub": "b", "roots": [SITE], "added": False, "dry_run": True}
    assert json.loads(front.lcc(*ADD, "7", "--root", SITE, "--dry-run", "--json").stdout) == facts
    assert front.placed() == {"a": [], "b": []}
    facts |= {"added": True, "dry_run": False}
    assert json.loads(front.add(7, "--json").stdout) == facts
    assert json.loads(front.add(7, "--json").stdout) == facts | {"added": False}
    assert front.placed() == {"a": [], "b": [7]}


def test_what_is_wrong_on_the_command_line_changes_nothing(front):
    front.lcc(*ADD, "7", status=2)
    front.lcc(*ADD, "0", *GIVEN, status=2)
    one_error(front.add(7, "--root", "nonsense", status=1))
    one_error(front.add(7, secret="", status=1))
    assert front.placed() == {"a": [], "b": []}


def test_a_provider_that_moves_is_there_already(front):
    front.add(7, "--sub", "a")
    with (
        closing(Directory(f"sqlite:///{front.data}/front.sqlite")) as directory,
        directory._engine.begin() as rows,
    ):
        rows.exec_driver_sql("insert into moving values (7, 'a', 'b', 'active', 'copy', 1)")
    assert "it moves to sub-LCC b" in one_error(front.add(7, status=1))


def test_who_is_overtaken_learns_what_is_there_and_adds_no_second_one(front):
    fresh = Provider(7, "password")
    with (
        closing(Directory(f"sqlite:///{front.data}/front.sqlite")) as directory,
        SubStores(directory.subs(), to_write=True) as stores,
    ):
        directory.assign(7, "b")
        providers = NewProviders(directory, stores)
        place = providers.find(7, None)
        front.add(7, "--name", "Seven")
        provider, roots = providers.add(place, fresh, [SITE], lambda store: store).there
        assert (provider.name, roots) == ("Seven", [SITE])
        with pytest.raises(FrontError, match="assigned already"):
            providers.add(Place(directory.sub("a"), assigned=False), fresh, [SITE], lambda store: store)
    assert front.placed() == {"a": [], "b": [7]}


KILLED = """
import os, signal, sys
from sqlalchemy import event
from sqlalchemy.engine import Engine
from lcc_scrapy.cli.main import lcc
left = int(sys.argv.pop(1))

@event.listens_for(Engine, "commit")
def kill(_):
    global left
    left -= 1
    if left < 0:
        os.kill(os.getpid(), signal.SIGKILL)

lcc()
"""


def _killed_before_a_commit(front, number, *words):
    """Run a command that is killed before a commit; tell whether it was."""
    command = [sys.executable, "-c", KILLED, str(number), *words]
    done = subprocess.run(
        command, env=front.environment, cwd=front.folder, input=b"secret\n", capture_output=True, timeout=300,
        check=False,
    )  # fmt: skip
    assert done.returncode in {0, -9}, done.stderr
    return done.returncode == -9


@pytest.mark.soak_of("sqlite", "postgresql")
@pytest.mark.slow
@pytest.mark.parametrize("kind", ["sqlite", "mariadb", "postgresql"])
def test_killed_before_any_commit_and_run_again_makes_one_provider(tmp_path, databases, kind):
    front = Front(tmp_path)
    front.sub("a")
    front.sub("b", url="" if kind == "sqlite" else databases.empty(kind))
    pid = kills = 0
    while True:
        pid += 1
        words = (*ADD, str(pid), *GIVEN)
        killed = _killed_before_a_commit(front, pid - 1, *words, *("--sub", "b") * (pid % 2))
        assert front.add(pid).exit_code == 0
        assert front.add(pid).stdout.endswith("already\n")
        if not killed:
            break
        kills += 1
    assert kills >= 2
    there = front.placed()
    assert sorted(there["a"] + there["b"]) == list(range(1, pid + 1))


@pytest.mark.slow
def test_many_who_add_the_same_provider_at_once_make_one(front):
    command = [sys.executable, "-m", "lcc_scrapy.cli.main", *ADD, "7", *GIVEN]
    started = [
        subprocess.Popen(
            [*command, "--bandwidth", bandwidth], env=front.environment, cwd=front.folder,
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        )
        for bandwidth in ("1k", "1k", "2k", "2k")
    ]  # fmt: skip
    said = [one.communicate("secret\n", timeout=300) for one in started]
    assert sum("added in" in out for out, _ in said) == 1, said
    there = front.placed()
    assert sorted(there["a"] + there["b"]) == [7]
