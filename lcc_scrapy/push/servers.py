"""The ``server`` of a configuration: an LCC's UNS (a socket) or its push endpoint (HTTP).

A password goes over a network in clear only if the user wrote so: ``lcc://HOST``, or, with a warning at every
run, ``HOST``. An LCC cannot ask for it.
"""

from __future__ import annotations

import ssl

from lcc_scrapy.push.client import Address, Server
from lcc_scrapy.push.command import Status, Stop
from lcc_scrapy.push.http_push import HttpServer
from lcc_scrapy.push.link import is_local
from lcc_scrapy.push.web import HttpUrl

PLAIN, TLS = "lcc://", "lccs://"
_FORMS = f"HOST, HOST:PORT, {PLAIN}HOST, {TLS}HOST (with TLS) or https://HOST/"


def server_of(text: str, ca: str) -> tuple[Server, ssl.SSLContext | None]:
    """Return a server and how to encrypt, None = not at all; raises `Stop` (64, 66)."""
    try:
        if text.startswith(("http://", "https://")):
            found = HttpServer.parse(text)
            if not found.url.is_safe:
                raise Stop(
                    Status.USAGE, f"{text}: the password would go over the network in clear; use https://"
                )
            return found, context(ca) if found.url.scheme == "https" else None
        scheme = next((one for one in (PLAIN, TLS) if text.startswith(one)), "")
        address = Address.parse(text[len(scheme) :].rstrip("/"))
    except ValueError:
        raise Stop(Status.USAGE, f"server {text!r} is not {_FORMS}") from None
    return address, context(ca) if scheme == TLS else None


def warning_of(text: str) -> str:
    """Say what a user should know of a server of the configuration; empty = nothing."""
    if "://" in text or is_local(Address.parse(text.rstrip("/")).host):
        return ""
    return f"the password goes to {text} in clear: use {TLS}{text}, or write {PLAIN}{text} if you mean that"


def named_by(lcc: HttpUrl, text: str) -> str:
    """Return a server that an LCC names, as it stands in a configuration; raises ValueError for one in clear.

    An LCC that was reached in clear is on this machine (`HttpUrl.is_safe`), and may name a server here.
    """
    if text.startswith(("http://", "https://")):
        url = HttpServer.parse(text).url
        is_tls, host, found = url.scheme == "https", url.host, str(url)
    else:
        is_tls = text.startswith(TLS)
        address = Address.parse(text[len(TLS) :] if is_tls else text)
        host, found = address.host, f"{TLS if is_tls else ''}{address}"
    if not is_tls and not (lcc.scheme == "http" and is_local(host)):
        raise ValueError(text)
    return found


def context(ca: str) -> ssl.SSLContext:
    """Return what verifies a server's certificate; raises `Stop` (66) for a file without certificates."""
    try:
        return ssl.create_default_context(cafile=ca or None)
    except OSError as error:
        reason = "no certificates in it" if isinstance(error, ssl.SSLError) else error.strerror
        raise Stop(Status.NO_INPUT, f"{ca}: {reason}") from None
