"""The UNS on a transport and a clock of our own: whole conversations, and what goes wrong in them."""

import json
import logging
import re
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from twisted.internet.defer import Deferred, fail, succeed
from twisted.internet.error import ConnectionDone, ConnectionLost
from twisted.internet.task import Clock
from twisted.internet.testing import StringTransport
from twisted.python.failure import Failure

from lcc_scrapy.domain.entries import Operation, UrlEntry
from lcc_scrapy.domain.errors import Refusal, StoreUnavailable
from lcc_scrapy.domain.roots import Root
from lcc_scrapy.domain.uns_limits import Limits
from lcc_scrapy.listeners.peers import plain_address
from lcc_scrapy.machine.logs import TextFormatter
from lcc_scrapy.uns.conversations import Conversations
from lcc_scrapy.uns.ports import DryRun, Login
from lcc_scrapy.uns.protocol import UnsProtocol
from lcc_scrapy.uns.set_receiver import Shared
from lcc_scrapy.uns.spool import SpoolFolder
from lcc_scrapy.uns.spool_file import SpoolHeader, SpoolReader
from lcc_scrapy.wire.messages import InitAccepted, Quota

DATA = Path(__file__).parents[1] / "data" / "uns"
DIALECT_A = (DATA / "dialect_a.xml").read_bytes()
DIALECT_B = (DATA / "dialect_b.xml").read_bytes()
ROOT = "http://www.example.org/"
INIT = (
    b'<lococa:init xmlns:lococa="http://www.lococa.org/1.0"><provider id="7" passwd="secret"/></lococa:init>'
)
SET = b'<lococa:set set="partial" urlprefix="http://www.example.org/">'
URL = b'<url c="a.html" mimetype="text/html"/>'
END = b"</lococa:set>"
ALL = INIT + SET + URL + END


class Wire(StringTransport):
    """A transport that can half-close and that tells whether it was cut."""

    half_closed = False
    aborted = False

    def loseWriteConnection(self):
        self.half_closed = True

    def abortConnection(self):
        self.aborted = True
        super().abortConnection()

    @property
    def text(self):
        return self.value().decode()


class Desk:
    """Answers as told; ``slow`` keeps the answers back in ``asked``."""

    def __init__(self):
        self.login_for = Login(7, InitAccepted(3, "10.0.0.9", ("text/*",), Quota()), (Root.parse(ROOT),))
        self.refusal = None
        self.slow = False
        self.asked = []
        self.logouts = []
        self.refused = []
        self.note_answer = succeed(None)
        self.dry_run_answer = succeed(DryRun(5, 7))

    def login(self, provider_id, password, ip):
        waiting = Deferred()
        self.asked.append((waiting, provider_id, password, ip))
        if not self.slow:
            self.answer(waiting)
        return waiting

    def answer(self, waiting):
        if self.refusal is not None:
            waiting.errback(self.refusal)
        else:
            waiting.callback(self.login_for)

    def note_refused(self, login, refused):
        self.refused.extend(refused)
        return self.note_answer

    def logout(self, login, refused=0):
        self.logouts.append(login.seq)
        return succeed(None)

    def dry_run(self, login, spooled):
        with SpoolReader(spooled) as reader:
            reader.verify()
        return self.dry_run_answer


class Doorstep:
    def __init__(self):
        self.arrived = []
        self.over = []

    def set_arrived(self, path):
        self.arrived.append(path)

    def no_set_came(self, pid, seq):
        self.over.append((pid, seq))


class House:
    """All that a conversation needs, and the conversation itself."""

    def __init__(self, folder, limits=None, max_bytes=0):
        self.login_service, self.accepted_sets, self.clock = Desk(), Doorstep(), Clock()
        self.spool = SpoolFolder(folder, max_bytes)
        self.spool.lock()
        self.spool.recover()
        self.conversations = Conversations(10, 100)
        self.threads = []
        self.threads_wait = False
        self.shared = Shared(
            login_service=self.login_service, accepted_sets=self.accepted_sets, spool=self.spool,
            conversations=self.conversations, limits=limits or Limits(), clock=self.clock,
            now=lambda: 1_700_000_000 + self.clock.seconds(), in_thread=self.in_thread,
        )  # fmt: skip
        self.gone = []
        self.turned_away = None
        self.connect()

    def entered(self, protocol):
        return self.turned_away

    def left(self, protocol):
        self.gone.append(protocol)

    def connect(self):
        self.wire = Wire()
        self.protocol = UnsProtocol(self.shared, "192.0.2.1", self)
        self.protocol.makeConnection(self.wire)

    def in_thread(self, work):
        done = Deferred()
        self.threads.append((done, work))
        if not self.threads_wait:
            self.run_threads()
        return done

    def run_threads(self):
        for done, work in self.threads:
            try:
                result = work()
            except Exception:
                done.errback(Failure())
            else:
                done.callback(result)
        self.threads.clear()

    def say(self, *pieces):
        for piece in pieces:
            self.protocol.dataReceived(piece)

    def lose(self, error=None):
        self.protocol.connectionLost(Failure(error or ConnectionDone()))

    def pass_time(self, seconds):
        for _ in range(int(seconds)):
            self.clock.advance(1)

    def entries(self):
        (waiting,) = self.spool.ready()
        with SpoolReader(waiting.path) as reader:
            reader.verify()
            return reader.header, [entry for entry, _ in reader.entries()]


