"""The ``server`` of a configuration: an LCC's UNS (a socket) or its push endpoint (HTTP)."""

from __future__ import annotations

import ssl

from lcc_scrapy.push.client import Address, Server
from lcc_scrapy.push.command import Status, Stop
from lcc_scrapy.push.http_push import HttpServer

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


def context(ca: str) -> ssl.SSLContext:
    """Return what verifies a server's certificate; raises `Stop` (66) for a file without certificates."""
    try:
        return ssl.create_default_context(cafile=ca or None)
    except OSError as error:
        reason = "no certificates in it" if isinstance(error, ssl.SSLError) else error.strerror
        raise Stop(Status.NO_INPUT, f"{ca}: {reason}") from None
