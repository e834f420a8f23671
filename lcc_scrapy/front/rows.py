"""Changes out of what a sub-LCC's HTTP API says of them; nothing of it is believed."""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from types import NoneType

from lcc_scrapy.domain.cache import Answers, CachedUrl, Tombstone, UrlMeta
from lcc_scrapy.domain.cursor import Position
from lcc_scrapy.domain.directives import Owners
from lcc_scrapy.domain.entries import Origin
from lcc_scrapy.domain.front_moves import Came
from lcc_scrapy.domain.selection import Change, Leave

_DIGITS = 32
HEADERS_MAX = 10_000
"""Fields of one answer."""


@dataclass(frozen=True, slots=True)
class Page:
    """A page of one sub-LCC's feed; ``more``: there is more now. ``came`` as in ``domain/front_moves.py``.

    ``answers`` are those of the documents' sites by key, where whole rows were asked for.
    """

    rows: Sequence[Change]
    owners: Owners
    reached: Position
    more: bool
    came: Mapping[int, Came]
    answers: Answers = field(default_factory=dict)


def page_of(answer: object, most: int) -> Page:
    """Read an answer of ``/v1/changes``; raises ``ValueError`` for one that is none."""
    facts = _Facts(answer)
    records = [_Facts(one) for one in facts.list("changes", most)]
    rows = [_change(one) for one in records]
    if any(behind.seq <= row.seq for row, behind in pairwise(rows)):
        raise ValueError("changes that are not in order")
    owners = {
        row.urlkey: names for row, one in zip(rows, records, strict=True) if (names := one.names("owners"))
    }
    reached = Position.parse(facts.text("cursor"))
    came = _came(facts.mapping("moved"), most)
    answers = {row.urlkey: _answer(row.urlkey, answer) for row, answer in _answered(rows, records)}
    return Page(rows, owners, reached, facts.flag("more"), came, answers)


def document_of(answer: object) -> tuple[CachedUrl, tuple[str, ...]]:
    """Read an answer of ``/v1/documents/DOCID``, and owners; raises ``ValueError`` for one that is none."""
    facts = _Facts(answer)
    row = _change(facts)
    if not isinstance(row, CachedUrl):
        raise ValueError("no document")  # noqa: TRY004 - of an answer, no argument
    return row, facts.names("owners")


def listed_of(line: object) -> tuple[str, int]:
    """Read a line of ``/v1/ids``: docid and seq; raises ``ValueError`` for one that is none."""
    facts = _Facts(line)
    docid = facts.text("docid")
    if len(bytes.fromhex(docid)) * 2 != _DIGITS or docid != docid.lower():
        raise ValueError("a docid that is none")
    return docid, facts.number("seq")


def end_of(line: object) -> tuple[Position, int] | None:
    """Read the last line of ``/v1/ids``: its cursor, and how many there were; None for another line."""
    facts = _Facts(line)
    if facts.text_or("op") != "end":
        return None
    return Position.parse(facts.text("cursor")), facts.number("documents")


def _came(given: Mapping[str, object], most: int) -> dict[int, Came]:
    if len(given) > most:
        raise ValueError("too many moves")
    return {int(seq): tuple(_pair(one) for one in _list(came, most)) for seq, came in given.items()}


def _pair(given: object) -> tuple[int, int]:
    first, second = _list(given, 2)
    if type(first) is not int or type(second) is not int:
        raise ValueError("a move that is none")
    return first, second


def _change(one: "_Facts") -> Change:
    docid = one.text("docid")
    if len(docid) != _DIGITS:
        raise ValueError("a docid that is none")
    names = (bytes.fromhex(docid), one.number("pid"), one.text("curl"), one.text("mimetype"))
    op, furl, seq = one.text("op"), one.text("furl"), one.number("seq")
    if op == Tombstone.op:
        return Tombstone(*names, furl, one.text("reason"), one.number("removed_time"), seq)
    if op == Leave.op:
        return Leave(*names, furl, seq)
    if op == CachedUrl.op:
        return _document(one, names)
    raise ValueError(f"a change of kind {op[:20]!r}")


