"""``POST /v1/push`` over the UNS's own conversation: a request in pieces, and what is answered."""

import asyncio
import base64
import gzip
import json
from concurrent.futures import ThreadPoolExecutor

import pytest
from test_uns_protocol import House, nothing_is_spooled
from twisted.internet.defer import Deferred
from twisted.python.failure import Failure

from lcc_scrapy.apps.push_http import body_codings
from lcc_scrapy.apps.push_http.body_codings import Gzip, Undecodable
from lcc_scrapy.apps.push_http.push_route import PushRoute
from lcc_scrapy.apps.push_http.statuses import STATUSES
from lcc_scrapy.domain.errors import Refusal, StoreUnavailable
from lcc_scrapy.domain.uns_limits import Limits
from lcc_scrapy.uns.protocol import UnsProtocol

SET = (
    b'<lococa:set xmlns:lococa="http://www.lococa.org/1.0" set="partial" urlprefix="http://www.example.org/">'
)
INIT = (
    b'<lococa:init xmlns:lococa="http://www.lococa.org/1.0"><provider id="7" passwd="secret"/></lococa:init>'
)
URL = b'<url c="a.html" mimetype="text/html"/>'
BAD = b'<url c="http://evil.example/" mimetype="text/html"/>'
XML = SET + URL + b"</lococa:set>"
BASIC = "Basic " + base64.b64encode(b"7:secret").decode()
JSON = b'{"set":"partial","urls":["http://www.example.org/a.html"]}'


class Front(House):
    """A UNS, and requests to it."""

    crowded = False

    @property
    def limits(self):
        return self.shared.limits

    def converse(self, peer, dialect, init):
        return None if self.crowded else UnsProtocol(self.shared, peer, self, dialect, init)

    def connect(self):
        pass


class Client:
    """One request: what has come of its answer, and pieces of its body on their way."""

    def __init__(self, front, *, proxies=(), method="POST", **headers):
        headers = {"authorization": BASIC, **{name.replace("_", "-"): v for name, v in headers.items()}}
        self.scope = {
            "type": "http", "method": method, "path": "/v1/push", "client": ("192.0.2.1", 5),
            "headers": [(name.encode(), value.encode()) for name, value in headers.items() if value is not None],
        }  # fmt: skip
        self.coming = asyncio.Queue()
        self.asked = 0
        self.messages = []
        self.deaf = asyncio.Event()
        self.deaf.set()
        self.task = asyncio.ensure_future(PushRoute(front, proxies)(self.scope, self.receive, self.send))

    async def receive(self):
        self.asked += 1
        return await self.coming.get()

    async def send(self, message):
        await self.deaf.wait()
        self.messages.append(message)

    def body(self, *pieces, end=True):
        for piece in pieces:
            self.coming.put_nowait({"type": "http.request", "body": piece, "more_body": True})
        if end:
            self.coming.put_nowait({"type": "http.request", "body": b"", "more_body": False})
        return self

    def hang_up(self):
        self.coming.put_nowait({"type": "http.disconnect"})
        return self

    @property
    def status(self):
        return self.messages[0]["status"] if self.messages else None

    @property
    def headers(self):
        return {name.decode(): value.decode() for name, value in self.messages[0]["headers"]}

    @property
    def text(self):
        return b"".join(one.get("body", b"") for one in self.messages[1:]).decode()


async def settle(rounds=200):
    for _ in range(rounds):
        await asyncio.sleep(0)


def run(story):
    """Run a story on a loop of its own, beside that of the reactor."""
    with ThreadPoolExecutor(1) as thread:
        return thread.submit(lambda: asyncio.run(asyncio.wait_for(story, 300))).result()


@pytest.fixture
def front(tmp_path):
    made = Front(tmp_path / "spool")
    yield made
    made.spool.unlock()


def pushed(front, *pieces, **headers):
    async def story():
        client = Client(front, **headers).body(*pieces)
        while not client.task.done():
            front.clock.advance(0)
            await asyncio.sleep(0)
        client.task.result()
        return client

    return run(story())


def names(front):
    return [entry.curl for entry in front.entries()[1]]


def test_a_set_is_accepted_through_the_spool(front):
    client = pushed(front, XML)
    assert client.status == 200
    assert client.headers["content-type"].startswith("application/xml")
    assert 'received="1"' in client.text
    assert int(client.headers["content-length"]) == len(client.text.encode())
    assert "connection" not in client.headers
    assert names(front) == ["http://www.example.org/a.html"]
    assert front.login_service.asked[0][1:] == ("7", "secret", "192.0.2.1")
    assert front.login_service.logouts == [3]
    assert front.gone


