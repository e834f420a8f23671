"""``haproxy:`` and ``systemd:`` endpoints on real sockets: who is believed, and what a socket is bound to."""

import contextlib
import gc
import os
import socket
import struct
from ipaddress import ip_address, ip_network

import pytest
import pytest_twisted
from twisted.internet import endpoints
from twisted.internet.threads import deferToThread
from twisted.python.systemd import ListenFDs

from lcc_scrapy.domain.errors import ConfigurationError
from tests.component.test_uns_service import END, INIT, LOCAL, SET, URL, started, talk, uns

__all__ = ["uns"]
V1 = b"PROXY TCP4 192.0.2.1 127.0.0.1 4711 9000\r\n"


def v2(source: str) -> bytes:
    addresses = ip_address(source).packed + ip_address("2001:db8::2").packed + struct.pack("!HH", 4711, 9000)
    return b"\r\n\r\n\0\r\nQUIT\n\x21\x21" + struct.pack("!H", len(addresses)) + addresses


@pytest.mark.parametrize(("header", "peer"), [(V1, "192.0.2.1"), (v2("2001:db8::1"), "2001:db8::1")])
@pytest.mark.parametrize("half_close", [False, True])
@pytest_twisted.inlineCallbacks
def test_a_whole_conversation_through_a_proxy(uns, header, peer, half_close):
    service = uns(f"haproxy:{LOCAL}")
    service._shared.login_service.login = known_by = Login(service._shared.login_service.login)
    port = yield started(service)
    answer = yield deferToThread(
        talk, port, header + INIT, SET % b"partial", URL * 1000, END, half_close=half_close
    )
    assert 'received="1000"' in answer
    assert known_by.addresses == [peer]


class Login:
    def __init__(self, login):
        self.login = login
        self.addresses = []

    def __call__(self, provider_id, password, ip):
        self.addresses.append(ip)
        return self.login(provider_id, password, ip)


@pytest_twisted.inlineCallbacks
def test_connections_are_counted_by_the_address_behind_the_proxy(uns):
    port = yield started(uns(f"haproxy:{LOCAL}", connections_per_address=1))
    first = socket.create_connection(("127.0.0.1", port))
    first.sendall(V1 + INIT)
    yield deferToThread(first.recv, 1)
    assert 'code="104"' in (yield deferToThread(talk, port, V1 + INIT, half_close=True))
    other = V1.replace(b"192.0.2.1", b"192.0.2.2")
    assert "init_accepted" in (yield deferToThread(talk, port, other + INIT, half_close=True))
    first.close()


@pytest.mark.parametrize("said", [INIT, b"PROXY TCP4 a b c d\r\n" + INIT, b"GET / HTTP/1.0\r\n\r\n"])
@pytest_twisted.inlineCallbacks
def test_who_does_not_say_whom_it_brings_gets_no_answer(uns, said):
    port = yield started(uns(f"haproxy:{LOCAL}"))
    assert (yield deferToThread(answer_or_cut, port, said)) == ""


def answer_or_cut(port, said):
    try:
        return talk(port, said)
    except (ConnectionResetError, BrokenPipeError):
        return ""


@pytest_twisted.inlineCallbacks
def test_nobody_but_a_proxy_of_ours_can_claim_an_address(uns):
    service = uns(f"haproxy:{LOCAL}", proxies=[ip_network("10.0.0.0/8")])
    port = yield started(service)
    assert (yield deferToThread(answer_or_cut, port, V1 + INIT)) == ""
    assert service._shared.login_service.seq == 0


@pytest_twisted.inlineCallbacks
def test_a_stopped_server_keeps_no_connection_of_which_nothing_is_known(uns):
    service = uns(f"haproxy:{LOCAL}")
    port = yield started(service)
    silent = socket.create_connection(("127.0.0.1", port))
    silent.settimeout(5)  # less than a header is waited for
    while not service._proxy_protocol.waiting:
        yield deferToThread(os.sched_yield)
    yield service.stop()
    with pytest.raises(ConnectionResetError):
        yield deferToThread(silent.recv, 1)
    silent.close()


def handed_over(monkeypatch, kind, address):
    """Let Twisted find a listening socket as if systemd had handed it over."""
    with socket.socket(kind) as listening:
        listening.bind(address)
        listening.listen()
        mine = os.dup(listening.fileno())
    monkeypatch.setattr(endpoints._SystemdParser, "_sddaemon", ListenFDs([mine], ["uns"]))
    return mine


@pytest.mark.parametrize(
    ("socket_of", "endpoint", "why"),
    [
        ((socket.AF_INET, ("0.0.0.0", 0)), "systemd:domain=INET:index=0", "plain text"),
        ((socket.AF_INET6, ("::", 0)), "systemd:domain=INET6:name=uns", "plain text"),
        ((socket.AF_INET6, ("::", 0)), "systemd:domain=INET:index=0", "plain text"),
        ((socket.AF_INET, ("0.0.0.0", 0)), "haproxy:systemd:domain=INET:index=0", "plain text"),
        ((socket.AF_INET, ("127.0.0.1", 0)), "systemd:domain=INET:index=7", "cannot be used"),
        ((socket.AF_INET, ("127.0.0.1", 0)), "systemd:domain=INET:name=other", "cannot be used"),
    ],
)
@pytest_twisted.inlineCallbacks
def test_a_socket_from_outside_is_refused_when_it_is_open_to_others_or_is_not_what_was_said(
    uns, monkeypatch, socket_of, endpoint, why
):
    mine = handed_over(monkeypatch, *socket_of)
    try:
        with pytest.raises(ConfigurationError, match=why):
            yield uns(endpoint).start()
    finally:
        try_to_close(mine)


def try_to_close(descriptor):
    with contextlib.suppress(OSError):  # adopted and closed by Twisted
        os.close(descriptor)


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")  # Twisted drops its own copy
@pytest.mark.parametrize(
    ("kind", "address", "endpoint"),
    [
        (socket.AF_INET, ("0.0.0.0", 0), "systemd:domain=UNIX:index=0"),
        (socket.AF_UNIX, b"\0lcc-test", "systemd:domain=INET:index=0"),
    ],
)
@pytest_twisted.inlineCallbacks
def test_a_socket_of_another_domain_than_was_said_is_one_clear_line(
    uns, monkeypatch, kind, address, endpoint
):
    mine = handed_over(
        monkeypatch, kind, address + b"%d" % os.getpid() if kind == socket.AF_UNIX else address
    )
    with pytest.raises(ConfigurationError, match="cannot be used"):
        yield uns(endpoint).start()
    try_to_close(mine)
    gc.collect()


@pytest.mark.parametrize(("prefix", "header"), [("", b""), ("haproxy:", V1)])
@pytest_twisted.inlineCallbacks
def test_a_socket_from_outside_that_is_bound_to_loopback_is_taken(uns, monkeypatch, prefix, header):
    handed_over(monkeypatch, socket.AF_INET, ("127.0.0.1", 0))
    port = yield started(uns(f"{prefix}systemd:domain=INET:name=uns"))
    answer = yield deferToThread(talk, port, header + INIT, half_close=True)
    assert "init_accepted" in answer


@pytest_twisted.inlineCallbacks
def test_tls_behind_a_proxy_header_is_refused_for_no_proxy_speaks_so(uns):
    with pytest.raises(ConfigurationError, match="end TLS at the proxy"):
        yield uns("haproxy:ssl:0:privateKey=k:certKey=c").start()
