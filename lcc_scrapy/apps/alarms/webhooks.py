"""Webhooks of the operator's: alarms in the forms that chats and push services take. Blocking."""

import asyncio
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote, urlsplit

from lcc_scrapy.apps.alarms.rules import Notice
from lcc_scrapy.domain.errors import ConfigurationError, LccError, UrlRefused
from lcc_scrapy.domain.roots import HttpUrl
from lcc_scrapy.http.answer import HttpError
from lcc_scrapy.http.outgoing import NoConnection, Outgoing, tls_context, why
from lcc_scrapy.http.request import Origin, Request

TIMEOUT = 20.0
"""Seconds for which a webhook is waited for."""

WEBHOOKS_MAX = 20

_OK = range(200, 300)


class NotTold(LccError):
    """A channel could not be told now; it is tried again."""


@dataclass(frozen=True, slots=True)
class Message:
    """A request to a webhook."""

    url: str
    body: bytes
    media_type: str = "application/json"
    method: str = "POST"
    headers: tuple[tuple[str, str], ...] = ()


def _as_json(url: str, notice: Notice) -> Message:
    facts = {
        "alarm": notice.rule.value, "state": "on" if notice.on else "off", "at": notice.at, "id": notice.name,
        "title": notice.subject, "text": notice.text,
    }  # fmt: skip
    return Message(url, json.dumps(facts).encode())


def _for_slack(url: str, notice: Notice) -> Message:
    """Slack's incoming webhooks; Mattermost, Rocket.Chat and Discord (``…/slack``) take the same."""
    return Message(url, json.dumps({"text": notice.body.strip()}).encode())


def _for_matrix(url: str, notice: Notice) -> Message:
    """``…/_matrix/client/v3/rooms/ROOM/send/m.room.message?access_token=…`` (client-server API, 10.6.2).

    A repetition has the same transaction id, by which the server knows it.
    """
    parts = urlsplit(url)
    target = parts._replace(path=f"{parts.path.rstrip('/')}/{quote(notice.name)}", query="").geturl()
    token = parts.query.removeprefix("access_token=")
    body = json.dumps({"msgtype": "m.text", "body": notice.body.strip()}).encode()
    return Message(target, body, method="PUT", headers=(("Authorization", f"Bearer {token}"),))


def _for_ntfy(url: str, notice: Notice) -> Message:
    """The topic's URL (docs.ntfy.sh/publish)."""
    headers = (
        ("Title", notice.subject),
        ("Priority", "high" if notice.on else "default"),
        ("Tags", "rotating_light" if notice.on else "white_check_mark"),
    )
    return Message(url, notice.body.encode(), "text/plain; charset=utf-8", headers=headers)


KINDS: dict[str, Callable[[str, Notice], Message]] = {
    "json": _as_json,
    "slack": _for_slack,
    "matrix": _for_matrix,
    "ntfy": _for_ntfy,
}


@dataclass(frozen=True, slots=True)
class WebhookChannel:
    """Calls a URL of the operator's, in one of the ``KINDS``. Redirects are not followed."""

    kind: str
    url: str
    agent: str

    @property
    def name(self) -> str:
        """Kind and host: the rest may be a secret."""
        return f"{self.kind} webhook at {urlsplit(self.url).hostname}"

    def tell(self, notice: Notice) -> None:
        """Call it; any status of 2xx is a success."""
        message = KINDS[self.kind](self.url, notice)
        try:
            status = asyncio.run(_sent(self._request(message, notice.name)))
        except (UrlRefused, HttpError, NoConnection, TimeoutError, ValueError, OSError) as error:
            raise NotTold(why(error)) from None
        if status not in _OK:
            raise NotTold(f"it answers {status}")

    def _request(self, message: Message, name: str) -> Request:
        url = HttpUrl.parse(message.url)
        head = {
            "User-Agent": self.agent,
            "Content-Type": message.media_type,
            "Idempotency-Key": f'"{name}"',
            **dict(message.headers),
        }
        fields = [(name.encode(), value.encode("latin-1", "replace")) for name, value in head.items()]
        target = url.target
        origin = Origin(url.host, url.port, url.scheme == "https")
        return Request(origin, target, fields, message.method, message.body)


async def _sent(request: Request) -> int:
    """Send a request; return the status of its answer, of which nothing more is read."""
    outgoing = Outgoing(1, tls_context())
    try:
        async with asyncio.timeout(TIMEOUT):
            pool = outgoing.pool(private=True)  # the operator's own URLs, often on his own network
            connection = await pool.ask(request, patience=TIMEOUT, deadline=TIMEOUT)
            pool.release(connection)
            return connection.answer.status
    finally:
        await outgoing.close()


def read_webhooks(path: str, agent: str) -> Sequence[WebhookChannel]:
    """Read a file of webhooks; raises ``ConfigurationError`` without showing what may be a secret."""
    try:
        lines = Path(path).read_text(encoding="utf-8").splitlines() if path else []
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigurationError(f"LCC_ALARM_WEBHOOKS_FILE: {path}: {error}") from None
    found = [_webhook(path, number, line, agent) for number, line in enumerate(lines, 1) if _says(line)]
    if len(found) > WEBHOOKS_MAX:
        raise ConfigurationError(f"LCC_ALARM_WEBHOOKS_FILE: more than {WEBHOOKS_MAX} webhooks")
    return found


def _says(line: str) -> bool:
    return bool(line.strip()) and not line.lstrip().startswith("#")


def _webhook(path: str, number: int, line: str, agent: str) -> WebhookChannel:
    kind, _, url = line.strip().partition(" ")
    where = f"LCC_ALARM_WEBHOOKS_FILE: {path}, line {number}"
    if kind not in KINDS:
        raise ConfigurationError(f"{where}: it begins with its kind: {', '.join(KINDS)}")
    try:
        HttpUrl.parse(url.strip())
    except UrlRefused as error:
        raise ConfigurationError(f"{where}: after the kind comes the URL: {error.detail}") from None
    return WebhookChannel(kind, url.strip(), agent)
