"""``file2url``: write a ``<url …/>`` line for each file of a site (seed 000)."""

from __future__ import annotations

import hashlib
import os
import stat
import sys
from argparse import Namespace
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import BinaryIO, TypeVar
from urllib.parse import quote

from lcc_scrapy.domain.printable import printable
from lcc_scrapy.push import filetypes, pipe
from lcc_scrapy.push.command import Notes, Parser, Status, Stop, megabytes, run
from lcc_scrapy.push.listing import FindCommand, named_files, relative_to
from lcc_scrapy.wire.messages import Url

PROG = "file2url"
PATH_SAFE = "/!$&'()*+,;=:@"
"""What RFC 3986 allows in a path beside the unreserved characters; everything else is percent-encoded."""

_Line = TypeVar("_Line", Url, pipe.Keep)

_BLOCK = 1 << 20
_ATTEMPTS = 2

EXAMPLES = """\
find(1) gets everything after --find. The first folder is the docroot, unless --docroot names another one.

examples:
  file2url --find docroot -name '*.html' | lcccpstate --statefile=state.txt | lcccp …
  file2url --no-md5 --mimetype php=text/html --find docroot -name '*.html' -o -name '*.php'
  git diff --name-only -z HEAD~1 | file2url --null | lcccp …
"""


class Changing(Exception):
    """A file was written to while it was read."""


@dataclass(frozen=True)
class Naming:
    """How the attributes of a file that are not in its content are made."""

    mimetypes: Mapping[str, str]
    default_mimetype: str = filetypes.UNKNOWN
    index: str = ""
    burl_template: str = ""
    subtype: str = ""

    def attributes(self, relative: bytes) -> dict[str, str]:
        """Return curl, mimetype and what else a path below the docroot gives."""
        curl = self.curl(relative)
        made = {
            "curl": curl,
            "mimetype": filetypes.mimetype_of(relative, self.mimetypes, self.default_mimetype),
        }
        if self.burl_template:
            made["burl"] = self.burl_template.replace("{curl}", curl)
        if self.subtype:
            made["subtype"] = self.subtype
        return made

    def curl(self, relative: bytes) -> str:
        """Return the relative URL of a path; ``dir/index.html`` is ``dir/`` where that was asked for."""
        curl = quote(relative, safe=PATH_SAFE)
        folder, slash, name = curl.rpartition("/")
        return folder + slash if slash and name == self.index else curl


def describe(path: bytes, *, md5: bool = True) -> dict[str, str]:
    """Return len (bytes), mtime (epoch seconds) and md5 (hex) of a file.

    Raises OSError, or `Changing` when it was written to meanwhile.
    """
    with open(path, "rb", opener=_open_without_waiting) as file:
        before = os.fstat(file.fileno())
        if not stat.S_ISREG(before.st_mode):
            raise IsADirectoryError(0, "not a regular file")
        found = {"len": str(before.st_size), "mtime": str(int(before.st_mtime))}
        if md5:
            modern = sys.version_info >= (3, 9)
            digest = hashlib.md5(usedforsecurity=False) if modern else hashlib.md5()  # noqa: S324
            while block := file.read(_BLOCK):
                digest.update(block)
            found["md5"] = digest.hexdigest()
        after = os.fstat(file.fileno())
    if (before.st_size, before.st_mtime_ns) != (after.st_size, after.st_mtime_ns):
        raise Changing
    return found


def _open_without_waiting(path: str, flags: int) -> int:
    return os.open(path, flags | os.O_NONBLOCK)


class Lister:
    """Turns files into lines, and counts them."""

    def __init__(self, naming: Naming, notes: Notes, *, md5: bool = True) -> None:
        self._naming = naming
        self._notes = notes
        self._md5 = md5
        self.count = 0
        self.bytes = 0

    def line(self, relative: bytes, path: bytes) -> Url | pipe.Keep | None:
        """Return the line of a file: None when it is gone, ``keep`` when it is there but cannot be read."""
        attributes = self._naming.attributes(relative)
        kept = pipe.Keep(attributes["curl"], attributes["mimetype"])
        try:
            found = self._described(path)
        except (FileNotFoundError, IsADirectoryError) as error:
            self._notes.warn(f"{os.fsdecode(path)}: skipped: {error.strerror}")
            return None
        except Changing:
            self._notes.warn(f"{os.fsdecode(path)}: changes while it is read; left for the next run")
            return self._counted(kept)
        except OSError as error:
            self._notes.warn(f"{os.fsdecode(path)}: cannot be read: {error.strerror}; kept as it was")
            return self._counted(kept)
        self.bytes += int(found["len"])
        return self._counted(Url({**attributes, **found}))

    def _described(self, path: bytes) -> dict[str, str]:
        for _ in range(_ATTEMPTS - 1):
            try:
                return describe(path, md5=self._md5)
            except Changing:  # noqa: PERF203 - twice at most
                continue
        return describe(path, md5=self._md5)

    def _counted(self, line: _Line) -> _Line:
        self.count += 1
        return line


