"""What ``kill -9`` may hit: the processes of an LCC in two arrangements, and its providers' pipelines."""

import os
import random
import signal
import socket
import subprocess
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from tests.harness import BIN, PASSWORD, Lcc, wait_for
from tests.integration.site import Answer, Site, page

SLOW = 0.25
"""Seconds that every third page takes: long enough for a second fetch beside it to be seen."""

KEPT = 40
"""Documents of a site from which on some are taken away."""

_HARMLESS = {65, 69, 75, 128 + signal.SIGKILL, 128 + signal.SIGPIPE}
"""What a pipeline may end with when one of its stages or the UNS was killed."""


SETTLING = "lcc_scrapy.queue.settling_process.child"
"""Of whom a crawl's settling process is one."""


def children(pid: int) -> list[int]:
    """Return the processes that a process, whichever thread of it, has started."""
    try:
        threads = [task.read_text() for task in Path(f"/proc/{pid}/task").glob("*/children")]
    except OSError:
        return []
    return [int(child) for said in threads for child in said.split()]


def settling_of(crawls: Iterable[int]) -> list[int]:
    """Return the settling processes of crawls."""
    found = [child for crawl in crawls for child in children(crawl)]
    return [child for child in found if runs(child, SETTLING) and not is_gone(child)]


def is_gone(pid: int) -> bool:
    """Tell whether a process has ended, whoever has to take note of it."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except OSError:
        return True


def runs(pid: int, program: str) -> bool:
    try:
        words = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
    except OSError:
        return False
    return any(word.rpartition(b"/")[2] == program.encode() for word in words)


@dataclass(eq=False)
class Publisher(threading.Thread):
    """A provider whose site changes without end, and who runs the seed's pipeline after each change.

    New documents have ever higher numbers, and every document says which version it is, so that one can
    tell from what is stored and from the order of the first visits whether anything was lost or overtaken.
    """

    pid: int
    lcc: Lcc
    site: Site
    host: str
    chance: random.Random
    versions: dict[str, int] = field(default_factory=dict)
    accepted: dict[str, int] = field(default_factory=dict)
    """What the LCC has accepted: versions by name."""
    ends: Counter[int] = field(default_factory=Counter)
    """How often the pipeline ended with which status."""
    strange: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        super().__init__(name=f"provider {self.pid}", daemon=True)
        self.docroot = self.lcc.folder / f"docroot{self.pid}"
        self.docroot.mkdir()
        self.prefix = f"{self.host}/p{self.pid}/"
        self.pipeline: subprocess.Popen[str] | None = None
        self._ending = threading.Event()
        self._written = 0

    def run(self) -> None:
        while not self._ending.is_set():
            self.change()
            while self._there_is_a_uns() and not self.push():
                pass
            self._ending.wait(self.chance.uniform(0, 0.4))

    def _there_is_a_uns(self) -> bool:
        """Wait for one; False when this provider is to end."""
        while not self._ending.wait(0.2):
            with socket.socket() as probe:
                if probe.connect_ex(("127.0.0.1", self.lcc.port)) == 0:
                    return True
        return False

    def end(self) -> None:
        self._ending.set()
        self.join(300)
        assert not self.is_alive()

    def change(self) -> None:
        """Publish some new documents, change some, and take some away."""
        known = sorted(self.versions)
        for name in self.chance.sample(known, min(4, len(known))):
            self._write(name, self.versions[name] + 1)
        for gone in self.chance.sample(known, 5 if len(known) > KEPT else 0):
            (self.docroot / gone).unlink()
            self.site.pages.pop(f"/p{self.pid}/{gone}", None)
            del self.versions[gone]
        for _ in range(8):
            self._written += 1
            self._write(f"{self._written:06d}.html", 1)

    def _write(self, name: str, version: int) -> None:
        body = f"{version} of /p{self.pid}/{name}\n" * 200
        (self.docroot / name).write_text(body)
        (whole,) = page(body).pieces
        slow = int(name[:6]) % 3 == 0
        self.site.put(f"/p{self.pid}/{name}", Answer((whole,), last=False, wait=SLOW if slow else 0.0))
        self.versions[name] = version

    def push(self) -> bool:
        """Run the pipeline once; True when the LCC has accepted all that the site is now."""
        command = (
            f"file2url --find {self.docroot} -name '*.html' | lcccpstate --statefile=state{self.pid}.txt --quiet"
            f" | lcccp --uns=127.0.0.1:{self.lcc.port} --pid={self.pid} --urlprefix={self.prefix}"
        )
        self.pipeline = subprocess.Popen(
            ["bash", "-o", "pipefail", "-c", command],
            env={**self.lcc.environment, "LCC_PWD": PASSWORD},
            cwd=self.lcc.folder,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
        )
        said = self.pipeline.communicate(timeout=300)[1]
        status = self.pipeline.returncode
        self.ends[status] += 1
        if status in {0, 1}:
            self.accepted = dict(self.versions)
        elif status not in _HARMLESS:
            self.strange.append(f"provider {self.pid} got {status}: {said}")
        return status in {0, 1}

    def stage(self, program: str) -> int | None:
        """Return the process of one stage of the pipeline, when it runs just now."""
        shell = self.pipeline
        if shell is None or shell.poll() is not None:
            return None
        return next((child for child in children(shell.pid) if runs(child, program)), None)


class House:
    """An LCC's processes: one crawl with everything inside, or ``lcc uns`` beside ``lcc crawl``."""

    kinds: tuple[str, ...] = ()

    def __init__(self, lcc: Lcc, publishers: list[Publisher], chance: random.Random) -> None:
        self.lcc = lcc
        self._publishers = publishers
        self._chance = chance

    def kill(self, kind: str) -> None:
        """Kill one process of a kind as soon as there is one, and see to it that it comes back."""
        if kind in {"lcccp", "lcccpstate"}:
            self._kill_stage(kind)
        else:
            self._kill_own(kind)

    def _kill_stage(self, program: str) -> None:
        for _ in range(3000):
            victim = self._chance.choice(self._publishers).stage(program)
            if victim is not None:
                time.sleep(self._chance.uniform(0, 0.25))
                with suppress(ProcessLookupError):
                    os.kill(victim, signal.SIGKILL)
                    return
            time.sleep(0.005)
        raise AssertionError(f"no {program} was seen for a long time")

    def _kill_own(self, kind: str) -> None:
        raise NotImplementedError

    def _kill_settling(self, crawls: Callable[[], Iterable[int]]) -> None:
        """Kill a settling process alone: its crawl lives on."""
        wait_for(lambda: settling_of(crawls()), 90, "a settling process")
        for victim in settling_of(crawls())[:1]:
            with suppress(ProcessLookupError):
                os.kill(victim, signal.SIGKILL)


