"""Registrations: their verbs and steps, the same on every store."""

from dataclasses import replace

import pytest

from lcc_scrapy.apps.registration.jobs import JOBS
from lcc_scrapy.apps.registration.rules import PASSWORD_ROOTS_MAX, ROOTS_MAX, Kind, Stage, Wanted, digest_of
from lcc_scrapy.apps.registration.service import AlreadyActive, Full, NotKnown, NotProved, Registrations
from lcc_scrapy.apps.registration.settings import RegistrationRules
from lcc_scrapy.apps.registration.store import rows_in
from lcc_scrapy.domain.errors import LccError
from lcc_scrapy.domain.policy import QueuePolicy
from lcc_scrapy.domain.providers import FIRST_PID, FRONT_FIRST_PID, Provider, State
from lcc_scrapy.domain.roots import HttpUrl
from lcc_scrapy.login.passwords import hash_made_up, hash_password, verify_password
from lcc_scrapy.providers import registration as providers

NOW = 1_800_000_000
SITE = "http://www.example.org/"
DAY = 86400


pytestmark = pytest.mark.parametrize("store", ["sqlite", "mariadb", "postgresql"], indirect=True)


class Clock:
    def __init__(self):
        self.now = NOW

    def __call__(self):
        return self.now


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def make(store, clock):
    """Return what makes the service."""
    return lambda **rules: Registrations(
        store, RegistrationRules(**{"mode": "open", **rules}), fullsets=10, now=clock
    )


def wanted(site=SITE, **values):
    return Wanted(HttpUrl.parse(site), **values)


def rows(store):
    with store.read() as tx:
        return rows_in(tx).registrations()


def provider_of(store, pid):
    with store.read() as tx:
        return tx.provider(pid), tx.roots(pid)


def test_a_pair_is_given_out_and_only_hashes_of_it_are_kept(store, make):
    given = make().begin(wanted(contact="me@example.org"), "192.0.2.1")
    (row,) = rows(store)
    assert row == given.registration
    assert (row.secret, row.password) == (digest_of(given.secret), hash_made_up(given.password))
    assert {len(given.secret), len(given.password)} == {40}
    assert given.secret not in repr(row)
    assert given.password not in repr(row) + repr(given)
    assert (row.pid, row.stage, row.expires, row.address) == (
        FIRST_PID, Stage.WAITING, NOW + 7 * DAY, "192.0.2.1",
    )  # fmt: skip


def test_hours_zone_and_bandwidth_are_taken_over_and_the_operators_defaults_added(store, make):
    rules = {"priority": 2, "filesmax": 5, "spacemax": 6, "private": True}
    service = make(**rules)
    asked = wanted(contact="a@example.org", bandwidth=9, timeofday="01" * 84, timezone="Europe/Amsterdam")
    given = service.begin(asked, "192.0.2.1")
    service.complete(given.registration, [SITE + "docs/"])
    provider, roots = provider_of(store, given.registration.pid)
    assert roots == [SITE + "docs/"]
    assert provider == Provider(
        FIRST_PID, hash_made_up(given.password), filesmax=5, spacemax=6, fullsetsallowed=10, bandwidth=9,
        timeofday="01" * 84, timezone="Europe/Amsterdam", priority=2, contact="a@example.org",
        name="www.example.org", allowprivate=True, created=NOW, revision=provider.revision,
    )  # fmt: skip


def test_a_provider_is_there_only_after_its_proof_and_the_secret_is_used_up_then(store, make):
    service = make()
    given = service.begin(wanted(), "192.0.2.1")
    pid = given.registration.pid
    assert provider_of(store, pid) == (None, [])
    found = service.find(pid, given.password, Kind.PROVIDER)
    done = service.complete(found, [SITE])
    assert (done.pid, done.roots, done.active) == (pid, (SITE,), True)
    assert rows(store) == []
    with pytest.raises(AlreadyActive):
        service.find(pid, given.password, Kind.PROVIDER)
    with pytest.raises(NotKnown):
        service.complete(found, ["http://other.example.org/"])
    assert provider_of(store, pid)[1] == [SITE]


