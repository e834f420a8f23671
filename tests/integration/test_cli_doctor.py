"""``lcc doctor`` as operators run it, and its checks."""

import json
import socket
from contextlib import closing
from types import SimpleNamespace

import pytest
from test_cli import House

from lcc_scrapy.cli import doctor as command
from lcc_scrapy.config.config import Config
from lcc_scrapy.domain.cursor import Position
from lcc_scrapy.domain.errors import ConfigurationError
from lcc_scrapy.domain.roots import Root
from lcc_scrapy.ops import doctor
from lcc_scrapy.ops.doctor import Finding, State
from lcc_scrapy.runtime.apps import Apps
from tests.certificates import DAY, NOW, Authority
from tests.dashboard_house import write_index
from tests.ports import free_port
from tests.redis_server import URL


@pytest.fixture
def house(tmp_path):
    made = House(tmp_path)
    made.lcc("init")
    return made


def findings(house, *settings, status=0):
    words = [word for setting in settings for word in ("-s", setting)]
    found = json.loads(house.lcc(*words, "doctor", "--json", status=status).stdout)
    return {one["check"]: (one["state"], one["text"]) for one in found}


def test_a_machine_that_is_fit_has_a_line_for_each_check_and_no_problem(house):
    port = free_port()
    lines = house.lcc("-s", f"LCC_UNS_ENDPOINTS=tcp:{port}:interface=127.0.0.1", "doctor").stdout
    assert "problem" not in lines
    for expected in (f"port: 127.0.0.1:{port} is free", "database: SQLite ", "machine: number 1", "disk: "):
        assert expected in lines


def test_a_database_older_than_the_content_files_is_a_problem_and_no_crawl_begins(make_lcc):
    lcc = make_lcc()
    lcc.start()  # which takes the first numbers of files, or none
    lcc.stop()
    newest = lcc.path_of(1, 5_000_123)
    newest.parent.mkdir(parents=True)
    newest.write_bytes(b"of a commit that was lost")
    said = "the database has lost commits: there is a content file 5000123"
    assert said in lcc.lcc("doctor", check=False).stdout
    assert said in lcc.refused("-s", "LCC_UNS_ENDPOINTS=")
    newest.unlink()
    assert "lost commits" not in lcc.lcc("doctor", check=False).stdout
    lcc.start()
    assert lcc.stop() == 0


def test_before_lcc_init_it_says_what_to_do(tmp_path):
    found = findings(House(tmp_path), status=1)
    assert found["database"][0] == "problem"
    assert "run `lcc init` there first" in found["database"][1]


def test_a_wrong_setting_is_one_problem(house):
    assert list(findings(house, "LCC_QUEUE_MAX=many", status=1)) == ["settings"]
    found = findings(house, "LCC_QUERY_BYTES=many", status=1)
    assert list(found) == ["settings"]
    assert "LCC_QUERY_BYTES" in found["settings"][1]
    assert "settings" in findings(house, "LCC_QUERY_BYTES=many", "LCC_APPS=-query")
    found = findings(house, "LCC_CONTENT_URL=s3://b", "LCC_APPS=-object_storage", status=1)
    assert list(found) == ["settings"]
    assert "object_storage, which LCC_APPS leaves out" in found["settings"][1]


def test_an_app_without_one_that_it_needs_is_one_line(house):
    assert "apps" not in findings(house)
    assert "apps" not in findings(house, "LCC_APPS=-exports -resourcesync")
    found = findings(house, "LCC_APPS=-exports")
    assert found["apps"] == (
        "warning",
        "resourcesync is left out: it needs exports, which LCC_APPS leaves out",
    )


def test_the_index_in_which_the_dashboard_searches_is_checked(house, tmp_path):
    path = tmp_path / "search.db"
    setting = f"LCC_SEARCH_INDEX={path}"
    assert "search index" not in findings(house)
    state, text = findings(house, setting, status=1)["search index"]
    assert (state, str(path) in text, "is not there" in text) == ("problem", True, True)
    house.lcc("export", "--format", "fts5", "-o", path)
    assert findings(house, setting)["search index"] == ("ok", f"{path} has changes up to 0 of 0")
    write_index(path, [], Position("another", 1, 5))
    assert "cursor of another LCC" in findings(house, setting, status=1)["search index"][1]


