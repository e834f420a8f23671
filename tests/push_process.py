"""``lcc web`` as a real process that takes pushes."""

import re
import signal
from contextlib import contextmanager

from tests.forkserver import popen
from tests.harness import BIN, wait_for


class PushServer:
    """A server in a house; ``port`` is where it takes pushes."""

    def __init__(self, house, **settings):
        self.log = house.folder / "push.log"
        self._house = house
        self._environment = {
            **house.environment,
            "LCC_PUSH_ENDPOINTS": "127.0.0.1:0",
            "LCC_WEB_ENDPOINT": "",
            "LCC_POLL": "0.1",
            "LCC_STORE_JOB_WARN": "0",
            **settings,
        }
        self.start()

    def start(self):
        """Start it, also once more."""
        with self.log.open("ab") as out:
            said = out.tell()
            self.process = popen(
                [str(BIN / "lcc"), "web"], env=self._environment, cwd=self._house.folder, log=out
            )

        def listens():
            assert self.process.poll() is None, self.log.read_text()
            return re.search(rb"listening on [^\n]*?:(\d+)[,\n]", self.log.read_bytes()[said:])

        wait_for(listens, 240, "the push endpoint")
        self.port = int(listens()[1])

    def kill(self):
        """End it at once."""
        self.process.kill()
        self.process.wait(300)

    def stop(self):
        """End it in an orderly way."""
        self.process.send_signal(signal.SIGTERM)
        self.process.wait(300)


@contextmanager
def push_server(house, **settings):
    """Run a server; it has to end with status 0 and no traceback."""
    server = PushServer(house, **settings)
    try:
        yield server
    finally:
        server.stop()
    said = server.log.read_text()
    assert server.process.returncode == 0, said
    assert "Traceback" not in said, said
