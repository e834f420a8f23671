"""How mail is sent. Without a sender there is none."""

from dataclasses import dataclass
from typing import Any

from lcc_scrapy.domain import notations as read
from lcc_scrapy.domain.mail_addresses import sender
from lcc_scrapy.domain.settings import LIVE, setting

NO, STARTTLS, TLS = "no", "starttls", "tls"
PORTS = {NO: 25, STARTTLS: 587, TLS: 465}
"""The usual ports (RFC 5321, RFC 6409, RFC 8314)."""

_PORT_MAX = 65535


class Secret(str):
    """A text that is not shown where a whole object is printed."""

    __slots__ = ()

    def __repr__(self) -> str:
        return "'***'"


def _sender(text: Any) -> str:
    given = str(text).strip()
    if given:
        sender(given)
    return given


def _port(text: Any) -> int:
    port = read.whole(text)
    if port > _PORT_MAX:
        raise ValueError(f"{text!r}, expected a port up to {_PORT_MAX}")
    return port


def _host(text: Any) -> str:
    host = str(text).strip()
    if not host or not host.isprintable() or (any(c in host for c in " :/@") and not _is_v6(host)):
        raise ValueError(f"{text!r}, expected the name or address of a mail server")
    return host


def _is_v6(host: str) -> bool:
    return ":" in host and all(c in "0123456789abcdefABCDEF:.%" for c in host)


def _secret(text: Any) -> str:
    return Secret(text)


# fmt: off
@dataclass(frozen=True, slots=True)
class MailRules:
    """Over which server mail goes, and for how long it is tried. Times are in seconds."""

    sender: str = setting("LCC_MAIL_FROM", "", _sender, "Who sends the LCC's [mail](mail.md): `lcc@example.org` or `LCC of Example <lcc@example.org>`; empty = no mail is sent.", LIVE)
    host: str = setting("LCC_MAIL_HOST", "127.0.0.1", _host, "The mail server (SMTP) that takes the LCC's mail.", LIVE)
    port: int = setting("LCC_MAIL_PORT", "0", _port, "Its port; 0 = the usual one of LCC_MAIL_TLS: 25, 587 or 465.", LIVE)
    tls: str = setting("LCC_MAIL_TLS", NO, read.one_of(NO, STARTTLS, TLS), "How the way to it is encrypted: `no`, `starttls`, or `tls` from the first byte. Its certificate has to be valid.", LIVE)
    user: str = setting("LCC_MAIL_USER", "", str, "The name to log in with at the mail server; empty = without login.", LIVE)
    password: str = setting("LCC_MAIL_PASSWORD", "", _secret, "The password for it; over a network with LCC_MAIL_TLS only.", LIVE)
    password_file: str = setting("LCC_MAIL_PASSWORD_FILE", "", str, "File that holds this password; read before each mail when LCC_MAIL_PASSWORD is not set.", LIVE)
    timeout: float = setting("LCC_MAIL_TIMEOUT", "60s", read.period, "Longest time for handing one mail to the mail server; then it is tried again later.", LIVE)
# fmt: on
