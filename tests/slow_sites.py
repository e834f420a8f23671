"""Sites each of whose pages takes a while, and which count how many of them are under way."""

import asyncio
import re
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

SECONDS = 0.05
"""How long a page takes."""


@dataclass
class SlowSites:
    """Sites on ports of their own: what each was asked for, and how many pages were under way at most.

    ``agents`` counts the pages of all sites by who asked, ``robots`` is the robots.txt of all.
    """

    ports: dict[str, int] = field(default_factory=dict)
    asked: dict[str, list[str]] = field(default_factory=dict)
    most: dict[str, int] = field(default_factory=dict)
    under_way: dict[str, int] = field(default_factory=dict)
    agents: Counter[str] = field(default_factory=Counter)
    robots: str = "User-agent: *\nDisallow:\n"
    size: int = 0

    async def listen(self, name: str) -> asyncio.Server:
        """Open the port of one more site."""
        self.asked[name], self.most[name], self.under_way[name] = [], 0, 0

        async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            try:
                while head := await reader.readuntil(b"\r\n\r\n"):
                    path = head.split()[1].decode()
                    if path != "/robots.txt":
                        self.agents[_agent_of(head)] += 1
                    body = self.robots.encode() if path == "/robots.txt" else await self._page(name, path)
                    kind = b"text/plain" if path == "/robots.txt" else b"text/html"
                    writer.write(
                        b"HTTP/1.1 200 OK\r\nContent-Type: %b\r\nContent-Length: %d\r\n\r\n%b"
                        % (kind, len(body), body)
                    )
                    await writer.drain()
            except (asyncio.IncompleteReadError, ConnectionError):
                pass
            finally:
                writer.close()

        server = await asyncio.start_server(serve, "127.0.0.1", 0)
        self.ports[name] = server.sockets[0].getsockname()[1]
        return server

    async def _page(self, name: str, path: str) -> bytes:
        self.asked[name].append(path)
        self.under_way[name] += 1
        self.most[name] = max(self.most[name], self.under_way[name])
        await asyncio.sleep(SECONDS)
        self.under_way[name] -= 1
        return f"<title>{path}</title>".encode() + b"x" * self.size


def _agent_of(head: bytes) -> str:
    found = re.search(rb"(?im)^user-agent: *([^\r]*)", head)
    return found[1].decode("latin-1") if found else ""


@contextmanager
def serving(*names: str, robots: str = "", size: int = 0) -> Iterator[SlowSites]:
    """Run sites of these names in a thread; ``size`` is that of each page in bytes, with some more."""
    sites, ready, stopping = SlowSites(size=size), threading.Event(), asyncio.Event()
    sites.robots = robots or sites.robots
    loops = []

    async def serve() -> None:
        loops.append(asyncio.get_running_loop())
        servers = [await sites.listen(name) for name in names]
        ready.set()
        await stopping.wait()
        for server in servers:
            server.close()

    thread = threading.Thread(target=asyncio.run, args=(serve(),))
    thread.start()
    ready.wait()
    try:
        yield sites
    finally:
        loops[0].call_soon_threadsafe(stopping.set)
        thread.join()
