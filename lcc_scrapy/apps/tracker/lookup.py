"""Look-up: from a URL to the URLs of its exact replicas (seed 004, Table 1).

The walk goes from the root down. The first directory that has replicas decides, and the rest of the path is
appended to them. A directory has one identity for all that lies below it, so the rest is there too.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import lru_cache

from lcc_scrapy.apps.tracker.comparison import Comparison
from lcc_scrapy.apps.tracker.rules.policy import EVERYBODY, Rules
from lcc_scrapy.apps.tracker.rules.tracked import Host, Place, TrackedDirectory, url_of
from lcc_scrapy.apps.tracker.store import TrackerRows, rows_in
from lcc_scrapy.db.tx import Store
from lcc_scrapy.domain.roots import URL_MAX

CANDIDATES = 1000
"""Directories with one identity on other servers that are looked at; of more, any that many."""

LOOKED_AT = 10_000
"""Such directories that are looked at in one walk; of those that come behind, no replicas are offered."""

NARROW = 256
"""Subdirectories that are read through for a name; of more, half of them are left out until so few are."""

_LINKS = 8
"""Symbolic links that one walk follows."""

LIMIT = 10

Path = tuple[bytes, ...]


@dataclass(frozen=True, slots=True)
class Replica:
    """Where something is to be had; ``scanned`` is when its server was listed (epoch seconds)."""

    url: str
    domain: str
    scanned: int


@dataclass(frozen=True, slots=True)
class Step:
    """One directory of the walk, and how many replicas of it may be offered."""

    url: str
    replicas: int


@dataclass(frozen=True, slots=True)
class Found:
    """The result: replicas, best first, and the walk to them. Not ``known``: no server lists the URL.

    Whose URL has no "/" at its end may be a directory nevertheless. ``digest`` (hexadecimal) is that of a
    file's content, by its length as in ``entries.Entry``; "" = not known.
    """

    known: bool = False
    replicas: tuple[Replica, ...] = ()
    steps: tuple[Step, ...] = ()
    is_directory: bool = True
    digest: str = ""


@dataclass(frozen=True, slots=True)
class _Here:
    """A directory on the walk; ``rest`` are the names that follow it."""

    host: Host
    directory: TrackedDirectory
    path: Path
    rest: Path


@dataclass(slots=True)
class _Walk:
    """One walk within one transaction."""

    rows: TrackerRows
    place: Place
    rules: Rules
    limit: int
    comparison: Comparison
    steps: list[Step] = field(default_factory=list)
    left: int = field(default_factory=lambda: LOOKED_AT)

    def found(self) -> Found:
        """Return the first directory's replicas that may be offered."""
        host = server_of(self.rows, self.place)
        way = self._way(host, _below(host, self.place)) if host else []
        if not way or not self._leads_there(way[-1]):
            return Found()
        is_directory = self.place.is_directory or not way[-1].rest
        replicas: tuple[Replica, ...] = ()
        for number, here in enumerate(way):
            offered = self._offered(here, way[number + 1 :])
            self.steps.append(Step(url_of(here.host.site, here.path, is_directory=True), len(offered)))
            if offered:
                replicas = self._replicas(here, offered)
                break
        return Found(True, replicas, tuple(self.steps), is_directory, self._digest(way[-1]))

    def _way(self, host: Host, path: Path) -> list[_Here]:
        """Return directories from the base of a server down, as far as they are known, through links."""
        way = list(self._straight(host, path))
        for _ in range(_LINKS if host.links else 0):
            last = way[-1]
            target = self.rows.tracked_link(last.directory.dirid, last.rest[0]) if last.rest else None
            below = last.path[len(base_of(host.url)) :]
            led = None if target is None else led_to(below, target, last.rest[1:])
            if led is None:
                break
            way = list(self._straight(host, led))
        return way

    def _straight(self, host: Host, path: Path) -> Iterator[_Here]:
        base = base_of(host.url)
        directory = self.rows.directories([host.first]).get(host.first)
        number = 0
        while directory is not None:
            yield _Here(host, directory, base + path[:number], path[number:])
            if number == len(path):
                return
            directory = child(self.rows, directory, path[number])
            number += 1

    def _leads_there(self, last: _Here) -> bool:
        """Tell whether the walk came to the directory, or to that of the file."""
        return len(last.rest) <= (0 if self.place.is_directory else 1)

    def _digest(self, last: _Here) -> str:
        if not (last.rest and last.host.digests):
            return ""
        dirid = last.directory.dirid
        return self.rows.digests_of({dirid}, last.rest[0]).get(dirid, b"").hex()

    def _offered(self, here: _Here, below: Sequence[_Here]) -> list[tuple[TrackedDirectory, Host]]:
        """Return the replicas of a directory that may be offered, best first; ``below`` is the way on."""
        its, host = here.directory, here.host
        if its.md5 is None or its.sha is None or not self.left:
            return []
        mine = host.first, host.first + host.dirs
        found = self.rows.directories_with(its.md5, its.sha, min(CANDIDATES, self.left), mine)
        self.left -= len(found)
        offered = [pair for pair in shown(self.rows, found, self.rules) if pair[1].site != host.site]
        return self._without_others(here, below, offered) if host.digests and offered else offered

    def _without_others(
        self, here: _Here, below: Sequence[_Here], offered: list[tuple[TrackedDirectory, Host]]
    ) -> list[tuple[TrackedDirectory, Host]]:
        """Leave out replicas in which a content that is wanted is known to differ."""
        known = [one for one, host in offered if host.digests]
        way = [here.directory, *(step.directory for step in below)]
        same = self.comparison.same(way, below[-1].rest if below else here.rest, known)
        return [pair for pair in offered if not pair[1].digests or pair[0].dirid in same]

    def _replicas(self, here: _Here, offered: Sequence[tuple[TrackedDirectory, Host]]) -> tuple[Replica, ...]:
        is_directory = self.place.is_directory or not here.rest
        return _replicas(self.rows, offered, self.limit, here.rest, is_directory=is_directory)