def test_a_wrong_pid_password_or_kind_is_not_known_and_changes_nothing(store, make):
    service = make()
    given = service.begin(wanted(), "192.0.2.1")
    pid = given.registration.pid
    for asked in [
        (pid, "wrong", Kind.PROVIDER), (pid + 1, given.password, Kind.PROVIDER),
        (pid, given.password, Kind.PASSWORD), (pid, given.password, Kind.ROOT), (pid, "", Kind.ROOT),
        (pid, given.secret, Kind.PROVIDER),
    ]:  # fmt: skip
        with pytest.raises(NotKnown):
            service.find(*asked)
    assert rows(store) == [given.registration]


def test_a_pair_expires_and_is_gone(store, make, clock):
    service = make(expires=100)
    given = service.begin(wanted(), "192.0.2.1")
    for _ in JOBS(store, NOW + 99):
        pass
    assert rows(store) == [given.registration]
    clock.now = NOW + 100
    with pytest.raises(NotKnown):
        service.find(given.registration.pid, given.password, Kind.PROVIDER)
    with pytest.raises(NotKnown):
        service.complete(given.registration, [SITE])
    for _ in JOBS(store, NOW + 100):
        pass
    assert rows(store) == []
    assert provider_of(store, given.registration.pid) == (None, [])


def test_no_more_wait_than_may(store, make, clock):
    service = make(pending=2, expires=100)
    for _ in range(2):
        service.begin(wanted(), "192.0.2.1")
    for begin in (lambda: service.begin(wanted(), ""), lambda: service.begin_password(7, "")):
        with pytest.raises(Full):
            begin()
    assert len(rows(store)) == 2
    with store.begin() as tx:
        assert rows_in(tx).forget_registrations(NOW + 100, 1) == 1
    service.begin(wanted(), "192.0.2.1")


# --- pids ----------------------------------------------------------------------------------------


def test_pids_are_never_used_again(store, make, provider):
    service = make(expires=10)
    providers.add(store, provider(FIRST_PID + 1), [SITE])
    first, second = (service.begin(wanted(), "").registration.pid for _ in range(2))
    assert (first, second) == (FIRST_PID, FIRST_PID + 2)
    with store.begin() as tx:
        assert rows_in(tx).forget_registrations(NOW + 10) == 2
    assert service.begin(wanted(), "").registration.pid == FIRST_PID + 3
    providers.remove(store, FIRST_PID + 1, NOW, QueuePolicy())
    for pid in (first, second, FIRST_PID + 1, FIRST_PID + 3):
        with pytest.raises(LccError, match="never used again"):
            providers.add(store, provider(pid), [SITE])
    with pytest.raises(LccError, match="never used again"):
        providers.add_many(store, [(provider(second), [SITE])])
    assert set(providers.used_pids(store, [first, second, FIRST_PID + 9, 5])) == {first, second}
    providers.add(store, provider(FIRST_PID + 4), [SITE])
    assert service.begin(wanted(), "").registration.pid == FIRST_PID + 5


def test_a_removed_provider_s_pid_is_not_given_out(store, make, provider):
    providers.add(store, provider(FIRST_PID), [SITE])
    providers.remove(store, FIRST_PID, NOW, QueuePolicy())
    assert make().begin(wanted(), "").registration.pid == FIRST_PID + 1


def test_many_used_pids_are_skipped_at_once(store, make, provider):
    used = [(provider(FIRST_PID + number), [SITE]) for number in range(300)]
    providers.add_many(store, used)
    service = make()
    assert [service.begin(wanted(), "").registration.pid - FIRST_PID for _ in range(2)] == [300, 301]


