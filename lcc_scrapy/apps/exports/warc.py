"""Documents in a WARC file (ISO 28500), through warcio: one gzip member per record.

A document whose answer is known becomes a ``response`` record with the headers that the site sent. Bodies
are stored decoded, so headers about the transfer are renamed to ``X-Archive-Orig-…`` and Content-Length
is that of the body. A document without an answer, or from elsewhere than HTTP, becomes a ``resource``
record. The manifest, removals in it, is a ``metadata`` record at the end, with a URI of its own: indexers
give records without one the key ``-``.
"""

import ipaddress
import json
import re
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import IO, Any
from urllib.parse import quote

from lcc_scrapy import __version__
from lcc_scrapy.apps.exports.gzipping import Gzip
from lcc_scrapy.apps.exports.interface import Archive, Item
from lcc_scrapy.content.decoding import is_decoded
from lcc_scrapy.domain.cache import UrlMeta
from lcc_scrapy.domain.errors import MissingExtra
from lcc_scrapy.feed.row_formats import Record

_UNSENDABLE = re.compile(r"[\x00-\x1f\x7f]+")
_NAME = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_HTTP = ("http://", "https://")
MANIFEST = "urn:lcc:manifest"
"""The URI of the manifest in each archive."""
_OF_THE_TRANSFER = {"transfer-encoding", "connection", "keep-alive", "trailer"}


class Warc(Archive):
    """Writes WARC 1.1."""

    def __init__(self, out: IO[bytes]) -> None:
        self._gzip = Gzip(out)
        self._writer = _writer(self._gzip)
        facts = {"software": f"lcc-scrapy/{__version__}", "format": "WARC File Format 1.1"}
        self._member(self._writer.create_warcinfo_record(None, facts))

    def document(self, item: Item, content: IO[bytes]) -> None:
        """Write a response or resource record."""
        row, answer = item.row, item.answer
        about = {
            "WARC-Date": _date(answer.answered if answer else row.fetched_time),
            "WARC-Payload-Digest": f"sha256:{row.sha256}",
        }
        uri = _uri(row.final_url or row.furl)
        if answer is None or not uri.startswith(_HTTP):
            about["Content-Type"] = row.served_type or row.mimetype
            self._write("resource", about, content, row.fetched_len, uri=uri)
            return
        self._write(
            "response",
            about | _address(answer.peer),
            content,
            row.fetched_len,
            uri=uri,
            http=_http(answer, row.fetched_len),
        )

    def end(self, manifest: IO[bytes], size: int, last: Record) -> None:
        """Write the manifest."""
        del last
        self._write("metadata", {"Content-Type": "application/jsonl"}, manifest, size, uri=MANIFEST)

    def _write(
        self,
        kind: str,
        about: dict[str, str],
        content: IO[bytes],
        size: int,
        *,
        uri: str,
        http: Any = None,
    ) -> None:
        about = {name: _UNSENDABLE.sub(" ", value) for name, value in about.items()}
        record = self._writer.create_warc_record(
            uri, kind, payload=content, length=size, warc_headers_dict=about, http_headers=http
        )
        self._member(record)

    def _member(self, record: Any) -> None:
        """Write a record as a gzip member of its own; warcio itself knows the slowest level only."""
        self._writer.write_record(record)
        self._gzip.end_member()


def _writer(out: Gzip) -> Any:
    try:
        from warcio.warcwriter import WARCWriter  # noqa: PLC0415 - an extra
    except ImportError:
        raise MissingExtra("warc", "warcio") from None

    class Streaming(WARCWriter):  # type: ignore[misc]
        """Copies no content aside to make digests of it where one is known already."""

        def ensure_digest(self, record: Any, *, block: bool = True, payload: bool = True) -> None:
            if not record.rec_headers.get_header("WARC-Payload-Digest"):
                super().ensure_digest(record, block=block, payload=payload)

    return Streaming(out, gzip=False, warc_version="1.1")


def _http(answer: UrlMeta, length: int) -> Any:
    from warcio.statusandheaders import StatusAndHeaders  # noqa: PLC0415 - an extra

    protocol, _, status = _UNSENDABLE.sub(" ", answer.status_line).partition(" ")
    pairs = [*_headers(answer.headers), ("Content-Length", str(length))]
    return StatusAndHeaders(status, pairs, protocol=protocol or "HTTP/1.1")


def _headers(text: str) -> Iterator[tuple[str, str]]:
    for name, value in json.loads(text):
        clean = _UNSENDABLE.sub(" ", value)
        lower = name.lower()
        if lower == "content-length" or not _NAME.fullmatch(name):
            continue
        undone = lower in _OF_THE_TRANSFER or (lower == "content-encoding" and is_decoded(clean))
        yield (f"X-Archive-Orig-{name}" if undone else name), clean


def _address(peer: str) -> dict[str, str]:
    try:
        return {"WARC-IP-Address": str(ipaddress.ip_address(peer.partition("%")[0]))}
    except ValueError:
        return {}


def _date(at: int) -> str:
    return datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def _uri(url: str) -> str:
    return quote(url, safe="!#$%&'()*+,/:;=?@[]~", errors="replace")
