"""A source that meets a defect waits as any other that failed."""

import asyncio
from concurrent.futures import ThreadPoolExecutor

import pytest

from lcc_scrapy.apps.sources.rules import Kind, Report, Source
from lcc_scrapy.apps.sources.runner import Runner


class Registry:
    def __init__(self):
        self.noted = []

    def failed(self, source, why, report, now, retry_after):
        self.noted.append((source.sourceid, why, now, retry_after))


async def at_once(work, *args):
    return work(*args)


class Defect:
    source = Source(3, 7, Kind.SITEMAP, "http://www.example.org/sitemap.xml", 60, 0)
    report = Report()
    lost = False

    async def run(self):
        raise KeyError("a word that nobody thought of")


def test_a_defect_is_noted_as_a_failure_of_its_source(monkeypatch):
    registry = Registry()
    runner = Runner(registry, at_once, None, None, None, now=lambda: 1000.0)
    monkeypatch.setattr(Runner, "made", lambda *_: Defect())
    with pytest.raises(KeyError), ThreadPoolExecutor(1) as other:  # this thread has a loop that runs
        other.submit(asyncio.run, runner.run(Defect.source)).result()
    assert registry.noted == [(3, "an error inside this LCC: KeyError", 1000, 0.0)]
