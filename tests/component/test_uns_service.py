"""The UNS on real sockets: listening, both kinds of close, early rejection, stopping."""

import socket
import ssl
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest
import pytest_twisted
from twisted.internet.defer import succeed
from twisted.internet.threads import deferToThread

from lcc_scrapy.domain.errors import ConfigurationError
from lcc_scrapy.domain.listen_rules import UnsListenRules
from lcc_scrapy.domain.roots import Root
from lcc_scrapy.domain.uns_limits import Limits
from lcc_scrapy.uns.ports import DryRun, Login
from lcc_scrapy.uns.service import UnsService
from lcc_scrapy.uns.spool import SpoolFolder
from lcc_scrapy.wire.messages import InitAccepted, Quota
from tests.certificates import Authority

INIT = b'<lococa:init xmlns:lococa="http://www.lococa.org/1.0"><provider id="7" passwd="x"/></lococa:init>'
SET = b'<lococa:set set="%s" urlprefix="http://www.example.org/">'
URL = b'<url c="a.html" mimetype="text/html"/>\n'
END = b"</lococa:set>"
LOCAL = "tcp:0:interface=127.0.0.1"


class Desk:
    fullsets_left = None

    def __init__(self):
        self.refused = []
        self.logouts = threading.Semaphore(0)
        self.seq = 0

    def login(self, provider_id, password, ip):
        self.seq += 1
        accepted = InitAccepted(self.seq, ip, ("text/*",), Quota())
        roots = (Root.parse("http://www.example.org/"),)
        return succeed(Login(7, accepted, roots, fullsets_left=self.fullsets_left))

    def note_refused(self, login, refused):
        self.refused.extend(refused)
        return succeed(None)

    def logout(self, login, refused=0):
        self.logouts.release()
        return succeed(None)

    def dry_run(self, login, spooled):
        return succeed(DryRun(0))


class Doorstep:
    def __init__(self):
        self.arrived = []

    def set_arrived(self, path):
        self.arrived.append(path)

    def no_set_came(self, pid, seq):
        pass


@pytest.fixture
def uns(tmp_path):
    from twisted.internet import reactor

    spool = SpoolFolder(tmp_path / "spool")
    spool.lock()
    spool.recover()
    made = []

    def make(*endpoints, limits=None, **listen_rules):
        made.append(
            UnsService(
                reactor,
                Desk(),
                Doorstep(),
                spool,
                listen_rules=UnsListenRules(endpoints, **{"stop_seconds": 0.1, **listen_rules}),
                limits=limits or Limits(),
            )
        )
        return made[-1]

    yield make
    for service in made:
        pytest_twisted.blockon(service.stop())
    spool.unlock()


def talk(port, *pieces, half_close=False, context=None):
    """Send all, then read to the end, as the provider modules of 2002 did."""
    with socket.create_connection(("127.0.0.1", port), timeout=300) as plain:
        wire = context.wrap_socket(plain, server_hostname="localhost") if context else plain
        for piece in pieces:
            wire.sendall(piece)
        if half_close:
            wire.shutdown(socket.SHUT_WR)
        answer = b""
        while data := wire.recv(65536):
            answer += data
        if context:
            wire.unwrap().close()
        return answer.decode()


@pytest_twisted.inlineCallbacks
def started(service):
    addresses = yield service.start()
    return addresses[0].port


@pytest.mark.parametrize("half_close", [False, True])
@pytest_twisted.inlineCallbacks
def test_a_whole_conversation(uns, half_close):
    service = uns(LOCAL)
    port = yield started(service)
    answer = yield deferToThread(talk, port, INIT, SET % b"partial", URL, END, half_close=half_close)
    assert 'lastConnectIP="127.0.0.1"' in answer
    assert answer.endswith('<set_accepted received="1"/>\n</lococa:set_result>\n')
    assert (yield deferToThread(service._shared.login_service.logouts.acquire, timeout=300))
    assert len(service._shared.accepted_sets.arrived) == 1
    assert not service.conversations.is_open(7, 1)


@pytest_twisted.inlineCallbacks
def test_an_early_rejection_arrives_although_the_client_sends_everything_first(uns):
    service = uns(LOCAL)
    service._shared.login_service.fullsets_left = 0
    port = yield started(service)
    answer = yield deferToThread(talk, port, INIT, SET % b"full", *([URL * 1000] * 500), END)
    assert '<set_rejected code="202">' in answer


@pytest_twisted.inlineCallbacks
def test_one_who_reads_last_gets_all_its_url_errors(uns):
    service = uns(LOCAL)
    port = yield started(service)
    bad = URL.replace(b"text/html", b"image/png") * 2000
    answer = yield deferToThread(talk, port, INIT, SET % b"partial", bad, URL, END)
    assert answer.count('<url code="703"') == 2000
    assert 'received="1"' in answer


