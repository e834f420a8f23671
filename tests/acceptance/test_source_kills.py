"""``kill -9`` of a run of a source, anywhere: nothing that it named is lost, and nothing is submitted for good twice.

Each step of a run sees one kill, so that a round has ``STEPS``. ``LCC_SOURCE_KILLS`` says how many kills there are at
least (``make soak`` takes 20).
"""

import os
import signal
import threading
from collections.abc import Callable, Iterator

import pytest

from tests.forkserver import popen
from tests.harness import BIN, Lcc, wait_for
from tests.integration.site import Answer, Site
from tests.integration.test_sources import Scene, xml

pytestmark = [pytest.mark.acceptance, pytest.mark.slow]

URLS = 6000
STEPS = 8
ROUNDS = -(-int(os.environ.get("LCC_SOURCE_KILLS", "1")) // STEPS)


@pytest.fixture
def site() -> Iterator[Site]:
    with Site() as made:
        yield made


def killed(lcc: Lcc, when: Callable[[], object]) -> int:
    """Kill a run when a condition holds, or it has ended before; returns how many kills that were."""
    command = [str(BIN / "lcc"), "source", "run", "7"]
    with (lcc.folder / "run.log").open("ab") as log:
        process = popen(command, env=lcc.environment, cwd=lcc.cwd, log=log)
    try:
        wait_for(lambda: when() or process.poll() is not None, 60, "the moment")
    finally:
        if process.poll() is None:
            process.send_signal(signal.SIGKILL)
        status = process.wait(300)
    return int(status == -signal.SIGKILL)


@pytest.mark.parametrize("round_", range(ROUNDS))
def test_a_run_that_is_killed_at_any_step_loses_nothing(
    make_lcc: Callable[..., Lcc], site: Site, round_: int
) -> None:
    scene = Scene(make_lcc, site)
    lcc = scene.lcc
    names = [f"p{number}" for number in range(URLS)]
    answered = threading.Event()
    first = xml(scene.sitemap(*names), '"1"')
    site.put("/sitemap.xml", Answer(first.pieces, last=False, held=answered))
    scene.add()

    def remembered() -> int:
        ((count,),) = lcc.sql("select count(*) from sourceurls")
        return int(str(count))

    kills = killed(lcc, lambda: site.asked("/sitemap.xml"))
    assert (remembered(), scene.sets()) == (0, [])
    answered.set()
    for share in (1, 1500 + 100 * round_, 3000, URLS):
        kills += killed(lcc, lambda share=share: remembered() >= share)  # type: ignore[misc]
        assert len(scene.waiting()) == remembered()
    scene.run()
    assert scene.waiting() == set(names)
    assert sum(scene.sets()) == URLS  # each of them once

    left = names[::2]
    site.put("/sitemap.xml", xml(scene.sitemap(*left), '"2"'))
    for share in (URLS - 1, URLS - 1000 - 100 * round_, URLS // 2):
        kills += killed(lcc, lambda share=share: remembered() <= share)  # type: ignore[misc]
        assert set(left) <= scene.waiting()
    scene.run()
    assert (scene.waiting(), remembered()) == (set(left), len(left))
    assert lcc.sql("select listed, failures, owner from sources") == [(len(left), 0, "")]
    print(f"{kills} kills in {STEPS} steps, {URLS} URLs, none lost")
