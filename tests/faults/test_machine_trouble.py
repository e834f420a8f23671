"""The machine misbehaves in the middle of the work: what providers are told, and that nothing accepted is lost.

``docs/faults.md`` is the table of what is seen here. ``LCC_MACHINE=long`` adds what takes longer (``make soak``).
"""

import os
import shutil
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from pathlib import Path

import pytest

from lcc_scrapy.machine.group_fsync import FEW
from lcc_scrapy.machine.resources import LOOK, REST
from tests.acceptance.mortals import settling_of
from tests.faults.machine import (
    ACCEPTED,
    CUT,
    Conversation,
    MovedClock,
    World,
    few_descriptors,
    frozen,
    furnish,
    injected,
    small_disk,
)
from tests.faults.outcomes import Seen, is_as_documented, rows
from tests.harness import BIN, Lcc, lccs, wait_for
from tests.integration.site import Site, overlaps

pytestmark = [pytest.mark.acceptance, pytest.mark.slow]

LONG = os.environ.get("LCC_MACHINE") == "long"
long = pytest.mark.skipif(not LONG, reason="LCC_MACHINE=long takes it in")
PROVIDERS = 64
GOES_ON, ENDS = "goes on", "ends with status 74; to be started again"
NOTHING_LOST = "is fetched and stored"
NOT_DURABLE = "`LCC_COMMIT_PAGES` pages"
EX_IOERR = 74

Make = Callable[..., World]


@pytest.fixture(scope="module")
def site() -> Iterator[Site]:
    with Site() as made:
        yield made


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory, site: Site) -> Iterator[tuple[Path, str]]:
    """An LCC with all its providers, to be copied."""
    root = f"http://127.0.0.1:{site.listen()}"
    with lccs(tmp_path_factory.mktemp("template")) as make:
        lcc = make(LCC_BALLAST="0")
        furnish(lcc, root, PROVIDERS)
        yield lcc.folder, root


@pytest.fixture
def make(template: tuple[Path, str], tmp_path: Path, site: Site) -> Iterator[Make]:
    worlds: list[World] = []

    def made(disk: Path | None = None, **settings: str) -> World:
        folder = tmp_path / "lcc"
        folder.mkdir()
        shutil.copytree(template[0] / "lcc-data", (disk or folder) / "lcc-data")
        if disk is not None:
            (folder / "lcc-data").symlink_to(disk / "lcc-data")
        given = {"LCC_BALLAST": "1M", "LCC_DISK_MIN_FREE": "0", "LCC_CONNECTIONS_PER_ADDRESS": "200"}
        world = World(Lcc(folder, "", given | settings), site, template[1])
        site.visits.clear()
        worlds.append(world)
        return world

    yield made
    for world in worlds:
        if not world.finished:
            world.finish(verify=LONG)


# --- the disk is full ----------------------------------------------------------------------------


def test_a_disk_that_fills_up_lets_nothing_new_begin(make: Make, tmp_path: Path) -> None:
    with small_disk(tmp_path / "disk", "40m") as disk:
        world = make(disk.folder, LCC_DISK_MIN_FREE="8M")
        world.lcc.start()
        release = threading.Event()
        under_way, waits = world.put("/p1/under-way", held=release), world.put("/p1/waits")
        assert world.push(1, under_way, waits) == ACCEPTED
        wait_for(lambda: world.visited(under_way), 20, "the fetch")
        disk.fill(leave=4_000_000)
        wait_for(lambda: "intake and fetching have stopped" in world.lcc.log_text(), 20, "it to be noticed")
        told = world.push(2, world.put("/p2/new"))
        release.set()
        wait_for(lambda: under_way in world.cached(), 20, "what was under way")
        time.sleep(LOOK)
        meanwhile = "what is under way is stored; nothing is begun" if not world.visited(waits) else waits
        assert "intake and fetching have stopped" in world.lcc.lcc("status").stdout
        wait_for(lambda: "hands out no URL: " in world.lcc.lcc("status").stdout, 60, "the worker to say why")
        disk.clear()
        seconds = world.wait_until_all_is_there()
        assert world.push(2, "/p2/new") == ACCEPTED
        seen = Seen(told, meanwhile, NOTHING_LOST, GOES_ON if world.runs() else "ends")
        is_as_documented("less room on the disk than `LCC_DISK_MIN_FREE`", seen, seconds)
        world.finish(verify=LONG)  # before its disk goes


