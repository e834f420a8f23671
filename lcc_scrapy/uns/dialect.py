"""What differs between the forms of a conversation: how its bytes are read, and how answers are worded.

On the socket both are XML: ``uns.codec.Codec`` and the module ``wire.writing``.
"""

from dataclasses import dataclass
from typing import Protocol

from lcc_scrapy.uns.codec import Malformed
from lcc_scrapy.wire.messages import (
    InitAccepted,
    InitRejected,
    Message,
    SetAccepted,
    SetRejected,
    UrlError,
)


class Reader(Protocol):
    """Bytes in, messages out. Any cutting of them gives the same messages, but for the length of runs."""

    @property
    def mark(self) -> bytes:
        """A byte that stands in every URL: many of them mean many URLs."""

    @property
    def unfinished(self) -> bool:
        """Tell whether the stream would be cut short if it ended now."""

    def feed(self, data: bytes) -> list[Message | Malformed]:
        """Return the messages completed by ``data``; a ``Malformed`` is the last one ever."""

    def finish(self) -> list[Message | Malformed]:
        """Return the messages that are complete because the stream has ended; called once, at last."""


class Answers(Protocol):
    """Words the messages of the UNS, in this order: a login, then the result of a set, or that none came."""

    def init_accepted(self, message: InitAccepted, /) -> bytes:
        """Write the answer to a good login."""

    def init_rejected(self, message: InitRejected, /) -> bytes:
        """Write a refused login; it is the whole answer."""

    def no_set_result(self) -> bytes:
        """Close the answer to a login that brings no set."""

    def set_result_start(self) -> bytes:
        """Open the answer to a set."""

    def url_error(self, error: UrlError, /) -> bytes:
        """Write one URL error of a set."""

    def set_result_end(self, result: SetAccepted | SetRejected, /) -> bytes:
        """Close the answer to a set."""


@dataclass(frozen=True, slots=True)
class Dialect:
    """How one conversation is read and answered; both keep a state, so each conversation has its own."""

    reader: Reader
    answers: Answers
