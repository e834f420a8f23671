"""``kill -9`` at random moments of intake and fetching: at the end all is there, once.

``LCC_KILLS`` says how often (default 6; ``make soak`` takes 20).
"""

import hashlib
import os
import random
import signal
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.harness import Lcc, Nginx

pytestmark = [pytest.mark.acceptance, pytest.mark.timeout(900)]

KILLS = int(os.environ.get("LCC_KILLS", "6"))
FILES = 400


def write_site(root: Path) -> None:
    for number in range(FILES):
        path = root / f"{number % 7}" / f"{number:04d}.html"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"<p>{number} {hashlib.sha256(str(number).encode()).hexdigest() * 40}</p>\n")


@pytest.mark.parametrize("database", ["sqlite", "mariadb"])
def test_kills_at_random_moments_lose_nothing_and_double_nothing(
    database: str, make_lcc: Callable[..., Lcc], nginx: Nginx, tmp_path: Path
) -> None:
    seed = random.randrange(1 << 32)
    print("seed", seed)
    chance = random.Random(seed)
    site = tmp_path / "site"
    write_site(site)
    nginx.start({"site": site})
    prefix = f"http://127.0.0.1:{nginx.ports['site']}/"
    lcc = make_lcc(database, LCC_LEASE="5s")
    lcc.add_provider(1, prefix)
    killed_while_queued = 0
    for number in range(KILLS):
        lcc.start()
        if number % 3 == 0:
            for path in chance.sample(sorted(site.rglob("*.html")), 60):
                path.write_text(path.read_text() + f"<!-- {number} -->\n")
        done = lcc.push(site, 1, prefix, "-name '*.html'")
        assert done.returncode in {0, 75, 69}, done.stderr
        time.sleep(chance.uniform(0, 0.6))
        lcc.stop(signal.SIGKILL)
        killed_while_queued += lcc.sql("select count(*) from qdb")[0][0] > 0
    lcc.start()
    assert lcc.push(site, 1, prefix, "-name '*.html'").returncode == 0
    lcc.wait_until_fetched()
    assert lcc.stop() == 0
    assert killed_while_queued, "no kill hit the work: the test shows nothing"

    rows = lcc.sql("select furl, fetched_machineid, fetched_fileid from lccurl")
    assert len(rows) == FILES
    got = {furl: lcc.path_of(machineid, fileid).read_bytes() for furl, machineid, fileid in rows}
    assert got == {prefix + str(path.relative_to(site)): path.read_bytes() for path in site.rglob("*.html")}
    lcc.lcc("verify", "--repair", check=False)
    assert lcc.lcc("verify").returncode == 0
    assert lcc.sql("select fileused, nurlproc from pidb where pid = 1") == [(FILES, 0)]
