"""Starts ``lcc`` and ``scrapy`` for tests by forking a process that has imported them already.

Most of what a short command costs is its imports: a CPU second for each of thousands of starts. What is started here
is a process of its own with its own arguments, environment, folder and files; only its imports were made before.
What looks at command lines, environments (in /proc) or imports starts programs in the usual way.

This file is both sides: tests import ``Process`` and ``run``; run as a program it is the server.
"""

import atexit
import gc
import importlib
import json
import os
import pkgutil
import selectors
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
import warnings
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import IO, Any, NoReturn

PROGRAMS = {
    "lcc": "lcc_scrapy.cli.main:main",
    "scrapy": "scrapy.cmdline:execute",
    "lcccp": "lcc_scrapy.push.lcccp:main",
}
MESSAGE = 1 << 20
COUNTS = "TEST_COUNTS_FILE"
"""Names the file into which a process writes, at SIGUSR2, the number of its blocks (``counted``)."""
_AT_START = ("PYTHON", "LD_", "MALLOC_", "LC_", "LANG")
"""How the names of variables begin that a process looks at before it runs anything of ours."""
_WARNINGS = "PYTHONWARNINGS"
"""One of them that also a forked process obeys."""


# --- the side of the tests ---------------------------------------------------------------------------


def can_fork(command: Sequence[str], environment: Mapping[str, str]) -> bool:
    """Tell whether a command is one of ours, and would start in the way the server did."""
    return Path(command[0]).name in PROGRAMS and _at_start(environment) == _at_start(os.environ)


def _at_start(environment: Mapping[str, str]) -> dict[str, str]:
    return {
        name: value for name, value in environment.items() if name.startswith(_AT_START) and name != _WARNINGS
    }


class Process:
    """What ``subprocess.Popen`` returns, as far as tests need it."""

    def __init__(
        self,
        command: Sequence[str],
        *,
        env: Mapping[str, str],
        cwd: Path,
        stdout: Any,
        stderr: Any,
        stdin: Any,
    ) -> None:
        self.args = list(command)
        self.returncode: int | None = None
        self._ended, status = os.pipe()
        files = [stdin.fileno(), stdout.fileno(), stderr.fileno(), status]
        try:
            self.pid = _server().start({"argv": self.args, "env": dict(env), "cwd": str(cwd)}, files)
        finally:
            os.close(status)

    def poll(self) -> int | None:
        with suppress(subprocess.TimeoutExpired):
            self.wait(0)
        return self.returncode

    def wait(self, timeout: float | None = None) -> int:
        if self.returncode is None:
            with selectors.DefaultSelector() as ready:
                ready.register(self._ended, selectors.EVENT_READ)
                if not ready.select(timeout):
                    raise subprocess.TimeoutExpired(self.args, timeout or 0)
            status = os.read(self._ended, 100)
            os.close(self._ended)
            if not status:
                raise ChildProcessError("the fork server has ended, and with it what it had started")
            self.returncode = int(status)
        return self.returncode

    def send_signal(self, number: int) -> None:
        if self.poll() is None:
            with suppress(ProcessLookupError):
                os.kill(self.pid, number)

    def terminate(self) -> None:
        self.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)


def popen(command: Sequence[str], *, env: Mapping[str, str], cwd: Path, log: IO[bytes]) -> Any:
    """Start a program that writes into a file."""
    if not can_fork(command, env):
        return subprocess.Popen(command, env=env, cwd=cwd, stdout=log, stderr=log)
    with Path(os.devnull).open("rb") as nothing:
        return Process(command, env=env, cwd=cwd, stdin=nothing, stdout=log, stderr=log)


def run(
    command: Sequence[str],
    *,
    env: Mapping[str, str],
    cwd: Path,
    text: str | None = None,
    timeout: float = 300,
) -> subprocess.CompletedProcess[str]:
    """Run a program to its end and return what it said."""
    if not can_fork(command, env):
        return subprocess.run(
            command,
            env=env,
            cwd=cwd,
            capture_output=True,
            text=True,
            input=text,
            timeout=timeout,
            check=False,
        )
    with (
        tempfile.TemporaryFile("w+") as given,
        tempfile.TemporaryFile("w+") as out,
        tempfile.TemporaryFile("w+") as errors,
    ):
        given.write(text or "")
        given.flush()
        given.seek(0)
        process = Process(command, env=env, cwd=cwd, stdin=given, stdout=out, stderr=errors)
        try:
            status = process.wait(timeout)
        except subprocess.TimeoutExpired:
            process.kill()
            raise
        for file in (out, errors):
            file.seek(0)
        said = [out.read(), errors.read()]
    return subprocess.CompletedProcess(process.args, status, *said)


def counted(process: Any, place: Path) -> int:
    """Return how many blocks of memory the objects of a process have: no matter of load, as megabytes are."""
    place.unlink(missing_ok=True)
    process.send_signal(signal.SIGUSR2)
    end = time.monotonic() + 300
    while not place.exists():
        assert time.monotonic() < end, "the process does not count"
        time.sleep(0.01)
    return int(place.read_text())


