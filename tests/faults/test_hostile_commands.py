"""A command of alarms that runs as another user, and hangs: nobody waits for it."""

import os
import signal
import time

import pytest

from lcc_scrapy.apps.alarms import channels
from lcc_scrapy.apps.alarms.channels import CommandChannel
from lcc_scrapy.apps.alarms.rules import Notice, Rule
from lcc_scrapy.apps.alarms.webhooks import NotTold

BEGUN = Notice(Rule.HELD, on=True, at=1_800_000_000, text="3 removals are held", name="held-1")
HANGS = CommandChannel(("sleep", "60"))


@pytest.fixture
def others(monkeypatch):
    """Let commands be those of another user, whom we may not kill; gives their pids."""
    begun, kill = [], os.killpg

    def refuse(pid, _):
        begun.append(pid)
        raise PermissionError

    monkeypatch.setattr(channels.os, "killpg", refuse)
    monkeypatch.setattr(channels, "COMMAND_TIMEOUT", 0.05)
    yield begun
    for process in channels._left:
        kill(process.pid, signal.SIGKILL)
        process.wait()
    channels._left.clear()


def test_a_command_that_may_not_be_killed_is_left_when_its_time_is_up(others):
    begun = time.monotonic()
    with pytest.raises(NotTold, match=r"^it took longer than 0.05 s$"):
        HANGS.tell(BEGUN)
    assert time.monotonic() - begun < 30
    assert len(others) == 1


def test_no_more_such_commands_are_begun_than_may_go_on_until_some_have_ended(others, monkeypatch):
    for _ in range(channels.LEFT):
        with pytest.raises(NotTold, match="it took longer"):
            HANGS.tell(BEGUN)
    with pytest.raises(NotTold, match="may not be killed go on"):
        HANGS.tell(BEGUN)
    assert len(others) == channels.LEFT
    os.kill(others[0], signal.SIGKILL)
    os.waitid(os.P_PID, others[0], os.WEXITED | os.WNOWAIT)
    monkeypatch.setattr(channels, "COMMAND_TIMEOUT", 60)
    CommandChannel(("true",)).tell(BEGUN)
