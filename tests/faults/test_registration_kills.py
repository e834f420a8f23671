"""A registration that is killed at any moment is there as a whole or not at all."""

import http.client
import json
import threading

import pytest
from harness import wait_for

from lcc_scrapy.apps.registration.rules import Kind, Stage, Wanted
from lcc_scrapy.apps.registration.service import AlreadyActive, NotKnown, Registrations
from lcc_scrapy.apps.registration.settings import RegistrationRules
from lcc_scrapy.apps.registration.store import rows_in
from lcc_scrapy.db.sql.store import SqlStore
from lcc_scrapy.domain.providers import FIRST_PID, Provider, State
from lcc_scrapy.domain.roots import HttpUrl
from lcc_scrapy.login.passwords import hash_password, verify_password
from lcc_scrapy.providers import registration as providers
from tests.killed_steps import killed_step
from tests.push_process import PushServer
from tests.registration_site import answer, little_site

KINDS = ("sqlite", "mariadb", "postgresql")
SITE, OTHER = "http://www.example.org/", "http://docs.example.org/"
MOMENTS = 60
"""More than any step has."""

pytestmark = pytest.mark.slow


@pytest.fixture(params=KINDS)
def database(request, databases):
    url = databases.url(request.param)
    store = SqlStore(url)
    with store.engine.begin() as connection:
        for table in ("registrations", "pidb", "proots", "counters"):
            connection.exec_driver_sql(f"DELETE FROM {table}")
    yield url, store
    store.close()


def all_of(store):
    """Return registrations, providers and their roots."""
    with store.read() as tx:
        there = {one.pid: one for one in tx.providers()}
        return rows_in(tx).registrations(), there, tx.roots_of(there)


def moments(url, what):
    """Do a step again and again, killed at a later moment each time, until one is done; yields each time."""
    for moment in range(1, MOMENTS):
        done, told = killed_step(url, moment, what(moment))
        yield moment, told
        if done:
            assert moment > 4, "it was killed at some moments"
            print(f"killed at each of {moment - 1} moments")
            return
    raise AssertionError("it is never done")


@pytest.mark.soak_of("mariadb", "postgresql")
def test_a_killed_begin_leaves_a_whole_registration_or_none(database):
    url, store = database
    known = {}
    for _, told in moments(url, lambda _: {"step": "begin", "site": SITE}):
        rows, there, _ = all_of(store)
        fresh = [one for one in rows if one.secret not in known]
        assert len(fresh) <= 1
        assert told is None or [one.pid for one in fresh] == [told["pid"]], "what was told is there"
        known |= {one.secret: one.pid for one in fresh}
        assert len(set(known.values())) == len(known), "no pid is given out twice"
        assert there == {}
    assert max(known.values()) == FIRST_PID + len(known) - 1


@pytest.mark.soak_of("sqlite", "postgresql")
def test_a_killed_proof_leaves_a_registration_or_a_provider(database):
    url, store = database
    service = Registrations(store, RegistrationRules(mode="open"))
    given = None

    def what(_):
        nonlocal given
        given = service.begin(Wanted(HttpUrl.parse(SITE)), "")
        return {"step": "complete", "kind": "provider", "site": SITE, "pid": given.registration.pid,
                "password": given.password}  # fmt: skip

    for _, told in moments(url, what):
        pid = given.registration.pid
        rows, there, roots = all_of(store)
        waiting = [one for one in rows if one.pid == pid]
        assert (pid in there) != bool(waiting), "one of the two, never both or neither"
        assert (pid in there) == (roots.get(pid) == [SITE])
        assert told is None or pid in there
        if waiting:
            assert waiting == [given.registration]
            service.complete(service.find(pid, given.password, Kind.PROVIDER), [SITE])
        with pytest.raises(AlreadyActive):
            service.find(pid, given.password, Kind.PROVIDER)
        provider = all_of(store)[1][pid]
        assert provider.state == State.ACTIVE
        assert verify_password(provider.password, given.password)


