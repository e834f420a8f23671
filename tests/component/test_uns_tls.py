"""TLS in front of the UNS, on real sockets: parameters, handshakes that never end, renewal while it runs."""

import logging
import socket
import ssl
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress

import pytest
import pytest_twisted
from cryptography import x509
from twisted.internet.threads import deferToThread

from lcc_scrapy.domain.errors import ConfigurationError
from lcc_scrapy.domain.uns_limits import Limits
from tests.certificates import Authority
from tests.component.test_uns_service import END, INIT, SET, URL, started, talk, uns

__all__ = ["uns"]


@pytest.fixture(scope="module")
def authority():
    return Authority()


@pytest.fixture
def folder(authority, tmp_path):
    return authority.issue("localhost").write(tmp_path / "tls")


def endpoint(folder):
    return f"ssl:0:privateKey={folder}/key.pem:certKey={folder}/cert.pem:interface=127.0.0.1"


def trusting(authority, **bounds):
    context = ssl.create_default_context(cadata=authority.pem.decode())
    for name, value in bounds.items():
        setattr(context, name, value)
    return context


def greet(port, context):
    """Shake hands; returns version, cipher and certificate."""
    with (
        socket.create_connection(("127.0.0.1", port), timeout=300) as plain,
        context.wrap_socket(plain, server_hostname="localhost") as wire,
    ):
        return wire.version(), wire.cipher()[0], wire.getpeercert(binary_form=True)


def serial(der):
    return x509.load_der_x509_certificate(der).serial_number


# --- parameters ----------------------------------------------------------------------------------


@pytest.mark.parametrize("version", ["TLSv1_2", "TLSv1_3"])
@pytest_twisted.inlineCallbacks
def test_what_is_agreed_on_is_tls_of_today(uns, authority, folder, version):
    port = yield started(uns(endpoint(folder)))
    context = trusting(authority, maximum_version=ssl.TLSVersion[version])
    agreed, cipher, _ = yield deferToThread(greet, port, context)
    assert agreed == version.replace("_", ".")
    assert "GCM" in cipher or "CHACHA20" in cipher


@pytest.mark.parametrize(
    "ciphers", ["AES128-GCM-SHA256", "ECDHE-ECDSA-AES128-SHA256", "ECDHE-RSA-AES256-SHA"]
)
@pytest_twisted.inlineCallbacks
def test_a_client_that_can_only_do_what_is_weak_is_refused(uns, authority, folder, ciphers):
    port = yield started(uns(endpoint(folder)))
    context = trusting(authority, maximum_version=ssl.TLSVersion.TLSv1_2)
    context.set_ciphers(ciphers)
    with pytest.raises(ssl.SSLError, match=r"(?i)handshake.failure"):
        yield deferToThread(greet, port, context)


@pytest.mark.filterwarnings("ignore:ssl.TLSVersion.TLSv1_1 is deprecated:DeprecationWarning")
@pytest_twisted.inlineCallbacks
def test_a_client_that_can_only_do_tls_of_the_past_is_refused(uns, authority, folder):
    port = yield started(uns(endpoint(folder)))
    context = trusting(
        authority, minimum_version=ssl.TLSVersion.TLSv1_1, maximum_version=ssl.TLSVersion.TLSv1_1
    )
    context.set_ciphers("ALL:@SECLEVEL=0")
    with pytest.raises(ssl.SSLError, match=r"(?i)protocol.version|unsupported"):
        yield deferToThread(greet, port, context)


# --- files ---------------------------------------------------------------------------------------


@pytest_twisted.inlineCallbacks
def test_the_chain_may_stand_in_the_file_of_the_certificate(uns, authority, tmp_path):
    folder = Authority("Intermediate", above=authority).issue("localhost").write(tmp_path / "chained")
    port = yield started(uns(endpoint(folder)))
    agreed, _, _ = yield deferToThread(greet, port, trusting(authority))
    assert agreed


