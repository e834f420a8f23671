"""The query socket on a transport and a clock of our own: whole conversations, and what goes wrong in them."""

import pytest
from same_thread import ByHand
from scrapy.settings import Settings
from twisted.internet.address import UNIXAddress
from twisted.internet.error import ConnectionDone
from twisted.internet.task import Clock
from twisted.internet.testing import StringTransport
from twisted.python.failure import Failure

from lcc_scrapy.apps.query.service import QueryService
from lcc_scrapy.apps.query.settings import Limits, QueryListenRules, QuerySettings
from lcc_scrapy.apps.query.states import State
from lcc_scrapy.apps.query.wire.messages import QueryRejected, ResultBegins
from lcc_scrapy.apps.query.wire.reading import ResultReader
from lcc_scrapy.config.config import load
from lcc_scrapy.domain.cursor import BadCursor, StartOver
from lcc_scrapy.domain.errors import Refusal, StoreUnavailable

ASK = b"<lococa:query/>"
WAIT = b"<lococa:query wait='10'/>"
BEGIN = b"<lococa:result lcc='l' position='p'>"
LIMITS = Limits(
    query_seconds=10, idle_seconds=60, rate=1000, rate_grace_seconds=30, poll_seconds=2, linger_seconds=5
)


class Wire(StringTransport):
    """Both kinds of close, each seen for itself."""

    half_closed = aborted = False

    def loseWriteConnection(self):
        self.half_closed = True

    def abortConnection(self):
        self.aborted = True
        self.protocol.connectionLost(Failure(ConnectionDone()))


class Portions:
    """An answer of the test's own: bytes, None for "nothing yet", errors to be raised."""

    def __init__(self, *portions):
        self.patient = True
        self.given = list(portions)
        self.closed = False

    def portions(self):
        try:
            for one in self.given:
                if isinstance(one, Exception):
                    raise one
                if one is not None:
                    yield one
                while one is None and self.patient:
                    yield None
        finally:
            self.closed = True


class House:
    def __init__(self, *portions, limits=LIMITS, **listen_rules):
        self.clock = Clock()
        self.thread = ByHand()
        self.answer = Portions(*portions)
        self.asked = []
        self.service = QueryService(
            self.clock,
            self.make,
            self.thread.run,
            listen_rules=QueryListenRules(stop_seconds=3, **listen_rules),
            limits=limits,
        )

    def make(self, query, peer):
        self.asked.append((query, peer))
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer

    def arrive(self, peer="192.0.2.1"):
        protocol = self.service._converse(peer)
        wire = Wire()
        wire.protocol = protocol
        protocol.makeConnection(wire)
        return protocol, wire

    def ask(self, text=ASK):
        protocol, wire = self.arrive()
        protocol.dataReceived(text)
        return protocol, wire


def rejected(wire):
    (message,) = ResultReader().feed(wire.value())
    assert isinstance(message, QueryRejected)
    return message.code


def test_an_answer_goes_out_portion_by_portion_and_then_the_connection_ends():
    house = House(b"<a>", b"<b>")
    protocol, wire = house.ask()
    assert wire.value() == b""
    house.thread.work_off()
    assert wire.value() == b"<a><b>"
    assert wire.half_closed
    assert not wire.disconnecting
    protocol.readConnectionLost()
    assert wire.disconnecting
    assert [peer for _, peer in house.asked] == ["192.0.2.1"]


def test_no_portion_is_made_before_the_one_before_it_was_taken():
    house = House(*[b"x" * 60_000] * 9)
    protocol, wire = house.ask()
    house.thread.work_off(1)
    protocol.pauseProducing()
    house.thread.work_off(1)
    assert len(wire.value()) == 120_000
    assert not house.thread.jobs
    for number in range(3, 10):
        protocol.resumeProducing()
        protocol.pauseProducing()
        assert house.thread.work_off() == 1
        assert len(wire.value()) == number * 60_000
    assert not wire.half_closed


def test_one_that_closed_its_side_after_the_query_still_gets_the_answer():
    house = House(b"<a>")
    protocol, wire = house.ask()
    protocol.readConnectionLost()
    house.thread.work_off()
    assert wire.value() == b"<a>"
    assert wire.disconnecting


def test_a_query_that_is_cut_short_is_805_and_nothing_at_all_gets_nothing():
    house = House()
    protocol, wire = house.ask(ASK[:-3])
    protocol.readConnectionLost()
    assert rejected(wire) == 805
    assert wire.disconnecting
    protocol, wire = house.arrive()
    protocol.readConnectionLost()
    assert wire.value() == b""
    assert wire.disconnecting
    assert house.asked == []


@pytest.mark.parametrize(
    "text", [b"<!DOCTYPE x>", b"GET / HTTP/1.0\r\n\r\n>", b"<lococa:query x='" + b"y" * 70_000]
)
def test_what_is_no_query_is_805_and_what_follows_it_is_thrown_away(text):
    house = House()
    protocol, wire = house.ask(text)
    assert rejected(wire) == 805
    assert wire.half_closed
    protocol.dataReceived(ASK)
    assert house.asked == []
    house.clock.pump([1] * 7)
    assert wire.aborted


@pytest.mark.parametrize(
    "text", [b"<lococa:query what='%s'/>", b"<lococa:query><%s/>", b"<lococa:query><docid %s=''/>"]
)
def test_what_is_said_of_a_query_that_is_not_understood_is_short(text):
    _, wire = House().ask(text % (b"x" * 50_000))
    assert rejected(wire) == 805
    assert len(wire.value()) < 1000


