"""``lcc-push --watch``: what changes is told as it does."""

import shutil
from contextlib import contextmanager

import pytest

from lcc_scrapy.push import watch
from lcc_scrapy.push.command import Notes, Status, Stop
from lcc_scrapy.push.inotify import Inotify
from tests.component.test_lcc_push import SITE, Owner
from tests.harness import wait_for
from tests.http_lcc import HttpLcc, problem


@pytest.fixture
def owner(tmp_path):
    with HttpLcc() as lcc:
        made = Owner(tmp_path, lcc)
        made.docroot.mkdir()
        made.configure()
        yield made


@contextmanager
def watching(owner, *words):
    process = owner.start("--watch", *words)
    try:
        yield process
    finally:
        process.kill()
        process.communicate(timeout=300)


@pytest.mark.parametrize("words", [(), ("--poll",)])
def test_what_changes_is_told_while_it_runs(owner, words):
    owner.write("a.html")
    with watching(owner, *words) as process:
        wait_for(lambda: list(owner.lcc.held) == [SITE + "a.html"], what="the first push")
        owner.write("new/folder/b.html")
        wait_for(lambda: SITE + "new/folder/b.html" in owner.lcc.held, what="a file in a new folder")
        owner.write("new/folder/c.html")
        wait_for(lambda: SITE + "new/folder/c.html" in owner.lcc.held, what="another one")
        shutil.rmtree(owner.docroot / "new")
        wait_for(lambda: list(owner.lcc.held) == [SITE + "a.html"], what="the removals")
        owner.lcc.before = lambda *_: problem(401, "not any more")
        owner.write("d.html")
        wait_for(lambda: process.poll() == 77, what="a refused login to end it")


def test_inotify_tells_of_files_and_of_folders_in_new_folders(tmp_path):
    (tmp_path / "old").mkdir()
    told = Inotify(bytes(tmp_path))
    try:
        assert not told.changed(0)
        (tmp_path / "old" / "a.html").write_text("x")
        assert told.changed(60)
        (tmp_path / "one" / "two").mkdir(parents=True)
        assert told.changed(60)
        (tmp_path / "one" / "two" / "b.html").write_text("x")
        assert told.changed(60)
        (tmp_path / ".hidden").write_text("x")
        assert not told.changed(0.01)
    finally:
        told.close()


def test_polling_sees_other_sizes_and_missing_files(tmp_path):
    (tmp_path / "a.html").write_text("x")
    told = watch.Polling(bytes(tmp_path), sleep=lambda _seconds: None)
    assert not told.changed(1)
    (tmp_path / "a.html").write_text("longer")
    assert told.changed(1)
    (tmp_path / "a.html").unlink()
    assert told.changed(1)
    assert not told.changed(1)


def test_a_server_that_is_away_is_asked_again_ever_later_and_bad_usage_ends_it():
    waits, results = [], [Status.UNAVAILABLE] * 9 + [Status.DONE]

    class Still:
        def changed(self, timeout):
            waits.append(round(timeout))
            watch.time.now += timeout
            return False

    class Clock:
        now = 0.0

        def monotonic(self):
            return self.now

    def push():
        if not results:
            raise Stop(Status.USAGE, "enough")
        return results.pop(0)

    with pytest.MonkeyPatch.context() as patch, pytest.raises(Stop):  # noqa: PT012
        patch.setattr(watch, "time", Clock())
        watch.keep_pushing(push, Still, 3600.0, Notes("test", quiet=True))
    assert waits == [10, 20, 40, 80, 160, 320, 600, 600, 600, 3600]
