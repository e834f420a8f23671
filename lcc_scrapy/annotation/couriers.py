"""How one message reaches one recipient: by mail, or by a call of a webhook."""

import asyncio
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Protocol

from lcc_scrapy.annotation.alert_texts import MEDIA_TYPES, Written
from lcc_scrapy.annotation.webhooks import Call, HookFailed, HookGone, Webhooks
from lcc_scrapy.domain.acis import Recipient
from lcc_scrapy.domain.alerts import Format
from lcc_scrapy.domain.errors import LccError
from lcc_scrapy.mail.sending import Attachment, MailDelayed, Mailer, MailRefused, MailServerAway

MAILS_AT_A_TIME = 4
"""So many conversations with the mail server: more would be told to come later by many."""


class TellLater(LccError):
    """A message was not taken now; ``after``: seconds for which the recipient asks. ``away``: nobody's is."""

    def __init__(self, text: str, after: int = 0, *, away: bool = False) -> None:
        super().__init__(text)
        self.after = after
        self.away = away


class TellNever(LccError):
    """The recipient takes nothing any more."""


@dataclass(frozen=True, slots=True)
class Message:
    """What is told. ``name`` is the same whenever it is sent; ``ending`` is the link that ends mail."""

    recipient: Recipient
    name: str
    written: Written
    ending: str = ""


class Courier(Protocol):
    """One channel."""

    @property
    def places(self) -> int:
        """Messages at a time."""

    @property
    def lease(self) -> float:
        """Seconds that one takes at most."""

    async def tell(self, message: Message, at: int) -> None:
        """Tell a recipient; it was told when this returns. Raises ``TellLater`` or ``TellNever``.

        ``at`` is the time in epoch seconds.
        """

    async def close(self) -> None:
        """Give back what is held."""


@dataclass(slots=True)
class MailCourier:
    """Sends mail, each in a thread. ``domain`` is that of the sender; ``seconds`` is what one may take."""

    mailer: Mailer
    domain: str
    seconds: float
    places: int = MAILS_AT_A_TIME
    _threads: ThreadPoolExecutor = field(
        default_factory=lambda: ThreadPoolExecutor(MAILS_AT_A_TIME, "lcc-alert-mail")
    )

    @property
    def lease(self) -> float:
        """Seconds that a mail may take, with room to spare."""
        return 1.5 * self.seconds + 10

    async def tell(self, message: Message, at: int) -> None:
        """Send a mail."""
        del at
        try:
            await asyncio.get_running_loop().run_in_executor(self._threads, self._send, message)
        except MailRefused as error:
            raise TellNever(str(error)) from None
        except MailDelayed as error:
            raise TellLater(str(error), away=isinstance(error, MailServerAway)) from None

    def _send(self, message: Message) -> None:
        said, form = message.written, message.recipient.format
        headers = {"Message-ID": f"<{message.name}@{self.domain}>"}
        if message.ending:
            headers["List-Unsubscribe"] = f"<{message.ending}>"
            headers["List-Unsubscribe-Post"] = "List-Unsubscribe=One-Click"
        html = said.body if form == Format.HTML else ""
        data = said.body.encode("utf-8", "backslashreplace")
        attached = [Attachment(f"alert.{form}", form, data)] if form in {Format.XML, Format.JSON} else []
        self.mailer.send(
            message.recipient.address, said.subject, said.text, headers, html=html, attached=attached
        )

    async def close(self) -> None:
        """End the threads."""
        self._threads.shutdown(wait=False)


@dataclass(slots=True)
class HookCourier:
    """Calls webhooks; ``private`` permits private addresses."""

    hooks: Webhooks
    places: int
    seconds: float
    private: bool

    @property
    def lease(self) -> float:
        """Seconds that a call may take, with room to spare."""
        return 1.5 * self.seconds + 10

    async def tell(self, message: Message, at: int) -> None:
        """Call a hook."""
        whom = message.recipient
        body = message.written.body.encode("utf-8", "backslashreplace")
        call = Call(whom.address, whom.secret, message.name, MEDIA_TYPES[Format(whom.format)], body)
        try:
            await self.hooks.call(call, at, seconds=self.seconds, private=self.private)
        except HookGone as error:
            raise TellNever(str(error)) from None
        except HookFailed as error:
            raise TellLater(str(error), error.retry_after) from None

    async def close(self) -> None:
        """Close connections."""
        await self.hooks.close()
