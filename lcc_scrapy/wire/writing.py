"""Writing the messages as XML: UTF-8 bytes, one element a line, control characters made visible."""

from __future__ import annotations

import re
from collections.abc import Mapping

from lcc_scrapy.wire.messages import (
    NAMESPACE,
    PROTOCOL_VERSION,
    Init,
    InitAccepted,
    InitRejected,
    Quota,
    SetAccepted,
    SetRejected,
    SetStart,
    UrlError,
)

NOT_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
"""A character that no XML 1.0 document can hold, not even as a reference."""
_ESCAPES = str.maketrans(
    {"&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;", "\t": "&#9;", "\n": "&#10;", "\r": "&#13;"}
)


def escape(text: str) -> str:
    """Make text fit for an attribute or element; what XML cannot carry becomes U+FFFD."""
    return NOT_XML.sub("\ufffd", text).translate(_ESCAPES)


def element(name: str, attributes: Mapping[str, object] = {}, text: str | None = None) -> str:
    """Write one element; attributes that are None are left out."""
    pairs = "".join(
        f' {key}="{escape(str(value))}"' for key, value in attributes.items() if value is not None
    )
    return f"<{name}{pairs}/>" if text is None else f"<{name}{pairs}>{escape(text)}</{name}>"


# --- the provider's side -------------------------------------------------------------------------


def init(message: Init) -> bytes:
    """Write the login of dialect A."""
    provider = element("provider", {"id": message.provider_id, "passwd": message.password})
    opening = f'<lococa:init xmlns:lococa="{NAMESPACE}" version="{message.version or PROTOCOL_VERSION}">'
    return f"{opening}\n  {provider}\n</lococa:init>\n".encode()


def set_start(message: SetStart) -> bytes:
    """Write the opening tag of a set."""
    attributes = {
        "set": "full" if message.full else "partial",
        "urlprefix": message.urlprefix or None,
        "id": message.set_id or None,
        "ifabsent": "yes" if message.ifabsent else None,
        "outside": "drop" if message.drop_outside else None,
        "dryrun": "yes" if message.dryrun else None,
    }
    return element("lococa:set", attributes).replace("/>", ">\n").encode()


def url(attributes: Mapping[str, str]) -> bytes:
    """Write one URL element of a set."""
    return (element("url", attributes) + "\n").encode()


def set_end() -> bytes:
    """Write the closing tag of a set."""
    return b"</lococa:set>\n"


# --- the server's side ---------------------------------------------------------------------------


def init_accepted(message: InitAccepted) -> bytes:
    """Write the whole answer to a good login (seed 003 section 13, "Connection Success")."""
    revision = f' revision="{escape(message.revision)}"' if message.revision else ""
    lines = [
        f'<lococa:init_accepted version="{PROTOCOL_VERSION}" lcc="{escape(message.lcc_id)}"{revision}>',
        "  " + element("connect_info", {"seq": message.seq, "lastConnectIP": message.last_conn_ip}),
        *("  " + element("mime", text=pattern) for pattern in message.mimetypes),
        *_quota(message.quota),
        f'  <processing_status errors="{message.error_count}" processing="{message.processing}">',
        "    <errors>",
        *("      " + _url_error(error) for error in message.errors),
        "    </errors>",
        "  </processing_status>",
        "</lococa:init_accepted>",
        "",
    ]
    return "\n".join(lines).encode()


def _quota(quota: Quota) -> list[str]:
    fullset = {
        "allowed": quota.fullset_allowed,
        "wanted": "yes" if quota.fullset_wanted else "no",
        "reason": quota.fullset_reason or None,
    }
    return [
        "  <quota>",
        "    " + element("files", {"used": quota.files_used, "free": quota.files_free}),
        "    " + element("space", {"used": quota.space_used, "free": quota.space_free}),
        "    " + element("fullset", fullset),
        "  </quota>",
    ]


def _url_error(error: UrlError) -> str:
    submitted = {key: value for key, value in error.attributes.items() if key not in {"code", "url"}}
    return element("url", {"code": error.code, "url": error.url, **submitted}, text=error.text)


def init_rejected(message: InitRejected) -> bytes:
    """Write a refused login."""
    reason = element(
        "reason", {"code": message.code, "retry-after": message.retry_after or None}, message.reason
    )
    return f"<lococa:init_rejected>\n  {reason}\n</lococa:init_rejected>\n".encode()


def no_set_result() -> bytes:
    """Close the answer to a login that brings no set: nothing follows it."""
    return b""


def set_result_start() -> bytes:
    """Open the answer to a set; URL errors may follow while the set still arrives."""
    return b"<lococa:set_result>\n  <errors>\n"


def url_error(error: UrlError) -> bytes:
    """Write one URL error inside the ``errors`` container."""
    return f"    {_url_error(error)}\n".encode()


def set_result_end(result: SetAccepted | SetRejected) -> bytes:
    """Close the answer to a set."""
    if isinstance(result, SetAccepted):
        counts = {"would_remove": result.would_remove, "would_hold": result.would_hold}
        verdict = element("set_accepted", {"received": result.received, **counts})
    else:
        attributes = {"code": result.code, "retry-after": result.retry_after or None}
        verdict = element("set_rejected", attributes, result.reason)
    return f"  </errors>\n  {verdict}\n</lococa:set_result>\n".encode()
