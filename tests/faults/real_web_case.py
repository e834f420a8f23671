"""What real sites answer, and what has to come of it: one ``Case`` for each, by the kind of its fault.

``group`` is a line of ``docs/real-web.md``; a group may have hundreds of cases (all statuses, all octets). Every case is
an update that a provider pushes. ``earlier`` is what the site was when the copy in the cache was fetched.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from hashlib import md5
from zlib import crc32

from tests.faults.real_web_site import Asked, Reply, page

OLD = b"<title>old</title><p>the old edition</p>" * 3
NEW = b"<title>new</title><p>the new edition</p>" * 5
Step = Reply | Callable[[Asked], Reply]
TAG = 'ETag: "old"'
DATE = "Last-Modified: Tue, 06 Oct 2026 10:00:00 GMT"
RETRIES = 3
"""Requests for a URL that always fails: there are two retry delays."""


@dataclass(frozen=True, eq=False)
class Case:
    """One URL; ``wants`` is the content in the end (None: none), ``codes`` what its provider is told.

    ``declared``: the content whose md5 and len are declared. ``site``: cases of one name share host and provider.
    ``further`` and ``earlier`` are by path; a path without a slash at its start lies beside the page.
    ``requests`` counts those for the page itself; ``gap`` is the least time between the first two (seconds).
    ``group`` is empty: what becomes of it does not matter. ``compared``: whether clients that know no declarations can be asked the same.
    """

    kind: str
    group: str
    name: str
    script: tuple[Step, ...]
    wants: bytes | None = NEW
    codes: tuple[int, ...] = ()
    held: bytes | None = None
    declared: bytes | None = None
    mimetype: str = "text/html"
    stored_type: str = ""
    path: str = ""
    root: str = "/"
    further: Mapping[str, tuple[Step, ...]] = field(default_factory=dict)
    earlier: Mapping[str, tuple[Step, ...]] = field(default_factory=dict)
    robots: tuple[Step, ...] = ()
    site: str = ""
    tls: bool = False
    requests: int | None = None
    gap: float = 0.0
    compared: bool = True

    @property
    def place(self) -> str:
        return self.path or f"/{self.kind}/{crc32(f'{self.group} {self.name}'.encode()):08x}/page.html"

    @property
    def host(self) -> str:
        """Name the site of this case; robots.txt and waits hold for a whole host, so such cases have their own."""
        return self.site or (
            f"{self.kind} {self.group} {self.name}" if self.robots or self.tls else self.kind
        )

    def at(self, path: str) -> str:
        return path if path.startswith("/") else self.place.rpartition("/")[0] + "/" + path

    def attributes(self, content: bytes | None) -> dict[str, object]:
        if content is None:
            return {}
        return {"len": len(content), "md5": md5(content, usedforsecurity=False).hexdigest()}


def status(line: str, *lines: str) -> Reply:
    return page(b"a word about it", line, *lines)


def moved(to: str, line: str = "302 Found") -> Reply:
    return page(b"", line, f"Location: {to}")