def _answered(rows: Sequence[Change], records: "Sequence[_Facts]") -> "Iterator[tuple[Change, _Facts]]":
    for row, one in zip(rows, records, strict=True):
        answer = one.part_or("whole") and one.part("whole").part_or("answer")
        if answer:
            yield row, answer


def _answer(key: bytes, one: "_Facts") -> UrlMeta:
    headers = json.loads(one.text("headers"))
    if any(not isinstance(word, str) for pair in _list(headers, HEADERS_MAX) for word in _pair_of(pair)):
        raise ValueError("headers that are none")
    return UrlMeta(
        key, one.text("status_line"), one.text("headers"), one.text("peer"), one.number("answered")
    )


def _pair_of(given: object) -> list[object]:
    pair = _list(given, 2)
    if len(pair) != 2:  # noqa: PLR2004 - a name and a value
        raise ValueError("a header that is none")
    return pair


def _document(one: "_Facts", names: tuple[bytes, int, str, str]) -> CachedUrl:
    """Return a row; what the API does not tell of it is empty."""
    whole = one.part_or("whole") or _Facts({})
    return CachedUrl(
        *names,
        subtype=one.text_or("subtype") or "",
        burl=one.text_or("burl"),
        furl=one.text("furl"),
        mtime=one.number_or("mtime"),
        len=whole.number_or("len"),
        md5=whole.text_or("md5"),
        timeofday="",
        fetched_time=one.number("fetched_time"),
        fetched_machineid=one.number("fetched_machineid"),
        fetched_fileid=one.number("fetched_fileid"),
        fetched_len=one.number("len"),
        fetched_md5=one.text("md5"),
        sha256=one.text("sha256"),
        served_type=one.text_or("served_type") or "",
        served_charset=one.text_or("served_charset") or "",
        file_encoding=one.text_or("file_encoding") or "",
        final_url=whole.text_or("final_url") or "",
        etag=whole.text_or("etag") or "",
        last_modified=whole.text_or("last_modified") or "",
        confirmed_time=whole.number_or("confirmed_time") or 0,
        origin=whole.text_or("origin") or Origin.PUSH,
        seq=one.number("seq"),
        owners_seq=one.number_or("owners_seq") or 0,
    )


class _Facts:
    """An object of JSON, whose values are looked at when they are asked for."""

    def __init__(self, given: object) -> None:
        if not isinstance(given, dict):
            raise ValueError("not an object")  # noqa: TRY004 - of an answer, no argument
        self._given = given

    def text(self, name: str) -> str:
        return str(self._one(name, str))

    def text_or(self, name: str) -> str | None:
        value = self._one(name, str, NoneType)
        return value if isinstance(value, str) else None

    def number(self, name: str) -> int:
        value = self.number_or(name)
        if value is None:
            raise ValueError(f"no {name}")
        return value

    def number_or(self, name: str) -> int | None:
        value = self._one(name, int, NoneType)
        if value is None:
            return None
        if type(value) is not int or value < 0:
            raise ValueError(f"{name} is no number")
        return value

    def flag(self, name: str) -> bool:
        return bool(self._one(name, bool))

    def list(self, name: str, most: int) -> list[object]:
        return _list(self._given.get(name), most)

    def names(self, name: str) -> tuple[str, ...]:
        return tuple(str(one) for one in _list(self._given.get(name), 1_000_000))

    def part(self, name: str) -> "_Facts":
        return _Facts(self._one(name, dict))

    def part_or(self, name: str) -> "_Facts | None":
        return self.part(name) if self._one(name, dict, NoneType) is not None else None

    def mapping(self, name: str) -> dict[str, object]:
        value = self._one(name, dict)
        return value if isinstance(value, dict) else {}

    def _one(self, name: str, *kinds: type) -> object:
        value: object = self._given.get(name)
        if not isinstance(value, kinds):
            raise ValueError(f"{name} is no {kinds[0].__name__}")  # noqa: TRY004
        return value


def _list(given: object, most: int) -> list[object]:
    if not isinstance(given, list) or len(given) > most:
        raise ValueError("a list that is none")
    return given
