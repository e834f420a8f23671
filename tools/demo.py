# ruff: noqa: INP001 - tools are no package
"""The demo: a site owner pushes, the LCC fetches just that, a content user sees what is new.

Everything is real: the commands are those of the README, the crawl is ``scrapy crawl lcc_push``, the
documents are source files of the Python that runs this. Nothing leaves this machine. It works in the
folder ``demo`` of the current folder, and leaves it there for looking around.
"""

import json
import math
import os
import shutil
import signal
import socket
import subprocess
import sys
import sysconfig
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

try:
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
except ImportError:
    sys.exit(
        "demo: lcc-scrapy is not installed for this Python: run `make demo`, or `pip install -e .` first"
    )

FOLDER = Path.cwd() / "demo"
MARK = FOLDER / ".made-by-the-demo"
DATA = FOLDER / "lcc-data"
LOG = FOLDER / "crawl.log"
BIN = Path(sys.executable).parent
FILES = 300
SHOWN = 5
PROVIDER = 7
PATIENCE = 120.0
STARTS = 10
"""What the whole demo takes, in starts of a crawl."""
SEARCH = (
    "python -c \"import sqlite3; [print(*row) for row in sqlite3.connect('search.db').execute(\n"
    "    'select link from documents join pages on pages.rowid = id where pages match ?',\n"
    '    [\'\\"changed by the demo\\"\'])]"'
)

say = Console(highlight=False, soft_wrap=True)
Run = Callable[[str], str]


class DemoFailedError(Exception):
    """Something did not go as it should; the text says what."""


class QuietHandler(SimpleHTTPRequestHandler):
    """Serves the demo's site without a line per request."""

    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002
        """Say nothing."""


def main() -> int:
    """Run the demo; returns 0 when every step did what it should."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    begun = time.monotonic()
    try:
        check_tools()
        prepare_folder()
        say.print(f"This takes about {expected_seconds()} seconds here; most of it is programs that start.")
        with web_server(make_site(FOLDER / "site")) as root:
            demonstrate(root, free_port())
    except DemoFailedError as error:
        say.print(f"demo: {error}", style="bold red", markup=False)
        return 1
    except KeyboardInterrupt:
        say.print("\ndemo: interrupted")
        return 130
    say.rule(f"[bold green]Exactly the changes, nothing polled: done in {time.monotonic() - begun:.0f} s")
    say.print(
        "Look around in demo/ (site/, crawl.log, lcc-data/), for example:\n"
        f"  LCC_DATA_DIR={DATA.relative_to(Path.cwd())} {as_typed('lcc')} status"
    )
    return 0


def demonstrate(root: str, port: int) -> None:
    """Tell the story once: everything, then what changed."""
    site = FOLDER / "site"
    environment = {
        **{name: value for name, value in os.environ.items() if not name.startswith("LCC_")},
        "PATH": f"{BIN}:{os.environ['PATH']}",
        "LCC_DATA_DIR": str(DATA),
        "LCC_UNS_ENDPOINTS": f"tcp:{port}:interface=127.0.0.1",
        "LCC_POLL": "0.5",
        "SCRAPY_SETTINGS_MODULE": "lcc_scrapy.settings",
    }
    run = partial(run_command, environment=environment)
    documents = names(site)
    say.rule(f"A site of {len(documents)} documents at {root}")
    run("lcc init")
    run(
        f"lcc provider add {PROVIDER} --password-file password --root {root} \\\n"
        "    --name 'The demo site' --allow-private"
    )
    push = (
        "file2url --find site -name '*.py' \\\n"
        "    | lcccpstate --statefile=state.txt \\\n"
        f"    | lcccp --uns=127.0.0.1:{port} --pid={PROVIDER} --pwd-file=password --urlprefix={root}"
    )
    with crawl(environment, port):
        say.rule("The site owner pushes everything, once")
        run(push)
        wait_for_changes(environment, 0, len(documents))
        say.rule("A content user asks: what is new?")
        run(f"lcc select --limit {SHOWN} | cut -f1,4-6")
        run("lcc select --cursor-file position --format jsonl > first.jsonl")
        judge_first(root, documents)
        say.rule("Three files change, two go; the owner runs the same line again")
        changed, removed = change_site(site)
        say.print(f"changed: {', '.join(changed)}\nremoved: {', '.join(removed)}")
        run(push)
        wait_for_changes(environment, len(documents), len(changed) + len(removed))
        say.rule("The content user asks again: only what happened since")
        run("lcc select --cursor-file position --format jsonl > second.jsonl")
        judge_second(root, changed, removed)
        say.rule("… or keeps a full-text index, and searches it")
        run("lcc export --format fts5 -o search.db")
        judge_search(run(SEARCH), root, changed)


def judge_search(found: str, root: str, changed: list[str]) -> None:
    """Compare what was found with what was changed."""
    if sorted(found.split()) != sorted(root + name for name in changed):
        raise DemoFailedError("the index does not find the three files that were changed")


def as_typed(name: str) -> str:
    """Return how a command of ours is called from here, on the path or not."""
    return name if shutil.which(name) == str(BIN / name) else os.path.relpath(BIN / name)


def check_tools() -> None:
    """Refuse to begin when a program is missing."""
    commands = [BIN / name for name in ("lcc", "scrapy", "lcccp", "lcccpstate", "file2url")]
    missing = [path.name for path in commands if not path.exists()]
    if missing:
        raise DemoFailedError(
            f"not in {BIN}: {', '.join(missing)}; run `make demo`, or `pip install -e .` first"
        )
    for tool in ("bash", "find", "cut"):
        if shutil.which(tool) is None:
            raise DemoFailedError(f"the program {tool} is needed and not installed")


def expected_seconds() -> int:
    """Return how long the demo will take, rounded up to five seconds, by how long a start takes now."""
    return 5 * math.ceil(STARTS * min(start_seconds(), start_seconds()) / 5)


def start_seconds() -> float:
    """Return how long a program takes to start; the first time files come from the disk."""
    begun = time.monotonic()
    subprocess.run([sys.executable, "-c", "import lcc_scrapy.spiders.lcc_push"], check=True)
    return time.monotonic() - begun


def prepare_folder() -> None:
    """Make an empty demo folder; one of an earlier run goes, a folder of somebody else's stays."""
    if FOLDER.exists():
        if not MARK.exists():
            raise DemoFailedError(
                f"{FOLDER} exists and was not made by the demo: move it, or run this elsewhere"
            )
        shutil.rmtree(FOLDER)
    FOLDER.mkdir()
    MARK.touch()
    password = FOLDER / "password"
    password.touch(mode=0o600)
    password.write_text("demo-password\n")