def parser() -> Parser:
    """Return the parser of the options that stand before ``--find``."""
    made = Parser(PROG, "Write a <url …/> line for each file of a site.", EXAMPLES)
    made.usage = "file2url [options] [--find DIR [predicates of find(1)]]"
    add = made.add_argument
    add(
        "--find",
        metavar="DIR …",
        help="search with find(1), must be the last option; without it, stdin has the file names",
    )
    add("--docroot", metavar="DIR", help="the folder that URLs are relative to (default: of --find, or .)")
    add("-0", "--null", action="store_true", help="file names on stdin end in NUL bytes, not newlines")
    add("--mimetype", metavar="EXT=TYPE", action="append", default=[], help="mimetype of an extension")
    add(
        "--default-mimetype", metavar="TYPE", default=filetypes.UNKNOWN, help="mimetype of unknown extensions"
    )
    add("--no-md5", action="store_true", help="do not read the files; len and mtime tell what changed")
    add("--index", metavar="NAME", default="", help="write dir/NAME as dir/")
    add("--burl-template", metavar="TEXT", default="", help="browse URL; {curl} stands for the URL")
    add("--subtype", metavar="'TYPE: VALUE'", default="", help="subtype of every URL")
    add("--quiet", action="store_true", help="print warnings only, no progress")
    return made


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command; returns its exit status."""
    words = list(sys.argv[1:] if argv is None else argv)
    return run(PROG, lambda: _main(words))


def _main(words: list[str]) -> int:
    own, find_words = split_at_find(words)
    options = parser().parse_args(own)
    notes = Notes(PROG, quiet=options.quiet)
    naming = _naming(options)
    site = Site.of(options.docroot, find_words, null=options.null)
    lister = Lister(naming, notes, md5=not options.no_md5)
    write(site.files(), lister, notes, sys.stdout.buffer)
    site.check_still_there()
    _finish(lister.count)
    return Status.DONE


def split_at_find(words: Sequence[str]) -> tuple[list[str], list[str] | None]:
    """Part our own options from the words for find(1); None when ``--find`` is not given."""
    for position, word in enumerate(words):
        if word == "--find":
            return list(words[:position]), list(words[position + 1 :])
        if word.startswith("--find="):
            return list(words[:position]), [word[len("--find=") :], *words[position + 1 :]]
    return list(words), None


def _naming(options: Namespace) -> Naming:
    mimetypes = dict(filetypes.BY_EXTENSION)
    for given in options.mimetype:
        extension, equals, mimetype = given.partition("=")
        if not equals or "/" not in mimetype:
            raise Stop(Status.USAGE, f"--mimetype {given}: write it as EXT=TYPE, like php=text/html")
        mimetypes[extension.lstrip(".").lower()] = mimetype
    return Naming(mimetypes, options.default_mimetype, options.index, options.burl_template, options.subtype)


@dataclass(frozen=True)
class Site:
    """A docroot, where its file names come from, and its identity at the start."""

    docroot: str
    find: FindCommand | None
    null: bool
    identity: tuple[int, int]

    @classmethod
    def of(cls, docroot: str | None, find_words: list[str] | None, *, null: bool) -> Site:
        """Check what was given; raises `Stop` (64, 66)."""
        find = None if find_words is None else FindCommand.parse(find_words)
        chosen = docroot or (find.folders[0] if find else ".")
        return cls(chosen, find, null, _identity(chosen))

    def files(self) -> list[tuple[bytes, bytes]]:
        """Return (path below the docroot, path) of every file, in order of the former's bytes."""
        paths: Iterable[bytes]
        paths = self.find.files() if self.find else named_files(sys.stdin.buffer, null=self.null)
        root = os.fsencode(self.docroot)
        return sorted({relative_to(root, path): path for path in paths}.items())

    def check_still_there(self) -> None:
        """Raise `Stop` when the docroot was unmounted or replaced: files seemed gone that are not."""
        if _identity(self.docroot) != self.identity:
            raise Stop(Status.BAD_INPUT, f"{self.docroot} was replaced meanwhile; no end mark is written")


def _identity(folder: str) -> tuple[int, int]:
    if not os.path.isdir(folder):  # noqa: PTH112 - every name here is as the user gave it
        raise Stop(Status.NO_INPUT, f"{folder}: no such folder")
    found = os.stat(folder)  # noqa: PTH116
    return found.st_dev, found.st_ino


def write(files: Iterable[tuple[bytes, bytes]], lister: Lister, notes: Notes, out: BinaryIO) -> None:
    """Write the line of each (path below the docroot, path)."""
    progress = notes.progress()
    for relative, path in files:
        line = lister.line(relative, path)
        if line is not None:
            out.write(pipe.write(line))
        name = printable(os.fsdecode(path))[:60]
        progress.show(f"{lister.count:,} files, {megabytes(lister.bytes)}: {name}")
    progress.clear()


def _finish(count: int) -> None:
    sys.stdout.buffer.write(pipe.write(pipe.End(count)))
    sys.stdout.buffer.flush()


if __name__ == "__main__":
    sys.exit(main())
