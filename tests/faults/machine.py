"""A machine that misbehaves to order, and an LCC on it with providers and their site."""

import os
import re
import resource
import shutil
import signal
import socket
import sqlite3
import struct
import subprocess
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

from lcc_scrapy.domain.providers import Provider
from tests.acceptance.mortals import children
from tests.harness import PASSWORD, Lcc, missing, wait_for
from tests.integration.site import Answer, Site, page

INIT = f'<lococa:init xmlns:lococa="http://www.lococa.org/1.0"><provider id="%d" passwd="{PASSWORD}"/></lococa:init>'
ACCEPTED, CUT, NO_CONNECTION = "accepted", "nothing: the connection is cut", "nothing: no connection"


class Conversation:
    """One provider's connection, as far as it comes; ``end`` tells what the provider was told."""

    def __init__(self, port: int, pid: int) -> None:
        self._said = b""
        self._link: socket.socket | None = None
        with suppress(ConnectionError):
            self._link = socket.create_connection(("127.0.0.1", port), 300)
            self.say(INIT % pid)

    def say(self, text: str) -> None:
        if self._link is not None:
            with suppress(OSError):
                self._link.sendall(text.encode())

    def hang_up(self) -> None:
        """Cut the connection without a word."""
        assert self._link is not None
        self._link.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
        self._link.close()

    def let_in(self) -> bool:
        while self._link is not None and b"</lococa:init_" not in self._said:
            self._said += self._link.recv(65536)
        return b"init_accepted" in self._said

    def end(self) -> str:
        if self._link is None:
            return NO_CONNECTION
        with self._link, suppress(OSError):
            self._link.shutdown(socket.SHUT_WR)
            while more := self._link.recv(65536):
                self._said += more
        if b"<set_accepted" in self._said:
            return ACCEPTED
        code = re.search(rb'_rejected(?:>\s*<reason)? code="(\d+)"', self._said)
        return code[1].decode() if code else CUT


@dataclass
class World:
    """An LCC, the site of its providers, and what was accepted of them, by path."""

    lcc: Lcc
    site: Site
    root: str
    accepted: dict[str, bytes] = field(default_factory=dict)
    finished: bool = False

    def put(self, path: str, body: bytes | None = None, **how: object) -> str:
        """Publish a page; returns its path."""
        whole = page(body or f"<p>{path}</p>".encode() * 20)
        self.site.put(path, Answer(whole.pieces, last=False, **how))  # type: ignore[arg-type]
        return path

    def opening(self, paths: Sequence[str], set_id: str = "") -> str:
        name = f' id="{set_id}"' if set_id else ""
        urls = "".join(f'<url c="{self.root}{path}" mimetype="text/html"/>' for path in paths)
        return f'<lococa:set set="partial"{name}>{urls}'

    def push(self, pid: int, *paths: str, set_id: str = "") -> str:
        """Push pages; returns what the provider is told."""
        talk = Conversation(self.lcc.port, pid)
        talk.say(self.opening(paths, set_id) + "</lococa:set>")
        return self.noted(talk.end(), paths)

    def noted(self, told: str, paths: Sequence[str]) -> str:
        if told == ACCEPTED:
            for path in paths:
                whole = b"".join(self.site.pages[path][0].pieces)
                self.accepted[path] = whole.partition(b"\r\n\r\n")[2]
        return told

    def visited(self, path: str) -> bool:
        return bool(self.site.asked(path))

    def cached(self) -> dict[str, bytes]:
        rows = self.lcc.sql("select furl, fetched_machineid, fetched_fileid from lccurl")
        assert len({furl for furl, *_ in rows}) == len(rows), "a URL is there twice"
        return {
            str(furl).removeprefix(self.root): self.lcc.path_of(*where).read_bytes() for furl, *where in rows
        }

    def all_is_there(self) -> bool:
        return not self.lcc.is_spooled() and self.accepted.items() <= self.cached().items()

    def wait_until_all_is_there(self, seconds: float = 40) -> float:
        """Wait until everything that was accepted is in the cache; returns how long that took."""
        begun = time.monotonic()
        wait_for(self.all_is_there, seconds, "all that was accepted")
        return time.monotonic() - begun

    @property
    def spool(self) -> Path:
        return self.lcc.folder / "lcc-data" / "spool"

    @property
    def process(self) -> int:
        assert self.lcc.crawl is not None
        return self.lcc.crawl.pid

    def runs(self) -> bool:
        return self.lcc.crawl is not None and self.lcc.crawl.poll() is None

    def finish(self, *, verify: bool, unhandled: bool = True) -> None:
        """Stop the crawl, if it runs, and see that nothing went unsaid."""
        assert self.lcc.stop() == 0
        text = self.lcc.log_text()
        assert not unhandled or "Traceback" not in text, text[text.index("Traceback") - 500 :]
        if verify:
            assert self.lcc.lcc("verify", check=False).returncode == 0
        self.finished = True

    def ends_with(self) -> int:
        assert self.lcc.crawl is not None
        return self.lcc.crawl.wait(300)


def furnish(lcc: Lcc, root: str, providers: int) -> None:
    """Register providers 1, 2, 3, …, each with a part of the site."""
    pids = range(1, providers + 1)
    lcc.register(
        *[Provider(pid, "", allowprivate=True, ignorerobots=True) for pid in pids],
        roots=[[f"{root}/p{pid}/"] for pid in pids],
    )