def make_site(site: Path) -> Path:
    """Copy a few hundred source files of the standard library."""
    library = Path(sysconfig.get_path("stdlib"))
    unwanted = {"site-packages", "dist-packages", "__pycache__", "test"}
    sources = sorted(
        path for path in library.rglob("*.py") if unwanted.isdisjoint(path.parts) and path.stat().st_size
    )
    if len(sources) < FILES:
        raise DemoFailedError(f"found only {len(sources)} source files in {library}, expected {FILES}")
    for source in sources[:FILES]:
        target = site / source.relative_to(library)
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(source, target)
    return site


def names(site: Path) -> list[str]:
    """Return the documents of the site, as their URLs name them."""
    return sorted(path.relative_to(site).as_posix() for path in site.rglob("*.py"))


def change_site(site: Path) -> tuple[list[str], list[str]]:
    """Change three files and remove two; returns their names."""
    documents = names(site)
    changed, removed = documents[:3], documents[-2:]
    for name in changed:
        with (site / name).open("ab") as file:
            file.write(b"\n# changed by the demo\n")
    for name in removed:
        (site / name).unlink()
    return changed, removed


def answer(file: str, root: str) -> dict[str, dict[str, object]]:
    """Return the rows of an answer of ``lcc select``, by the names of their documents."""
    rows = [json.loads(line) for line in (FOLDER / file).read_text(encoding="utf-8").splitlines()]
    return {row["furl"].removeprefix(root): row for row in rows}


def judge_first(root: str, documents: list[str]) -> None:
    """Compare the first answer, and the content files it names, with the site."""
    rows = answer("first.jsonl", root)
    if sorted(rows) != documents:
        raise DemoFailedError(f"the answer has {len(rows)} documents, the site {len(documents)}")
    for name, row in rows.items():
        if Path(str(row["path"])).read_bytes() != (FOLDER / "site" / name).read_bytes():
            raise DemoFailedError(f"{row['path']} is not what the site has as {name}")
    say.print(f"{len(rows)} documents, every content file equal to the site's, byte by byte")


