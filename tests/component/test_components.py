"""Which components of a project the LCC's spiders take, and what is told of the others."""

import subprocess
import sys
from types import SimpleNamespace
from typing import Any

import pytest
from scrapy.settings import Settings

from lcc_scrapy.domain.turn_limits import TurnLimits
from lcc_scrapy.settings import apply_to, has_scrapys_middlewares, notices
from lcc_scrapy.spiders.lcc_push import LccPushSpider
from lcc_scrapy.spiders.lcc_spider import LinkSpider

HOLDERS = ("ITEM_PIPELINES", "DOWNLOADER_MIDDLEWARES", "SPIDER_MIDDLEWARES", "EXTENSIONS", "ADDONS")
TITLE, PRICE = "shop.parts.Title", "shop.parts.Price"
USER_AGENT = "scrapy.downloadermiddlewares.useragent.UserAgentMiddleware"
TELNET = "scrapy.extensions.telnet.TelnetConsole"
COOKIES = "scrapy.downloadermiddlewares.cookies.CookiesMiddleware"


class TeamSpider(LccPushSpider):
    name = "team"


class OldSpider(LccPushSpider):
    user_agent = "old"


class Part:
    pass


def carried(
    given: dict[str, Any],
    *let_in: str,
    spider: type[Any] = LccPushSpider,
    priority: str = "project",
) -> Settings:
    settings = Settings()
    for name, value in given.items():
        settings.set(name, value, priority)
    config: Any = SimpleNamespace(
        turns=TurnLimits(places=16),
        agent="lcc",
        contact="",
        project_components=let_in,
        items_follow_document=True,
    )
    apply_to(settings, config, spider)
    return settings


def told(settings: Settings, beginning: str) -> str:
    return next((one for one in notices(settings) if one.startswith(beginning)), "")


def holds(settings: Settings, holder: str, name: object = TITLE) -> bool:
    return name in settings.getdict(holder)


@pytest.mark.parametrize("spider", [LccPushSpider, LinkSpider])
@pytest.mark.parametrize("holder", HOLDERS)
def test_the_lcc_s_own_spiders_take_nothing_and_tell_what_was_left_out(
    holder: str, spider: type[Any]
) -> None:
    settings = carried({holder: {TITLE: 300}}, spider=spider)
    assert not holds(settings, holder)
    assert notices(settings) == [
        f"left out here: {holder} {TITLE}; LCC_PROJECT_COMPONENTS takes them in (their import paths, or all)"
    ]


@pytest.mark.parametrize("holder", HOLDERS)
def test_what_the_setting_names_is_let_in_and_nothing_else(holder: str) -> None:
    settings = carried({holder: {TITLE: 300, PRICE: 301}}, TITLE)
    assert (holds(settings, holder), holds(settings, holder, PRICE)) == (True, False)
    assert f"left out here: {holder} {PRICE};" in told(settings, "left out")


def test_a_component_that_is_given_as_a_class_is_named_by_its_path() -> None:
    given = {"ITEM_PIPELINES": {Part: 300}}
    assert holds(carried(given, f"{__name__}.Part"), "ITEM_PIPELINES", Part)
    assert f"ITEM_PIPELINES {__name__}.Part" in told(carried(given), "left out")


@pytest.mark.parametrize("holder", HOLDERS)
@pytest.mark.parametrize(
    ("spider", "let_in"), [(LccPushSpider, ["all"]), (TeamSpider, ["all"]), (TeamSpider, [])]
)
def test_all_are_let_in_where_the_setting_says_so_and_in_a_team_s_own_spiders(
    holder: str, spider: type[Any], let_in: list[str]
) -> None:
    settings = carried({holder: {TITLE: 300}}, *let_in, spider=spider)
    assert holds(settings, holder)
    assert notices(settings) == []


@pytest.mark.parametrize(("let_in", "taken"), [("none", False), (PRICE, False), (TITLE, True)])
def test_a_team_s_own_spider_takes_less_where_the_setting_says_so(let_in: str, taken: bool) -> None:
    settings = carried({"ITEM_PIPELINES": {TITLE: 300}}, let_in, spider=TeamSpider)
    assert holds(settings, "ITEM_PIPELINES") == taken


def test_what_the_command_line_gives_is_taken() -> None:
    given = {"ITEM_PIPELINES": f'{{"{TITLE}": 300}}', "FEEDS": '{"items.jsonl": {"format": "jsonlines"}}'}
    settings = carried(given, priority="cmdline")
    assert holds(settings, "ITEM_PIPELINES")
    assert "items.jsonl" in settings.getdict("FEEDS")
    assert notices(settings) == []


@pytest.mark.parametrize(("let_in", "there"), [("", False), (TITLE, False), ("FEEDS", True), ("all", True)])
def test_feeds_are_let_in_by_their_name(let_in: str, there: bool) -> None:
    settings = carried({"FEEDS": {"items.jsonl": {"format": "jsonlines"}}}, *filter(None, [let_in]))
    assert ("items.jsonl" in settings.getdict("FEEDS")) == there
    assert ("FEEDS" in told(settings, "left out")) == (not there)


