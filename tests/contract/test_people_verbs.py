"""Users, sessions and the audit log, on every store."""

from dataclasses import replace

import pytest

from lcc_scrapy.db.auditing import Audited
from lcc_scrapy.domain.audit import AuditEntry
from lcc_scrapy.domain.errors import LccError
from lcc_scrapy.domain.providers import Provider, State
from lcc_scrapy.domain.users import Session, User
from lcc_scrapy.providers import registration

NOW = 1_800_000_000
LAST = 2**62
ENTRY = AuditEntry(0, NOW, "otto", "dashboard", "pause", 7, "détail")


def test_a_user_goes_with_its_sessions(store):
    with store.begin() as tx:
        for name in ("otto", "anna"):
            tx.put_user(User(name, "operator", "", "hash", NOW))
            tx.insert_session(Session(name * 2, name, NOW, NOW + 10))
        tx.put_user(User("otto", "provider-owner", "7 8", "hash", NOW))
    with store.read() as tx:
        assert [(one.name, one.role, one.providers) for one in tx.users()] == [
            ("anna", "operator", ""),
            ("otto", "provider-owner", "7 8"),
        ]
        assert tx.user("Otto") is None
    with store.begin() as tx:
        tx.delete_user("otto")
    with store.read() as tx:
        assert (tx.user("otto"), tx.session("ottootto")) == (None, None)
        assert set(tx.sessions(["annaanna", "ottootto", "x"])) == {"annaanna"}
        assert tx.sessions([]) == {}
        assert tx.session("annaanna") == Session("annaanna", "anna", NOW, NOW + 10)
    with store.begin() as tx:
        tx.insert_session(Session("later", "anna", NOW + 1, NOW + 20))
        assert [one.digest for one in tx.sessions_of("anna")] == ["later", "annaanna"]
        assert tx.sessions_of("otto") == []
        tx.forget_sessions(NOW + 10)
        assert tx.session("annaanna") is not None
        tx.forget_sessions(NOW + 11)
        assert tx.session("annaanna") is None


def test_the_audit_log_tells_of_providers_and_users_newest_first(store):
    with store.begin() as tx:
        for pid, who in ((7, "otto"), (8, "otto"), (0, "anna")):
            tx.add_audit(replace(ENTRY, pid=pid, who=who, at=NOW + pid))
    with store.read() as tx:
        found = tx.audits(LAST, 10)
        assert [(one.pid, one.who, one.detail) for one in found] == [
            (0, "anna", "détail"),
            (8, "otto", "détail"),
            (7, "otto", "détail"),
        ]
        assert [one.pid for one in tx.audits(found[0].entryid, 1)] == [8]
        assert [one.pid for one in tx.audits(LAST, 10, {7, 0})] == [0, 7]
        assert [one.pid for one in tx.audits(LAST, 10, who="otto")] == [8, 7]
        assert tx.audits(LAST, 10, set()) == []
    with store.begin() as tx:
        assert tx.forget_audits(NOW + 8) == 2
        assert [one.pid for one in tx.audits(LAST, 10)] == [8]


def test_an_entry_is_written_with_its_action_or_not_at_all(store):
    with store.begin() as tx:
        tx.insert_provider(Provider(7, "x"), [])
    with pytest.raises(LccError):
        registration.change(Audited(store, replace(ENTRY, pid=8)), 8, {"state": State.PAUSED})
    audited = Audited(store, ENTRY)
    registration.change(audited, 7, {"state": State.PAUSED})
    registration.change(audited, 7, {"state": State.PAUSED})
    with store.read() as tx:
        assert [(one.pid, one.action) for one in tx.audits(LAST, 10)] == [(7, "pause")]