@pytest.mark.parametrize("body", [XML, JSON])
def test_byte_by_byte_it_is_the_same(front, body):
    kind = {} if body is XML else {"content_type": "application/json"}
    client = pushed(front, *(body[at : at + 1] for at in range(len(body))), **kind)
    assert client.status == 200
    assert names(front) == ["http://www.example.org/a.html"]


def test_the_login_may_stand_in_the_body(front):
    assert pushed(front, INIT + XML, authorization=None).status == 200
    assert len(front.accepted_sets.arrived) == 1


def test_json_is_answered_in_json(front):
    client = pushed(front, JSON[:-1] + b" }", content_type="application/json; charset=utf-8")
    assert client.headers["content-type"] == "application/json"
    told = json.loads(client.text)
    assert told["accepted"] == {"received": 1}
    assert told["login"]["seq"] == 3
    assert told["errors"] == []


def test_xml_is_answered_in_json_on_demand(front):
    told = json.loads(pushed(front, SET + BAD + BAD + b"</lococa:set>", accept="application/json").text)
    assert [one["code"] for one in told["errors"]] == [704, 704]
    assert told["errors"][0]["sent"] == {"c": "http://evil.example/", "mimetype": "text/html"}
    assert told["accepted"] == {"received": 0}


@pytest.mark.parametrize("kind", ["application/json", "application/x-ndjson"])
def test_an_empty_body_only_logs_in(front, kind):
    told = json.loads(pushed(front, content_type=kind).text)
    assert told["login"]["seq"] == 3
    assert "accepted" not in told
    assert nothing_is_spooled(front)


def test_who_says_nothing_at_all_is_asked_to_log_in(front):
    client = pushed(front, authorization=None)
    assert client.status == 401
    assert "Basic" in client.headers["www-authenticate"]


def test_every_code_of_logins_and_sets_has_a_status():
    from lcc_scrapy.domain.errors import CODES

    assert set(STATUSES) == {code for code in CODES if 100 < code < 300}


@pytest.mark.parametrize(
    ("refusal", "status", "later"),
    [
        (Refusal(101), 401, None),
        (Refusal(102), 403, None),
        (Refusal(103, "", 7), 503, "7"),
        (StoreUnavailable("away"), 503, "300"),
    ],
)
@pytest.mark.parametrize("accept", ["", "application/json"])
def test_a_refused_login_has_its_status(front, refusal, status, later, accept):
    front.login_service.refusal = refusal
    client = pushed(front, XML, accept=accept)
    assert client.status == status
    assert client.headers.get("retry-after") == later
    assert client.headers["connection"] == "close"
    assert nothing_is_spooled(front)
    if accept:
        assert json.loads(client.text)["rejected"]["code"] in {101, 102, 103}


def test_too_many_connections_are_told_so(front):
    front.turned_away = Refusal(104, "", 9)
    client = pushed(front, XML)
    assert (client.status, client.headers["retry-after"]) == (429, "9")
    front.crowded = True
    assert pushed(front, XML).status == 503


@pytest.mark.parametrize(
    ("body", "headers", "status"),
    [
        (SET + b"<url", {}, 400),
        (SET + URL, {}, 400),
        (b"no xml", {}, 400),
        (b"</x>", {}, 400),
        (XML + b" " * 70_000 + b"x", {}, 400),
        (b'{"set":"partial","urls":["a"', {"content_type": "application/json"}, 400),
        (XML, {"authorization": None}, 400),
        (INIT + XML, {}, 400),
        (XML, {"content_encoding": "gzip"}, 400),
        (gzip.compress(XML)[:-1], {"content_encoding": "gzip"}, 400),
        (gzip.compress(XML)[:-8] + b"12345678", {"content_encoding": "gzip"}, 400),
        (XML, {"content_encoding": "br"}, 415),
        (XML, {"content_type": "image/png"}, 415),
        (JSON, {"content_type": "application/json", "authorization": None}, 401),
        (XML, {"authorization": "Digest x"}, 401),
        (XML, {"authorization": "Basic !"}, 401),
        (XML, {"authorization": "Basic " + base64.b64encode(b"7").decode()}, 401),
    ],
)
def test_what_cannot_be_taken_has_a_status_and_stores_nothing(front, body, headers, status):
    assert (
        pushed(front, *(body[at : at + 4096] for at in range(0, len(body), 4096)), **headers).status == status
    )
    assert nothing_is_spooled(front)


def test_a_set_beyond_the_bounds_is_too_large(tmp_path):
    front = Front(tmp_path / "spool", Limits(set_urls=1))
    assert pushed(front, SET + URL + URL + b"</lococa:set>").status == 413
    assert nothing_is_spooled(front)
    front.spool.unlock()


def test_gzip_is_read(front):
    packed = gzip.compress(SET) + gzip.compress(URL + b"</lococa:set>")
    assert (
        pushed(
            front, *(packed[at : at + 3] for at in range(0, len(packed), 3)), content_encoding="gzip"
        ).status
        == 200
    )
    assert names(front) == ["http://www.example.org/a.html"]