@long
def test_no_room_at_all_keeps_results_waiting(make: Make, tmp_path: Path) -> None:
    with small_disk(tmp_path / "disk", "16m") as disk:
        world = make(disk.folder)
        world.lcc.start()
        release = threading.Event()
        page, waits = world.put("/p1/page", os.urandom(300_000), held=release), world.put("/p1/waits")
        assert world.push(1, page, waits) == ACCEPTED
        wait_for(lambda: world.visited(page), 20, "the fetch")
        begun, new = Conversation(world.lcc.port, 2), [world.put("/p2/new")]
        assert begun.let_in()
        begun.say(world.opening(new))
        disk.fill()
        wait_for(lambda: "deleted the ballast file" in world.lcc.log_text(), 20, "the ballast to go")
        disk.fill()
        begun.say(
            world.opening([f"/p2/{number}" for number in range(2000)]).partition(">")[2] + "</lococa:set>"
        )
        told = f"{world.noted(begun.end(), new)}, and {world.push(3, world.put('/p3/new'))} at login"
        release.set()
        wait_for(lambda: "trying again" in world.lcc.log_text(), 20, "results to wait")
        assert page not in world.cached()
        meanwhile = "nothing is begun; results wait" if not world.visited(waits) else waits
        disk.clear()
        seconds = world.wait_until_all_is_there()
        wait_for((disk.folder / "lcc-data/ballast").exists, 20, "the ballast to be made anew")
        assert world.push(2, *new) == ACCEPTED
        seen = Seen(told, meanwhile, NOTHING_LOST, GOES_ON if world.runs() else "ends")
        is_as_documented("no room on the disk, the ballast given up and used up too", seen, seconds)
        world.finish(verify=LONG)  # before its disk goes


@long
def test_a_body_that_does_not_fit_waits_for_room(make: Make, tmp_path: Path) -> None:
    with small_disk(tmp_path / "disk", "24m") as disk:
        world = make(disk.folder)
        world.lcc.start()
        large = world.put("/p1/large", os.urandom(40_000_000))
        assert world.push(1, large, world.put("/p1/behind")) == ACCEPTED
        wait_for(lambda: len(world.site.asked(large)) > 1, 30, "a second try")
        tries = world.site.asked(large)
        assert tries[1].start - tries[0].start > REST, "the site is not asked over and over"
        told = world.push(2, world.put("/p2/new"))
        told = told if told != ACCEPTED else "103"  # it may come between two tries
        meanwhile = "nothing is begun, but this body again every few seconds"
        assert not world.visited("/p1/behind")
        disk.enlarge("128m")
        seconds = world.wait_until_all_is_there()
        seen = Seen(told, meanwhile, NOTHING_LOST, GOES_ON if world.runs() else "ends")
        is_as_documented("a body that is larger than the room on the disk", seen, seconds)
        world.finish(verify=LONG)  # before its disk goes


@long
def test_a_set_that_does_not_fit_into_the_database_waits_for_room(make: Make, tmp_path: Path) -> None:
    with small_disk(tmp_path / "disk", "11m") as disk:
        world = make(disk.folder)
        world.lcc.start()
        held = world.put("/p1/0", held=threading.Event())
        many = [f"/p1/{number}" for number in range(40_000)]
        talk = Conversation(world.lcc.port, 1)
        talk.say(world.opening(many) + "</lococa:set>")
        assert talk.end() == ACCEPTED
        wait_for(
            lambda: "intake and fetching have stopped" in world.lcc.log_text(), 30, "the disk to be full"
        )
        told = world.push(2, world.put("/p2/new"))
        meanwhile = "what is in the queue" if world.visited(held) else "nothing is begun"
        disk.enlarge("128m")
        begun = time.monotonic()
        wait_for(lambda: world.lcc.sql("select count(*) from qdb")[0][0] == len(many), 60, "the whole set")
        seconds = time.monotonic() - begun
        assert world.push(2, "/p2/new") == ACCEPTED
        wait_for(lambda: "/p2/new" in world.cached(), 20, "the next provider's page")
        seen = Seen(told, meanwhile, "goes on being absorbed; nothing is doubled", GOES_ON)
        is_as_documented("the disk becomes full while a set is absorbed", seen, seconds)
        world.finish(verify=LONG)  # before its disk goes


