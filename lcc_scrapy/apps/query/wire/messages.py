"""One small value for each thing that is said at the query socket."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

VERSION = "1.0"
OPS = {"document": "upsert", "removed": "remove", "leave": "leave"}
"""What the elements of a result are called in the feed (column ``op``)."""


class What(StrEnum):
    """What is asked for."""

    CHANGES = "changes"
    """What changed since a cursor."""
    IDS = "ids"
    """docid and seq of all that is there now, to reconcile with."""
    ROWS = "rows"
    """The newest rows of the documents that are named."""


class Wanted(StrEnum):
    """Whether content is wanted too."""

    NONE = "none"
    INSIDE = "inside"
    """In the answer, base64."""
    REFERENCE = "reference"
    """Where the content file is."""


@dataclass(frozen=True, slots=True)
class Query:
    """What a content user asks. Empty filters admit everything; several values of a kind mean any of them.

    ``since`` is a cursor, empty = from the beginning; ``since_time`` epoch seconds. ``limit`` = most changes,
    0 = all. ``wait`` = seconds to wait for a change when there is none.
    """

    what: What = What.CHANGES
    since: str = ""
    since_time: int | None = None
    limit: int = 0
    content: Wanted = Wanted.NONE
    wait: int = 0
    token: str = field(default="", repr=False)
    providers: tuple[int, ...] = ()
    mimetypes: tuple[str, ...] = ()
    subtypes: tuple[str, ...] = ()
    url_prefixes: tuple[str, ...] = ()
    docids: tuple[str, ...] = ()
    anew: tuple[str, ...] = ()
    """Of a front: names of sub-LCCs to be read from their starts, whatever ``since`` says."""


@dataclass(frozen=True, slots=True)
class ResultBegins:
    """The query is answered; ``position`` is the cursor to keep before the first row is taken."""

    lcc: str
    position: str
    version: str = VERSION


@dataclass(frozen=True, slots=True)
class Row:
    """A document (``op`` = ``upsert``), a removal (``remove``) or a leave; values as text, NULL is left out.

    ``content`` is empty, ``inside`` (``Content`` follows, then ``ContentEnds``), or why it is not there:
    ``gone``, ``elsewhere``, ``lost``.
    """

    op: str
    values: Mapping[str, str]
    content: str = ""


@dataclass(frozen=True, slots=True)
class Content:
    """Some bytes of the content of the row before."""

    data: bytes


@dataclass(frozen=True, slots=True)
class ContentEnds:
    """The content is complete."""


@dataclass(frozen=True, slots=True)
class Reached:
    """Everything before this was said: a cursor to go on from if the rest does not arrive."""

    position: str


@dataclass(frozen=True, slots=True)
class Missing:
    """A sub-LCC of a front, by name, whose rows are not all there. Its part of the position stays.

    ``start_over``: it cannot go on from the cursor, and is to be named in ``anew``. Else it did not answer.
    """

    name: str
    start_over: bool = False


@dataclass(frozen=True, slots=True)
class ResultEnds:
    """The result is complete. ``position`` is the cursor for the next query; the rest counts rows."""

    position: str
    documents: int = 0
    removed: int = 0
    left: int = 0


@dataclass(frozen=True, slots=True)
class QueryRejected:
    """There is no answer, or no more of it; ``retry_after`` in seconds, 0 = not said."""

    code: int
    text: str
    retry_after: int = 0


Said = ResultBegins | Row | Content | ContentEnds | Reached | Missing | ResultEnds | QueryRejected
