"""Processors as real processes: each has a bound, and none takes a page or the engine with it."""

import os
import resource
import signal

import pytest

from lcc_scrapy.annotation.jobs import Job
from lcc_scrapy.annotation.processors import DEATHS, STARTS, Processors
from lcc_scrapy.annotation.profile_feed import ProfileChanges
from lcc_scrapy.domain.acis import Waiting
from lcc_scrapy.domain.annotation_limits import AnnotationRules
from lcc_scrapy.domain.errors import ConfigurationError
from lcc_scrapy.feed.content import ContentElsewhere
from tests.annotated_lcc import NOW, Site, urd
from tests.harness import wait_for
from tests.memory_store import MemoryStore

JAVA = urd()


class Urds:
    """What changed about URDs, as the database would tell."""

    def __init__(self):
        self.changes = [ProfileChanges(1, (JAVA,))]

    def __call__(self, seen):
        newer = [one for one in self.changes if one.revision > seen]
        return newer[0] if newer else ProfileChanges(seen)


@pytest.fixture
def site():
    return Site(MemoryStore())


@pytest.fixture
def pool(site):
    made = []

    def make(count=1, contents=site, urds=None, **rules):
        made.append(Processors(count, AnnotationRules(**rules), contents, urds or Urds(), lambda: NOW))
        return made[-1]

    yield make
    for one in made:
        one.close()


def job(site, name="a", text="java"):
    site.cache(name, text=text)
    with site.store.read() as tx:
        (row,) = tx.cached([site.key(name)]).values()
    return Job(Waiting(row.urlkey, row.seq, 1, NOW, "", base=1), row)


def done(pool, *jobs):
    for one in jobs:
        pool.give(one)
    results = []
    wait_for(lambda: results.extend(pool.results(0.05)) or len(results) == len(jobs), what="results")
    return results


def test_pages_are_compared_in_other_processes(site, pool):
    results = done(pool(2), *(job(site, str(number)) for number in range(6)))
    assert sorted(one.job.row.furl[-1] for one in results) == list("012345")
    assert {(one.found[0].relevance, one.failed) for one in results} == {(1, "")}
    assert all(one.cpu > 0 for one in results)


def test_a_change_of_urds_acts_on_the_next_page(site, pool):
    urds = Urds()
    one = pool(urds=urds)
    assert len(done(one, job(site, "a"))[0].found) == 1
    urds.changes.append(ProfileChanges(2, removed=(JAVA.urdid,)))
    assert done(one, job(site, "b"))[0].found == ()


def test_a_page_that_takes_too_long_is_a_failure_and_the_next_is_not(site, pool):
    one = pool()
    assert done(one, job(site, "warm"))[0].found
    processor = one._workers[0].processor
    processor._rules = AnnotationRules(page_timeout=0.2)
    os.kill(processor.pid, signal.SIGSTOP)
    (late,) = done(one, job(site, "a"))
    assert late.found  # the second process had the usual time
    assert one.pids != [processor.pid]


def test_a_page_that_always_takes_too_long_is_a_failure(site, pool):
    (result,) = done(pool(page_timeout=0.05), job(site, "a", text="<p>java " * 400_000))
    assert result.failed == "took longer than 0.05 s"


def test_a_page_whose_process_dies_is_tried_again_and_at_last_a_failure(site, pool):
    one = pool()
    assert done(one, job(site, "warm"))[0].found
    worker, kills = one._workers[0], []
    usual = worker._ready

    def deadly():
        processor = usual()
        kills.append(processor.pid)
        processor.kill()
        return processor

    worker._ready = deadly
    (result,) = done(one, job(site, "a"))
    assert result.failed == f"ended its process ({-signal.SIGKILL})"
    assert len(set(kills)) == DEATHS
    worker._ready = usual
    assert done(one, job(site, "b"))[0].found


def test_a_processor_that_needs_too_much_memory_is_replaced(site, pool):
    one = pool()
    assert done(one, job(site, "warm"))[0].found
    (pid,) = one.pids
    resource.prlimit(pid, resource.RLIMIT_AS, (1 << 20, 1 << 20))  # no more than it has
    huge = " ".join(f"w{number}" for number in range(1_000_000))
    (result,) = done(one, job(site, "a", text=f"java {huge}"))
    assert result.found
    assert one.pids != [pid]


def test_processors_that_cannot_start_say_so(site, pool):
    one = pool(memory=1_000_000)
    with pytest.raises(ConfigurationError, match="no processor can be started"):
        wait_for(lambda: one.results(0.05), what="the error")
    assert STARTS == 3


def test_a_content_that_cannot_be_had_is_a_failure(site, pool):
    class Elsewhere:
        def open(self, row):
            raise ContentElsewhere("the content lies on machine 2")

    (result,) = done(pool(contents=Elsewhere()), job(site, "a"))
    assert result.failed == "the content lies on machine 2"


def test_no_processor_stays_behind(site, pool):
    one = pool(2)
    done(one, job(site, "a"), job(site, "b"))
    pids = one.pids
    assert len(pids) == 2
    one.close()
    assert one.pids == []
    assert not any(os.path.exists(f"/proc/{pid}") for pid in pids)
