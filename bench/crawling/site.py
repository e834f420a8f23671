"""The sites that are crawled: one nginx, one address of 127.0.0.0/8 for each provider."""

import shutil
import socket
import subprocess
import time
from contextlib import suppress
from dataclasses import dataclass
from hashlib import md5
from pathlib import Path
from typing import Self

ROBOTS = "User-agent: *\nDisallow: /private/\nDisallow: /search\nAllow: /\n"
"""What every site says to robots: something to look at, and nothing that is in the way."""

_CONFIG = """\
daemon off; master_process off; pid {folder}/nginx.pid; error_log {folder}/error.log;
worker_rlimit_nofile 16384; events {{ worker_connections 8192; }}
http {{
    types {{ text/html html; text/plain txt; }}
    log_format pages '$msec $status $request_uri'; access_log {folder}/access.log pages;
    client_body_temp_path {folder}; proxy_temp_path {folder}; fastcgi_temp_path {folder};
    uwsgi_temp_path {folder}; scgi_temp_path {folder}; keepalive_requests 1000000; keepalive_timeout 300;
    open_file_cache max=100; tcp_nodelay on; sendfile on;
    server {{
        listen {port} backlog=4096; root {folder}; allow 127.0.0.0/8; deny all;
{locations}
    }}
}}
"""
_LOCATION = "        location /{size}/ {{ try_files /{size}.html =404; }}"
_MISSING = "        location ~ 0[.]html$ {{ return 404; }}\n"

MISSING = 10
"""One page of so many is not there, where some are missing: those whose numbers end with a 0."""


@dataclass(frozen=True)
class Page:
    """What is served under every URL of a size."""

    size: int
    """Bytes."""
    mtime: int
    md5: str


class Site:
    """A running nginx that serves a page of ``size`` bytes under any name below ``/size/``, of any host.

    With ``missing``, one of ``MISSING`` pages is not there.
    """

    def __init__(self, folder: Path, sizes: list[int], *, missing: bool = False) -> None:
        self.folder = folder
        folder.mkdir(parents=True)
        folder.chmod(0o755)
        (folder / "robots.txt").write_text(ROBOTS)
        self.pages = {size: self._write(size) for size in sizes}
        self.port = free_port()
        locations = _MISSING.format() * missing + "\n".join(_LOCATION.format(size=size) for size in sizes)
        config = _CONFIG.format(folder=folder, port=self.port, locations=locations)
        (folder / "nginx.conf").write_text(config)
        program = shutil.which("nginx") or shutil.which("nginx", path="/usr/sbin")
        if program is None:
            raise SystemExit("nginx is missing: apt-get install nginx-light")
        self._process = subprocess.Popen([program, "-c", str(folder / "nginx.conf"), "-p", str(folder)])
        await_listener(self.port)

    def _write(self, size: int) -> Page:
        path = self.folder / f"{size}.html"
        path.write_bytes(document(size))
        digest = md5(path.read_bytes(), usedforsecurity=False).hexdigest()
        return Page(size, int(path.stat().st_mtime), digest)

    @property
    def address(self) -> str:
        """Return what ``root_at`` wants to know."""
        return str(self.port)

    def root(self, provider: int) -> str:
        """Return the root of a provider (1, 2, …): a host of its own, without a look-up."""
        return self.root_at(self.address, provider)

    @staticmethod
    def root_at(address: str, provider: int) -> str:
        """Return the root of a provider of the site at an address, also in another process."""
        return f"http://127.1.{provider // 250}.{provider % 250 + 1}:{address}/"

    def urls(self, provider: int, size: int, count: int) -> list[str]:
        """Return the URLs of a provider's pages."""
        root = self.root(provider)
        return [f"{root}{size}/folder{number % 97}/document-{number:07d}.html" for number in range(count)]

    @property
    def pid(self) -> int:
        """Return the process."""
        return self._process.pid

    @property
    def log(self) -> Path:
        """Return what was served, a line each: epoch seconds with three decimals, status, path."""
        return self.folder / "access.log"

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        """Stop serving."""
        self._process.terminate()
        self._process.wait(10)


def document(size: int) -> bytes:
    """Make an HTML page of so many bytes."""
    head = "<!DOCTYPE html>\n<html><head><title>A page</title></head><body>\n"
    words = "".join(
        f'<p>Paragraph {n}: what was said before, <a href="{n}.html">once more</a>.</p>\n'
        for n in range(size // 70 + 1)
    )
    return (head + words)[:size].encode()


_claims: list[socket.socket] = []


def free_port() -> int:
    """Return a port that nobody listens at, and that no measurement beside this one was given."""
    while True:
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            port = int(probe.getsockname()[1])
        claim = socket.socket(socket.AF_UNIX)
        with suppress(OSError):
            claim.bind(f"\0lcc-bench-port-{port}")  # the kernel gives a name to one process only
            _claims.append(claim)
            return port
        claim.close()


def await_listener(port: int, seconds: float = 20) -> None:
    """Wait until somebody listens at a port of this machine."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.02)
    raise SystemExit(f"nobody listens at port {port}")