class _Server:
    """The server that this process started."""

    def __init__(self) -> None:
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs:
            self._process = subprocess.Popen(
                [sys.executable, __file__, str(theirs.fileno())],
                pass_fds=[theirs.fileno()],
                stdin=subprocess.DEVNULL,
                cwd="/",
            )
        self._link = ours
        self._one_at_a_time = threading.Lock()
        atexit.register(self._stop)

    def _stop(self) -> None:
        self._link.close()
        self._process.wait(300)

    def start(self, what: dict[str, Any], files: Sequence[int]) -> int:
        with self._one_at_a_time:
            socket.send_fds(self._link, [json.dumps(what).encode()], files)
            said = self._link.recv(100)
        assert said, "the fork server has ended"
        return int(said)


_started: list[_Server] = []
_starting = threading.Lock()


def _server() -> _Server:
    with _starting:
        if not _started:
            _started.append(_Server())
    return _started[0]


# --- the server --------------------------------------------------------------------------------------


def _import_all() -> None:
    """Import what the commands need, but for what is optional and large."""
    import lcc_scrapy

    names = [
        one.name
        for one in pkgutil.walk_packages(lcc_scrapy.__path__, "lcc_scrapy.")
        if "migrations" not in one.name
    ]
    names += [
        "scrapy.cmdline",
        "scrapy.commands.crawl",
        "scrapy.commands.list",
        "scrapy.crawler",
        "alembic.command",
    ]
    names += ["sqlalchemy.dialects.mysql.pymysql", "sqlalchemy.dialects.postgresql.psycopg", "psycopg"]
    for name in names:
        with suppress(ImportError):
            importlib.import_module(name)
    assert "twisted.internet.reactor" not in sys.modules, "a reactor cannot be forked"
    assert threading.active_count() == 1, "threads cannot be forked"
    assert len(os.listdir("/proc/self/task")) == 1, "threads cannot be forked"
    gc.freeze()


def _serve(link: socket.socket) -> Callable[[], object]:
    """Fork for every request; returns, in the new process, what it is to do."""
    ready = selectors.DefaultSelector()
    ready.register(link, selectors.EVENT_READ)
    while True:
        for key, _ in ready.select():
            if key.fileobj is not link:
                _bury(ready, key)
                continue
            said, files, _, _ = socket.recv_fds(link, MESSAGE, 4)
            if not said:
                os._exit(0)  # the tests are over
            pid = os.fork()
            if pid == 0:
                link.close()
                for other in list(ready.get_map().values()):
                    if other.fileobj is not link:
                        os.close(other.data[1])
                        os.close(other.fd)
                ready.close()
                return _become(json.loads(said), files)
            for number in files[:3]:
                os.close(number)
            ready.register(os.pidfd_open(pid), selectors.EVENT_READ, (pid, files[3]))
            link.send(str(pid).encode())


def _bury(ready: selectors.BaseSelector, key: selectors.SelectorKey) -> None:
    pid, told = key.data
    status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    ready.unregister(key.fileobj)
    os.close(key.fd)
    with suppress(BrokenPipeError):
        os.write(told, str(status).encode())
    os.close(told)


def _become(what: dict[str, Any], files: list[int]) -> Callable[[], object]:
    os.close(files[3])
    for number, file in enumerate(files[:3]):
        os.dup2(file, number)
        os.close(file)
    os.environ.clear()
    os.environ.update(what["env"])
    if options := os.environ.get(_WARNINGS):
        warnings._processoptions(options.split(","))  # type: ignore[attr-defined]
    os.chdir(what["cwd"])
    sys.argv = what["argv"]
    sys.path[0] = str(Path(sys.argv[0]).parent)
    out = {"encoding": sys.stdout.encoding, "closefd": False}
    sys.stdin = sys.__stdin__ = open(  # noqa: SIM115
        0, encoding=sys.stdin.encoding, errors=sys.stdin.errors, closefd=False
    )
    sys.stdout = sys.__stdout__ = open(1, "w", errors=sys.stdout.errors, **out)  # noqa: SIM115
    sys.stderr = sys.__stderr__ = open(2, "w", 1, errors="backslashreplace", **out)  # noqa: SIM115
    signal.signal(signal.SIGPIPE, signal.SIG_IGN)
    if COUNTS in os.environ:
        signal.signal(signal.SIGUSR2, _count)
    module, _, function = PROGRAMS[Path(sys.argv[0]).name].partition(":")
    return getattr(importlib.import_module(module), function)


def run_and_leave(program: Callable[[], object]) -> NoReturn:
    """Run a program and end as Python does after it, but for objects, which are not taken apart.

    All that was imported before is shared memory: taking it apart copies it, which costs more than most commands.
    """
    try:
        sys.exit(program())
    except SystemExit as ended:
        if not isinstance(ended.code, int | None):
            raise
        status = ended.code or 0
    threading._shutdown()  # type: ignore[attr-defined]
    atexit._run_exitfuncs()
    try:
        sys.stdout.flush()
        sys.stderr.flush()
    except (OSError, ValueError):
        sys.exit(status)  # Python has words and a status for this
    os._exit(status & 0xFF)


def _count(_signal: int, _frame: object) -> None:
    """Write down how many blocks of memory objects have; a file that is there is whole."""
    gc.collect()
    place = Path(os.environ[COUNTS])
    draft = place.with_suffix(".draft")
    draft.write_text(str(sys.getallocatedblocks()))
    draft.replace(place)


if __name__ == "__main__":
    _import_all()
    run_and_leave(_serve(socket.socket(fileno=int(sys.argv[1]))))
