"""``lcc meta`` and ``lcc versions``: what there is of a document beside its newest content."""

from typing import TYPE_CHECKING

import click

from lcc_scrapy.cli import printing
from lcc_scrapy.cli.context import Failure, Lcc, pass_lcc
from lcc_scrapy.domain.versions import version_of
from lcc_scrapy.feed.meta_information import as_record, as_xml
from lcc_scrapy.feed.row_formats import Facts, version_record

if TYPE_CHECKING:
    from lcc_scrapy.content_user import CachedUrl, ContentUser

_COLUMNS = ("change", "fetched", "replaced", "bytes", "served as", "file")
_provider_option = click.option(
    "--provider", "pid", type=click.IntRange(1), metavar="PID", help="Only this provider's URL."
)


@click.command()
@click.argument("url")
@_provider_option
@printing.json_option
@pass_lcc
def meta(lcc: Lcc, url: str, pid: int | None, *, as_json: bool) -> None:
    """Print meta-information of one document as XML.

    URL is a conceptual URL, a fetch URL or a docid.

    \b
    lcc meta http://www.example.org/news.html
    lcc meta 0123456789abcdef0123456789abcdef --json
    """  # noqa: D301
    from lcc_scrapy.content_user import ContentUser

    with ContentUser(lcc.config) as user:
        found = _documents(user, url, pid)
        if len(found) > 1:
            which = ", ".join(f"{row.docid} ({row.mimetype}, provider {row.pid})" for row in found)
            raise Failure(f"{len(found)} documents have this URL, give a docid: {which}")
        known = user.meta(found[0])
    if as_json:
        printing.as_json(as_record(known, lcc.path_of()))
    else:
        printing.utf8(as_xml(known, lcc.path_of()))


@click.command()
@click.argument("url")
@_provider_option
@printing.json_option
@pass_lcc
def versions(lcc: Lcc, url: str, pid: int | None, *, as_json: bool) -> None:
    """List the stored versions of one document, newest first.

    URL is a conceptual URL, a fetch URL or a docid. The first line is the document as it is. The others are
    there because of LCC_KEEP_VERSIONS.

    \b
    lcc versions http://www.example.org/news.html
    lcc versions 0123456789abcdef0123456789abcdef --json
    """  # noqa: D301
    from lcc_scrapy.content_user import ContentUser

    path_of = lcc.path_of()
    with ContentUser(lcc.config) as user:
        found = [(row, user.versions(row)) for row in _documents(user, url, pid)]
    if as_json:
        printing.as_json(
            [
                {
                    "docid": row.docid,
                    "pid": row.pid,
                    "curl": row.curl,
                    "mimetype": row.mimetype,
                    "seq": row.seq,
                    "versions": [version_record(one, path_of) for one in kept],
                }
                for row, kept in found
            ]
        )
        return
    for row, kept in found:
        printing.note(f"{row.docid} {row.curl} ({row.mimetype}, provider {row.pid})")
        newest = version_record(version_of(row, 0), path_of)
        printing.table(_COLUMNS, map(_line, [newest, *(version_record(one, path_of) for one in kept)]))


def _documents(user: "ContentUser", url: str, pid: int | None) -> "list[CachedUrl]":
    found = [row for row in user.find(url) if pid in {None, row.pid}]
    if not found:
        raise Failure(f"there is no document {printing.plain(url)}; `lcc explain` tells why")
    return found


def _line(one: Facts) -> list[object]:
    return [
        one["seq"],
        printing.moment(int(one["fetched_time"] or 0)),
        printing.moment(int(one["replaced_time"] or 0)),
        one["len"],
        one["served_type"],
        one["path"],
    ]
