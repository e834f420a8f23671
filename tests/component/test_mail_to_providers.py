"""Mail to providers over a real mail server: who is told what, once, whatever the server does."""

import itertools
import threading
from dataclasses import replace
from datetime import UTC, datetime, time
from functools import partial

import pytest

from lcc_scrapy.apps.mail import post as posts
from lcc_scrapy.apps.mail.letters import Terms
from lcc_scrapy.apps.mail.post import Post, Sender
from lcc_scrapy.apps.mail.rules import DAY, MARGIN
from lcc_scrapy.apps.mail.store import SUBSCRIBERS, rows_in
from lcc_scrapy.db.records import LastOutcome
from lcc_scrapy.domain.entries import urlkey
from lcc_scrapy.domain.mail_rules import MailRules
from lcc_scrapy.domain.providers import Provider, State
from lcc_scrapy.mail.sending import smtp_mailer
from lcc_scrapy.mail.unsubscribing import Unsubscribing
from tests.mail_server import mail_server
from tests.ports import free_port
from tests.sqlite_store import sqlite_store

NOON = int(datetime(2027, 3, 1, 12, tzinfo=UTC).timestamp())
MORNING = int(datetime(2027, 3, 2, 6, tzinfo=UTC).timestamp())
SECRET = "user:secret"


@pytest.fixture
def server():
    with mail_server() as made:
        yield made


@pytest.fixture
def store():
    return sqlite_store()


class House:
    """An LCC whose clock a test moves, with a post of a worker."""

    def __init__(self, store, port):
        self.store, self.port, self.now = store, port, NOON

    def post(self, owner="1/0", *, urgent=False, timeout=60.0, url="https://push.example.org"):
        mailer = smtp_mailer(MailRules(sender="lcc@example.org", port=self.port, timeout=timeout))
        terms = Terms(time(6), UTC, "ops@example.org", urgent)
        link = partial(Unsubscribing(self.store, url).link, SUBSCRIBERS)
        sender = Sender(mailer, "lcc-1", "example.org", timeout)
        return Post(self.store, sender, terms, owner=owner, link=link, now=lambda: self.now)

    def run(self, at=None, **options):
        self.now = at or self.now
        return self.post(**options).run()

    def add(self, pid, **values):
        provider = Provider(pid, "x", **{"contact": f"p{pid}@example.org", **values})
        with self.store.begin() as tx:
            tx.insert_provider(provider, [f"http://www{pid}.example.org/"])

    def change(self, pid, **values):
        with self.store.begin() as tx:
            tx.update_provider(pid, values)

    def fail(self, pid, name, at, code=404):
        url = f"http://www{pid}.example.org/{name}"
        row = LastOutcome(urlkey(pid, url, "x/y"), pid, code, "", at, "failed", url, "x/y", url)
        with self.store.begin() as tx:
            tx.put_outcomes([row])

    def state(self, pid):
        with self.store.read() as tx:
            return rows_in(tx).state(pid)


@pytest.fixture
def house(store, server):
    return House(store, server.port)


def test_a_digest_comes_at_its_hour_once_and_nothing_comes_when_there_is_nothing(house, server):
    house.add(7)
    house.add(8)
    house.run()
    house.fail(7, "a", NOON + 5)
    house.run(MORNING - 60)
    assert server.mails == []
    assert house.run(MORNING + 60).sent == 1
    assert house.run(MORNING + 120).sent == 0
    assert house.run(MORNING + DAY + 60).sent == 0
    (taken,) = server.mails
    assert taken.to == ["p7@example.org"]
    assert "1 URL of provider 7 could not be read" in taken.text
    assert "1 x 404 Not Found" in taken.text
    assert "404  http://www7.example.org/a" in taken.text


def test_an_error_near_the_hour_is_told_the_next_day_and_never_twice(house, server):
    house.add(7)
    house.run()
    house.fail(7, "early", MORNING - MARGIN)
    house.fail(7, "late", MORNING - MARGIN + 1)
    house.run(MORNING)
    house.run(MORNING + DAY)
    first, second = (one.text for one in server.mails)
    assert ("/early" in first, "/late" in first) == (True, False)
    assert ("/early" in second, "/late" in second) == (False, True)


