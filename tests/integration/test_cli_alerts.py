"""``lcc recipient`` and ``lcc alerts`` over a real mail server and real webhooks; deliveries that are killed."""

import json
import os
import signal
import subprocess
import sys
import time

import pytest
from standardwebhooks.webhooks import Webhook

from lcc_scrapy.db.sql.store import SqlStore
from lcc_scrapy.domain.alerts import alerts_of
from tests.alert_house import SCHEDULE, aci, hook_server
from tests.harness import Lcc, wait_for
from tests.mail_server import mail_server

pytestmark = pytest.mark.slow
KILLS = int(os.environ.get("LCC_KILLS", "3"))


@pytest.fixture
def house(tmp_path):
    with mail_server() as mails, hook_server() as hooks:
        settings = {
            "LCC_MAIL_FROM": "LCC <lcc@example.org>", "LCC_MAIL_PORT": str(mails.port), "LCC_POLL": "0.1",
            "LCC_ALERT_PRIVATE": "yes",
        }  # fmt: skip
        made = Lcc(tmp_path, "", settings)
        made.lcc("init")
        made.mails, made.hooks = mails, hooks
        try:
            yield made
        finally:
            made.stop()


def found(lcc, *acis):
    """Do as the engine does: put ACIs with their alerts."""
    now = int(time.time() * 1000)
    store = SqlStore(lcc.shared_url)
    with store.begin() as tx:
        recipients = tx.recipients_of({one.owner for one in acis})
        tx.put_acis(acis)
        tx.take("aci", len(acis))
        tx.put_alerts([alert for one in acis for alert in alerts_of(one, recipients, now, SCHEDULE, now)])
    store.close()


def test_recipients_are_added_listed_changed_and_removed(house):
    assert house.lcc("recipient", "add", "alice", "--mail", "a@Example.org", "--digest").stdout == ""
    added = house.lcc("recipient", "add", "alice", "--webhook", f"{house.hooks.url}/x")
    secret = added.stdout.strip()
    assert secret.startswith("whsec_")
    listed = house.lcc("recipient", "list", "alice", "--json").stdout
    assert [(row["address"], row["format"], row["digest"]) for row in json.loads(listed)] == [
        ("a@example.org", "html", True), (f"{house.hooks.url}/x", "json", False),
    ]  # fmt: skip
    assert secret not in listed
    house.lcc("recipient", "test", "1")
    house.lcc("recipient", "test", "2")
    assert [one.to for one in house.mails.mails] == [["a@example.org"]]
    ((_, headers, body),) = house.hooks.calls
    assert Webhook(secret).verify(body, headers)["type"] == "test"
    house.lcc("recipient", "set", "1", "--off", "--format", "text", "--no-digest")
    assert "\ttext\tno\toff" in house.lcc("recipient", "list").stdout
    fresh = house.lcc("recipient", "set", "2", "--new-secret").stdout.strip()
    assert fresh not in {"", secret}
    house.lcc("recipient", "remove", "1")
    assert [row["id"] for row in json.loads(house.lcc("recipient", "list", "--json").stdout)] == [2]


def test_what_cannot_be_is_said_in_a_line(house):
    for words, said in (
        (("recipient", "add", "alice"), "give either --mail or --webhook"),
        (("recipient", "add", "a b", "--mail", "a@example.org"), "owner"),
        (
            ("recipient", "add", "alice", "--mail", "a@example.org\nBcc: x@example.org"),
            "expected one address",
        ),
        (("recipient", "add", "alice", "--webhook", "ftp://example.org/"), "address"),
        (
            ("-s", "LCC_ALERT_PRIVATE=no", "recipient", "add", "a", "--webhook", "http://x.org/"),
            "expected https://",
        ),
        (("recipient", "set", "9", "--off"), "there is no recipient 9"),
        (("recipient", "set", "9"), "say what is to change"),
        (("recipient", "remove", "9"), "there is no recipient 9"),
        (("-s", "LCC_ALERT_DEADLINES=1h", "alerts", "status"), "expected three durations"),
        (("-s", "LCC_ALERT_DIGEST_HOUR=", "alerts", "status"), "expected an hour like"),
        (("alerts", "follow", "--since", "x", "--once"), "not a cursor"),
    ):
        done = house.lcc(*words, check=False)
        assert done.returncode != 0, words
        assert said in done.stderr, (words, done.stderr)
        assert len(done.stderr.splitlines()) <= 4, done.stderr
    house.lcc("recipient", "add", "alice", "--mail", "a@example.org")
    house.mails.rcpt = lambda _: "550 no such user"
    assert "550 no such user" in house.lcc("recipient", "test", "1", check=False).stderr


def test_a_newcomer_is_told_what_is_missing(house):
    assert "no recipients yet" in house.lcc("recipient", "list").stderr
    added = house.lcc("-s", "LCC_MAIL_FROM=", "recipient", "add", "alice", "--mail", "a@example.org")
    assert "mail is off: set LCC_MAIL_FROM" in added.stderr
    assert "mail is off" not in house.lcc("recipient", "add", "alice", "--mail", "b@example.org").stderr