@pytest.fixture
def house(tmp_path):
    made = House(tmp_path / "spool")
    yield made
    made.spool.unlock()


def spooled_files(house):
    return [path.name for path in house.spool.path.iterdir() if path.name not in {"lock", "uns-id"}]


def nothing_is_spooled(house):
    return not spooled_files(house) and house.spool.used == 0 and not house.accepted_sets.arrived


def test_a_conversation_from_login_to_acceptance(house):
    house.say(INIT)
    assert "<lococa:init_accepted" in house.wire.text
    assert house.login_service.asked[0][1:] == ("7", "secret", "192.0.2.1")
    house.wire.clear()
    house.say(SET, URL)
    assert house.wire.text == ""
    house.say(END)
    assert '<set_accepted received="1"/>' in house.wire.text
    assert house.wire.half_closed
    assert not house.wire.disconnecting
    header, (entry,) = house.entries()
    assert (header.pid, header.seq, header.full, header.peer) == (7, 3, False, "192.0.2.1")
    assert (entry.curl, entry.operation) == (ROOT + "a.html", Operation.UPDATE)
    assert house.accepted_sets.arrived == [house.spool.ready()[0].path]
    house.protocol.readConnectionLost()
    assert house.wire.disconnecting
    house.lose()
    assert house.login_service.logouts == [3]
    assert house.gone == [house.protocol]
    assert house.clock.getDelayedCalls() == []


@pytest.mark.parametrize("stream", [DIALECT_A, DIALECT_B], ids=["A", "B"])
def test_a_transcript_cut_at_every_byte_gives_the_same_answer_and_the_same_set(tmp_path, stream):
    def converse(number, pieces):
        house = House(tmp_path / str(number))
        house.say(*pieces)
        house.protocol.readConnectionLost()
        result = house.wire.value(), house.entries(), house.wire.disconnecting
        house.spool.unlock()
        return result

    whole = converse(0, [stream])
    assert b"set_accepted" in whole[0]
    assert whole[2]
    assert converse(1, [stream[at : at + 1] for at in range(len(stream))]) == whole
    for at in range(1, len(stream)):
        assert converse(at + 1, [stream[:at], stream[at:]]) == whole, at


def test_dialect_b_may_write_everything_and_half_close_before_it_is_let_in(house):
    house.login_service.slow, house.threads_wait = True, True
    house.say(DIALECT_B)
    assert house.wire.producerState == "paused"
    house.protocol.readConnectionLost()
    assert house.wire.value() == b""
    house.login_service.answer(house.login_service.asked[0][0])
    assert "init_accepted" in house.wire.text
    assert "set_result" not in house.wire.text
    house.run_threads()
    # The provider module of 2002 gives two URLs with a relative curl; both can be fetched.
    assert '<set_accepted received="2"/>' in house.wire.text
    assert house.wire.disconnecting


def test_nothing_is_read_and_nothing_answered_while_the_disk_is_busy(house):
    house.threads_wait = True
    house.say(ALL + b"<lococa:set set='full'>" + b"\n")
    assert house.wire.producerState == "paused"
    assert "set_result" not in house.wire.text
    assert house.accepted_sets.over == []
    house.run_threads()
    assert house.wire.producerState == "producing"
    assert "set_accepted" in house.wire.text
    assert len(house.spool.ready()) == 1


