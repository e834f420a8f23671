"""A folder of this machine as an adapter: for ``lcc tracker sums``."""

import os
from collections.abc import Iterator
from pathlib import Path as Folder

from lcc_scrapy.apps.tracker.entries import Directory, Entry, Kind, Path, Unlisted, of_entries


def listing(folder: Folder) -> Iterator[Directory]:
    """Yield a folder and all in it; who cannot be looked into is left out. Links are not followed."""
    waiting: list[Path] = [()]
    while waiting:
        path = waiting.pop()
        try:
            found = of_entries(path, _entries(os.path.join(os.fsencode(folder), *path), path))  # noqa: PTH118
        except OSError as error:
            if not path:
                raise Unlisted(f"{folder} cannot be read: {error.strerror}") from None
            continue
        waiting += [(*path, name) for name in found.dirs]
        yield found


def _entries(place: bytes, path: Path) -> Iterator[Entry]:
    with os.scandir(place) as found:
        for one in found:
            its = (*path, one.name)
            if one.is_symlink():
                yield Entry(its, Kind.LINK, target=os.readlink(one.path))  # noqa: PTH115 - bytes
            elif one.is_dir(follow_symlinks=False):
                yield Entry(its, Kind.DIR)
            elif one.is_file(follow_symlinks=False):
                stat = one.stat(follow_symlinks=False)
                yield Entry(its, Kind.FILE, stat.st_size, int(stat.st_mtime))
