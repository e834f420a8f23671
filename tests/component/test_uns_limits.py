"""Every limit of a conversation, given as its setting is: what is answered at it, and that nothing is before."""

from dataclasses import fields, replace

import pytest
from scrapy.settings import Settings
from test_uns_protocol import END, INIT, SET, URL, House, nothing_is_spooled

from lcc_scrapy.config.config import load
from lcc_scrapy.domain.login_limits import ThrottleRules
from lcc_scrapy.domain.uns_limits import Limits
from lcc_scrapy.machine.open_files import make_room
from lcc_scrapy.uns.conversations import Conversations
from lcc_scrapy.uns.outbox import Backlog, Outbox

BAD = b"<url c='a' mimetype='image/png'/>"
NESTED = b"<x>" * 4 + b"</x>" * 4
MANY = b"<url " + b" ".join(b'a%d=""' % number for number in range(13)) + b"/>"
STRANGE = b"".join(b"<n%d/>" % number for number in range(6))
LONG = b"<url c='%s' mimetype='text/html'/>" % (b"x" * 90)
REFUSED_105 = '<reason code="105">'
REFUSED_201 = '<set_rejected code="201">'
REFUSED_204 = '<set_rejected code="204">'
REFUSED_707 = '<url code="707"'


def settings_of(tmp_path, **given):
    return load(Settings({"LCC_DATA_DIR": str(tmp_path), **given}), {})


@pytest.fixture
def house_with(tmp_path):
    made = []

    def make(**given):
        folder = tmp_path / str(len(made))
        made.append(House(folder, settings_of(tmp_path, **given).uns))
        return made[-1]

    yield make
    for house in made:
        house.spool.unlock()


def test_the_defaults_of_the_settings_are_those_of_the_limits(tmp_path):
    assert settings_of(tmp_path).uns == Limits()
    assert settings_of(tmp_path).login == ThrottleRules()


GIVEN = {
    "LCC_LOGIN_BYTES": ("11", "login_bytes", 11),
    "LCC_LOGIN_SECONDS": ("12s", "login_seconds", 12.0),
    "LCC_ELEMENT_BYTES": ("20k", "element_bytes", 20_000),
    "LCC_ELEMENT_DEPTH": ("14", "depth", 14),
    "LCC_ELEMENT_ATTRIBUTES": ("15", "attributes", 15),
    "LCC_UNKNOWN_NAMES": ("17", "names", 17),
    "LCC_URL_LENGTH": ("18", "url_length", 18),
    "LCC_SET_MAX_URLS": ("19", "set_urls", 19),
    "LCC_SET_MAX_BYTES": ("20", "set_bytes", 20),
    "LCC_IDLE_SECONDS": ("21s", "idle_seconds", 21.0),
    "LCC_MIN_RATE": ("22", "rate", 22),
    "LCC_MIN_RATE_GRACE": ("23s", "rate_grace_seconds", 23.0),
    "LCC_CONVERSATION_SECONDS": ("24s", "total_seconds", 24.0),
    "LCC_REPLY_BYTES": ("25", "reply_bytes", 25),
    "LCC_REPLIES_BYTES": ("26", "replies_bytes", 26),
    "LCC_LINGER_SECONDS": ("27s", "linger_seconds", 27.0),
    "LCC_LINGER_BYTES": ("28", "linger_bytes", 28),
    "LCC_RETRY_AFTER": ("29s", "retry_after", 29),
}


def test_every_limit_has_a_setting_of_its_own(tmp_path):
    for name, (text, field, value) in GIVEN.items():
        assert settings_of(tmp_path, **{name: text}).uns == replace(Limits(), **{field: value})
    assert {field for _, field, _ in GIVEN.values()} == {one.name for one in fields(Limits)}


