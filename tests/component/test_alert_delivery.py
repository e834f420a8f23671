"""Alerts are told by mail and webhooks: once each, at their time, whatever others do."""

import asyncio
import json
import socket
from base64 import b64encode
from dataclasses import replace

import pytest
from standardwebhooks.webhooks import Webhook, WebhookVerificationError

from lcc_scrapy.annotation import delivery as delivery_module
from lcc_scrapy.annotation.couriers import TellLater, TellNever
from lcc_scrapy.domain.acis import Channel
from lcc_scrapy.domain.errors import StoreUnavailable
from tests.alert_house import DAY, NOW, AlertHouse, aci, hook_server, run
from tests.mail_server import mail_server


@pytest.fixture
def hooks():
    with hook_server() as server:
        yield server


@pytest.fixture
def mails():
    with mail_server() as server:
        yield server


# --- mail ----------------------------------------------------------------------------------------


def test_a_page_is_told_by_mail_once(mails):
    house = AlertHouse(mail_port=mails.port)
    house.recipient()
    house.found(aci(1))
    assert house.deliver().sent == 1
    assert house.deliver().sent == 0
    (mail,) = mails.to("a@example.org")
    assert mail.message["Subject"] == "Page 1"
    assert mail.message["Message-ID"] == "<alert-1-1.an-lcc@example.org>"
    html = mail.message.get_body(("html",)).get_content()
    assert "all about <mark>lamps</mark>" in html
    assert '<a href="http://www.example.org/1"' in html
    assert "all about *lamps*" in mail.message.get_body(("plain",)).get_content()
    assert house.states() == {(1, 1): "sent"}
    assert house.counts() == {"kept 2": 1}


@pytest.mark.parametrize(("form", "kind"), [("xml", "application/xml"), ("json", "application/json")])
def test_mail_for_programs_carries_a_file(mails, form, kind):
    house = AlertHouse(mail_port=mails.port)
    house.recipient(format=form)
    house.found(aci(1))
    house.deliver()
    (attached,) = mails.mails[0].message.iter_attachments()
    assert (attached.get_content_type(), attached.get_filename()) == (kind, f"alert.{form}")
    assert b"http://www.example.org/1" in attached.get_content()


def test_html_and_line_breaks_of_a_site_steer_nothing(mails):
    house = AlertHouse(mail_port=mails.port)
    house.recipient()
    title = "<script>alert(1)</script>\r\nBcc: victim@example.org\r\n\r\nboo \u202e"
    extract = json.dumps({"extracts": [{"text": "<img src=x onerror=y> lamps", "marks": [[22, 27]]}]})
    house.found(aci(1, title=title, uri="javascript:alert(1)", detail=extract))
    house.deliver()
    (mail,) = mails.mails
    assert mail.to == ["a@example.org"]
    assert mail.message["Bcc"] is None
    html = mail.message.get_body(("html",)).get_content()
    for text in ("<script", "<img", 'href="javascript'):
        assert text not in html
    assert "&lt;img src=x onerror=y&gt; <mark>lamps</mark>" in html


def test_a_digest_is_one_mail_at_its_hour(mails):
    house = AlertHouse(mail_port=mails.port)
    house.recipient(digest=True)
    for number in (1, 2, 3):
        house.found(aci(number))
    assert house.deliver().sent == 0
    house.now = NOW + 3600
    assert house.deliver().sent == 1
    (mail,) = mails.mails
    assert mail.message["Subject"] == "3 pages: Page 1"
    assert all(f"http://www.example.org/{n}" in mail.data.decode() for n in (1, 2, 3))
    assert house.counts() == {"kept 0": 3}


def test_an_address_that_is_refused_gets_nothing_more_and_harms_nobody(mails):
    mails.rcpt = lambda address: "550 no such user" if address.startswith("a@") else None
    house = AlertHouse(mail_port=mails.port)
    house.recipient()
    house.recipient(address="b@example.org")
    house.found(aci(1), aci(2))
    report = house.deliver()
    assert (report.sent, report.refused) == (2, 1)
    assert house.states() == {(1, 1): "given up", (1, 2): "sent", (2, 1): "given up", (2, 2): "sent"}
    assert house.counts() == {"kept 2": 2, "given up": 2}
    with house.store.read() as tx:
        assert "550 no such user" in tx.recipient(1).refused
    house.found(aci(3))
    assert [key for key in house.states() if key[0] == 3] == [(3, 2)]


def test_mail_servers_that_are_away_are_not_asked_by_everybody(mails):
    asked = []
    mails.mail = lambda address: asked.append(address) or "421 later"
    house = AlertHouse(mail_port=mails.port)
    for _ in range(20):
        house.recipient()
    house.found(aci(1))
    report = house.deliver()
    assert report.away
    assert len(asked) <= 8, "no more than were under way"
    mails.mail = lambda _: None
    house.now += 40
    assert house.deliver().sent == 20


