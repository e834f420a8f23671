"""What clients send: JSON of few short texts, and who they are."""

import binascii
import json
import re
from base64 import b64decode
from collections.abc import Mapping
from typing import Any

from fastapi import Request

from lcc_scrapy.apps.registration.service import NotKnown
from lcc_scrapy.apps.registration.steps import Credentials
from lcc_scrapy.domain.errors import BadField
from lcc_scrapy.domain.notations import Networks
from lcc_scrapy.listeners.peers import neighbourhood
from lcc_scrapy.web.forms import checked, shown
from lcc_scrapy.web.sharing import client_address

BODY_BYTES = 16 * 1024
"""Of a request."""

FLAGS = frozenset({"mail"})
"""Fields that are true or false in JSON, and present or not in a form."""

_PID_MAX = 10**18 - 1
_BASIC = re.compile(r"basic +([A-Za-z0-9+/=]+)", re.IGNORECASE)


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
    return checked({name: _text(name, value) for name, value in given.items()}, known)


def _text(name: str, value: Any) -> str:
    if name in FLAGS and isinstance(value, bool):
        return "yes" if value else ""
    if value is None:
        return ""
    if isinstance(value, bool) or not isinstance(value, str | int) or name in FLAGS:
        raise BadField(shown(name), "send true or false" if name in FLAGS else "send a text")
    return str(value)


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
