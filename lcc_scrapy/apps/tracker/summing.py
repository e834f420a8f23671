"""The summariser: a listing becomes a tree of directories with their identities (seed 004).

In memory are all directories, and the files of those whose subdirectories are still to come. Directories may
come in any order, each after the one above it.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from lcc_scrapy.apps.tracker.entries import (
    MOST_DEPTH,
    MOST_DIRECTORIES,
    MOST_ENTRIES,
    Directory,
    Held,
    Path,
    Unlisted,
    is_name,
)
from lcc_scrapy.apps.tracker.identity import Fields, Identity, name_of, plain_of, tree

Pairs = tuple[tuple[bytes, bytes], ...]
NO_FIELDS = Fields(b"", b"")


class Node:
    """A directory. ``identity`` is None while it is not known, and where it cannot be.

    ``waiting`` subdirectories have no identity yet; ``fields`` are its files until then. ``filled``: there
    is a file in it or below; an empty tree has no replica.
    """

    __slots__ = (
        "above", "fields", "filled", "identity", "links",
        "listed", "name", "nodes", "sound", "waiting",
    )  # fmt: skip

    def __init__(self, name: bytes, above: "Node | None") -> None:
        self.name = name
        self.above = above
        self.nodes: dict[bytes, Node] | None = None
        self.identity: Identity | None = None
        self.fields: Fields | None = None
        self.links: Pairs = ()
        self.waiting = 0
        self.listed = self.filled = False
        self.sound = True


Row = tuple[int, int, int, int, bytes, Identity | None, Pairs, Pairs]
"""A directory: number, parent, first, dirs, name, identity, links, digests.

Numbers go level by level, by name within one directory: so the subdirectories of each are ``dirs`` numbers
from ``first`` on, and equal trees are numbered alike. The base is 0, and its own parent.
"""


@dataclass(slots=True)
class Totals:
    """What was counted. ``unsound`` directories have no identity by themselves; ``strays`` were not named."""

    dirs: int = 1
    files: int = 0
    links: int = 0
    unsound: int = 0
    strays: int = 0


@dataclass(slots=True)
class Summary:
    """Sums directories up as they come; ``plain``: by the files of each only."""

    plain: bool = False
    root: Node = field(default_factory=lambda: Node(b"", None))
    totals: Totals = field(default_factory=Totals)
    _digests: dict[Node, Pairs] = field(default_factory=dict)
    _held: Held = field(default_factory=Held)

    def add(self, directory: Directory) -> None:
        """Take in one directory; raises ``Unlisted`` beyond the bounds of a scan."""
        node = self.find(directory.path)
        if node is None or node.listed:
            self.totals.strays += 1
            return
        node.listed = True
        self._count(directory)
        self._hold(directory.links)
        self._hold(directory.digests)
        node.links = tuple(directory.links)
        if directory.digests:
            self._digests[node] = tuple(directory.digests)
        self._open(node, directory)
        self._sum(node, directory)

    def find(self, path: Path) -> Node | None:
        """Return the directory at a path."""
        node: Node | None = self.root
        for name in path:
            if node is None or node.nodes is None:
                return None
            node = node.nodes.get(name)
        return node

    @property
    def known_digests(self) -> int:
        """Count the files whose content is known."""
        return sum(map(len, self._digests.values()))

    def _count(self, directory: Directory) -> None:
        totals = self.totals
        totals.files += len(directory.files)
        totals.links += len(directory.links)
        totals.dirs += len(directory.dirs)
        if totals.dirs > MOST_DIRECTORIES or totals.dirs + totals.files + totals.links > MOST_ENTRIES:
            raise Unlisted(f"more than {MOST_DIRECTORIES} directories or {MOST_ENTRIES} entries")

    def _hold(self, pairs: Sequence[tuple[bytes, bytes]]) -> None:
        if pairs:
            self._held.add(len(pairs), sum(len(name) + len(value) for name, value in pairs))

    def _open(self, node: Node, directory: Directory) -> None:
        if directory.dirs:
            deep = len(directory.path) >= MOST_DEPTH
            good = [] if deep else list(filter(is_name, directory.dirs))
            node.sound = len(good) == len(directory.dirs)
            node.nodes = {name: Node(name, node) for name in good}
            node.waiting = len(node.nodes)

    def _sum(self, node: Node, directory: Directory) -> None:
        files = directory.files
        files.sort(key=name_of)
        fields = Fields.of(files)
        node.filled = bool(files)
        if not (directory.sound and _are_names(fields.names, len(files)) and node.sound):
            node.sound = False
            self.totals.unsound += 1
        if self.plain or not node.waiting:
            node.identity = plain_of(files, fields) if node.sound else None
            self._tell(node.above)
        else:
            self._held.add(1, fields.size)
            node.fields = fields

    def _tell(self, above: Node | None) -> None:
        """Sum up what waited for its last subdirectory, and then perhaps what is above it."""
        while above is not None and not self.plain:
            above.waiting -= 1
            if above.waiting:
                return
            self._held.drop(1, (above.fields or NO_FIELDS).size)
            _complete(above)
            above = above.above

    def identities(self) -> Iterator[tuple[Path, Identity | None]]:
        """Yield all directories with their identities by path, also of those without a file."""
        waiting: list[tuple[Path, Node]] = [((), self.root)]
        while waiting:
            path, node = waiting.pop()
            yield path, node.identity
            below = sorted((node.nodes or {}).values(), key=_by_name, reverse=True)
            waiting += [((*path, one.name), one) for one in below]

    def rows(self) -> Iterator[Row]:
        """Yield all directories, level by level; whatever was not listed has no identity."""
        level, parents, number, following = [self.root], [0], 0, 1
        while level:
            deeper: list[Node] = []
            above: list[int] = []
            for node, parent in zip(level, parents, strict=True):
                below = sorted(node.nodes.values(), key=_by_name) if node.nodes else []
                identity = node.identity if node.filled else None
                digests = self._digests.get(node, ())
                yield number, parent, following, len(below), node.name, identity, node.links, digests
                deeper += below
                above += [number] * len(below)
                following += len(below)
                number += 1
            level, parents = deeper, above


def _by_name(node: Node) -> bytes:
    return node.name


def _complete(node: Node) -> None:
    """Give a directory its identity from those of its subdirectories, which need theirs no more in full."""
    below = list(node.nodes.values()) if node.nodes else []
    its = [(one.name, one.identity) for one in below if one.identity is not None]
    node.filled = node.filled or any(one.filled for one in below)
    if node.sound and len(its) == len(below):
        node.identity = tree(node.fields or NO_FIELDS, its)
    node.fields = None


def _are_names(names: bytes, count: int) -> bool:
    """Tell whether joined names are as ``is_name`` has them, but for their length."""
    framed = b"\0%b\0" % names
    if b"/" in names or framed.count(b"\0") != max(count, 1) + 1:
        return False
    # most directories have no name that begins with a dot
    return not (b"\0." in framed and (b"\0.\0" in framed or b"\0..\0" in framed))


def summed(listing: Iterable[Directory], *, plain: bool = False) -> Summary:
    """Sum up a whole listing. Raises ``Unlisted`` as the listing does, and where there is nothing in it."""
    summary = Summary(plain)
    for directory in listing:
        summary.add(directory)
    if not summary.root.listed:
        raise Unlisted("nothing is listed")
    return summary
