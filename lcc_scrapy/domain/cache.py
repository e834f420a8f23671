"""Rows of the cache: what is stored of a URL, and the answer it came from (both in the table ``lccurl``)."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields, replace
from hashlib import md5, sha256
from operator import attrgetter, le
from typing import Any, ClassVar

from lcc_scrapy.domain.entries import MIMETYPE_MAX, Declared, Origin, UrlEntry
from lcc_scrapy.domain.roots import URL_MAX
from lcc_scrapy.domain.values import quickly_made

STATUS_LINE_MAX = 255
CHARSET_MAX = 64
ETAG_MAX = 255
LAST_MODIFIED_MAX = 64
PEER_MAX = 64
OUTSIDE_ROOTS = 1 << 62
"""In ``held``: the document lies outside its provider's roots. Above the number of any provider set."""
IRRELEVANT = "irrelevant"
"""The reason that tombstones of documents give whose content was dropped because it concerns nobody."""
ORPHANED = OUTSIDE_ROOTS - 1
"""In ``held``: a spider found the document, and no way along links leads to it any more."""


@quickly_made
@dataclass(frozen=True, slots=True)
class CachedUrl:
    """One row of ``lccurl``. Times are epoch seconds; lengths and digests are of the decoded body.

    ``mtime``, ``len`` and ``md5`` are as declared by the provider; the ``fetched_*`` ones as served.
    ``seen`` is the newest provider set that named the URL; ``held`` is not 0 while its removal waits
    for the operator: the set that asked for it, ``OUTSIDE_ROOTS`` or ``ORPHANED``. ``subtype_seq`` is the
    ``seq`` with which the subtype last changed, or the document came back; 0 = it is as it first came.
    ``head_len``: bytes of the headers kept with it. ``owners_seq`` is the ``seq`` with which its owners last
    changed, 0 = not since it came. ``confirmed_seq`` is its place among confirmations: when its site was last
    asked and this content was unchanged; 0 = it was not asked again.
    """

    op: ClassVar[str] = "upsert"

    urlkey: bytes
    pid: int
    curl: str
    mimetype: str
    subtype: str
    burl: str | None
    furl: str
    mtime: int | None
    len: int | None
    md5: str | None
    timeofday: str
    fetched_time: int
    fetched_machineid: int
    fetched_fileid: int
    fetched_len: int
    fetched_md5: str
    sha256: str
    served_type: str
    served_charset: str
    file_encoding: str
    final_url: str
    etag: str
    last_modified: str
    confirmed_time: int
    origin: str = Origin.PUSH
    seq: int = 0
    seen: int = 0
    held: int = 0
    subtype_seq: int = 0
    head_len: int = 0
    owners_seq: int = 0
    confirmed_seq: int = 0

    @property
    def docid(self) -> str:
        """The key as 32 hex digits."""
        return self.urlkey.hex()

    @property
    def files(self) -> int:
        """Return what it counts among its provider's documents: a rendition counts with its page."""
        return int(self.origin != Origin.RENDERED)

    @property
    def space(self) -> int:
        """Return the bytes that count against the space quota: of the body and of its headers."""
        return self.fetched_len + self.head_len

    @property
    def declared(self) -> Declared:
        """What the provider last declared."""
        return Declared(self.mtime, self.len, self.md5)

    def told(self, seq: int, subtype_seq: int) -> "CachedUrl":
        """Return the row with another place in the feed."""
        return self._with({_SEQ: seq, _SUBTYPE_SEQ: subtype_seq})

    def owned_anew(self, seq: int) -> "CachedUrl":
        """Return the row with the place in the feed that it gets as its owners have changed."""
        return self._with({_SEQ: seq, _OWNERS_SEQ: seq})

    def confirmed_at(self, number: int) -> "CachedUrl":
        """Return the row with another place among the confirmations."""
        return self._with({_CONFIRMED_SEQ: number})

    def _with(self, changes: Mapping[int, int]) -> "CachedUrl":
        make: Callable[..., CachedUrl] = CachedUrl
        values = list(_cached_values(self))  # ``replace`` takes three times as long
        for place, value in changes.items():
            values[place] = value
        return make(*values)

    def as_entry(self) -> UrlEntry:
        """Return what its provider last said of it, so that it can be fetched again."""
        return UrlEntry(
            self.curl,
            self.mimetype,
            furl=self.furl,
            burl=self.burl,
            subtype=self.subtype,
            declared=self.declared,
            timeofday=self.timeofday,
        )


_COLUMNS = [field.name for field in fields(CachedUrl)]
_SEQ, _SUBTYPE_SEQ = _COLUMNS.index("seq"), _COLUMNS.index("subtype_seq")
_OWNERS_SEQ, _CONFIRMED_SEQ = _COLUMNS.index("owners_seq"), _COLUMNS.index("confirmed_seq")
_cached_values: Any = attrgetter(*_COLUMNS)


@quickly_made
@dataclass(frozen=True, slots=True)
class UrlMeta:
    """The answer a stored body came with; ``headers`` is a JSON list of pairs. It stands in the row of it."""

    urlkey: bytes
    status_line: str
    headers: str
    peer: str
    answered: int


