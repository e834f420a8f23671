"""URLs by name as a source of ``lcc-push``: what changed, one on a line."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from typing import BinaryIO
from urllib.parse import quote, urlsplit

from lcc_scrapy.push import filetypes, pipe
from lcc_scrapy.push.command import Notes, Status, Stop
from lcc_scrapy.wire.messages import Url

LINE_MAX = 8 * 1024
URLS_MAX = 5_000_000
_SAFE = "%:/?#[]@!$&'()*+,;=~"


@dataclass(frozen=True)
class UrlSource:
    """The URLs of a file, or of standard input ("-"). ``relative``: whether there is a prefix for them."""

    place: str
    relative: bool

    name = "urls"
    is_whole = False
    undated_is_same = False

    def write(self, out: BinaryIO, notes: Notes) -> None:
        """Write a line for each URL, and an end mark that removes nothing; raises `Stop` (65, 66)."""
        del notes
        count = 0
        with ExitStack() as held:
            for url in self._urls(self._opened(held)):
                count += 1
                if count > URLS_MAX:
                    raise Stop(Status.BAD_INPUT, f"more than {URLS_MAX:,} URLs; nothing sent")
                out.write(pipe.write(Url({"curl": url, "mimetype": mimetype_of(url)})))
        out.write(pipe.write(pipe.End(count, partial=True)))

    def _opened(self, held: ExitStack) -> BinaryIO:
        if self.place == "-":
            return sys.stdin.buffer
        try:
            return held.enter_context(open(self.place, "rb"))  # noqa: PTH123 - as the user gave it
        except OSError as error:
            raise Stop(Status.NO_INPUT, f"{self.place}: {error.strerror}") from None

    def _urls(self, stream: BinaryIO) -> Iterator[str]:
        number = 0
        while raw := stream.readline(LINE_MAX + 1):
            number += 1
            text = raw.strip()
            if not text or text.startswith(b"#"):
                continue
            if fault := self._fault(raw, text):
                raise Stop(Status.BAD_INPUT, f"line {number}: {fault}; nothing sent")
            yield quote(text, safe=_SAFE)

    def _fault(self, raw: bytes, text: bytes) -> str:
        if len(raw) > LINE_MAX:
            return f"longer than {LINE_MAX} bytes"
        if any(byte <= 0x20 or byte == 0x7F for byte in text):  # noqa: PLR2004 - blanks and controls
            return "a blank or control character inside the URL"
        if b"://" in text:
            return "" if text.lower().startswith((b"http://", b"https://")) else "no http:// or https:// URL"
        return "" if self.relative else "relative, but there is no prefix: give the site's URL, too"


def mimetype_of(url: str) -> str:
    """Return the mimetype by the extension of a URL's path; without a known one it is a page."""
    path = urlsplit(url).path.rpartition("/")[2]
    return filetypes.mimetype_of(path.encode(), filetypes.BY_EXTENSION, "text/html")
