"""What becomes of a document that comes while it waits for the annotation engine (seed 002 section 6)."""

from dataclasses import replace

from lcc_scrapy.domain.acis import Waiting

URDS_MOST = 50
"""URDs that a waiting document names one by one; more are all of them: what was found before is kept out."""


def merged(waiting: Waiting | None, new: Waiting) -> Waiting:
    """Return the one row of a document that waits already: the newer version, at the older place.

    It is for all that either was for. What changed is told since the earlier of both. The row is another one
    in any case: what a processor finds meanwhile without knowing of it does not count.
    """
    if waiting is None:
        return new
    base = min((one for one in (waiting.base, new.base) if one), default=0)
    urdids = named({*urds_of(waiting), *urds_of(new)}) if waiting.urdids and new.urdids else ""
    # of the same version, only the place can tell that it is to be compared with new URDs
    position = new.position if new.seq == waiting.seq else waiting.position
    seq = max(waiting.seq, new.seq)
    return replace(new, seq=seq, position=position, since=waiting.since, urdids=urdids, base=base)


def urds_of(waiting: Waiting) -> list[int]:
    """Return the URDs that a document waits for; empty = all."""
    return [int(one) for one in waiting.urdids.split()]


def named(urdids: set[int]) -> str:
    """Return URDs as a waiting document names them; empty = all."""
    return " ".join(map(str, sorted(urdids))) if len(urdids) <= URDS_MOST else ""
