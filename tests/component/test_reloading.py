"""SIGHUP, without the signal: what is read again, what takes effect, what stays when something is broken."""

import logging
import os
import sys
from dataclasses import replace

import pytest
import pytest_twisted
from scrapy.settings import BaseSettings, Settings
from twisted.internet.defer import fail, succeed

from lcc_scrapy.apps.query.settings import QuerySettings
from lcc_scrapy.config import reloading
from lcc_scrapy.config.config import SETTINGS, Renewal, load, renew
from lcc_scrapy.config.reloading import Reloader, renewed, settings_of_now, summary
from lcc_scrapy.domain.errors import ConfigurationError
from lcc_scrapy.domain.turn_limits import TurnLimits


def configured(**values):
    return load(BaseSettings({"LCC_DATA_DIR": "/srv/lcc", **values}, priority="project"), {})


# --- what changes --------------------------------------------------------------------------------


def test_what_is_live_changes_and_the_rest_waits_for_a_restart():
    old = configured()
    new = configured(LCC_BANDWIDTH="200k", LCC_FETCHES="8", LCC_DATABASE_URL="sqlite:////other")
    renewal = renew(old, new)
    assert renewal.config == replace(old, turns=replace(old.turns, bandwidth=200_000))
    assert renewal.changed == ("LCC_BANDWIDTH",)
    assert renewal.waiting == ("LCC_DATABASE_URL", "LCC_FETCHES")


def test_settings_of_apps_change_too_and_those_that_several_have_are_named_once():
    old, new = configured(), configured(LCC_POLL="7s", LCC_QUERY_BYTES="10", LCC_QUERY_THREADS="9")
    before = old.of(QuerySettings)
    renewal = renew(old, new)
    limits = replace(before.limits, poll_seconds=7, query_bytes=10)
    assert renewal.config.of(QuerySettings) == replace(before, limits=limits)
    assert renewal.changed == ("LCC_POLL", "LCC_QUERY_BYTES")
    assert renewal.waiting == ("LCC_QUERY_THREADS",)


def test_where_things_are_never_changes_under_a_running_process():
    names = {one.name for one in SETTINGS if not one.live}
    assert names >= {
        "LCC_DATA_DIR",
        "LCC_DATABASE_URL",
        "LCC_CONTENT_DIR",
        "LCC_SPOOL_DIR",
        "LCC_UNS_ENDPOINTS",
    }


@pytest.mark.parametrize(
    ("renewal", "said"),
    [
        (Renewal(configured(), (), ()), "nothing changed"),
        (Renewal(configured(), ("LCC_A", "LCC_B"), ()), "LCC_A, LCC_B changed"),
        (Renewal(configured(), (), ("LCC_C",)), "LCC_C changed, too, but not before a restart"),
        (
            Renewal(configured(), ("LCC_A",), ("LCC_C",)),
            "LCC_A changed; LCC_C changed, too, but not before a restart",
        ),
    ],
)
def test_one_line_says_what_became_of_it(renewal, said):
    assert summary(renewal) == said


def test_the_command_line_and_a_spiders_own_settings_go_on_before_the_file():
    running = Settings()
    running.set("LCC_WINDOW", "1", "project")
    running.set("LCC_POLL", "1", "spider")
    running.set("LCC_REDIRECTS", "1", "cmdline")
    running.set("LCC_BANDWIDTH", "1", "project")
    fresh = {"LCC_WINDOW": 2, "LCC_POLL": 2, "LCC_REDIRECTS": 2, "LCC_DATA_DIR": "/srv/lcc"}
    found = load(renewed(running, fresh), {"LCC_REDIRECTS": "3"})
    assert (found.turns.window, found.poll, found.redirects) == (2, 1, 1)
    assert found.turns.bandwidth == 0, "what left the file has its default again"


# --- the file ------------------------------------------------------------------------------------


@pytest.fixture
def project(tmp_path, monkeypatch):
    """Return what writes the settings file of a project, which this process knew with other values."""
    monkeypatch.setenv("SCRAPY_SETTINGS_MODULE", "some_settings")
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])
    monkeypatch.chdir(tmp_path)
    (tmp_path / "some_more.py").write_text("LCC_POLL = 9\n")

    def write(text):
        (tmp_path / "some_settings.py").write_text(text)

    return write