def test_a_query_that_drips_in_is_806():
    house = House()
    protocol, wire = house.arrive()
    for byte in ASK[:11]:
        protocol.dataReceived(bytes([byte]))
        house.clock.advance(1)
    assert rejected(wire) == 806


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (Refusal(801, "no token"), 801),
        (StartOver("start over"), 802),
        (BadCursor("this is not a cursor"), 805),
        (StoreUnavailable("away"), 803),
        (ZeroDivisionError(), 803),
    ],
)
def test_what_keeps_an_answer_from_being_made_is_told(error, code, caplog):
    house = House()
    house.answer = error
    _, wire = house.ask()
    house.thread.work_off()
    assert rejected(wire) == code
    assert ("ZeroDivisionError" in caplog.text) is isinstance(error, ZeroDivisionError)


def test_an_answer_that_breaks_off_says_so_and_has_no_end():
    house = House(BEGIN, StoreUnavailable("away"))
    _, wire = house.ask()
    house.thread.work_off()
    assert [type(said) for said in ResultReader().feed(wire.value())] == [ResultBegins, QueryRejected]
    assert wire.half_closed


def test_one_that_reads_nothing_is_cut_and_its_answer_is_given_back():
    house = House(*[b"x" * 60_000] * 9)
    protocol, wire = house.ask()
    house.thread.work_off(1)
    protocol.pauseProducing()
    house.thread.work_off()
    house.clock.pump([1] * 59)
    assert not wire.aborted
    house.clock.pump([1] * 3)
    assert wire.aborted
    assert house.answer.closed


def test_one_that_vanishes_while_a_portion_is_made_leaves_nothing_behind():
    house = House(b"<a>", b"<b>")
    protocol, wire = house.ask()
    protocol.connectionLost(Failure(ConnectionDone()))
    house.thread.work_off()
    assert wire.value() == b""
    assert house.answer.closed
    assert not house.service._open
    assert not house.clock.getDelayedCalls()


# --- waiting -------------------------------------------------------------------------------------


def test_a_query_that_waits_is_looked_after_every_two_seconds_until_its_time_is_over():
    house = House(b"<a>", None, b"<b>")
    _, wire = house.ask(WAIT)
    for _ in range(10):
        house.thread.work_off()
        assert wire.value() == b"<a>"
        assert not wire.half_closed
        house.clock.advance(1)
    house.thread.work_off()
    assert wire.value() == b"<a><b>"
    assert wire.half_closed


def test_nobody_waits_longer_than_the_lcc_likes():
    house = House(None, b"<b>", limits=Limits(wait_seconds=3))
    _, wire = house.ask(b"<lococa:query wait='1000000'/>")
    for _ in range(4):
        house.thread.work_off()
        house.clock.advance(1)
    house.thread.work_off()
    assert wire.value() == b"<b>"


def test_who_waits_when_the_server_stops_gets_the_end_of_its_answer_at_once():
    house = House(b"<a>", None, b"<b>")
    protocol, wire = house.ask(WAIT)
    house.thread.work_off()
    protocol.stop()
    house.thread.work_off()
    assert wire.value() == b"<a><b>"
    assert wire.half_closed


def test_a_server_that_stops_refuses_who_has_not_asked_and_cuts_who_does_not_end():
    house = House(*[b"x"] * 9)
    (_, early), (reading, late) = house.arrive(), house.ask()
    reading.pauseProducing()
    stopped = house.service.stop()
    assert rejected(early) == 803
    house.clock.pump([1] * 4)
    assert early.aborted
    assert late.aborted
    house.clock.pump([1] * 3)
    assert stopped.called


# --- how many ------------------------------------------------------------------------------------


def test_more_than_may_come_are_804_and_many_more_are_not_even_told():
    house = House(connections_per_address=2, connections_max=4)
    near = [house.arrive()[1] for _ in range(3)]
    assert [bool(wire.value()) for wire in near] == [False, False, True]
    assert rejected(near[2]) == 804
    far = [house.arrive(f"198.51.100.{number}")[1] for number in range(3)]
    assert [bool(wire.value()) for wire in far] == [False, True, True]
    for number in range(2):
        house.arrive(f"203.0.113.{number}")
    assert house.service._converse("203.0.113.9") is None
    near[0].abortConnection()
    assert house.service._converse("203.0.113.9") is not None


def test_who_shares_a_unix_socket_is_not_one_neighbour():
    house = House(connections_per_address=1)
    assert [house.arrive("local")[1].value() for _ in range(5)] == [b""] * 5


@pytest.mark.parametrize("header", [b"PROXY UNKNOWN\r\n", b"\r\n\r\n\0\r\nQUIT\n\x20\0\0\0"])
def test_whom_a_proxy_at_a_unix_socket_does_not_name_is_not_local(header):
    house = House(b"")
    wire = Wire()
    wire.protocol = arrival = house.service._proxy_protocol.buildProtocol(UNIXAddress("/run/query"))
    arrival.makeConnection(wire)
    arrival.dataReceived(header + ASK)
    house.thread.work_off()
    assert [peer for _, peer in house.asked] == ["unnamed"]


def test_new_bounds_hold_for_who_comes_next():
    house = House()
    house.service.apply(QueryListenRules(connections_per_address=1), Limits(query_bytes=10))
    protocol, wire = house.ask(b"<lococa:query since='x'/>")
    assert rejected(wire) == 805
    assert protocol._session.state is State.LINGERING


def test_the_defaults_of_the_settings_are_those_of_limits_and_doors(tmp_path):
    given = {"LCC_DATA_DIR": str(tmp_path), "LCC_STOP_TIMEOUT": "5", "LCC_POLL": "7"}
    rules = load(Settings(given), {}).of(QuerySettings)
    assert rules.limits == Limits(poll_seconds=7)
    assert rules.listen == QueryListenRules(stop_seconds=5)
