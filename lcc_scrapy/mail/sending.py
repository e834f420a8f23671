"""Handing a message to the operator's mail server (SMTP: RFC 5321, RFC 3207, RFC 4954). Blocking.

::

    LccError
    └── MailError          a message was not sent; the text says why, in one line without secrets
        ├── MailRefused    this address or message is refused for ever (5xx): it need not be tried again
        └── MailDelayed    not now (4xx): later it may go
            └── MailServerAway   no connection, too slow, the LCC's login or sender refused: nor do others

A server that refuses the LCC itself (its login, its sender) says nothing about the address: the operator has
to mend that, and the mail waits.
"""

import re
import smtplib
import socket
import ssl
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from email.headerregistry import Address
from email.message import EmailMessage
from email.policy import EmailPolicy
from email.utils import format_datetime, make_msgid
from pathlib import Path
from threading import Event, Thread
from typing import Any, Protocol

from lcc_scrapy.domain.errors import ConfigurationError, LccError
from lcc_scrapy.domain.mail_addresses import address, sender
from lcc_scrapy.domain.mail_rules import NO, PORTS, STARTTLS, TLS, MailRules
from lcc_scrapy.domain.printable import printable

SUBJECT_MAX = 200
"""Characters of a subject; the rest is cut off."""

_LINE_MAX = 990
"""Bytes of a header line (RFC 5322 has 998)."""

_SAID_MAX = 200
"""Characters of a server's answer that are told."""

_CUT_AGAIN = 1.0
"""Seconds after which a connection is cut that was not there yet when its time was over."""

_HEADER = re.compile(r"[A-Za-z][A-Za-z0-9-]{0,63}", re.ASCII)
_LOCAL_HOSTS = re.compile(r"localhost|127(\.\d{1,3}){3}|::1", re.ASCII)
_REFUSED_FOR_EVER = range(500, 600)


class MailError(LccError):
    """A message was not sent."""


class MailRefused(MailError):
    """It never will be: the address or the message is refused."""


class MailDelayed(MailError):
    """It may be later: the server says "not now"."""


class MailServerAway(MailDelayed):
    """The server is away or slow, or does not take the LCC's mail at all: other mails would not go either."""


@dataclass(frozen=True, slots=True)
class Attachment:
    """A file of a message; ``subtype`` is one of ``application``, as in ``json``."""

    name: str
    subtype: str
    data: bytes


@dataclass(frozen=True, slots=True)
class Mail:
    """One message. ``text`` is plain text; ``headers`` are sent beside the usual ones.

    ``html`` says the same for programs that show it, "" = there is none.
    """

    to: str
    subject: str
    text: str
    headers: Mapping[str, str]
    html: str = ""
    attached: Sequence[Attachment] = ()


class Mailer(Protocol):
    """What sends messages. Blocking: call it in a thread that nobody waits for."""

    def send(
        self,
        to: str,
        subject: str,
        text: str,
        headers: Mapping[str, str] | None = None,
        *,
        html: str = "",
        attached: Sequence[Attachment] = (),
    ) -> None:
        """Send a message; it was taken over by the mail server when this returns.

        Raises ``MailRefused`` or ``MailDelayed``. After the latter it may have been taken over all the same,
        if the connection broke at its very end: whoever sends it again gives it the same ``Message-ID``.
        """


class SmtpMailer:
    """Sends over the mail server of the settings; each message has a connection of its own.

    Whatever the server does, a message takes ``rules.timeout`` seconds at most, and the time in which the
    system looks up the server's name.
    """

    def __init__(self, rules: MailRules) -> None:
        self._rules = rules

    def send(
        self,
        to: str,
        subject: str,
        text: str,
        headers: Mapping[str, str] | None = None,
        *,
        html: str = "",
        attached: Sequence[Attachment] = (),
    ) -> None:
        """Send a message, as ``Mailer`` says."""
        mail = Mail(_recipient(to), subject, text, headers or {}, html, attached)
        message = message_of(self._rules.sender, mail)
        _, source = sender(self._rules.sender)
        with _told(self._rules.timeout), self._connection() as client:
            self._log_in(client)
            _hand_over(client, source, _recipient(to), message.as_bytes())

    @contextmanager
    def _connection(self) -> Iterator[smtplib.SMTP]:
        rules = self._rules
        port = rules.port or PORTS[rules.tls]
        client = _client(rules)
        with _deadline(client, rules.timeout):
            try:
                _expect(client.connect(rules.host, port))
                client.ehlo_or_helo_if_needed()
                if rules.tls == STARTTLS:
                    client.starttls(context=ssl.create_default_context())
                    client.ehlo()
                yield client
                with suppress(smtplib.SMTPException, OSError):
                    client.quit()  # the message was taken over: how the goodbye ends does not count
            finally:
                client.close()

    def _log_in(self, client: smtplib.SMTP) -> None:
        rules = self._rules
        if not rules.user:
            return
        try:
            client.login(rules.user, rules.password or _content_of(rules.password_file))
        except smtplib.SMTPAuthenticationError as error:  # its text may repeat what was sent
            raise MailServerAway(f"the mail server refuses the login (code {error.smtp_code})") from None


def smtp_mailer(rules: MailRules) -> SmtpMailer | None:
    """Return what sends mail by these settings; None = mail is off. Raises ``ConfigurationError``."""
    if not rules.sender:
        return None
    local = _LOCAL_HOSTS.fullmatch(rules.host.lower())
    if rules.user and rules.tls == NO and not local:
        raise ConfigurationError(
            "LCC_MAIL_PASSWORD would cross the network in plain text: set LCC_MAIL_TLS to starttls or tls"
        )
    if rules.user and not rules.password:
        _content_of(rules.password_file)
    return SmtpMailer(rules)