@pytest.mark.parametrize("answer", [Deferred, lambda: fail(StoreUnavailable("away"))])
def test_a_set_is_accepted_whatever_becomes_of_the_note_of_what_was_refused(house, answer):
    house.login_service.note_answer = answer()
    house.say(INIT + SET + URL + b'<url c="http://elsewhere/" mimetype="text/html"/>' + END)
    assert '<set_accepted received="1"/>' in house.wire.text
    assert [(one.curl, one.mimetype, one.code) for one in house.login_service.refused] == [
        ("http://elsewhere/", "text/html", 704)
    ]
    house.lose()
    assert house.login_service.logouts == [3]


def test_nothing_is_noted_of_a_set_that_is_cut_short(house):
    house.say(INIT + SET + b'<url c="http://elsewhere/" mimetype="text/html"/>')
    house.protocol.readConnectionLost()
    assert 'code="704"' in house.wire.text
    assert house.login_service.refused == []


@pytest.mark.parametrize("code", [101, 102, 103])
def test_a_refused_login_is_answered_and_nothing_spooled(house, code):
    house.login_service.refusal = Refusal(code)
    house.say(ALL)
    assert f'<reason code="{code}"' in house.wire.text
    assert ('retry-after="300"' in house.wire.text) is (code == 103)
    assert house.wire.half_closed
    assert nothing_is_spooled(house)
    house.lose()
    assert house.login_service.logouts == []


def test_unknown_provider_and_wrong_password_get_the_same_text(tmp_path):
    answers = []
    for detail in ("no such provider", "wrong password"):
        house = House(tmp_path / detail.replace(" ", ""))
        house.login_service.refusal = Refusal(101, detail)
        house.say(INIT)
        answers.append(house.wire.text)
        house.spool.unlock()
    assert answers[0] == answers[1]


@pytest.mark.parametrize("error", [StoreUnavailable("database gone"), ZeroDivisionError("a bug")])
def test_a_desk_that_fails_is_try_again_later(house, error, caplog):
    house.login_service.refusal = error
    house.say(INIT)
    assert '<reason code="103" retry-after="300">' in house.wire.text
    assert "database gone" not in house.wire.text
    assert any(record.exc_info for record in caplog.records) is isinstance(error, ZeroDivisionError)


def test_nobody_is_let_in_while_the_spool_is_full(tmp_path):
    house = House(tmp_path / "spool", max_bytes=20_000)
    house.say(ALL)
    assert "set_accepted" in house.wire.text
    house.lose()
    house.connect()
    house.spool.max_bytes = 100
    house.say(INIT)
    assert '<reason code="103"' in house.wire.text
    assert len(house.login_service.asked) == 1
    house.spool.unlock()


def spool_a_set_of(house, pid, urls):
    writer = house.spool.begin(SpoolHeader(pid, 1, 0), 1)
    for number in range(urls):
        writer.add(UrlEntry(f"{ROOT}{number}", "text/html", furl=ROOT, burl=ROOT))
    writer.commit()


def test_a_set_that_finds_no_room_now_is_refused_whole_and_may_come_again(tmp_path):
    house = House(tmp_path / "spool", max_bytes=1_000_000)
    spool_a_set_of(house, 8, 4000)
    others = house.spool.used
    house.say(INIT + SET, *([URL * 100] * 24), END)
    assert '<set_rejected code="203" retry-after="300">' in house.wire.text
    assert "set_accepted" not in house.wire.text
    assert (house.spool.used, house.accepted_sets.arrived) == (others, [])
    assert house.wire.half_closed
    house.lose()
    house.spool.remove([house.spool.ready()[0]])
    house.connect()
    house.say(INIT + SET, *([URL * 100] * 24), END)
    assert '<set_accepted received="2400"/>' in house.wire.text
    house.spool.unlock()


def test_a_set_that_could_never_find_room_need_not_come_again(tmp_path):
    house = House(tmp_path / "spool", max_bytes=50_000)
    house.say(INIT + SET, *([URL * 100] * 20), END)
    assert '<set_rejected code="204">Set too large</set_rejected>' in house.wire.text
    assert nothing_is_spooled(house)
    house.spool.unlock()


def test_a_disk_that_fails_at_the_end_is_no_acceptance(house, monkeypatch):
    def broken(*_args):
        raise OSError(28, "No space left on device")

    house.say(INIT + SET + URL)
    monkeypatch.setattr("lcc_scrapy.uns.spool_writer.os.fsync", broken)
    house.say(END)
    assert '<set_rejected code="203"' in house.wire.text
    assert nothing_is_spooled(house)
    assert house.accepted_sets.over == [(7, 3)]


