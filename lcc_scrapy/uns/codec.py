"""Bytes in, messages out, one stream each (design section 4, style rule 2).

The parser is expat, a new one for each connection. lxml is as fast, but keeps every name that it ever
read in a dictionary that all parsers of a thread share and never empty; strangers would fill it.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from xml.parsers import expat

from lcc_scrapy.uns.charsets import Normaliser, Unreadable
from lcc_scrapy.uns.grammar import Grammar
from lcc_scrapy.uns.limits import DEFAULT_LIMITS, Limits
from lcc_scrapy.wire.messages import Message

_WRAPPER = b"<stream>"
_BITE = 16 * 1024
_STRIDE = 8 * 1024
"""The limits are looked at whenever so many bytes were parsed, counted from the beginning of the stream."""


@dataclass(frozen=True, slots=True)
class Malformed:
    """The stream cannot be read on from here; ``too_large`` when it was only too long."""

    detail: str
    too_large: bool = False


def _new_parser(grammar: Grammar) -> expat.XMLParserType:
    parser = expat.ParserCreate("utf-8")
    parser.Parse(_WRAPPER, False)
    parser.StartElementHandler = grammar.start
    parser.EndElementHandler = grammar.end
    # Newer expats wait for more input before they tell of a tag that was cut; a login cannot wait.
    set_deferral = getattr(parser, "SetReparseDeferralEnabled", None)
    if set_deferral is not None:
        set_deferral(False)
    return parser


class Codec:
    """Reads one provider's stream. Any cutting of it gives the same messages."""

    def __init__(self, limits: Limits = DEFAULT_LIMITS) -> None:
        self._limits = limits
        self._normaliser = Normaliser(limits)
        self._grammar = Grammar(limits)
        self._parser = _new_parser(self._grammar)
        self._ended = False
        self._bite = b""
        self._parsed = 0
        self._next_look = _STRIDE
        self._last_look = 0
        self._elements_then = 0
        self._quiet = 0
        self._login_parsed = 0

    @property
    def unfinished(self) -> bool:
        """Tell whether the stream would be cut short if it ended now."""
        return self._normaliser.holds_something or not self._grammar.between_elements

    def feed(self, data: bytes) -> list[Message | Malformed]:
        """Return the messages completed by ``data``; a ``Malformed`` is the last one ever."""
        if self._ended:
            return []
        found: list[Message | Malformed] = []
        try:
            for start in range(0, len(data), _BITE):
                self._read(data[start : start + _BITE])
        except Unreadable as error:
            found.append(Malformed(str(error), error.too_large))
        except expat.ExpatError as error:
            found.append(Malformed(f"{self._what_is_wrong(error)}, line {error.lineno}"))
        self._ended = bool(found)
        found[:0] = self._grammar.messages
        self._grammar.messages.clear()
        return found

    def _what_is_wrong(self, error: expat.ExpatError) -> str:
        at = self._parser.ErrorByteIndex - len(_WRAPPER) - self._parsed
        if self._bite[at : at + 1] == b"\0":
            return "a character that is not XML or not in the encoding declared"
        return expat.ErrorString(error.code)

    def _read(self, data: bytes) -> None:
        for piece in self._normaliser.feed(data):
            for bite in self._bites(piece):
                self._bite = bite
                self._parser.Parse(bite, False)
                self._parsed += len(bite)
                if self._parsed >= self._next_look:
                    self._look()

    def _bites(self, piece: bytes) -> Iterator[bytes]:
        """Cut behind the first ``>`` after each stride, wherever the network cut."""
        start = 0
        while (stride := start + self._next_look - self._parsed) < len(piece):
            end = piece.find(b">", stride - 1) + 1 or len(piece)
            yield piece[start:end]
            start = end
        if start < len(piece):
            yield piece[start:]

    def _look(self) -> None:
        """Hold the stream against the limits that count bytes."""
        self._next_look = (self._parsed // _STRIDE + 1) * _STRIDE
        if self._grammar.elements == self._elements_then:
            self._quiet += self._parsed - self._last_look
        else:
            self._quiet = 0
        self._elements_then, self._last_look = self._grammar.elements, self._parsed
        if self._quiet >= self._limits.element_bytes:
            raise Unreadable(f"more than {self._limits.element_bytes} bytes in one element")
        if not self._grammar.logged_in:
            self._login_parsed = self._parsed
            if self._parsed > self._limits.login_bytes:
                raise Unreadable(f"more than {self._limits.login_bytes} bytes before the login")
        elif self._parsed - self._login_parsed > self._limits.set_bytes:
            raise Unreadable(f"more than {self._limits.set_bytes} bytes", too_large=True)
