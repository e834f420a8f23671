"""What a site sees: a limit of bandwidth is kept, nothing comes outside the permitted hours."""

import glob
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from tests.harness import Lcc, Nginx, missing, wait_for

pytestmark = [pytest.mark.acceptance, pytest.mark.slow]

LIMIT = 200_000


def write_files(root: Path, count: int, size: int) -> None:
    root.mkdir()
    for number in range(count):
        (root / f"{number:04d}.html").write_bytes(f"{number:08d}".encode() * (size // 8))


def test_a_site_is_not_asked_for_more_than_the_limit(
    make_lcc: Callable[..., Lcc], nginx: Nginx, tmp_path: Path
) -> None:
    """How long it takes at least: a busy machine makes it longer only. What it takes is measured by ``bench/``."""
    site = tmp_path / "site"
    write_files(site, 150, 16_000)
    (site / "0100.html").write_bytes(b"x" * 1_000_000)
    size = sum(path.stat().st_size for path in site.iterdir())
    nginx.start({"site": site})
    prefix = f"http://127.0.0.1:{nginx.ports['site']}/"
    lcc = make_lcc()
    lcc.add_provider(1, prefix, "--bandwidth", "200k")
    lcc.start()
    begun = time.monotonic()
    assert lcc.push(site, 1, prefix).returncode == 0
    lcc.wait_until_fetched()
    took = time.monotonic() - begun
    print(f"{size / took / 1000:.1f} kB/s of {LIMIT / 1000:.0f} over {took:.0f} s")
    assert len([served for served in nginx.log("site") if served.uri != "/robots.txt"]) == 150
    assert took > 0.9 * size / LIMIT, "without a limit it takes a second or two"


def test_nothing_is_fetched_until_the_moved_clock_allows_it(
    make_lcc: Callable[..., Lcc], nginx: Nginx, tmp_path: Path
) -> None:
    library = next(iter(glob.glob("/usr/lib/*/faketime/libfaketime.so.1")), None)
    if library is None:
        missing("libfaketime", "apt-get install faketime")
    site = tmp_path / "site"
    write_files(site, 5, 1000)
    nginx.start({"site": site})
    prefix = f"http://127.0.0.1:{nginx.ports['site']}/"
    lcc = make_lcc(LCC_LEASE="1d")  # a lease that the moved clock ends may cost a second fetch
    now = datetime.now(UTC)
    opens = (now + timedelta(hours=3)).hour
    lcc.add_provider(
        1, prefix, "--timeofday", f"{opens}-{(opens + 2) % 24 or 24}"
    )  # an hour may end meanwhile
    clock = tmp_path / "clock"
    clock.write_text("+0\n")
    lcc.settings |= {
        "LD_PRELOAD": str(library),
        "FAKETIME_TIMESTAMP_FILE": str(clock),
        "FAKETIME_NO_CACHE": "1",
        "DONT_FAKE_MONOTONIC": "1",
    }
    lcc.start()
    for name in ("LD_PRELOAD", "FAKETIME_TIMESTAMP_FILE", "FAKETIME_NO_CACHE", "DONT_FAKE_MONOTONIC"):
        del lcc.settings[name]
    assert lcc.push(site, 1, prefix).returncode == 0
    wait_for(lambda: lcc.sql("select count(*) from qdb")[0][0] == 5, 20, "the set to be absorbed")
    time.sleep(6)
    assert nginx.log("site") == []
    clock.write_text("+3h\n")
    lcc.wait_until_fetched(30)
    # libfaketime seldom refuses a short sleep (EINVAL), so that a commit fails and a page is fetched again
    assert len({served.uri for served in nginx.log("site")} - {"/robots.txt"}) == 5