class Alone(House):
    """``scrapy crawl lcc_push``: UNS, intake and fetching in one process."""

    kinds = ("crawl", "lcccp", "settling", "crawl", "lcccpstate")

    def start(self) -> None:
        self.lcc.start()

    def _kill_own(self, kind: str) -> None:
        if kind == "settling":
            self._kill_settling(lambda: [self.lcc.crawl.pid])
            return
        self.lcc.stop(signal.SIGKILL)
        self.lcc.start()

    def stop(self) -> None:
        assert self.lcc.stop() == 0


class Crew(House):
    """``lcc uns``, and ``lcc crawl`` with two workers."""

    kinds = ("uns", "worker", "settling", "supervisor", "lcccp", "lcccpstate")

    def start(self) -> None:
        self._seen: set[int] = set()
        self.lcc.start_uns()
        self._start_supervisor()

    def _start_supervisor(self) -> None:
        with (self.lcc.folder / "crawl.log").open("ab") as log:
            self._supervisor = subprocess.Popen(
                [str(BIN / "lcc"), "crawl", "--workers", "2", "--no-uns"],
                env=self.lcc.environment,
                cwd=self.lcc.folder,
                stdout=log,
                stderr=log,
            )
        self.lcc.crawl = self._supervisor

    def _workers(self) -> list[int]:
        found = [
            child for child in children(self._supervisor.pid) if runs(child, "scrapy") and not is_gone(child)
        ]
        self._seen.update(found)
        return found

    def _kill_own(self, kind: str) -> None:
        if kind == "uns":
            self.lcc.stop_uns(signal.SIGKILL)
            self.lcc.start_uns()
            return
        if kind == "settling":
            self._kill_settling(self._workers)
            return
        wait_for(self._workers, 90, "a worker")
        if kind == "worker":
            os.kill(self._chance.choice(self._workers()), signal.SIGKILL)
            return
        self._workers()
        self._supervisor.kill()
        self._supervisor.wait(300)
        self._start_supervisor()

    def stop(self) -> None:
        wait_for(self._workers, 90, "a worker")
        self._workers()
        self._supervisor.terminate()
        assert self._supervisor.wait(300) == 0
        assert self.lcc.stop_uns() == 0
        wait_for(lambda: all(map(is_gone, self._seen)), 60, "the workers to end")