@pytest_twisted.inlineCallbacks
def test_the_chain_may_be_a_file_of_its_own(uns, authority, tmp_path):
    made = Authority("Intermediate", above=authority).issue("localhost")
    folder = made.write(tmp_path / "chained")
    (folder / "cert.pem").write_bytes(made.pem)
    (folder / "chain.pem").write_bytes(made.fullchain.removeprefix(made.pem))
    port = yield started(uns(f"{endpoint(folder)}:extraCertChain={folder}/chain.pem"))
    agreed, _, _ = yield deferToThread(greet, port, trusting(authority))
    assert agreed


@pytest_twisted.inlineCallbacks
def test_the_folder_that_certbot_keeps_will_do_as_it_is(uns, authority, tmp_path):
    made = Authority("Intermediate", above=authority).issue("localhost")
    files = {
        "cert.pem": made.pem,
        "chain.pem": made.fullchain.removeprefix(made.pem),
        "fullchain.pem": made.fullchain,
        "privkey.pem": made.key_pem(),
    }
    for name, data in files.items():
        (tmp_path / name).write_bytes(data)
    port = yield started(uns(f"tls:{tmp_path}:port=0:interface=127.0.0.1"))
    _, _, certificate = yield deferToThread(greet, port, trusting(authority))
    assert serial(certificate) == made.certificate.serial_number


@pytest_twisted.inlineCallbacks
def test_colons_in_names_are_written_as_twisted_wants_them(uns, authority, tmp_path):
    folder = authority.issue("localhost").write(tmp_path / "a:b")
    port = yield started(uns(endpoint(str(folder).replace(":", "\\:"))))
    agreed, _, _ = yield deferToThread(greet, port, trusting(authority))
    assert agreed


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("ssl:0:privateKey={0}/none.pem:certKey={0}/cert.pem", "none.pem: No such file or directory"),
        ("ssl:0:privateKey={0}/key.pem:certKey={0}/other.pem", "key.pem: does not belong to"),
        ("ssl:0:privateKey={0}/locked.pem:certKey={0}/cert.pem", "locked.pem: the key needs a password"),
        ("ssl:0:privateKey={0}/key.pem", "key.pem: no certificates in it"),
        ("ssl:0:privateKey={0}/cert.pem:certKey={0}/cert.pem", "cert.pem: no private key in it"),
        ("ssl:0:privateKey={0}/key.pem:certKey={0}/cert.pem:sslmethod=SSLv23_METHOD", "sslmethod"),
        ("ssl:0", "privateKey"),
        ("ssl:http:privateKey={0}/key.pem:certKey={0}/cert.pem", "http"),
        ("tls:{0}:port=0", "2 private keys; expected one"),
        ("tls:{0}/nowhere:port=0", "nowhere: No such file or directory"),
    ],
)
@pytest_twisted.inlineCallbacks
def test_certificates_that_cannot_be_used_are_one_clear_line(uns, authority, folder, text, said):
    (folder / "other.pem").write_bytes(authority.issue("localhost").pem)
    (folder / "locked.pem").write_bytes(authority.issue("localhost").key_pem(b"secret"))
    with pytest.raises(ConfigurationError) as raised:
        yield uns(text.format(folder)).start()
    assert said in str(raised.value)
    assert "LCC_UNS_ENDPOINTS" in str(raised.value)
    assert "\n" not in str(raised.value)


# --- handshakes ----------------------------------------------------------------------------------


@pytest.mark.parametrize("said", [b"", b"\x16\x03\x01\x02\x00\x01"])
@pytest_twisted.inlineCallbacks
def test_one_that_never_gets_to_speak_tls_is_cut_when_the_time_to_log_in_is_over(uns, folder, caplog, said):
    """It got its 206 encrypted before: that is, never, and held its place for another minute."""
    caplog.set_level(logging.INFO)
    service = uns(endpoint(folder), limits=Limits(login_seconds=0.5))
    port = yield started(service)
    with socket.create_connection(("127.0.0.1", port), timeout=300) as silent:
        silent.sendall(said)
        began = time.monotonic()
        with suppress(ConnectionResetError):
            assert (yield deferToThread(silent.recv, 100)) == b""
    assert time.monotonic() - began < 50, "not a minute more"
    assert len(service.conversations) == 0
    assert "uns no TLS with peer=127.0.0.1" in caplog.text


