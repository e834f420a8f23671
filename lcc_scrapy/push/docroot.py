"""The files of a site as a source of ``lcc-push``: what ``file2url`` writes, without find(1)."""

from __future__ import annotations

import fnmatch
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import BinaryIO

from lcc_scrapy.push import file2url, filetypes, pipe
from lcc_scrapy.push.command import Notes, Status, Stop

_HIDDEN = b"."


@dataclass(frozen=True)
class DocrootSource:
    """All files below a folder. Files and folders whose names begin with a dot, and links, are left out.

    ``include``: patterns of file names, none = all. ``index``: see `file2url.Naming`.
    """

    docroot: str
    include: Sequence[str] = ()
    index: str = ""
    md5: bool = True

    name = "docroot"
    is_whole = True
    undated_is_same = False

    def write(self, out: BinaryIO, notes: Notes) -> None:
        """Write the lines of all files with their end mark; raises `Stop` (65, 66)."""
        site = file2url.Site.of(self.docroot, None, null=False)
        naming = file2url.Naming(filetypes.BY_EXTENSION, index=self.index)
        lister = file2url.Lister(naming, notes, md5=self.md5)
        file2url.write(self.files(), lister, notes, out)
        site.check_still_there()
        out.write(pipe.write(pipe.End(lister.count)))

    def files(self) -> list[tuple[bytes, bytes]]:
        """Return (path below the docroot, path) of every file, in order of the former's bytes."""
        root = os.fsencode(self.docroot)
        patterns = [os.fsencode(pattern) for pattern in self.include]
        return sorted(
            (os.path.relpath(path, root), path)
            for path in walk(root)
            if not patterns or any(fnmatch.fnmatchcase(os.path.basename(path), one) for one in patterns)  # noqa: PTH119
        )


def walk(root: bytes) -> Iterator[bytes]:
    """Yield the regular files below a folder; raises `Stop` (65) where a folder cannot be read."""
    for folder, folders, names in os.walk(root, onerror=_refuse):
        folders[:] = [name for name in folders if not name.startswith(_HIDDEN)]
        for name in names:
            path = os.path.join(folder, name)  # noqa: PTH118 - bytes
            if not name.startswith(_HIDDEN) and not os.path.islink(path):  # noqa: PTH114
                yield path


def _refuse(error: OSError) -> None:
    name = os.fsdecode(error.filename or b"a folder")
    raise Stop(Status.BAD_INPUT, f"{name}: cannot be read: {error.strerror}; nothing sent")
