"""A set in JSON as it arrives, in two forms: one object, or a line for the set and one for each URL."""

from abc import ABC, abstractmethod
from collections.abc import Callable

from lcc_scrapy.apps.push_http.json_cutter import Cutter
from lcc_scrapy.apps.push_http.json_values import URLS, check_field, set_of, url_of, value_of
from lcc_scrapy.domain.uns_limits import Limits
from lcc_scrapy.uns.charsets import Unreadable
from lcc_scrapy.uns.codec import Malformed
from lcc_scrapy.wire.messages import Message, SetEnd

_BLANK = b" \t\r\n"
_BOM = b"\xef\xbb\xbf"


class _JsonReader(ABC):
    """Bounds and errors of both forms; a subclass reads what is between them."""

    mark = b","

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._found: list[Message | Malformed] = []
        self._bytes = self._urls = 0
        self._over = False

    def feed(self, data: bytes) -> list[Message | Malformed]:
        """Return the messages completed by ``data``; a ``Malformed`` is the last one ever."""
        if not self._over:
            try:
                self._count(len(data))
                self._read(data)
            except Unreadable as error:
                self._refuse(error)
        return self._taken()

    def finish(self) -> list[Message | Malformed]:
        """Return the end of the set, which is complete with its body; nothing for an empty body."""
        if not self._over and self._bytes:
            try:
                self._end()
                self._found.append(SetEnd())
            except Unreadable as error:
                self._refuse(error)
        self._over = True
        return self._taken()

    @property
    def unfinished(self) -> bool:
        """Nothing is left when it is finished."""
        return False

    @abstractmethod
    def _read(self, data: bytes) -> None:
        """Read what is between bounds and errors; raises ``Unreadable``."""

    @abstractmethod
    def _end(self) -> None:
        """Check that all is there; raises ``Unreadable``."""

    def _url(self, raw: bytes) -> None:
        self._urls += 1
        if self._urls > self._limits.set_urls:
            raise Unreadable(f"more than {self._limits.set_urls} URLs", too_large=True)
        self._found.append(url_of(value_of(raw), self._limits.attributes))

    def _count(self, size: int) -> None:
        self._bytes += size
        if self._bytes > self._limits.set_bytes:
            raise Unreadable(f"more than {self._limits.set_bytes} bytes", too_large=True)

    def _refuse(self, error: Unreadable) -> None:
        self._over = True
        behind = f", URL {self._urls}" if self._urls else ""
        self._found.append(Malformed(f"{error}{behind}", error.too_large))

    def _taken(self) -> list[Message | Malformed]:
        found, self._found = self._found, []
        return found


class JsonLines(_JsonReader):
    """``application/x-ndjson``: the set's fields on the first line, a URL on each further one."""

    mark = b"\n"

    def __init__(self, limits: Limits) -> None:
        super().__init__(limits)
        self._held = bytearray()
        self._begun = False
        self._blank = 0

    def _read(self, data: bytes) -> None:
        *lines, rest = data.split(b"\n")
        for line in lines:
            self._keep(line)
            self._line()
        self._keep(rest)

    def _keep(self, part: bytes) -> None:
        self._held += part
        if len(self._held) > self._limits.element_bytes:
            raise Unreadable(f"more than {self._limits.element_bytes} bytes in one line")

    def _line(self) -> None:
        line = bytes(self._held).strip(_BLANK)
        self._held.clear()
        self._blank = 0 if line else self._blank + 1
        if self._blank > self._limits.element_bytes:
            raise Unreadable(f"more than {self._limits.element_bytes} empty lines")
        if not line:
            return
        if self._begun:
            self._url(line)
            return
        self._begun = True
        fields = value_of(line.removeprefix(_BOM))
        if not isinstance(fields, dict):
            raise Unreadable('the first line is the set: {"set": "partial"}')
        self._found.append(set_of(fields))

    def _end(self) -> None:
        self._line()
        if not self._begun:
            raise Unreadable("there is no set in the body")


class JsonObject(_JsonReader):
    """``application/json``: ``{"set": "partial", "urls": [...]}``; the URLs stand last."""

    def __init__(self, limits: Limits) -> None:
        super().__init__(limits)
        self._cutter = Cutter(limits.element_bytes)
        self._step: Callable[[bytes, bytes], None] | None = None
        self._key = ""
        self._fields: dict[str, object] = {}

    def _read(self, data: bytes) -> None:
        if self._step is None:
            data = self._without_brace(data)
        for raw, mark in self._cutter.feed(data):
            assert self._step is not None, "nothing is cut before the brace"
            self._step(raw.strip(_BLANK), mark)

    def _without_brace(self, data: bytes) -> bytes:
        """Pass over what may stand before the object, and its brace."""
        text = data.lstrip(_BLANK + _BOM)
        if not text:
            if self._bytes > self._limits.login_bytes:
                raise Unreadable(f"more than {self._limits.login_bytes} bytes before the set")
            return b""
        if not text.startswith(b"{"):
            raise Unreadable('not an object: {"set": "partial", "urls": [...]}')
        self._step = self._at_key
        return text[1:]

    def _end(self) -> None:
        if self._step != self._behind or self._cutter.rest.strip(_BLANK):
            raise Unreadable("the body ends too early, or goes on behind its object")
        if not self._urls and URLS not in self._fields:
            self._found.append(set_of(self._fields))

    # --- where it stands: each step takes what was cut and the byte behind it -------------------------

    def _at_key(self, raw: bytes, mark: bytes) -> None:
        if mark == b"}" and not raw and not self._fields:
            self._step = self._behind
            return
        key = value_of(raw) if mark == b":" else None
        if not isinstance(key, str) or key in self._fields:
            raise Unreadable(f"not JSON: a name of its own is expected before {mark.decode()!r}")
        if key == URLS:
            self._cutter.opens = True
            self._step = self._at_array
            return
        check_field(key)
        self._key = key
        self._step = self._at_value

    def _at_value(self, raw: bytes, mark: bytes) -> None:
        self._fields[self._key] = value_of(raw)
        self._go_on(mark)

    def _at_array(self, raw: bytes, mark: bytes) -> None:
        if raw or mark != b"[":
            raise Unreadable('"urls" is an array')
        self._cutter.opens = False
        self._found.append(set_of(self._fields))
        self._fields[URLS] = True
        self._step = self._at_url

    def _at_url(self, raw: bytes, mark: bytes) -> None:
        is_empty = mark == b"]" and not raw and not self._urls
        if mark not in b",]":
            raise Unreadable(f"not JSON: {mark.decode()!r} among the URLs")
        if not is_empty:
            self._url(raw)
        if mark == b"]":
            self._step = self._behind_array

    def _behind_array(self, raw: bytes, mark: bytes) -> None:
        if raw or mark != b"}":
            raise Unreadable('"urls" is the last field: say the others before it')
        self._step = self._behind

    def _behind(self, _raw: bytes, mark: bytes) -> None:
        raise Unreadable(f"not JSON: {mark.decode()!r} behind the object")

    def _go_on(self, mark: bytes) -> None:
        if mark not in b",}":
            raise Unreadable(f"not JSON: {mark.decode()!r} between fields")
        self._step = self._at_key if mark == b"," else self._behind