# --- the disk fails ------------------------------------------------------------------------------


def started_again(world: World, code: int) -> float:
    """See that the process ended with one clear line, start it again and wait for what was accepted."""
    assert world.ends_with() == code
    said = [line for line in world.lcc.log_text().splitlines() if "this process ends" in line]
    assert len(said) == 1, said
    assert "CRITICAL" in said[0]
    world.lcc.start()
    return world.wait_until_all_is_there()


FAILING_SYNCS = {
    "fsync of a spool file fails (EIO)": "fsync:error=EIO:when=1",
    "fsync of the spool folder fails (EIO)": "fsync:error=EIO:when=2",
}


@pytest.mark.parametrize(
    "trouble", [next(iter(FAILING_SYNCS)), *(pytest.param(one, marks=long) for one in [*FAILING_SYNCS][1:])]
)
def test_a_set_that_cannot_be_synced_ends_the_process(make: Make, trouble: str) -> None:
    world = make()
    world.lcc.start()
    release = threading.Event()
    assert world.push(1, world.put("/p1/before", held=release)) == ACCEPTED
    wait_for(lambda: world.visited("/p1/before"), 20, "the fetch")
    with injected(world.process, FAILING_SYNCS[trouble]):
        told = world.push(2, world.put("/p2/new"))
        assert world.ends_with() == EX_IOERR
    assert not world.lcc.is_spooled(), "it was not accepted"
    release.set()
    seconds = started_again(world, EX_IOERR)
    assert world.push(2, "/p2/new") == ACCEPTED
    world.wait_until_all_is_there()
    is_as_documented(trouble, Seen(told, "what is under way is fetched again", NOTHING_LOST, ENDS), seconds)


@long
def test_a_body_that_cannot_be_synced_ends_the_process(make: Make) -> None:
    world = make()
    world.lcc.start()
    release = threading.Event()
    page = world.put("/p1/page", held=release)
    assert world.push(1, page) == ACCEPTED
    wait_for(lambda: world.visited(page), 20, "the fetch")
    with injected(world.process, "fsync:error=EIO"):
        release.set()
        assert world.ends_with() == EX_IOERR
        told = world.push(2, world.put("/p2/new"))
    assert world.cached() == {}
    seconds = started_again(world, EX_IOERR)
    seen = Seen(told, "what is under way is fetched again", NOTHING_LOST, ENDS)
    is_as_documented("fsync of a content file fails (EIO)", seen, seconds)


@long
def test_bodies_that_cannot_be_synced_together_end_the_process(make: Make) -> None:
    world = make()
    world.lcc.start()
    release = threading.Event()
    pages = [world.put(f"/p{pid}/page", held=release) for pid in range(1, 41)]
    for pid, page in enumerate(pages, 1):
        assert world.push(pid, page) == ACCEPTED
    wait_for(lambda: sum(map(world.visited, pages)) > 2 * FEW, 20, "the fetches")
    with injected(world.process, "syncfs:error=EIO"):
        release.set()
        assert world.ends_with() == EX_IOERR
        told = world.push(50, world.put("/p50/new"))
    assert "syncfs of " in world.lcc.log_text()
    assert len(world.cached()) < len(pages)
    seconds = started_again(world, EX_IOERR)
    seen = Seen(told, "what is under way is fetched again", NOTHING_LOST, ENDS)
    is_as_documented("syncfs of content files fails (EIO)", seen, seconds)


SQLITE = {
    "fsync of the SQLite database fails (EIO)": "fdatasync:error=EIO",
    "writing to the SQLite database fails (EIO)": "pwrite64:error=EIO",
}


