"""HTTP servers that begin and end together, beside what else runs on the loop of Twisted's reactor."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from twisted.internet.defer import Deferred

from lcc_scrapy.machine import open_files

if TYPE_CHECKING:
    from lcc_scrapy.web.server import Server


@dataclass(frozen=True, slots=True)
class HttpServers:
    """The servers of one process."""

    servers: "Sequence[Server]"

    def prepare(self, connections: int) -> None:
        """Check certificates, and make room for open files; raises ``ConfigurationError``."""
        for server in self.servers:
            server.check_certificate()
        open_files.make_room(connections)

    def renew_certificates(self) -> "Deferred[int]":
        """Read the certificate again; the result is at how many endpoints."""

        async def renew() -> int:
            return sum(server.renew_certificate() for server in self.servers)

        return Deferred.fromCoroutine(renew())

    async def begin(self) -> list[str]:
        """Listen; the result is the addresses."""
        return [await server.begin() for server in self.servers]

    def end(self) -> "list[asyncio.Future[None]]":
        """Take no more connections, and let requests end."""
        return [asyncio.ensure_future(server.end()) for server in self.servers]
