"""``lcc mail``, and the mail of a real crawl, over a real mail server."""

import asyncio
import os
import re
import signal
import time

import pytest

from lcc_scrapy.apps.mail.store import rows_in
from lcc_scrapy.db.records import LastOutcome
from lcc_scrapy.db.sql.store import SqlStore
from lcc_scrapy.domain.entries import urlkey
from tests.harness import Lcc, wait_for
from tests.mail_server import mail_server

KILLS = int(os.environ.get("LCC_KILLS", "3"))


@pytest.fixture
def house(tmp_path):
    with mail_server() as server:
        made = Lcc(
            tmp_path, "", {"LCC_MAIL_FROM": "LCC <lcc@example.org>", "LCC_MAIL_PORT": str(server.port)}
        )
        made.lcc("init")
        made.server = server
        try:
            yield made
        finally:
            made.stop()


def errors_of(lcc, pid, count=1):
    store = SqlStore(lcc.shared_url)
    urls = [f"http://www.example.org/{number}" for number in range(count)]
    at = int(time.time()) - 700
    with store.begin() as tx:
        tx.put_outcomes(
            [LastOutcome(urlkey(pid, u, "x/y"), pid, 404, "", at, "failed", u, "x/y", u) for u in urls]
        )
    store.close()


def test_mail_is_tried_shown_and_sent(house):
    house.lcc("mail", "test", "you@example.org")
    assert [one.to for one in house.server.mails] == [["you@example.org"]]
    house.add_provider(7, "http://www.example.org/", "--contact", "p7@example.org")
    errors_of(house, 7, 3)
    shown = house.lcc("mail", "send", "--dry-run").stdout
    assert "To: p7@example.org" in shown
    assert "3 x 404 Not Found" in shown
    assert len(house.server.mails) == 1
    assert house.lcc("mail", "send", "--provider", "7").stdout == "1 sent, 0 delayed, 0 refused\n"
    assert house.lcc("mail", "send").stdout == "0 sent, 0 delayed, 0 refused\n"
    assert since_any_time(house.server.to("p7@example.org")[0].text) in since_any_time(shown)


def since_any_time(text):
    """Return a mail without the minute from which it counts: a minute may end between two commands."""
    return re.sub(r"since [0-9: -]+ UTC", "since then", text)


def test_mail_of_a_provider_is_switched_off_and_on(house):
    house.add_provider(7, "http://www.example.org/", "--contact", "p7@example.org")
    assert "\nmail" in house.lcc("provider", "show", "7").stdout
    house.lcc("provider", "set", "7", "--mail", "off")
    errors_of(house, 7)
    assert house.lcc("mail", "send").stdout.startswith("0 sent")
    house.lcc("provider", "set", "7", "--mail", "on")
    assert house.lcc("mail", "send").stdout.startswith("1 sent")


def test_what_cannot_be_is_said_in_a_line(house):
    for words, said in (
        (("mail", "test", "you"), "expected one address"),
        (("-s", "LCC_MAIL_FROM=", "mail", "test", "you@example.org"), "mail is off: set LCC_MAIL_FROM"),
        (("mail", "send", "--provider", "9"), "9"),
        (("-s", "LCC_MAIL_FROM=x", "status"), "LCC_MAIL_FROM"),
        (("-s", "LCC_MAIL_DIGEST=25:00", "mail", "send"), "expected an hour like 06:00"),
    ):
        done = house.lcc(*words, check=False)
        assert done.returncode != 0, words
        assert said in done.stderr, words
        assert len(done.stderr.splitlines()) <= 4, done.stderr
    house.server.rcpt = lambda _: "550 no such user"
    assert "550 no such user" in house.lcc("mail", "test", "you@example.org", check=False).stderr


@pytest.mark.slow
def test_a_kill_repeats_the_mail_in_flight_and_no_other_and_loses_none(house):
    """The server has taken a mail and has not said so yet: there the worker is killed."""
    addresses = [f"p{pid}@example.org" for pid in range(1, KILLS + 3)]
    for pid, to in enumerate(addresses, 1):
        house.add_provider(pid, "http://www.example.org/", "--contact", to)
        house.lcc("provider", "want-full", str(pid), "--reason", "cache crash")
    held, released = [], set()

    async def hold(to):
        if to in addresses[:KILLS] and to not in released:
            held.append(to)
            while to not in released:
                await asyncio.sleep(0.01)

    house.server.before_answer = hold
    for to in addresses[:KILLS]:
        house.start()
        wait_for(lambda to=to: to in held, 90, to)
        house.stop(signal.SIGKILL)
        released.add(to)
    house.start()
    wait_for(lambda: all_noted(house, len(addresses)), 90, "all mail")
    assert house.stop() == 0
    for number, to in enumerate(addresses):
        ids = [one.message["Message-ID"] for one in house.server.to(to)]
        assert len(ids) == (2 if number < KILLS else 1), to
        assert len(set(ids)) == 1
    assert "mail to provider 1: full set wanted" in house.log_text()


def all_noted(house, count):
    store = SqlStore(house.shared_url)
    try:
        with store.read() as tx:
            states = [rows_in(tx).state(pid) for pid in range(1, count + 1)]
    finally:
        store.close()
    return all(state is not None and state.wanted for state in states)
