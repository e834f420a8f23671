"""Alarms are told to real servers: mail, webhooks of four kinds; and to a command."""

import json
import os
import select
import signal
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pytest

from lcc_scrapy.apps.alarms import channels as channels_module
from lcc_scrapy.apps.alarms.channels import CommandChannel, channels_of
from lcc_scrapy.apps.alarms.rules import Notice, Rule
from lcc_scrapy.apps.alarms.settings import AlarmRules
from lcc_scrapy.apps.alarms.webhooks import KINDS, NotTold, WebhookChannel, read_webhooks
from lcc_scrapy.domain.errors import ConfigurationError
from lcc_scrapy.domain.mail_rules import MailRules
from lcc_scrapy.mail.sending import smtp_mailer
from tests.alert_house import hook_server
from tests.harness import wait_for
from tests.mail_server import mail_server
from tests.ports import free_port

BEGUN = Notice(Rule.HELD, on=True, at=1_800_000_000, text="3 removals are held", name="held-1")
OVER = replace(BEGUN, on=False, text="", name="held-2")


def tell(channel, notice):
    """Tell it from a thread, as the program does: in this one a reactor runs."""
    with ThreadPoolExecutor(1) as thread:
        thread.submit(channel.tell, notice).result()


@pytest.fixture
def hooks():
    with hook_server() as made:
        yield made


def test_a_webhook_gets_json(hooks):
    tell(WebhookChannel("json", f"{hooks.url}/hook?key=1", "agent"), BEGUN)
    ((path, head, body),) = hooks.calls
    assert (path, head["Content-Type"], head["Idempotency-Key"]) == (
        "/hook?key=1", "application/json", '"held-1"',
    )  # fmt: skip
    assert json.loads(body) == {
        "alarm": "held", "state": "on", "at": 1_800_000_000, "id": "held-1",
        "title": "alarm: removals are held", "text": "3 removals are held",
    }  # fmt: skip


def test_slack_gets_a_text(hooks):
    tell(WebhookChannel("slack", f"{hooks.url}/services/T0/B0/X", "agent"), OVER)
    assert json.loads(hooks.calls[0][2]) == {"text": "over: removals are held"}


def test_matrix_gets_an_event_under_the_name_of_the_notice(hooks):
    url = f"{hooks.url}/_matrix/client/v3/rooms/!r:x/send/m.room.message?access_token=secret"
    tell(WebhookChannel("matrix", url, "agent"), BEGUN)
    ((path, head, body),) = hooks.calls
    assert path.endswith("/send/m.room.message/held-1")
    assert head["Authorization"] == "Bearer secret"
    assert json.loads(body)["msgtype"] == "m.text"


def test_ntfy_gets_a_text_with_a_priority(hooks):
    tell(WebhookChannel("ntfy", f"{hooks.url}/topic", "agent"), BEGUN)
    ((_, head, body),) = hooks.calls
    assert (head["Title"], head["Priority"]) == ("alarm: removals are held", "high")
    assert b"3 removals are held" in body


@pytest.mark.parametrize("status", [302, 403, 500])
def test_another_answer_than_success_is_none(hooks, status):
    hooks.answer = lambda _: (status, {"Location": f"{hooks.url}/elsewhere"}, b"")
    with pytest.raises(NotTold, match=f"it answers {status}"):
        tell(WebhookChannel("json", f"{hooks.url}/hook", "agent"), BEGUN)
    assert [path for path, _, _ in hooks.calls] == ["/hook"]


def test_nobody_listens():
    with pytest.raises(NotTold, match="refuse"):
        tell(WebhookChannel("json", f"http://127.0.0.1:{free_port()}/", "agent"), BEGUN)


def test_a_command_gets_what_happened_in_its_environment(tmp_path):
    kept = tmp_path / "kept"
    code = f"import json, os; json.dump(dict(os.environ), open({str(kept)!r}, 'w'))"
    CommandChannel((sys.executable, "-c", code)).tell(BEGUN)
    found = {name: value for name, value in json.loads(kept.read_text()).items() if name.startswith("ALARM")}
    assert found == {
        "ALARM": "held", "ALARM_STATE": "on", "ALARM_TITLE": "alarm: removals are held",
        "ALARM_TEXT": "3 removals are held", "ALARM_AT": "1800000000", "ALARM_ID": "held-1",
    }  # fmt: skip


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ((sys.executable, "-c", "raise SystemExit(3)"), "it ended with status 3"),
        (("/nonexistent/command",), "No such file"),
        ((sys.executable, "-c", "import time; time.sleep(600)"), "it took longer than 0.2 s"),
    ],
)
def test_a_command_that_fails(monkeypatch, words, said):
    monkeypatch.setattr(channels_module, "COMMAND_TIMEOUT", 0.2 if "longer" in said else 60)
    with pytest.raises(NotTold, match=said):
        CommandChannel(words).tell(BEGUN)


