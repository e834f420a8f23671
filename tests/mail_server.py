"""A real mail server for tests: it takes mail, or does what a test tells it instead. In a thread of its own."""

import ssl
import threading
import warnings
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from email import message_from_bytes, policy
from email.message import EmailMessage
from socketserver import StreamRequestHandler, ThreadingTCPServer
from typing import Any

from aiosmtpd.controller import Controller
from aiosmtpd.smtp import SMTP, AuthResult, Envelope, LoginPassword

from tests.ports import free_port


@dataclass
class Taken:
    """One message as it arrived."""

    sender: str
    to: list[str]
    data: bytes

    @property
    def message(self) -> EmailMessage:
        return message_from_bytes(self.data, policy=policy.default)

    @property
    def text(self) -> str:
        return self.message.get_content().replace("\r\n", "\n")


@dataclass
class MailServer:
    """What arrived, and what the server says: ``rcpt`` and ``data`` by address, None = it takes the mail."""

    port: int = 0
    mails: list[Taken] = field(default_factory=list)
    rcpt: Callable[[str], str | None] = lambda _: None
    data: Callable[[str], str | None] = lambda _: None
    mail: Callable[[str], str | None] = lambda _: None
    before_answer: Callable[[str], Awaitable[None]] | None = None
    logins: list[tuple[bytes, bytes]] = field(default_factory=list)
    connections: int = 0

    def to(self, address: str) -> list[Taken]:
        return [one for one in self.mails if one.to == [address]]

    # --- of aiosmtpd -----------------------------------------------------------------------------

    async def handle_EHLO(self, server, session, envelope, hostname, responses) -> Any:
        session.host_name = hostname
        return responses

    async def handle_MAIL(self, server, session, envelope, address, options) -> str:
        self.connections += 1
        refusal = self.mail(address)
        if refusal is None:
            envelope.mail_from = address
        return refusal or "250 OK"

    async def handle_RCPT(self, server, session, envelope, address, options) -> str:
        refusal = self.rcpt(address)
        if refusal is None:
            envelope.rcpt_tos.append(address)
        return refusal or "250 OK"

    async def handle_DATA(self, server, session, envelope: Envelope) -> str:
        to = envelope.rcpt_tos[0]
        refusal = self.data(to)
        if refusal is None:
            self.mails.append(Taken(envelope.mail_from, list(envelope.rcpt_tos), envelope.content))
        if self.before_answer is not None:
            await self.before_answer(to)
        return refusal or "250 OK, it is mine now"


class _Controller(Controller):
    def __init__(self, handler: MailServer, options: dict[str, Any], context: ssl.SSLContext | None) -> None:
        super().__init__(handler, hostname="127.0.0.1", port=handler.port, ssl_context=context)
        self._smtp = options

    def factory(self) -> SMTP:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # logins without TLS stay on this machine
            return SMTP(self.handler, hostname="mail.test", **self._smtp)


@contextmanager
def mail_server(
    *,
    starttls: ssl.SSLContext | None = None,
    tls: ssl.SSLContext | None = None,
    password: str = "",
    port: int = 0,
) -> Iterator[MailServer]:
    """Run a mail server; with a password it asks for a login of the user ``lcc``."""
    made = MailServer(port or free_port())

    def login(server, session, envelope, mechanism, given: LoginPassword) -> AuthResult:
        made.logins.append((given.login, given.password))
        return AuthResult(success=made.logins[-1] == (b"lcc", password.encode()), handled=False)

    options: dict[str, Any] = {"tls_context": starttls, "require_starttls": starttls is not None}
    if password:
        options |= {"authenticator": login, "auth_required": True, "auth_require_tls": False}
    controller = _Controller(made, options, tls)
    controller.start()
    try:
        yield made
    finally:
        controller.stop()


@contextmanager
def scripted_server(
    answer: Callable[[int, bytes], bytes | None], greeting: bytes = b"220 x\r\n"
) -> Iterator[int]:
    """Run a server that says what ``answer(number of the command, line)`` says; None = it says nothing more."""

    def converse(one: StreamRequestHandler) -> None:
        number, said = 0, greeting
        while said is not None:
            one.wfile.write(said)
            line = one.rfile.readline()
            if not line:
                return
            said, number = answer(number, line), number + 1
        one.rfile.read()

    with any_server(converse) as port:
        yield port


@contextmanager
def any_server(converse: Callable[[StreamRequestHandler], None]) -> Iterator[int]:
    """Run a server that does with each connection what it likes; a client may cut it at any time."""

    class Handler(StreamRequestHandler):
        def handle(self) -> None:
            with suppress(ConnectionError):
                converse(self)

    with ThreadingTCPServer(("127.0.0.1", free_port()), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.05,))
        thread.start()
        try:
            yield server.server_address[1]
        finally:
            server.shutdown()
            thread.join()
