"""What was found becomes ACIs: one of each owner and version, recorded once (decision 150)."""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import PurePosixPath
from typing import Any
from urllib.parse import urlsplit

from lcc_scrapy.annotation.jobs import Job, docbase_of
from lcc_scrapy.annotation.messages import Found
from lcc_scrapy.db.records import ACI_NUMBER
from lcc_scrapy.db.tx import Tx
from lcc_scrapy.domain.acis import EXTENSION_MAX, FORMAT_MAX, SUMMARY_MAX, TITLE_MAX, Aci
from lcc_scrapy.domain.urds import Urd

DETAIL_MAX = 256 * 1024
"""Characters of a detail; one that is longer is left out."""

OTHERS_MAX = 100
"""Other URDs of the same owner that a detail names."""


def acis_of(job: Job, found: Iterable[Found], urds: Mapping[int, Urd], now: int) -> list[Aci]:
    """Return one ACI for each owner, not numbered yet; ``now`` in epoch milliseconds.

    Findings of URDs that were changed or removed meanwhile do not count.
    """
    of_owner: dict[str, list[tuple[Urd, Found]]] = {}
    for one in found:
        urd = urds.get(one.urdid)
        if urd is not None and urd.revision == one.revision and not urd.has_expired(now):
            of_owner.setdefault(urd.owner, []).append((urd, one))
    return [_aci(job, its, now) for _, its in sorted(of_owner.items())]


def _aci(job: Job, found: Sequence[tuple[Urd, Found]], now: int) -> Aci:
    ranked = sorted(found, key=lambda one: (-one[1].relevance, one[0].urdid))
    row, (urd, best) = job.row, ranked[0]
    return Aci(
        urlkey=row.urlkey,
        seq=row.seq,
        owner=urd.owner,
        number=0,
        urdid=urd.urdid,
        pid=row.pid,
        extension=_extension(row.furl),
        format=_kept((row.served_type or row.mimetype).partition("/")[2], FORMAT_MAX),
        relevance=best.relevance,
        updatetime=row.fetched_time * 1000,
        filesize=row.fetched_len,
        uri=row.furl,
        urgency=max(one.urgency for one, _ in found),
        docbase=docbase_of(row),
        expired=False,
        title=_kept(best.title, TITLE_MAX),
        summary=_kept(best.summary, SUMMARY_MAX),
        detail=_detail([one for _, one in ranked]),
        made=now,
    )


def _extension(url: str) -> str:
    """Return the ending of a URL's last segment, without the dot; "" = it has none."""
    return _kept(PurePosixPath(urlsplit(url).path).suffix[1:].lower(), EXTENSION_MAX)


def _detail(ranked: Sequence[Found]) -> str:
    """Return the detail of the best finding, with what only others have, and which those are, as JSON."""
    merged: dict[str, Any] = {}
    for one in ranked:
        merged = {**one.detail, **merged}
    if len(ranked) > 1:
        merged["others"] = [
            {"urdid": one.urdid, "relevance": one.relevance} for one in ranked[1 : OTHERS_MAX + 1]
        ]
    text = json.dumps(merged, separators=(",", ":"))
    return text if len(text) <= DETAIL_MAX else "{}"


def _kept(text: str, most: int) -> str:
    """Return a text as every database takes it."""
    return text.replace("\0", "").encode("utf-8", "replace").decode()[:most]


def record(tx: Tx, acis: Sequence[Aci]) -> list[Aci]:
    """Number and add ACIs, those that tell an owner of a content of which he was not told; returns these."""
    told = tx.told_contents({one.urlkey for one in acis}, {one.docbase for one in acis}) if acis else set()
    new = [one for one in acis if (one.urlkey, one.owner, one.docbase) not in told]
    if not new:
        return []
    first = tx.take(ACI_NUMBER, len(new))
    numbered = [replace(one, number=first + at) for at, one in enumerate(new)]
    tx.put_acis(numbered)
    return numbered
