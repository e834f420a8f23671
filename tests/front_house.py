"""A front over real sub-LCCs, each with its ``lcc web`` as a process of its own."""

import re
import sys
import time
from pathlib import Path
from typing import Any

from test_cli import House

from tests.forkserver import popen
from tests.harness import BIN

PROGRAM = [sys.executable, "-m", "lcc_scrapy.cli.main"]


class SubHouse(House):
    """A sub-LCC with one provider; ``lcc web`` is started and killed as often as one likes."""

    def __init__(self, folder: Path, name: str, pid: int, url: str = "") -> None:
        folder.mkdir()
        super().__init__(folder, url)
        self.name = name
        self.pid = pid
        self.lcc("init")
        self.add(pid)
        self.token = folder / "token"
        self.token.write_text(self.lcc("token", "add", "front", "--expires", "0").stdout)
        self.port = 0
        self.web: Any = None

    def start(self) -> None:
        """Start ``lcc web``; the first time at any port, then at the same."""
        log = self.folder / "web.log"
        environment = {**self.environment, "LCC_WEB_ENDPOINT": f"127.0.0.1:{self.port}", "LCC_POLL": "0.1"}
        with log.open("wb") as out:
            self.web = popen([str(BIN / "lcc"), "web"], env=environment, cwd=self.folder, log=out)
        end = time.monotonic() + 300
        while time.monotonic() < end and self.web.poll() is None:
            if found := re.search(r"listening on \S+:(\d+)$", log.read_text(), re.MULTILINE):
                self.port = int(found[1])
                return
            time.sleep(0.05)
        raise AssertionError(log.read_text())

    def kill(self) -> None:
        """Kill ``lcc web``."""
        if self.web is not None:
            self.web.kill()
            self.web.wait(60)
            self.web = None

    def change(self, *names: str) -> None:
        """Let documents come, or change."""
        self.documents(*names, pid=self.pid)


class FrontHouse(House):
    """A front with the sub-LCCs that were added."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir()
        super().__init__(folder)
        self.settings["LCC_FRONT_PATIENCE"] = "60s"
        self.subs: dict[str, SubHouse] = {}
        self.lcc("front", "init")

    def add_sub(self, name: str, pid: int, url: str = "") -> SubHouse:
        """Make a sub-LCC, start it, and make it known."""
        sub = self.subs[name] = SubHouse(self.folder.parent / name, name, pid, url)
        sub.start()
        web = f"http://127.0.0.1:{sub.port}"
        where = ("--uns", "127.0.0.1:9", "--database", sub.url, "--web", web, "--token-file", str(sub.token))
        self.lcc("front", "add", name, *where)
        self.lcc("front", "assign", str(pid), "--to", name)
        return sub

    def close(self) -> None:
        """Kill what runs."""
        for sub in self.subs.values():
            sub.kill()
