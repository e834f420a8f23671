"""``lcc annotate`` with real processors: what is cached is annotated, whatever happens to processes."""

import json
import signal
from contextlib import closing

import pytest

from lcc_scrapy.annotation import queueing
from lcc_scrapy.db.sql.store import SqlStore
from tests.annotated_lcc import Site, found, urd
from tests.forkserver import popen
from tests.harness import BIN, wait_for


@pytest.fixture
def lcc(make_lcc):
    return make_lcc(LCC_AE_PAGE_TIMEOUT="300s")


@pytest.fixture
def site(lcc):
    with closing(SqlStore(lcc.shared_url)) as store:
        with store.begin() as tx:
            queueing.begin(tx)
        yield Site(store, lcc.folder / "lcc-data" / "content")


def interest(site, *urds):
    with site.store.begin() as tx:
        return tx.add_urds(urds or [urd()])


def status(lcc):
    return json.loads(lcc.lcc("annotate", "status", "--json").stdout)


def started(lcc, *words):
    command = [str(BIN / "lcc"), "annotate", *words]
    with (lcc.folder / "annotate.log").open("ab") as log:
        return popen(command, env=lcc.environment, cwd=lcc.cwd, log=log)


def ended(process):
    process.send_signal(signal.SIGTERM)
    return process.wait(300)


def test_once_annotates_what_waits_and_says_what_it_did(lcc, site):
    interest(site, urd("anna"), urd("bert", words=["perl"]))
    site.cache(*map(str, range(20)), text="<html><title>A page</title><p>about java")
    done = lcc.lcc("annotate", "--only", "engine", "--once", "--processors", "2")
    assert "annotated 20 documents, 20 ACIs, 0 failed" in done.stderr
    assert found(site.store) == sorted((str(number), "anna") for number in range(20))
    told = status(lcc)
    assert (told["waiting"], told["annotated"], told["acis"], told["behind"]) == (0, 20, 20, 0)
    assert told["coordinator"] == ""


def test_what_is_cached_meanwhile_is_annotated_and_the_end_is_clean(lcc, site):
    process = started(lcc, "--only", "engine", "--processors", "1")
    try:
        interest(site)
        site.cache("a")
        wait_for(lambda: found(site.store) == [("a", "anna")], what="the ACI")
        assert status(lcc)["coordinator"]
        assert ended(process) == 0
    finally:
        process.kill()
        process.wait()
    assert "annotated 1 documents" in (lcc.folder / "annotate.log").read_text()


def test_a_stand_by_takes_over_from_one_that_was_killed(lcc, site):
    interest(site)
    first = started(lcc, "--only", "engine", "--processors", "1")
    second = None
    try:
        wait_for(lambda: status(lcc)["coordinator"], what="the first")
        second = started(lcc, "--only", "engine", "--processors", "1")
        wait_for(lambda: "standing by" in (lcc.folder / "annotate.log").read_text(), what="the second")
        first.kill()
        first.wait()
        site.cache("a")
        wait_for(lambda: found(site.store) == [("a", "anna")], what="the ACI")
        assert ended(second) == 0
    finally:
        for one in (first, second):
            if one is not None:
                one.kill()
                one.wait()


def test_once_beside_another_one_says_so(lcc, site):
    process = started(lcc, "--only", "engine", "--processors", "1")
    try:
        wait_for(lambda: status(lcc)["coordinator"], what="the first")
        done = lcc.lcc("annotate", "--only", "engine", "--once", check=False)
        assert done.returncode == 1
        assert "another process does the engine part" in done.stderr
    finally:
        process.kill()
        process.wait()


def test_all_parts_do_what_there_is_to_do_once(lcc, site):
    lcc.add_provider(7, "http://www.example.org/")
    interest(site, urd("anna", uri="http://www.example.org/asked", timing=600_000))
    done = lcc.lcc("annotate", "--once", "--processors", "1")
    assert "requests: 1 pages asked for" in done.stderr
    assert "alerts: 0 sent" in done.stderr
    with site.store.read() as tx:
        assert [row.furl for row in tx.find_url("http://www.example.org/asked")[1]] == [
            "http://www.example.org/asked"
        ]


@pytest.mark.parametrize("words", [(), ("--only", "engine", "--once")], ids=["all", "engine"])
def test_without_the_extra_it_says_so_in_a_line(lcc, tmp_path, words):
    package = tmp_path / "without" / "ahocorasick_rs"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text("raise ImportError")
    lcc.settings["PYTHONPATH"] = str(package.parent)  # and so it is no fork, which has imported it
    done = lcc.lcc("annotate", *words, check=False)
    assert done.returncode == 2
    assert done.stderr.splitlines()[-1] == (
        "lcc: error: ahocorasick_rs is missing: install lcc-scrapy[annotation], as README.md says"
    )
    assert "Traceback" not in done.stderr
