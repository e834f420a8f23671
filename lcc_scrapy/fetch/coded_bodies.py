"""Bodies with a Content-Encoding: how much of it is undone.

Some servers send ``a.tar.gz`` as it lies on disk, and call its own compression a coding of the transfer. If
the bytes that came are what the provider declared, they are the document. If nothing is declared, or neither
form matches, gzip stays on what is called gzip by its type or name.
"""

import re
from collections.abc import Awaitable, Callable, Sequence

from lcc_scrapy.content import decoding
from lcc_scrapy.content.sink import TooLarge
from lcc_scrapy.domain.cache import Body
from lcc_scrapy.domain.queue import QueuedUrl

MOST = 2
"""Codings of one body that are undone: each multiplies what the next may cost."""

_GZIP = frozenset({"gzip", "x-gzip"})
_GZIP_TYPES = frozenset(
    {
        "application/gzip",
        "application/gzip-compressed",
        "application/tar+gzip",
        "application/x-compressed-tar",
        "application/x-gtar-compressed",
        "application/x-gunzip",
        "application/x-gzip",
        "application/x-gzip-compressed",
        "application/x-tar-gz",
        "application/x-tgz",
    }
)
_GZIP_NAME = re.compile(r"\.(?:gz|gzip|taz|tgz)\Z", re.IGNORECASE)

Undo = Callable[[Body, str], Awaitable[Body]]
"""Returns a body without one coding; raises ``BadCoding`` and ``TooLarge``."""


class CodedBody:
    """One body with codings that can be undone.

    ``length`` is its Content-Length (empty = not said), ``mimetype`` as served, ``path`` that of its URL;
    ``row`` declares it.
    """

    def __init__(
        self, codings: Sequence[str], *, length: str, mimetype: str, path: str, row: QueuedUrl
    ) -> None:
        self._codings = codings
        self._row = row
        is_gzip = _GZIP_NAME.search(path) or not _GZIP_TYPES.isdisjoint((mimetype, row.mimetype))
        self._stays = 1 if is_gzip and codings[0] in _GZIP else 0
        self._length = length

    @property
    def to_undo(self) -> str:
        """The codings to undo where nothing is declared, as a Content-Encoding."""
        return ", ".join(self._codings[self._stays :])

    @property
    def is_kept_as_it_comes(self) -> bool:
        """Tell whether more than one form of the body may be what was declared."""
        row = self._row
        if (row.md5 is None and row.len is None) or len(self._codings) > MOST:
            return False
        has_declared_length = row.len is None or self._length in {"", str(row.len)}
        return has_declared_length or self._stays > 0 or len(self._codings) > 1

    async def content(self, body: Body, undo: Undo) -> Body:
        """Return the document of a body that was kept as it came: in the declared form, or as usual."""
        usual = body
        for left in range(len(self._codings), -1, -1):
            if left < len(self._codings):
                try:
                    body = await undo(body, self._codings[left])
                except (decoding.BadCoding, TooLarge):
                    if left >= self._stays:
                        raise
                    return usual
            if self._is_declared(body):
                return body
            if left >= self._stays:
                usual = body
        return usual

    def _is_declared(self, body: Body) -> bool:
        row = self._row
        if row.len not in {None, body.length}:
            return False
        return row.md5 is None or row.md5 == body.md5
