"""Exchange: what the servers of a domain have, as files for other trackers (seed 004, "The Digest Exchange").

A folder has a manifest and three files, compressed with gzip, of lines with tab-separated columns. Names are
percent-encoded. A line ``S`` begins a server::

    DOMAIN-GENERATION.digests.gz    S url scanned adapter directories files links unsound
                                    subdirectories name md5 sha         each directory, level by level
    DOMAIN-GENERATION.links.gz      S url
                                    directory name target               symbolic links
    DOMAIN-GENERATION.contents.gz   the same of contents: directory name digest

The manifest, ``DOMAIN.json``, is written last and names the files with their SHA-256.
"""

import gzip
import json
import os
import re
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from hashlib import sha256
from pathlib import Path
from typing import IO, Any
from urllib.parse import quote_from_bytes

from lcc_scrapy.apps.tracker.registry import MOST_SERVERS
from lcc_scrapy.apps.tracker.rules.tracked import Host, checked_domain
from lcc_scrapy.apps.tracker.store import each_digest, each_link, rows_in
from lcc_scrapy.db.tx import Store
from lcc_scrapy.domain.errors import LccError
from lcc_scrapy.machine.disk import sync_folder

FORMAT = "lcc-tracker 1"
COUNTS = ("generation", "made", "servers", "directories")
KINDS = ("digests", "links", "contents")
MANIFEST_MAX = 64 * 1024
ALL_DIRECTORIES = 50_000_000
"""Directories of one domain."""

BYTES_MAX = 2_000_000_000
"""Bytes of one file, compressed."""

PAGE = 5_000
"""Directories that are read in one transaction."""

NOTHING = "-"
NEW = ".new"
"""What the name of a file ends in while it is written."""

_TRIES = 5
_SAFE = "!$&'()*+,;=:@~/ "
_NAME = re.compile(r"([a-z0-9-]{1,63})(?:\.json|-(\d{1,19})\.(?:digests|links|contents)\.gz)", re.ASCII)
_SHA = re.compile(r"[0-9a-f]{64}")


class BadExchange(LccError):
    """Files of another tracker that cannot be taken in; the text says why. Nothing changed."""


@dataclass(frozen=True, slots=True)
class File:
    """One file of a manifest."""

    name: str
    sha256: str
    bytes: int


@dataclass(frozen=True, slots=True)
class Manifest:
    """What a folder has of a domain; ``made`` in epoch seconds."""

    domain: str
    generation: int
    made: int
    servers: int
    directories: int
    files: tuple[File, ...]
    format: str = FORMAT

    def text(self) -> str:
        """Return the manifest as it is written."""
        return json.dumps(asdict(self), indent=2) + "\n"

    @classmethod
    def parse_of(cls, domain: str, text: bytes) -> "Manifest":
        """Read the manifest of a domain; raises ``BadExchange``, also for that of another one."""
        manifest = cls.parse(text)
        if manifest.domain != domain:
            raise BadExchange(f"the manifest is of domain {manifest.domain}, not {domain}")
        return manifest

    @classmethod
    def parse(cls, text: bytes) -> "Manifest":
        """Read a manifest of another tracker; raises ``BadExchange``."""
        try:
            said = json.loads(text[:MANIFEST_MAX])
            files = tuple(_file(one) for one in said["files"])
            counts = {name: int(said[name]) for name in COUNTS}
            domain, form = checked_domain(str(said["domain"])), str(said["format"])
        except (ValueError, KeyError, TypeError, OverflowError, RecursionError) as error:
            raise BadExchange(f"the manifest cannot be read: {error}") from None
        if form != FORMAT or min(counts.values()) < 0 or max(counts.values()) >= 1 << 62:
            raise BadExchange(f"the manifest is not one of {FORMAT}")
        generation, made, servers, directories = counts.values()
        if servers > MOST_SERVERS or directories > ALL_DIRECTORIES:
            raise BadExchange(f"more than {MOST_SERVERS} servers or {ALL_DIRECTORIES} directories")
        if tuple(one.name for one in files) != file_names(domain, generation):
            raise BadExchange(f"the manifest names other files than those of domain {domain}")
        return cls(domain, generation, made, servers, directories, files)


def _file(said: dict[str, Any]) -> File:
    made = File(str(said["name"]), str(said["sha256"]), int(said["bytes"]))
    if not (_SHA.fullmatch(made.sha256) and 0 < made.bytes <= BYTES_MAX):
        raise ValueError("a file with a digest or size as no tracker writes it")
    return made


def manifest_name(domain: str) -> str:
    """Return the file name of a domain's manifest."""
    return f"{domain}.json"


def file_names(domain: str, generation: int) -> tuple[str, ...]:
    """Return the names of the files of a generation."""
    return tuple(f"{domain}-{generation}.{kind}.gz" for kind in KINDS)


