"""A conversation of the front and its relay, without sockets."""

import socket

import pytest
from twisted.internet.defer import Deferred, fail, succeed
from twisted.internet.error import ConnectError, ConnectionDone, ConnectionLost
from twisted.internet.task import Clock
from twisted.internet.testing import StringTransport
from twisted.python.failure import Failure

from lcc_scrapy.domain.errors import StoreUnavailable
from lcc_scrapy.domain.front import SubLcc
from lcc_scrapy.domain.uns_limits import Limits
from lcc_scrapy.front.relay import CONNECT_SECONDS, SILENCE, FrontProtocol, Upstream
from lcc_scrapy.listeners.proxy_header import header_for
from lcc_scrapy.uns.conversations import Conversations
from lcc_scrapy.uns.set_receiver import Context

INIT = b'<lococa:init xmlns:lococa="http://www.lococa.org/1.0"><provider id="7" passwd="x"/></lococa:init>'
SET = b'<lococa:set set="partial">'
PEER = "192.0.2.1"


class Wire(StringTransport):
    """A transport that tells how it ended."""

    def __init__(self):
        super().__init__()
        self.ended = []
        self.options = {}

    def getHandle(self):
        return self

    def setsockopt(self, _level, name, value):
        self.options[name] = value

    def setTcpKeepAlive(self, on):
        pass

    def loseConnection(self):
        self.ended.append("closed")

    def loseWriteConnection(self):
        self.ended.append("half-closed")

    def abortConnection(self):
        self.ended.append("cut")


class House:
    """The front, of which ``sub_of`` and ``connected`` say what it finds."""

    def __init__(self):
        self.clock, self.client, self.server = Clock(), Wire(), Wire()
        self.sub_of = lambda _: succeed(SubLcc("a", "h:1"))
        self.connected = self.connect_now
        self.conversations = Conversations(10, 10)
        context = Context(conversations=self.conversations, limits=Limits(), clock=self.clock)
        self.left_ = 0
        self.protocol = FrontProtocol(context, PEER, self, self)
        self.protocol.makeConnection(self.client)

    @property
    def reactor(self):
        return self.clock

    def entered(self, _protocol):
        return None

    def left(self, _protocol):
        self.left_ += 1

    def connect(self, _sub, client, heard):
        self.upstream = Upstream(client, heard)
        return self.connected()

    def connect_now(self):
        self.upstream.makeConnection(self.server)
        return succeed(self.upstream)


@pytest.fixture
def house():
    return House()


def test_everything_that_was_said_goes_on_behind_the_address_of_who_said_it(house):
    waiting = Deferred()
    house.sub_of = lambda _: waiting
    house.protocol.dataReceived(INIT[:20])
    house.protocol.dataReceived(INIT[20:] + SET)
    assert house.server.value() == b""
    waiting.callback(SubLcc("a", "h:1"))
    assert house.server.value() == header_for(PEER) + INIT + SET
    house.protocol.dataReceived(b"<url/>")
    house.upstream.dataReceived(b"<answer/>")
    assert house.server.value().endswith(SET + b"<url/>")
    assert house.client.value() == b"<answer/>"


ACCEPTED = b'<lococa:init_accepted version="1.0" lcc="a">\n'


@pytest.mark.parametrize("pieces", [[ACCEPTED], [ACCEPTED[:5], ACCEPTED[5:30], ACCEPTED[30:]]])
def test_a_place_is_kept_for_where_a_sub_lcc_let_a_provider_in(house, pieces):
    house.protocol.dataReceived(INIT)
    for piece in pieces:
        house.upstream.dataReceived(piece)
    everybody = house.conversations
    assert [everybody.arrive(f"198.51.100.{number}") for number in range(10)].count(True) == 8
    assert everybody.arrive(PEER)


def test_no_place_is_kept_for_who_was_refused(house):
    house.protocol.dataReceived(INIT)
    house.upstream.dataReceived(b"<lococa:init_rejected>\n" + ACCEPTED)
    for number in range(10):
        house.conversations.arrive(f"198.51.100.{number}")
    assert not house.conversations.arrive(PEER)


def test_each_side_waits_while_the_other_one_does_not_read(house):
    house.protocol.dataReceived(INIT)
    assert (house.client.producer, house.server.producer) == (house.server, house.client)
    house.client.producer.pauseProducing()
    assert (house.server.producerState, house.client.producerState) == ("paused", "producing")
    house.server.producer.pauseProducing()
    assert house.client.producerState == "paused"