def test_a_command_that_hangs_is_killed_with_all_that_it_started(monkeypatch, tmp_path):
    begun = tmp_path / "begun"
    words = ("/bin/sh", "-c", f"sleep 600 & echo $! > {begun}; wait")
    time_is_up_when(monkeypatch, lambda _: begun.exists() and begun.read_text().endswith("\n"))
    with pytest.raises(NotTold, match="it took longer"):
        CommandChannel(words).tell(BEGUN)
    wait_for(lambda: not is_running(int(begun.read_text())), 60, "the end of what it started")


def time_is_up_when(monkeypatch, condition):
    """Let the time of a command be up as soon as something is so."""

    def wait(process, timeout=None):
        if timeout is None:
            return ended(process)
        wait_for(lambda: condition(process), 60, "the command")
        raise subprocess.TimeoutExpired(process.args, timeout)

    ended = subprocess.Popen.wait
    monkeypatch.setattr(subprocess.Popen, "wait", wait)


def is_running(pid):
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except FileNotFoundError:
        return False
    return state != "Z"


def test_what_a_command_says_is_bounded_and_told_when_it_fails(monkeypatch, capfd):
    with monkeypatch.context() as patch:
        time_is_up_when(patch, lambda process: select.select([process.stderr], [], [], 0)[0])
        with pytest.raises(NotTold, match=r"it took longer than 60 s: no no ") as told:
            CommandChannel(("/bin/sh", "-c", "yes 'no no' >&2")).tell(BEGUN)
    assert len(str(told.value)) < 300
    with pytest.raises(NotTold, match=r"status 3: what\\x1b\[2J it is$"):
        CommandChannel(("/bin/sh", "-c", r"printf 'what\033[2J\nit is\n' >&2; exit 3")).tell(BEGUN)
    assert capfd.readouterr().err == ""


def test_a_command_that_leaves_another_one_behind_has_told(tmp_path):
    begun = tmp_path / "begun"
    CommandChannel(("/bin/sh", "-c", f"sleep 600 & echo $! > {begun}")).tell(BEGUN)
    os.kill(int(begun.read_text()), signal.SIGKILL)


def test_a_mail_is_the_same_one_when_it_is_sent_again():
    with mail_server() as server:
        rules = MailRules(sender="lcc@example.org", port=server.port)
        (channel,) = channels_of(AlarmRules(mail=("oncall@example.org",)), smtp_mailer(rules), "f00", "agent")
        for _ in range(2):
            channel.tell(BEGUN)
    first, second = server.to("oncall@example.org")
    assert first.message["Subject"] == "[LCC] alarm: removals are held"
    assert first.message["Message-ID"] == second.message["Message-ID"] == "<alarm-held-1@f00.lcc.invalid>"
    assert "confirm-removals" in first.text


def test_mail_that_is_off_is_said_at_the_start():
    with pytest.raises(ConfigurationError, match="set LCC_MAIL_FROM"):
        channels_of(AlarmRules(mail=("oncall@example.org",)), None, "f00", "agent")


def test_a_file_of_webhooks(tmp_path):
    path = tmp_path / "hooks"
    path.write_text("# on call\n\njson http://example.org/a\nslack  https://example.org/T/B/secret\n")
    found = read_webhooks(str(path), "agent")
    assert [(one.kind, one.url) for one in found] == [
        ("json", "http://example.org/a"), ("slack", "https://example.org/T/B/secret"),
    ]  # fmt: skip
    assert "secret" not in found[1].name
    assert set(KINDS) == {"json", "slack", "matrix", "ntfy"}


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("https://example.org/secret", "line 1: it begins with its kind: json, slack, matrix, ntfy"),
        ("json ftp://example.org/secret", "line 1: after the kind comes the URL"),
        ("json", "line 1: after the kind comes the URL"),
        ("json http://example.org/secret\n" * 21, "more than 20 webhooks"),
    ],
)
def test_a_file_that_is_wrong_is_told_by_its_line_without_what_may_be_secret(tmp_path, line, said):
    path = tmp_path / "hooks"
    path.write_text(line)
    with pytest.raises(ConfigurationError, match=said) as refused:
        read_webhooks(str(path), "agent")
    assert "secret" not in str(refused.value)


def test_a_file_that_is_not_there(tmp_path):
    with pytest.raises(ConfigurationError, match="No such file"):
        read_webhooks(str(tmp_path / "none"), "agent")
