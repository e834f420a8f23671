"""S3 servers for tests, in processes of their own: moto's, in memory, and rclone's, on disk."""

import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from http.client import HTTPConnection
from pathlib import Path

from tests.harness import BIN, answers, missing, wait_for
from tests.ports import free_port

CREDENTIALS = {
    "AWS_ACCESS_KEY_ID": "test",
    "AWS_SECRET_ACCESS_KEY": "not-a-secret",
    "AWS_REGION": "us-east-1",
}


class S3Server:
    """A server with the bucket ``lcc``."""

    def __init__(self) -> None:
        self.port = free_port()
        self.url = f"s3://lcc/contents?endpoint=http://127.0.0.1:{self.port}"
        self._process = subprocess.Popen(
            [sys.executable, "-m", "moto.server", "-H", "127.0.0.1", "-p", str(self.port)],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            env={**os.environ, **CREDENTIALS, "PYTHONWARNINGS": ""},
        )

    def make_bucket(self) -> None:
        """Wait until it answers, and make the bucket."""
        wait_for(self._made, what="the S3 server")

    def _made(self) -> bool:
        with suppress(OSError):
            connection = HTTPConnection("127.0.0.1", self.port, timeout=5)
            host = {
                "Host": "s3.amazonaws.com",
                "Authorization": "AWS4-HMAC-SHA256 Credential=test/1/us-east-1/s3/aws4_request",
            }
            connection.request("PUT", "/lcc", headers=host)
            return connection.getresponse().status == 200
        return False

    def stand_still(self) -> None:
        """Answer nothing any more."""
        self._process.send_signal(signal.SIGSTOP)

    def go_on(self) -> None:
        """Answer again."""
        self._process.send_signal(signal.SIGCONT)

    def end(self) -> None:
        """End the process."""
        self._process.kill()
        self._process.wait()


@contextmanager
def s3_server() -> Iterator[S3Server]:
    """Run a server."""
    try:
        import moto  # noqa: F401
        import obstore  # noqa: F401
    except ImportError:
        missing("moto and obstore", "pip install -e '.[dev]'")
    server = S3Server()
    try:
        server.make_bucket()
        yield server
    finally:
        server.end()


class S3OnDisk:
    """rclone's server on a folder with the bucket ``lcc``; a killed one has its objects when it is back."""

    def __init__(self, folder: Path) -> None:
        (folder / "lcc").mkdir(parents=True)
        self._folder = folder
        self._process: subprocess.Popen[bytes] | None = None
        self.port = free_port()
        self.url = f"s3://lcc/contents?endpoint=http://127.0.0.1:{self.port}"

    def start(self) -> None:
        """Start it, and wait until it listens."""
        program = shutil.which("rclone", path=f"{BIN}:{os.environ['PATH']}")
        if program is None:
            missing("rclone", "pip install -e '.[dev]'")
        key = f"{CREDENTIALS['AWS_ACCESS_KEY_ID']},{CREDENTIALS['AWS_SECRET_ACCESS_KEY']}"
        settings = ["--config", os.devnull, "--cache-dir", str(self._folder / "cache")]
        # Without a cache, an object is in its folder when the answer is sent.
        cached = ["--vfs-cache-mode", "off", "--no-cleanup"]
        self._process = subprocess.Popen(
            [
                *(str(program), "serve", "s3", str(self._folder), "--addr", f"127.0.0.1:{self.port}"),
                *("--auth-key", key, *settings, *cached),
            ],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        wait_for(lambda: answers(self.port), what="the S3 server")

    def kill(self) -> None:
        """End it at once."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None

    def restart(self, away: float = 0.0) -> None:
        """Kill it, and start it again after so many seconds."""
        self.kill()
        time.sleep(away)
        self.start()


@contextmanager
def s3_on_disk(folder: Path) -> Iterator[S3OnDisk]:
    """Run a server on a folder."""
    server = S3OnDisk(folder)
    try:
        server.start()
        yield server
    finally:
        server.kill()