def test_each_redis_is_asked_and_no_password_is_told(house, redis_server):
    assert "redis" not in findings(house)
    for setting in ("LCC_WAKE_REDIS", "LCC_REDIS_URL"):
        assert findings(house, f"{setting}={URL}")["redis"] == ("ok", f"{setting}: it answers")
        for url in (
            f"redis://u:very-secret@127.0.0.1:{free_port()}/0",
            f"redis+sentinel://u:very-secret@127.0.0.1:{free_port()}/lcc",
            f"redis+cluster://u:very-secret@127.0.0.1:{free_port()}",
            "redis+sentinel://u:very-secret@127.0.0.1",
        ):
            state, text = findings(house, f"{setting}={url}", status=1)["redis"]
            assert (state, setting in text) == ("problem", True)
            assert "very-secret" not in text
            assert "<" not in text
    params = 'REDIS_PARAMS={"username": "nobody", "password": "very-secret"}'
    state, text = findings(house, f"LCC_REDIS_URL={URL}", params, status=1)["redis"]
    assert (state, "very-secret" in text) == ("problem", False)


def test_a_port_that_somebody_else_has_is_a_problem(house):
    with closing(socket.create_server(("127.0.0.1", 0))) as taken:
        port = taken.getsockname()[1]
        found = findings(house, f"LCC_UNS_ENDPOINTS=tcp:{port}:interface=127.0.0.1", status=1)
    assert found["port"] == (
        "problem",
        f"127.0.0.1:{port} is taken by another process, no UNS of this LCC runs",
    )


def test_a_uns_that_runs_and_does_not_answer_is_a_problem():
    finding = doctor.port("127.0.0.1", free_port(), expected=True)
    assert finding.state is State.PROBLEM
    assert "does not answer" in finding.text


def test_a_secret_that_others_may_read_is_a_problem(house, tmp_path):
    token = tmp_path / "token"
    token.write_text("secret")
    token.chmod(0o644)
    found = findings(house, f"LCC_FILES_TOKEN_FILE={token}", status=1)
    assert found["rights"] == ("problem", f"LCC_FILES_TOKEN_FILE: other users may read {token}: chmod o= it")
    token.chmod(0o600)
    assert findings(house, f"LCC_FILES_TOKEN_FILE={token}")["rights"][0] == "ok"


@pytest.mark.parametrize(("mode", "state"), [(0o750, State.OK), (0o755, State.WARNING)])
def test_a_folder_is_for_its_user_and_group_alone(tmp_path, mode, state):
    tmp_path.chmod(mode)
    assert [one.state for one in doctor.folders({"LCC_DATA_DIR": tmp_path})] == [state]


def test_a_folder_that_is_missing_is_a_problem(tmp_path):
    assert [one.state for one in doctor.folders({"A": tmp_path / "none"})] == [State.PROBLEM]


@pytest.mark.parametrize(
    ("days", "state"), [(-1, State.PROBLEM), (0, State.PROBLEM), (14, State.WARNING), (15, State.OK)]
)
def test_a_certificate_is_renewed_two_weeks_before_its_end(days, state):
    assert doctor.certificate("ssl:9000", days * 86_400.0, 0).state is state


def test_the_certificate_of_an_endpoint_is_read(house, tmp_path):
    folder = Authority().issue("127.0.0.1", ends=NOW + 40 * DAY).write(tmp_path / "tls")
    endpoint = f"ssl:{free_port()}:privateKey={folder}/key.pem:certKey={folder}/cert.pem"
    state, text = findings(house, f"LCC_UNS_ENDPOINTS={endpoint}:interface=127.0.0.1")["certificate"]
    assert (state, text.endswith("days")) == ("ok", True)
    (folder / "cert.pem").write_text("none")
    for setting in ("LCC_UNS_ENDPOINTS", "LCC_QUERY_ENDPOINTS"):
        found = findings(house, f"{setting}={endpoint}:interface=127.0.0.1", status=1)
        assert "no certificates in it" in found["certificate"][1]


