"""An S3 server for tests: moto's, in a process of its own, which keeps its objects in memory."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from http.client import HTTPConnection

from tests.harness import missing, wait_for
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