@pytest_twisted.inlineCallbacks
def test_an_answer_reaches_one_who_sent_nonsense(uns):
    port = yield started(uns(LOCAL))
    answer = yield deferToThread(talk, port, b"GET / HTTP/1.0\r\n\r\n" * 1000)
    assert '<reason code="105">' in answer


@pytest_twisted.inlineCallbacks
def test_many_slow_clients_do_not_keep_an_honest_one_waiting(uns):
    port = yield started(uns(LOCAL, connections_per_address=1000, connections_max=1000))
    slow = []
    for number in range(300):
        slow.append((yield deferToThread(socket.create_connection, ("127.0.0.1", port))))
        slow[-1].send(INIT[: number % len(INIT)])
    answer = yield deferToThread(talk, port, INIT, SET % b"partial", URL * 5000, END)
    assert 'received="5000"' in answer
    for wire in slow:
        wire.close()


@pytest_twisted.inlineCallbacks
def test_one_connection_too_many_is_told_so_and_has_its_turn_later(uns):
    service = uns(LOCAL, connections_per_address=1)
    port = yield started(service)
    first = socket.create_connection(("127.0.0.1", port))
    first.send(INIT)
    yield deferToThread(first.recv, 1)
    answer = yield deferToThread(talk, port, INIT, half_close=True)
    assert '<reason code="104" retry-after="300">' in answer
    first.close()
    while len(service.conversations):
        yield deferToThread(threading.Event().wait, 0.01)
    answer = yield deferToThread(talk, port, INIT, half_close=True)
    assert "init_accepted" in answer


@pytest_twisted.inlineCallbacks
def test_a_taken_port_is_one_clear_line(uns):
    port = yield started(uns(LOCAL))
    with pytest.raises(ConfigurationError) as raised:
        yield uns(f"tcp:{port}:interface=127.0.0.1").start()
    assert str(raised.value).startswith(f"port {port} at 127.0.0.1 is taken")
    assert "LCC_UNS_ENDPOINTS" in str(raised.value)


@pytest.mark.parametrize("endpoint", ["tcp:0", "tcp:0:interface=0.0.0.0", "tcp6:0:interface=\\:\\:"])
@pytest_twisted.inlineCallbacks
def test_passwords_are_not_taken_in_the_open_unless_that_was_asked_for(uns, endpoint):
    with pytest.raises(ConfigurationError, match="plain text"):
        yield uns(endpoint).start()
    port = yield started(uns(endpoint, allow_plain_remote=True))
    assert port


@pytest.mark.parametrize("endpoint", ["", "tcp", "tcp:http:x=y", "carrier-pigeon:1"])
@pytest_twisted.inlineCallbacks
def test_an_endpoint_that_makes_no_sense_is_one_clear_line(uns, endpoint):
    with pytest.raises(ConfigurationError, match="LCC_UNS_ENDPOINTS"):
        yield uns(endpoint).start()


@pytest_twisted.inlineCallbacks
def test_no_endpoint_is_no_port(uns):
    assert (yield uns().start()) == []


@pytest_twisted.inlineCallbacks
def test_a_stopped_server_has_answered_everybody_and_frees_its_port(uns):
    service = uns(LOCAL)
    port = yield started(service)
    with ThreadPoolExecutor(2) as pool:
        answers = [pool.submit(talk, port, said) for said in (INIT + SET % b"partial" + URL, INIT[:-1])]
        while service._shared.login_service.seq < 1 or len(service.conversations) < 2:
            yield deferToThread(threading.Event().wait, 0.01)
        yield service.stop()
        told = [answer.result() for answer in answers]
    assert '<set_rejected code="203"' in told[0]
    assert '<reason code="103"' in told[1]
    assert len(service.conversations) == 0
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(("127.0.0.1", port))


@pytest_twisted.inlineCallbacks
def test_a_client_that_does_not_listen_cannot_stop_the_server_from_stopping(uns):
    service = uns(LOCAL)
    port = yield started(service)
    deaf = socket.create_connection(("127.0.0.1", port))
    deaf.send(INIT)
    yield deferToThread(deaf.recv, 1)
    yield service.stop()
    assert len(service.conversations) == 0
    deaf.close()


@pytest.mark.parametrize("rejected", [False, True])
@pytest_twisted.inlineCallbacks
def test_a_conversation_over_tls_ends_as_tls_wants_it(uns, tmp_path, rejected):
    authority = Authority()
    authority.issue("localhost").write(tmp_path)
    service = uns(f"ssl:0:privateKey={tmp_path}/key.pem:certKey={tmp_path}/cert.pem:interface=127.0.0.1")
    service._shared.login_service.fullsets_left = 0
    port = yield started(service)
    context = ssl.create_default_context(cadata=authority.pem.decode())
    kind = b"full" if rejected else b"partial"
    answer = yield deferToThread(talk, port, INIT, SET % kind, URL * 20_000, END, context=context)
    assert ('<set_rejected code="202">' if rejected else 'received="20000"') in answer
    assert (yield deferToThread(service._shared.login_service.logouts.acquire, timeout=300))
