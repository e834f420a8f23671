"""From a provider's push to a content user's answer, as the README tells it, on real documents."""

import hashlib
import json
import shutil
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path

import pytest

from tests.acceptance.conftest import Lcc, Nginx, Served

pytestmark = [pytest.mark.acceptance]

SEED_QUERY = (
    "select furl, mimetype, fetched_machineid, fetched_fileid\n  from lccurl\n where fetched_time > 0;"
)


def html_files(root: Path) -> dict[str, bytes]:
    files = (path for path in root.rglob("*.html") if path.is_file() and not path.is_symlink())
    return {str(path.relative_to(root)): path.read_bytes() for path in files}


def copy(source: Path, target: Path) -> Path:
    shutil.copytree(source, target, symlinks=True)
    return target


def cached(lcc: Lcc) -> dict[str, bytes]:
    """Return what the seed's own query and the content files give: fetch URL to bytes."""
    rows = lcc.sql(SEED_QUERY)
    return {furl: lcc.path_of(machineid, fileid).read_bytes() for furl, _, machineid, fileid in rows}


def select(lcc: Lcc, cursor_file: str) -> list[dict[str, object]]:
    done = lcc.lcc("select", "--format", "jsonl", "--cursor-file", cursor_file)
    return [json.loads(line) for line in done.stdout.splitlines()]


def overlaps(requests: list[Served]) -> int:
    """Count pairs of requests that were in flight together (to the log's millisecond)."""
    ordered = sorted(requests, key=lambda served: (served.start, served.end))
    return sum(later.start < earlier.end - 0.0011 for earlier, later in pairwise(ordered))


@pytest.mark.parametrize("database", ["sqlite", "mariadb"])
def test_two_sites_are_pushed_fetched_and_seen(
    database: str, make_lcc: Callable[..., Lcc], nginx: Nginx, corpora: dict[str, Path], tmp_path: Path
) -> None:
    sites = {name: copy(path, tmp_path / name) for name, path in corpora.items()}
    nginx.start(sites)
    lcc = make_lcc(database)
    prefixes = {name: f"http://127.0.0.1:{port}/" for name, port in nginx.ports.items()}
    numbers = {"python": 1, "postgresql": 2}
    for name, pid in numbers.items():
        lcc.add_provider(pid, prefixes[name])
    lcc.start()

    lcc.lcc("provider", "pause", "--all")  # so that both have begun before either is done
    for name, pid in numbers.items():
        done = lcc.push(sites[name], pid, prefixes[name], "-name '*.html'", state=f"{name}.txt")
        assert done.returncode == 0, done.stderr
    lcc.lcc("provider", "resume", "--all")
    lcc.wait_until_fetched(300)

    expected = {
        prefixes[name] + path: data for name, root in sites.items() for path, data in html_files(root).items()
    }
    assert len(expected) > 1690
    got = cached(lcc)
    assert got.keys() == expected.keys()
    assert all(got[url] == data for url, data in expected.items())
    assert {row["op"] for row in select(lcc, "cursor")} == {"upsert"}

    order = {name: [served for served in nginx.log(name) if served.uri != "/robots.txt"] for name in sites}
    for name, requests in order.items():
        assert overlaps(requests) == 0
        assert [served.uri[1:] for served in requests] == submitted_order(lcc, sites[name])
    both = sorted((s.start, s.end, name) for name, requests in order.items() for s in requests)
    assert min(s.start for s in order["postgresql"]) < max(s.end for s in order["python"]), both[:5]

    for name in sites:
        nginx.clear(name)
    for name, pid in numbers.items():
        again = lcc.push(sites[name], pid, prefixes[name], "-name '*.html'", state=f"{name}.txt")
        assert again.returncode == 0
        assert not nginx.log(name)
    assert select(lcc, "cursor") == []

    change(sites["python"], changed=5, removed=3, added=2)
    assert (
        lcc.push(sites["python"], 1, prefixes["python"], "-name '*.html'", state="python.txt").returncode == 0
    )
    lcc.wait_until_fetched()
    news = select(lcc, "cursor")
    by_op = {op: {row["furl"] for row in news if row["op"] == op} for op in ("upsert", "remove")}
    assert len(news) == 10
    assert (len(by_op["upsert"]), len(by_op["remove"])) == (7, 3)
    assert {prefixes["python"] + served.uri[1:] for served in nginx.log("python")} == by_op["upsert"]
    assert not nginx.log("postgresql")
    assert cached(lcc) == {
        prefixes[name] + path: data for name, root in sites.items() for path, data in html_files(root).items()
    }
    assert lcc.stop() == 0
    assert lcc.lcc("verify").returncode == 0


def submitted_order(lcc: Lcc, root: Path) -> list[str]:
    """Return the order in which file2url gives the files: by the bytes of their paths."""
    return sorted(html_files(root), key=lambda path: path.encode())


def change(root: Path, *, changed: int, removed: int, added: int) -> None:
    files = sorted(root.rglob("*.html"))
    for path in files[:changed]:
        path.write_bytes(path.read_bytes() + b"<!-- changed -->\n")
    for path in files[changed : changed + removed]:
        path.unlink()
    for number in range(added):
        (root / f"added-{number}.html").write_text(f"<p>{hashlib.sha256(bytes([number])).hexdigest()}</p>\n")
