"""The UNS behind nginx, which ends TLS, and on a socket that it is started with, as by systemd."""

import shutil
import socket
import ssl
import subprocess
import sys
from pathlib import Path

import pytest

from tests.component.test_uns_service import END, SET, URL
from tests.harness import BIN, PASSWORD, Lcc, free_port, missing, wait_for

STREAM = Path("/usr/lib/nginx/modules/ngx_stream_module.so")
INIT = f'<lococa:init xmlns:lococa="http://www.lococa.org/1.0"><provider id="7" passwd="{PASSWORD}"/></lococa:init>'.encode()
PUSH = SET % b"partial" + URL + END


CERTIFICATE = "openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 1 -keyout key.pem -out cert.pem -subj /CN=localhost -addext subjectAltName=DNS:localhost"


class Front:
    """nginx with TLS on one port and without on another, in front of a TCP port and of a Unix socket."""

    def __init__(self, folder: Path, tcp: int, unix: Path) -> None:
        self.folder, self.tls, self.plain, self.unix = folder, free_port(), free_port(), free_port()
        folder.mkdir()
        subprocess.run(CERTIFICATE.split(), cwd=folder, check=True, capture_output=True, timeout=300)
        program = shutil.which("nginx") or shutil.which("nginx", path="/usr/sbin")
        if program is None or not STREAM.exists():
            missing("nginx with its stream module", "apt-get install nginx-light libnginx-mod-stream")
        config = folder / "nginx.conf"
        config.write_text(
            f"load_module {STREAM}; daemon off; master_process off; pid {folder}/pid; error_log {folder}/error.log;\n"
            "worker_rlimit_nofile 4096; events { worker_connections 512; }\n"
            "stream { proxy_protocol on; proxy_half_close on; proxy_timeout 5m;\n"
            f"server {{ listen 127.0.0.1:{self.tls} ssl; ssl_certificate {folder}/cert.pem;"
            f" ssl_certificate_key {folder}/key.pem; proxy_pass 127.0.0.1:{tcp}; }}\n"
            f"server {{ listen 127.0.0.1:{self.plain}; proxy_pass 127.0.0.1:{tcp}; }}\n"
            f"server {{ listen 127.0.0.1:{self.unix}; proxy_pass unix:{unix}; }} }}\n"
        )
        self.process = subprocess.Popen([program, "-c", config, "-p", folder])
        for port in (self.tls, self.plain, self.unix):
            wait_for(lambda port=port: answers(port), 20, "nginx")

    @property
    def context(self) -> ssl.SSLContext:
        return ssl.create_default_context(cafile=self.folder / "cert.pem")

    def stop(self) -> None:
        self.process.terminate()
        self.process.wait(300)


def answers(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


def talk(port, *pieces, client="127.0.0.1", context=None, half_close=False):
    """Speak from one of the many addresses that a machine has for itself, then read to the end."""
    wire = socket.create_connection(("127.0.0.1", port), timeout=300, source_address=(client, 0))
    wire = context.wrap_socket(wire, server_hostname="localhost") if context else wire
    with wire:
        for piece in pieces:
            wire.sendall(piece)
        if half_close:
            wire.shutdown(socket.SHUT_WR)
        answer = b""
        while data := wire.recv(65536):
            answer += data
    return answer.decode()


def last_address(lcc: Lcc) -> object:
    return lcc.sql("select lastconnip from pidb where pid = 7")[0][0]


@pytest.fixture
def lcc(make_lcc):
    made = make_lcc(LCC_CONNECTIONS_PER_ADDRESS="2")
    made.add_provider(7, "http://www.example.org/")
    return made


def test_providers_behind_nginx_are_known_and_counted_by_their_own_addresses(lcc, tmp_path):
    place = tmp_path / "socket"
    lcc.settings["LCC_UNS_ENDPOINTS"] = (
        f"haproxy:tcp:{lcc.port}:interface=127.0.0.1 haproxy:unix:{place}:mode=660"
    )
    lcc.start_uns()
    front = Front(tmp_path / "front", lcc.port, place)
    try:
        assert 'received="1"' in talk(front.tls, INIT, PUSH, client="127.0.0.2", context=front.context)
        assert last_address(lcc) == "127.0.0.2"
        assert 'received="1"' in talk(front.plain, INIT, PUSH, client="127.0.0.3", half_close=True)
        assert last_address(lcc) == "127.0.0.3"
        assert 'received="1"' in talk(front.unix, INIT, PUSH, client="127.0.0.4", half_close=True)
        assert last_address(lcc) == "127.0.0.4"

        busy = [
            socket.create_connection(("127.0.0.1", front.plain), source_address=("127.0.0.2", 0))
            for _ in range(2)
        ]
        for wire in busy:
            wire.sendall(INIT)
            wire.recv(1)
        assert 'code="104"' in talk(front.plain, INIT, client="127.0.0.2", half_close=True)
        assert "init_accepted" in talk(front.plain, INIT, client="127.0.0.3", half_close=True)
        for wire in busy:
            wire.close()
    finally:
        front.stop()
    assert lcc.stop_uns() == 0
    assert "Traceback" not in lcc.uns_log.read_text()


def test_a_provider_that_comes_before_the_uns_is_served_by_the_socket_it_is_started_with(lcc):
    with socket.create_server(("127.0.0.1", 0)) as listening:
        port = listening.getsockname()[1]
        start = (
            f"import os; os.dup2({listening.fileno()}, 3, inheritable=True); "
            "os.environ.update(LISTEN_PID=str(os.getpid()), LISTEN_FDS='1', LISTEN_FDNAMES='uns'); "
            f"os.execv({str(BIN / 'lcc')!r}, ['lcc', 'uns'])"
        )
        with lcc.uns_log.open("wb") as log:
            lcc.uns = subprocess.Popen(
                [sys.executable, "-c", start],
                env={**lcc.environment, "LCC_UNS_ENDPOINTS": "systemd:domain=INET:name=uns"},
                pass_fds=[listening.fileno()],
                stdout=log,
                stderr=log,
            )
        assert 'received="1"' in talk(port, INIT, PUSH, half_close=True)
    assert last_address(lcc) == "127.0.0.1"
    assert lcc.stop_uns() == 0
