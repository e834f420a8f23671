"""Reads what the UNS answers (seed 003 section 13): bytes in, messages out, cut wherever they may be.

The stream is a row of documents (``init_accepted`` or ``init_rejected``, then ``set_result``), whose
prefix ``lococa`` is not declared and which may each begin with an XML declaration. URL errors come out as
soon as they are read, before the verdict on their set.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Union
from xml.parsers import expat

from lcc_scrapy.push.answer_room import AnswerRoom, TooMuch
from lcc_scrapy.wire.messages import (
    UNLIMITED,
    InitAccepted,
    InitRejected,
    Quota,
    SetAccepted,
    SetRejected,
    UrlError,
)
from lcc_scrapy.wire.xml_parsing import refuse_encoding

Answer = Union[InitAccepted, InitRejected, UrlError, SetAccepted, SetRejected]

TOKEN_MAX = 256 * 1024
"""Bytes of the longest tag, with the text before it."""
_BITE = 16 * 1024
DEPTH_MAX = 16
LIST_MAX = 10_000
"""So many mimetypes, and so many errors, of one login are kept; the rest is dropped."""
KEPT_MAX = 1 << 20
"""Bytes of the errors of one login that are kept."""
_DIGITS = 20

_OF_DRY_RUN = ("would_remove", "would_hold")
_ROOTS = frozenset({"init_accepted", "init_rejected", "set_result"})


class NotAnAnswer(Exception):
    """What came is not what a UNS says."""


class _DocumentEnds(Exception):
    """Stops the parser behind a root element: what follows is another document."""


class AnswerReader:
    """Push parser; `feed` raises `NotAnAnswer`, after which the reader is of no more use."""

    def __init__(self) -> None:
        self._answers: list[Answer] = []
        self._room = AnswerRoom()
        self._begin_document()

    def is_sent(self, block: bytes) -> None:
        """A part of a set goes out, whole lines: so many more refused URLs may come."""
        self._room.is_sent(block)

    def feed(self, data: bytes) -> list[Answer]:
        """Take in some bytes and return the messages that became complete by them."""
        while data:
            data = self._parse(data[:_BITE]) + data[_BITE:]
        answers, self._answers = self._answers, []
        return answers

    def _begin_document(self) -> None:
        self._parser = expat.ParserCreate()
        self._parser.buffer_text = True
        self._parser.StartElementHandler = self._start
        self._parser.EndElementHandler = self._finish
        self._parser.CharacterDataHandler = self._text_came
        self._parser.StartDoctypeDeclHandler = _refuse_doctype
        self._parser.XmlDeclHandler = refuse_encoding
        # Newer expats wait for more input before they tell of a tag that was cut.
        set_deferral = getattr(self._parser, "SetReparseDeferralEnabled", None)
        if set_deferral is not None:
            set_deferral(False)
        self._fresh = True
        self._given = self._quiet = self._counted = 0
        self._path: list[str] = []
        self._open: list[tuple[Mapping[str, str], list[str]]] = []
        self._login = _Login()

    def _parse(self, data: bytes) -> bytes:
        """Parse up to the end of the document, if it is in these bytes; return what follows it."""
        self._quiet += len(data)
        if self._fresh:
            data = self._without_blanks(data)
        try:
            self._parser.Parse(data, False)
        except expat.ExpatError as error:
            raise NotAnAnswer(f"not well-formed: {expat.ErrorString(error.code)}") from None
        except ValueError as error:
            raise NotAnAnswer(f"not understood: {error}") from None
        except _DocumentEnds:
            end = self._end_in(data)
            self._count(self._given + end)
            self._begin_document()
            return data[end:]
        self._given += len(data)
        if self._quiet > TOKEN_MAX:
            raise NotAnAnswer("a tag without an end")
        return b""

    def _without_blanks(self, data: bytes) -> bytes:
        """Return what follows the blanks before a document."""
        rest = data.lstrip()
        self._fresh = not rest
        self._take([], len(data) - len(rest))
        return rest

    def _count(self, at: int) -> None:
        """Count the bytes up to this place in the document."""
        self._take(self._path, at - self._counted)
        self._counted = at

    def _take(self, path: list[str], size: int) -> None:
        try:
            self._room.take(path, size)
        except TooMuch as error:
            raise NotAnAnswer(str(error)) from None

    def _end_in(self, data: bytes) -> int:
        """Return where the root element ends: expat stands before its end tag, or behind an empty root."""
        at = self._parser.CurrentByteIndex - self._given
        if at > 0 and data[at - 1 : at] == b">" and data[at : at + 2] != b"</":
            return at
        return data.index(b">", max(at, 0)) + 1

    def _start(self, name: str, attributes: dict[str, str]) -> None:
        self._quiet = 0
        if len(self._path) >= DEPTH_MAX:
            raise NotAnAnswer("nested too deeply")
        local = name.rpartition(":")[2]
        if not self._path and local not in _ROOTS:
            raise NotAnAnswer(f"<{name}> instead of an answer")
        self._path.append(local)
        self._open.append((attributes, []))

    def _text_came(self, text: str) -> None:
        if self._open:
            self._open[-1][1].append(text)

    def _finish(self, _name: str) -> None:
        self._quiet = 0
        size = self._parser.CurrentByteIndex - self._counted
        self._count(self._parser.CurrentByteIndex)
        attributes, texts = self._open.pop()
        text = "".join(texts).strip()
        if self._path[0] == "init_accepted":
            self._login.take(self._path[1:], attributes, text, size)
        answer = self._answer(attributes, text)
        if answer is not None:
            self._answers.append(answer)
        self._path.pop()
        if not self._path:
            raise _DocumentEnds

    def _answer(self, attributes: Mapping[str, str], text: str) -> Answer | None:
        """Return the message that ends with this element; None if there is none."""
        if self._path == ["init_accepted"]:
            return self._login.accepted()
        if self._path == ["init_rejected", "reason"]:
            return InitRejected(_int(attributes, "code"), text, _retry_after(attributes))
        if self._path == ["set_result", "errors", "url"]:
            return _url_error(attributes, text)
        if self._path == ["set_result", "set_accepted"]:
            return _accepted(attributes)
        if self._path == ["set_result", "set_rejected"]:
            return SetRejected(_int(attributes, "code"), text, _retry_after(attributes))
        return None


class _Login:
    """Gathers an ``init_accepted``, whose parts may stand in any order and may be missing."""

    def __init__(self) -> None:
        self._found: dict[str, Mapping[str, str]] = {}
        self._mimetypes: list[str] = []
        self._errors: list[UrlError] = []
        self._kept = 0

    def take(self, path: list[str], attributes: Mapping[str, str], text: str, size: int) -> None:
        """Take in an element of ``size`` bytes."""
        if not path:
            self._found["init_accepted"] = attributes
        elif path == ["mime"]:
            if len(self._mimetypes) < LIST_MAX:
                self._mimetypes.append(text)
        elif path == ["processing_status", "errors", "url"]:
            self._kept += size
            if len(self._errors) < LIST_MAX and self._kept <= KEPT_MAX:
                self._errors.append(_url_error(attributes, text))
        elif path in (["connect_info"], ["processing_status"]) or path[:-1] == ["quota"]:
            self._found[path[-1]] = attributes

    def accepted(self) -> InitAccepted:
        connection, status = self._part("connect_info"), self._part("processing_status")
        return InitAccepted(
            seq=_int(connection, "seq"),
            last_conn_ip=connection.get("lastConnectIP", ""),
            mimetypes=tuple(self._mimetypes),
            quota=self._quota(),
            error_count=_int(status, "errors", len(self._errors)),
            processing=_int(status, "processing"),
            errors=tuple(self._errors),
            lcc_id=self._part("init_accepted").get("lcc", ""),
            revision=self._part("init_accepted").get("revision", ""),
        )

    def _quota(self) -> Quota:
        files, space, fullset = self._part("files"), self._part("space"), self._part("fullset")
        return Quota(
            files_used=_int(files, "used"),
            files_free=_int(files, "free", UNLIMITED),
            space_used=_int(space, "used"),
            space_free=_int(space, "free", UNLIMITED),
            fullset_allowed=_int(fullset, "allowed", UNLIMITED),
            fullset_wanted=fullset.get("wanted") == "yes",
            fullset_reason=fullset.get("reason", ""),
        )

    def _part(self, name: str) -> Mapping[str, str]:
        return self._found.get(name, {})


def _url_error(attributes: Mapping[str, str], text: str) -> UrlError:
    submitted = {name: value for name, value in attributes.items() if name not in {"code", "url"}}
    return UrlError(_int(attributes, "code"), text, attributes.get("url", ""), submitted)


def _accepted(attributes: Mapping[str, str]) -> SetAccepted:
    counts = (_int(attributes, name) if name in attributes else None for name in _OF_DRY_RUN)
    return SetAccepted(_int(attributes, "received"), *counts)


def _retry_after(attributes: Mapping[str, str]) -> int:
    return max(0, _int(attributes, "retry-after"))


def _int(attributes: Mapping[str, str], name: str, missing: int = 0) -> int:
    """Return a number; raises ValueError for what is none, or a very long one."""
    text = attributes.get(name, "")
    if len(text) > _DIGITS:
        raise ValueError(f"{name}: a number of {len(text)} digits")
    return int(text) if text else missing


def _refuse_doctype(*_declaration: object) -> None:
    raise NotAnAnswer("a document type declaration (DOCTYPE)")