# --- webhooks ------------------------------------------------------------------------------------


def test_a_hook_is_called_with_a_signature_that_others_verify(hooks):
    house = AlertHouse()
    hook = house.hook(f"{hooks.url}/x?y=1")
    house.now = __import__("time").time()  # the library wants it to be recent
    house.found(aci(1))
    assert house.deliver().sent == 1
    ((path, headers, body),) = hooks.calls
    assert path == "/x?y=1"
    assert headers["Content-Type"] == "application/json"
    assert headers["webhook-id"] == "alert-1-1.an-lcc"
    assert headers["Idempotency-Key"] == '"alert-1-1.an-lcc"'
    said = Webhook(hook.secret).verify(body, headers)
    assert said["type"] == "alert"
    assert [one["uri"] for one in said["data"]["acis"]] == ["http://www.example.org/1"]
    for forged in (body + b" ", body.replace(b"lamps", b"camps")):
        with pytest.raises(WebhookVerificationError):
            Webhook(hook.secret).verify(forged, headers)
    with pytest.raises(WebhookVerificationError):
        Webhook("whsec_" + b64encode(b"x" * 24).decode()).verify(body, headers)


@pytest.mark.parametrize(
    ("form", "kind"),
    [("html", "text/html; charset=utf-8"), ("text", "text/plain; charset=utf-8"), ("xml", "application/xml")],
)
def test_a_hook_gets_the_format_that_it_wants(hooks, form, kind):
    house = AlertHouse()
    house.hook(hooks.url, format=form)
    house.found(aci(1, title="Lämps"))
    house.deliver()
    ((_, headers, body),) = hooks.calls
    assert headers["Content-Type"] == kind
    assert "Lämps" in body.decode()


def test_a_repetition_is_the_same_call_but_for_its_time(hooks):
    house = AlertHouse()
    house.hook(hooks.url)
    house.found(aci(1))
    hooks.answer = lambda _: (500, {}, b"")
    house.deliver()
    hooks.answer = lambda _: (200, {}, b"ok")
    house.now += 30
    house.deliver()
    one, two = hooks.calls
    assert (one[1]["webhook-id"], one[2]) == (two[1]["webhook-id"], two[2])
    assert one[1]["webhook-timestamp"] != two[1]["webhook-timestamp"]
    assert one[1]["webhook-signature"] != two[1]["webhook-signature"]


def test_private_addresses_are_refused_when_they_are_connected_to(hooks):
    house = AlertHouse(private=False)
    for host in ("127.0.0.1", "localhost", "[::ffff:127.0.0.1]"):
        house.hook(hooks.url.replace("127.0.0.1", host))
    house.found(aci(1))
    assert house.deliver().delayed == 3
    assert hooks.calls == []


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_redirects_are_not_followed(hooks, status, caplog):
    house = AlertHouse()
    house.hook(f"{hooks.url}/a")
    house.found(aci(1))
    hooks.answer = lambda path: (status, {"Location": f"{hooks.url}/private"}, b"")
    assert house.deliver().delayed == 1
    assert [path for path, *_ in hooks.calls] == ["/a"]
    assert "redirects are not followed" in caplog.text


def test_a_hook_that_hangs_holds_up_nobody_else(hooks):
    """There are four places: four hooks hang, and forty others are told behind them."""
    house = AlertHouse(seconds=1.0)
    hanging = [house.hook(f"{hooks.url}/hang") for _ in range(4)]
    for _ in range(40):
        house.hook(f"{hooks.url}/good")
    hooks.answer = lambda path: None if path == "/hang" else (200, {}, b"")
    house.found(aci(1), aci(2))
    report = house.deliver()
    assert (report.sent, report.delayed) == (80, 4)
    assert len(hooks.at("/hang")) == 4, "one call each; then it waits"
    waits = {key[1] for key, state in house.states().items() if state == "waiting"}
    assert waits == {one.recipientid for one in hanging}


def test_a_hook_that_answers_500_for_a_week_is_called_less_and_less_and_then_given_up(hooks):
    house = AlertHouse()
    bad, good = house.hook(f"{hooks.url}/bad"), house.hook(f"{hooks.url}/good")
    hooks.answer = lambda path: (500, {}, b"no") if path == "/bad" else (200, {}, b"")
    house.found(*(aci(n) for n in range(1, 6)))
    for _ in range(4 * 8):
        house.deliver()
        house.now += 6 * 3600
    assert len(hooks.at("/good")) == 5
    assert len(hooks.at("/bad")) <= 4 * 7 + 2, "one call each time, whatever waits for it"
    states = house.states()
    assert {states[n, good.recipientid] for n in range(1, 6)} == {"sent"}
    assert {states[n, bad.recipientid] for n in range(1, 6)} == {"given up"}
    assert house.counts() == {"kept 2": 5, "given up": 5}
    hooks.answer = lambda _: (200, {}, b"")
    house.found(aci(9))
    house.deliver()
    assert house.states()[9, bad.recipientid] == "sent", "it is asked again when something new is found"


