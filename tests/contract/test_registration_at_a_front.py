"""Registration at a front: pids are unique over all sub-LCCs, and each step reaches the right one."""

import socket
import threading
import time
from contextlib import closing, contextmanager

import pytest
import sqlalchemy

from lcc_scrapy.apps.registration import front as front_registration
from lcc_scrapy.apps.registration.front import GRACE, FrontRegistrations
from lcc_scrapy.apps.registration.jobs import JOBS
from lcc_scrapy.apps.registration.rules import Kind, Wanted
from lcc_scrapy.apps.registration.service import AlreadyActive, Full, Later, NotKnown, Registrations
from lcc_scrapy.apps.registration.settings import RegistrationRules
from lcc_scrapy.apps.registration.store import rows_in
from lcc_scrapy.db.sql.store import SqlStore
from lcc_scrapy.domain.errors import LccError, StoreUnavailable
from lcc_scrapy.domain.front import MoveStep, Moving, SubLcc, SubState
from lcc_scrapy.domain.policy import QueuePolicy
from lcc_scrapy.domain.providers import FIRST_PID, FRONT_FIRST_PID, Provider, State
from lcc_scrapy.domain.roots import HttpUrl
from lcc_scrapy.feed.store_feed import LCC_ID
from lcc_scrapy.front.directory import Directory
from lcc_scrapy.front.new_providers import NewProviders
from lcc_scrapy.front.open_subs import OpenSubs, SubAway
from lcc_scrapy.front.sub_stores import SubStores
from lcc_scrapy.login.passwords import hash_made_up
from lcc_scrapy.providers import registration as providers
from tests.killed_steps import killed_step
from tests.made_databases import make_sqlite, upgrade

NOW = 1_800_000_000
SITE, OTHER = "http://www.example.org/", "http://docs.example.org/"
SUBS = ("a", "b", "c")


class House:
    """A front with three sub-LCCs; time stands still unless it is moved."""

    def __init__(self, directory_url, urls, **rules):
        self.url, self.now = directory_url, NOW
        self.rules = RegistrationRules(**{"mode": "open", "expires": 100, **rules})
        self.stores = {name: SqlStore(url) for name, url in urls.items()}
        self.directory = Directory(directory_url)
        self.directory.create()
        for name, store in self.stores.items():
            with store.begin() as tx:
                tx.set_info(LCC_ID, f"id of {name}")
            self.directory.add(SubLcc(name, "h:1", f"id of {name}", database=urls[name]))
        self.subs = OpenSubs(self.directory, silence=60)
        self.subs.look()
        self.service = self.make()

    def make(self, directory=None, subs=None):
        return FrontRegistrations(
            directory or self.directory, subs or self.subs, self.rules, fullsets=10, now=lambda: self.now
        )

    def close(self):
        self.subs.close()
        self.directory.close()
        for store in self.stores.values():
            store.close()

    def begin(self, site=SITE, **values):
        return self.service.begin(Wanted(HttpUrl.parse(site), **values), "192.0.2.1")

    def complete(self, given, *roots, kind=Kind.PROVIDER):
        pid = given.registration.pid
        return self.service.complete(self.service.find(pid, given.password, kind), roots or [SITE])

    def home(self, pid):
        found = self.directory.sub_of(pid)
        return found and found.name

    def rows(self):
        """Return the pids that wait, by sub-LCC."""
        found = {}
        for name, store in self.stores.items():
            with store.read() as tx:
                found[name] = [one.pid for one in rows_in(tx).registrations()]
        return found

    def providers(self):
        found = {}
        for name, store in self.stores.items():
            with store.read() as tx:
                found[name] = [one.pid for one in tx.providers()]
        return found

    @contextmanager
    def without(self, name, times=10**9):
        """Let the database of a sub-LCC be away, or refuse some statements."""
        store, left = self.subs._stores[name], [times]

        def refuse(_connection, _cursor, statement, *_):
            if not left[0] or "PRAGMA" in statement:
                return
            left[0] -= 1
            raise sqlalchemy.exc.OperationalError("x", {}, Exception("gone"))

        sqlalchemy.event.listen(store.engine, "before_cursor_execute", refuse)
        try:
            yield
        finally:
            sqlalchemy.event.remove(store.engine, "before_cursor_execute", refuse)


