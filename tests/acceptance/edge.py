"""A site behind a cache, as a CDN has it: nginx with ``proxy_cache`` before a document root that changes at random."""

import http.client
import os
import random
import shutil
import subprocess
import threading
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Self

from tests.harness import answers, missing, wait_for
from tests.ports import free_port

CONFIG = """\
{user} daemon off; pid {folder}/nginx.pid; error_log {folder}/error.log; worker_processes 1;
events {{ worker_connections 512; }}
http {{
  types {{ text/html html; }} default_type text/html;
  client_body_temp_path {folder}/tmp; proxy_temp_path {folder}/tmp; fastcgi_temp_path {folder}/tmp;
  uwsgi_temp_path {folder}/tmp; scgi_temp_path {folder}/tmp; keepalive_requests 100000; access_log off;
  log_format uri '$status $upstream_cache_status $request_uri';
  proxy_cache_path {folder}/cache keys_zone=z:1m;
  {servers}
}}
"""
EDGE = """\
  server {{ listen 127.0.0.1:{origin}; root {docroot}; }}
  server {{ listen 127.0.0.1:{port}; listen 127.0.0.1:{visited}; {log}
    location / {{ proxy_pass http://127.0.0.1:{origin}; proxy_cache z; proxy_cache_key $request_uri;
      proxy_cache_valid 200 404 {seconds}s; }} }}
"""


def run_nginx(folder: Path, servers: str, *ports: int) -> subprocess.Popen[bytes]:
    """Start nginx in a folder, and wait until it listens."""
    program = shutil.which("nginx") or shutil.which("nginx", path="/usr/sbin")
    if program is None:
        missing("nginx", "apt-get install nginx-light")
    user = "" if os.getuid() else "user root;"  # else its workers may not read folders of tests
    (folder / "nginx.conf").write_text(CONFIG.format(folder=folder, servers=servers, user=user))
    process = subprocess.Popen([str(program), "-c", str(folder / "nginx.conf"), "-p", str(folder)])
    for port in ports:
        wait_for(lambda port=port: answers(port), 20, "nginx")
    return process


@dataclass
class Edge:
    """The cache keeps each page, and each 404, for ``seconds``; visitors ask at one port, the LCC at the other."""

    folder: Path
    seconds: int
    port: int = field(default_factory=free_port)
    visited: int = field(default_factory=free_port)

    def __enter__(self) -> Self:
        self.docroot = self.folder / "docroot"
        self.docroot.mkdir(parents=True)
        log = (
            f"if ($server_port = {self.port}) {{ set $lcc 1; }} access_log {self.folder}/lcc.log uri if=$lcc;"
        )
        servers = EDGE.format(
            origin=free_port(), port=self.port, visited=self.visited, docroot=self.docroot, seconds=self.seconds,
            log=log,
        )  # fmt: skip
        self._nginx = run_nginx(self.folder, servers, self.port, self.visited)
        return self

    def __exit__(self, *_: object) -> None:
        self._nginx.terminate()
        self._nginx.wait(300)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/"

    def requests(self) -> list[str]:
        """Return what the LCC asked for, but robots.txt; empty lines of the log are none."""
        lines = (self.folder / "lcc.log").read_text().splitlines()
        return [line.split(" ", 2)[2] for line in lines if not line.endswith("/robots.txt")]

    def pages(self) -> dict[str, bytes]:
        return {
            self.url + file.name: file.read_bytes()
            for file in self.docroot.iterdir()
            if file.suffix == ".html"
        }


class Author:
    """Changes pages at random; a tenth of the changes delete or create one.

    No two editions have one length: nginx makes ETags of length and second, and would call them the same.
    """

    def __init__(self, edge: Edge, pages: int, chance: random.Random) -> None:
        self._edge, self._chance = edge, chance
        self.names = [f"{number:03d}.html" for number in range(pages)]
        self.changes = self.editions = 0
        for name in self.names[: pages - pages // 20]:
            self._write(name)

    def change(self) -> None:
        there = [name for name in self.names if (self._edge.docroot / name).exists()]
        gone = [name for name in self.names if name not in there]
        self.changes += 1
        if self._chance.random() < 0.1:
            if gone and self._chance.random() < 0.5:
                self._write(self._chance.choice(gone))
            else:
                (self._edge.docroot / self._chance.choice(there)).unlink()
            return
        self._write(self._chance.choice(there))

    def _write(self, name: str) -> None:
        self.editions += 1
        draft = self._edge.docroot / f".{name}.draft"
        draft.write_bytes(f"<title>{name}</title>edition {self.editions} ".encode() + b"x" * self.editions)
        draft.replace(self._edge.docroot / name)


class Visitor(threading.Thread):
    """Asks for every page, there or not, each second: the cache remembers whatever it can."""

    def __init__(self, edge: Edge, names: list[str]) -> None:
        super().__init__(name="visitor", daemon=True)
        self._edge, self._names = edge, names
        self._ending = threading.Event()

    def run(self) -> None:
        link = http.client.HTTPConnection("127.0.0.1", self._edge.visited, timeout=300)
        while not self._ending.is_set():
            begun = time.monotonic()
            for name in self._names:
                link.request("GET", f"/{name}")
                link.getresponse().read()
            self._ending.wait(max(0.0, 1 - (time.monotonic() - begun)))
        link.close()

    def end(self) -> None:
        self._ending.set()
        self.join(300)
