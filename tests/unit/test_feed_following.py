"""Following: what counts as handed over, when it is tried again, and the file that keeps the position."""

import os
import subprocess
import sys
from dataclasses import replace

import pytest
from test_cli_cursor import HERE, FakeFeed, document, tombstone

from lcc_scrapy.domain.cursor import BadCursor, StartOver
from lcc_scrapy.domain.errors import LccError, StoreUnavailable
from lcc_scrapy.domain.selection import Selection
from lcc_scrapy.feed import reader
from lcc_scrapy.feed.command import Command
from lcc_scrapy.feed.cursor_file import CursorFile
from lcc_scrapy.feed.following import FIRST_WAIT, LONGEST_WAIT, Batch, FeedSource, Follower

POLL = 7.0
EVERYTHING = Selection()


@pytest.fixture(autouse=True)
def small_pages(monkeypatch):
    monkeypatch.setattr(reader, "PAGE", 2)


class Following:
    """A follower whose world does what it is told, one entry of ``events`` for each wait."""

    def __init__(self, source, *events, selection=EVERYTHING, since=None, refuses=0):
        self.events = list(events)
        self.batches, self.kept, self.waits = [], [], []
        self.refuses = refuses
        self.follower = Follower(
            FeedSource(source, selection),
            since,
            deliver=self.deliver,
            keep=self.kept.append,
            pause=self.pause,
            poll=POLL,
        )

    def deliver(self, batch):
        self.batches.append([row.seq for row in batch.changes])
        self.last = batch
        self.refuses -= 1
        return self.refuses < 0

    def pause(self, seconds):
        if not seconds:
            return True
        self.waits.append(seconds)
        if not self.events:
            return False
        self.events.pop(0)()
        return True

    def run(self, **options):
        self.follower.run(**options)
        return self


def nothing():
    pass


def test_changes_come_in_batches_and_the_position_follows_them():
    made = Following(FakeFeed(*map(document, (1, 2, 3)))).run()
    assert made.batches == [[1, 2], [3]]
    assert [position.seq for position in made.kept] == [0, 2, 3]
    assert made.waits == [POLL]
    assert (made.last.since.seq, made.last.position.seq, made.last.tries) == (2, 3, 0)


def test_what_happens_later_is_handed_over_too():
    source = FakeFeed(document(1))
    made = Following(source, nothing, lambda: source.rows.append(tombstone(2))).run()
    assert made.batches == [[1], [2]]


def test_while_nothing_happens_only_the_head_is_looked_at():
    source = FakeFeed(document(1))
    looks = Following(source).run() and source.pages
    Following(source, nothing, nothing, nothing).run()
    assert source.pages == 2 * looks


def test_a_refused_batch_comes_again_as_it_is_by_then_and_the_position_waits():
    source = FakeFeed(document(1), document(2), document(3))

    def change():
        source.rows[0] = document(4)

    made = Following(source, change, nothing, refuses=2).run()
    assert made.batches == [[1, 2], [2, 3], [2, 3], [4]]
    assert made.waits == [FIRST_WAIT, 2 * FIRST_WAIT, POLL]
    assert [position.seq for position in made.kept] == [0, 3, 4]


def test_waits_grow_up_to_a_bound_and_begin_anew_after_a_success():
    made = Following(FakeFeed(document(1)), *[nothing] * 12, refuses=11).run()
    assert made.waits[:3] == [1, 2, 4]
    assert max(made.waits) == LONGEST_WAIT
    assert made.waits[-2:] == [POLL, POLL]


def test_the_limit_holds_over_all_batches():
    made = Following(FakeFeed(*map(document, range(1, 8)))).run(limit=3)
    assert made.batches == [[1, 2], [3]]
    assert (made.kept[-1].seq, made.waits) == (3, [])


def test_once_ends_at_the_end_but_not_before_everything_was_taken():
    made = Following(FakeFeed(document(1)), nothing, nothing, refuses=1).run(once=True)
    assert made.batches == [[1], [1]]
    assert made.waits == [FIRST_WAIT]


