"""A front with three real sub-LCCs, one of them over MariaDB behind a relay, at which sites register."""

import http.client
import json
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import sqlalchemy

from tests.database_servers import SERVERS
from tests.forkserver import popen
from tests.harness import BIN, Lcc, Nginx, lccs, run, wait_for
from tests.ports import free_port
from tests.relay import Relay

SUBS = ("a", "b", "c")
DYING = """
import os, signal
from lcc_scrapy.apps.registration.front import FrontRegistrations

given_out = FrontRegistrations._give_out

def die(self, name):
    given_out(self, name)
    os.kill(os.getpid(), signal.SIGKILL)

FrontRegistrations._give_out = die
from lcc_scrapy.cli.main import main
main()
"""


class Server:
    """``lcc front registration`` as a process; ``port`` is where it listens."""

    def __init__(self, house: "House", name: str, *, dies: bool = False) -> None:
        self.log = house.folder / f"{name}.log"
        command = [str(BIN / "lcc")] if not dies else [sys.executable, "-c", DYING]
        with self.log.open("ab") as out:
            start = popen if not dies else _start
            self.process = start([*command, "front", "registration"], env=house.environment, cwd=house.folder,
                                 log=out)  # fmt: skip
        wait_for(lambda: self._listening() or self.process.poll() is not None, 240, "the front")
        found = self._listening()
        assert found, self.log.read_text()
        self.port = int(found[1])

    def _listening(self) -> re.Match[str] | None:
        return re.search(r"listening on \S*:(\d+)$", self.log.read_text(), re.MULTILINE)

    def stop(self) -> None:
        """End it; it has to end in an orderly way."""
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
            assert self.process.wait(300) == 0, self.log.read_text()
            assert "Traceback" not in self.log.read_text(), self.log.read_text()

    def post(self, path: str, **body: str) -> tuple[int, dict[str, object]]:
        """Ask the JSON API; gives status and answer."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=300)
        headers = {"Content-Type": "application/json"}
        connection.request("POST", f"/v1/registrations{path}", json.dumps(body), headers)
        told = connection.getresponse()
        found = told.status, json.loads(told.read())
        connection.close()
        return found


def _start(command, *, env, cwd, log):
    return subprocess.Popen(command, env=env, cwd=cwd, stderr=log)


class House:
    """The front and its sub-LCCs; nginx serves a site for each name of ``sites``."""

    def __init__(self, folder: Path, subs: dict[str, Lcc], nginx: Nginx, relay: Relay) -> None:
        self.folder, self.subs, self.nginx, self.relay = folder, subs, nginx, relay
        self.uns_port = free_port()
        self.uns = None

    @property
    def environment(self) -> dict[str, str]:
        ports = " ".join(map(str, self.nginx.ports.values()))
        own = {
            "LCC_DATA_DIR": str(self.folder / "front"), "LCC_FRONT_DATABASE_URL": self.front_url,
            "LCC_UNS_ENDPOINTS": f"tcp:{self.uns_port}:interface=127.0.0.1",
            "LCC_PUSH_ENDPOINTS": "127.0.0.1:0", "LCC_PUBLIC_UNS": f"127.0.0.1:{self.uns_port}",
            "LCC_REGISTRATION": "open", "LCC_REGISTRATION_PRIVATE": "yes",
            "LCC_REGISTRATION_PORTS": f"80 443 {ports}", "LCC_REGISTRATION_RATE": "1000/s",
            "LCC_REGISTRATION_HOST_RATE": "1000/s", "LCC_REGISTRATION_PROOF_RATE": "1000/s",
            "LCC_FRONT_PATIENCE": "60s",
        }  # fmt: skip
        return {**self.subs["a"].environment, **own}

    @property
    def front_url(self) -> str:
        return f"sqlite:///{self.folder}/front.sqlite"

    def lcc(self, *words: str) -> str:
        done = run([str(BIN / "lcc"), "front", *words], env=self.environment, cwd=self.folder)
        assert done.returncode == 0, done.stdout + done.stderr
        return str(done.stdout)

    def start_uns(self) -> None:
        log = self.folder / "uns.log"
        with log.open("ab") as out:
            self.uns = popen(
                [str(BIN / "lcc"), "front", "uns"], env=self.environment, cwd=self.folder, log=out
            )
        wait_for(lambda: b"listening on" in log.read_bytes(), 100, "the front's UNS")

    def site(self, name: str) -> str:
        return f"http://127.0.0.1:{self.nginx.ports[name]}/"

    def docroot(self, name: str) -> Path:
        return self.folder / name

    def prove(self, name: str, given: dict[str, object]) -> None:
        (self.docroot(name) / str(given["file"])).write_text(f"{given['secret']}\n")

    def home_of(self, pid: object) -> str:
        return self.lcc("show", str(pid)).strip()


@contextmanager
def front_house(folder: Path, nginx: Nginx, sites: tuple[str, ...]) -> Iterator[House]:
    """Make the front, its sub-LCCs and sites; nothing listens yet but nginx."""
    for name in sites:
        (folder / name).mkdir()
    nginx.start({name: folder / name for name in sites})
    relay = Relay(SERVERS["mariadb"].port)
    relay.start()
    with lccs(folder) as make:
        subs = {name: make("mariadb" if name == "b" else "sqlite") for name in SUBS}
        made = House(folder, subs, nginx, relay)
        made.lcc("init")
        try:
            for name, lcc in subs.items():
                port = free_port()
                lcc.settings["LCC_UNS_ENDPOINTS"] += f" haproxy:tcp:{port}:interface=127.0.0.1"
                url = sqlalchemy.make_url(lcc.shared_url)
                if name == "b":
                    url = url.set(host="127.0.0.1", port=relay.port)
                where = url.render_as_string(hide_password=False)
                made.lcc("add", name, "--uns", f"127.0.0.1:{port}", "--database", where)
            yield made
        finally:
            relay.stop()
            if made.uns is not None:
                made.uns.kill()
                made.uns.wait(300)