@pytest_twisted.inlineCallbacks
def test_it_counts_from_the_moment_it_connects(uns, authority, folder):
    service = uns(endpoint(folder), connections_per_address=1)
    port = yield started(service)
    with socket.create_connection(("127.0.0.1", port)):
        while len(service.conversations) < 1:
            yield deferToThread(threading.Event().wait, 0.01)
        answer = yield deferToThread(talk, port, INIT, context=trusting(authority))
    assert '<reason code="104"' in answer


@pytest_twisted.inlineCallbacks
def test_when_there_are_far_too_many_the_next_one_is_cut_without_a_word(uns, folder, caplog):
    service = uns(endpoint(folder), connections_per_address=9, connections_max=1)
    port = yield started(service)
    crowd = [socket.create_connection(("127.0.0.1", port)) for _ in range(2)]
    while len(service.conversations) < 2:
        yield deferToThread(threading.Event().wait, 0.01)
    with socket.create_connection(("127.0.0.1", port), timeout=300) as late:
        assert (yield deferToThread(late.recv, 100)) == b""
    assert len(service.conversations) == 2
    assert not [record for record in caplog.records if record.levelno >= logging.ERROR]
    for wire in crowd:
        wire.close()


@pytest_twisted.inlineCallbacks
def test_one_that_speaks_plainly_is_cut_and_the_log_says_why(uns, folder, caplog):
    caplog.set_level(logging.INFO)
    port = yield started(uns(endpoint(folder)))
    with socket.create_connection(("127.0.0.1", port), timeout=300) as plain:
        plain.sendall(INIT)
        answer = yield deferToThread(plain.recv, 1000)
    assert b"lococa" not in answer
    assert any(
        "no TLS" in record.getMessage() and "http" not in record.getMessage() for record in caplog.records
    )


@pytest_twisted.inlineCallbacks
def test_many_handshakes_at_once_are_all_done(uns, authority, folder):
    port = yield started(
        uns(endpoint(folder), connections_per_address=200, connections_per_provider=200, connections_max=300)
    )
    context = trusting(authority)
    said = (INIT, SET % b"partial", URL * 100, END)
    began = time.monotonic()
    with ThreadPoolExecutor(50) as pool:
        answers = [pool.submit(talk, port, *said, context=context) for _ in range(100)]
        while not all(answer.done() for answer in answers):
            yield deferToThread(threading.Event().wait, 0.01)
    print(f"100 conversations over TLS, 50 at a time: {time.monotonic() - began:.2f} s")
    assert all('received="100"' in answer.result() for answer in answers)


# --- renewal -------------------------------------------------------------------------------------


@pytest_twisted.inlineCallbacks
def test_a_renewed_certificate_is_for_new_connections_and_running_ones_go_on(uns, authority, folder):
    service = uns(endpoint(folder))
    port = yield started(service)
    context = trusting(authority)
    running = context.wrap_socket(
        socket.create_connection(("127.0.0.1", port)),
        do_handshake_on_connect=False,
        server_hostname="localhost",
    )
    yield deferToThread(running.do_handshake)
    running.sendall(INIT)
    yield deferToThread(running.recv, 1)
    renewed = authority.issue("localhost")
    renewed.write(folder)
    assert (yield service.renew_certificates()) == 1
    _, _, certificate = yield deferToThread(greet, port, context)
    assert serial(certificate) == renewed.certificate.serial_number
    running.sendall(SET % b"partial" + URL + END)
    answer = b""
    while data := (yield deferToThread(running.recv, 65536)):
        answer += data
    assert b'received="1"' in answer
    running.close()


@pytest_twisted.inlineCallbacks
def test_a_broken_certificate_changes_nothing(uns, authority, folder):
    service = uns(endpoint(folder))
    port = yield started(service)
    _, _, before = yield deferToThread(greet, port, trusting(authority))
    (folder / "cert.pem").write_text("half a file")
    with pytest.raises(ConfigurationError, match=r"cert\.pem: no certificates in it"):
        yield service.renew_certificates()
    _, _, after = yield deferToThread(greet, port, trusting(authority))
    assert serial(after) == serial(before)
