"""Meta-information of a document: what its site answered, where it lies, its links and its earlier contents.

As XML it has the elements of the meta-information file of seed 002 (section 5.1, table 3): ``url``, ``ip``,
``kbytes``, ``ifmodifiedsince``, ``header`` and ``links``, and further ones behind them
(decision 68). It is well-formed whatever sites and providers have said.
"""

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from types import UnionType
from urllib.parse import quote
from xml.sax.saxutils import escape, quoteattr

from lcc_scrapy.domain.cache import CachedUrl, UrlMeta
from lcc_scrapy.domain.http_dates import epoch_of_date
from lcc_scrapy.domain.versions import Version
from lcc_scrapy.feed.row_formats import Facts, PathOf, for_xml, version_record

NAMESPACE = "http://www.lococa.org/webrace/1.0"
_KILO = 1000
_BREAKS = re.compile(r"[\x00-\x1f\x7f\x85\u2028\u2029]+")
_BLANKS = re.compile(r"\s+")

FACTS: Mapping[str, type | UnionType] = {
    "docid": str,
    "provider": int,
    "curl": str,
    "burl": str | None,
    "furl": str,
    "finalurl": str | None,
    "mimetype": str,
    "subtype": str | None,
    "servedtype": str | None,
    "servedcharset": str | None,
    "status": str | None,
    "peer": str | None,
    "answered": int | None,
    "length": int,
    "md5": str,
    "sha256": str,
    "fetched": int,
    "confirmed": int,
    "seq": int,
    "path": str,
    "fileencoding": str | None,
}
"""What meta-information tells of a document in one value each; None = it is not known, or there is none."""


@dataclass(frozen=True, slots=True)
class MetaInfo:
    """What is known of one document. ``answer`` is None when the document was replaced at this moment.

    ``links`` are absolute, in the order of the page; ``versions`` are newest first. ``owners`` asked for it.
    """

    row: CachedUrl
    answer: UrlMeta | None
    links: tuple[str, ...] = ()
    versions: tuple[Version, ...] = ()
    owners: tuple[str, ...] = ()

    @property
    def header(self) -> list[str]:
        """Status line and response headers, one a line, without anything that would break a line."""
        if self.answer is None:
            return []
        pairs = json.loads(self.answer.headers)
        lines = [self.answer.status_line, *(f"{name}: {value}" for name, value in pairs)]
        return [_BREAKS.sub(" ", line) for line in lines]

    @property
    def modified(self) -> int | None:
        """What the site said in Last-Modified, in epoch seconds; None = nothing that can be read."""
        return epoch_of_date(self.row.last_modified)


def as_record(meta: MetaInfo, path_of: PathOf) -> dict[str, object]:
    """Return meta-information as JSON would have it; times in epoch seconds."""
    return {
        **facts(meta, path_of),
        "header": meta.header,
        "links": list(meta.links),
        "owners": list(meta.owners),
        "versions": [version_record(one, path_of) for one in meta.versions],
    }


def as_xml(meta: MetaInfo, path_of: PathOf) -> str:
    """Return meta-information as an XML document in the form of the seed."""
    known = facts(meta, path_of)
    body = [
        *(_element(name, str(value)) for name, value in _as_the_seed_has_it(meta)),
        _lines("header", meta.header),
        _lines("links", (_BLANKS.sub(lambda blank: quote(blank[0]), link) for link in meta.links)),
        *(_element(name, str(value)) for name, value in known.items() if value is not None),
        _lines("owners", meta.owners),
        *_versions(version_record(one, path_of) for one in meta.versions),
    ]
    opened = f'<webrace:meta xmlns:webrace="{NAMESPACE}">'
    return "\n".join(['<?xml version="1.0" encoding="UTF-8"?>', opened, *body, "</webrace:meta>\n"])


def _as_the_seed_has_it(meta: MetaInfo) -> Iterator[tuple[str, object]]:
    yield "url", meta.row.furl
    if meta.answer is not None and meta.answer.peer:
        yield "ip", meta.answer.peer
    yield "kbytes", meta.row.fetched_len // _KILO
    if meta.modified is not None:
        yield "ifmodifiedsince", meta.modified * 1000


def facts(meta: MetaInfo, path_of: PathOf) -> Facts:
    """Return the values that ``FACTS`` names."""
    row, answer = meta.row, meta.answer
    return {
        "docid": row.docid,
        "provider": row.pid,
        "curl": row.curl,
        "burl": row.burl,
        "furl": row.furl,
        "finalurl": row.final_url or None,
        "mimetype": row.mimetype,
        "subtype": row.subtype or None,
        "servedtype": row.served_type or None,
        "servedcharset": row.served_charset or None,
        "status": answer.status_line if answer else None,
        "peer": (answer.peer or None) if answer else None,
        "answered": answer.answered if answer else None,
        "length": row.fetched_len,
        "md5": row.fetched_md5,
        "sha256": row.sha256,
        "fetched": row.fetched_time,
        "confirmed": row.confirmed_time,
        "seq": row.seq,
        "path": path_of(row.fetched_machineid, row.fetched_fileid),
        "fileencoding": row.file_encoding or None,
    }


def _element(name: str, text: str) -> str:
    return f"  <webrace:{name}>{_escaped(text)}</webrace:{name}>"


def _lines(name: str, lines: Iterable[str]) -> str:
    indented = "".join(f"    {_escaped(line)}\n" for line in lines)
    return f"  <webrace:{name}>\n{indented}  </webrace:{name}>"


def _versions(records: Iterable[Facts]) -> Iterator[str]:
    yield "  <webrace:versions>"
    for one in records:
        given = ((name, str(value)) for name, value in one.items() if value is not None)
        yield f"    <webrace:version {' '.join(f'{n}={quoteattr(for_xml(value))}' for n, value in given)}/>"
    yield "  </webrace:versions>"


def _escaped(text: str) -> str:
    return escape(for_xml(text), {"\r": "&#13;"})
