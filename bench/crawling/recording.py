"""A web server that remembers what it was asked for, and when."""

import asyncio
import threading
import time

PAGE = b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: 6\r\n\r\nhello\n"
NO_PAGE = b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n"


class RecordingSite:
    """Has a short answer to everything but robots.txt; runs in a thread until the process ends.

    It answers after ``delay`` seconds.
    """

    def __init__(self, delay: float = 0.0) -> None:
        self._delay = delay
        self.latest = 0.0
        """When it was asked last."""
        self.asked: dict[str, float] = {}
        """When each path was asked for first (seconds, monotonic), in that order."""
        loop = asyncio.new_event_loop()
        threading.Thread(target=loop.run_forever, daemon=True).start()
        starting = asyncio.start_server(self._serve, "127.0.0.1", 0)
        server = asyncio.run_coroutine_threadsafe(starting, loop).result(10)
        self.root = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/"

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while True:
                head = await reader.readuntil(b"\r\n\r\n")
                path = head.split(b" ", 2)[1].decode()
                self.latest = time.monotonic()
                self.asked.setdefault(path, self.latest)
                await asyncio.sleep(self._delay)
                writer.write(NO_PAGE if path == "/robots.txt" else PAGE)
        except (asyncio.IncompleteReadError, ConnectionError):
            writer.close()
