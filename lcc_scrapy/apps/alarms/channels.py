"""How alarms are told: mails, a command, and webhooks. All of it blocks, each channel for a bounded time."""

import os
import signal
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from lcc_scrapy.apps.alarms.rules import Notice
from lcc_scrapy.apps.alarms.settings import AlarmRules
from lcc_scrapy.apps.alarms.webhooks import NotTold, read_webhooks
from lcc_scrapy.domain.errors import ConfigurationError
from lcc_scrapy.domain.printable import printable
from lcc_scrapy.mail.sending import Mailer, MailError

COMMAND_TIMEOUT = 60.0
"""Seconds after which a command is killed."""

LEFT = 10
"""Commands of other users that go on after their time; beside so many, none is begun."""

_left: "list[subprocess.Popen[bytes]]" = []

_SAID_MAX = 200
"""Bytes of a command's standard error that are passed on when it fails."""


class Channel(Protocol):
    """One way to tell somebody."""

    @property
    def name(self) -> str:
        """What operators call it, without secrets."""

    def tell(self, notice: Notice) -> None:
        """Tell it; raises ``NotTold``."""


@dataclass(frozen=True, slots=True)
class MailChannel:
    """Mails to an address; a repetition has the same Message-ID."""

    mailer: Mailer
    to: str
    lcc_id: str

    @property
    def name(self) -> str:
        """The address."""
        return f"mail to {self.to}"

    def tell(self, notice: Notice) -> None:
        """Send a mail."""
        headers = {"Message-ID": f"<alarm-{notice.name}@{self.lcc_id}.lcc.invalid>"}
        try:
            self.mailer.send(self.to, f"[LCC] {notice.subject}", notice.body, headers)
        except MailError as error:
            raise NotTold(str(error)) from None


@dataclass(frozen=True, slots=True)
class CommandChannel:
    """Runs a command, whose environment says what happened."""

    words: tuple[str, ...]

    @property
    def name(self) -> str:
        """Its first word."""
        return f"command {self.words[0]}"

    def tell(self, notice: Notice) -> None:
        """Run it; status 0 is a success."""
        facts = {
            "ALARM": notice.rule.value, "ALARM_STATE": "on" if notice.on else "off",
            "ALARM_TITLE": notice.subject, "ALARM_TEXT": notice.text,
            "ALARM_AT": str(notice.at), "ALARM_ID": notice.name,
        }  # fmt: skip
        try:
            status, said = _run(self.words, os.environ | facts)
        except (OSError, ValueError) as error:
            raise NotTold(str(error)) from None
        why = (
            f"it took longer than {COMMAND_TIMEOUT:g} s"
            if status is None
            else f"it ended with status {status}"
        )
        if status != 0:
            raise NotTold(f"{why}: {said}" if said else why)


def _run(words: Sequence[str], facts: Mapping[str, str]) -> tuple[int | None, str]:
    """Run a command; returns its status and the beginning of its standard error.

    The status is None where its time was up: it was killed, with all that it started, or left where it is
    another user's. What it says beyond the buffer of a pipe (64 kB) holds it up. Raises ``NotTold`` where
    ``LEFT`` others go on.
    """
    _left[:] = [one for one in _left if one.poll() is None]
    if len(_left) >= LEFT:
        raise NotTold(f"{LEFT} that took longer than {COMMAND_TIMEOUT:g} s and may not be killed go on")
    process = subprocess.Popen(  # noqa: S603 - the operator's own
        words, env=facts, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
        start_new_session=True,
    )  # fmt: skip
    try:
        status = process.wait(COMMAND_TIMEOUT)
    except subprocess.TimeoutExpired:
        status = None
    finally:
        if process.returncode is None:
            _kill(process)
    return status, _waiting(process)


def _kill(process: "subprocess.Popen[bytes]") -> None:
    """Kill a command with all that it started; one that is another user's (``sudo``) is left, and goes on."""
    try:
        os.killpg(process.pid, signal.SIGKILL)
    except PermissionError:
        _left.append(process)
    else:
        process.wait()


def _waiting(process: "subprocess.Popen[bytes]") -> str:
    """Return what waits in the pipe: others that the command started may keep it open."""
    assert process.stderr is not None
    with process.stderr as pipe:
        os.set_blocking(pipe.fileno(), False)
        said = pipe.read(_SAID_MAX) or b""
    return printable(" ".join(said.decode("utf-8", "replace").split()))


def channels_of(rules: AlarmRules, mailer: Mailer | None, lcc_id: str, agent: str) -> list[Channel]:
    """Return the channels of the settings; raises ``ConfigurationError``."""
    if rules.mail and mailer is None:
        raise ConfigurationError("LCC_ALARM_MAIL: mail is off: set LCC_MAIL_FROM")
    mails = [MailChannel(mailer, to, lcc_id) for to in rules.mail if mailer is not None]
    commands = [CommandChannel(rules.command)] if rules.command else []
    return [*mails, *commands, *read_webhooks(rules.webhooks_file, agent)]
