"""Connections and their pool with wires in place of sockets: whatever a peer sends, nothing hangs and nothing leaks."""

import asyncio
import socket
from collections.abc import Callable, Coroutine
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lcc_scrapy.http import connection as connections
from lcc_scrapy.http import pool as pools
from lcc_scrapy.http.answer import BadBody, BadHead, HttpError, Unanswered
from lcc_scrapy.http.connection import UNREAD, Connection, Silence
from lcc_scrapy.http.pool import Pool
from lcc_scrapy.http.request import Origin, Request

HERE, THERE = Origin("here.example", 80), Origin("there.example", 80)
WHOLE = b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nbody"
CHUNKED = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nbody\r\n0\r\nX: y\r\n\r\n"
UNTIL_CLOSED = b"HTTP/1.1 200 OK\r\n\r\nbody"


class Wire:
    """A transport that leads nowhere; the test says what comes over it."""

    def __init__(self, connection: Connection) -> None:
        self.connection = connection
        self.sent = b""
        self.closed = self.paused = False
        connection.connection_made(self)  # type: ignore[arg-type]

    def get_extra_info(self, name: str) -> Any:
        return ("192.0.2.1", 80) if name == "peername" else None

    def write(self, data: bytes) -> None:
        self.sent += data

    def is_closing(self) -> bool:
        return self.closed

    def pause_reading(self) -> None:
        self.paused = True

    def resume_reading(self) -> None:
        self.paused = False

    def abort(self) -> None:
        self.close(None)

    def close(self, why: Exception | None = None) -> None:
        if not self.closed:
            self.closed = True
            asyncio.get_running_loop().call_soon(self.connection.connection_lost, why)


class House:
    """A pool whose wires are kept for the test to see."""

    def __init__(self, limit: int = 10) -> None:
        self.wires: list[Wire] = []
        self.pool = Pool(self._make, limit)

    async def _make(self, origin: Origin, gone: Callable[[Connection], None]) -> Connection:
        connection = Connection(gone)
        self.wires.append(Wire(connection))
        return connection

    async def ask(
        self, origin: Origin = HERE, method: str = "GET", patience: float = 0.0, deadline: float = 0.0
    ) -> bytes:
        """Ask and read all of it."""
        request = Request(origin, "/", [], method)
        connection = await self.pool.ask(request, patience=patience, deadline=deadline)
        try:
            body = b""
            while pieces := await connection.more():
                body += b"".join(pieces)
            return body
        finally:
            self.pool.release(connection)

    async def asked(self, wires: int = 1, **options: Any) -> "asyncio.Task[bytes]":
        """Begin to ask; returns when there are so many wires, and the request is on the last one."""
        under_way = asyncio.ensure_future(self.ask(**options))
        await settle()
        assert len(self.wires) == wires
        return under_way

    async def serve(self, wire: bytes, wires: int = 1, **options: Any) -> bytes:
        under_way = await self.asked(wires, **options)
        self.wires[-1].connection.data_received(wire)
        return await under_way


async def settle() -> None:
    for _ in range(6):
        await asyncio.sleep(0)


def run(scenario: Callable[[], Coroutine[Any, Any, Any]]) -> Any:
    """Run a scenario beside the reactor's loop, for two seconds at most."""
    with ThreadPoolExecutor(1) as threads:
        return threads.submit(asyncio.run, asyncio.wait_for(scenario(), 20)).result()


@pytest.mark.parametrize("wire", [WHOLE, CHUNKED])
def test_a_complete_answer_keeps_the_connection(wire: bytes) -> None:
    async def scenario() -> None:
        house = House()
        for _ in range(3):
            assert await house.serve(wire) == b"body"
        assert not house.wires[0].closed
        await house.pool.close()
        assert house.wires[0].closed

    run(scenario)


def test_the_connection_used_last_is_used_first_and_each_origin_has_its_own() -> None:
    async def scenario() -> None:
        house = House()
        first, second = await house.asked(1), await house.asked(2)
        for wire in house.wires:
            wire.connection.data_received(WHOLE)
        await asyncio.gather(first, second)
        third = await house.asked(2)
        house.wires[1].connection.data_received(WHOLE)
        assert await third == b"body"
        await house.serve(WHOLE, wires=3, origin=THERE)
        await house.pool.close()

    run(scenario)


