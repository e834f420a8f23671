"""What clients send: JSON or a form of few short texts, and who they are."""

import binascii
import json
import re
from base64 import b64decode
from collections.abc import Mapping
from typing import Any
from urllib.parse import parse_qsl, urlsplit

from fastapi import Request

from lcc_scrapy.domain.errors import LccError
from lcc_scrapy.domain.notations import Networks
from lcc_scrapy.domain.registration import BadField
from lcc_scrapy.listeners.peers import neighbourhood
from lcc_scrapy.registration.service import NotKnown
from lcc_scrapy.registration.steps import Credentials
from lcc_scrapy.web.sharing import client_address

BODY_BYTES = 16 * 1024
"""Of a request."""

FLAGS = frozenset({"mail"})
"""Fields that are true or false in JSON, and present or not in a form."""

_FIELDS_MAX = 32
_TEXT_MAX = 4096
_PID_MAX = 10**18 - 1
_UNUSABLE = re.compile(r"[\x00-\x1f\x7f\ud800-\udfff]")
_BASIC = re.compile(r"basic +([A-Za-z0-9+/=]+)", re.IGNORECASE)


class CrossSite(LccError):
    """A page of another site sent this form."""

    def __init__(self) -> None:
        super().__init__("this form was sent by a page of another site: open the registration page itself")


def check_origin(request: Request) -> None:
    """Refuse what a browser sends for a page of another site; raises ``CrossSite``.

    Browsers say so in Sec-Fetch-Site, or, over plain HTTP, where a form came from in Origin.
    """
    told = request.headers.get("sec-fetch-site")
    if told is not None:
        if told not in {"same-origin", "none"}:
            raise CrossSite
        return
    origin = request.headers.get("origin")
    if origin is not None and _netloc(origin) != request.headers.get("host", "").lower():
        raise CrossSite


def _netloc(origin: str) -> str | None:
    try:
        return urlsplit(origin).netloc.lower() or None
    except ValueError:
        return None


async def read_json(request: Request, known: frozenset[str]) -> dict[str, str]:
    """Read a JSON object of texts and numbers; an empty body is an empty one. Raises ``BadField``."""
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    body = await request.body()
    if body and kind != "application/json":
        raise BadField("Content-Type", "send application/json")
    return json_fields(body, known)


def json_fields(body: bytes, known: frozenset[str]) -> dict[str, str]:
    """Return the fields of a JSON object; raises ``BadField``."""
    try:
        given = json.loads(body) if body else {}
    except (ValueError, RecursionError):
        raise BadField("body", "this is no JSON") from None
    if not isinstance(given, dict):
        raise BadField("body", 'send an object, as {"site": "https://www.example.org/"}')
    return _checked({name: _text(name, value) for name, value in given.items()}, known)


def _text(name: str, value: Any) -> str:
    if name in FLAGS and isinstance(value, bool):
        return "yes" if value else ""
    if value is None:
        return ""
    if isinstance(value, bool) or not isinstance(value, str | int) or name in FLAGS:
        raise BadField(_shown(name), "send true or false" if name in FLAGS else "send a text")
    return str(value)


async def read_form(request: Request, known: frozenset[str]) -> dict[str, str]:
    """Read a form as browsers send it; raises ``BadField``."""
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind != "application/x-www-form-urlencoded":
        raise BadField("Content-Type", "send application/x-www-form-urlencoded")
    return form_fields(await request.body(), known)


def form_fields(body: bytes, known: frozenset[str]) -> dict[str, str]:
    """Return the fields of a form; raises ``BadField``."""
    try:
        text = body.decode("ascii")
        pairs = parse_qsl(text, keep_blank_values=True, errors="strict", max_num_fields=_FIELDS_MAX)
    except ValueError:
        raise BadField("body", "this is no form") from None
    given = dict(pairs)
    if len(given) != len(pairs):
        raise BadField("body", "a field is there twice")
    return _checked(given, known)


def _checked(given: Mapping[str, str], known: frozenset[str]) -> dict[str, str]:
    for name, value in given.items():
        if name not in known:
            raise BadField(_shown(name), f"there is no such field here; there are {', '.join(sorted(known))}")
        if len(value) > _TEXT_MAX:
            raise BadField(name, f"more than {_TEXT_MAX} characters")
        if _UNUSABLE.search(value):
            raise BadField(name, "write one line without control characters")
    return dict(given)


def _shown(name: str) -> str:
    return ascii(name)[1:-1][:60]


def pid_of(text: str) -> int:
    """Read a provider's id; raises ``BadField``."""
    digits = text.strip()
    if not (digits.isascii() and digits.isdigit() and len(digits) <= len(str(_PID_MAX)) and int(digits)):
        raise BadField("pid", "write the provider id that you were given, a number")
    return int(digits)


def credentials(request: Request, pid: int, given: Mapping[str, str]) -> Credentials:
    """Return the password of a request: from its body, or as Basic authentication for the same id.

    Raises ``NotKnown`` where there is none.
    """
    password = given.get("password", "").strip()
    match = _BASIC.fullmatch(request.headers.get("authorization", "").strip())
    if match is not None:
        try:
            user, _, shown = b64decode(match[1], validate=True).decode().partition(":")
        except (binascii.Error, UnicodeDecodeError):
            raise NotKnown from None
        if user != str(pid) or (password and password != shown):
            raise NotKnown
        password = shown
    if not password:
        raise NotKnown
    return Credentials(pid, password)


def address_of(request: Request, proxies: Networks) -> str:
    """Return what counts as one client: its address, an IPv6 /64 as a whole."""
    told = ",".join(request.headers.getlist("x-forwarded-for"))
    peer = request.client.host if request.client else ""
    return neighbourhood(client_address(peer, told.split(",") if told else [], proxies))