@pytest.mark.parametrize(
    "trouble", [next(iter(SQLITE)), *(pytest.param(one, marks=long) for one in [*SQLITE][1:])]
)
def test_a_database_on_a_failing_disk_ends_the_process(make: Make, trouble: str) -> None:
    world = make()
    world.lcc.start()
    release = threading.Event()
    page = world.put("/p1/page", held=release)
    assert world.push(1, page) == ACCEPTED
    wait_for(lambda: world.visited(page), 20, "the fetch")
    with injected(world.process, SQLITE[trouble]):
        assert world.ends_with() == EX_IOERR
        told = world.push(2, world.put("/p2/new"))
    release.set()
    seconds = started_again(world, EX_IOERR)
    seen = Seen(told, "what is under way is fetched again", NOTHING_LOST, ENDS)
    is_as_documented(trouble, seen, seconds)


@long
def test_want_of_room_that_only_fsync_and_sqlite_tell_is_waited_for(make: Make) -> None:
    world = make()
    world.lcc.start()
    release = threading.Event()
    page = world.put("/p1/page", held=release)
    assert world.push(1, page) == ACCEPTED
    wait_for(lambda: world.visited(page), 20, "the fetch")
    begun, new = Conversation(world.lcc.port, 2), [world.put("/p2/new")]
    assert begun.let_in()
    with injected(world.process, "fsync:error=ENOSPC", "pwrite64:error=ENOSPC"):
        begun.say(world.opening(new) + "</lococa:set>")
        told = f"{begun.end()}, and {world.push(3, world.put('/p3/new'))} at login"
        release.set()
        wait_for(lambda: "trying again" in world.lcc.log_text(), 20, "results to wait")
        time.sleep(2)
        assert page not in world.cached()
    seconds = world.wait_until_all_is_there()
    wait_for(lambda: world.push(2, *new) == ACCEPTED, 20, "providers to be let in")
    seen = Seen(told, "nothing is begun; results wait", NOTHING_LOST, GOES_ON if world.runs() else "ends")
    is_as_documented("the disk says that it is full (ENOSPC) though it shows room", seen, seconds)


# --- descriptors ---------------------------------------------------------------------------------


@long
def test_few_descriptors_are_nobody_s_fault(make: Make) -> None:
    world = make(LCC_HOST_BACKOFF="1h")
    world.lcc.start()
    told: list[str] = []

    def provider(pid: int, number: int) -> None:
        paths = [world.put(f"/p{pid}/{number}-{one}", wait=0.2) for one in range(3)]
        while (answer := world.push(pid, *paths)) != ACCEPTED:
            told.append(answer)
            time.sleep(0.5)

    clients = [
        threading.Thread(target=provider, args=(n % PROVIDERS + 1, n), daemon=True) for n in range(100)
    ]
    with few_descriptors(world.process, 64):
        for client in clients:
            client.start()
        time.sleep(15)
        assert world.runs()
    for client in clients:
        client.join(300)
    seconds = world.wait_until_all_is_there(60)
    assert set(told) <= {CUT, "103", "203"}, set(told)
    assert told, "there were enough of them: the test shows nothing"
    assert world.lcc.sql("select sum(nurlerrs) from pidb") == [(0,)]
    assert len(world.cached()) == 300
    seen = Seen("nothing (the connection is cut), 103 or 203", "as many as can be", NOTHING_LOST, GOES_ON)
    is_as_documented("64 file descriptors for 100 providers and 64 fetches", seen, seconds)
    world.finish(verify=LONG, unhandled=False)  # Twisted says with a traceback that it lacks descriptors, too


# --- the settling process ------------------------------------------------------------------------


def settling(world: World) -> int:
    wait_for(lambda: settling_of([world.process]), 20, "a settling process")
    return settling_of([world.process])[0]


