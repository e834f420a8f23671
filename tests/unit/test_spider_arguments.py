"""Spider arguments: unknown ones are refused, and a team's spider declares its own."""

from types import SimpleNamespace
from typing import ClassVar

import pytest

from lcc_scrapy.spiders import LccSpider
from lcc_scrapy.spiders.arguments import arguments_of
from lcc_scrapy.spiders.lcc_push import LccPushSpider
from lcc_scrapy.spiders.lcc_spider import LinkSpider


class Plain(LccSpider):
    name = "plain"


class NamesThem(LccPushSpider):
    def __init__(self, shelf="", *, floor="1", **kwargs):
        super().__init__(**kwargs)
        self.shelf, self.floor = shelf, floor


class ListsThem(LinkSpider):
    arguments: ClassVar = ("colour",)
    colour = "red"


@pytest.mark.parametrize(
    ("spider", "given", "line"),
    [
        (LccPushSpider, {"stop_when_dun": "1"},
         "unknown argument stop_when_dun, did you mean stop_when_done? there are stop_when_done"),
        (LccPushSpider, {"nonsense": "1"}, "unknown argument nonsense: there are stop_when_done"),
        (LccPushSpider, {"stop_when_done": "maybe"}, "stop_when_done=maybe: expected 1 or 0"),
        (Plain, {"nonsense": "1"}, "unknown argument nonsense: there are none"),
        (LinkSpider, {"provider": "7", "evry": "6h"},
         "unknown argument evry, did you mean every? there are depth, directives, every, max_pages,"),
        (NamesThem, {"flour": "2"},
         "unknown argument flour, did you mean floor? there are floor, shelf, stop_when_done"),
        (ListsThem, {"provider": "7", "kwargs": "x"}, "unknown argument kwargs: there are colour, depth,"),
        (ListsThem, {"provider": "x", "colour": "blue"}, "provider=x: expected a whole number"),
    ],
)  # fmt: skip
def test_a_wrong_argument_ends_the_process_with_one_line_before_anything_is_built(
    spider, given, line, capsys
):
    with pytest.raises(SystemExit) as end:
        spider.from_crawler(SimpleNamespace(), **given)
    told = capsys.readouterr().err
    assert end.value.code == 2
    assert told.startswith(f"spider {spider.name}: {line}")
    assert told.count("\n") == 1


def test_arguments_that_a_spider_declares_reach_it():
    named = {"stop_when_done": "yes", "shelf": "A", "floor": "2"}
    NamesThem.check_arguments(named)
    made = NamesThem(**named)
    assert (made.shelf, made.floor, made.worker_options()) == ("A", "2", {"stop_when_done": True})
    ListsThem.check_arguments({"provider": "7", "colour": "blue"})
    assert ListsThem(provider="7", colour="blue").colour == "blue"
    assert ListsThem(provider="7").colour == "red"


def test_the_job_id_that_scrapyd_gives_is_no_mistake():
    LccPushSpider.check_arguments({"_job": "17"})
    LinkSpider.check_arguments({"provider": "7", "_job": "17"})
    assert LinkSpider(provider="7", _job="17")._job == "17"


def test_the_arguments_of_a_spider_are_those_of_all_its_classes():
    assert arguments_of(LccSpider) == frozenset()
    assert arguments_of(NamesThem) == {"stop_when_done", "shelf", "floor"}
    assert arguments_of(ListsThem) == arguments_of(LinkSpider) | {"colour"}
