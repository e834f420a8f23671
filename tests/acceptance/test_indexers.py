"""docs/indexers.md, run as it is written: a pushed and crawled site in every indexer, by its real program.

``LCC_INDEXERS=all`` takes both manuals whole; otherwise some sixty pages.
"""

import os
import re
import shutil
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path

import lxml.html
import pytest

from tests.harness import CORPORA, Lcc, Nginx, free_port, lccs, missing

ALL = os.environ.get("LCC_INDEXERS") == "all"
pytestmark = [pytest.mark.acceptance, pytest.mark.slow, pytest.mark.timeout(7200 if ALL else 1800)]

PAGE = (Path(__file__).parents[2] / "docs" / "indexers.md").read_text(encoding="utf-8")
SECTIONS = dict(re.findall(r"^## (.+?)\n(.*?)(?=^## |\Z)", PAGE, re.MULTILINE | re.DOTALL))
PYTHON = CORPORA / "python3.11-doc/usr/share/doc/python3.11/html"
POSTGRESQL = CORPORA / "postgresql-doc-15/usr/share/doc/postgresql-doc-15/html"

WORDS = ("fibonacci", "pathological", "culture", "wasteful", "mastering")
NEW = "xylophonist"
CHANGED = ("faq/programming", "howto/unicode", "howto/sockets", "tutorial/whatnow", "tutorial/interpreter")
REMOVED = ("tutorial/floatingpoint", "howto/regex", "tutorial/modules")
FEW = 60


