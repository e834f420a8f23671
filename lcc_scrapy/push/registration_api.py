"""The registration API of an LCC, as ``lcc-push init`` uses it."""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field

from lcc_scrapy.push import servers, web
from lcc_scrapy.push.command import Status, Stop
from lcc_scrapy.push.http_reader import HttpReader
from lcc_scrapy.push.link import Lost, Unreachable

PATH = "/v1/registrations"
ANSWER_MAX = 64 * 1024
SHOWN = 500
"""Characters of what the LCC says that are shown."""
_SECRET = re.compile(r"[!-~]{8,200}")
_FILE = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,80}\.txt")
_PID = re.compile(r"[1-9]\d{0,18}")
_CREATED, _OK, _WAITS, _CONFLICT = 201, 200, 202, 409
_STATUSES = {
    400: Status.USAGE, 422: Status.USAGE, 401: Status.LOGIN_REFUSED, 403: Status.LOGIN_REFUSED,
    409: Status.REFUSED, 410: Status.LOGIN_REFUSED,
    429: Status.TRY_LATER, 500: Status.TRY_LATER, 502: Status.TRY_LATER, 503: Status.TRY_LATER,
    504: Status.TRY_LATER,
}  # fmt: skip


class Gone(Exception):
    """The LCC does not know this registration (any more)."""


@dataclass(frozen=True)
class Pair:
    """What a registration gives: the proof file has ``secret`` as its body."""

    pid: str
    password: str = field(repr=False)
    secret: str = field(repr=False)
    file: str

    @property
    def is_whole(self) -> bool:
        """Tell whether it looks like a registration: what comes from a network or a file is checked."""
        checks = ((_PID, self.pid), (_SECRET, self.password), (_SECRET, self.secret), (_FILE, self.file))
        return all(pattern.fullmatch(text) for pattern, text in checks)


@dataclass(frozen=True)
class Active:
    """An activation. ``waits``: an operator has to approve.

    ``server``: where to push, as it stands in a configuration; "" = not said, or not in a safe way, which
    ``unsafe`` shows.
    """

    root: str = ""
    server: str = ""
    unsafe: str = ""
    waits: bool = False


class Api:
    """The API below a URL; each verb raises `Stop`."""

    def __init__(self, base: web.HttpUrl, dial: web.Dial) -> None:
        self._base = base
        self._dial = dial

    def register(self, wanted: Mapping[str, str]) -> Pair:
        """Register a site."""
        reader, found = self._post("", wanted, {})
        if reader.status != _CREATED:
            raise self._refusal(reader, found)
        pair = Pair(*(str(found.get(name, "")) for name in ("pid", "password", "secret", "file")))
        if not pair.is_whole:
            raise Stop(Status.UNAVAILABLE, f"{self._base}: what answers there takes no registrations")
        return pair

    def activate(self, pair: Pair, folder: str) -> Active:
        """Say that the file is there; raises `Gone` when the registration expired."""
        credentials = base64.b64encode(f"{pair.pid}:{pair.password}".encode()).decode()
        headers = {"Authorization": f"Basic {credentials}"}
        reader, found = self._post(f"/{pair.pid}/activate", {"folder": folder}, headers)
        if reader.status in {401, 404, 410}:
            raise Gone
        if reader.status == _CONFLICT and found.get("error") == "already-active":
            return Active(folder)
        if reader.status not in {_OK, _WAITS}:
            raise self._refusal(reader, found)
        root = str(found.get("root", folder))[:SHOWN]
        return Active(root, *_place(found.get("push"), self._base), waits=reader.status == _WAITS)

    def _post(
        self, path: str, body: Mapping[str, str], headers: Mapping[str, str]
    ) -> tuple[HttpReader, dict[str, object]]:
        url = web.HttpUrl(
            self._base.scheme, self._base.host, self._base.port, self._base.path.rstrip("/") + PATH + path
        )
        headers = {"Content-Type": "application/json", "Accept": "application/json", **headers}
        request = web.Request(url, "POST", headers, json.dumps(body).encode())
        try:
            reader, data = web.read(request, self._dial, ANSWER_MAX)
        except Unreachable as error:
            raise Stop(Status.UNAVAILABLE, str(error)) from None
        except Lost as error:
            raise Stop(Status.TRY_LATER, f"{error}; run the same command again") from None
        return reader, _object(data)

    def _refusal(self, reader: HttpReader, found: Mapping[str, object]) -> Stop:
        said = str(found.get("detail") or found.get("title") or "")[:SHOWN]
        status = _STATUSES.get(reader.status, Status.UNAVAILABLE)
        if status is Status.UNAVAILABLE:
            said = f"what answers there takes no registrations{said and ': ' + said}"
        return Stop(status, f"{self._base}: HTTP {reader.said}: {said or 'no reason given'}")


def _object(data: bytes) -> dict[str, object]:
    try:
        found = json.loads(data)
    except (ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}


def _place(push: object, lcc: web.HttpUrl) -> tuple[str, str]:
    """Return where to push, of what the LCC names: over HTTP, else its socket; and what it names instead."""
    named = [push.get("url"), *_listed(push.get("uns"))] if isinstance(push, dict) else []
    found = [text for text in named if isinstance(text, str) and text]
    for text in found:
        with suppress(ValueError):
            return servers.named_by(lcc, text), ""
    return "", " ".join(found)[:SHOWN]


def _listed(found: object) -> list[object]:
    return found if isinstance(found, list) else []
