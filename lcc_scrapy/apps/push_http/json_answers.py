"""Answers to a push as one JSON object, written piece by piece as the set is read."""

import json
from typing import Any

from lcc_scrapy.wire.messages import (
    UNLIMITED,
    InitAccepted,
    InitRejected,
    SetAccepted,
    SetRejected,
    UrlError,
)

_encode = json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode


class JsonAnswers:
    """The ``uns.dialect.Answers`` of one conversation.

    ``{"login": {…}, "errors": [{"code": …, "text": …, "url": …, "sent": {…}}], "accepted": {"received": 1}}``
    and instead of ``accepted``, ``rejected`` (``code``, ``reason``, ``retry_after``), which stands alone when
    the login is refused.
    """

    def __init__(self) -> None:
        self._separator = ""

    def init_accepted(self, message: InitAccepted) -> bytes:
        """Write the answer to a good login."""
        return f'{{"login":{_encode(_login(message))}'.encode()

    def init_rejected(self, message: InitRejected) -> bytes:
        """Write a refused login; it is the whole answer."""
        return f'{{"rejected":{_encode(_rejection(message))}}}\n'.encode()

    def no_set_result(self) -> bytes:
        """Close the answer to a login that brings no set."""
        return b"}\n"

    def set_result_start(self) -> bytes:
        """Open the answer to a set."""
        return b',"errors":['

    def url_error(self, error: UrlError) -> bytes:
        """Write one URL error of a set."""
        written = f"{self._separator}\n{_encode(_error(error))}"
        self._separator = ","
        return written.encode()

    def set_result_end(self, result: SetAccepted | SetRejected) -> bytes:
        """Close the answer to a set."""
        accepted = isinstance(result, SetAccepted)
        told = _acceptance(result) if isinstance(result, SetAccepted) else _rejection(result)
        return f'],"{"accepted" if accepted else "rejected"}":{_encode(told)}}}\n'.encode()


def _login(message: InitAccepted) -> dict[str, Any]:
    quota = message.quota
    return {
        "lcc": message.lcc_id,
        "seq": message.seq,
        "last_connect_ip": message.last_conn_ip,
        "revision": message.revision,
        "mimetypes": message.mimetypes,
        "files": {"used": quota.files_used, "free": _free(quota.files_free)},
        "space": {"used": quota.space_used, "free": _free(quota.space_free)},
        "full_sets": {
            "allowed": _free(quota.fullset_allowed),
            "wanted": quota.fullset_wanted,
            "reason": quota.fullset_reason,
        },
        "processing": message.processing,
        "error_count": message.error_count,
        "errors": [_error(one) for one in message.errors],
    }


def _free(amount: int) -> int | None:
    """Return an amount, None where there is no limit."""
    return None if amount == UNLIMITED else amount


def _error(error: UrlError) -> dict[str, Any]:
    return {"code": error.code, "text": error.text, "url": error.url, "sent": dict(error.attributes)}


def _acceptance(result: SetAccepted) -> dict[str, int]:
    counts = {
        "received": result.received,
        "would_remove": result.would_remove,
        "would_hold": result.would_hold,
    }
    return {name: count for name, count in counts.items() if count is not None}


def _rejection(result: InitRejected | SetRejected) -> dict[str, Any]:
    later = {"retry_after": result.retry_after} if result.retry_after else {}
    return {"code": result.code, "reason": result.reason, **later}
