"""The last failure or refusal of each URL: rows for ``lcc explain`` and ``lcc retry``."""

import json

from lcc_scrapy.db.records import OUTCOME_FAILED, OUTCOME_REFUSED, OUTCOME_STORED, LastOutcome
from lcc_scrapy.domain.convergence import MISMATCHES
from lcc_scrapy.domain.entries import Declared, Operation, Origin, RefusedUrl, UrlEntry, urlkey
from lcc_scrapy.domain.printable import without_passwords
from lcc_scrapy.domain.queue import QueuedUrl
from lcc_scrapy.domain.retries import may_get_better
from lcc_scrapy.domain.roots import URL_MAX
from lcc_scrapy.domain.timeslots import ALWAYS

TEXT_MAX = 255


def of_fetch(row: QueuedUrl, code: int, text: str, at: int, state: str = OUTCOME_FAILED) -> LastOutcome:
    """Return the outcome of a fetch that failed; ``text`` fits its column."""
    return LastOutcome(
        row.urlkey, row.pid, code, text, at, state, row.curl, row.mimetype, row.furl, _submitted(row)
    )


def of_refusal(pid: int, refused: RefusedUrl, at: int) -> LastOutcome:
    """Return the outcome of a URL that was refused when its provider sent it; passwords in it are blanked."""
    curl, furl = storable(refused.curl), storable(refused.furl)
    key = urlkey(pid, curl or furl, refused.mimetype)
    text = without_passwords(storable(refused.text, TEXT_MAX))
    curl, furl = without_passwords(curl), without_passwords(furl)
    return LastOutcome(key, pid, refused.code, text, at, OUTCOME_REFUSED, curl, refused.mimetype, furl)


def removal_reason(code: int) -> str:
    """Return why a document goes whose fetch failed."""
    return f"answered {code}"


def storable(text: str, most: int = URL_MAX) -> str:
    """Return what every database can hold of a text of a stranger's, ``most`` characters of it."""
    return text.encode("utf-8", "backslashreplace").decode().replace("\0", "\\0")[:most]


def entry_of(outcome: LastOutcome) -> UrlEntry | None:
    """Return the entry that a URL was submitted with; None = it is not known."""
    if outcome.submitted is None:
        return None
    said = json.loads(outcome.submitted)
    return UrlEntry(
        outcome.curl,
        outcome.mimetype,
        Operation.UPDATE,
        outcome.furl,
        said.get("burl"),
        said.get("subtype", ""),
        Declared(said.get("mtime"), said.get("len"), said.get("md5")),
        said.get("timeofday", ALWAYS),
    )


def origin_of(outcome: LastOutcome) -> str:
    """Return the origin of the URL."""
    return str(json.loads(outcome.submitted or "{}").get("origin", Origin.PUSH))


def ended_tries(outcome: LastOutcome, row: QueuedUrl) -> bool:
    """Tell whether all tries of what a pushed row declares were used up: this was their outcome."""
    if outcome.state not in {OUTCOME_FAILED, OUTCOME_STORED} or outcome.submitted is None:
        return False
    if not (outcome.code in MISMATCHES or may_get_better(outcome.code, declared=True)):
        return False
    said = json.loads(outcome.submitted)
    declared = (outcome.furl, said.get("md5"), said.get("len"), said.get("origin", Origin.PUSH))
    return declared == (row.furl, row.md5, row.len, Origin.PUSH)


def _submitted(row: QueuedUrl) -> str:
    """Return what a row says beside its names, without what is not said, as JSON."""
    said = {
        "burl": row.burl,
        "subtype": row.subtype,
        "mtime": row.mtime,
        "len": row.len,
        "md5": row.md5,
        "timeofday": row.timeofday,
        "origin": "" if row.origin == Origin.PUSH else str(row.origin),
    }
    return json.dumps({name: value for name, value in said.items() if value is not None and value != ""})