# --- disks ---------------------------------------------------------------------------------------


@dataclass
class SmallDisk:
    """A disk of its own (tmpfs), which can be filled to the brim, and made larger."""

    folder: Path

    def free(self) -> int:
        return shutil.disk_usage(self.folder).free

    def fill(self, leave: int = 0) -> None:
        """Let others write until so many bytes are left."""
        with (
            (self.folder / f"others-{time.monotonic_ns()}").open("wb", buffering=0) as file,
            suppress(OSError),
        ):
            for size in (65536, 4096):
                while self.free() >= leave + size:
                    file.write(bytes(size))

    def clear(self) -> None:
        for path in self.folder.glob("others-*"):
            path.unlink()

    def enlarge(self, size: str) -> None:
        subprocess.run(["mount", "-o", f"remount,size={size}", str(self.folder)], check=True)


@contextmanager
def small_disk(folder: Path, size: str) -> Iterator[SmallDisk]:
    folder.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", str(folder)], capture_output=True, check=False
    )
    if mounted.returncode:
        missing("a disk of its own", f"run the tests as root: {mounted.stderr.decode().strip()}")
    try:
        yield SmallDisk(folder)
    finally:
        subprocess.run(["umount", "-l", str(folder)], check=True)


# --- system calls --------------------------------------------------------------------------------

ATTACHING = 20.0
"""Seconds after which strace is attached anew to a process of which it does not have all threads."""


@contextmanager
def injected(process: int, *faults: str) -> Iterator[None]:
    """Let system calls of a process, and of those it has started, fail as strace(1) says: ``fsync:error=EIO``."""
    strace = shutil.which("strace")
    if strace is None:
        missing("strace", "apt-get install strace")
    calls = ",".join(fault.partition(":")[0] for fault in faults)
    options = [part for fault in faults for part in ("-e", f"inject={fault}")]
    command = [strace, "-f", "-qq", "-o", "/dev/null", "-e", f"trace={calls}", *options]
    with ExitStack() as ends:
        wait_for(lambda: _attached(command, process, ends), 60, "strace")
        yield


def _attached(strace: Sequence[str], process: int, ends: ExitStack) -> bool:
    """Attach strace, or take it off again where it has missed a thread that began meanwhile.

    Its faults work from the first thread on, so that a process may have ended of them before all are attached.
    """
    processes = [process, *children(process)]
    traced = [part for one in processes for part in ("-p", str(one))]
    tracer = subprocess.Popen([*strace, *traced], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    ends.callback(_detach, tracer)
    until = time.monotonic() + ATTACHING
    while not all(map(_is_traced_or_ended, processes)):
        if time.monotonic() > until:
            ends.close()
            return False
        time.sleep(0.05)
    return True


def _detach(tracer: subprocess.Popen[bytes]) -> None:
    """End strace; one that has caught a process between vfork and exec waits for it, and it for strace."""
    tracer.send_signal(signal.SIGINT)
    try:
        tracer.wait(ATTACHING)
    except subprocess.TimeoutExpired:
        tracer.kill()
        tracer.wait()


def _is_traced_or_ended(process: int) -> bool:
    try:
        tasks = [task.read_text() for task in Path(f"/proc/{process}/task").glob("*/status")]
    except OSError:  # a thread has just ended
        return False
    return not any("TracerPid:\t0\n" in task and "State:\tZ" not in task for task in tasks)


@contextmanager
def few_descriptors(process: int, count: int) -> Iterator[None]:
    """Let a process, and those it has started, open no descriptor beyond ``count``."""
    before = {one: resource.prlimit(one, resource.RLIMIT_NOFILE) for one in (process, *children(process))}
    for one, (_, hard) in before.items():
        resource.prlimit(one, resource.RLIMIT_NOFILE, (count, hard))
    try:
        yield
    finally:
        for one, limits in before.items():
            with suppress(ProcessLookupError):
                resource.prlimit(one, resource.RLIMIT_NOFILE, limits)


@contextmanager
def frozen(process: int, besides: Path) -> Iterator[None]:
    """Stop a process at a moment at which it does not hold the lock of an SQLite file."""
    os.kill(process, signal.SIGSTOP)
    try:
        while _is_locked(besides):
            os.kill(process, signal.SIGCONT)
            time.sleep(0.05)
            os.kill(process, signal.SIGSTOP)
        yield
    finally:
        os.kill(process, signal.SIGCONT)


def _is_locked(file: Path) -> bool:
    """Tell whether nobody gets to write for longer than another process's commit takes."""
    with closing(sqlite3.connect(file, timeout=1, isolation_level=None)) as connection:
        try:
            connection.execute("begin exclusive")  # a reader, too, would keep others from committing
        except sqlite3.OperationalError:
            return True
        return False


class MovedClock:
    """A clock on the wall for processes that get its ``environment``."""

    def __init__(self, file: Path) -> None:
        self._file = file
        self.move(0)

    def move(self, seconds: float) -> None:
        """Let it differ from the true one by so much."""
        with self._file.open("r+b" if self._file.exists() else "wb") as file:
            file.write(struct.pack("d", seconds))

    @property
    def environment(self) -> dict[str, str]:
        folders = [str(Path(__file__).parent / "moved_clock"), *filter(None, [os.environ.get("PYTHONPATH")])]
        return {"LCC_TEST_CLOCK": str(self._file), "PYTHONPATH": os.pathsep.join(folders)}