@pytest.mark.soak_of("sqlite", "mariadb")
def test_a_killed_approval_leaves_a_proved_registration_or_a_provider(database):
    url, store = database
    service = Registrations(store, RegistrationRules(mode="approve"))
    given = None

    def what(_):
        nonlocal given
        given = service.begin(Wanted(HttpUrl.parse(SITE)), "")
        service.complete(given.registration, [SITE])
        return {"step": "approve", "mode": "approve", "pid": given.registration.pid}

    for _, told in moments(url, what):
        pid = given.registration.pid
        rows, there, roots = all_of(store)
        waiting = [one.stage for one in rows if one.pid == pid]
        assert (pid in there, waiting) in [(True, []), (False, [Stage.PROVED])]
        assert (pid in there) == (roots.get(pid) == [SITE])
        assert told is None or pid in there
        if waiting:
            service.approve(pid)
        assert all_of(store)[2][pid] == [SITE]


@pytest.mark.soak_of("mariadb", "postgresql")
@pytest.mark.parametrize("kind", [Kind.ROOT, Kind.PASSWORD])
def test_a_killed_change_of_a_provider_is_done_or_not_begun(database, kind):
    url, store = database
    service = Registrations(store, RegistrationRules(mode="open"))
    given = None

    def what(moment):
        nonlocal given
        providers.add(store, Provider(moment, hash_password("a word")), [SITE])
        if kind is Kind.ROOT:
            given = service.begin_root(moment, "a word", HttpUrl.parse(OTHER), "")
        else:
            given = service.begin_password(moment, "")
        site = OTHER if kind is Kind.ROOT else SITE
        return {"step": "complete", "kind": kind, "site": site, "pid": moment,
                "password": given.password or "a word"}  # fmt: skip

    for pid, told in moments(url, what):
        rows, there, roots = all_of(store)
        waits = any(one.pid == pid for one in rows)
        changed = roots[pid] == [SITE, OTHER] or bool(
            given.password and verify_password(there[pid].password, given.password)
        )
        assert waits != changed
        assert told is None or changed
        assert given.password or there[pid].narrowing == changed


def test_a_server_killed_while_it_looks_for_the_file_has_activated_nothing(make_lcc):
    lcc = make_lcc()
    with little_site() as site:
        server = PushServer(
            lcc, LCC_REGISTRATION="open", LCC_REGISTRATION_PRIVATE="yes",
            LCC_REGISTRATION_PORTS=str(site.port),
        )  # fmt: skip
        try:
            given = _post(server.port, "", {"site": site.url})[1]
            path, shown = f"/{given['pid']}/activate", {"password": given["password"]}
            _kill_while_it_looks(server, site, given, lambda: _hung_up(server.port, path, shown))
            assert json.loads(lcc.lcc("provider", "list", "--json").stdout) == []
            (row,) = json.loads(lcc.lcc("registration", "list", "--json").stdout)
            assert (row["pid"], row["stage"]) == (given["pid"], "waiting")
            server.start()
            assert _post(server.port, path, shown)[0] == 200
        finally:
            server.stop()
    (row,) = json.loads(lcc.lcc("provider", "list", "--json").stdout)
    assert (row["pid"], row["roots"]) == (given["pid"], [site.url])


def _kill_while_it_looks(server, site, given, ask):
    asked, go_on = threading.Event(), threading.Event()

    def hold(handler):
        asked.set()
        go_on.wait(300)
        answer(handler, given["secret"].encode())

    site.files["*"] = hold
    waiting = threading.Thread(target=ask)
    waiting.start()
    wait_for(asked.is_set, 300)
    server.kill()
    go_on.set()
    waiting.join(300)


def _post(port, path, body):
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=300)
    headers = {"Content-Type": "application/json"}
    connection.request("POST", f"/v1/registrations{path}", json.dumps(body), headers)
    told = connection.getresponse()
    found = told.status, json.loads(told.read())
    connection.close()
    return found


def _hung_up(port, path, body):
    with pytest.raises((OSError, http.client.HTTPException)):
        _post(port, path, body)


def test_who_expired_meanwhile_is_not_activated(database):
    _, store = database
    clock = [0]
    service = Registrations(store, RegistrationRules(mode="open"), now=lambda: clock[0])
    given = service.begin(Wanted(HttpUrl.parse(SITE)), "")
    clock[0] = given.registration.expires
    with pytest.raises(NotKnown):
        service.complete(given.registration, [SITE])
    assert all_of(store)[1] == {}