def test_one_alert_that_a_hook_does_not_take_holds_up_no_other_of_it(hooks):
    house = AlertHouse()
    house.hook(hooks.url)
    house.found(aci(1), aci(2), aci(3))
    hooks.answer = lambda _: (500, {}, b"") if b'Page 1"' in hooks.calls[-1][2] else (200, {}, b"")
    house.deliver()
    assert set(house.states().values()) == {"waiting"}, "the first failure makes the others wait"
    house.now += 15
    house.deliver()
    assert house.states() == {(1, 1): "waiting", (2, 1): "sent", (3, 1): "sent"}


@pytest.mark.parametrize("status", [400, 401, 404, 429, 503])
def test_a_hook_that_may_be_mended_is_tried_again_when_it_says_so(hooks, status):
    house = AlertHouse()
    house.hook(hooks.url)
    house.found(aci(1))
    hooks.answer = lambda _: (status, {"Retry-After": "600"}, b"")
    house.deliver()
    hooks.answer = lambda _: (200, {}, b"")
    house.now += 599
    assert house.deliver().sent == 0
    house.now += 1
    assert house.deliver().sent == 1
    assert house.counts() == {"late 2": 1}


def test_a_hook_that_is_gone_is_called_no_more(hooks):
    house = AlertHouse()
    house.hook(hooks.url)
    hooks.answer = lambda _: (410, {}, b"")
    house.found(aci(1), aci(2))
    assert house.deliver().refused == 1
    assert set(house.states().values()) == {"given up"}
    assert len(hooks.calls) == 1


def test_an_answer_without_end_is_an_answer(hooks):
    house = AlertHouse()
    house.hook(hooks.url)
    hooks.answer = lambda _: (200, {}, b"x" * 5_000_000)
    house.found(aci(1), aci(2))
    assert house.deliver().sent == 2


def test_a_host_without_a_name_or_a_listener_is_said_so(hooks, caplog):
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        house = AlertHouse()
        house.hook(f"http://127.0.0.1:{closed.getsockname()[1]}/")
        house.hook("http://nobody.invalid/")
        house.found(aci(1))
        assert house.deliver().delayed == 2
    assert "connection refused" in caplog.text
    assert "host name not found" in caplog.text


# --- whatever the channel ------------------------------------------------------------------------


class Told:
    """A courier that keeps what it is given, and fails as it is told."""

    def __init__(self, places=4):
        self.places, self.lease = places, 40.0
        self.messages = []
        self.trouble = lambda message: None
        self.before = None

    async def tell(self, message, at):
        if self.before is not None:
            await self.before(message)
        error = self.trouble(message)
        if error is not None:
            raise error
        self.messages.append(message)

    async def close(self):
        pass


def told_by(house, courier):
    return house.deliver({Channel.MAIL: courier})


def test_the_earliest_deadline_goes_first():
    house, courier = AlertHouse(), Told(places=1)
    for n in range(3):
        house.recipient(owner=f"owner{n}")
    house.found(aci(1, "owner0", urgency=1), aci(2, "owner1", urgency=0), aci(3, "owner2", urgency=2))
    house.now = NOW + 7200
    told_by(house, courier)
    assert [one.recipient.owner for one in courier.messages] == ["owner2", "owner0", "owner1"]
    assert house.counts() == {"kept 0": 1, "late 1": 1, "late 2": 1}


def test_as_many_recipients_are_told_at_a_time_as_there_are_places_and_each_one_message():
    house, courier = AlertHouse(), Told(places=4)
    for _ in range(6):
        house.recipient()
    house.found(aci(1), aci(2))
    under_way, most = [], []

    async def meet(message):
        under_way.append(message.recipient.recipientid)
        most.append(list(under_way))
        async with asyncio.timeout(120):
            while len(most[-1]) < 4 and not any(len(one) == 4 for one in most):
                await asyncio.sleep(0.001)
        under_way.remove(message.recipient.recipientid)

    courier.before = meet
    assert told_by(house, courier).sent == 12
    assert max(map(len, most)) == 4
    assert all(len(set(one)) == len(one) for one in most)


def test_who_was_switched_off_or_removed_gets_nothing_more():
    house, courier = AlertHouse(), Told()
    off, gone, there = (house.recipient() for _ in range(3))
    house.found(aci(1))
    with house.store.begin() as tx:
        tx.update_recipient(replace(off, off=True))
        tx.delete_recipient(gone.recipientid)
    told_by(house, courier)
    assert [one.recipient.recipientid for one in courier.messages] == [there.recipientid]
    assert house.states() == {(1, off.recipientid): "given up", (1, there.recipientid): "sent"}


