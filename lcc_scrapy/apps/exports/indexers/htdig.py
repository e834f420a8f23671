"""A folder from which ht://Dig 3.2 digs (its "external_protocols"), one answer in a file for each page.

A page's URL in ht://Dig is ``http://lcc/<name>/<link>``; its name is the docid and a digest of the link, so
that a page with another link is another one. ``search_rewrite_rules`` leave the link of it in hits.
"""

import os
import re
import sys
from collections.abc import Iterable, Iterator
from email.utils import formatdate
from hashlib import sha256
from pathlib import Path
from typing import IO

from lcc_scrapy.apps.exports.indexers.interface import IndexFormat
from lcc_scrapy.apps.exports.indexers.pages import Page, page_of
from lcc_scrapy.apps.exports.interface import Item
from lcc_scrapy.domain.cursor import Position
from lcc_scrapy.domain.errors import LccError
from lcc_scrapy.feed.cursor_file import CursorFile
from lcc_scrapy.feed.plain_text import MOST, as_ascii
from lcc_scrapy.feed.row_formats import Record

_SITE = "http://lcc/"
_PLAIN = re.compile(r"[\w./+-]+", re.ASCII)
_HANDLER = Path(__file__).with_name("htdig_handler.py")
_CONFIGURATION = """\
# Made by `lcc export --format htdig`, every time. To change something, include it in a file of yours.
database_dir: {folder}/database
start_url: `{folder}/changed`
limit_urls_to: {site}
external_protocols: http {folder}/handler
search_rewrite_rules: ^{site}[^/]*/(.*) \\\\1
max_hop_count: 0
max_doc_size: {most}
allow_double_slash: true
case_sensitive: true
remove_default_doc:
exclude_urls:
bad_extensions:
bad_querystr:
"""


class HtDig:
    """``pages/<two digits>/<name>`` are the answers, ``changed`` the URLs that ht://Dig has to look at.

    ``changed`` grows until its user empties it, after ht://Dig took it. A URL without a file is answered
    with 404, and ``htpurge`` forgets it then. The cursor is written last; taking a change twice does no harm.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder.absolute()
        self._check()
        self._prepare()
        self._leaving: list[Path] = []
        self._position = CursorFile(self._folder / "position")
        self._position.__enter__()
        try:
            self.cursor = str(self._position.read() or "")
            self._changed = (self._folder / "changed").open("ab")
            if self._changed.tell():
                self._changed.write(b"\n")  # a kill may have cut off the last line
        except BaseException:
            self._position.__exit__(None, None, None)
            raise

    def document(self, item: Item, content: IO[bytes]) -> None:
        """Write an answer, with a time that is later than that of the one before."""
        page = page_of(item, content)
        name = f"{page.docid}-{sha256(page.link.encode(errors='replace')).hexdigest()[:8]}"
        before = list(self._known(page.docid))
        time = max([page.time, *(int(path.stat().st_mtime) + 1 for path in before)])
        self._leave(path for path in before if path.name != name)
        url = f"{_SITE}{name}/{page.uri.replace('/.', '/%2E')}"
        self._tell(url.encode())
        self._write(self._folder / "pages" / name[:2] / name, _answer(page, url, time), time)

    def departure(self, one: Record) -> None:
        """Let an answer go."""
        self._leave(self._known(str(one["docid"])))

    def commit(self, cursor: str) -> None:
        """Make everything durable in an order in which no kill loses a change."""
        self._changed.flush()
        os.fsync(self._changed.fileno())
        for path in self._leaving:
            path.unlink(missing_ok=True)
        self._leaving.clear()
        os.sync()  # a thousand new files at once
        self._position.write(Position.parse(cursor))
        self.cursor = cursor

    def close(self) -> None:
        """Let others use the folder."""
        self._changed.close()
        self._position.__exit__(None, None, None)

    def _check(self) -> None:
        if not _PLAIN.fullmatch(str(self._folder)):
            raise LccError(
                f"ht://Dig takes no blanks or signs in paths: name another folder than {self._folder}"
            )
        if (
            self._folder.exists()
            and not (self._folder / "htdig.conf").exists()
            and any(self._folder.iterdir())
        ):
            raise LccError(f"{self._folder} holds something else: name a folder that does not exist yet")

    def _prepare(self) -> None:
        self._folder.mkdir(exist_ok=True)
        text = _CONFIGURATION.format(folder=self._folder, site=_SITE, most=8 * MOST)
        (self._folder / "htdig.conf").write_text(text, encoding="ascii")
        for name in ("database", "pages"):
            (self._folder / name).mkdir(exist_ok=True)
        handler = self._folder / "handler"
        script = f"#!{sys.executable} -IS\n{_HANDLER.read_text(encoding='utf-8')}"
        handler.write_text(script, encoding="utf-8")
        handler.chmod(0o755)

    def _known(self, docid: str) -> Iterator[Path]:
        return (self._folder / "pages" / docid[:2]).glob(f"{docid}-*")

    def _leave(self, paths: Iterable[Path]) -> None:
        for path in paths:
            self._tell(_url_of(path))
            self._leaving.append(path)

    def _tell(self, url: bytes) -> None:
        self._changed.write(url + b"\n")

    def _write(self, path: Path, answer: bytes, time: int) -> None:
        path.parent.mkdir(exist_ok=True)
        part = self._folder / "pages" / "part"
        part.write_bytes(answer)
        os.utime(part, (time, time))
        part.replace(path)


def _answer(page: Page, url: str, time: int) -> bytes:
    body = as_ascii(page.html)
    head = (
        f"s:\t200\nr:\tOK\nm:\t{formatdate(time, usegmt=True)}\nt:\ttext/html\nl:\t{len(body)}\nu:\t{url}\n\n"
    )
    return head.encode() + body


def _url_of(path: Path) -> bytes:
    with path.open("rb") as answer:
        return next(line[3:].rstrip() for line in answer if line.startswith(b"u:\t"))


HTDIG = IndexFormat(HtDig)
