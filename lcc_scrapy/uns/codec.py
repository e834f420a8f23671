"""Bytes in, messages out, one stream each (design section 4, style rule 2).

The parser is expat, a new one for each connection. lxml is as fast, but keeps every name that it ever
read in a dictionary that all parsers of a thread share and never empty; strangers would fill it.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from xml.parsers import expat

from lcc_scrapy.domain.uns_limits import DEFAULT_LIMITS, Limits
from lcc_scrapy.uns.charsets import Normaliser, Unreadable
from lcc_scrapy.uns.grammar import Grammar
from lcc_scrapy.uns.plain_urls import Spelling, spelling_of
from lcc_scrapy.wire.messages import Message

_WRAPPER = b"<stream>"
_DOCTYPE = b"<!D"
"""Behind the third of these characters the parser has seen enough, wherever the network cut."""
_BITE = 16 * 1024
_STRIDE = 8 * 1024
"""The limits are looked at whenever so many bytes were parsed, counted from the beginning of the stream."""

_SHORT, _VAIN = 8, 3
"""URLs of a run that was hardly worth looking for, and how many such runs are looked for in one bite."""
_SPELLINGS = 16
"""Spellings of URL elements that are learnt from one provider."""


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


def _line_ends(text: bytes) -> int:
    lone = text.count(b"\r") - text.count(b"\r\n") if b"\r" in text else 0
    return text.count(b"\n") + lone


class Codec:
    """Reads one provider's stream. Any cutting of it gives the same messages, but for the length of runs.

    ``runs``: take plain URLs in runs, past the parser; otherwise all come one by one. ``logged_in``: the
    provider introduced itself elsewhere, and a set may begin at once.
    """

    mark = b"<"
    """Stands in every URL of a stream."""

    def __init__(
        self, limits: Limits = DEFAULT_LIMITS, *, runs: bool = True, logged_in: bool = False
    ) -> None:
        self._limits = limits
        self._runs = runs
        self._normaliser = Normaliser(limits)
        self._grammar = Grammar(limits)
        self._grammar.logged_in = logged_in
        self._parser = _new_parser(self._grammar)
        self._ended = False
        self._given = b""
        self._before = bytes(2)
        self._given_before = 0
        self._lines_not_given = 0
        self._spelling: Spelling | None = None
        self._spellings: dict[tuple[str, ...], Spelling] = {}
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
            line = error.lineno + self._lines_not_given
            found.append(Malformed(f"{self._what_is_wrong(error)}, line {line}"))
        self._ended = bool(found)
        found[:0] = self._grammar.messages
        self._grammar.messages.clear()
        return found

    def finish(self) -> list[Message | Malformed]:
        """Nothing more comes when the stream ends: a set says itself where it ends."""
        return []

    def _what_is_wrong(self, error: expat.ExpatError) -> str:
        at = self._parser.ErrorByteIndex - len(_WRAPPER) - self._given_before
        if (self._before + self._given)[at : at + 3] == _DOCTYPE:
            return "a document type declaration (DOCTYPE), which is refused"
        if at >= 0 and self._given[at : at + 1] == b"\0":
            return "a character that is not XML or not in the encoding declared"
        return expat.ErrorString(error.code)

    def _read(self, data: bytes) -> None:
        for piece in self._normaliser.feed(data):
            for bite in self._bites(self._behind_a_run(piece) if self._runs else piece):
                self._parse(self._without_runs(bite) if self._runs else bite)
                self._parsed += len(bite)
                if self._parsed >= self._next_look:
                    self._look()

    def _parse(self, text: bytes) -> None:
        self._given_before += len(self._given)
        self._before = (self._before + self._given[-2:])[-2:]
        self._given = text
        self._parser.Parse(text, False)

    def _behind_a_run(self, piece: bytes) -> bytes:
        """Take the run that goes on at the beginning of a piece, if one does; return what follows it."""
        behind_the_login = self._parsed + len(piece) - self._login_parsed
        bounded = self._grammar.logged_in and behind_the_login <= self._limits.set_bytes
        if self._spelling is None or not bounded:
            return piece
        _, rest = self._take_a_run(piece, self._spelling)
        self._pass_over(piece[: len(piece) - len(rest)])
        if rest:
            self._spelling = None
        return rest

    def _pass_over(self, run: bytes) -> None:
        """Look at the limits where the parser would have stopped for it within a run that was taken."""
        start = self._parsed
        while (stride := self._next_look - start) <= len(run):
            end = run.find(b">", stride - 1) + 1
            self._parsed = start + end
            self._look()
            self._elements_then -= end < len(run)  # others of the run follow
        self._parsed = start + len(run)

    def _without_runs(self, bite: bytes) -> bytes:
        """Take the runs out of a bite, parse what stands between them, and return what is left to parse."""
        vain = 0
        while bite and vain < _VAIN:
            if self._spelling is None:
                bite = self._learn_a_spelling(bite)
            if self._spelling is None:
                return bite
            taken, bite = self._take_a_run(bite, self._spelling)
            vain += taken < _SHORT
            if bite:
                self._spelling = None
        return bite

    def _learn_a_spelling(self, bite: bytes) -> bytes:
        """Parse up to the first ``>``: when a URL of the set ends there, a run of its like may follow.

        The parser then stands between two elements, not in a comment or the like, since only one tag can
        end where there is only one ``>``.
        """
        grammar = self._grammar
        if not grammar.in_set:
            return bite
        end = bite.find(b">") + 1 or len(bite)
        grammar.spelling = ()
        self._parse(bite[:end])
        if grammar.spelling and grammar.in_set:
            self._spelling = self._known(grammar.spelling)
        return bite[end:]

    def _known(self, names: tuple[str, ...]) -> Spelling | None:
        known = self._spellings.get(names)
        if known is None and len(self._spellings) < _SPELLINGS:
            known = spelling_of(names)
            if known is not None:
                self._spellings[names] = known
        return known

    def _take_a_run(self, text: bytes, spelling: Spelling) -> tuple[int, bytes]:
        """Take the run with which ``text`` begins; return how many URLs that are, and what follows."""
        run, rest = spelling.read(text)
        if run is None or not self._grammar.take_run(run):
            return 0, text
        self._lines_not_given += _line_ends(text[: len(text) - len(rest)])
        return len(run), rest

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