Answers = Mapping[bytes, UrlMeta]
"""Those of several documents, by key."""

NO_ANSWERS: Answers = {}


@dataclass(frozen=True, slots=True)
class Tombstone:
    """A URL that is no longer in the cache, for those who follow the feed."""

    op: ClassVar[str] = "remove"

    urlkey: bytes
    pid: int
    curl: str
    mimetype: str
    furl: str
    reason: str
    removed_time: int
    seq: int = 0

    @property
    def docid(self) -> str:
        """The key as 32 hex digits."""
        return self.urlkey.hex()


@dataclass(frozen=True, slots=True, weakref_slot=True)
class Body:
    """A fetched body. It is in a finished temporary file (``path``) or in memory (``data``, decoded).

    ``encoding`` is the compression of the file, or of ``packed``, which goes into the content file instead
    of ``data``; empty = none. Length and digests are of the decoded body.
    """

    length: int
    md5: str
    sha256: str
    data: bytes | None = None
    path: str = ""
    encoding: str = ""
    packed: bytes = b""

    @property
    def digests(self) -> tuple[str, str] | None:
        """MD5 and SHA-256, None where nobody has made them yet."""
        return self.md5, self.sha256

    @property
    def to_store(self) -> bytes:
        """What the content file of a body in memory holds."""
        return self.packed if self.encoding else self.data or b""


class LazyBody(Body):
    """A body in memory whose digests are made when somebody asks for them: that takes 2.5 µs for a KB."""

    __slots__ = ("_digests",)
    _digests: tuple[str, str] | None

    def __init__(self, data: bytes) -> None:
        put = object.__setattr__
        put(self, "length", len(data))
        put(self, "data", data)
        put(self, "path", "")
        put(self, "encoding", "")
        put(self, "packed", b"")
        put(self, "_digests", None)

    @property
    def digests(self) -> tuple[str, str] | None:
        """MD5 and SHA-256, None where nobody has made them yet."""
        return self._digests

    def learn(self, md5: str, sha256: str) -> None:
        """Take the digests that somebody else has made."""
        object.__setattr__(self, "_digests", (md5, sha256))

    @property
    def md5(self) -> str:
        """The digest that providers declare."""
        return self._made[0]

    @property
    def sha256(self) -> str:
        """The digest by which contents are compared."""
        return self._made[1]

    @property
    def _made(self) -> tuple[str, str]:
        made = self._digests
        if made is None:
            data = self.data or b""
            made = (md5(data, usedforsecurity=False).hexdigest(), sha256(data).hexdigest())
            object.__setattr__(self, "_digests", made)
        return made


@quickly_made
@dataclass(frozen=True, slots=True)
class Answer:
    """What the site answered to a fetch, as far as the cache keeps it."""

    status: int
    final_url: str
    served_type: str
    served_charset: str
    etag: str
    last_modified: str
    headers: str
    status_line: str
    peer: str
    answered: int


def fitting(answer: Answer) -> Answer:
    """Return an answer as the cache can hold it, for sites may put anything into their headers.

    A validator that is too long is left out: cut, it would never match.
    """
    if _fits(answer):
        return answer
    return replace(
        answer,
        final_url=_storable(answer.final_url)[:URL_MAX],
        served_type=_storable(answer.served_type)[:MIMETYPE_MAX],
        served_charset=_storable(answer.served_charset)[:CHARSET_MAX],
        etag=_whole(answer.etag, ETAG_MAX),
        last_modified=_whole(answer.last_modified, LAST_MODIFIED_MAX),
        status_line=_storable(answer.status_line)[:STATUS_LINE_MAX],
        peer=_storable(answer.peer)[:PEER_MAX],
    )


_WIDTHS = {
    "final_url": URL_MAX,
    "served_type": MIMETYPE_MAX,
    "served_charset": CHARSET_MAX,
    "etag": ETAG_MAX,
    "last_modified": LAST_MODIFIED_MAX,
    "status_line": STATUS_LINE_MAX,
    "peer": PEER_MAX,
}
_texts_of = attrgetter(*_WIDTHS)


def _fits(answer: Answer) -> bool:
    """Tell whether an answer can be kept as it is, as most can; some of those that could be are not seen."""
    texts = _texts_of(answer)
    together = "".join(texts)
    return together.isascii() and "\0" not in together and all(map(le, map(len, texts), _WIDTHS.values()))


def _whole(text: str, width: int) -> str:
    text = _storable(text)
    return text if len(text) <= width else ""


def _storable(text: str) -> str:
    return text.replace("\0", "").encode("utf-8", "replace").decode()


_RENAMED = "renamed to "


def renamed_to(docid: str) -> str:
    """Return the reason that the tombstone of a renamed document gives."""
    return _RENAMED + docid


def key_after(reason: str) -> bytes | None:
    """Return the key that a document has now of whose tombstone this is the reason; None = it has none."""
    docid = reason.removeprefix(_RENAMED)
    return bytes.fromhex(docid) if docid != reason else None