def test_a_pid_that_a_front_gave_out_is_reserved_once_and_changes_nothing_of_what_is_given_out_here(
    store, make, provider
):
    def reserve(pid):
        with store.begin() as tx:
            return providers.reserve(tx, pid)

    first = FRONT_FIRST_PID
    assert reserve(first + 5) == first + 5
    for pid in (first, first + 5):
        with pytest.raises(providers.PidUsed, match="never used again"):
            reserve(pid)
        with pytest.raises(LccError, match="never used again"):
            providers.add(store, provider(pid), [SITE])
    assert make().begin(wanted(), "").registration.pid == FIRST_PID
    providers.add(store, provider(first + 8), [SITE])
    with pytest.raises(providers.PidUsed, match="exists already"):
        reserve(first + 8)
    assert reserve(first + 7) == first + 7
    assert make().begin(wanted(), "").registration.pid == FIRST_PID + 1


# --- approval ------------------------------------------------------------------------------------


def test_in_mode_approve_nothing_is_active_before_the_operator_says_so(store, make, clock):
    service = make(mode="approve", expires=100)
    given = service.begin(wanted(), "192.0.2.1")
    pid = given.registration.pid
    with pytest.raises(LccError, match="nothing of pid"):
        service.approve(pid)
    clock.now += 50
    assert service.complete(given.registration, [SITE]).active is False
    assert provider_of(store, pid) == (None, [])
    (row,) = rows(store)
    assert (row.stage, row.root, row.expires) == (Stage.PROVED, SITE, NOW + 150)
    again = service.complete(given.registration, ["http://elsewhere.example.org/"])
    assert (again.active, again.roots) == (False, (SITE,))
    clock.now += 99
    assert [one.active for one in service.approve(pid)] == [True]
    provider, roots = provider_of(store, pid)
    assert (roots, provider.state) == ([SITE], State.ACTIVE)
    assert verify_password(provider.password, given.password)
    assert rows(store) == []


def test_what_is_rejected_is_gone_and_its_pid_is_not_given_out_again(store, make):
    service = make(mode="approve")
    given = service.begin(wanted(), "192.0.2.1")
    service.complete(given.registration, [SITE])
    assert service.reject(given.registration.pid) == 1
    assert rows(store) == []
    with pytest.raises(LccError):
        service.reject(given.registration.pid)
    with pytest.raises(NotKnown):
        service.find(given.registration.pid, given.password, Kind.PROVIDER)
    assert service.begin(wanted(), "").registration.pid == given.registration.pid + 1


# --- further roots, and passwords that were lost -------------------------------------------------


@pytest.fixture
def owner(store):
    """Provider 7, whom the operator added."""
    providers.add(store, Provider(7, hash_password("a word")), [SITE])
    return 7


OTHER = "http://docs.example.org/"


def test_a_further_root_is_added_by_a_fresh_secret(store, make, owner):
    service = make()
    old = service.begin_root(owner, "a word", HttpUrl.parse(OTHER), "")
    given = service.begin_root(owner, "a word", HttpUrl.parse(OTHER), "")
    assert rows(store) == [given.registration]
    found = service.find(owner, "a word", Kind.ROOT)
    assert found == given.registration
    assert found.site == OTHER
    with pytest.raises(NotKnown):
        service.complete(old.registration, [OTHER])
    service.complete(found, [OTHER])
    assert provider_of(store, owner)[1] == [SITE, OTHER]
    assert rows(store) == []


def test_a_root_below_one_that_is_there_changes_nothing(store, make, owner):
    service = make()
    given = service.begin_root(owner, "a word", HttpUrl.parse(SITE + "a/"), "")
    assert service.complete(given.registration, [SITE + "a/"]).active
    assert provider_of(store, owner)[1] == [SITE]


def test_only_its_password_lets_a_provider_ask_for_a_root(store, make, owner):
    service = make()
    for pid, password in [(owner, "another word"), (8, "a word"), (owner, "")]:
        with pytest.raises(NotKnown):
            service.begin_root(pid, password, HttpUrl.parse(OTHER), "")
    providers.change(store, owner, {"state": State.DISABLED})
    with pytest.raises(NotKnown):
        service.begin_root(owner, "a word", HttpUrl.parse(OTHER), "")
    assert rows(store) == []