@pytest.mark.parametrize(
    ("setting", "value", "stream", "told"),
    [
        ("LCC_LOGIN_BYTES", "10k", b"<lococa:init><!--" + b" " * 20_000 + b"-->", REFUSED_105),
        ("LCC_ELEMENT_BYTES", "20k", INIT[:-1] + b" " * 40_000, REFUSED_105),
        ("LCC_ELEMENT_BYTES", "20k", INIT + SET + b"<url c='" + b"x" * 40_000, REFUSED_201),
        ("LCC_ELEMENT_DEPTH", "3", INIT + SET + NESTED, REFUSED_201),
        ("LCC_ELEMENT_ATTRIBUTES", "12", INIT + SET + MANY, REFUSED_201),
        ("LCC_UNKNOWN_NAMES", "5", INIT + SET + STRANGE, REFUSED_201),
        ("LCC_SET_MAX_URLS", "2", INIT + SET + URL * 3, REFUSED_204),
        ("LCC_SET_MAX_BYTES", "20k", INIT + SET + URL * 2000, REFUSED_204),
        ("LCC_URL_LENGTH", "100", INIT + SET + LONG, REFUSED_707),
        ("LCC_URL_LENGTH", "100", INIT + SET + URL[:-2] + b" f='" + b"x" * 90 + b"'/>", REFUSED_707),
        ("LCC_URL_LENGTH", "100", INIT + SET + URL[:-2] + b" b='" + b"x" * 90 + b"'/>", REFUSED_707),
        ("LCC_URL_LENGTH", "100", INIT + SET + URL.replace(b"a.html", b"a" + b" " * 30 + b"b"), REFUSED_707),
    ],
)
def test_what_is_too_large_is_refused_at_the_bound_that_was_set(house_with, setting, value, stream, told):
    bound, usual = house_with(**{setting: value}), house_with()
    for house in (bound, usual):
        for at in range(0, len(stream), 10_000):
            house.say(stream[at : at + 10_000])
        house.clock.pump([0] * 20)
    assert told in bound.wire.text
    assert told not in usual.wire.text
    assert not bound.accepted_sets.arrived
    if told != REFUSED_707:
        assert bound.wire.half_closed
        assert nothing_is_spooled(bound)


def test_a_removal_may_be_as_long_as_what_is_stored(house_with):
    house = house_with(LCC_URL_LENGTH="100")
    house.say(INIT + SET + LONG[:-2] + b" op='remove'/>" + END)
    assert '<set_accepted received="1"/>' in house.wire.text


@pytest.mark.parametrize(
    ("setting", "stream", "seconds"),
    [
        ("LCC_LOGIN_SECONDS", INIT[:-1], 3),
        ("LCC_IDLE_SECONDS", INIT, 20),
        ("LCC_IDLE_SECONDS", INIT + SET, 20),
        ("LCC_MIN_RATE_GRACE", INIT + SET + URL, 5),
        ("LCC_CONVERSATION_SECONDS", INIT + SET + URL * 1000, 15),
    ],
)
def test_who_takes_too_long_is_refused_at_the_bound_that_was_set(house_with, setting, stream, seconds):
    told = 'code="206"'
    value = f"{seconds}s"
    bound, usual = house_with(**{setting: value}), house_with()
    for house in (bound, usual):
        house.say(stream)
        house.clock.pump([0] * 20)
        house.pass_time(seconds)
        assert told not in house.wire.text
        house.pass_time(2)
    assert told in bound.wire.text
    assert told not in usual.wire.text
    assert nothing_is_spooled(bound)


@pytest.mark.parametrize(("rate", "refused"), [("30", False), ("200", True)])
def test_who_sends_too_slowly_is_refused_at_the_rate_that_was_set(house_with, rate, refused):
    house = house_with(LCC_MIN_RATE=rate)
    house.say(INIT + SET)
    for _ in range(40):
        house.say(URL * 3)
        house.pass_time(1)
    assert ('<set_rejected code="206">' in house.wire.text) is refused


def test_replies_that_are_not_read_stop_the_reading_at_the_bound_that_was_set(house_with):
    held = {}
    for most in ("2k", "200k"):
        house = house_with(LCC_REPLY_BYTES=most)
        house.say(INIT + SET)
        house.wire.producer.pauseProducing()
        house.say(BAD * 100)
        held[most] = house.wire.producerState
    assert held == {"2k": "paused", "200k": "producing"}


def test_what_lingers_is_cut_at_the_bounds_that_were_set(house_with):
    by_bytes, by_time = house_with(LCC_LINGER_BYTES="5k"), house_with(LCC_LINGER_SECONDS="5s")
    for house in (by_bytes, by_time):
        house.say(b"nothing")
        house.say(b"x" * 4000)
        assert not house.wire.aborted
    by_bytes.say(b"x" * 2000)
    by_time.pass_time(7)
    assert by_bytes.wire.aborted
    assert by_time.wire.aborted


def test_the_advice_when_to_come_again_is_the_one_that_was_set(house_with):
    house = house_with(LCC_RETRY_AFTER="42s")
    house.say(INIT)
    house.protocol.stop()
    assert '<set_rejected code="203" retry-after="42">' in house.wire.text


def test_other_limits_hold_for_those_who_come_after_they_were_set(tmp_path):
    house = House(tmp_path / "spool")
    before = house.protocol, house.wire
    house.shared.limits = replace(house.shared.limits, set_urls=1)
    house.connect()
    house.say(INIT + SET + URL * 2)
    assert REFUSED_204 in house.wire.text
    before[0].dataReceived(INIT + SET + URL * 2 + END)
    assert '<set_accepted received="2"/>' in before[1].value().decode()
    house.spool.unlock()


