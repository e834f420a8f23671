"""Packages of dumps: ZIP files of contents, and what is in each; small enough to be taken again."""

import tempfile
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing
from itertools import chain, groupby, pairwise, starmap
from typing import IO, TypeVar

from lcc_scrapy.apps.exports.archives import Zip
from lcc_scrapy.apps.exports.writing import Open, measured
from lcc_scrapy.apps.resourcesync.parts import ChangesPart, Keys
from lcc_scrapy.apps.resourcesync.publications import Span
from lcc_scrapy.domain.cache import CachedUrl
from lcc_scrapy.domain.selection import Change
from lcc_scrapy.feed.content import ContentGone
from lcc_scrapy.feed.names import name_of

PACKAGE = 10_000
"""Changes in one package."""

PACKAGE_BYTES = 256 << 20
"""Of contents in one package, unless a single one has more."""

_MANIFEST = "manifest.xml"
_IN_MEMORY = 1 << 20
C = TypeVar("C", bound=Change)
Pages = Iterable[list[C]]


def of_documents(keys: Keys, pages: Pages[CachedUrl]) -> Iterator[Keys]:
    """Yield the packages of documents with these keys, by rising key; none where there are none."""
    rows = chain.from_iterable(pages)
    first = next(rows, None)
    if first is not None:
        edges = [int.from_bytes(row.urlkey) + 1 for row in _full(chain([first], rows))]
        for begin, end in pairwise([keys.first, *edges, keys.last + 1]):
            yield Keys(begin, end - 1)


def of_changes(part: ChangesPart, span: Span, pages: Pages[Change]) -> Iterator[ChangesPart]:
    """Yield the packages of a part, oldest first.

    None goes beyond a publication: whoever has one needs it never again, as long as the publication is
    remembered. Where nothing is told any longer there is none.
    """

    def published(change: Change) -> ChangesPart:
        after, upto = span.around(change.seq)
        return ChangesPart(max(after, part.after), min(upto, part.upto))

    for whole, changes in groupby(chain.from_iterable(pages), published):
        edges = [change.seq for change in _full(changes)]
        yield from starmap(ChangesPart, pairwise([whole.after, *edges, whole.upto]))


def _full(changes: Iterable[C]) -> Iterator[C]:
    """Yield the changes with which packages are full, and more is to come."""
    count, size, last = 0, 0, None
    for change in changes:
        length = change.fetched_len if isinstance(change, CachedUrl) else 0
        if last is not None and (count == PACKAGE or size + length > PACKAGE_BYTES):
            yield last
            count = size = 0
        count, size, last = count + 1, size + length, change


def write(
    out: IO[bytes], manifest: Callable[[Pages[C]], Iterator[str]], pages: Pages[C], opened: Open
) -> None:
    """Write a package; ``manifest`` turns what is in it into a document, which is its last file.

    What was replaced or removed meanwhile is left out: a later package of changes tells it. Memory does
    not grow with contents; the manifest waits in a temporary file. Raises ``StartOver``, ``ContentLost``
    or ``ContentElsewhere``: what was written is worth nothing.
    """
    with closing(Zip(out)) as archive, tempfile.SpooledTemporaryFile(_IN_MEMORY) as waiting:
        for piece in manifest(_packed(archive, pages, opened)):
            waiting.write(piece.encode())
        waiting.seek(0)
        archive.add(_MANIFEST, 0, waiting)


def _packed(archive: Zip, pages: Pages[C], opened: Open) -> Iterator[list[C]]:
    for page in pages:
        yield [one for one in page if not isinstance(one, CachedUrl) or _is_packed(archive, one, opened)]


def _is_packed(archive: Zip, row: CachedUrl, opened: Open) -> bool:
    try:
        stored = opened(row)
    except ContentGone:
        return False
    with stored:
        archive.add(name_of(row), row.fetched_time, measured(stored, row))
    return True