@pytest.fixture(params=["sqlite", "mariadb", "postgresql"])
def house(request, databases, tmp_path):
    for name in SUBS:
        make_sqlite(tmp_path / name / "lcc.sqlite")
    urls = {name: f"sqlite:///{tmp_path / name}/lcc.sqlite" for name in SUBS}
    if request.param != "sqlite":
        urls["b"] = databases.empty(request.param)
        upgrade(urls["b"])
    with closing(House(databases.empty(request.param), urls)) as made:
        yield made


def test_sites_get_pids_that_are_unique_over_all_sub_lccs_and_are_spread(house):
    given = [house.begin() for _ in range(9)]
    pids = [one.registration.pid for one in given]
    assert pids == [*range(FRONT_FIRST_PID, FRONT_FIRST_PID + 9)]
    assert {name: len(waiting) for name, waiting in house.rows().items()} == {"a": 3, "b": 3, "c": 3}
    for pid in pids:
        assert pid in house.rows()[house.home(pid)]
    for one in given:
        assert house.complete(one).active
    assert sorted(pid for its in house.providers().values() for pid in its) == pids
    assert house.rows() == {"a": [], "b": [], "c": []}
    with pytest.raises(AlreadyActive):
        house.complete(given[4])


def test_a_provider_is_made_as_one_lcc_makes_it(house):
    given = house.begin(contact="me@example.org", bandwidth=9)
    house.complete(given, SITE + "docs/")
    pid = given.registration.pid
    with house.stores[house.home(pid)].read() as tx:
        provider, roots = tx.provider(pid), tx.roots(pid)
    assert (provider.password, provider.contact, provider.bandwidth) == (
        hash_made_up(given.password), "me@example.org", 9,
    )  # fmt: skip
    assert (provider.fullsetsallowed, roots) == (10, [SITE + "docs/"])


def test_pids_that_any_sub_lcc_has_or_had_or_gave_out_or_pmdb_names_are_skipped(house):
    fresh = [Provider(FRONT_FIRST_PID + number, "x") for number in range(4)]
    providers.add(house.stores["b"], fresh[0], [SITE])
    providers.add(house.stores["c"], fresh[1], [SITE])
    providers.remove(house.stores["c"], FRONT_FIRST_PID + 1, NOW, QueuePolicy())
    house.directory.assign(FRONT_FIRST_PID + 2, "a")
    with house.stores["b"].begin() as tx:
        providers.reserve(tx, FRONT_FIRST_PID + 5)
    assert house.begin().registration.pid == FRONT_FIRST_PID + 6
    assert house.begin().registration.pid == FRONT_FIRST_PID + 7


def test_many_used_pids_are_skipped_at_once(house):
    fresh = [(Provider(FRONT_FIRST_PID + number, "x"), [SITE]) for number in range(3000)]
    providers.add_many(house.stores["b"], fresh)
    asked = []
    sqlalchemy.event.listen(
        house.subs._stores["b"].engine, "before_cursor_execute", lambda *_: asked.append(1)
    )
    assert house.begin().registration.pid == FRONT_FIRST_PID + 3000
    assert len(asked) < 200
    assert house.begin().registration.pid == FRONT_FIRST_PID + 3001


def test_a_sub_lcc_never_gives_out_a_pid_of_the_front_itself(house):
    pids = [house.begin().registration.pid for _ in range(6)]
    for name, store in house.stores.items():
        mine = [pid for pid in pids if house.home(pid) == name]
        made = Registrations(store, house.rules, now=lambda: NOW).begin(Wanted(HttpUrl.parse(SITE)), "")
        assert made.registration.pid == FIRST_PID, "as IndexNow does it there"
        with pytest.raises(LccError, match="never used again"):
            providers.add(store, Provider(mine[-1], "x"), [SITE])


def test_who_adds_a_provider_at_the_front_gets_no_pid_of_a_registration(house):
    pid = house.begin().registration.pid
    with SubStores(house.directory.subs(), to_write=True) as stores:
        new = NewProviders(house.directory, stores)
        assert new.used([pid, pid + 1, 7]).keys() == {pid}
    house.directory.withdraw(pid)
    with SubStores([], to_write=True) as none, pytest.raises(LccError, match="registration at the front"):
        NewProviders(house.directory, none).find(pid, None)