def test_the_file_is_read_as_it_is_now_with_all_that_it_imports(project):
    project("from some_more import *\nprint('hello')\nLCC_WINDOW = 5\nLCC_MIMETYPES = ['a/b']\nOTHER = 1\n")
    assert settings_of_now() == {"LCC_POLL": 9, "LCC_WINDOW": 5, "LCC_MIMETYPES": ["a/b"]}
    assert "some_settings" not in sys.modules


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("LCC_POLL = (", "was never closed"),
        ("import no_such_module", "No module named 'no_such_module'"),
        ("1 / 0", "ZeroDivisionError"),
        ("import sys; sys.exit(3)", "status 3"),
    ],
)
def test_a_broken_file_is_one_line(project, text, said):
    project(text)
    with pytest.raises(ConfigurationError, match="the settings file cannot be read") as raised:
        settings_of_now()
    assert said in str(raised.value)
    assert "\n" not in str(raised.value)


def test_a_file_without_end_is_not_waited_for(project, monkeypatch):
    monkeypatch.setattr(reloading, "PATIENCE", 0.2)
    project("import time; time.sleep(60)")
    with pytest.raises(ConfigurationError, match=r"not read within 0\.2 s"):
        settings_of_now()


# --- the run of things ---------------------------------------------------------------------------


class Target:
    def __init__(self):
        self.config = configured()
        self.certificates = lambda: succeed(1)
        self.applied = []

    def apply(self, config):
        self.config = config
        self.applied.append(config)

    def renew_certificates(self):
        return self.certificates()


@pytest.fixture
def world(monkeypatch, caplog):
    from twisted.internet import reactor

    caplog.set_level(logging.INFO)
    for name in [name for name in os.environ if name.startswith("LCC_")]:
        monkeypatch.delenv(name)
    target = Target()
    fresh = {"LCC_DATA_DIR": "/srv/lcc"}
    monkeypatch.setattr(reloading, "settings_of_now", lambda: dict(fresh))
    return Reloader(reactor, BaseSettings(), target), target, fresh


@pytest_twisted.inlineCallbacks
def until(condition):
    from twisted.internet import reactor, task

    for _ in range(1000):
        if condition():
            return
        yield task.deferLater(reactor, 0.01)
    pytest.fail("it did not come to that")


@pytest_twisted.inlineCallbacks
def test_settings_and_certificates_are_read_and_the_log_says_so(world, caplog):
    reloader, target, fresh = world
    fresh.update(LCC_BANDWIDTH="1k", LCC_FETCHES="3", LCC_TYPO="1")
    reloader.reload()
    yield until(lambda: not reloader._running)
    assert target.config == replace(configured(), turns=TurnLimits(bandwidth=1000))
    assert caplog.messages == [
        "SIGHUP: settings read again: LCC_BANDWIDTH changed; LCC_FETCHES changed, too, but not before a restart",
        "unknown setting LCC_TYPO",
        "SIGHUP: certificates read again: 1",
    ]


@pytest_twisted.inlineCallbacks
def test_a_value_that_makes_no_sense_changes_nothing_but_certificates_are_read_all_the_same(world, caplog):
    reloader, target, fresh = world
    fresh.update(LCC_BANDWIDTH="fast", LCC_WINDOW="5")
    reloader.reload()
    yield until(lambda: not reloader._running)
    assert target.applied == []
    assert caplog.messages == [
        "SIGHUP: the old settings stay in use: LCC_BANDWIDTH: 'fast', expected for example 200k, 10M or 2G",
        "SIGHUP: certificates read again: 1",
    ]


@pytest_twisted.inlineCallbacks
def test_broken_certificates_keep_no_setting_from_changing(world, caplog):
    reloader, target, fresh = world
    fresh.update(LCC_WINDOW="5")
    target.certificates = lambda: fail(ConfigurationError("the old certificates stay in use: key.pem: gone"))
    reloader.reload()
    yield until(lambda: not reloader._running)
    assert target.config.turns.window == 5
    assert caplog.messages[-1] == "SIGHUP: the old certificates stay in use: key.pem: gone"


@pytest_twisted.inlineCallbacks
def test_a_second_signal_meanwhile_makes_one_more_round(world):
    reloader, target, _ = world
    for _ in range(5):
        reloader.reload()
    yield until(lambda: not reloader._running)
    assert len(target.applied) == 2


@pytest_twisted.inlineCallbacks
def test_at_the_end_nothing_is_read_any_more(world):
    reloader, target, _ = world
    reloader.stop()
    reloader.reload()
    yield until(lambda: not reloader._running)
    assert target.applied == []


def test_the_signal_goes_back_to_who_had_it(world):
    import signal

    before = signal.getsignal(signal.SIGHUP)
    reloader, _, _ = world
    reloader.install()
    assert signal.getsignal(signal.SIGHUP) == reloader._signalled
    reloader.restore()
    assert signal.getsignal(signal.SIGHUP) == before