def look_up(store: Store, place: Place, rules: Rules = EVERYBODY, limit: int = LIMIT) -> Found:
    """Return replicas of a file or directory, own domains first, then the freshest. Blocking."""
    if place.query:
        return Found()
    with store.snapshot() as tx:
        rows = rows_in(tx)
        return _Walk(rows, place, rules, limit, Comparison(rows)).found()


def look_up_identity(
    store: Store, md5: bytes, rules: Rules = EVERYBODY, limit: int = LIMIT
) -> tuple[Replica, ...]:
    """Return the directories that have an identity (``urn:x-tracker``), in the same order. Blocking."""
    with store.snapshot() as tx:
        rows = rows_in(tx)
        found = shown(rows, rows.directories_named_by(md5, CANDIDATES), rules)
        return _replicas(rows, found, limit)


def _replicas(
    rows: TrackerRows,
    offered: Sequence[tuple[TrackedDirectory, Host]],
    limit: int,
    rest: Path = (),
    *,
    is_directory: bool = True,
) -> tuple[Replica, ...]:
    """Return so many replicas, each URL once: two servers list it where one base is below another."""
    found: dict[str, Replica] = {}
    for part in (offered[:limit], offered[limit : 4 * limit]):
        paths = paths_of(rows, part if len(found) < limit else ())
        for directory, host in part if paths else ():
            path = base_of(host.url) + paths[directory.dirid] + rest
            url = url_of(host.site, path, is_directory=is_directory)
            if len(url) <= URL_MAX:
                found.setdefault(url, Replica(url, host.domain, host.scanned))
    return tuple(found.values())[:limit]


def server_of(rows: TrackerRows, place: Place) -> Host | None:
    """Return the server whose base is nearest to a URL."""
    covering = [one for one in rows.hosts_at(place.site) if one.dirs and _covers(one, place)]
    return max(covering, key=lambda one: len(one.url), default=None)


def shown(
    rows: TrackerRows, directories: Sequence[TrackedDirectory], rules: Rules
) -> list[tuple[TrackedDirectory, Host]]:
    """Return those that their servers show and the rules permit, best first."""
    hosts = rows.hosts_by_id({one.hostid for one in directories}) if directories else {}
    permitted = {one: host for one, host in hosts.items() if rules.permits(host.domain, name_of(host.url))}
    pairs = [(one, permitted[one.hostid]) for one in directories if one.hostid in permitted]
    found = [(one, host) for one, host in pairs if host.first <= one.dirid < host.first + host.dirs]
    return sorted(found, key=lambda pair: (rules.rank(pair[1].domain), -pair[1].scanned, pair[0].dirid))


def child(rows: TrackerRows, directory: TrackedDirectory, name: bytes) -> TrackedDirectory | None:
    """Return a subdirectory by name; subdirectories stand in the order of their names."""
    first, upto = directory.first, directory.first + directory.dirs
    while upto - first > NARROW:
        middle = (first + upto) // 2
        if rows.directories([middle])[middle].name <= name:
            first = middle
        else:
            upto = middle
    return rows.directory_named(first, upto, name) if upto > first else None


def led_to(path: Path, target: bytes, rest: Path) -> Path | None:
    """Return where a symbolic link in a directory leads with what follows it; None = to an unknown place."""
    if target.startswith(b"/"):  # where that is on the server is not said
        return None
    led = list(path)
    for name in (*target.split(b"/"), *rest):
        if name == b"..":
            if not led:
                return None
            led.pop()
        elif name not in {b"", b"."}:
            led.append(name)
    return tuple(led)


def paths_of(rows: TrackerRows, some: Iterable[tuple[TrackedDirectory, Host]]) -> dict[int, Path]:
    """Return the paths of directories below the bases of their servers, by number.

    Of deeper ones than a URL can name, only the end.
    """
    paths: dict[int, Path] = {directory.dirid: () for directory, _ in some}
    at = {directory.dirid: directory for directory, _ in some}
    bases = {directory.dirid: host.first for directory, host in some}
    for _ in range(URL_MAX // 2 + 1):  # names and slashes
        at = {one: where for one, where in at.items() if where.dirid != bases[one]}
        if not at:
            break
        paths |= {one: (where.name, *paths[one]) for one, where in at.items()}
        above = rows.directories({where.parent for where in at.values()})
        at = {one: above[where.parent] for one, where in at.items()}
    return paths


@lru_cache(maxsize=10_000)
def base_of(url: str) -> Path:
    """Return the path of a server's base."""
    return Place.parse(url).path


@lru_cache(maxsize=10_000)
def name_of(url: str) -> str:
    """Return a server's host name."""
    return Place.parse(url).host


def _covers(host: Host, place: Place) -> bool:
    base = base_of(host.url)
    return place.path[: len(base)] == base


def _below(host: Host, place: Place) -> Path:
    return place.path[len(base_of(host.url)) :]