def test_roots_and_passwords_are_asked_for_where_the_provider_is(house):
    given = [house.begin() for _ in range(3)]
    for one in given:
        house.complete(one)
        pid = one.registration.pid
        further = house.service.begin_root(pid, one.password, HttpUrl.parse(OTHER), "")
        assert further.registration.pid in house.rows()[house.home(pid)]
        house.service.complete(house.service.find(pid, one.password, Kind.ROOT), [OTHER])
        lost = house.service.begin_password(pid, "")
        found = house.service.find(pid, lost.password, Kind.PASSWORD)
        assert house.service.roots_to_prove(found) == [SITE, OTHER]
        house.service.complete(found, [SITE, OTHER])
        with house.stores[house.home(pid)].read() as tx:
            assert tx.provider(pid).password == hash_made_up(lost.password)
            assert tx.roots(pid) == [SITE, OTHER]
        with pytest.raises(NotKnown):
            house.service.begin_root(pid, one.password, HttpUrl.parse(OTHER), "")


def test_a_pid_that_nobody_has_is_refused_as_by_one_lcc(house):
    for ask in (
        lambda: house.service.find(7, "x", Kind.PROVIDER),
        lambda: house.service.find(7, "x", Kind.ROOT),
        lambda: house.service.begin_root(7, "x", HttpUrl.parse(SITE), ""),
    ):
        with pytest.raises(NotKnown):
            ask()
    assert house.service.begin_password(7, "").registration.pid == 7
    assert house.rows() == {"a": [7], "b": [], "c": []}
    assert house.home(7) is None


def test_the_operator_of_a_sub_lcc_approves_and_rejects(house):
    house.rules = RegistrationRules(mode="approve", expires=100)
    house.service = house.make()
    first, second = house.begin(), house.begin()
    for one in (first, second):
        assert not house.complete(one).active
        assert house.service.find(one.registration.pid, one.password, Kind.PROVIDER).stage == "proved"
    of = [Registrations(house.stores[house.home(one.registration.pid)], house.rules, now=lambda: NOW)
          for one in (first, second)]  # fmt: skip
    of[0].approve(first.registration.pid)
    of[1].reject(second.registration.pid)
    with pytest.raises(AlreadyActive):
        house.complete(first)
    with pytest.raises(NotKnown):
        house.complete(second)


# --- what is away, full or moving ----------------------------------------------------------------


def test_one_that_is_away_is_later_for_its_providers_only(house):
    given = [house.begin() for _ in range(3)]
    for one in given:
        house.complete(one)
    with house.without("b"):
        fresh = [house.begin() for _ in range(4)]
        assert {house.home(one.registration.pid) for one in fresh} == {"a", "c"}
        for one in given:
            pid, is_there = one.registration.pid, house.home(one.registration.pid) != "b"
            if is_there:
                house.service.begin_root(pid, one.password, HttpUrl.parse(OTHER), "")
            else:
                with pytest.raises(SubAway):
                    house.service.begin_root(pid, one.password, HttpUrl.parse(OTHER), "")
    pid, password = next(
        (one.registration.pid, one.password) for one in given if house.home(one.registration.pid) == "b"
    )
    with pytest.raises(SubAway):
        house.service.begin_root(pid, password, HttpUrl.parse(OTHER), "")  # nobody waits before the next look
    house.subs.look()
    house.service.begin_root(pid, password, HttpUrl.parse(OTHER), "")
    assert {house.home(house.begin().registration.pid) for _ in range(6)} == {"a", "b", "c"}


def test_one_whose_tables_are_gone_keeps_nobody_out(house):
    for table in ("registrations", "pidb"):
        with house.stores["b"].engine.begin() as connection:
            connection.exec_driver_sql(f"DROP TABLE {table}")
        assert {house.home(house.begin().registration.pid) for _ in range(4)} == {"a", "c"}
        house.subs.look()
    assert sorted(house.subs.stores()) == ["a", "c"]


def test_a_server_that_says_nothing_holds_up_a_look_for_its_time_only(house):
    with closing(socket.create_server(("127.0.0.1", 0))) as mute:
        url = f"mysql://u:p@127.0.0.1:{mute.getsockname()[1]}/lcc"
        house.directory.add(SubLcc("d", "h:1", "id of d", database=url))
        with closing(OpenSubs(house.directory, silence=1)) as subs:
            look = threading.Thread(target=subs.look, daemon=True)
            look.start()
            look.join(60)  # a statement may take 600 s elsewhere
            assert not look.is_alive()
            assert sorted(subs.stores()) == ["a", "b", "c"]


def test_a_deadlock_keeps_nobody_else_out(house):
    with house.without("a", times=1), pytest.raises(SubAway):
        house.service.begin_password(7, "")
    house.service.begin_password(7, "")
    assert house.rows()["a"] == [7]


