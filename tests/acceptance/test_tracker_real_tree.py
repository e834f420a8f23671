"""A real tree and ten partial mirrors on the disk: the replicas found are those of a brute-force comparison, exactly.

Names and sizes are compared, as the tracker does. A few directories have these in common and not their bytes:
translations of one program, of equal length.
"""

import os
import random
import shutil
from hashlib import sha256
from pathlib import Path

import pytest

from lcc_scrapy.apps.tracker import lookup
from lcc_scrapy.apps.tracker.loading import Scan, load
from lcc_scrapy.apps.tracker.local import listing
from lcc_scrapy.apps.tracker.rules.policy import Rules
from lcc_scrapy.apps.tracker.rules.tracked import url_of
from lcc_scrapy.apps.tracker.spool import visible
from lcc_scrapy.apps.tracker.store import rows_in
from lcc_scrapy.db.sql.store import SqlStore
from tests.harness import CORPORA
from tests.killed_tracker import empty
from tests.mirrors import NOW, Tracker

MIRRORS, PARTS = 10, 12

pytestmark = pytest.mark.slow


def mirror(chosen: random.Random, tree: Path, to: Path) -> None:
    """Make a partial mirror: some directories at other places; in some of them a file is missing or another one."""
    folders = sorted(Path(one) for one, _, _ in os.walk(tree))
    for number in range(PARTS):
        place = to.joinpath(*[f"m{chosen.randrange(3)}"] * chosen.randrange(3), f"p{number}")
        place.parent.mkdir(parents=True, exist_ok=True)
        shutil.copytree(chosen.choice(folders), place, symlinks=True, copy_function=linked)
    for name, _, files in sorted(os.walk(to)):
        if files and chosen.random() < 0.1:
            damage(chosen, Path(name) / chosen.choice(sorted(files)))


def linked(source: str, to: str) -> None:
    try:
        os.link(source, to, follow_symlinks=False)
    except OSError:  # another file system
        shutil.copy2(source, to, follow_symlinks=False)


def damage(chosen: random.Random, path: Path) -> None:
    content = b"" if path.is_symlink() else path.read_bytes()
    path.unlink()
    if chosen.random() < 0.5:
        path.write_bytes(content + b"x")


def contents(folder: Path, what, known: dict):
    """Return all that is in a folder and below it: names, and ``what`` of files; None = no file at all."""
    files, below = [], []
    for one in sorted(os.scandir(folder), key=lambda one: os.fsencode(one.name)):
        if one.name.startswith(".") or one.is_symlink():
            continue
        if one.is_dir():
            below.append((one.name, contents(Path(one), what, known)))
        else:
            files.append((one.name, what(one)))
    made = (files, below) if files or any(its for _, its in below) else None
    known[folder] = made
    return made


def size(one: os.DirEntry) -> int:
    return one.stat().st_size


def digest(one: os.DirEntry) -> bytes:
    return sha256(Path(one).read_bytes()).digest()


def found(tracker, url: str):
    """Yield the path of each directory of a server with the URLs of its replicas on others."""
    host = tracker.server(url)
    with tracker.store.read() as tx:
        rows = rows_in(tx)
        directories = rows.behind(host.first, host.first + host.dirs)
        paths = lookup.paths_of(rows, [(one, host) for one in directories])
        for one in directories:
            equal = rows.directories_with(one.md5, one.sha, 1000) if one.md5 else []
            pairs = [pair for pair in lookup.shown(rows, equal, Rules()) if pair[1].url != url]
            where = lookup.paths_of(rows, pairs)
            its = {url_of(host.site, where[each.dirid], is_directory=True) for each, host in pairs}
            yield paths[one.dirid], its


@pytest.fixture
def tracker(databases):
    store = SqlStore(databases.url("sqlite"))
    empty(store)
    yield Tracker(store)
    empty(store)
    store.close()


def test_replicas_of_a_real_tree_are_those_of_a_brute_force_comparison(tracker, corpora, tmp_path):
    assert corpora
    chosen = random.Random(17)
    trees = {"ftp://origin.org/": CORPORA}
    for number in range(MIRRORS):
        folder = tmp_path / f"m{number}"
        folder.mkdir()
        mirror(chosen, CORPORA, folder)
        trees[f"ftp://m{number}.org/"] = folder
    sizes: dict = {}
    everything: dict = {}
    for url, folder in trees.items():
        load(tracker.store, Scan(tracker.server(url).hostid, NOW, "test"), visible(listing(folder)))
        contents(folder, size, sizes)
        contents(folder, digest, everything)
    everywhere = [
        (
            url,
            url_of(url[:-1], tuple(map(os.fsencode, path.relative_to(folder).parts)), is_directory=True),
            path,
        )
        for url, folder in trees.items()
        for path in sizes
        if path.is_relative_to(folder)
    ]
    directories = replicated = pairs = same = 0
    for url, folder in trees.items():
        for path, replicas in found(tracker, url):
            here = folder.joinpath(*map(os.fsdecode, path))
            equal = {
                where: everything[here] == everything[there]
                for other, where, there in everywhere
                if other != url and sizes[here] and sizes[here] == sizes[there]
            }
            assert replicas == equal.keys(), (url, path)
            directories, replicated = directories + 1, replicated + bool(equal)
            pairs, same = pairs + len(equal), same + sum(equal.values())
    print(
        f"{directories} directories, {replicated} have replicas, {pairs} in all; {same} have the same bytes"
    )
    assert directories == len(everywhere)
    assert directories > 500
    assert 100 < replicated < directories - 100