def test_what_apps_check_is_checked_without_a_database_too(tmp_path):
    found = findings(House(tmp_path), "LCC_QUERY_ENDPOINTS=ssl:1:privateKey=missing", status=1)
    assert found["database"][0] == "problem"
    assert "missing" in found["certificate"][1]


def test_a_check_of_an_app_that_fails_is_a_problem_and_the_others_go_on(monkeypatch):
    def failing(config, store, settings):
        raise ConfigurationError("no such thing")
        yield

    def other(config, store, settings):
        yield Finding("other", State.OK, str(store))

    monkeypatch.setattr(Apps, "parts", lambda _self, kind: iter({"checks": [failing, other]}[kind]))
    found = list(command._of_apps(SimpleNamespace(config=Config(), settings=None), None))
    assert [(one.check, one.state, one.text) for one in found] == [
        ("apps", "problem", "no such thing"),
        ("other", "ok", "None"),
    ]


@pytest.mark.parametrize(("seconds", "state"), [(0, State.OK), (30, State.PROBLEM), (-30, State.PROBLEM)])
def test_the_clock_agrees_with_that_of_the_database(monkeypatch, seconds, state):
    monkeypatch.setattr(doctor, "_kernel_clock_is_adrift", lambda: False)
    monkeypatch.setattr(doctor.time, "time", lambda: 1_000_000.0 + seconds)
    assert [one.state for one in doctor.clock(1_000_000.0)] == [state]


def test_a_host_with_private_addresses_only_needs_consent():
    hosts = [("localhost", False), ("127.0.0.1", True)]
    warned, summary = doctor.names(hosts)
    assert (warned.state, "--allow-private" in warned.text) == (State.WARNING, True)
    assert summary == Finding("dns", State.OK, "2 of 2 hosts are found")


def test_when_no_host_is_found_the_resolver_is_the_problem(monkeypatch):
    def not_found(*_):
        raise socket.gaierror

    monkeypatch.setattr(doctor.socket, "getaddrinfo", not_found)
    (finding,) = doctor.names([("a.example", False), ("b.example", False)])
    assert finding.state is State.PROBLEM
    assert not list(doctor.names([]))


@pytest.mark.parametrize("store", ["sqlite", "mariadb", "postgresql"], indirect=True)
def test_the_database_says_how_it_flushes_and_what_time_it_has(store):
    database = store.describe()
    assert [doubt for doubt in database.doubts if "tcp_keepalive" not in doubt] == []
    if database.time is None:
        assert "synchronous=FULL" in database.what
        return
    assert abs(database.time - doctor.time.time()) < 60
    for expected in {
        "mysql": ("innodb_flush_log_at_trx_commit=1", "innodb_doublewrite=ON"),
        "postgresql": ("fsync=on", "synchronous_commit=on", "full_page_writes=on", "standbys=0"),
    }[store.engine.dialect.name]:
        assert expected in database.what


def test_roots_that_are_missing_since_names_are_those_of_uts_46_are_named_once():
    roots = tuple(map(Root.parse, ["http://strasse.example/a/", "http://bücher.example/"]))
    urls = [
        "relative", "http://straße.example/a/x", "http://STRAẞE.example/a/y", "http://straße.example/b/",
        "http://strasse.example/a/x", "http://bücher.example/x", "http://other.example/",
    ]  # fmt: skip
    (finding,) = doctor.former_names(7, roots, urls)
    assert (finding.check, finding.state) == ("names", State.WARNING)
    assert finding.text.startswith("provider 7: xn--strae-oqa.example was read as strasse.example before")
    assert "add the root http://xn--strae-oqa.example/a/" in finding.text
    assert finding.text.endswith("what is cached below http://strasse.example/a/ stays")
