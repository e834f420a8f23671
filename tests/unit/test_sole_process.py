"""A lock in a folder that one process has."""

from lcc_scrapy.machine.sole_process import SoleProcess


def test_one_has_the_lock_until_it_gives_it_back(tmp_path):
    first, second = SoleProcess(tmp_path, "annotate"), SoleProcess(tmp_path, "annotate")
    assert first.take()
    assert first.take()
    assert not second.take()
    first.release()
    assert second.take()
    second.release()


def test_names_have_locks_of_their_own(tmp_path):
    first, second = SoleProcess(tmp_path, "a"), SoleProcess(tmp_path, "b")
    assert first.take()
    assert second.take()
    first.release()
    second.release()
