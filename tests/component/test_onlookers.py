"""Who keeps documents on the way through Scrapy's engine, and that nobody else does."""

from types import SimpleNamespace
from typing import Any

import pytest
from scrapy import signals
from scrapy.extensions.corestats import CoreStats
from scrapy.settings import Settings
from scrapy.signalmanager import SignalManager

from lcc_scrapy import onlookers
from lcc_scrapy import signals as lcc_signals
from lcc_scrapy.settings import apply_to, has_scrapys_middlewares
from lcc_scrapy.spiders.lcc_push import LccPushSpider
from lcc_scrapy.spiders.lcc_spider import LinkSpider
from lcc_scrapy.spiders.trial import HopRecorder, TrialSpider

CONFIG: Any = SimpleNamespace(fetches=16, contact="", project_components=("all",), items_follow_document=True)


class TeamSpider(LccPushSpider):
    name = "team"


class OldSpider(LccPushSpider):
    user_agent = "old"


class Team:
    def process_request(self, request: object) -> None:
        pass

    def listen(self) -> None:
        pass


TEAM = f"{__name__}.Team"


@pytest.fixture(autouse=True)
def readers_of_debug(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Let nobody read DEBUG; pytest itself does."""
    readers: list[str] = []
    monkeypatch.setattr(onlookers.logs, "tells_of_pages", lambda: bool(readers))
    return readers


def crawler_of(spider: type[LccPushSpider] = LccPushSpider, **settings: object) -> Any:
    carried = Settings(settings)
    apply_to(carried, CONFIG, spider)
    return SimpleNamespace(settings=carried, signals=SignalManager(object()), stats=SimpleNamespace())


def reason(crawler: Any, spider: type[Any] = LccPushSpider) -> str:
    return onlookers.onlooker(crawler, spider.__new__(spider))


@pytest.mark.parametrize("spider", [LccPushSpider, LinkSpider])
def test_nobody_looks_on_in_a_plain_project(spider: type[Any]) -> None:
    crawler = crawler_of()
    CoreStats.from_crawler(crawler)
    assert reason(crawler, spider) == ""


def test_a_team_s_own_spider_looks_on() -> None:
    assert reason(crawler_of(TeamSpider), TeamSpider) == "spider team is TeamSpider"


@pytest.mark.parametrize("setting", ["DOWNLOADER_MIDDLEWARES", "SPIDER_MIDDLEWARES", "ITEM_PIPELINES"])
@pytest.mark.parametrize("component", [TEAM, Team])
def test_a_team_s_components_look_on_by_path_or_class(setting: str, component: object) -> None:
    assert reason(crawler_of(**{setting: {component: 500}})) == f"{setting} has {TEAM}"


def test_components_that_are_switched_off_do_not() -> None:
    assert reason(crawler_of(ITEM_PIPELINES={TEAM: None})) == ""


@pytest.mark.parametrize(
    "settings", [{"HTTPPROXY_ENABLED": True}, {"HTTPAUTH_USER": "u"}, {"HTTPAUTH_PASS": "p"}]
)
def test_scrapys_own_middlewares_are_kept_where_a_setting_needs_them(settings: dict[str, object]) -> None:
    crawler = crawler_of(**settings)
    assert "HTTPAUTH" in reason(crawler)
    assert has_scrapys_middlewares(crawler.settings)


@pytest.mark.parametrize(
    "signal",
    [
        signals.response_received,
        signals.item_scraped,
        signals.bytes_received,
        lcc_signals.lcc_document_stored,
    ],
)
def test_a_listener_to_single_pages_looks_on(signal: object) -> None:
    crawler, team = crawler_of(), Team()
    crawler.signals.connect(team.listen, signal)
    assert reason(crawler).startswith(f"{TEAM}.listen listens to ")


@pytest.mark.parametrize(
    "signal", [signals.spider_opened, signals.spider_closed, lcc_signals.lcc_set_accepted]
)
def test_a_listener_to_other_signals_does_not(signal: object) -> None:
    crawler, team = crawler_of(), Team()
    crawler.signals.connect(team.listen, signal)
    assert reason(crawler) == ""


def test_who_reads_debug_looks_on(readers_of_debug: list[str]) -> None:
    readers_of_debug.append("somebody")
    assert "LOG_LEVEL" in reason(crawler_of())


def test_the_recorder_of_a_trial_looks_on() -> None:
    crawler = crawler_of()
    crawler.settings.set("DOWNLOADER_MIDDLEWARES", {HopRecorder: 1000}, 100)
    assert "HopRecorder" in reason(crawler, TrialSpider)


def test_scrapys_middlewares_are_left_out_only_where_a_team_has_none_beside_them() -> None:
    assert not has_scrapys_middlewares(crawler_of().settings)
    assert not has_scrapys_middlewares(crawler_of(TeamSpider, ITEM_PIPELINES={TEAM: 1}).settings)
    assert has_scrapys_middlewares(crawler_of(DOWNLOADER_MIDDLEWARES={TEAM: 1}).settings)
    assert has_scrapys_middlewares(crawler_of(OldSpider).settings)
    assert not crawler_of().settings.getdict("SPIDER_MIDDLEWARES_BASE")
    assert crawler_of(SPIDER_MIDDLEWARES={TEAM: 1}).settings.getdict("SPIDER_MIDDLEWARES_BASE")