def test_a_spool_that_cannot_be_written_to_is_told_when_the_set_begins(house, monkeypatch):
    def broken(*_args):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr("lcc_scrapy.uns.spool_writer.os.open", broken)
    house.say(INIT + SET + URL + URL)
    assert '<set_rejected code="203"' in house.wire.text


@pytest.mark.parametrize(
    ("stream", "told"),
    [
        (b"GET / HTTP/1.0\r\n\r\n", '<reason code="105">'),
        (b"<!DOCTYPE x>", '<reason code="105">'),
        (SET + URL, '<reason code="105">'),
        (INIT + SET + URL + b"<url c=>", '<set_rejected code="201">'),
        (INIT + SET + URL + b"<!DOCTYPE x>", '<set_rejected code="201">'),
        (INIT + SET + URL + SET, ""),
        (INIT + INIT, '<set_rejected code="201">'),
    ],
)
def test_bad_input_is_answered_and_nothing_spooled(house, stream, told):
    house.say(stream)
    assert told in house.wire.text
    assert "set_accepted" not in house.wire.text
    assert not house.accepted_sets.arrived
    house.lose(ConnectionLost())
    assert nothing_is_spooled(house)
    assert house.login_service.logouts == []


def test_a_set_cut_short_by_a_half_closed_client_is_told_so(house):
    house.say(INIT + SET + URL)
    house.protocol.readConnectionLost()
    assert '<set_rejected code="201">' in house.wire.text
    assert house.wire.disconnecting
    assert nothing_is_spooled(house)
    house.lose()
    assert house.login_service.logouts == []


def test_a_set_cut_short_by_a_lost_connection_leaves_nothing(house):
    house.say(INIT + SET + URL)
    assert spooled_files(house)
    assert house.conversations.is_open(7, 3)
    house.lose(ConnectionLost())
    assert nothing_is_spooled(house)
    assert not house.conversations.is_open(7, 3)
    assert house.accepted_sets.over == [(7, 3)]


def test_a_connection_lost_while_the_disk_is_busy_still_hands_the_set_on(house):
    house.threads_wait = True
    house.say(ALL)
    house.lose(ConnectionLost())
    assert house.conversations.is_open(7, 3)
    assert house.accepted_sets.over == []
    house.run_threads()
    assert len(house.accepted_sets.arrived) == 1
    assert house.accepted_sets.over == []
    assert not house.conversations.is_open(7, 3)
    assert house.login_service.logouts == []


def test_a_login_that_comes_through_after_the_connection_is_gone_holds_nobody_up(house):
    house.login_service.slow = True
    house.say(ALL)
    house.lose(ConnectionLost())
    house.login_service.answer(house.login_service.asked[0][0])
    assert not house.conversations.is_open(7, 3)
    assert nothing_is_spooled(house)


def test_an_early_rejection_reaches_a_client_that_is_still_sending(house):
    house.login_service.login_for = Login(
        7, InitAccepted(3, "", ("text/*",), Quota()), (Root.parse(ROOT),), fullsets_left=0
    )
    house.say(INIT + SET.replace(b"partial", b"full"))
    assert '<set_rejected code="202">' in house.wire.text
    said = house.wire.value()
    for _ in range(1000):
        house.say(URL * 50)
    assert house.wire.half_closed
    assert not house.wire.disconnecting
    assert house.wire.producerState == "producing"
    house.protocol.readConnectionLost()
    assert house.wire.disconnecting
    assert house.wire.value() == said
    house.lose()
    assert house.login_service.logouts == [3]


def test_what_is_discarded_has_a_bound_in_bytes_and_one_in_time(tmp_path):
    for waste, seconds in ((100_000, 0), (0, 62)):
        house = House(tmp_path / str(waste), Limits(linger_bytes=50_000))
        house.say(b"nothing")
        house.say(b"x" * waste)
        house.pass_time(seconds)
        assert house.wire.aborted
        house.spool.unlock()


def test_a_login_without_a_set_is_a_whole_conversation(house):
    house.say(INIT)
    house.protocol.readConnectionLost()
    assert house.wire.disconnecting
    assert "set_result" not in house.wire.text
    house.lose()
    assert house.login_service.logouts == [3]
    assert house.accepted_sets.over == [(7, 3)]


@pytest.mark.parametrize("when", [b"", INIT, INIT + SET + URL, ALL])
def test_errors_are_not_forgotten_when_the_connection_breaks(house, when):
    house.say(when)
    house.lose(ConnectionLost())
    assert house.login_service.logouts == []


def test_a_port_scan_is_not_answered(house):
    house.protocol.readConnectionLost()
    assert house.wire.value() == b""
    assert house.wire.disconnecting