def test_idle_connections_are_few_and_the_one_idle_for_longest_goes_first(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(pools, "IDLE", 2)

    async def scenario() -> None:
        house = House(limit=1)
        for port in (1, 2, 3):
            await house.serve(WHOLE, wires=port, origin=Origin("here.example", port))
        assert [wire.closed for wire in house.wires] == [True, False, False]
        house.pool.relax()
        assert all(wire.closed for wire in house.wires)
        await house.pool.close()

    run(scenario)


def test_beyond_the_limit_one_waits_for_its_turn_or_until_it_is_too_late() -> None:
    async def scenario() -> None:
        house = House(limit=1)
        first = await house.asked(1)
        second = await house.asked(1, origin=THERE)
        hurried = await house.asked(1, origin=THERE, patience=0.05)
        with pytest.raises(TimeoutError):
            await hurried
        house.wires[0].connection.data_received(WHOLE)
        assert await first == b"body"
        await settle()
        assert (len(house.wires), house.wires[0].closed) == (2, False)
        house.wires[1].connection.data_received(WHOLE)
        assert await second == b"body"
        await house.pool.close()

    run(scenario)


def test_who_gives_up_waiting_leaves_the_turn_to_the_next() -> None:
    async def scenario() -> None:
        house = House(limit=1)
        first = await house.asked(1)
        second, third = await house.asked(1), await house.asked(1)
        house.wires[0].connection.data_received(UNTIL_CLOSED)
        house.wires[0].close()
        second.cancel()
        assert await first == b"body"
        await settle()
        house.wires[1].connection.data_received(WHOLE)
        assert await third == b"body"
        assert second.cancelled()
        await house.pool.close()

    run(scenario)


def test_idle_connections_are_closed_after_a_while_and_when_they_say_something(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(pools, "TICK", 0.01)
    monkeypatch.setattr(pools, "KEPT", 0.1)

    async def scenario() -> None:
        house = House()
        await house.serve(WHOLE)
        await asyncio.sleep(0.05)
        assert not house.wires[0].closed
        await asyncio.sleep(0.2)
        assert house.wires[0].closed
        await house.serve(WHOLE, wires=2)
        house.wires[1].connection.data_received(b"HTTP/1.1 408 Too late\r\n\r\n")
        assert house.wires[1].closed
        await house.serve(WHOLE, wires=3)
        assert await house.serve(WHOLE, wires=3) == b"body"
        await house.pool.close()
        assert house.pool._timer is None

    run(scenario)


def test_a_peer_that_went_is_not_asked() -> None:
    async def scenario() -> None:
        house = House()
        await house.serve(WHOLE)
        house.wires[0].closed = True  # and nobody has been told yet
        assert await house.serve(WHOLE, wires=2) == b"body"
        assert house.wires[0].sent.count(b"GET") == 1
        await house.pool.close()

    run(scenario)


def test_a_connection_that_ends_before_it_is_used_is_not_counted_for_ever() -> None:
    async def scenario() -> None:
        house = House(limit=1)
        make = house._make

        async def make_dead(origin: Origin, gone: Callable[[Connection], None]) -> Connection:
            connection = await make(origin, gone)
            house.wires[-1].close()
            await settle()
            return connection

        house.pool._make = make_dead
        for _ in range(3):
            with pytest.raises(Unanswered):
                await house.ask()
        assert not house.pool._open
        await house.pool.close()

    run(scenario)


def test_an_answer_in_time_is_no_silence_and_a_pause_of_ours_neither(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pools, "TICK", 0.01)

    async def scenario() -> None:
        house = House()
        connection_task = asyncio.ensure_future(
            house.pool.ask(Request(HERE, "/", []), patience=0.1, deadline=0.0)
        )
        await settle()
        wire = house.wires[0]
        wire.connection.data_received(WHOLE[:-2])
        connection = await connection_task
        assert await connection.more() == [b"bo"]
        await asyncio.sleep(0.3)  # resting, because of a limit
        wire.connection.data_received(WHOLE[-2:])
        assert await connection.more() == [b"dy"]
        assert await connection.more() == []
        house.pool.release(connection)
        with pytest.raises(Silence):
            await house.ask(patience=0.1)
        assert wire.closed
        await house.pool.close()

    run(scenario)


def test_a_deadline_counts_the_time_in_which_the_site_is_waited_for_and_no_other(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(pools, "TICK", 0.01)

    async def scenario() -> None:
        house = House()
        request = Request(HERE, "/", [])
        asking = asyncio.ensure_future(house.pool.ask(request, patience=0.0, deadline=0.3))
        await settle()
        wire = house.wires[0]
        wire.connection.data_received(b"HTTP/1.1 200 OK\r\n\r\nsome")
        connection = await asking
        assert await connection.more() == [b"some"]
        await asyncio.sleep(0.6)  # resting, because of a limit
        assert not wire.closed
        wire.connection.data_received(b"more")
        assert await connection.more() == [b"more"]

        async def drip() -> None:
            while True:  # every wait is short, all together are too long
                asyncio.get_running_loop().call_later(0.05, wire.connection.data_received, b"x")
                assert await connection.more() == [b"x"]

        with pytest.raises(Silence, match="too long"):
            await drip()
        assert wire.closed
        await house.pool.close()

    run(scenario)


def test_who_is_held_sends_no_more_until_it_is_asked_for() -> None:
    async def scenario() -> None:
        house = House()
        asking = asyncio.ensure_future(house.pool.ask(Request(HERE, "/", []), patience=0.0, deadline=0.0))
        await settle()
        wire = house.wires[0]
        wire.connection.data_received(b"HTTP/1.1 200 OK\r\nContent-Length: 8\r\n\r\nsome")
        connection = await asking
        assert await connection.more() == [b"some"]
        connection.hold()
        assert wire.paused
        reading = asyncio.ensure_future(connection.more())
        await settle()
        assert not wire.paused
        wire.connection.data_received(b"more")
        assert await reading == [b"more"]
        connection.hold()  # it is complete: what comes next is another answer
        assert not wire.paused
        house.pool.release(connection)
        assert await house.serve(WHOLE) == b"body"
        await house.pool.close()

    run(scenario)


def test_a_head_that_drips_is_silence(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pools, "TICK", 0.01)

    async def scenario() -> None:
        house = House()
        under_way = await house.asked(1, patience=0.2)
        for bit in b"HTTP/1.1 200 OK\r\nX: " + b"y" * 30:
            if not house.wires[0].closed:
                house.wires[0].connection.data_received(bytes([bit]))
            await asyncio.sleep(0.01)
        assert house.wires[0].closed
        with pytest.raises(Silence):
            await under_way
        await house.pool.close()

    run(scenario)


def test_a_request_is_sent_once_more_over_a_new_connection_if_that_does_no_harm() -> None:
    async def scenario() -> None:
        house = House()
        await house.serve(WHOLE)
        for method in ("GET", "POST"):
            under_way = await house.asked(len(house.wires), method=method)
            house.wires[-1].close()
            await settle()
            if method == "GET":
                house.wires[-1].connection.data_received(WHOLE)
                assert await under_way == b"body"
            else:
                with pytest.raises(Unanswered):
                    await under_way
            assert len(house.wires) == 2
        assert house.wires[0].sent.count(b"GET") == 2
        await house.pool.close()

    run(scenario)


@pytest.mark.parametrize(
    ("wire", "why", "body"),
    [
        (UNTIL_CLOSED, None, b"body"),
        (UNTIL_CLOSED, ConnectionResetError("reset"), None),
        (WHOLE[:-1], None, None),
        (b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 4\r\n\r\nbody", None, b"body"),
    ],
)
def test_what_the_end_of_a_connection_means(wire: bytes, why: Exception | None, body: bytes | None) -> None:
    async def scenario() -> None:
        house = House()
        under_way = await house.asked(1, method="POST")
        house.wires[0].connection.data_received(wire)
        if b"close" not in wire:
            house.wires[0].close(why)
        (outcome,) = await asyncio.gather(under_way, return_exceptions=True)
        assert (outcome == body) if body else isinstance(outcome, BadBody)
        assert house.wires[0].closed
        await house.pool.close()

    run(scenario)


def test_a_body_that_nobody_reads_is_not_taken_in() -> None:
    async def scenario() -> None:
        house = House()
        asking = asyncio.ensure_future(house.pool.ask(Request(HERE, "/", []), patience=0.0, deadline=0.0))
        await settle()
        wire = house.wires[0]
        wire.connection.data_received(b"HTTP/1.1 200 OK\r\n\r\n")
        connection, piece = await asking, bytes(10_000)
        for _ in range(UNREAD // len(piece) + 1):
            assert not wire.paused
            wire.connection.data_received(piece)
        assert wire.paused
        await connection.more()
        assert not wire.paused
        house.pool.release(connection)
        assert wire.closed
        await house.pool.close()

    run(scenario)


def test_a_fetch_that_is_cancelled_takes_its_connection_with_it() -> None:
    async def scenario() -> None:
        house = House()
        for begun in (b"", WHOLE[:20], WHOLE[:-2]):
            house.wires.clear()
            under_way = await house.asked(1)
            if begun:
                house.wires[0].connection.data_received(begun)
            await settle()
            under_way.cancel()
            await asyncio.gather(under_way, return_exceptions=True)
            assert house.wires[0].closed
        await settle()
        assert not house.pool._open
        await house.pool.close()

    run(scenario)


BROKEN = st.lists(st.tuples(st.integers(0, 200), st.binary(max_size=3), st.integers(0, 3)), max_size=3)


@settings(max_examples=150, deadline=None)
@given(
    st.sampled_from([WHOLE, CHUNKED, UNTIL_CLOSED, b"HTTP/1.1 103 E\r\n\r\n" + WHOLE]),
    BROKEN,
    st.lists(st.integers(0, 200), max_size=6),
    st.sampled_from([None, ConnectionResetError("reset")]),
)
def test_whatever_comes_before_the_connection_ends_nothing_hangs_and_nothing_leaks(
    stream: bytes, changes: list[tuple[int, bytes, int]], places: list[int], end: Exception | None
) -> None:
    for place, put, taken in changes:
        at = place % (len(stream) + 1)
        stream = stream[:at] + put + stream[at + taken :]
    bounds = sorted({0, len(stream), *(place % (len(stream) + 1) for place in places)})

    async def scenario() -> None:
        house = House()
        under_way = asyncio.ensure_future(house.ask(method="POST"))
        await settle()
        wire = house.wires[0]
        for begin, stop in pairwise(bounds):
            if not wire.closed:
                wire.connection.data_received(stream[begin:stop])
            await asyncio.sleep(0)
        wire.close(end)
        (outcome,) = await asyncio.gather(under_way, return_exceptions=True)
        assert isinstance(outcome, (bytes, HttpError)), outcome
        if isinstance(outcome, Unanswered):
            assert not stream
        await settle()
        assert not house.pool._open
        assert not house.pool._resting
        assert not house.pool._idle
        await house.pool.close()

    run(scenario)


@pytest.mark.parametrize("late", [b"junk", b"HTTP/1.1 200 OK\r\nX\0: y\r\n\r\n", b"HTTP/1.1 101 No\r\n\r\n"])
@pytest.mark.parametrize("method", ["GET", "HEAD", "POST"])
def test_what_cannot_be_read_on_a_kept_connection_is_asked_once_more_on_a_new_one(
    late: bytes, method: str
) -> None:
    async def scenario() -> None:
        house = House()
        await house.serve(WHOLE)
        under_way = await house.asked(1, method=method)
        house.wires[0].connection.data_received(late)
        await settle()
        if method == "POST":
            with pytest.raises(HttpError):
                await under_way
            assert len(house.wires) == 1
        else:
            assert len(house.wires) == 2
            house.wires[1].connection.data_received(late)
            with pytest.raises(HttpError):
                await under_way
            assert len(house.wires) == 2
        await house.pool.close()

    run(scenario)


def test_each_owner_has_connections_of_its_own() -> None:
    async def scenario() -> None:
        house = House()
        for wires, owner in enumerate((0, 7, 8), 1):
            await house.serve(WHOLE, wires=wires, origin=HERE._replace(owner=owner))
        await house.serve(WHOLE, wires=3, origin=HERE._replace(owner=8))
        await house.pool.close()

    run(scenario)


def test_after_two_strays_no_connection_to_an_origin_is_kept_for_a_while(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def scenario() -> None:
        house = House()
        for wires in (1, 2):
            await house.serve(WHOLE, wires=wires)
            house.wires[-1].connection.data_received(b"\r\n")
            await settle()
        for wires in (3, 4):
            await house.serve(WHOLE, wires=wires)
        await house.serve(WHOLE, wires=5, origin=THERE)
        await house.serve(WHOLE, wires=5, origin=THERE)
        monkeypatch.setattr(pools, "STRAYS_KEPT", 0.0)
        house.pool._note_stray(HERE, 0.0)
        await house.serve(WHOLE, wires=6)
        await house.serve(WHOLE, wires=6)
        await house.pool.close()

    run(scenario)


def test_what_comes_before_the_request_has_arrived_is_no_answer_to_it() -> None:
    """On a Unix socket, what its other side has not read counts as not arrived."""

    async def scenario() -> None:
        ours, theirs = socket.socketpair()
        connection = Connection(lambda _: None)
        await asyncio.get_running_loop().create_connection(lambda: connection, sock=ours)
        for arrives in (True, False):
            asking = asyncio.ensure_future(connection.ask(b"GET", bodiless=False, patience=0.0, deadline=0.0))
            await settle()
            if arrives:
                theirs.recv(100)
            theirs.send(WHOLE)
            if arrives:
                await asking
                assert await connection.more() == [b"body"]
                assert connection.finish()
            else:
                with pytest.raises(BadHead, match="before the request had arrived"):
                    await asking
                assert connection.stray
        theirs.close()

    run(scenario)


def test_an_answer_that_comes_much_too_soon_is_watched_and_asked_again_when_another_follows() -> None:
    async def scenario() -> None:
        house = House()

        async def read(connection: Connection) -> bytes:
            return b"".join(await connection.more())

        async def ask() -> "asyncio.Task[bytes]":
            request = Request(HERE, "/", [])
            asking = asyncio.ensure_future(house.pool.exchange(request, read, patience=0.0, deadline=0.0))
            await settle()
            return asking

        first = await ask()
        house.wires[0].connection._sent -= 0.2  # it took so long
        house.wires[0].connection.data_received(WHOLE)
        assert await first == b"body"
        second = await ask()
        house.wires[0].connection.data_received(WHOLE)
        await settle()
        assert not second.done()
        house.wires[0].connection.data_received(WHOLE)
        await settle()
        house.wires[1].connection.data_received(WHOLE.replace(b"body", b"true"))
        assert await second == b"true"
        await house.pool.close()

    run(scenario)


class Refused(Exception):
    """What a reader raises when it does not like an answer."""


class Lost(Exception):
    """What a reader raises when nobody wants the answer any more."""


async def refusing(connection: Connection) -> bytes:
    """Judge an answer by its head, as readers do."""
    if connection.answer.status == 401:
        raise Refused
    if connection.answer.status == 410:
        raise Lost
    return b"".join(await connection.more())


REFUSED = b"HTTP/1.1 401 No\r\nContent-Length: 4\r\n\r\nbody"


@pytest.mark.parametrize(
    ("wire", "took", "again"),
    [
        (REFUSED, 0.2, False),
        (REFUSED[:-1], 0.2, False),
        (REFUSED[:-1], 0.0, True),
        (REFUSED + WHOLE, 0.2, True),
        (REFUSED.replace(b"401", b"410"), 0.0, False),
    ],
    ids=["alone and in time", "not whole", "much too soon", "another follows", "final"],
)
def test_an_answer_that_is_refused_is_asked_for_again_if_it_may_be_another_one(
    wire: bytes, took: float, again: bool
) -> None:
    async def scenario() -> None:
        house = House()

        async def ask(took: float, wire: bytes) -> "asyncio.Task[bytes]":
            exchange = house.pool.exchange(
                Request(HERE, "/", []), refusing, patience=0.0, deadline=0.0, final=(Lost,)
            )
            asking = asyncio.ensure_future(exchange)
            await settle()
            connection = house.wires[-1].connection
            connection._sent -= took
            connection.data_received(wire)
            await settle()
            return asking

        assert await (await ask(0.2, WHOLE)) == b"body"
        second = await ask(took, wire)
        assert len(house.wires) == 1 + again
        if again:
            house.wires[1].connection.data_received(WHOLE.replace(b"body", b"true"))
            assert await second == b"true"
        else:
            assert isinstance(second.exception(), (Refused, Lost))
        await house.pool.close()

    run(scenario)


def test_a_refused_answer_that_comes_much_too_soon_is_believed_when_nothing_follows(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(connections, "WATCHED", 0.05)

    async def scenario() -> None:
        house = House()
        for took, wire in ((0.2, WHOLE), (0.0, REFUSED)):
            exchange = house.pool.exchange(Request(HERE, "/", []), refusing, patience=0.0, deadline=0.0)
            asking = asyncio.ensure_future(exchange)
            await settle()
            house.wires[0].connection._sent -= took
            house.wires[0].connection.data_received(wire)
            (found,) = await asyncio.gather(asking, return_exceptions=True)
        assert isinstance(found, Refused)
        assert len(house.wires) == 1
        await house.pool.close()

    run(scenario)