def judge_second(root: str, changed: list[str], removed: list[str]) -> None:
    """Show the second answer and compare it with what happened."""
    rows = answer("second.jsonl", root)
    for row in rows.values():
        say.print(f"  {row['op']:8}{row['furl']}", markup=False)
    expected = {**dict.fromkeys(changed, "upsert"), **dict.fromkeys(removed, "remove")}
    if {name: row["op"] for name, row in rows.items()} != expected:
        raise DemoFailedError(f"that is not what happened on the site: expected {expected}")


def run_command(command: str, *, environment: dict[str, str], folder: Path = FOLDER) -> str:
    """Show a command, run it in the demo's folder, show and return what it printed."""
    say.print(f"$ {command}", style="bold", markup=False)
    done = subprocess.run(
        ["bash", "-o", "pipefail", "-c", command],
        cwd=folder,
        env=environment,
        stdout=subprocess.PIPE,
        text=True,
        check=False,
    )
    say.print(done.stdout, end="", markup=False)
    if done.returncode:
        raise DemoFailedError(f"that ended with status {done.returncode}")
    return done.stdout


def free_port() -> int:
    """Return a port that nobody listens on."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@contextmanager
def web_server(site: Path) -> Iterator[str]:
    """Serve the site on loopback; gives its root URL."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(QuietHandler, directory=str(site)))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}/"
    finally:
        server.shutdown()
        server.server_close()


def crawl(environment: dict[str, str], port: int) -> AbstractContextManager[None]:
    """Run ``scrapy crawl lcc_push`` until the block ends."""
    return running("scrapy crawl lcc_push", environment, LOG, lambda: listening(port))


@contextmanager
def running(
    command: str, environment: dict[str, str], log: Path, is_ready: Callable[[], bool]
) -> Iterator[None]:
    """Run a command of ours in the folder of its log until the block ends."""
    say.print(f"$ {command} &", style="bold", markup=False)
    program, *words = command.split()
    with log.open("wb") as out:
        process = subprocess.Popen(
            [BIN / program, *words],
            cwd=log.parent,
            env=environment,
            stdout=out,
            stderr=out,
            start_new_session=True,  # a keyboard interrupt is for the demo, which then stops the command
        )
    try:
        wait_until_ready(process, log, is_ready)
        yield
    finally:
        status = stop(process)
    if status:
        raise DemoFailedError(f"{command} ended with status {status}; see {log}")


def wait_until_ready(process: "subprocess.Popen[bytes]", log: Path, is_ready: Callable[[], bool]) -> None:
    """Wait for a command to have started."""
    end = time.monotonic() + PATIENCE
    while not is_ready():
        if process.poll() is not None or time.monotonic() > end:
            say.print(log.read_text(errors="replace")[-2000:], markup=False)
            raise DemoFailedError(f"{process.args[0].name} does not start")
        time.sleep(0.1)


def stop(process: "subprocess.Popen[bytes]") -> int:
    """Ask a command to finish what is in flight; returns its status."""
    process.terminate()
    try:
        return process.wait(60)
    except BaseException:
        process.kill()
        process.wait()
        raise


def listening(port: int) -> bool:
    """Tell whether somebody listens on a port."""
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


def wait_for_changes(environment: dict[str, str], before: int, changes: int) -> None:
    """Show progress until queue and spool are empty and the feed has come ``changes`` further."""
    columns = (TextColumn("fetching"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    end = time.monotonic() + PATIENCE
    with Progress(*columns, console=say) as progress:
        task = progress.add_task("", total=changes)
        while time.monotonic() < end:
            status = lcc_status(environment)
            progress.update(task, completed=status["seq"] - before)
            if status["seq"] >= before + changes and not status["queued"] and not status["spool"]["sets"]:
                return
            time.sleep(0.2)
    raise DemoFailedError(f"the queue did not empty within {PATIENCE:.0f} seconds; see {LOG}")


def lcc_status(environment: dict[str, str]) -> dict[str, Any]:
    """Return what ``lcc status --json`` says."""
    done = subprocess.run(
        [BIN / "lcc", "status", "--json"], env=environment, stdout=subprocess.PIPE, check=True
    )
    return dict(json.loads(done.stdout))


if __name__ == "__main__":
    sys.exit(main())