def test_what_is_not_selected_moves_the_position_all_the_same():
    made = Following(FakeFeed(document(1), document(2)), selection=Selection((9,))).run()
    assert made.batches == []
    assert made.kept[-1].seq == 2


def test_a_database_that_is_away_is_waited_for():
    source = FakeFeed(document(1))
    head, away = source.head, [True, True]

    def sometimes():
        if away.pop():
            raise StoreUnavailable("gone")
        away.append(False)
        return head()

    source.head = sometimes
    away[:] = [False, True]
    made = Following(source, nothing).run()
    assert made.waits == [FIRST_WAIT, POLL]
    assert made.batches == [[1]]


def test_a_cursor_that_cannot_be_followed_ends_it():
    made = Following(FakeFeed(document(1)), since=replace(HERE, lcc="another", seq=0))
    with pytest.raises(StartOver):
        made.run()
    assert made.kept == []


# --- the command ---------------------------------------------------------------------------------


def batch(**values):
    return replace(Batch([document(1)], replace(HERE, seq=1), replace(HERE, seq=2), 0), **values)


def test_the_command_gets_lines_and_facts(tmp_path):
    out = tmp_path / "out"
    text = f'cat > {out}; echo "$FEED_SINCE $FEED_CURSOR $FEED_CHANGES $FEED_TRY $MINE" >> {out}'
    assert Command(text, {**os.environ, "MINE": "ours"}).run(b"a line\n", batch(tries=4)) == 0
    assert out.read_text() == f"a line\n{replace(HERE, seq=1)} {replace(HERE, seq=2)} 1 5 ours\n"


def test_the_status_of_the_command_is_told():
    assert Command("exit 7", os.environ).run(b"", batch()) == 7
    assert Command("kill -9 $$", os.environ).run(b"", batch()) == -9


def test_a_command_that_does_not_read_is_no_problem():
    assert Command("true", os.environ).run(b"x" * 1_000_000, batch()) == 0


def test_a_command_may_end_in_peace_and_is_ended_when_it_does_not(tmp_path):
    stopping = lambda: True  # noqa: E731
    assert Command("sleep 0.5", os.environ, stopping=stopping, patience=30).run(b"", batch()) == 0
    assert Command("sleep 60", os.environ, stopping=stopping, patience=0.3).run(b"", batch()) == -15


# --- the cursor file -----------------------------------------------------------------------------


def test_a_cursor_file_gives_what_was_written(tmp_path):
    with CursorFile(tmp_path / "position") as file:
        assert file.read() is None
        file.write(HERE)
        file.write(replace(HERE, seq=5))
        assert file.read() == replace(HERE, seq=5)
    assert [path.name for path in tmp_path.iterdir()] == ["position"]


def test_a_file_that_holds_no_cursor_is_named_and_left_as_it_is(tmp_path):
    (tmp_path / "position").write_bytes(b"\xff\xfe")
    with CursorFile(tmp_path / "position") as file, pytest.raises(BadCursor, match="position: this is not a"):
        file.read()


def test_a_cursor_file_belongs_to_one_at_a_time(tmp_path):
    path = tmp_path / "position"
    with CursorFile(path):
        for _ in range(2):
            with pytest.raises(LccError, match="another process"), CursorFile(path):
                pass
    with CursorFile(path) as again:
        again.write(HERE)


def test_a_lock_that_a_killed_process_left_behind_does_no_harm(tmp_path):
    path = tmp_path / "position"
    code = "import os, sys, pathlib; from lcc_scrapy.feed.cursor_file import CursorFile\nwith CursorFile(pathlib.Path(sys.argv[1])): os._exit(9)"
    assert subprocess.run([sys.executable, "-c", code, str(path)], check=False).returncode == 9
    assert (tmp_path / "position.lock").exists()
    with CursorFile(path) as file:
        file.write(HERE)
