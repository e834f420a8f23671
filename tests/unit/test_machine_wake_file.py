"""The file that wakes crawls: every touch is noticed once, and its loss harms nobody."""

import pytest
from twisted.internet.task import Clock

from lcc_scrapy.machine.wake_file import EVERY, NAME, WakeFile, Waking


@pytest.fixture
def file(tmp_path):
    return WakeFile(tmp_path)


def test_a_touch_of_another_process_is_noticed_once(tmp_path, file):
    assert not file.is_touched()
    WakeFile(tmp_path).touch()
    assert file.is_touched()
    assert not file.is_touched()


def test_two_touches_in_one_moment_are_two(tmp_path, file):
    for _ in range(100):
        WakeFile(tmp_path).touch()
        assert file.is_touched()


def test_what_was_touched_before_is_not_news(tmp_path):
    WakeFile(tmp_path).touch()
    assert not WakeFile(tmp_path).is_touched()


def test_others_cannot_read_it(tmp_path, file):
    file.touch()
    assert (tmp_path / NAME).stat().st_mode & 0o027 == 0


def test_a_folder_that_cannot_be_written_to_is_no_error(tmp_path):
    file = WakeFile(tmp_path / "nowhere")
    file.touch()
    assert not file.is_touched()


def test_a_crawl_is_woken_soon_and_only_when_something_is_new(tmp_path, file):
    clock, woken = Clock(), []
    waking = Waking(file, clock, lambda: woken.append(clock.seconds()))
    waking.start()
    clock.pump([EVERY] * 3)
    assert woken == []
    WakeFile(tmp_path).touch()
    clock.pump([EVERY] * 3)
    assert woken == [4 * EVERY]
    waking.stop()
    WakeFile(tmp_path).touch()
    clock.advance(EVERY)
    assert len(woken) == 1
    assert clock.getDelayedCalls() == []


def test_a_failure_of_what_is_woken_ends_nothing(tmp_path, file):
    clock, woken = Clock(), []

    def wake():
        woken.append(1)
        raise ValueError("defect")

    Waking(file, clock, wake).start()
    for _ in range(2):
        file.touch()
        with pytest.raises(ValueError, match="defect"):
            clock.advance(EVERY)
    assert len(woken) == 2