def test_alerts_are_delivered_listed_and_counted(house):
    house.lcc("recipient", "add", "alice", "--mail", "a@example.org")
    house.lcc("recipient", "add", "alice", "--webhook", f"{house.hooks.url}/bad")
    house.hooks.answer = lambda _: (500, {}, b"")
    found(house, aci(1), aci(2), aci(3, "bob"))
    done = house.lcc("alerts", "deliver", "--once", check=False)
    assert (done.returncode, done.stdout) == (1, "2 sent, 1 delayed, 0 refused\n")
    assert "it answers 500" in done.stderr
    assert len(house.mails.to("a@example.org")) == 2
    rows = json.loads(house.lcc("alerts", "list", "alice", "--json").stdout)
    assert [(row["aci"], row["recipient"], row["state"]) for row in rows] == [
        (2, 1, "sent"), (2, 2, "waiting"), (1, 1, "sent"), (1, 2, "waiting"),
    ]  # fmt: skip
    assert json.loads(house.lcc("alerts", "list", "--state", "waiting", "--json").stdout)[0]["recipient"] == 2
    counted = json.loads(house.lcc("alerts", "status", "--json").stdout)
    assert (counted["waiting"], counted["overdue"], counted["given_up"]) == (2, 0, 0)
    assert [(one["kept"], one["late"]) for one in counted["levels"]] == [(0, 0), (0, 0), (2, 0)]
    assert "100.0%" in house.lcc("alerts", "status").stdout


def test_a_stream_goes_on_behind_its_cursor_and_belongs_to_one_owner(house, tmp_path):
    found(house, aci(1), aci(2, "bob"), aci(3))
    place = ["--cursor-file", str(tmp_path / "place")]
    first = house.lcc("alerts", "follow", "alice", "--limit", "1", *place).stdout
    assert [json.loads(line)["number"] for line in first.splitlines()] == [1]
    failing = ["--exec", "cat > /dev/null; test $FEED_TRY -gt 1 && touch done; exit 1"]
    follower = subprocess.Popen(
        [sys.executable, "-m", "lcc_scrapy.cli.main", "alerts", "follow", "alice", *place, *failing],
        env=house.environment, cwd=tmp_path, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    wait_for((tmp_path / "done").exists)
    follower.send_signal(signal.SIGTERM)
    assert "trying 1 ACIs again later" in follower.communicate(timeout=300)[1]
    house.lcc("alerts", "follow", "alice", "--once", *place, "--exec", f"cat > {tmp_path / 'got'}")
    assert [json.loads(line)["number"] for line in (tmp_path / "got").read_text().splitlines()] == [3]
    assert house.lcc("alerts", "follow", "alice", "--once", *place).stdout == ""
    wrong = house.lcc("alerts", "follow", "bob", "--once", *place, check=False)
    assert (wrong.returncode, "another selection" in wrong.stderr) == (2, True)
    assert house.lcc("follow", "--once", *place, check=False).returncode != 0, (
        "a place of ACIs is none of the feed"
    )
    every = house.lcc("alerts", "follow", "--once").stdout
    assert [json.loads(line)["number"] for line in every.splitlines()] == [1, 2, 3]


def test_a_kill_repeats_the_message_in_flight_and_no_other_and_loses_none(house, tmp_path):
    """The hook has taken a call and has not answered yet: there the process is killed."""
    house.lcc("recipient", "add", "alice", "--webhook", f"{house.hooks.url}/x")
    numbers = range(1, KILLS + 4)
    found(house, *(aci(n, urgency=1) for n in numbers))
    quick = {**house.environment, "LCC_ALERT_TIMEOUT": "2s"}
    command = [sys.executable, "-m", "lcc_scrapy.cli.main", "alerts", "deliver"]
    held = []

    def hold(_):
        name = house.hooks.calls[-1][1]["webhook-id"]
        if len(held) < KILLS and name not in held:
            held.append(name)
            return None
        return 200, {}, b""

    house.hooks.answer = hold
    for kill in range(1, KILLS + 1):
        with subprocess.Popen(command, env=quick, cwd=tmp_path, stderr=subprocess.DEVNULL) as process:
            wait_for(lambda kill=kill: len(held) == kill)
            process.kill()
    with subprocess.Popen(command, env=quick, cwd=tmp_path, stdout=subprocess.PIPE, text=True) as process:
        wait_for(lambda: json.loads(house.lcc("alerts", "status", "--json").stdout)["waiting"] == 0)
        process.send_signal(signal.SIGTERM)
        assert process.wait(300) == 0
    names = [headers["webhook-id"] for _, headers, _ in house.hooks.calls]
    assert len(set(names)) == len(numbers)
    assert {name for name in names if names.count(name) > 1} == set(held)
    assert max(map(names.count, names)) == 2
