"""One reader of the feed for all who look at changes: who gets what, and who is cut off."""

import asyncio
import json
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager, suppress

import pytest

from lcc_scrapy.apps.dashboard import live
from lcc_scrapy.apps.dashboard.live import BUFFER, RETRY, ROWS, SKIP, SKIPPED, Live, Viewer
from lcc_scrapy.domain.cache import Tombstone
from lcc_scrapy.domain.errors import StoreUnavailable
from lcc_scrapy.domain.users import User
from lcc_scrapy.web.problems import Busy

OTTO, SVEN = User("otto", "operator", "", "x", 1), User("sven", "provider-owner", "7", "x", 1)


class Feed:
    """Changes of two providers in turn; counts who looks."""

    def __init__(self, seq=0):
        self.seq = seq
        self.looks = 0
        self.trouble = None
        self.banned = set()
        self.checks = 0

    def look(self, after, limit):
        self.looks += 1
        if self.trouble:
            raise self.trouble
        seqs = range(after + 1, min(after + limit, self.seq) + 1)
        return [change(seq) for seq in seqs], self.seq

    def check(self, viewers):
        self.checks += 1
        return [one.user.name not in self.banned for one in viewers]

    def live(self, most=1000):
        return Live(self.look, self.check, 0.01, most)


def change(seq):
    return Tombstone(b"k" * 16, 7 + seq % 2, f"http://x/{seq}", "", f"http://x/{seq}", "<gone>", 1, seq)


async def events_of(stream):
    """Yield what a stream sends, one event after the other."""
    async for sent in stream:
        for event in sent.split(b"\n\n")[:-1]:
            yield event + b"\n\n"


@asynccontextmanager
async def looking(what, user=OTTO, after=0):
    """Open a stream; gives what gets the next event."""
    stream = what.told(Viewer(user, "s"), after)
    assert await anext(stream) == RETRY
    events = events_of(stream)
    yield lambda: asyncio.wait_for(anext(events), 60)
    await events.aclose()
    await stream.aclose()


def seq_of(piece):
    head, data = piece.decode("ascii").split("\n", 1)
    told = json.loads(data.removeprefix("data: "))
    assert head == f"id: {told['seq']}"
    return told["seq"]


def run(story):
    """No loop runs in a thread of its own."""
    with ThreadPoolExecutor(1) as apart:
        return apart.submit(asyncio.run, story).result(120)


def test_a_thousand_viewers_cost_one_look_at_a_time():
    async def story():
        feed = Feed()
        what = feed.live(most=1000)
        streams = [what.told(Viewer(OTTO, "s"), 0) for _ in range(1000)]
        for stream in streams:
            await anext(stream)
        feed.seq, before = 3, feed.looks
        for stream in streams:
            events = events_of(stream)
            assert [seq_of(await anext(events)) for _ in range(3)] == [1, 2, 3]
        with pytest.raises(Busy):
            what.check_room()
        assert [piece async for piece in what.told(Viewer(OTTO, "s"), 0)] == []
        started = asyncio.get_running_loop().time()
        looks = feed.looks
        await asyncio.sleep(0.2)
        ticks = (asyncio.get_running_loop().time() - started) / 0.01
        assert feed.looks - looks <= ticks + 1
        assert feed.looks > before
        for stream in streams:
            await stream.aclose()
        what.check_room()

    run(story())


def test_an_owner_is_told_of_own_providers_only_also_of_what_is_kept_for_latecomers():
    async def story():
        feed = Feed()
        what = feed.live()
        async with looking(what) as otto, looking(what, SVEN) as sven:
            feed.seq = 6
            assert [seq_of(await otto()) for _ in range(6)] == [1, 2, 3, 4, 5, 6]
            assert [seq_of(await sven()) for _ in range(3)] == [2, 4, 6]
            async with looking(what, SVEN, after=2) as late:
                assert [seq_of(await late()) for _ in range(2)] == [4, 6]

    run(story())


def test_who_does_not_read_is_cut_off_and_nobody_else():
    async def story():
        feed = Feed()
        what = feed.live()
        slow = what.told(Viewer(OTTO, "s"), 0)
        await anext(slow)
        async with looking(what) as quick:
            feed.seq = BUFFER + 1
            seen = [seq_of(await quick()) for _ in range(BUFFER + 1)]
            assert seen == list(range(1, BUFFER + 2))
            assert [piece async for piece in slow] == []
            assert len(what._viewers) == 1

    run(story())


def test_a_reader_that_is_far_behind_says_so_and_goes_on_with_the_newest():
    async def story():
        feed = Feed()
        async with looking(feed.live()) as otto:
            feed.seq = ROWS + SKIP + 1
            assert [seq_of(await otto()) for _ in range(ROWS)] == list(range(1, ROWS + 1))
            assert await otto() == SKIPPED
            feed.seq += 1
            assert seq_of(await otto()) == feed.seq

    run(story())


@pytest.mark.parametrize("after", [-1, 0, 10**18])
def test_no_place_to_begin_makes_it_read_everything(after):
    async def story():
        feed = Feed(seq=10**6)
        async with looking(feed.live(), after=after) as otto:
            for _ in range(200):
                await asyncio.sleep(0.005)
                if feed.looks > 2:
                    break
            feed.seq += 1
            pieces = [await otto() for _ in range(1 if after > 0 else ROWS + 2)]
            assert seq_of(pieces[-1]) == feed.seq

    run(story())


def test_who_may_not_look_any_more_is_cut_off(monkeypatch):
    monkeypatch.setattr(live, "CHECK", 0.0)

    async def story():
        feed = Feed()
        what = feed.live()
        sven = what.told(Viewer(SVEN, "s"), 0)
        await anext(sven)
        async with looking(what) as otto:
            feed.banned.add("sven")
            async with asyncio.timeout(60):
                assert [piece async for piece in sven] == [b": nothing new\n\n"]
            feed.seq = 2
            assert seq_of(await otto()) == 1

    run(story())


def test_silence_is_broken_now_and_then_and_a_database_that_is_away_does_not_end_it(monkeypatch):
    monkeypatch.setattr(live, "HEARTBEAT", 0.05)

    async def story():
        feed = Feed()
        feed.trouble = StoreUnavailable("away")
        async with looking(feed.live()) as otto:
            assert await otto() == b": nothing new\n\n"
            feed.trouble, feed.seq = None, 1
            while (piece := await otto()).startswith(b":"):
                pass
            assert seq_of(piece) == 1

    run(story())


def test_with_the_last_viewer_the_reading_ends_and_closing_ends_all():
    async def story():
        feed = Feed()
        what = feed.live()
        async with looking(what):
            pass
        async with asyncio.timeout(60):
            await what._reading
        stream = what.told(Viewer(OTTO, "s"), 0)
        await anext(stream)
        what.close()
        async with asyncio.timeout(60):
            assert [piece async for piece in stream] in ([], [b": nothing new\n\n"])
        with suppress(StopAsyncIteration):
            assert await anext(what.told(Viewer(OTTO, "s"), 0)) is None

    run(story())
