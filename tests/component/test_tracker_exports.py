"""The folder of exports: what is kept current in it, what is removed, and how soon a process can end."""

import asyncio
import logging
from concurrent.futures import ThreadPoolExecutor

import pytest

from lcc_scrapy.apps.tracker import exchange, exporting
from lcc_scrapy.apps.tracker.exchange import BadExchange, Manifest, export
from lcc_scrapy.apps.tracker.exporting import Exporter, Exports
from lcc_scrapy.machine.sole_process import SoleProcess
from tests.exchanges import OTHER, B, exported
from tests.mirrors import NOW, Tracker, tree_of
from tests.sqlite_store import sqlite_store

TREE = tree_of("a/f 1\nb/g 2")


@pytest.fixture
def exports(tmp_path):
    tracker = Tracker(sqlite_store())
    for domain in ("de", "fr", "org"):
        tracker.load(f"ftp://ftp.example.{domain}/", TREE, domain)
    tracker.registry.add_domain("uk", NOW, "https://tracker.example.org/")
    return Exports(tracker.store, tmp_path / "exports")


def names(exports):
    return {one.name for one in exports.folder.iterdir()}


def files(domain, generation):
    return {
        f"{domain}.json",
        *(f"{domain}-{generation}.{kind}.gz" for kind in ("digests", "links", "contents")),
    }


KEPT = {"exports.lock", "README", "de.txt", "x.new", "UK.json"}
LEFT = {
    "uk.json", "uk-7.digests.gz", "it-7.links.gz", "it-7.links.gz.new", "it.json.new", "it.json",
    "de-1.contents.gz.new", "de-9.contents.gz.new", "de.json.new",
}  # fmt: skip


def test_no_file_of_another_domain_stays_and_nothing_that_a_kill_left(exports):
    exports.folder.mkdir()
    for name in KEPT | LEFT:
        (exports.folder / name).write_text("{")
    assert [one.domain for one in exports.bring_up_to_date(NOW)] == ["de", "fr", "org"]
    assert names(exports) == KEPT | files("de", 1) | files("fr", 1) | files("org", 1)
    Tracker(exports.store).registry.remove_domain("fr")
    assert exports.bring_up_to_date(NOW) == []
    assert names(exports) == KEPT | files("de", 1) | files("org", 1)


def test_files_of_a_removed_domain_go_without_their_manifest(exports):
    exports.bring_up_to_date(NOW)
    (exports.folder / "fr.json").unlink()
    Tracker(exports.store).registry.remove_domain("fr")
    exports.bring_up_to_date(NOW)
    assert names(exports) == {"exports.lock"} | files("de", 1) | files("org", 1)


def test_nothing_is_written_or_removed_while_another_process_exports(exports):
    exports.folder.mkdir()
    (exports.folder / "it.json").write_text("{")
    other = SoleProcess(exports.folder, "exports")
    assert other.take()
    assert (exports.bring_up_to_date(NOW), exports.bring("de", NOW)) == ([], None)
    assert names(exports) == {"exports.lock", "it.json"}
    other.release()
    assert exports.bring("de", NOW).domain == "de"


def test_a_domain_that_cannot_be_exported_keeps_no_other_from_it(exports, monkeypatch, caplog):
    def export(store, domain, folder, now):
        if domain == "de":
            raise exporting.BadExchange("the servers of de change all the time")
        return domain

    monkeypatch.setattr(exporting, "export", export)
    with caplog.at_level(logging.WARNING):
        assert exports.bring_up_to_date(NOW) == ["fr", "org"]
    assert "export: the servers of de change all the time" in caplog.text


def test_who_ends_an_exporter_waits_for_one_domain_at_most(exports):
    told = []

    async def scene():
        async def work(job, *args):
            found = job(*args)
            if args:
                task.cancel()  # a signal comes while the first domain is exported
            await asyncio.sleep(0)
            return found

        task = asyncio.ensure_future(Exporter(exports, work, 1.0, lambda: NOW, told.append).once())
        with pytest.raises(asyncio.CancelledError):
            await task

    with ThreadPoolExecutor(1) as apart:
        apart.submit(asyncio.run, scene()).result()
    assert names(exports) == {"exports.lock"} | files("de", 1)


# --- one domain ------------------------------------------------------------------------------------


@pytest.fixture
def theirs(tmp_path):
    return exported(tmp_path)


def test_an_export_has_the_same_bytes_again_and_keeps_the_generation_before(theirs):
    names = {one.name: one.read_bytes() for one in theirs.folder.iterdir()}
    assert export(theirs.store, "de", theirs.folder, NOW).directories == 9
    assert {one.name: one.read_bytes() for one in theirs.folder.iterdir()} == names
    for _ in range(3):
        theirs.load(B, OTHER, "de")
        export(theirs.store, "de", theirs.folder, NOW)
    kept = {"de-4", "de-5"}
    assert {one.name.split(".")[0] for one in theirs.folder.iterdir()} - {"de"} == kept


def test_a_domain_that_changes_all_the_time_is_not_exported(theirs, monkeypatch):
    write = exchange._write_files

    def changing(store, hosts, files):
        write(store, hosts, files)
        theirs.load(B, OTHER, "de")

    monkeypatch.setattr(exchange, "_write_files", changing)
    with pytest.raises(BadExchange, match="change all the time"):
        export(theirs.store, "de", theirs.folder, NOW)


def test_a_domain_with_too_many_directories_is_not_exported(theirs, monkeypatch):
    monkeypatch.setattr(exchange, "ALL_DIRECTORIES", 8)
    before = sorted(theirs.folder.iterdir())
    with pytest.raises(BadExchange, match="domain de has more than 8 directories"):
        export(theirs.store, "de", theirs.folder, NOW)
    assert sorted(theirs.folder.iterdir()) == before


def test_a_manifest_reads_as_it_was_written(theirs):
    text = (theirs.folder / "de.json").read_bytes()
    assert Manifest.parse(text).text().encode() == text
