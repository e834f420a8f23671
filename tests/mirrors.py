"""Servers for the mirror tracker's tests: trees of plain dictionaries, listed, loaded, compared by brute force."""

import random
from collections.abc import Iterator
from contextlib import suppress
from itertools import count

from lcc_scrapy.apps.tracker.entries import Directory, Path
from lcc_scrapy.apps.tracker.loading import Loaded, Scan, load
from lcc_scrapy.apps.tracker.registry import Registry, ServerRefused
from lcc_scrapy.apps.tracker.store import rows_in

Tree = dict[bytes, "int | Tree"]
"""Sizes of files and trees of directories by name."""

NOW = 1_800_000_000


def listing(tree: Tree, path: Path = (), links=None, digests=None) -> Iterator[Directory]:
    """Yield the directories of a tree; ``links`` and ``digests`` are (name, value) by path."""
    files = [(b"%d" % size, name) for name, size in tree.items() if isinstance(size, int)]
    dirs = [name for name, below in tree.items() if isinstance(below, dict)]
    its = ([*(links or {}).get(path, ())], [*(digests or {}).get(path, ())])
    yield Directory(path, files, dirs, *its)
    for name in dirs:
        yield from listing(tree[name], (*path, name), links, digests)


def kept(tx, first: int, upto: int):
    """Return directories from ``first`` on, below ``upto``, their links and digests."""
    rows, after = rows_in(tx), (first, b"")
    more = (upto, 1 << 30)
    return rows.behind(first, upto), rows.links_behind(after, *more), rows.digests_behind(after, *more)


class Tracker:
    """A tracker in one store."""

    def __init__(self, store) -> None:
        self.store = store
        self.registry = Registry(store)
        self._at = count(NOW)

    def server(self, url: str, domain: str = "org"):
        """Return a server, added if it is not there."""
        known = next((one for one in self.registry.servers() if one.url == url), None)
        if known is not None:
            return known
        with suppress(ServerRefused):
            self.registry.add_domain(domain, 0)  # the first generation is 1
        return self.registry.add_server(url, domain, NOW)

    def load(self, url: str, tree: Tree, domain: str = "org", at: int | None = None, **known) -> Loaded:
        """List a server that has a tree."""
        host = self.server(url, domain)
        scan = Scan(host.hostid, next(self._at) if at is None else at, "test")
        return load(self.store, scan, listing(tree, **known), lambda: NOW)


def tree_of(text: str) -> Tree:
    """Make a tree of lines ``path size``."""
    tree: Tree = {}
    for line in text.split("\n"):
        if line.strip():
            path, size = line.split()
            put(tree, path.encode().split(b"/"), int(size))
    return tree


def put(tree: Tree, path, value) -> None:
    """Put a file or tree at a path."""
    for name in path[:-1]:
        tree = tree.setdefault(name, {})
    tree[path[-1]] = value


def at(tree: Tree, path: Path):
    """Return what is at a path."""
    for name in path:
        tree = tree[name]
    return tree


def paths(tree: Tree, path: Path = ()) -> Iterator[Path]:
    """Yield the paths of all directories."""
    yield path
    for name, below in tree.items():
        if isinstance(below, dict):
            yield from paths(below, (*path, name))


def has_file(tree: Tree) -> bool:
    """Tell whether there is a file in a tree."""
    return any(isinstance(one, int) or has_file(one) for one in tree.values())


def random_tree(chosen: random.Random, depth: int = 4) -> Tree:
    """Make a tree: some names and sizes come up often, so that parts are equal by chance."""
    tree: Tree = {b"f%d" % number: chosen.randrange(4) for number in range(chosen.randrange(4))}
    if depth:
        tree |= {b"d%d" % number: random_tree(chosen, depth - 1) for number in range(chosen.randrange(4))}
    return tree


def partial(chosen: random.Random, tree: Tree) -> Tree:
    """Make a partial mirror: parts of a tree at other places, some of them changed."""
    copy: Tree = {}
    some = list(paths(tree))
    for number in range(4):
        place = [b"m%d" % chosen.randrange(3)] * chosen.randrange(2) + [b"p%d" % number]
        put(copy, place, damaged(chosen, at(tree, chosen.choice(some))))
    return copy


def damaged(chosen: random.Random, tree: Tree) -> Tree:
    """Copy a tree; seldom a file has another size, another name, or is missing."""
    copy: Tree = {}
    for name, below in tree.items():
        fate = chosen.random()
        if isinstance(below, dict):
            copy[name] = damaged(chosen, below)
        elif fate < 0.9:
            copy[name] = below
        elif fate < 0.95:
            copy[name] = below + 1
    return copy