@pytest.mark.parametrize(("let_in", "there"), [([], False), ([TITLE, USER_AGENT], True)])
def test_scrapy_s_own_middlewares_are_off_only_where_that_is_let_in(let_in: list[str], there: bool) -> None:
    """Without it, a middleware that is let in would be alone, and requests without a User-Agent."""
    settings = carried({"DOWNLOADER_MIDDLEWARES": {USER_AGENT: None, TITLE: 400}}, *let_in)
    assert holds(settings, "DOWNLOADER_MIDDLEWARES", USER_AGENT) == there
    assert USER_AGENT not in told(settings, "left out")


def test_scrapy_s_own_extensions_are_as_the_project_has_them() -> None:
    stats = "scrapy.extensions.logstats.LogStats"
    settings = carried({"EXTENSIONS": {stats: None, TELNET: None}})
    assert settings.getdict("EXTENSIONS")[stats] is None
    assert notices(settings) == []


@pytest.mark.parametrize(("holder", "name"), [("EXTENSIONS", TELNET), ("DOWNLOADER_MIDDLEWARES", COOKIES)])
@pytest.mark.parametrize("given", [{}, {USER_AGENT: 1}, {"itself": 5}])
def test_what_is_taken_out_of_scrapy_s_own_stays_out(holder: str, name: str, given: dict[str, int]) -> None:
    settings = carried({holder: {name if one == "itself" else one: at for one, at in given.items()}}, "all")
    in_use = settings.get_component_priority_dict_with_base(holder)
    assert name not in in_use
    assert all(one in in_use for one in given if one != "itself")


def test_what_is_taken_out_of_scrapy_s_own_is_not_imported() -> None:
    program = """\
import sys
from tests.component.test_components import carried
settings = carried({"EXTENSIONS": {"shop.parts.Title": 1}})
for holder in ("EXTENSIONS", "DOWNLOADER_MIDDLEWARES", "SPIDER_MIDDLEWARES"):
    settings.get_component_priority_dict_with_base(holder)
print(*{"aiohttp", "tldextract", "scrapy.extensions.telnet"} & set(sys.modules))
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.split() == []


def test_a_name_that_the_project_does_not_have_is_told() -> None:
    settings = carried({"ITEM_PIPELINES": {TITLE: 300}}, TITLE, "shop.parts.Titel")
    assert notices(settings) == [
        "LCC_PROJECT_COMPONENTS names what this project does not have: shop.parts.Titel"
    ]


@pytest.mark.parametrize(
    "given", [{"HTTPPROXY_ENABLED": True}, {"HTTPAUTH_USER": "u"}, {"HTTPAUTH_PASS": "p"}]
)
def test_scrapy_s_own_middlewares_stay_where_a_setting_needs_them(given: dict[str, Any]) -> None:
    assert has_scrapys_middlewares(carried(given))


def test_scrapy_s_own_middlewares_are_left_out_only_where_a_team_has_none_beside_them() -> None:
    assert not has_scrapys_middlewares(carried({}))
    assert not has_scrapys_middlewares(carried({"ITEM_PIPELINES": {TITLE: 1}}, spider=TeamSpider))
    assert has_scrapys_middlewares(carried({"DOWNLOADER_MIDDLEWARES": {TITLE: 1}}, "all"))
    assert has_scrapys_middlewares(carried({}, spider=OldSpider))
    assert not carried({}).getdict("SPIDER_MIDDLEWARES_BASE")
    assert carried({"SPIDER_MIDDLEWARES": {TITLE: 1}}, "all").getdict("SPIDER_MIDDLEWARES_BASE")


# --- settings without effect ---------------------------------------------------------------------


def test_settings_without_effect_are_told_by_their_reason() -> None:
    settings = carried({"AUTOTHROTTLE_ENABLED": True, "DOWNLOAD_DELAY": 3, "JOBDIR": "job"})
    limits = "each provider has limits of its own (`lcc provider set`, LCC_FETCHES)"
    queue = "the queue is kept in the LCC's database"
    expected = f"AUTOTHROTTLE_ENABLED, DOWNLOAD_DELAY, because {limits}; JOBDIR, because {queue}"
    assert notices(settings) == [f"ignored here: {expected}"]


@pytest.mark.parametrize(
    ("name", "value"),
    [("DOWNLOAD_DELAY", "0"), ("HTTPCACHE_ENABLED", "False"), ("RETRY_TIMES", 2), ("JOBDIR", None)],
)
def test_what_holds_anyway_is_not_told(name: str, value: object) -> None:
    assert notices(carried({name: value})) == []


@pytest.mark.parametrize("priority", ["project", "spider", "cmdline"])
def test_it_is_told_wherever_it_was_said(priority: str) -> None:
    assert "HTTPCACHE_ENABLED" in told(carried({"HTTPCACHE_ENABLED": "1"}, priority=priority), "ignored")


@pytest.mark.parametrize("name", ["AUTOTHROTTLE_ENABLED", "HTTPCACHE_ENABLED"])
def test_what_is_ignored_is_off_so_that_scrapy_does_not_claim_it_on(name: str) -> None:
    assert carried({name: True}, priority="cmdline").getbool(name) is False