def test_the_hour_is_that_of_the_provider(house, server):
    house.add(7, timezone="Asia/Tokyo")
    house.run()
    house.fail(7, "a", NOON + 5)
    tokyo = MORNING - 9 * 3600
    house.run(tokyo - 1)
    assert server.mails == []
    house.run(tokyo)
    assert len(server.mails) == 1


def test_each_occurrence_is_noted_once_and_one_of_a_kind_a_day(house, server):
    house.add(7, fullsetwanted="cache crash", heldremovals=30)
    house.run()
    house.run(NOON + 60)
    assert ["a full set is wanted" in one.message["Subject"] for one in server.mails] == [True, False]
    house.change(7, fullsetwanted="", heldremovals=0)
    house.run(NOON + 120)
    house.change(7, fullsetwanted="cache crash", heldremovals=40)
    house.run(NOON + 180)
    assert len(server.mails) == 2
    house.run(NOON + DAY)
    assert len(server.mails) == 4
    assert "40 documents" in server.mails[-1].text
    house.run(NOON + 3 * DAY)
    assert len(server.mails) == 4


@pytest.mark.parametrize(
    "values",
    [
        {"contact": "the webmaster"},
        {"contact": "a@b.org\nc@d.org"},
        {"contact": ""},
        {"state": State.DISABLED},
    ],
)
def test_who_has_no_address_or_no_access_gets_nothing(house, server, values):
    house.add(7, fullsetwanted="old files", **values)
    assert house.run().sent == 0
    assert server.mails == []


def test_unsubscribed_is_unsubscribed_and_back_again(house, server):
    house.add(7, fullsetwanted="old files")
    house.run()
    header = server.mails[0].message
    link = header["List-Unsubscribe"].strip("<>")
    assert header["List-Unsubscribe-Post"] == "List-Unsubscribe=One-Click"
    assert link in server.mails[0].text
    service = Unsubscribing(house.store, "", [SUBSCRIBERS])
    assert service.end(link.partition("?t=")[2])
    house.change(7, heldremovals=30)
    assert house.run(NOON + 60).sent == 0
    with house.store.begin() as tx:
        rows_in(tx).want(7, wanted=True)
    assert house.run(NOON + 120).sent == 1


def test_without_a_public_url_the_mail_says_whom_to_ask(house, server):
    house.add(7, fullsetwanted="old files")
    house.run(url="")
    (taken,) = server.mails
    assert taken.message["List-Unsubscribe"] is None
    assert "ask the operator of the cache" in taken.text
    assert "ops@example.org" in taken.text


def test_a_token_is_good_for_its_provider_only(store):
    service = Unsubscribing(store, "https://x.example", [SUBSCRIBERS])
    token = service.link(SUBSCRIBERS, 7).partition("?t=")[2]
    assert service.find(token) == (SUBSCRIBERS, 7)
    assert Unsubscribing(store, "", [SUBSCRIBERS]).find(token) == (SUBSCRIBERS, 7)
    proof = token.partition("-")[2]
    for forged in (
        f"8-{proof}",
        f"07-{proof}",
        f"7-{proof[:-1]}",
        f"7-{'0' * 40}",
        "",
        "7",
        f"{token}\n",
        "7-" + "é" * 40,
    ):
        assert service.find(forged) is None, forged
    assert Unsubscribing(sqlite_store(), "", [SUBSCRIBERS]).find(token) is None


def test_a_refused_address_gets_no_more_until_it_changes(house, server):
    house.add(7, fullsetwanted="old files")
    server.rcpt = lambda to: "550 no such user" if to == "p7@example.org" else None
    assert house.run().refused == 1
    assert house.run(NOON + 3600).refused == 0
    house.change(7, contact="new@example.org")
    assert house.run(NOON + 7200).sent == 1
    assert server.mails[0].to == ["new@example.org"]


