"""What ``bench/crawl.py`` makes of logs and samples: nothing is run here."""

import sys
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from xml.etree import ElementTree as ET

import pytest
from scrapy.http import HtmlResponse


@pytest.fixture(scope="module")
def bench():
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(Path(__file__).parents[2] / "bench")
        import crawl
        from crawling import counts, own_code, plot, running, site, tables, variants
    return SimpleNamespace(
        crawl=crawl, counts=counts, own_code=own_code, plot=plot, running=running, site=site, tables=tables,
        variants=variants,
    )  # fmt: skip


@pytest.fixture
def did(bench):
    return lambda rate, cpu=1.0: bench.running.Measured(rate, cpu, 100.0, 0.1, 1000, 0)


def line(at, path, status=200):
    return f"{at:.3f} {status} {path}\n".encode()


def served(bench, *lines):
    made = bench.running.Served()
    made.read(b"".join(lines))
    return made


def test_pages_and_robots_are_told_apart_and_errors_are_no_pages(bench):
    log = [line(1, "/robots.txt"), line(3, "/b", 304), line(2, "/a"), line(4, "/c", 500)]
    assert served(bench, *log) == bench.running.Served(pages=2, unchanged=1, robots=1)


def test_the_log_is_read_in_whatever_portions_it_comes(bench):
    made = bench.running.Served()
    for portion in (b"1.000 200 ", b"/a\n2.0", b"00 200 /b\n", b""):
        made.read(portion)
    assert made.pages == 2


def test_measuring_begins_when_every_host_was_asked_for_its_robots_txt(bench):
    robots, pages = line(1, "/robots.txt"), [line(2, "/a")] * 30
    assert not served(bench, robots, *pages).has(20, hosts=2, total=100)
    assert served(bench, robots, robots, *pages).has(20, hosts=2, total=100)
    assert not served(bench, robots, robots, *pages).has(31, hosts=2, total=100)


def test_who_asks_for_no_robots_txt_is_measured_from_the_middle(bench):
    assert served(bench, *[line(2, "/a")] * 30).has(20, hosts=2, total=60)


def test_what_is_done_between_two_marks_is_measured(bench):
    mark, sample = bench.running.Mark, bench.running.Sample
    begun, ended = mark(200, sample(10.0, 3.0, 40.0)), mark(700, sample(15.0, 7.0, 41.0))
    found = bench.running.measured(begun, ended, 90_000_000, bench.running.Served(1000, 3))
    assert found == bench.running.Measured(100.0, 8.0, 90.0, 0.2, 1000, 3)


def test_nothing_done_between_two_marks_cannot_be_measured(bench):
    mark = bench.running.Mark(200, bench.running.Sample(10.0, 3.0, 40.0))
    with pytest.raises(bench.running.Failed, match="too few"):
        bench.running.measured(mark, mark, 1, bench.running.Served(200))


def given(bench, monkeypatch, *words):
    monkeypatch.setattr(sys, "argv", ["crawl.py", *words])
    return bench.crawl.options()


def test_the_quick_form_has_a_row_for_every_crawler(bench, did, monkeypatch):
    quick, usual = given(bench, monkeypatch, "--quick"), bench.crawl.USUAL
    chosen = [one.name for one in bench.crawl.chosen(quick, usual)]
    assert chosen == [one.name for one in bench.variants.VARIANTS]
    assert usual in bench.crawl.compared(quick)
    rows = bench.tables.crawlers({name: [did(100)] for name in chosen}, bench.crawl.TITLES)
    assert [row[0] for row in rows] == [bench.crawl.TITLES[name] for name in chosen]
    assert {len(row) for row in rows} == {len(bench.tables.HEADINGS)}
    empty = bench.tables.crawlers({"redis": []}, bench.crawl.TITLES)
    assert {len(row) for row in empty} == {len(bench.tables.HEADINGS)}


def test_conditions_and_crawlers_that_are_asked_for_are_all_that_is_measured(bench, monkeypatch):
    words = ("--providers", "8", "64", "--sizes", "200000", "--only", "tuned", "lcc-2", "--rounds", "2")
    asked, cell = given(bench, monkeypatch, *words), bench.crawl.Cell
    assert bench.crawl.compared(asked) == [cell(8, 200_000), cell(64, 200_000)]
    assert [one.name for one in bench.crawl.chosen(asked, cell(8, 200_000))] == ["tuned", "lcc-2"]
    assert bench.crawl.rounds(asked) == 2
    assert bench.crawl.compared(given(bench, monkeypatch, "--providers", "1")) == [cell(1, 8000)]