def test_one_that_dies_at_the_claim_leaves_no_pid_behind(house):
    for name in ("a", "c"):
        house.directory.change(SubLcc(name, "h:1", f"id of {name}", state=SubState.FULL,
                                      database=house.directory.sub(name).database))  # fmt: skip
    house.subs.look()
    given_out, rooms = [], house.service._give_out

    def die(name):
        given_out.append(rooms(name))
        dying.__enter__()
        return given_out[-1]

    dying = house.without("b")
    house.service._give_out = die
    with pytest.raises(SubAway):
        house.begin()
    dying.__exit__(None, None, None)
    assert given_out == [FRONT_FIRST_PID]
    assert (house.home(FRONT_FIRST_PID), house.directory.given.due(10**10, 9)) == (None, {})


def test_when_all_are_away_it_is_later_and_nothing_is_given_out(house):
    house.subs.close()
    with pytest.raises(Later):
        house.begin()
    with pytest.raises(SubAway):
        house.service.begin_password(7, "")
    assert house.directory.given.last() == FRONT_FIRST_PID - 1


def test_where_too_many_wait_the_next_one_takes_it_and_no_pid_is_lost(house):
    house.rules = RegistrationRules(mode="open", expires=100, pending=2)
    house.service = house.make()
    for _ in range(2):
        Registrations(house.stores["a"], house.rules, now=lambda: NOW).begin(Wanted(HttpUrl.parse(SITE)), "")
    pids = [house.begin().registration.pid for _ in range(4)]
    assert {house.home(pid) for pid in pids} == {"b", "c"}
    last = house.directory.given.last()
    with pytest.raises(Full):
        house.begin()
    assert house.directory.given.last() == last
    assert sum(house.directory.providers().values()) == 4


def test_full_ones_get_nobody(house):
    for name in SUBS:
        sub = house.directory.sub(name)
        house.directory.change(SubLcc(name, "h:1", sub.lccid, database=sub.database, state=SubState.FULL))
    house.subs.look()
    with pytest.raises(Later):
        house.begin()
    assert house.rows() == {"a": [], "b": [], "c": []}


def test_while_a_provider_moves_nothing_of_it_changes(house):
    given = house.begin()
    house.complete(given)
    pid = given.registration.pid
    home = house.home(pid)
    target = next(name for name in SUBS if name != home)
    lost = house.service.begin_password(pid, "")
    found = house.service.find(pid, lost.password, Kind.PASSWORD)
    moving = Moving(pid, home, target, State.ACTIVE)
    house.directory.hold(moving)
    before = house.rows()
    for ask in (
        lambda: house.service.begin_root(pid, given.password, HttpUrl.parse(OTHER), ""),
        lambda: house.service.begin_password(pid, ""),
        lambda: house.service.find(pid, lost.password, Kind.PASSWORD),
        lambda: house.service.roots_to_prove(found),
        lambda: house.service.complete(found, [SITE]),
    ):
        with pytest.raises(Later, match="moved"):
            ask()
    assert house.rows() == before
    house.directory.flip(house.directory.copying(moving, "1", "2", 0))
    assert house.directory.moving(pid).step == MoveStep.REMOVE
    house.service.begin_password(pid, "")
    assert house.rows()[target] == [pid]


# --- several fronts, and what kills leave --------------------------------------------------------