def blocks(title: str, language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", SECTIONS[title], re.MULTILINE | re.DOTALL)


@dataclass
class Hit:
    link: str
    docid: str = ""


def tabbed(printed: str) -> list[Hit]:
    return [Hit(link, docid) for docid, link, *_ in (line.split("\t") for line in printed.splitlines())]


def of_quest(printed: str) -> list[Hit]:
    docids = re.findall(r"^(?:\d+: \[[\d.]+\]\n)?docid=(\w+)$", printed, re.MULTILINE)
    return [
        Hit(link, docid)
        for docid, link in zip(docids, re.findall("^url=(.*)$", printed, re.MULTILINE), strict=True)
    ]


def of_htsearch(printed: str) -> list[Hit]:
    return [Hit(link) for link in re.findall(r'<strong><a href="(.*?)">', printed)]


def of_search(printed: str) -> list[Hit]:
    return [Hit(link, path[3:-5]) for path, link in (line.rsplit(" ", 1) for line in printed.splitlines())]


def output(*words: str, cwd: Path) -> str:
    done = subprocess.run(words, cwd=cwd, capture_output=True, check=True, timeout=300)
    return done.stdout.decode(errors="replace")


def count_fts5(folder: Path) -> int:
    with closing(sqlite3.connect(folder / "search.db")) as database:
        return int(database.execute("select count(*) from pages").fetchone()[0])


def count_tantivy(folder: Path) -> int:
    import tantivy

    return int(tantivy.Index.open(str(folder / "search.tantivy")).searcher().num_docs) - 1


def number(pattern: str, text: str) -> int:
    found = re.search(pattern, text)
    assert found, text
    return int(found[1])


@dataclass
class Program:
    """An indexer: the program without which it cannot be tried, its hits, and how many documents it holds."""

    needs: str
    hits: Callable[[str], list[Hit]]
    count: Callable[[Path], int]


PROGRAMS = {
    "SQLite FTS5": Program("", tabbed, count_fts5),
    "tantivy": Program("", tabbed, count_tantivy),
    "Xapian": Program(
        "scriptindex",
        of_quest,
        lambda folder: number(
            r"number of documents = (\d+)", output("xapian-delve", "search.xapian", cwd=folder)
        ),
    ),
    "ht://Dig": Program(
        "htdig",
        of_htsearch,
        lambda folder: number(
            r"Total documents: (\d+)", output("htstat", "-c", "pages.htdig/htdig.conf", cwd=folder)
        ),
    ),
    "swish-e": Program(
        "swish-e",
        tabbed,
        lambda folder: number(
            r"Total Files: (\d+)",
            output("swish-e", "-f", "search.swish-e", "-H", "9", "-w", "python", "-m", "1", cwd=folder),
        ),
    ),
    "SWISH++": Program(
        "index++",
        of_search,
        lambda folder: number(
            r"# results: (\d+)",
            output("search++", "-p", "101", "-i", "tree/index", f"python or postgresql or {NEW}", cwd=folder),
        ),
    ),
}


@dataclass
class Told:
    """What an indexer said at one moment: how many documents it holds, and the hits of each word."""

    count: int
    hits: dict[str, list[Hit]]
    seconds: float


@dataclass
class Looks:
    expected: list[dict[str, set[str]]] = field(default_factory=list)
    counts: list[int] = field(default_factory=list)
    told: dict[str, list[Told]] = field(default_factory=dict)
    docids: dict[str, str] = field(default_factory=dict)


def chosen() -> dict[str, list[Path]]:
    """Return the pages that are served: of each manual, or some of one."""
    sites = {"python": PYTHON, **({"postgresql": POSTGRESQL} if ALL else {})}
    pages = {
        name: sorted(path for path in root.rglob("*.html") if not path.is_symlink())
        for name, root in sites.items()
    }
    if not ALL:
        first = ("faq", "tutorial", "howto")
        pages["python"] = sorted(pages["python"], key=lambda path: path.parent.name not in first)[:FEW]
    return pages


def serve(folder: Path) -> dict[str, Path]:
    roots = {"python": PYTHON, "postgresql": POSTGRESQL}
    for name, pages in chosen().items():
        for page in pages:
            target = folder / name / page.relative_to(roots[name])
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(page, target)
    return {path.name: path for path in sorted(folder.iterdir())}


def change(root: Path) -> None:
    for name in CHANGED:
        (root / f"{name}.html").write_text(f"<title>About {name}</title><p>Now about the {NEW}.\n")
    for name in REMOVED:
        (root / f"{name}.html").unlink()


def expected(roots: dict[str, Path], prefixes: dict[str, str]) -> dict[str, set[str]]:
    """Return in which pages a browser's text has each word."""
    found: dict[str, set[str]] = {word: set() for word in (*WORDS, NEW)}
    for name, root in roots.items():
        for path in root.rglob("*.html"):
            page = lxml.html.fromstring(path.read_bytes())
            for hidden in page.iter("script", "style"):
                hidden.text = ""
            words = set(re.findall("[a-z]+", page.text_content().lower()))
            for word in words & found.keys():
                found[word].add(f"{prefixes[name]}{path.relative_to(root)}")
    return found


def run(lcc: Lcc, script: str) -> str:
    done = subprocess.run(
        ["bash", "-e", "-o", "pipefail", "-c", script],
        env=lcc.environment,
        cwd=lcc.folder,
        capture_output=True,
        text=True,
        errors="replace",
        timeout=3000 if ALL else 300,
        check=False,
    )
    assert done.returncode == 0, f"{script}\n{done.stdout[-2000:]}{done.stderr[-2000:]}"
    return done.stdout


def search(lcc: Lcc, title: str, word: str) -> str:
    for example in blocks(title, "python"):
        done = [sys.executable, "-c", example.replace("banana", word)]
        return output(*done, cwd=lcc.folder)
    (example,) = (block for block in blocks(title, "sh") if "banana" in block)
    return run(lcc, example.replace("banana", word))


def look(lcc: Lcc, title: str, *, first: bool) -> Told:
    """Run what the page says, then every search."""
    program = PROGRAMS[title]
    if program.needs and shutil.which(program.needs) is None:
        missing(program.needs, "apt-get install swish-e swish++ htdig xapian-omega xapian-tools")
    start = time.monotonic()
    for script in (block for block in blocks(title, "sh") if "banana" not in block):
        if first or "lcc export" in script:
            run(lcc, script)
    seconds = time.monotonic() - start
    hits = {word: program.hits(search(lcc, title, word)) for word in (*WORDS, NEW)}
    return Told(program.count(lcc.folder), hits, seconds)


def push(lcc: Lcc, roots: dict[str, Path], prefixes: dict[str, str]) -> None:
    for pid, (name, root) in enumerate(roots.items(), 1):
        done = lcc.push(root, pid, prefixes[name], "-name '*.html'", state=f"{name}.txt")
        assert done.returncode == 0, done.stderr
    lcc.wait_until_fetched(1200)


@pytest.fixture(scope="module")
def looks(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Looks]:
    """Everything that happens: push and crawl, every indexer, changes, every indexer again."""
    if not (PYTHON.is_dir() and POSTGRESQL.is_dir()):
        missing("the documents to serve", "make corpora")
    folder = tmp_path_factory.mktemp("indexers")
    (folder / "nginx").mkdir()
    roots = serve(folder / "sites")
    server = Nginx(folder / "nginx")
    try:
        server.start(roots)
        with lccs(folder) as make:
            yield look_twice(make(), roots, server)
    finally:
        server.stop()


def look_twice(lcc: Lcc, roots: dict[str, Path], server: Nginx) -> Looks:
    prefixes = {name: f"http://127.0.0.1:{port}/" for name, port in server.ports.items()}
    for pid, name in enumerate(roots, 1):
        lcc.add_provider(pid, prefixes[name])
    lcc.start()
    seen = Looks(told={title: [] for title in PROGRAMS})
    for first in (True, False):
        if not first:
            change(roots["python"])
        push(lcc, roots, prefixes)
        seen.expected.append(expected(roots, prefixes))
        seen.counts.append(sum(len(list(root.rglob("*.html"))) for root in roots.values()))
        seen.docids.update({furl: key.hex() for key, furl in lcc.sql("select urlkey, furl from lccurl")})
        for title, told in seen.told.items():
            told.append(look(lcc, title, first=first))
    assert lcc.stop() == 0
    return seen


@pytest.mark.parametrize("title", PROGRAMS)
def test_an_indexer_finds_what_is_there_and_after_changes_what_is_there_then(
    title: str, looks: Looks
) -> None:
    for told, wanted, count in zip(looks.told[title], looks.expected, looks.counts, strict=True):
        found = " ".join(f"{word} {len(hits)}" for word, hits in told.hits.items())
        print(f"{title}: {told.count} documents in {told.seconds:.1f} s; {found}")
        for word, hits in told.hits.items():
            links = [hit.link for hit in hits]
            assert len(links) == len(set(links)), (word, links)
            assert set(links) == wanted[word], word
            assert all(hit.docid in {"", looks.docids[hit.link]} for hit in hits)
        assert told.count == count
    first, then = looks.expected
    assert all(first[word] for word in WORDS)
    assert (len(first[NEW]), len(then[NEW])) == (0, len(CHANGED))
    assert looks.counts[0] - looks.counts[1] == len(REMOVED)
    assert sum(first[word] != then[word] for word in WORDS) >= 4


def test_the_ten_lines_lead_from_a_pushed_site_to_a_searchable_index(tmp_path: Path) -> None:
    (script,) = blocks("The whole way in ten lines", "sh")
    assert len(script.splitlines()) == 10
    (tmp_path / "scrapy.cfg").write_text("[settings]\ndefault = lcc_scrapy.settings\n")
    site = tmp_path / "site"
    site.mkdir()
    (site / "a.html").write_text("<title>Fruit</title>A banana is no apple.")
    (site / "b.html").write_text("<title>Vegetables</title>A leek.")
    web, uns = free_port(), free_port()
    script = script.replace("8000", str(web)).replace("9000", str(uns))
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("LCC_", "SCRAPY_"))}
    bin_ = Path(sys.executable).parent
    environment = {
        **kept,
        "PATH": f"{bin_}:{kept['PATH']}",
        "LCC_UNS_ENDPOINTS": f"tcp:{uns}:interface=127.0.0.1",
    }
    assert lines_printed(script, tmp_path, environment)[-1] == f"('http://127.0.0.1:{web}/a.html', 'Fruit')"


def lines_printed(script: str, folder: Path, environment: Mapping[str, str]) -> list[str]:
    """Run a script that leaves processes behind, which are its group's, and end them."""
    process = subprocess.Popen(
        ["bash", "-c", f"{script}\nexit"], cwd=folder, env=environment, stdout=subprocess.PIPE, text=True,
        start_new_session=True,
    )  # fmt: skip
    try:
        printed, _ = process.communicate(timeout=300)
        return printed.splitlines()
    finally:
        os.killpg(process.pid, signal.SIGTERM)