def test_a_settling_process_that_is_killed_is_started_again(make: Make) -> None:
    world = make()
    world.lcc.start()
    paths = [world.put(f"/p{pid}/{n}", wait=0.1) for pid in range(1, 5) for n in range(12)]
    for pid in range(1, 5):
        assert world.push(pid, *[path for path in paths if path.startswith(f"/p{pid}/")]) == ACCEPTED
    wait_for(lambda: len(world.site.visits) >= 8, 20, "fetches")
    os.kill(settling(world), signal.SIGKILL)
    told = world.push(5, world.put("/p5/new"))
    seconds = world.wait_until_all_is_there()
    assert [len(world.site.asked(path)) for path in paths] == [1] * len(paths)
    assert "the settling process was ended by SIGKILL: another one is started" in world.lcc.log_text()
    seen = Seen(told, "goes on; results wait for a second", NOTHING_LOST, GOES_ON if world.runs() else "ends")
    is_as_documented("the settling process of a crawl is killed", seen, seconds)
    world.finish(verify=True)


def test_results_wait_for_a_settling_process_that_is_frozen(make: Make) -> None:
    world = make()
    world.lcc.start()
    release = threading.Event()
    page = world.put("/p1/page", held=release)
    assert world.push(1, page) == ACCEPTED
    wait_for(lambda: world.visited(page), 20, "the fetch")
    frozen_one, new = settling(world), world.put("/p2/new")
    os.kill(frozen_one, signal.SIGSTOP)
    release.set()
    wait_for(lambda: world.push(2, new) == "103", 20, "a login that takes too long")
    assert page not in world.cached()
    os.kill(frozen_one, signal.SIGCONT)
    seconds = world.wait_until_all_is_there()
    wait_for(lambda: world.push(2, new) == ACCEPTED, 20, "providers to be let in")
    world.wait_until_all_is_there()
    assert len(world.site.asked(page)) == 1
    seen = Seen(
        "103", f"at most {NOT_DURABLE}; results wait", NOTHING_LOST, GOES_ON if world.runs() else "ends"
    )
    is_as_documented("the settling process of a crawl is frozen for a while", seen, seconds)
    world.finish(verify=True)


# --- freezes and clocks --------------------------------------------------------------------------


def test_a_process_that_is_frozen_for_longer_than_its_lease_loses_nothing(make: Make) -> None:
    lease = 60 if LONG else 20
    world = make(LCC_LEASE=f"{lease}s")
    world.lcc.start()
    with (world.lcc.folder / "other.log").open("wb") as log:
        other = subprocess.Popen(
            [str(BIN / "scrapy"), "crawl", "lcc_push", "-s", "LCC_UNS_ENDPOINTS="],
            env=world.lcc.environment, cwd=world.lcc.cwd, stdout=log, stderr=log,
        )  # fmt: skip
    try:
        wait_for(lambda: world.lcc.sql("select count(*) from workers") == [(2,)], 20, "the other process")
        paths = [world.put(f"/p{pid}/{n}", wait=0.5) for pid in range(1, 5) for n in range(12)]
        for pid in range(1, 5):
            assert world.push(pid, *[path for path in paths if path.startswith(f"/p{pid}/")]) == ACCEPTED
        wait_for(lambda: not world.lcc.is_spooled() and len(world.site.visits) >= 4, 20, "fetches")
        visits = len(world.site.visits)
        with frozen(world.process, besides=world.lcc.folder / "lcc-data/lcc.sqlite"):
            seconds = world.wait_until_all_is_there(lease * 3 + 20)
        assert len(world.site.visits) > visits
        assert world.push(5, world.put("/p5/after")) == ACCEPTED
        world.wait_until_all_is_there()
    finally:
        other.terminate()
        assert other.wait(300) == 0
    twice = {path for path in paths if len(world.site.asked(path)) > 1}
    assert len(twice) <= len(paths) / 4, f"only what was under way is fetched again: {twice}"
    for pid in range(1, 5):
        assert not overlaps([one for one in world.site.asked(f"/p{pid}/") if one.path not in twice])
    seen = Seen(
        "nothing until it wakes up",
        "by the others; what it held, too, once its lease is over (on SQLite, unless it was frozen in the middle of a commit)",
        NOTHING_LOST,
        GOES_ON,
    )
    is_as_documented("one of two crawl processes is frozen for longer than `LCC_LEASE`", seen, seconds)