def test_roots_of_one_provider_are_bounded(store, make, owner):
    providers.change(store, owner, {}, lambda _: [f"{SITE}{number}/" for number in range(ROOTS_MAX)])
    given = make().begin_root(owner, "a word", HttpUrl.parse(OTHER), "")
    with pytest.raises(NotProved, match="100 roots"):
        make().complete(given.registration, [OTHER])
    assert len(provider_of(store, owner)[1]) == ROOTS_MAX
    assert rows(store) == [given.registration]


def test_further_roots_wait_for_approval_too(store, make, owner):
    service = make(mode="approve")
    given = service.begin_root(owner, "a word", HttpUrl.parse(OTHER), "")
    assert not service.complete(given.registration, [OTHER]).active
    assert provider_of(store, owner)[1] == [SITE]
    service.approve(owner)
    assert provider_of(store, owner)[1] == [SITE, OTHER]


@pytest.mark.parametrize("mode", ["open", "approve"])
def test_a_lost_password_is_replaced_when_all_roots_are_proved(store, make, owner, mode):
    service = make(mode=mode)
    rival = service.begin_password(owner, "198.51.100.1")
    given = service.begin_password(owner, "192.0.2.1")
    found = service.find(owner, given.password, Kind.PASSWORD)
    assert service.roots_to_prove(found) == [SITE]
    assert verify_password(provider_of(store, owner)[0].password, "a word")
    assert service.complete(found, [SITE]).active
    assert verify_password(provider_of(store, owner)[0].password, given.password)
    assert rows(store) == [], "those who asked beside the owner have nothing left"
    with pytest.raises(NotKnown):
        service.complete(rival.registration, [SITE])


def test_a_new_password_is_refused_where_roots_changed_or_are_too_many(store, make, owner):
    service = make()
    given = service.begin_password(owner, "")
    providers.change(store, owner, {}, lambda roots: [*roots, OTHER])
    with pytest.raises(NotProved, match="meanwhile"):
        service.complete(given.registration, [SITE])
    many = [f"{SITE}{number}/" for number in range(PASSWORD_ROOTS_MAX + 1)]
    providers.change(store, owner, {}, lambda _: many)
    with pytest.raises(NotProved, match="6 roots"):
        service.roots_to_prove(given.registration)
    assert verify_password(provider_of(store, owner)[0].password, "a word")


def test_a_new_password_for_nobody_is_given_out_and_never_proved(store, make):
    service = make()
    given = service.begin_password(99, "")
    found = service.find(99, given.password, Kind.PASSWORD)
    with pytest.raises(NotProved, match="no such provider"):
        service.roots_to_prove(found)
    with pytest.raises(NotProved):
        service.complete(found, [SITE])
    assert provider_of(store, 99) == (None, [])


# --- the verbs -----------------------------------------------------------------------------------


def test_the_verbs_about_registrations(store, make):
    service = make()
    given = [service.begin(wanted(f"http://{n}.example.org/"), "").registration for n in range(5)]
    by_key = sorted(given, key=lambda one: one.secret)
    with store.begin() as tx:
        assert rows_in(tx).registrations() == by_key
        assert rows_in(tx).registrations(by_key[1].secret, 2) == by_key[2:4]
        assert rows_in(tx).count_registrations() == 5
        one = given[3]
        assert rows_in(tx).registration_with(one.pid, one.password) == one
        assert rows_in(tx).registration_with(one.pid, given[2].password) is None
        assert rows_in(tx).registrations_of(one.pid, Kind.PROVIDER) == [one]
        assert rows_in(tx).registrations_of(one.pid, Kind.ROOT) == []
        changed = replace(one, stage=Stage.PROVED, root="http://3.example.org/é")
        rows_in(tx).update_registration(changed)
        assert rows_in(tx).lock_registration(one.secret) == changed
        rows_in(tx).delete_registrations([one.secret, "none"])
        assert rows_in(tx).lock_registration(one.secret) is None
        assert rows_in(tx).forget_registrations(one.expires - 1) == 0
        assert rows_in(tx).forget_registrations(one.expires, 3) == 3
        assert rows_in(tx).forget_registrations(one.expires, 3) == 1
        assert rows_in(tx).count_registrations() == 0