def test_an_alert_whose_page_is_forgotten_is_given_up():
    house, courier = AlertHouse(), Told()
    house.recipient()
    house.found(aci(1), aci(2))
    with house.store.begin() as tx:
        del tx._t.aci[aci(1).urlkey, 101, "alice"]
    told_by(house, courier)
    assert house.states() == {(1, 1): "given up", (2, 1): "sent"}


def test_a_kill_between_sending_and_noting_sends_the_same_message_again(monkeypatch):
    house, courier = AlertHouse(), Told()
    house.recipient(digest=True)
    house.found(*(aci(n) for n in range(1, 4)))
    house.now += 3600

    class Killed(BaseException):
        pass

    def killed(*_):
        raise StoreUnavailable("as if it had been killed")

    monkeypatch.setattr(delivery_module, "NOTES", 0)
    with monkeypatch.context() as dead:
        dead.setattr("lcc_scrapy.annotation.telling.Telling.note", killed)
        told_by(house, courier)
    assert set(house.states().values()) == {"waiting"}
    assert told_by(house, courier).sent == 0, "its turn belongs to the process that was killed"
    house.found(aci(4))
    house.now += 40
    told_by(house, courier)
    first, second = courier.messages
    assert (first.name, first.written) == (second.name, second.written)
    assert house.states() == {(1, 1): "sent", (2, 1): "sent", (3, 1): "sent", (4, 1): "waiting"}


def test_a_database_that_is_away_for_a_moment_makes_no_second_message(monkeypatch):
    from lcc_scrapy.annotation.telling import Telling

    house, courier = AlertHouse(), Told()
    house.recipient()
    house.found(aci(1))
    noted, failed = Telling.note, []

    def note(self, *given):
        if not failed:
            failed.append(1)
            raise StoreUnavailable("for a moment")
        noted(self, *given)

    monkeypatch.setattr(Telling, "note", note)
    told_by(house, courier)
    assert len(courier.messages) == len(failed) == 1
    assert house.states() == {(1, 1): "sent"}


def test_two_processes_tell_each_alert_once():
    house, courier = AlertHouse(), Told()
    for _ in range(30):
        house.recipient()
    house.found(*(aci(n) for n in range(1, 4)))

    async def both():
        makers = [house.delivery({Channel.MAIL: courier}) for _ in range(2)]
        await asyncio.gather(*(one.once() for one in makers))
        for one in makers:
            await one.close()

    async def a_moment(_):
        await asyncio.sleep(0)

    courier.before = a_moment
    run(both())
    names = [one.name for one in courier.messages]
    assert len(names) == len(set(names)) == 90


def test_a_stop_ends_the_message_under_way_and_begins_no_other():
    house, courier = AlertHouse(), Told(places=1)
    house.recipient()
    house.found(aci(1), aci(2))

    async def stopping():
        stopped = asyncio.Event()

        async def stop(_):
            stopped.set()

        courier.before = stop
        made = house.delivery({Channel.MAIL: courier})
        await made.run(stopped)
        await made.close()

    run(stopping())
    assert house.states() == {(1, 1): "sent", (2, 1): "waiting"}
    courier.before = None
    assert told_by(house, courier).sent == 1, "and its turn is free at once"


def test_a_defect_in_one_message_harms_no_other(caplog):
    house, courier = AlertHouse(), Told()
    house.recipient()
    house.recipient(owner="bob")
    house.found(aci(1), aci(2, "bob"))
    courier.trouble = lambda message: ZeroDivisionError() if message.recipient.owner == "alice" else None
    assert told_by(house, courier).sent == 1
    assert house.states() == {(1, 1): "waiting", (2, 2): "sent"}


@pytest.mark.parametrize("error", [TellLater("not now"), TellNever("never")])
def test_what_fails_is_in_the_log_without_secrets(caplog, error):
    house, courier = AlertHouse(), Told()
    house.recipient(secret="whsec_c2VjcmV0")
    house.found(aci(1))
    courier.trouble = lambda _: error
    told_by(house, courier)
    assert str(error) in caplog.text
    assert "c2VjcmV0" not in caplog.text


def test_old_alerts_are_forgotten_while_it_runs():
    house, courier = AlertHouse(), Told()
    house.recipient()
    house.found(aci(1))
    told_by(house, courier)
    house.found(aci(2))
    house.now += 91 * DAY

    async def until_forgotten():
        stopped = asyncio.Event()
        made = house.delivery({Channel.MAIL: courier})
        running = asyncio.ensure_future(made.run(stopped))
        while (1, 1) in house.alerts():
            await asyncio.sleep(0.01)
        stopped.set()
        await running
        await made.close()

    run(until_forgotten())
    assert (1, 1) not in house.alerts()
