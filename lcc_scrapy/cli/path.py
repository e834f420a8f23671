"""``lcc path``: where a document's content lies."""

import click

from lcc_scrapy.cli.context import Failure, Lcc, pass_lcc

_DOCID_BYTES = 16


@click.command()
@click.argument("machine", type=click.IntRange(1), required=False)
@click.argument("fileid", type=click.IntRange(1), required=False)
@click.option("--docid", help="The document's id (32 hex digits) instead of MACHINE and FILEID.")
@pass_lcc
def path(lcc: Lcc, machine: int | None, fileid: int | None, docid: str | None) -> None:
    """Print the path of a content file.

    It is CONTENT_DIR/MACHINE/millions/thousands/FILEID.

    \b
    lcc path 1 4711
    lcc path --docid 0123456789abcdef0123456789abcdef
    """  # noqa: D301
    _ = lcc.home
    if docid is not None and machine is None:
        machine, fileid = _file_of(lcc, docid)
    elif docid is not None or machine is None or fileid is None:
        raise click.UsageError("give MACHINE and FILEID, or --docid")
    assert fileid is not None
    click.echo(lcc.path_of()(machine, fileid))


def _file_of(lcc: Lcc, docid: str) -> tuple[int, int]:
    try:
        key = bytes.fromhex(docid)
    except ValueError:
        key = b""
    if len(key) != _DOCID_BYTES:
        raise click.BadParameter("expected 32 hex digits", param_hint="--docid")
    with lcc.store() as store, store.read() as tx:
        row = tx.cached([key]).get(key)
    if row is None:
        raise Failure(f"there is no document {docid}; `lcc explain {docid}` tells why")
    return row.fetched_machineid, row.fetched_fileid
