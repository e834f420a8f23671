"""The body of an IndexNow POST: JSON, read without making more of it than a submission can be.

A parser of any JSON would make hundreds of megabytes of small lists out of a body of the permitted size.
This one takes an object of texts and lists of texts. Its cost is linear in what it reads, and it stops at
what is too much.
"""

import json
import re

from lcc_scrapy.apps.indexnow.rules import BAD_FORM, URLS_MAX, Asked, NotTaken
from lcc_scrapy.domain.roots import URL_MAX

BODY_MAX = 24_000_000
"""Bytes of a body: ``URLS_MAX`` URLs of ``URL_MAX`` characters, and what is around them."""

TEXT_MAX = 6 * URL_MAX + 2
"""Bytes of one text: every character may be escaped."""

FIELDS_MAX = 32
_SHOWN = 40
_TEXTS = {"host": "host", "key": "key", "keyLocation": "location"}
_BLANKS = re.compile(rb"[ \t\r\n]*")
_TEXT = re.compile(rb'"[^"\\]*+(?:\\.[^"\\]*+)*+"', re.DOTALL)
_PLAIN = re.compile(rb"-?[0-9.eE+-]{1,40}|true|false|null")
_MARK = b"\xef\xbb\xbf"


def read_body(body: bytes) -> Asked:
    """Read a body; raises ``NotTaken`` 400."""
    if len(body) > BODY_MAX:
        raise NotTaken(BAD_FORM, f"a body of more than {BODY_MAX} bytes")
    fields = _Reader(body.removeprefix(_MARK)).whole()
    texts = {ours: fields.pop(theirs, "") for theirs, ours in _TEXTS.items()}
    urls = fields.pop("urlList", None)
    for name, text in texts.items():
        if not isinstance(text, str):
            raise NotTaken(BAD_FORM, f"{name}: expected a text")
    if not isinstance(urls, list):
        raise NotTaken(BAD_FORM, "urlList: expected a list of URLs")
    if not texts["host"]:
        raise NotTaken(BAD_FORM, "host is missing")
    ignored = tuple(name[:_SHOWN] for name in fields)
    return Asked(urls=urls, ignored=ignored, **texts)  # type: ignore[arg-type]


class _Reader:
    def __init__(self, data: bytes) -> None:
        self._data = data
        self._at = 0

    def whole(self) -> dict[str, object]:
        """Read the whole body."""
        fields: dict[str, object] = {}
        self._expect(b"{")
        while not self._ends(b"}", first=not fields):
            if len(fields) >= FIELDS_MAX:
                raise self._bad(f"more than {FIELDS_MAX} fields")
            name = self._text()
            self._expect(b":")
            if name in fields:
                raise self._bad(f"{name[:_SHOWN]} stands twice")
            fields[name] = self._value()
        if self._next():
            raise self._bad("something stands behind the object")
        return fields

    def _value(self) -> object:
        mark = self._next()
        if mark == b'"':
            return self._text()
        if mark == b"[":
            return self._list()
        plain = _PLAIN.match(self._data, self._at)
        if plain is None:
            raise self._bad("expected a text or a list of texts")
        self._at = plain.end()
        return None

    def _list(self) -> list[str]:
        found: list[str] = []
        self._expect(b"[")
        while not self._ends(b"]", first=not found):
            if len(found) >= URLS_MAX:
                raise self._bad(f"a list of more than {URLS_MAX} URLs")
            found.append(self._text())
        return found

    def _text(self) -> str:
        if self._next() != b'"':
            raise self._bad("expected a text")
        end = self._end_of_text()
        try:
            text = json.loads(self._data[self._at : end].decode())
        except ValueError:
            raise self._bad("a text that is not JSON in UTF-8") from None
        self._at = end
        assert isinstance(text, str)
        return text

    def _end_of_text(self) -> int:
        """Return the offset behind the closing quote."""
        text = _TEXT.match(self._data, self._at, self._at + TEXT_MAX)
        if text is None:
            raise self._bad(f"a text without an end, or of more than {TEXT_MAX} bytes")
        return text.end()

    def _ends(self, mark: bytes, *, first: bool) -> bool:
        """Tell whether an object or list is over; read the comma before its next element."""
        if self._next() == mark:
            self._at += 1
            return True
        if not first:
            self._expect(b",")
        return False

    def _expect(self, mark: bytes) -> None:
        if self._next() != mark:
            raise self._bad(f"expected {mark.decode()}")
        self._at += 1

    def _next(self) -> bytes:
        blanks = _BLANKS.match(self._data, self._at)
        assert blanks is not None
        self._at = blanks.end()
        return self._data[self._at : self._at + 1]

    def _bad(self, what: str) -> NotTaken:
        return NotTaken(BAD_FORM, f"the body is no submission: {what}, at byte {self._at}")