@pytest.mark.parametrize(
    ("said", "seconds", "told"),
    [
        (b"", 12, '<reason code="206">'),
        (INIT[:-1], 12, '<reason code="206">'),
        (INIT, 62, '<set_rejected code="206">'),
        (INIT + SET + URL, 32, '<set_rejected code="206">'),
    ],
)
def test_who_is_too_slow_is_told_so_and_later_cut(house, said, seconds, told):
    house.say(said)
    house.pass_time(seconds - 3)
    assert told not in house.wire.text
    house.pass_time(3)
    assert told in house.wire.text
    assert nothing_is_spooled(house)
    assert not house.wire.aborted
    house.pass_time(62)
    assert house.wire.aborted


def test_a_slow_desk_and_a_slow_disk_are_not_held_against_the_provider(house):
    house.login_service.slow, house.threads_wait = True, True
    house.say(ALL)
    house.pass_time(300)
    house.login_service.answer(house.login_service.asked[0][0])
    house.pass_time(300)
    house.run_threads()
    assert "set_accepted" in house.wire.text


def test_a_set_that_comes_fast_enough_may_take_its_time(house):
    house.say(INIT + SET)
    for _ in range(200):
        house.say(URL * 20)
        house.pass_time(1)
    house.say(END)
    assert 'received="4000"' in house.wire.text


def test_a_conversation_without_end_is_ended(tmp_path):
    house = House(tmp_path / "spool", Limits(total_seconds=100))
    house.say(INIT + SET)
    for _ in range(105):
        house.say(URL * 20)
        house.pass_time(1)
    assert '<set_rejected code="206">' in house.wire.text
    house.spool.unlock()


def test_a_provider_that_does_not_read_is_not_read_from_either(tmp_path):
    house = House(tmp_path / "spool", Limits(reply_bytes=10_000))
    house.say(INIT + SET)
    house.wire.producer.pauseProducing()
    before = house.wire.value()
    house.say(b"<url c='a' mimetype='image/png'/>" * 200)
    assert house.wire.value() == before
    assert house.wire.producerState == "paused"
    house.wire.producer.resumeProducing()
    assert house.wire.producerState == "producing"
    house.say(END)
    assert house.wire.text.count('<url code="703"') == 200
    assert 'received="0"' in house.wire.text
    house.spool.unlock()


def test_errors_within_the_bound_never_block_a_client_that_reads_last(house):
    house.say(INIT + SET)
    house.wire.producer.pauseProducing()
    house.say(b"<url c='a' mimetype='image/png'/>" * 1000, END)
    house.clock.pump([0] * 20)
    assert house.wire.producerState == "producing"
    assert not house.wire.half_closed
    house.wire.producer.resumeProducing()
    assert 'received="0"' in house.wire.text
    assert house.wire.half_closed


def test_a_provider_that_never_reads_is_cut_in_the_end(tmp_path):
    house = House(tmp_path / "spool", Limits(reply_bytes=1000))
    house.say(INIT + SET)
    house.wire.producer.pauseProducing()
    house.say(b"<url c='a' mimetype='image/png'/>" * 200)
    house.pass_time(130)
    assert house.wire.aborted
    assert nothing_is_spooled(house)
    house.spool.unlock()


def test_a_dry_run_counts_and_keeps_nothing(house):
    house.say(INIT + SET.replace(b">", b' dryrun="yes">') + URL + END)
    assert '<set_accepted received="1" would_remove="5" would_hold="7"/>' in house.wire.text
    assert nothing_is_spooled(house)


def test_a_dry_run_that_fails_is_try_again_later(house):
    house.login_service.dry_run_answer = fail(StoreUnavailable())
    house.say(INIT + SET.replace(b">", b' dryrun="yes">') + URL + END)
    assert '<set_rejected code="203"' in house.wire.text
    assert nothing_is_spooled(house)


def test_too_many_connections_is_a_refused_login(house):
    house.turned_away = Refusal(104, "", 300)
    house.connect()
    assert '<reason code="104" retry-after="300">' in house.wire.text
    house.say(ALL)
    assert house.login_service.asked == []


@pytest.mark.parametrize(
    ("said", "told"),
    [(b"", '<reason code="103"'), (INIT, '<set_rejected code="203"'), (INIT + SET + URL, 'code="203"')],
)
def test_a_stopping_server_says_try_again_later(house, said, told):
    house.say(said)
    house.protocol.stop()
    assert told in house.wire.text
    assert nothing_is_spooled(house)


