"""No secret anywhere: canaries go in at every door, and are looked for wherever anybody could look."""

import os
import secrets
import signal
import socket
import sqlite3
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Self

import pytest
import sqlalchemy

from lcc_scrapy.db.sql.store import make_engine
from tests.certificates import Authority
from tests.database_servers import SERVERS, connect_mariadb
from tests.harness import BIN, Lcc, Nginx, free_port, wait_for

pytestmark = pytest.mark.acceptance

INIT = '<lococa:init xmlns:lococa="http://www.lococa.org/1.0"><provider id="{}" passwd="{}"/></lococa:init>'


def canary(name: str) -> str:
    return f"{name}{secrets.token_hex(8)}"


class ProcessList:
    """What any user of the machine sees of others' command lines, looked at all the time."""

    def __init__(self, words: list[str]) -> None:
        self._words = [word.encode() for word in words]
        self.seen: dict[int, list[float]] = {}
        self.looks = 0
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)

    def _watch(self) -> None:
        while not self._ended.is_set():
            self.looks += 1
            for entry in Path("/proc").iterdir():
                if entry.name.isdigit():
                    self._look(entry)
            self._ended.wait(0.05)

    def _look(self, entry: Path) -> None:
        try:
            line = (entry / "cmdline").read_bytes()
        except OSError:
            return
        if any(word in line for word in self._words):
            self.seen.setdefault(int(entry.name), []).append(time.monotonic())

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self._thread.join()


class Search:
    """Looks for words in texts, files and tables; ``found`` says where they were."""

    def __init__(self, *words: str) -> None:
        self.words = words
        self.found: list[str] = []
        self.looked_at: dict[str, int] = {}

    def text(self, where: str, text: str | bytes) -> None:
        data = text.encode(errors="surrogateescape") if isinstance(text, str) else text
        kind = where.partition(" ")[0]
        self.looked_at[kind] = self.looked_at.get(kind, 0) + 1
        for word in self.words:
            at = data.find(word.encode())
            if at >= 0:
                self.found.append(f"{where}: …{data[max(0, at - 60) : at + 40]!r}…")

    def folder(self, folder: Path) -> None:
        for path in sorted(folder.rglob("*")):
            if path.is_file():
                self.text(f"file {path}", path.read_bytes())
            self.text(f"name {path}", os.fsencode(path))

    def sqlite(self, path: Path) -> None:
        with closing(sqlite3.connect(path)) as connection:
            for line in connection.iterdump():
                self.text("row of SQLite", line)

    def database(self, url: str) -> None:
        engine = make_engine(url)
        try:
            with engine.connect() as connection:
                for table in sqlalchemy.inspect(engine).get_table_names():
                    for row in connection.exec_driver_sql(f"select * from `{table}`"):
                        self.text(f"row of {table}", repr(tuple(row)))
        finally:
            engine.dispose()

    def run(self, lcc: Lcc, *command: str, stdin: str = "", but: str = "", **environment: str) -> int:
        """Run a command and look at all that it says, ``but`` for what it may repeat."""
        done = subprocess.run(
            [str(BIN / command[0]), *command[1:]],
            env={**lcc.environment, **environment},
            cwd=lcc.cwd,
            capture_output=True,
            text=True,
            input=stdin,
            timeout=300,
            check=False,
        )
        said = done.stdout + done.stderr
        self.text(f"output of {command[0]} {command[1:3]}", said.replace(but, "") if but else said)
        return done.returncode

    def report(self) -> None:
        print(f"looked at {self.looked_at}, found {len(self.found)}")
        assert not self.found, "\n".join(self.found)


def say(port: int, *pieces: str) -> bytes:
    with socket.create_connection(("127.0.0.1", port), timeout=300) as wire:
        for piece in pieces:
            wire.sendall(piece.encode())
        wire.shutdown(socket.SHUT_WR)
        return b"".join(iter(lambda: wire.recv(65536), b""))


def url(curl: str, **more: str) -> str:
    named = {"curl": curl, "mimetype": "text/html", **more}
    attributes = " ".join(f'{name}="{value}"' for name, value in named.items())
    return f"<url {attributes}/>\n"