def test_a_bomb_is_refused_before_it_has_become_large():
    sizes = []

    def decode():
        for piece in Gzip().pieces(gzip.compress(bytes(200_000_000))):
            sizes.append(len(piece))

    with pytest.raises(Undecodable, match="200 times"):
        decode()
    assert sum(sizes) <= body_codings.FREE + 200 * 250_000


@pytest.mark.parametrize("end", [len(SET), len(SET + URL), len(XML) - 1, len(XML)])
def test_a_connection_that_ends_before_the_body_does_stores_nothing(front, end):
    async def story():
        client = Client(front).body(XML[:end], end=False).hang_up()
        await client.task
        return client

    assert run(story()).status is None
    assert nothing_is_spooled(front)
    assert front.login_service.logouts == []
    assert front.gone


def test_a_refused_client_is_told_before_it_has_sent_its_body(front):
    """With ``Expect: 100-continue`` it never sends it: asking for the body is what tells it to go on."""
    front.login_service.refusal = Refusal(101)

    async def story():
        client = Client(front)
        await settle()
        assert client.status == 401
        assert "Not authorised" in client.text
        client.hang_up()
        await client.task

    run(story())


def test_nothing_of_the_body_is_asked_for_before_the_login(front):
    front.login_service.slow = True

    async def story():
        client = Client(front).body(XML)
        await settle()
        assert client.asked == 0
        front.login_service.answer(front.login_service.asked[0][0])
        await settle()
        assert client.status == 200
        await client.task

    run(story())


def test_what_a_refused_client_still_sends_is_thrown_away_within_bounds(tmp_path):
    front = Front(tmp_path / "spool", Limits(linger_bytes=100_000))
    front.login_service.refusal = Refusal(101)

    async def story():
        client = Client(front).body(*[b"x" * 60_000] * 5, end=False)
        await client.task
        assert client.status == 401
        assert client.coming.qsize() == 3

    run(story())
    front.spool.unlock()


def test_who_is_silent_gets_408(front):
    async def story():
        client = Client(front).body(SET, end=False)
        await settle()
        front.pass_time(100)
        await settle()
        assert client.status == 408
        client.hang_up()
        await client.task

    run(story())
    assert nothing_is_spooled(front)


def test_a_server_that_stops_says_when_to_come_again(front):
    async def story():
        client = Client(front).body(SET + URL, end=False)
        await settle()
        (conversation,) = front.entered_ones
        conversation.stop()
        await settle()
        assert (client.status, client.headers["retry-after"]) == (503, "300")
        client.hang_up()
        await client.task

    front.entered_ones = []
    front.entered = front.entered_ones.append
    run(story())
    assert nothing_is_spooled(front)


def test_the_answer_to_many_errors_begins_before_the_set_has_ended(front):
    async def story():
        client = Client(front).body(SET, *[BAD * 100] * 20, end=False)
        for _ in range(3000):
            front.clock.advance(0)
            await asyncio.sleep(0)
        assert client.status == 200
        assert "content-length" not in client.headers
        assert client.text.count("704") > 100
        client.body(b"</lococa:set>")
        while not client.task.done():
            front.clock.advance(0)
            await asyncio.sleep(0)
        assert client.text.count('code="704"') == 2000
        assert client.text.endswith("</lococa:set_result>\n")

    run(story())
    assert len(front.accepted_sets.arrived) == 1


def test_who_does_not_read_its_errors_is_not_read_from(tmp_path):
    front = Front(tmp_path / "spool", Limits(reply_bytes=100_000))

    async def story():
        client = Client(front).body(SET, *[BAD * 100] * 100, end=False)
        client.deaf.clear()
        for _ in range(20_000):
            front.clock.advance(0)
            await asyncio.sleep(0)
        assert client.coming.qsize() > 50
        client.deaf.set()
        client.body(b"</lococa:set>")
        while not client.task.done():
            front.clock.advance(0)
            await asyncio.sleep(0)
        assert client.text.count('code="704"') == 10_000

    run(story())
    front.spool.unlock()


def test_a_set_that_cannot_be_kept_is_for_later(front):
    front.in_thread = lambda work: Deferred()
    front.shared.in_thread = lambda work: failed()

    def failed():
        from lcc_scrapy.domain.errors import DiskFull

        done = Deferred()
        done.errback(Failure(DiskFull("no room")))
        return done

    client = pushed(front, XML)
    assert (client.status, client.headers["retry-after"]) == (503, "300")


def test_another_method_is_not_taken(front):
    client = pushed(front, method="PUT")
    assert (client.status, client.headers["allow"]) == (405, "POST")