def test_a_stopping_server_still_commits_what_is_complete(house):
    house.threads_wait = True
    house.say(ALL)
    house.protocol.stop()
    house.run_threads()
    assert "set_accepted" in house.wire.text


def test_no_password_and_no_control_character_reaches_the_log_or_the_spool(house, caplog):
    caplog.set_level(logging.DEBUG)
    house.login_service.refusal = Refusal(101)
    house.say(INIT.replace(b'"7"', b'"7&#10;evil&#x85;"'))
    house.lose()
    house.login_service.refusal = None
    house.connect()
    house.say(ALL)
    house.lose()
    logged = "\n".join(TextFormatter().format(record) for record in caplog.records)
    assert "secret" not in logged
    assert "evil" not in logged
    assert "id=(no number)" in logged
    assert "pid=7 seq=3" in logged
    spooled = house.spool.ready()[0].path.read_text()
    assert "secret" not in spooled
    assert json.loads(spooled.splitlines()[0])["pid"] == 7


@pytest.mark.parametrize(
    ("host", "plain"),
    [
        ("192.0.2.1", "192.0.2.1"),
        ("::ffff:192.0.2.1", "192.0.2.1"),
        ("2001:DB8::0001", "2001:db8::1"),
        ("fe80::1%eth0", "fe80::1"),
        (None, "local"),
        ("a\nb", "a\\nb"),
    ],
)
def test_addresses_are_written_in_one_way(host, plain):
    assert plain_address(host) == plain


def test_connections_are_counted_per_address_and_in_all():
    counts = Conversations(per_address=2, in_all=3)
    assert [counts.arrive("192.0.2.1") for _ in range(3)] == [True, True, False]
    assert [counts.arrive(f"192.0.2.{n}") for n in (2, 3)] == [True, False]
    counts.leave("192.0.2.1", served=False)
    assert not counts.arrive("192.0.2.4")
    for _ in range(2):
        counts.leave("192.0.2.1", served=True)
    assert [counts.arrive(f"2001:db8::{n}") for n in range(3)] == [True, True, False]
    assert counts.crowded("192.0.2.9")
    assert len(counts) == 6


def test_strangers_cannot_take_all_connections():
    counts = Conversations(per_address=1, in_all=10)
    counts.begin(7, 1, "192.0.2.1")
    assert [counts.arrive(f"198.51.100.{n}") for n in range(18)] == [True] * 8 + [False] * 10
    assert counts.crowded("203.0.113.1")
    assert not counts.crowded("192.0.2.1")
    assert counts.arrive("192.0.2.1")
    assert not counts.arrive("192.0.2.1")


PIECES = [
    INIT,
    SET,
    URL,
    END,
    DIALECT_A,
    DIALECT_B,
    b"<",
    b">",
    b"&",
    b"\xff",
    b"\0",
    b"<?xml ",
    b"?>",
    b"<!--",
]


@settings(
    max_examples=300,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(
    st.lists(st.sampled_from(PIECES) | st.binary(max_size=20), max_size=8),
    st.lists(st.tuples(st.integers(0, 1500), st.integers(0, 5), st.binary(max_size=5)), max_size=3),
    st.integers(1, 2000),
    st.booleans(),
)
def test_any_stream_ends_in_an_answer_or_a_close_and_leaves_no_half_set(
    tmp_path, pieces, changes, size, half
):
    house = House(tmp_path / "spool")
    house.threads_wait = half
    try:
        stream = b"".join(pieces)
        for at, gone, put in changes:
            stream = stream[:at] + put + stream[at + gone :]
        house.say(*(stream[at : at + size] for at in range(0, len(stream), size)))
        if half:
            house.protocol.readConnectionLost()
            house.run_threads()
        else:
            house.pass_time(140)
        assert house.wire.disconnecting or house.wire.aborted
        answer = re.sub(
            rb"^<lococa:init_accepted.*</lococa:init_accepted>\n", b"", house.wire.value(), flags=re.DOTALL
        )
        assert answer.count(b"<reason code=") + len(re.findall(rb"<set_(?:accepted|rejected)", answer)) <= 1
        house.lose()
        accepted = b"set_accepted" in answer
        assert len(house.spool.ready()) == accepted == len(spooled_files(house))
        assert not house.conversations.is_open(7, 3)
        assert house.clock.getDelayedCalls() == []
        for waiting in house.spool.ready():
            house.spool.remove([waiting])
    finally:
        house.spool.unlock()
