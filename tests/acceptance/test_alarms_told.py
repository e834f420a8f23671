"""``lcc alarms``: what is wrong with a real LCC is told once when it begins and once when it ends."""

import json
import subprocess
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest

from lcc_scrapy.apps.alarms.rules import Rule
from lcc_scrapy.apps.alarms.store import alarm_of
from lcc_scrapy.db.sql.store import SqlStore
from tests.alert_house import HookServer, hook_server
from tests.forkserver import popen
from tests.harness import BIN, Lcc, wait_for
from tests.integration.site import Answer, Site, page
from tests.mail_server import MailServer, mail_server

pytestmark = [pytest.mark.acceptance, pytest.mark.slow]

TO = "oncall@example.org"
DAY = 86_400


class OnCall:
    """Somebody who is told by mail, by a webhook and by a command; and the process that tells."""

    def __init__(self, lcc: Lcc, mails: MailServer, hooks: HookServer) -> None:
        self.lcc, self.mails, self.hooks = lcc, mails, hooks
        self.kept = lcc.folder / "told"
        file = lcc.folder / "hooks"
        file.write_text(f"json {hooks.url}/hook\n")
        script = lcc.folder / "tell"
        script.write_text(f'#!/bin/sh\necho "$ALARM $ALARM_STATE" >> {self.kept}\n')
        script.chmod(0o700)
        lcc.settings |= {
            "LCC_MAIL_FROM": "lcc@example.org", "LCC_MAIL_PORT": str(mails.port), "LCC_ALARM_MAIL": TO,
            "LCC_ALARM_WEBHOOKS_FILE": str(file), "LCC_ALARM_COMMAND": str(script),
            "LCC_ALARM_EVERY": "0.2s", "LCC_ALARM_STEADY": "1s", "LCC_ALARM_STALLED": "1d",
        }  # fmt: skip
        self.process: subprocess.Popen[bytes] | None = None

    def watch(self, *options: str) -> None:
        with (self.lcc.folder / "alarms.log").open("ab") as log:
            command = [str(BIN / "lcc"), *options, "alarms", "watch"]
            self.process = popen(command, env=self.lcc.environment, cwd=self.lcc.folder, log=log)

    def kill(self) -> None:
        if self.process is not None:
            self.process.kill()
            self.process.wait(300)

    def told(self) -> dict[str, Counter[str]]:
        """Return what each channel was told, and how often."""
        calls = [json.loads(body) for _, _, body in self.hooks.calls]
        lines = self.kept.read_text().splitlines() if self.kept.exists() else []
        return {
            "mail": Counter(str(one.message["Subject"]) for one in self.mails.to(TO)),
            "webhook": Counter(f"{one['alarm']} {one['state']}" for one in calls),
            "command": Counter(lines),
        }

    def wait_for(self, *said: str) -> None:
        def is_told() -> bool:
            return all(set(said) <= set(self.told()[channel]) for channel in ("webhook", "command"))

        wait_for(is_told, 120, f"{said}: {self.told()}")

    def wait_until_noted(self) -> None:
        """Wait until the LCC has noted that all channels were told."""

        def is_noted() -> bool:
            with closing(SqlStore(self.lcc.shared_url)) as store, store.read() as tx:
                return not any(alarm_of(tx, rule).left for rule in Rule)

        wait_for(is_noted, 120, "the notes")


@pytest.fixture
def site() -> Iterator[Site]:
    with Site() as made:
        yield made


@pytest.mark.parametrize("database", ["sqlite", "mariadb"])
def test_each_alarm_is_told_once_when_it_begins_and_once_when_it_ends(
    make_lcc: Callable[..., Lcc], site: Site, database: str
) -> None:
    lcc: Lcc = make_lcc(database, LCC_RETRY_DELAYS="1d")
    root = f"http://127.0.0.1:{site.listen()}/"
    lcc.add_provider(7, root)
    lcc.add_provider(8, f"http://127.0.0.1:{site.listen()}/")
    with mail_server() as mails, hook_server() as hooks:
        on_call = OnCall(lcc, mails, hooks)
        on_call.watch("-s", "LCC_ALARM_FREE=1000000G")
        try:
            on_call.wait_for("workers on", "disk on")
            lcc.start()
            on_call.wait_for("workers off")
            push(lcc, root, site, range(30), page("good"))
            push(lcc, root, site, range(100, 160), page("bad", "500 Internal Server Error"))
            on_call.wait_for("failures on")
            assert lcc.push_urls(7, [url(root, one) | {"op": "remove"} for one in range(30)]).returncode == 0
            on_call.wait_for("held on")
            on_call.wait_until_noted()  # a kill between a message and its note sends the message again
            on_call.kill()
            long_ago = int(time.time()) - 10 * DAY
            with closing(SqlStore(lcc.shared_url)) as store, store.begin() as tx:
                tx.update_provider(8, {"lastconnseq": 5, "lastconntime": long_ago, "created": long_ago - DAY})
            on_call.watch()  # with LCC_ALARM_FREE at its default
            on_call.wait_for("silent on", "disk off")
            lcc.lcc("provider", "confirm-removals", "7")
            push(lcc, root, site, range(200, 300), page("good"))
            assert lcc.lcccp(8, "--check").returncode == 0
            on_call.wait_for("held off", "failures off", "silent off")
            listed = {row["alarm"]: row for row in json.loads(lcc.lcc("alarms", "list", "--json").stdout)}
            assert not any(row["on"] or row["now"] for row in listed.values()), listed
        finally:
            on_call.kill()
        told = on_call.told()
        rules = ("workers", "disk", "failures", "held", "silent")
        once = Counter(f"{rule} {state}" for rule in rules for state in ("on", "off"))
        assert told["webhook"] == told["command"] == once
        assert sum(told["mail"].values()) == 10
        assert set(told["mail"].values()) == {1}
    lcc.stop()


def push(lcc: Lcc, root: str, site: Site, numbers: range, answer: Answer) -> None:
    for number in numbers:
        site.put(f"/{number}.html", answer)
    assert lcc.push_urls(7, [url(root, number) for number in numbers]).returncode in {0, 1}


def url(root: str, number: int) -> dict[str, object]:
    return {"curl": f"{root}{number}.html", "op": "update", "mimetype": "text/html"}


def test_a_test_message_goes_to_all_channels_and_wrong_settings_are_one_line(
    make_lcc: Callable[..., Lcc], tmp_path: Path
) -> None:
    lcc: Lcc = make_lcc("sqlite")
    nobody = lcc.lcc("alarms", "watch", check=False)
    assert nobody.returncode == 2
    assert "set LCC_ALARM_MAIL, LCC_ALARM_WEBHOOKS_FILE or LCC_ALARM_COMMAND" in nobody.stderr
    assert lcc.lcc("alarms", "test", check=False).returncode == 1
    with mail_server() as mails, hook_server() as hooks:
        on_call = OnCall(lcc, mails, hooks)
        assert lcc.lcc("alarms", "test").stdout.count(": told") == 3
        assert [sum(told.values()) for told in on_call.told().values()] == [1, 1, 1]
        hooks.answer = lambda _: (500, {}, b"")
        failed = lcc.lcc("alarms", "test", check=False)
        assert (failed.returncode, "json webhook at 127.0.0.1: it answers 500" in failed.stdout) == (1, True)
    off = lcc.lcc("-s", "LCC_MAIL_FROM=", "alarms", "watch", check=False)
    assert (off.returncode, "mail is off: set LCC_MAIL_FROM" in off.stderr) == (2, True)