@pytest.mark.parametrize("step", [pytest.param("+1h", marks=long), "-1h"])
def test_a_clock_that_is_moved_by_an_hour_moves_the_hours_and_nothing_else(
    make: Make, tmp_path: Path, step: str
) -> None:
    clock = MovedClock(tmp_path / "clock")
    world = make()
    now = datetime.now(UTC)
    base = (10 - now.minute) % 60 * 60  # ten past: no hour ends before the test does
    clock.move(base)
    shown = now + timedelta(seconds=base, hours=int(step[:-1]))
    world.lcc.lcc("provider", "set", "2", "--timeofday", f"{shown.hour}-{(shown.hour + 1) % 24 or 24}")
    world.lcc.settings |= clock.environment
    world.lcc.start()
    paths = [world.put(f"/p1/{number}", wait=0.2) for number in range(25)]
    assert world.push(1, *paths) == ACCEPTED
    assert world.push(2, world.put("/p2/at-its-hour")) == ACCEPTED
    stays, new = Conversation(world.lcc.port, 3), [world.put("/p3/new")]
    assert stays.let_in()
    wait_for(lambda: len(world.site.visits) > 5, 20, "fetches")
    assert not world.visited("/p2/at-its-hour")
    clock.move(base + 3600 * int(step[:-1]))
    begun = time.monotonic()
    seconds = world.wait_until_all_is_there(60)
    stays.say(world.opening(new) + "</lococa:set>")
    told = world.noted(stays.end(), new)
    world.wait_until_all_is_there()
    assert [len(world.site.asked(path)) for path in paths] == [1] * len(paths), "nothing was cut off"
    starts = sorted(visit.start for visit in world.site.asked("/p1/"))
    assert max(later - earlier for earlier, later in pairwise(starts)) < 200, "it was moved by hours"
    assert not overlaps(world.site.asked("/p1/"))
    assert world.site.asked("/p2/at-its-hour")[0].start > begun
    assert "the clock was moved" in world.lcc.log_text()
    seen = Seen(told, "goes on; hours are those that the clock shows now", NOTHING_LOST, GOES_ON)
    is_as_documented(f"the clock is moved by {step}", seen, seconds)


# --- answers that do not arrive ------------------------------------------------------------------


@pytest.mark.parametrize("set_id", ["set-1", pytest.param("", marks=long)])
def test_an_answer_that_is_cut_off_leads_to_a_set_that_is_sent_again(make: Make, set_id: str) -> None:
    world = make()
    world.lcc.start()
    page = world.put("/p1/page")
    with injected(world.process, "fsync:delay_exit=10000000"):  # microseconds, for which the commit takes
        talk = Conversation(world.lcc.port, 1)
        assert talk.let_in()
        talk.say(world.opening([page], set_id) + "</lococa:set>")
        wait_for(lambda: list(world.spool.glob("*.part")), 20, "the set to be written")
        talk.hang_up()
        assert not world.lcc.is_spooled(), "it was cut too late"
        wait_for(world.lcc.is_spooled, 20, "the commit")
    wait_for(lambda: page in world.cached(), 20, "the set to be absorbed all the same")
    begun = time.monotonic()
    assert world.push(1, page, set_id=set_id) == ACCEPTED
    world.wait_until_all_is_there()
    wait_for(lambda: world.lcc.sql("select count(*) from qdb") == [(0,)], 20, "the queue to be empty")
    seconds = time.monotonic() - begun
    times = len(world.site.asked(page))
    assert world.lcc.sql("select count(*) from lccurl") == [(1,)]
    meanwhile = {1: "all of it, once", 2: "all of it; the same URLs again, once more"}[times]
    seen = Seen(f"{CUT}; sent again: {ACCEPTED}", meanwhile, NOTHING_LOST, GOES_ON)
    kind = "with an id" if set_id else "without an id"
    is_as_documented(f"the connection is cut between commit and answer, set {kind}", seen, seconds)


def test_every_trouble_is_in_the_table() -> None:
    assert len(rows()) == 19
    assert all(kept for (_, _, kept, _), _ in rows().values())