def test_a_machine_that_vanished_is_noticed_and_one_that_does_not_read_is_waited_for(house):
    house.protocol.dataReceived(INIT)
    assert house.server.options[socket.TCP_KEEPIDLE] == 30
    assert socket.TCP_USER_TIMEOUT not in house.server.options  # Linux counts a window of zero as silence


def test_a_provider_that_ended_its_stream_before_it_was_passed_on_has_ended_it_there_too(house):
    waiting = Deferred()
    house.sub_of = lambda _: waiting
    house.protocol.dataReceived(INIT)
    house.protocol.readConnectionLost()
    waiting.callback(SubLcc("a", "h:1"))
    assert house.server.ended == ["half-closed"]
    house.upstream.readConnectionLost()
    assert (house.client.ended, house.server.ended) == (["half-closed", "closed"], ["half-closed", "closed"])


def test_a_provider_that_does_not_read_the_rest_of_its_answer_is_cut_in_the_end(house):
    house.protocol.dataReceived(INIT)
    house.upstream.dataReceived(b"x" * 100)
    house.upstream.connectionLost(Failure(ConnectionDone()))
    assert house.client.ended == ["half-closed", "closed"]
    house.clock.advance(Limits().linger_seconds - 0.1)
    assert "cut" not in house.client.ended
    house.clock.advance(0.2)
    assert house.client.ended[-1] == "cut"


def test_a_provider_that_hears_all_and_does_not_leave_is_cut_in_the_end(house):
    house.protocol.dataReceived(INIT)
    house.upstream.readConnectionLost()
    for _ in range(3):
        house.clock.advance(Limits().linger_seconds / 3 + 0.1)
        house.protocol.dataReceived(b" ")  # it does not buy time with that
    assert house.client.ended == ["half-closed", "cut"]


def test_a_sub_lcc_that_never_answers_is_waited_for_as_long_as_something_passes(house):
    house.protocol.dataReceived(INIT)
    for said in (house.protocol.dataReceived, house.upstream.dataReceived):
        house.clock.advance(SILENCE - 1)
        said(b"x")
    house.clock.advance(SILENCE - 1)
    assert house.client.ended == []
    house.clock.advance(2)
    assert house.client.ended == ["cut"]


def test_a_provider_that_read_it_in_time_leaves_no_timer_behind(house):
    house.protocol.dataReceived(INIT)
    house.upstream.connectionLost(Failure(ConnectionDone()))
    house.protocol.connectionLost(Failure(ConnectionDone()))
    assert house.clock.getDelayedCalls() == []
    assert house.left_ == 1


@pytest.mark.parametrize(("reason", "end"), [(ConnectionDone(), "closed"), (ConnectionLost(), "cut")])
def test_the_end_of_one_side_is_that_of_the_other(reason, end):
    house = House()
    house.protocol.dataReceived(INIT)
    house.protocol.connectionLost(Failure(reason))
    assert house.server.ended == [end]
    house = House()
    house.protocol.dataReceived(INIT)
    house.upstream.connectionLost(Failure(reason))
    assert house.client.ended[-1] == end


@pytest.mark.parametrize("error", [ConnectError("down"), StoreUnavailable("away")])
def test_what_is_down_is_103(house, error):
    house.connected = lambda: fail(error)
    house.protocol.dataReceived(INIT)
    assert b'code="103"' in house.client.value()


def test_a_database_that_hangs_is_103(house):
    house.sub_of = lambda _: Deferred()
    house.protocol.dataReceived(INIT)
    house.clock.advance(CONNECT_SECONDS + 0.1)
    assert b'code="103"' in house.client.value()


def test_without_any_sub_lcc_nobody_is_let_in(house):
    house.sub_of = lambda _: succeed(None)
    house.protocol.dataReceived(INIT)
    assert b'code="101"' in house.client.value()


def test_a_connection_that_is_made_too_late_is_cut(house):
    waiting = Deferred()
    house.connected = lambda: waiting
    house.protocol.dataReceived(INIT)
    house.protocol.connectionLost(Failure(ConnectionLost()))
    house.upstream.makeConnection(house.server)
    waiting.callback(house.upstream)
    assert (house.server.ended, house.server.value()) == (["cut"], b"")


def test_when_the_front_stops_a_conversation_that_was_passed_on_ends_by_itself(house):
    house.protocol.dataReceived(INIT)
    house.protocol.stop()
    assert (house.client.ended, house.client.value()) == ([], b"")
    other = House()
    other.sub_of = lambda _: Deferred()
    other.protocol.dataReceived(INIT)
    other.protocol.stop()
    assert b'code="103"' in other.client.value()
