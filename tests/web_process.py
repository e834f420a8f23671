"""``lcc web``, ``lcc files`` and ``lcc tracker serve`` as real processes."""

import re
import signal
import time
from contextlib import contextmanager

from tests.forkserver import popen
from tests.harness import BIN

ENDPOINTS = {
    "web": "LCC_WEB_ENDPOINT",
    "front web": "LCC_WEB_ENDPOINT",
    "files": "LCC_FILES_ENDPOINT",
    "tracker serve": "LCC_TRACKER_ENDPOINT",
}


@contextmanager
def serving(house, command="web", **settings):
    """Start a server on a port that is free; gives its port and its process, and stops it."""
    log = house.folder / f"{command}.log"
    environment = {**house.environment, ENDPOINTS[command]: "127.0.0.1:0", "LCC_POLL": "0.1", **settings}
    with log.open("wb") as out:
        process = popen([str(BIN / "lcc"), *command.split()], env=environment, cwd=house.folder, log=out)
    try:
        yield _port(log, process), process
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(300)
    assert process.returncode == 0, log.read_text()
    assert "Traceback" not in log.read_text(), log.read_text()


def _port(log, process):
    end = time.monotonic() + 240
    while time.monotonic() < end and process.poll() is None:
        found = re.search(r"listening on \S+:(\d+)$", log.read_text(), re.MULTILINE)
        if found:
            return int(found[1])
        time.sleep(0.05)
    raise AssertionError(log.read_text())
