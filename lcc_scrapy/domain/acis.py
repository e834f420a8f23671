"""Annotated Cached Information: that one version of a document matters to one owner (seed 002, Table 6)."""

from dataclasses import dataclass
from enum import StrEnum

SUMMARY_MAX = 2000
"""Characters of a summary."""

TITLE_MAX = 255
EXTENSION_MAX = 16
FORMAT_MAX = 64


class Channel(StrEnum):
    """How an owner is told."""

    MAIL = "mail"
    WEBHOOK = "webhook"


class AlertState(StrEnum):
    """What became of an alert."""

    WAITING = "waiting"
    SENT = "sent"
    GIVEN_UP = "given up"


@dataclass(frozen=True, slots=True)
class Aci:
    """One row of ``aci``; its key is (``urlkey``, ``seq``, ``owner``). Times are epoch milliseconds.

    ``seq`` is the place in the feed of that version of the document. ``number`` rises in the order of commits
    and is given out once: readers go on behind it. ``urdid`` is the URD with the highest relevance.
    ``updatetime`` is when the document was fetched, ``made`` when it was annotated. ``docbase`` names the
    content: ``machine/file``. ``expired``: the document has another content now, or is gone. ``detail`` is
    JSON: keywords found, changes, elements of others.
    """

    urlkey: bytes
    seq: int
    owner: str
    number: int
    urdid: int
    pid: int
    extension: str
    format: str
    relevance: int
    updatetime: int
    filesize: int
    uri: str
    urgency: int
    docbase: str
    expired: bool
    title: str
    summary: str
    detail: str
    made: int

    @property
    def docid(self) -> str:
        """The key of the document as 32 hex digits."""
        return self.urlkey.hex()


@dataclass(frozen=True, slots=True)
class Waiting:
    """A document that waits for a processor (table ``aequeue``), once, whatever it waits for.

    ``urlkey`` and ``seq`` are those of the document, ``since`` is when it came (epoch milliseconds).
    ``urdids`` names the URDs it is for, separated by blanks; empty = all that have it in scope.
    ``base`` is the place in the feed up to which its changes were annotated before; 0 = no changes are told.
    """

    urlkey: bytes
    seq: int
    position: int
    since: int
    urdids: str
    base: int = 0


@dataclass(frozen=True, slots=True)
class Recipient:
    """How one owner is told (table ``recipients``). Times are epoch seconds.

    ``address`` is a mail address or an https URL; ``format`` is ``html``, ``text``, ``xml`` or ``json``.
    ``secret`` signs webhooks. ``digest``: all alerts wait for the daily digest, whatever their urgency.
    """

    recipientid: int
    owner: str
    channel: Channel
    address: str
    format: str
    digest: bool
    secret: str
    off: bool
    created: int
    refused: str


@dataclass(frozen=True, slots=True)
class Alert:
    """That one recipient is told of one ACI (table ``alerts``), by its number. Times are epoch milliseconds.

    Nothing is tried before ``not_before``; ``deadline`` is what the service level promises; ``sent`` 0 = not
    yet. ``digest`` is the moment of the daily digest that it waits for, 0 = it is told alone.
    """

    number: int
    recipientid: int
    state: AlertState
    tries: int
    not_before: int
    deadline: int
    sent: int
    digest: int = 0