def is_file_name(name: str) -> bool:
    """Tell whether a name is one of those that an export has; none of them is a path."""
    return _NAME.fullmatch(name) is not None


def domain_of(name: str) -> str:
    """Return the domain that a file of an export has in its name, or "" where it is no such name."""
    match = _NAME.fullmatch(name)
    return match[1] if match else ""


def export(store: Store, domain: str, folder: Path, now: int) -> Manifest:
    """Write the files of a domain, the manifest last; raises ``BadExchange`` where servers always change."""
    name = checked_domain(domain)
    for _ in range(_TRIES):
        with store.read() as tx:
            its = rows_in(tx).tracked_domain(name)
            hosts = [one for one in rows_in(tx).hosts(name) if one.dirs]
        if its is None:
            raise BadExchange(f"there is no domain {domain}: see `lcc tracker domain list`")
        total = sum(one.dirs for one in hosts)
        if total > ALL_DIRECTORIES:
            raise BadExchange(f"domain {domain} has more than {ALL_DIRECTORIES} directories")
        names = file_names(name, its.generation)
        paths = [folder / name for name in names]
        _write_files(store, hosts, [_beside(path) for path in paths])
        with store.read() as tx:
            if [one for one in rows_in(tx).hosts(name) if one.dirs] != hosts:
                continue
        files = tuple(_finished(path) for path in paths)
        made = Manifest(its.domain, its.generation, now, len(hosts), total, files)
        _put(folder / manifest_name(its.domain), made.text().encode())
        _remove_others(folder, its.domain, names)
        return made
    raise BadExchange(f"the servers of {domain} change all the time: try again later")


def _write_files(store: Store, hosts: list[Host], paths: list[Path]) -> None:
    opened = [gzip.GzipFile(os.fspath(path), "wb", 6, mtime=0) for path in paths]
    try:
        for host in hosts:
            head = (host.url, host.scanned, host.adapter, host.dirs, host.files, host.links, host.unsound)
            opened[0].write(line("S", *head))
            opened[1].write(line("S", host.url))
            opened[2].write(line("S", host.url))
            _write_directories(store, host, opened)
    finally:
        for file in opened:
            file.close()


def _write_directories(store: Store, host: Host, opened: list[gzip.GzipFile]) -> None:
    end = host.first + host.dirs
    for first in range(host.first, end, PAGE):
        with store.read() as tx:
            directories = rows_in(tx).behind(first, min(first + PAGE, end))
        for one in directories:
            identity = (one.md5.hex(), one.sha.hex()) if one.md5 and one.sha else (NOTHING, NOTHING)
            opened[0].write(line(one.dirs, escaped(one.name), *identity))
    for number, name, target in each_link(store, host.first, end):
        opened[1].write(line(number - host.first, escaped(name), escaped(target)))
    for number, name, digest in each_digest(store, host.first, end):
        opened[2].write(line(number - host.first, escaped(name), digest.hex()))


def line(*columns: object) -> bytes:
    """Return one line of a file."""
    return "\t".join(map(str, columns)).encode() + b"\n"


def escaped(name: bytes) -> str:
    """Return a name without tabs, line ends and what is not ASCII."""
    return quote_from_bytes(name, safe=_SAFE)


def _finished(path: Path) -> File:
    """Give a file that is written its name, and describe it."""
    with _beside(path).open("rb") as file:
        os.fsync(file.fileno())
        digest, size = digest_of(file)
    _beside(path).replace(path)
    return File(path.name, digest, size)


def digest_of(file: IO[bytes]) -> tuple[str, int]:
    """Return SHA-256 and size of a file."""
    digest, size = sha256(), 0
    for piece in pieces(file):
        digest.update(piece)
        size += len(piece)
    return digest.hexdigest(), size


def pieces(file: IO[bytes]) -> Iterator[bytes]:
    """Yield a file piece by piece."""
    while piece := file.read(1 << 18):
        yield piece


def _put(path: Path, content: bytes) -> None:
    """Replace a file: whoever reads it sees the old or the new one."""
    sync_folder(path.parent)  # the files that a manifest names are there before it
    with _beside(path).open("wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
    _beside(path).replace(path)
    sync_folder(path.parent)


def _beside(path: Path) -> Path:
    return path.with_name(path.name + NEW)


def _remove_others(folder: Path, domain: str, names: Sequence[str]) -> None:
    """Remove the files of earlier generations, but for the last one, which somebody may be reading."""
    pattern = re.compile(rf"{re.escape(domain)}-(\d+)\.(?:{'|'.join(KINDS)})\.gz(?:\.new)?")
    found = {path: int(match[1]) for path in folder.iterdir() if (match := pattern.fullmatch(path.name))}
    generations = sorted(set(found.values()))[-2:]
    for path, generation in found.items():
        if generation not in generations and path.name not in names:
            path.unlink(missing_ok=True)