def test_not_now_waits_longer_each_time_while_others_get_theirs(house, server):
    for pid in (7, 8):
        house.add(pid, fullsetwanted="old files")
    server.rcpt = lambda to: "451 greylisted" if to == "p7@example.org" else None
    tries = []
    for minute in range(0, 5 * 1440, 10):
        report = house.run(NOON + 60 * minute)
        tries += [minute] * report.delayed
    assert len(server.to("p8@example.org")) == 1
    waits = [after - before for before, after in itertools.pairwise(tries)]
    assert waits[:6] == [10, 20, 40, 80, 160, 320]
    assert set(waits[6:]) == {360}
    server.rcpt = lambda _: None
    house.run(NOON + 6 * DAY)
    assert len(server.to("p7@example.org")) == 1


def test_a_server_that_is_away_is_left_alone_after_some_tries(house, server):
    for pid in range(1, 21):
        house.add(pid, fullsetwanted="old files")
    port, house.port = house.port, free_port()
    report = house.run()
    assert (report.away, report.delayed) == (True, 3)
    house.port = port
    assert house.run(NOON + 3600).sent == 20


def test_a_server_that_hangs_on_one_mail_delays_the_others_by_its_deadline_only(house, server):
    for pid in (1, 2, 3):
        house.add(pid, fullsetwanted="old files")

    async def hang(to):
        if to == "p1@example.org":
            import asyncio

            await asyncio.sleep(3600)

    server.before_answer = hang
    report = house.run(timeout=0.5)
    assert (report.sent, report.delayed) == (2, 1)
    assert [one.to for one in server.mails[1:]] == [["p2@example.org"], ["p3@example.org"]]


class Killed(BaseException):
    """Ends a run as a kill would: nothing is noted behind it."""


def test_a_kill_between_sending_and_noting_repeats_that_one_mail_under_the_same_id(
    house, server, monkeypatch
):
    for pid in (1, 2, 3):
        house.add(pid)
    house.run()
    for pid in (1, 2, 3):
        house.fail(pid, "a", NOON + 5)
    house.now = MORNING
    note, noted = Post._note, []

    def killed(self, state):
        noted.append(state.pid)
        if len(noted) == 2:
            raise Killed
        note(self, state)

    monkeypatch.setattr(Post, "_note", killed)
    with pytest.raises(Killed):
        house.run()
    monkeypatch.setattr(Post, "_note", note)
    house.fail(2, "later", MORNING + 5)
    house.run(MORNING + 700)
    assert [one.to[0][1] for one in server.mails] == ["1", "2", "2", "3"]
    twice = server.to("p2@example.org")
    assert twice[0].message["Message-ID"] == twice[1].message["Message-ID"]
    assert twice[0].text == twice[1].text
    assert len({one.message["Message-ID"] for one in server.mails}) == 3


def test_only_one_of_several_workers_writes(house, server):
    for pid in (1, 2):
        house.add(pid, fullsetwanted="old files")
    began, go_on = threading.Event(), threading.Event()

    async def hold(_to):
        import asyncio

        began.set()
        await asyncio.get_running_loop().run_in_executor(None, go_on.wait, 300)

    server.before_answer = hold
    first = threading.Thread(target=house.post("1/0").run)
    first.start()
    try:
        assert began.wait(300)
        other = house.post("1/1").run()
    finally:
        go_on.set()
        first.join(300)
    assert (other.busy, other.sent) == (True, 0)
    assert len(server.mails) == 2
    assert house.post("1/1").run() == posts.Report()


def test_what_would_be_sent_is_shown_and_nothing_changes(house, server):
    house.add(7)
    house.fail(7, "a", NOON - MARGIN)
    shown = list(house.post(urgent=True).preview())
    assert [(one.pid, letter.kind) for one, letter in shown] == [(7, "digest")]
    assert (server.mails, house.state(7)) == ([], None)
    assert house.run(urgent=True).sent == 1
    assert list(house.post(urgent=True).preview()) == []


def test_somebody_who_unsubscribes_while_a_mail_goes_out_stays_unsubscribed(house, server):
    house.add(7, fullsetwanted="old files")

    async def unsubscribe(_to):
        with house.store.begin() as tx:
            rows_in(tx).want(7, wanted=False)

    server.before_answer = unsubscribe
    house.run()
    assert house.state(7) == replace(house.state(7), off=True, wanted="old files")