def test_passwords_of_providers_and_of_urls_are_nowhere(
    make_lcc: Callable[..., Lcc], nginx: Nginx, tmp_path: Path
) -> None:
    right, wrong, inside, own = (canary(name) for name in ("right", "wrong", "inside", "own"))
    search = Search(right, wrong, inside, own)
    site = tmp_path / "site"
    site.mkdir()
    (site / "a.html").write_text("a page")
    nginx.start({"site": site}, extra=f"location /away {{ return 302 http://user:{inside}@127.0.0.1:1/; }}")
    root = f"http://127.0.0.1:{nginx.ports['site']}/"
    authority = Authority()
    certificate = authority.issue("localhost").write(tmp_path / "tls")
    key_lines = (certificate / "key.pem").read_text().splitlines()[1:-1]
    search.words += tuple(key_lines)
    lcc = make_lcc()
    lcc.settings["LOG_LEVEL"] = "DEBUG"
    port = free_port()
    lcc.settings["LCC_UNS_ENDPOINTS"] += (
        f" ssl:{port}:interface=127.0.0.1:privateKey={certificate}/key.pem:certKey={certificate}/cert.pem"
    )
    kept = tmp_path / "password"
    kept.write_text(right)
    kept.chmod(0o600)
    push = ["lcccp", f"--uns=127.0.0.1:{lcc.port}", "--pid=7", "--json", "--verbose"]
    userinfo = root.replace("://", f"://user:{own}@")
    line = url(f"{root}a.html")
    with ProcessList([right, wrong, inside]) as processes:
        assert (
            search.run(
                lcc,
                "lcc",
                "provider",
                "add",
                "7",
                "--password-file",
                str(kept),
                "--root",
                root,
                "--allow-private",
            )
            == 0
        )
        lcc.start("-s", "LOG_LEVEL=DEBUG")
        assert search.run(lcc, *push, f"--pwd-file={kept}", stdin=line) == 0
        assert search.run(lcc, *push, LCC_PWD=right, stdin=url(f"{root}away")) == 0
        assert search.run(lcc, *push, LCC_PWD=wrong, stdin=line) == 77
        assert search.run(lcc, *push, LCC_PWD=right, but=own, stdin=url(userinfo + "b.html")) == 1
        assert search.run(lcc, *push, LCC_PWD=right, but=own, stdin=url("c", furl=userinfo + "c.html")) == 1
        assert (
            search.run(
                lcc,
                *push,
                "--full",
                but=own,
                LCC_PWD=right,
                stdin=line + url(userinfo + "d.html") + '<end count="2"/>',
            )
            == 1
        )
        with_pwd = [*push, f"--pwd={right}", "--check"]
        began = time.monotonic()
        pushing = subprocess.Popen(
            [str(BIN / with_pwd[0]), *with_pwd[1:]],
            env=lcc.environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
        )
        search.text("output of lcccp --pwd", pushing.communicate(timeout=300)[0])
        took = time.monotonic() - began
        for nonsense in (
            f"<{right}>", f"<lococa:init {right}", INIT.format(7, right) + f"<{right}", INIT.format(right, wrong),
            INIT.format(7, right)[:-5], f"<!DOCTYPE {right} [<!ENTITY x '{right}'>]>", f'<provider passwd="{right}">',
            INIT.format(7, right) + f'<lococa:set set="{right}"><url c="{root}{right}" mimetype="{right}"></lococa:set>',
        ):  # fmt: skip
            say(lcc.port, nonsense)
        say(port, INIT.format(7, right))  # forgot TLS
        wait_for(lambda: not lcc.is_spooled(), 60, "the sets to be absorbed")
        lcc.wait_until_fetched()
        for command in (
            ["status", "--json"],
            ["provider", "show", "7"],
            ["provider", "list"],
            ["errors", "7"],
            ["select"],
            ["explain", f"{root}away"],
        ):
            search.run(lcc, "lcc", *command)
        search.run(lcc, "lcc", "fetch", f"{root}away", "--provider", "7")
        search.run(lcc, "lcc", "db", "backup", str(tmp_path / "backup.sqlite"))
        assert lcc.stop() == 0
    search.text("log", lcc.log_text())
    search.folder(lcc.folder / "lcc-data")
    search.text("file backup", (tmp_path / "backup.sqlite").read_bytes())
    search.sqlite(lcc.folder / "lcc-data/lcc.sqlite")
    shown = processes.seen.pop(pushing.pid, [began])
    print(
        f"{processes.looks} looks at the process list; --pwd was there for {shown[-1] - began:.2f} of {took:.2f} s"
    )
    search.text("process list", repr(processes.seen) if processes.seen else "")
    assert processes.seen == {}
    search.report()


