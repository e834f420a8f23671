"""An LCC of the tests that providers reach through a front, as one of three sub-LCCs.

With ``LCC_TEST_FRONT=yes`` every LCC of ``tests/harness.py`` is one, so that the tests of the UNS show that
a front changes nothing.
"""

import atexit
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

from lcc_scrapy.domain.front import SubLcc
from lcc_scrapy.domain.providers import Provider
from lcc_scrapy.front.directory import Directory
from tests.forkserver import popen
from tests.harness import BIN, Lcc, answers, wait_for
from tests.ports import free_port

OTHERS = ("other1", "other2")


@cache
def others() -> dict[str, str]:
    """Start two sub-LCCs of nobody's, once; return where they listen, by name."""
    folder = Path(tempfile.mkdtemp(prefix="lcc-others-"))
    return {name: _other(folder / name) for name in OTHERS}


def _other(home: Path) -> str:
    home.mkdir()
    lcc = Lcc(home, "")
    lcc.settings["LCC_UNS_ENDPOINTS"] = f"haproxy:{lcc.settings['LCC_UNS_ENDPOINTS']}"
    lcc.lcc("init")
    lcc.start_uns()
    atexit.register(lcc.stop_uns)
    return f"127.0.0.1:{lcc.port}"


@dataclass
class Fronted(Lcc):
    """An LCC behind a front. ``port`` is the front's; the LCC itself listens at ``own_port``."""

    pids: set[int] = field(default_factory=set)

    def __post_init__(self) -> None:
        given = self.settings.get("LCC_UNS_ENDPOINTS")
        super().__post_init__()
        self.own_port = free_port()
        if given is None:
            self.settings["LCC_UNS_ENDPOINTS"] = f"haproxy:tcp:{self.own_port}:interface=127.0.0.1"

    def add_provider(self, pid: int, root: str, *options: str) -> None:
        super().add_provider(pid, root, *options)
        self.pids.add(pid)

    def register(self, *providers: Provider, roots: Sequence[Sequence[str]]) -> None:
        super().register(*providers, roots=roots)
        self.pids |= {provider.pid for provider in providers}

    @property
    def is_fronted(self) -> bool:
        return self.settings["LCC_UNS_ENDPOINTS"].startswith(f"haproxy:tcp:{self.own_port}:")

    def listens(self) -> bool:
        if not self.is_fronted:
            return super().listens()
        if not answers(self.own_port):
            return False
        self.start_front()
        return True

    def start_uns(self, *options: str) -> None:
        super().start_uns(*options)
        if self.is_fronted:
            self.start_front()

    def start_front(self) -> None:
        """Start the front, unless it runs."""
        if self.front is not None:
            return
        directory = Directory(self.environment["LCC_FRONT_DATABASE_URL"])
        directory.create()
        for name, uns in {"a": f"127.0.0.1:{self.own_port}", **others()}.items():
            directory.add(SubLcc(name, uns))
        for pid in self.pids:
            directory.assign(pid, "a")  # who is added otherwise is looked for at the first sub-LCC
        directory.close()
        with (self.folder / "front.log").open("ab") as log:
            command = [str(BIN / "lcc"), "front", "uns"]
            self.front = popen(command, env=self.environment_of_front, cwd=self.cwd, log=log)
        wait_for(lambda: answers(self.port), 100, "the front")

    @property
    def environment(self) -> dict[str, str]:
        return super().environment | {"LCC_FRONT_DATABASE_URL": f"sqlite:///{self.folder}/front.sqlite"}

    @property
    def environment_of_front(self) -> dict[str, str]:
        own = {
            "LCC_DATA_DIR": str(self.folder / "front"),
            "LCC_UNS_ENDPOINTS": f"tcp:{self.port}:interface=127.0.0.1",
        }
        return self.environment | own