def message_of(source: str, mail: Mail, now: datetime | None = None) -> EmailMessage:
    """Return a message from ``source`` (as LCC_MAIL_FROM has it) with all its headers.

    What cannot be shown in one line (line breaks, controls) is made visible, in the headers and in the lines
    of the text. Raises ``ValueError`` for a header that has no proper name.
    """
    name, own = sender(source)
    message = EmailMessage(policy=_POLICY)
    message["From"] = _address(own, name)
    message["To"] = _address(mail.to)
    message["Subject"] = printable(mail.subject)[:SUBJECT_MAX]
    message["Date"] = format_datetime(now or datetime.now(UTC))
    message["Auto-Submitted"] = "auto-generated"  # RFC 3834: no automatic answers, please
    for header, value in mail.headers.items():
        if not _HEADER.fullmatch(header) or header in message:
            raise ValueError(f"not a header: {header[:40]!r}")
        message[header] = printable(value)
    if "Message-ID" not in message:
        message["Message-ID"] = make_msgid(domain=own.rpartition("@")[2])
    message.set_content("\n".join(map(printable, mail.text.split("\n"))), charset="utf-8")
    if mail.html:
        message.add_alternative(mail.html, subtype="html", charset="utf-8")
    for one in mail.attached:
        message.add_attachment(one.data, maintype="application", subtype=one.subtype, filename=one.name)
    return message


class _WholeLines(EmailPolicy):
    """Leaves ASCII headers in one line: folding would encode the URL of an unsubscribe link."""

    def fold(self, name: str, value: Any) -> str:
        line = f"{name}: {value}"
        return f"{line}\r\n" if line.isascii() and len(line) <= _LINE_MAX else super().fold(name, value)

    def fold_binary(self, name: str, value: Any) -> bytes:
        return self.fold(name, value).encode("ascii", "surrogateescape")


_POLICY = _WholeLines(linesep="\r\n", raise_on_defect=False)


def _address(whole: str, name: str = "") -> Address:
    local, _, domain = whole.rpartition("@")
    return Address(name, local, domain)


def _recipient(to: str) -> str:
    try:
        return address(to)
    except ValueError as error:
        raise MailRefused(str(error)) from None


def _content_of(path: str) -> str:
    try:
        return Path(path).read_text(encoding="utf-8").strip() if path else ""
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigurationError(f"LCC_MAIL_PASSWORD_FILE: {path}: {error}") from None


def _client(rules: MailRules) -> smtplib.SMTP:
    own = sender(rules.sender)[1].rpartition("@")[2]  # the name of this host takes a lookup
    client = (
        smtplib.SMTP_SSL(local_hostname=own, timeout=rules.timeout, context=ssl.create_default_context())
        if rules.tls == TLS
        else smtplib.SMTP(local_hostname=own, timeout=rules.timeout)
    )
    client._host = rules.host  # type: ignore[attr-defined]  # noqa: SLF001 - whose certificate is expected; else the constructor connects
    return client


@contextmanager
def _deadline(client: smtplib.SMTP, seconds: float) -> Iterator[None]:
    """Cut the connection when all of it takes too long: a server may also answer byte by byte."""
    over = Event()
    Thread(target=_cut_later, args=(client, over, seconds), daemon=True).start()
    try:
        yield
    finally:
        over.set()


def _cut_later(client: smtplib.SMTP, over: Event, seconds: float) -> None:
    while not over.wait(seconds):
        seconds = _CUT_AGAIN
        link = client.sock
        if link is not None:
            with suppress(OSError):
                socket.socket.shutdown(link, socket.SHUT_RDWR)  # below TLS, which another thread is reading


def _expect(answer: tuple[int, bytes]) -> None:
    code, said = answer
    if code != 220:  # noqa: PLR2004 - RFC 5321: "service ready"
        raise smtplib.SMTPConnectError(code, said)


def _hand_over(client: smtplib.SMTP, source: str, to: str, message: bytes) -> None:
    try:
        client.sendmail(source, [to], message)
    except smtplib.SMTPRecipientsRefused as error:
        raise _refusal(*error.recipients[to]) from None
    except smtplib.SMTPDataError as error:
        raise _refusal(error.smtp_code, error.smtp_error) from None


def _refusal(code: int, said: bytes | str) -> MailError:
    kind = MailRefused if code in _REFUSED_FOR_EVER else MailDelayed
    return kind(f"the mail server says {code} {_shown(said)}".rstrip())


@contextmanager
def _told(timeout: float) -> Iterator[None]:
    """Make what goes wrong on the way to the server, for whatever message, a ``MailServerAway``."""
    try:
        yield
    except smtplib.SMTPResponseException as error:
        raise MailServerAway(f"the mail server says {error.smtp_code} {_shown(error.smtp_error)}") from None
    except TimeoutError:
        raise MailServerAway(f"the mail server does not answer within {timeout:g} s") from None
    except (smtplib.SMTPException, OSError, ValueError) as error:  # ValueError: TLS that was cut while read
        raise MailServerAway(f"no conversation with the mail server: {_shown(str(error))}") from None


def _shown(said: bytes | str) -> str:
    text = said.decode("utf-8", "replace") if isinstance(said, bytes) else said
    return printable(" ".join(text.split()))[:_SAID_MAX]
