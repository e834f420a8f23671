"""The report of lcccp on a delivery: messages on stderr, or one JSON object on stdout."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from typing import Dict

from lcc_scrapy.domain.printable import printable
from lcc_scrapy.push import refusals
from lcc_scrapy.push.command import Notes, Status, megabytes
from lcc_scrapy.push.delivery import Outcome
from lcc_scrapy.wire.messages import (
    UNLIMITED,
    InitAccepted,
    InitRejected,
    Quota,
    SetAccepted,
    UrlError,
)

JSON = Dict[str, object]

_TITLES = (
    ("not found at the site", frozenset({404, 410})),
    ("fetched, but not as declared", frozenset({607, 608})),
    ("not taken after all", refusals.CODES),
)
_NOT_FETCHED = "not fetched"


def tell(outcome: Outcome, notes: Notes, errors_shown: int) -> None:
    """Report on stderr: the outcome, refused URLs, errors of earlier fetches, and what the LCC wants."""
    if isinstance(outcome.login, InitAccepted):
        _tell_login(outcome.login, notes, errors_shown)
    if outcome.text:
        notes.warn(outcome.text)
    for line in error_lines("refused", outcome.errors, outcome.error_count, errors_shown):
        notes.warn(line)
    _tell_standing(outcome, notes, errors_shown)
    _tell_again(outcome, notes)
    if isinstance(outcome.verdict, SetAccepted):
        dry = outcome.verdict.would_remove is not None
        notes.tell(f"{'would be accepted' if dry else 'accepted'}: {outcome.verdict.received:,} URLs")
    elif not outcome.text:
        notes.tell("nothing to send")


def _tell_standing(outcome: Outcome, notes: Notes, errors_shown: int) -> None:
    """Name what is still refused, unless just that was refused this time."""
    standing = outcome.standing
    if standing.count > outcome.error_count:
        for line in error_lines("still refused", standing.first, standing.count, errors_shown):
            notes.warn(line)
    if standing.count:
        notes.warn("what is refused stays untold, and is sent again once roots, types or quota have changed")


def _tell_again(outcome: Outcome, notes: Notes) -> None:
    """Say what becomes of URLs that failed, to whoever was just shown some."""
    if outcome.standing.again:
        hours = ", ".join(str(seconds // 3600) for seconds in refusals.AGAIN_AFTER)
        shown = isinstance(outcome.login, InitAccepted) and outcome.login.errors
        (notes.warn if shown else notes.detail)(
            f"{outcome.standing.again:,} URLs that failed are sent again by runs after {hours} hours, "
            "unless they change before"
        )


def earlier_error_lines(login: InitAccepted, shown: int) -> Iterator[str]:
    """Write the errors since the login before, by what became of the URLs."""
    found: dict[str, list[UrlError]] = {}
    for error in login.errors:
        title = next((title for title, codes in _TITLES if error.code in codes), _NOT_FETCHED)
        found.setdefault(title, []).append(error)
    for title, errors in found.items():
        yield from error_lines(f"{title}, of earlier sets", errors, len(errors), shown)
        shown = max(0, shown - len(errors))
    if login.error_count > len(login.errors):
        yield f"{login.error_count - len(login.errors):,} more errors since the last login are not listed"


def _tell_login(login: InitAccepted, notes: Notes, errors_shown: int) -> None:
    for line in earlier_error_lines(login, errors_shown):
        notes.warn(line)
    notes.detail(f"login {login.seq}; the one before came from {login.last_conn_ip or 'nowhere'}")
    for line in quota_lines(login.quota):
        notes.detail(line)
    notes.detail(f"{login.processing:,} URLs wait to be fetched")


def error_lines(title: str, errors: Sequence[UrlError], count: int, shown: int) -> Iterator[str]:
    """Write URL errors, the first ``shown`` of them one by one."""
    if count:
        yield f"{count:,} URLs {title}:"
    for error in errors[:shown]:
        yield f"  {error.code} {error.text}  {error.url or error.attributes.get('curl', '')}"
    if count > min(shown, len(errors)):
        yield f"  … and {count - min(shown, len(errors)):,} more"


def quota_lines(quota: Quota) -> Iterator[str]:
    """Write the quota in words."""
    yield f"files: {quota.files_used:,} used, {_amount(quota.files_free)} free"
    free = "unlimited" if quota.space_free >= UNLIMITED else megabytes(quota.space_free)
    yield f"space: {megabytes(quota.space_used)} used, {free} free"
    yield f"full sets: {_amount(quota.fullset_allowed)} left"
    if quota.fullset_wanted:
        yield f"the LCC wants a full set: {quota.fullset_reason or 'no reason given'}"


def _amount(number: int) -> str:
    return "unlimited" if number >= UNLIMITED else f"{number:,}"


def print_check(login: InitAccepted, errors_shown: int) -> None:
    """Print what ``--check`` found on stdout."""
    print(
        f"login accepted: number {login.seq}; the one before came from {printable(login.last_conn_ip) or '-'}"
    )
    print(f"LCC: {printable(login.lcc_id) or '-'}")
    print(f"mimetypes: {printable(' '.join(login.mimetypes)) or '-'}")
    for line in quota_lines(login.quota):
        print(printable(line))
    print(f"waiting to be fetched: {login.processing:,}")
    print(f"errors since the last login: {login.error_count:,}")
    for line in list(error_lines("", login.errors, login.error_count, errors_shown))[1:]:
        print(printable(line))


def print_dry_run(verdict: SetAccepted) -> None:
    """Print what a dry run found on stdout."""
    print(f"received {verdict.received}\nwould_remove {verdict.would_remove or 0}")
    if verdict.would_hold:
        print(f"would_hold {verdict.would_hold}")


def as_json(outcome: Outcome) -> str:
    """Write the outcome as one JSON object; the fields are described in docs/provider-commands.md."""
    result: JSON = {
        "status": int(outcome.status),
        "outcome": _word(outcome),
        "message": outcome.text,
        "set_id": outcome.set_id or None,
        "sent": outcome.sent,
        "left_out": outcome.left_out,
        "error_count": outcome.error_count,
        "refused": outcome.standing.count,
        "again": outcome.standing.again,
        "errors": [_error(error) for error in outcome.errors],
    }
    if outcome.verdict is not None:
        result.update(asdict(outcome.verdict))
    if isinstance(outcome.login, InitAccepted):
        result["login"] = _login(outcome.login)
    elif outcome.login is not None:
        result.update(asdict(outcome.login))
    return json.dumps(result, ensure_ascii=False)


def _word(outcome: Outcome) -> str:
    if outcome.verdict is not None:
        return "accepted" if isinstance(outcome.verdict, SetAccepted) else "set_rejected"
    if isinstance(outcome.login, InitRejected):
        return "login_rejected"
    return "nothing_sent" if outcome.status in {Status.DONE, Status.URL_ERRORS} else "failed"


def _login(login: InitAccepted) -> JSON:
    quota = login.quota
    return {
        "seq": login.seq,
        "last_connect_ip": login.last_conn_ip,
        "lcc": login.lcc_id,
        "mimetypes": list(login.mimetypes),
        "files": {"used": quota.files_used, "free": _limit(quota.files_free)},
        "space": {"used": quota.space_used, "free": _limit(quota.space_free)},
        "full_sets_left": _limit(quota.fullset_allowed),
        "full_set_wanted": quota.fullset_reason or True if quota.fullset_wanted else False,
        "processing": login.processing,
        "error_count": login.error_count,
        "errors": [_error(error) for error in login.errors],
    }


def _limit(number: int) -> int | None:
    return None if number >= UNLIMITED else number


def _error(error: UrlError) -> JSON:
    return {"code": error.code, "text": error.text, "url": error.url, "attributes": dict(error.attributes)}


def full_set_wanted(outcome: Outcome) -> str:
    """Return why the LCC wants a full set; "" if it does not."""
    if not isinstance(outcome.login, InitAccepted) or not outcome.login.quota.fullset_wanted:
        return ""
    return outcome.login.quota.fullset_reason or "no reason given"