# --- what many may use together --------------------------------------------------------------------


class Pipe:
    """A transport that pauses its producer at once."""

    def __init__(self):
        self.sent = b""
        self.ended = ""

    def write(self, data):
        self.sent += data

    def unregisterProducer(self):
        pass

    def loseWriteConnection(self):
        self.ended = "half"

    def loseConnection(self):
        self.ended = "whole"


def test_replies_of_all_together_are_bounded_and_each_gets_as_much_as_is_left_free():
    backlog = Backlog()
    boxes = [Outbox(Pipe(), 1000, 1000, backlog) for _ in range(3)]
    for box in boxes:
        box.pause()
    while not boxes[0].full:
        boxes[0].write(b"x" * 10)
    assert backlog.size == 500
    for box in boxes[1:]:
        while not box.full:
            box.write(b"x" * 10)
    assert backlog.size < 1000
    boxes[0].forget()
    assert not boxes[1].full
    boxes[1].resume()
    boxes[2].resume()
    assert backlog.size == 0


def test_an_outbox_gives_no_more_at_a_time_than_the_transport_takes():
    pipe = Pipe()
    box = Outbox(pipe, 1_000_000, 10_000_000, Backlog())
    box.pause()
    box.write(b"x" * 200_000)
    box.half_close()
    sent = []
    pipe.write = lambda data: (sent.append(len(data)), box.pause())
    while not pipe.ended:
        box.resume()
    assert sent == [65536, 65536, 65536, 3392]
    assert pipe.ended == "half"


def test_nothing_of_a_set_is_parsed_before_its_provider_is_let_in(tmp_path):
    house = House(tmp_path / "spool")
    house.login_service.slow = True
    house.say(INIT + SET + URL * 1500 + END)
    assert len(house.protocol._said) < 200
    house.login_service.answer(house.login_service.asked[0][0])
    house.clock.pump([0] * 20)
    assert '<set_accepted received="1500"/>' in house.wire.text
    house.spool.unlock()


def test_one_that_sends_much_at_once_does_not_keep_the_others_waiting(tmp_path):
    house = House(tmp_path / "spool")
    house.say(INIT + SET + BAD * 1500 + END)
    assert house.wire.text.count("<url code") < 300
    assert house.wire.producerState == "paused"
    house.clock.pump([0] * 20)
    assert house.wire.text.count("<url code") == 1500
    assert house.wire.producerState == "producing"
    house.spool.unlock()


def test_a_turn_that_never_comes_is_forgotten_with_its_connection(tmp_path):
    house = House(tmp_path / "spool")
    house.say(INIT + SET + URL * 1500)
    house.lose()
    assert house.clock.getDelayedCalls() == []
    assert nothing_is_spooled(house)
    house.spool.unlock()


def test_a_provider_has_so_many_conversations_and_then_104(tmp_path):
    house = House(tmp_path / "spool")
    house.shared.conversations = Conversations(10, 100, per_provider=1)
    house.say(INIT)
    assert "init_accepted" in house.wire.text
    house.login_service.login_for = replace(
        house.login_service.login_for, accepted=replace(house.login_service.login_for.accepted, seq=4)
    )
    house.connect()
    house.say(INIT)
    assert '<reason code="104" retry-after="300">' in house.wire.text
    assert house.accepted_sets.over == [(7, 4)]
    assert house.shared.conversations.is_open(7, 3)
    house.spool.unlock()


def test_a_flood_of_refused_logins_is_not_a_flood_of_lines(tmp_path, caplog):
    from lcc_scrapy.domain.errors import Refusal

    house = House(tmp_path / "spool")
    house.login_service.refusal = Refusal(101)
    for _ in range(200):
        house.connect()
        house.say(INIT)
    lines = [one.getMessage() for one in caplog.records if "login refused" in one.getMessage()]
    assert len(lines) == 60
    house.pass_time(1)
    house.connect()
    house.say(INIT)
    assert caplog.records[-1].getMessage().endswith("(140 more like it before)")
    house.spool.unlock()


@pytest.mark.parametrize(
    ("limits", "becomes"),
    [
        ((1024, 5000), (3512, 5000)),
        ((1024, 2000), (2000, 2000)),
        ((1024, -1), (3512, -1)),
        ((-1, -1), None),
        ((4096, 4096), None),
    ],
)
def test_open_files_are_raised_to_what_connections_may_need(monkeypatch, caplog, limits, becomes):
    set_to = []
    monkeypatch.setattr("resource.getrlimit", lambda _: limits)
    monkeypatch.setattr("resource.setrlimit", lambda _, both: set_to.append(both))
    make_room(1000)
    assert set_to == ([] if becomes is None else [becomes])
    assert bool(caplog.records) is (becomes == (2000, 2000))
