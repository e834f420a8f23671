"""Bodies without a length over TLS: only a goodbye (close_notify) says that they are whole."""

import hashlib
import socket
import ssl
import threading
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from lcc_scrapy.domain.entries import Declared
from lcc_scrapy.fetch.download_handler import ROW
from tests.certificates import Authority
from tests.faults.handling import LOOPS, Handling
from tests.integration.site import Site
from tests.integration.test_http_answers import OK, Scene, tls_of

BODY = b"<p>all of it</p>" * 9000
CLOSE = OK + b"\r\n"
CUT = 614


class Ending:
    """Answers over TLS, one connection after the other: each answer, and whether goodbye is said behind it."""

    def __init__(self, context: ssl.SSLContext, *answers: tuple[bytes, bool]) -> None:
        self._listening = context.wrap_socket(socket.create_server(("127.0.0.1", 0)), server_side=True)
        self.port = self._listening.getsockname()[1]
        self._answers = answers
        threading.Thread(target=self._serve, daemon=True).start()

    def _serve(self) -> None:
        for wire, polite in self._answers:
            with suppress(OSError):
                peer, _ = self._listening.accept()
                peer.recv(65536)
                peer.sendall(wire)
                if polite:
                    with suppress(OSError):
                        peer.unwrap()
                peer.shutdown(socket.SHUT_RDWR)
                peer.close()
        self._listening.close()


@pytest.fixture
def scene(tmp_path: Path) -> Iterator[Scene]:
    with Site() as site:
        yield Scene(site, Handling(tmp_path), "asyncio", 0, scheme="https")


@pytest.fixture
def context(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ssl.SSLContext:
    authority = Authority()
    (tmp_path / "ours.pem").write_bytes(authority.pem)
    monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "ours.pem"))
    return tls_of(tmp_path / "tls", authority, "127.0.0.1")


def fetched(
    scene: Scene, context: ssl.SSLContext, answers: Sequence[tuple[bytes, bool]], **meta: Any
) -> list[int]:
    scene.port = Ending(context, *answers).port
    return [got.code for got in scene.fetch(*["/x"] * len(answers), meta=meta)]


@pytest.mark.parametrize("loop", LOOPS)
@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3])
@pytest.mark.parametrize(
    ("answers", "codes"),
    [
        pytest.param([(CLOSE + BODY, True)], [200], id="a goodbye"),
        pytest.param([(CLOSE + BODY, False)], [CUT], id="none"),
        pytest.param([(CLOSE, False)], [CUT], id="none, and no body"),
        pytest.param([(CLOSE + BODY, False)] * 3, [CUT, 200, 200], id="the same bytes again"),
        pytest.param(
            [(CLOSE + BODY[:end], False) for end in (10, 20, 20)], [CUT, CUT, 200], id="other bytes before"
        ),
        pytest.param([(OK + b"Content-Length: 4\r\n\r\nbody", False)], [200], id="a length"),
        pytest.param([(OK + b"Content-Length: 5\r\n\r\nbody", False)] * 2, [CUT, CUT], id="a length, cut"),
        pytest.param(
            [(OK + b"Transfer-Encoding: chunked\r\n\r\n4\r\nbody\r\n0\r\n\r\n", False)], [200], id="chunks"
        ),
        pytest.param([(b"HTTP/1.1 404 No\r\n\r\nnothing", False)], [404], id="a status that decides"),
    ],
)
def test_only_a_goodbye_or_the_same_bytes_again_make_a_body_whole(
    scene: Scene,
    context: ssl.SSLContext,
    *,
    loop: str,
    version: ssl.TLSVersion,
    answers: list[tuple[bytes, bool]],
    codes: list[int],
) -> None:
    scene.loop, context.maximum_version = loop, version
    assert fetched(scene, context, answers) == codes


@pytest.mark.parametrize(
    ("declared", "code"),
    [
        (Declared(None, len(BODY), hashlib.md5(BODY).hexdigest()), 200),
        (Declared(None, len(BODY) + 1, hashlib.md5(BODY).hexdigest()), CUT),
        (Declared(None, len(BODY), "0" * 32), CUT),
        (Declared(None, len(BODY), None), CUT),
        (Declared(None, None, hashlib.md5(BODY).hexdigest()), CUT),
        (Declared(), CUT),
    ],
)
def test_or_that_md5_and_len_are_as_declared(
    scene: Scene, context: ssl.SSLContext, declared: Declared, code: int
) -> None:
    row = SimpleNamespace(md5=declared.md5, len=declared.length, mimetype="text/html")
    assert fetched(scene, context, [(CLOSE + BODY, False)], **{ROW: row}) == [code]
