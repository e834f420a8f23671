"""Recipients and what they are told, on every store."""

from dataclasses import replace

import pytest

from lcc_scrapy.annotation.couriers import TellLater, TellNever
from lcc_scrapy.annotation.telling import Telling
from lcc_scrapy.domain.acis import Alert, AlertState, Channel, Recipient
from lcc_scrapy.domain.alerts import NEVER, Standing
from tests.alert_house import aci

NOW = 1_800_000_000_000
ALICE = Recipient(0, "alice", Channel.MAIL, "a@example.org", "html", False, "", False, NOW // 1000, "")
HOOK = replace(ALICE, owner="bob", channel=Channel.WEBHOOK, address="https://example.org/ä", format="json")


def alert(number, recipientid, **values):
    made = Alert(number, recipientid, AlertState.WAITING, 0, NOW, NOW + 60_000, 0)
    return replace(made, **values)


@pytest.fixture
def pair(store):
    with store.begin() as tx:
        return tx.insert_recipient(ALICE), tx.insert_recipient(HOOK)


def put(store, *alerts):
    with store.begin() as tx:
        tx.put_alerts(alerts)


def due(store, channel=Channel.MAIL, now=NOW, limit=10):
    with store.read() as tx:
        return tx.due_recipients(channel, now, limit)


def test_a_recipient_is_added_changed_and_forgotten_with_its_alerts(store, pair):
    alice, hook = pair
    assert (alice.owner, hook.owner, alice.recipientid < hook.recipientid) == ("alice", "bob", True)
    put(store, alert(1, alice.recipientid), alert(1, hook.recipientid))
    changed = replace(alice, format="text", digest=True, off=True, refused="no such user")
    with store.begin() as tx:
        assert tx.recipient(alice.recipientid) == alice
        tx.update_recipient(changed)
        assert tx.lock_recipient(alice.recipientid).due == NOW, "what waits for it stays"
    with store.begin() as tx:
        assert tx.recipients(None, 0, 10) == [changed, hook]
        assert tx.recipients(None, alice.recipientid, 10) == [hook]
        assert tx.recipients("alice", 0, 10) == [changed]
        assert tx.recipients_of(["bob", "nobody", "bob"]) == [hook]
        assert tx.recipients_of(["bob", "alice"]) == [changed, hook]
        tx.delete_recipient(alice.recipientid)
    with store.read() as tx:
        assert tx.recipient(alice.recipientid) is None
        assert tx.lock_recipient(alice.recipientid) is None
        assert [one.recipientid for one, _ in tx.alerts_told(None, None, NEVER, 10)] == [hook.recipientid]


def test_a_number_is_not_given_out_again(store, pair):
    with store.begin() as tx:
        tx.delete_recipient(pair[1].recipientid)
    with store.begin() as tx:
        assert tx.insert_recipient(ALICE).recipientid > pair[1].recipientid


def test_new_alerts_bring_the_turn_of_their_recipient_forward(store, pair):
    alice, hook = (one.recipientid for one in pair)
    assert due(store) == []
    put(store, alert(1, alice, not_before=NOW + 5), alert(2, alice, deadline=NOW + 9), alert(3, hook))
    with store.begin() as tx:
        assert tx.lock_recipient(alice) == Standing(alice, due=NOW, deadline=NOW + 9)
    put(store, alert(4, alice, not_before=NOW + 7, deadline=NOW + 50))
    put(store, alert(5, alice, not_before=1, deadline=1, state=AlertState.SENT))
    with store.begin() as tx:
        assert tx.lock_recipient(alice) == Standing(alice, due=NOW, deadline=NOW + 9)
    assert due(store) == [alice]
    assert due(store, Channel.WEBHOOK) == [hook]
    assert due(store, now=NOW - 1) == []


def test_the_earliest_deadline_comes_first(store):
    with store.begin() as tx:
        made = [tx.insert_recipient(ALICE).recipientid for _ in range(3)]
        for at, one in enumerate(made):
            tx.put_alerts([alert(at, one, deadline=NOW + 100 * (3 - at))])
    assert due(store) == made[::-1]
    assert due(store, limit=2) == made[:0:-1]


def test_what_is_next_is_read_anew_when_a_recipient_was_told(store, pair):
    alice = pair[0].recipientid
    later = alert(2, alice, not_before=NOW + 100, deadline=NOW + 200)
    put(store, alert(1, alice), later)
    with store.begin() as tx:
        at = tx.lock_recipient(alice)
        tx.put_alerts([alert(1, alice, state=AlertState.SENT, sent=NOW + 3, tries=1)])
        tx.put_standing(replace(at, tries=2, not_before=NOW + 50))
    with store.begin() as tx:
        assert tx.lock_recipient(alice) == Standing(alice, 2, NOW + 50, NOW + 100, NOW + 200)
        tx.put_alerts([replace(later, state=AlertState.GIVEN_UP)])
        tx.put_standing(Standing(alice))
    with store.begin() as tx:
        assert tx.lock_recipient(alice) == Standing(alice, 0, 0, NEVER, NEVER)


def test_nobody_is_told_before_its_back_off_has_passed(store, pair):
    alice = pair[0].recipientid
    put(store, alert(1, alice))
    with store.begin() as tx:
        tx.put_standing(Standing(alice, 1, NOW + 50))
    assert (due(store, now=NOW + 49), due(store, now=NOW + 50)) == ([], [alice])


def test_due_alerts_come_by_deadline_and_then_by_number(store, pair):
    alice, hook = (one.recipientid for one in pair)
    rows = [
        alert(1, alice),
        alert(2, alice, deadline=NOW),
        alert(3, alice, deadline=NOW),
        alert(4, alice, not_before=NOW + 1),
        alert(5, alice, state=AlertState.SENT),
        alert(6, hook),
    ]
    put(store, *rows)
    with store.read() as tx:
        assert tx.due_alerts(alice, NOW, 10) == [rows[1], rows[2], rows[0]]
        assert tx.due_alerts(alice, NOW, 1) == [rows[1]]
        assert tx.due_alerts(hook, NOW + 1, 10) == [rows[5]]


def test_alerts_are_listed_newest_first(store, pair):
    _, hook = pair
    put(store, *(alert(n, one.recipientid) for n in (1, 2, 3) for one in pair))
    put(store, alert(2, hook.recipientid, state=AlertState.SENT, sent=NOW))
    with store.read() as tx:
        listed = tx.alerts_told(None, None, 3, 3)
        assert [(one.number, whose.owner) for one, whose in listed] == [
            (2, "alice"),
            (2, "bob"),
            (1, "alice"),
        ]
        assert listed[1][1] == hook
        sent = tx.alerts_told("bob", AlertState.SENT, NEVER, 10)
        assert [(one.number, one.sent) for one, _ in sent] == [(2, NOW)]
        assert tx.alerts_told("alice", AlertState.SENT, NEVER, 10) == []


def test_what_waited_for_too_long_is_given_up(store, pair):
    alice, hook = (one.recipientid for one in pair)
    put(store, *(alert(n, alice, deadline=NOW + n) for n in range(1, 6)), alert(1, hook, deadline=NOW))
    with store.begin() as tx:
        assert tx.give_up_alerts(alice, NOW + 3, 2) == 2
        assert tx.give_up_alerts(alice, NOW + 3, 2) == 1
        assert tx.give_up_alerts(alice, NOW + 3, 2) == 0
    with store.read() as tx:
        assert tx.count_waiting_alerts(NOW) == (3, 0)
        assert tx.count_waiting_alerts(NOW + 5) == (3, 2)
        assert [one.number for one in tx.due_alerts(alice, NOW, 10)] == [4, 5]


def test_old_alerts_are_forgotten_but_for_those_that_wait(store, pair):
    alice = pair[0].recipientid
    put(
        store,
        alert(1, alice, deadline=1),
        *(alert(n, alice, deadline=n, state=AlertState.SENT) for n in (2, 3, 9)),
        alert(4, alice, deadline=4, state=AlertState.GIVEN_UP),
    )
    with store.begin() as tx:
        assert tx.forget_alerts(9, 2) == 2
        assert tx.forget_alerts(9, 10) == 1
        assert tx.forget_alerts(9, 10) == 0
        assert [one.number for one, _ in tx.alerts_told(None, None, NEVER, 10)] == [9, 1]


def test_old_acis_of_contents_that_are_gone_are_forgotten_but_for_those_that_wait(store, pair):
    alice, gone = pair[0].recipientid, range(1, 6)
    with store.begin() as tx:
        tx.put_acis([aci(n, urlkey=bytes([n]) * 16, made=n, expired=True) for n in gone])
        tx.put_acis([aci(6, urlkey=b"6" * 16, made=6, expired=True), aci(7, urlkey=b"7" * 16, made=1)])
    put(store, alert(2, alice), alert(3, alice, state=AlertState.SENT))
    with store.begin() as tx:
        assert tx.forget_acis(6, 3) == 3
        assert [one.number for one in tx.acis_after(0, None, 10)] == [2, 5, 6, 7]
        assert tx.forget_acis(6, 3) == 1
        assert tx.forget_acis(6, 3) == 0
        assert [one.number for one in tx.acis_after(0, None, 10)] == [2, 6, 7]


def test_versions_are_open_until_everybody_was_told_of_them(store, pair):
    alice, hook = (one.recipientid for one in pair)
    one, two, three = (aci(n, urlkey=bytes([min(n, 2)]) * 16, seq=n) for n in (1, 2, 3))
    with store.begin() as tx:
        tx.put_acis([one, two, three])
        tx.put_alerts(
            [alert(1, alice), alert(2, alice), alert(2, hook), alert(3, hook, state=AlertState.SENT)]
        )
    keys = {row.urlkey for row in (one, two, three)}

    def opened(*asked):
        with store.read() as tx:
            return tx.open_alerts(asked)

    assert opened(*keys) == {(one.urlkey, 1), (two.urlkey, 2)}
    assert opened(one.urlkey) == {(one.urlkey, 1)}
    assert opened(b"x" * 16) == opened() == set()
    put(store, alert(2, alice, state=AlertState.GIVEN_UP))
    assert opened(two.urlkey) == {(two.urlkey, 2)}
    put(store, alert(2, hook, state=AlertState.SENT))
    assert opened(two.urlkey) == set()


def test_acis_are_read_newest_first(store):
    with store.begin() as tx:
        tx.put_acis([aci(1), aci(2, "bob"), aci(3), aci(4)])
    with store.read() as tx:
        assert [one.number for one in tx.acis_before(4, "alice", 10)] == [3, 1]
        assert [one.number for one in tx.acis_before(NEVER, None, 2)] == [4, 3]


def test_alerts_are_claimed_sent_and_noted_on_every_store(store, pair):
    """A kill between claim and note leaves a turn that others take when the lease has passed."""
    alice = pair[0].recipientid
    telling = Telling(store, retry=7 * 86_400)
    with store.begin() as tx:
        tx.put_acis([aci(1), aci(2)])
        tx.put_alerts([alert(1, alice), alert(2, alice, deadline=NOW - 1), alert(3, alice)])
    assert telling.due(Channel.MAIL, NOW, 10) == [alice]
    turn = telling.claim(alice, NOW, 40.0)
    assert [[one.number for one in message] for message in turn.messages] == [[2], [1]]
    assert telling.claim(alice, NOW + 39_999, 40.0) is None
    again = telling.claim(alice, NOW + 40_000, 40.0)
    assert again.messages == turn.messages
    telling.note(again, again.messages[0], None, NOW + 40_001, 40.0)
    telling.note(again, again.messages[1], TellLater("not now"), NOW + 40_002, 0.0)
    with store.begin() as tx:
        assert {(one.number, str(one.state), one.tries) for one, _ in tx.alerts_told(None, None, NEVER, 9)} == {
            (1, "waiting", 1), (2, "sent", 1), (3, "given up", 0),
        }  # fmt: skip
        at = tx.lock_recipient(alice)
        assert (at.tries, at.not_before, at.due) == (1, NOW + 55_002, NOW + 70_002)
        assert (tx.peek("alerts late 2"), tx.peek("alerts given up")) == (1, 1)
    never = telling.claim(alice, NOW + 70_002, 40.0)
    telling.note(never, never.messages[0], TellNever("550 no"), NOW + 70_003, 0.0)
    with store.begin() as tx:
        assert tx.recipient(alice).refused == "550 no"
        assert tx.lock_recipient(alice).due == NEVER
        assert tx.peek("alerts given up") == 2