def test_several_fronts_give_out_no_pid_twice(house):
    told, lock = [], threading.Lock()

    def register():
        with closing(Directory(house.url)) as directory, closing(OpenSubs(directory, silence=60)) as subs:
            subs.look()
            service = house.make(directory, subs)
            for _ in range(10):
                given = service.begin(Wanted(HttpUrl.parse(SITE)), "")
                with lock:
                    told.append(given.registration.pid)

    threads = [threading.Thread(target=register) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(300)
    assert len(told) == len(set(told)) == 40
    waiting = [pid for its in house.rows().values() for pid in its]
    assert sorted(waiting) == sorted(told)
    assert sum(house.directory.providers().values()) == 40, "PMDB has no others"


def test_a_pid_whose_sub_lcc_never_heard_of_it_is_forgotten_and_not_given_out_again(house):
    pid = house.service._give_out("b")  # and then the process is killed
    assert house.home(pid) == "b"
    house.service.tidy()
    house.now += 100 + GRACE - 1
    house.service.tidy()
    assert house.home(pid) == "b"
    house.now += 1
    house.service.tidy()
    assert house.home(pid) is None
    assert house.begin().registration.pid == pid + 1


def test_killed_at_any_moment_it_leaves_nothing_that_stays(house):
    known, moment, done = set(), 0, False
    house.now = int(time.time())
    while not done:
        moment += 1
        what = {"step": "front", "site": SITE, "rules": {"expires": 1000}}
        done, told = killed_step(house.url, moment, what)
        fresh = {pid for its in house.rows().values() for pid in its} - known
        assert len(fresh) <= 1
        assert told is None or fresh == {told["pid"]}
        known |= fresh
        for pid in fresh:
            assert pid in house.rows()[house.home(pid)], "PMDB has it first"
    assert moment > 15
    assert sum(house.directory.providers().values()) > len(known), "some came to nothing"
    for store in house.stores.values():
        with store.begin() as tx:
            rows_in(tx).delete_registrations([one.secret for one in rows_in(tx).registrations()[1:]])
    house.now += 1000 + GRACE + 1000
    house.service.tidy()
    left = {pid for its in house.rows().values() for pid in its}
    assert house.directory.assigned(range(FRONT_FIRST_PID, FRONT_FIRST_PID + 1000)).keys() == left


def test_what_expired_or_was_rejected_is_forgotten_and_what_became_a_provider_stays(house):
    given = [house.begin() for _ in range(7)]
    active, rejected, expired = given[:3], given[3:5], given[5:]
    for one in active:
        house.complete(one)
    for one in rejected:
        pid = one.registration.pid
        Registrations(house.stores[house.home(pid)], house.rules, now=lambda: NOW).reject(pid)
    house.now += 100 + GRACE
    house.service.tidy()
    pids = {one.registration.pid for one in (*active, *expired)}
    assert house.directory.assigned([one.registration.pid for one in given]).keys() == pids
    for store in house.stores.values():
        for _ in JOBS(store, house.now):
            pass
    house.now += GRACE - 1
    house.service.tidy()
    assert sum(house.directory.providers().values()) == 5
    house.now += 1
    house.service.tidy()
    pids = {one.registration.pid for one in active}
    assert house.directory.assigned([one.registration.pid for one in given]).keys() == pids
    assert (house.directory.given.due(10**10, 9), house.directory.given.counts()) == ({}, {})


def test_what_waits_for_approval_is_not_forgotten(house):
    house.rules = RegistrationRules(mode="approve", expires=100)
    house.service = house.make()
    given = house.begin()
    house.now += 99
    house.complete(given)
    house.now += 1 + GRACE
    house.service.tidy()
    assert house.home(given.registration.pid)
    assert house.directory.given.due(house.now + GRACE - 1, 9) == {}


def test_while_a_sub_lcc_is_away_its_pids_are_kept_and_others_looked_at(house, monkeypatch):
    monkeypatch.setattr(front_registration, "PORTION", 2)
    pids = {name: [house.service._give_out(name) for _ in range(3)] for name in ("b", "a")}
    house.now += 100 + GRACE
    with house.without("b"):
        house.service.tidy()
    assert house.directory.assigned(pids["a"]) == {}
    assert house.directory.assigned(pids["b"]).keys() == set(pids["b"])
    house.subs.look()
    house.now += GRACE
    house.service.tidy()
    assert house.directory.providers() == {}


def test_what_is_left_over_is_looked_at_the_next_time(house, monkeypatch):
    monkeypatch.setattr(front_registration, "PORTION", 2)
    monkeypatch.setattr(front_registration, "PORTIONS", 2)
    for _ in range(5):
        house.service._give_out("b")
    house.now += 100 + GRACE
    for left in (1, 0):
        house.service.tidy()
        assert sum(house.directory.providers().values()) == left


def test_looking_after_pids_costs_the_same_for_each(house):
    def cost(count):
        for _ in range(count):
            house.service._give_out("b")
        house.now += 100 + GRACE
        asked = []
        engines = (house.directory._engine, house.subs._stores["b"].engine)
        count_one = lambda *_: asked.append(1)  # noqa: E731
        for engine in engines:
            sqlalchemy.event.listen(engine, "before_cursor_execute", count_one)
        house.service.tidy()
        for engine in engines:
            sqlalchemy.event.remove(engine, "before_cursor_execute", count_one)
        return len(asked)

    few = cost(200)
    assert cost(400) <= 2.2 * few
    assert house.directory.providers() == {}


def test_a_front_without_its_database_says_so(house, databases):
    with closing(Directory("mysql+pymysql://root@127.0.0.1:9/x")) as away:
        service = house.make(away)
        with pytest.raises(StoreUnavailable):
            service.begin(Wanted(HttpUrl.parse(SITE)), "")
        with pytest.raises(StoreUnavailable):
            service.find(7, "x", Kind.PROVIDER)