@contextmanager
def mariadb(password: str) -> Iterator[str]:
    """Give the URL of a database that a user with this password may use."""
    name = f"lcc_test_{secrets.token_hex(6)}"
    connection = connect_mariadb(autocommit=True)
    with connection, connection.cursor() as cursor:
        cursor.execute(f"create database {name}")
        for host in ("127.0.0.1", "localhost"):
            cursor.execute(f"create user '{name[:30]}'@'{host}' identified by '{password}'")
            cursor.execute(f"grant all on {name}.* to '{name[:30]}'@'{host}'")
        try:
            yield f"mysql://{name[:30]}:{password}@127.0.0.1:{SERVERS['mariadb'].port}/{name}"
        finally:
            cursor.execute(f"drop database {name}")
            for host in ("127.0.0.1", "localhost"):
                cursor.execute(f"drop user '{name[:30]}'@'{host}'")


def test_the_password_of_the_database_is_nowhere(make_lcc: Callable[..., Lcc], tmp_path: Path) -> None:
    right, wrong = canary("right"), canary("wrong")
    search = Search(right, wrong)
    with mariadb(right) as address, ProcessList([right, wrong]) as processes:
        lcc = make_lcc(address)
        lcc.settings["LOG_LEVEL"] = "DEBUG"
        assert search.run(lcc, "lcc", "status", "--json") == 0
        refused = address.replace(right, wrong)
        assert search.run(lcc, "lcc", "status", LCC_DATABASE_URL=f"mysql://u:{wrong}@:x") == 1
        assert search.run(lcc, "scrapy", "crawl", "lcc_push", LCC_DATABASE_URL=refused) != 0
        lcc.start_uns("-s", "LOG_LEVEL=DEBUG")
        assert lcc.stop_uns() == 0
        search.text("log", lcc.uns_log.read_bytes())
        search.database(address)
    assert processes.seen == {}
    search.folder(lcc.folder / "lcc-data")
    search.report()


def test_an_address_given_on_the_command_line_is_shown_for_no_longer_than_it_takes_to_begin(
    make_lcc: Callable[..., Lcc],
) -> None:
    """``ps`` shows what a process was started with until it can put that right; its children show nothing."""
    secret = canary("given")
    with mariadb(secret) as address:
        lcc = make_lcc(address)
        del lcc.settings["LCC_DATABASE_URL"]
        log = lcc.folder / "crew.log"
        with log.open("wb") as out, ProcessList([secret]) as processes:
            command = [str(BIN / "lcc"), "-s", f"LCC_DATABASE_URL={address}", "crawl"]
            crew = subprocess.Popen(command, env=lcc.environment, cwd=lcc.cwd, stdout=out, stderr=out)
            try:
                wait_for(lambda: log.read_text().count("Spider opened") == 1, 60, "the crawl")
                assert secret not in str(list(map(read_command_line, tree(crew.pid))))
            finally:
                crew.send_signal(signal.SIGTERM)
                assert crew.wait(300) == 0
        assert set(processes.seen) <= {crew.pid}
        assert secret not in log.read_text()


def tree(pid: int) -> list[int]:
    children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    return [pid, *(one for child in children for one in tree(int(child)))]


def read_command_line(pid: int) -> bytes:
    return Path(f"/proc/{pid}/cmdline").read_bytes()