def test_every_crawler_of_one_process_runs_with_own_code_too(bench):
    names = {one.name for one in bench.variants.VARIANTS}
    alone = {name for name in names if not name.endswith(("-2", "-own"))}
    assert alone == {"scrapy", "tuned", "jobdir", "redis", "lcc-sqlite", "lcc-mariadb"}
    assert {name for name in names if name.endswith("-own")} == {f"{name}-own" for name in alone}
    for name in ("scrapy", "lcc-sqlite"):
        assert bench.variants.BY_NAME[f"{name}-own"].missing is bench.variants.BY_NAME[name].missing


def test_a_run_whose_own_pipeline_missed_a_page_has_failed(bench, tmp_path):
    job = bench.variants.Job(None, tmp_path, providers=2, size=8000, pages=20)
    (tmp_path / "titles-11").write_text("12")
    (tmp_path / "passages-11").write_text("19")
    with pytest.raises(bench.running.Failed, match="12 of 20"):
        job.expect_own_code()
    (tmp_path / "titles-12").write_text("8")
    job.expect_own_code()
    with pytest.raises(bench.running.Failed, match=r"95\.000%"):
        job.expect_passages()
    (tmp_path / "passages-12").write_text("1")
    job.expect_passages()


def test_a_run_that_fails_is_named_and_the_others_go_on(bench, tmp_path):
    def prepare(job):
        raise ConnectionError("no server") if job.folder.name == "0001-a" else bench.running.Failed("no page")

    variants = [bench.variants.Variant(name, name, 100, prepare) for name in ("a", "b")]
    made = bench.crawl.Bench(tmp_path, None, ExitStack())
    cell = bench.crawl.Cell(1, 8000)
    made.compare(cell, variants, rounds=1)
    assert made.failures == [f"a, {cell}: ConnectionError: no server", f"b, {cell}: no page"]
    assert bench.tables.crawlers(made.runs[cell], {"a": "A", "b": "B"})[1][-1] == "0"


async def test_the_own_pipeline_counts_the_titles_of_the_bench_s_pages_only(bench, tmp_path, monkeypatch):
    page = HtmlResponse("http://a/", body=bench.site.document(8000))
    pipeline = bench.own_code.TitlePipeline()
    for item in (bench.own_code.title_of(page), {"title": "Another page"}, object()):
        assert await pipeline.process_item(item) is item
    monkeypatch.chdir(tmp_path)
    pipeline.close_spider()
    assert bench.counts.total(tmp_path, bench.counts.TITLES) == 1
    assert bench.counts.total(tmp_path, bench.counts.PASSAGES) == 0


def test_the_share_of_pages_through_the_pipeline_is_told_of_all_rounds(bench, did):
    def through(*shares):
        runs = [replace(did(100), through=one) for one in shares]
        return bench.tables.crawlers({"lcc-sqlite": runs}, bench.crawl.TITLES)[0][-2]

    assert [through(None), through(0.0, 0.0), through(1.0, 1.0)] == ["-", "0 %", "100 %"]
    assert through(1.0, 0.0, 1.0) == "0 %-100 %"
    assert through(15_999 / 16_000) == "99.994 %"


def test_own_code_is_compared_with_the_same_own_code(bench, did):
    runs = {"scrapy": [did(400)], "scrapy-own": [did(100)], "lcc-sqlite-own": [did(300)]}
    assert [row[3] for row in bench.tables.crawlers(runs, bench.crawl.TITLES)] == ["1.00", "1.00", "3.00"]
    assert [row[:4] for row in bench.tables.targets(runs, bench.crawl.TITLES)] == [
        (bench.crawl.TITLES["scrapy-own"], "3.00", "3.00-3.00", "6")
    ]


def test_two_processes_are_compared_with_two(bench, did):
    runs = {"scrapy": [did(100)], "scrapy-2": [did(200)], "lcc-2": [did(900)], "redis": []}
    rows = bench.tables.crawlers(runs, bench.crawl.TITLES)
    assert [row[3] for row in rows] == ["1.00", "1.00", "4.50", "-"]
    assert [row[-1] for row in rows] == ["1", "1", "1", "0"]


def test_targets_are_ratios_of_medians_with_the_range_of_the_rounds(bench, did):
    runs = {"scrapy": [did(100), did(200), did(50)], "lcc-sqlite": [did(500, 0.5), did(600), did(700, 0.1)]}
    assert bench.tables.targets(runs, bench.crawl.TITLES) == [
        (bench.crawl.TITLES["scrapy"], "6.00", "3.00-14.00", "8", "2.00", "1.00-10.00")
    ]


