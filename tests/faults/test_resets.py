"""Connections that are reset while data still waits to be read: they end like any other."""

import os
import signal
import socket
import struct
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest

from tests.harness import PASSWORD, Lcc, wait_for

pytestmark = [pytest.mark.acceptance]

ROOT = "http://www.example.org/"
INIT = f'<lococa:init xmlns:lococa="http://www.lococa.org/1.0"><provider id="7" passwd="{PASSWORD}"/></lococa:init>'
BEGINNINGS = [
    "<lococa:init",
    INIT,
    f'{INIT}<lococa:set set="partial"><url c="{ROOT}a" mimetype="text/html"/>',
]


def reset(connection: socket.socket) -> None:
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    connection.close()


def sockets(pid: int) -> int:
    found = 0
    for entry in Path(f"/proc/{pid}/fd").iterdir():
        with suppress(OSError):
            found += entry.readlink().name.startswith("socket:")
    return found


def test_a_reset_that_comes_together_with_data_ends_the_connection(make_lcc: Callable[..., Lcc]) -> None:
    lcc = make_lcc(
        LCC_LOGIN_SECONDS="1h", LCC_IDLE_SECONDS="1h"
    )  # the server itself ends none in the meantime
    lcc.add_provider(7, ROOT)
    lcc.start_uns()
    assert lcc.uns is not None
    before = sockets(lcc.uns.pid)
    connections = [socket.create_connection(("127.0.0.1", lcc.port)) for _ in range(len(BEGINNINGS) * 2)]
    time.sleep(0.3)
    os.kill(lcc.uns.pid, signal.SIGSTOP)
    try:
        for number, connection in enumerate(connections):
            connection.sendall(BEGINNINGS[number % len(BEGINNINGS)].encode())
            reset(connection)
    finally:
        os.kill(lcc.uns.pid, signal.SIGCONT)
    wait_for(lambda: sockets(lcc.uns.pid) == before, what="the connections to end")
    wait_for(lambda: lcc.sql("select count(*) from logins") == [(0,)], what="the logins to be forgotten")
    assert not list((lcc.folder / "lcc-data" / "spool").glob("*.part"))
    assert lcc.push_urls(7, [{"c": f"{ROOT}b", "mimetype": "text/html"}]).returncode == 0
    assert lcc.stop_uns() == 0
    assert "Traceback" not in lcc.uns_log.read_text()


def test_a_crawl_that_listens_refuses_the_loop_that_loses_them(make_lcc: Callable[..., Lcc]) -> None:
    said = make_lcc().refused("-s", "ASYNCIO_EVENT_LOOP=uvloop.Loop")
    assert "cannot listen for providers on uvloop" in said
    assert "Traceback" not in said