def test_each_number_of_providers_has_its_own_aim(bench, did):
    runs = {"scrapy": [did(100)], "tuned": [did(200)], "lcc-sqlite": [did(600)]}
    for providers, least in ((1, "4"), (8, "7"), (1000, "6"), (10_000, "5")):
        found = bench.tables.targets(runs, bench.crawl.TITLES, bench.tables.aims_with(providers))
        assert [(row[1], row[3]) for row in found] == [("6.00", least), ("3.00", "-")]
        assert bench.crawl.Cell(providers, 8000) in bench.crawl.CELLS


def test_memory_and_the_disk_s_rate_have_aims(bench, did, tmp_path):
    made, large = bench.crawl.Bench(tmp_path, None, ExitStack()), bench.crawl.Cell(64, 200_000)
    made.runs = {bench.crawl.USUAL: {"lcc-sqlite": [did(100)]}, large: {"lcc-sqlite": [did(100), did(300)]}}
    made.written = {large: [200.0, 300.0]}
    (memory,) = bench.crawl.aims(made, bench.crawl.USUAL)
    assert memory[1:4] == ("100", "100-100", "at most 200")
    (disk,) = bench.crawl.aims(made, large)
    assert disk[1:4] == ("0.80", "0.50-1.00", "0.8")
    made.written[large].pop()
    assert bench.crawl.aims(made, large) == []


def test_what_dd_writes_is_gone_afterwards(bench, tmp_path):
    assert bench.crawl.written_by_dd(tmp_path, 1000, amount=2_000_000) > 0
    assert not list(tmp_path.iterdir())


def test_a_run_has_pages_by_what_its_crawler_did_before_also_under_other_conditions(bench, did, tmp_path):
    made, cell = bench.crawl.Bench(tmp_path, None, ExitStack()), bench.crawl.Cell
    scrapy = bench.variants.BY_NAME["scrapy"]
    made.runs = {
        cell(64, 8000): {"scrapy": [did(233)]},
        cell(8, 8000): {"scrapy": []},
        cell(10_000, 8000): {},
    }
    made.runs[cell(10_000, 8000)]["scrapy"] = []
    assert made._pages(cell(8, 8000), scrapy) == 8 * round(233 * 6 / 8)
    assert made._pages(cell(10_000, 8000), scrapy) == 20_000
    made.runs[cell(8, 8000)]["scrapy"] = [did(400)]
    assert made._pages(cell(8, 8000), scrapy) == 2400


def test_what_failed_in_a_round_is_not_compared(bench, did):
    runs = {"scrapy": [did(100)], "lcc-sqlite": [did(500), did(600)]}
    assert bench.tables.targets(runs, bench.crawl.TITLES) == []
    assert bench.tables.crawlers(runs, bench.crawl.TITLES)[1][3] == "-"


def test_tables_are_lined_up_in_plain_text_and_in_markdown(bench):
    assert bench.tables.plain(("a", "n"), [("long", "1"), ("b", "10")]) == "a      n\nlong   1\nb     10"
    assert bench.tables.markdown(("a", "n"), [("b", "1")]) == "| a | n |\n| --- | ---: |\n| b | 1 |"


def test_every_provider_has_a_host_of_this_machine(bench):
    roots = [bench.site.Site.root_at("80", pid) for pid in range(1, 10_001)]
    assert len(set(roots)) == 10_000
    hosts = [root.removeprefix("http://").removesuffix(":80/").split(".") for root in roots]
    assert all(host[0] == "127" and 0 < int(host[3]) < 255 for host in hosts)


def test_a_page_is_as_large_as_it_should_be(bench):
    assert [len(bench.site.document(size)) for size in (8_000, 200_000)] == [8_000, 200_000]


def test_the_chart_is_xml_with_a_bar_for_each_crawler(bench, did):
    made = SimpleNamespace(
        runs={bench.crawl.Cell(64, 8000): {"scrapy": [did(1)], "lcc-sqlite": [did(6)], "redis": []}}
    )
    texts = [
        one.text for one in ET.fromstring(bench.crawl.drawn(made)).iter("{http://www.w3.org/2000/svg}text")
    ]
    assert texts[1:] == ["64 providers, pages of 8 KB", "scrapy", "1.00", "lcc-sqlite", "6.00"]
