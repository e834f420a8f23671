"""Memory does not grow with the size of a body (``tests/faults/test_huge_sets.py``: nor with that of a set)."""

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.harness import Lcc, Nginx, memory

pytestmark = [pytest.mark.acceptance, pytest.mark.slow, pytest.mark.timeout(900)]

MB = 1_000_000


def test_a_body_of_300_megabytes_is_fetched_in_bounded_memory(
    make_lcc: Callable[..., Lcc], nginx: Nginx, tmp_path: Path
) -> None:
    site = tmp_path / "site"
    site.mkdir()
    (site / "small.txt").write_text("small\n")
    with (site / "large.txt").open("wb") as file:
        for number in range(300):
            file.write(bytes([65 + number % 26]) * MB)
    nginx.start({"site": site})
    prefix = f"http://127.0.0.1:{nginx.ports['site']}/"
    lcc = make_lcc()
    lcc.add_provider(1, prefix)
    lcc.start()
    assert lcc.push(site, 1, prefix, "-name small.txt", state="s1").returncode == 0
    lcc.wait_until_fetched()
    before = memory(lcc, "VmHWM")
    assert lcc.push(site, 1, prefix, "-name large.txt", state="s2").returncode == 0
    lcc.wait_until_fetched(200)
    grown = memory(lcc, "VmHWM") - before
    print(f"300 MB body: grown {grown / MB:.1f} MB")
    ((machineid, fileid, length),) = lcc.sql(
        "select fetched_machineid, fetched_fileid, fetched_len from lccurl where furl like '%large.txt'"
    )
    assert length == 300 * MB
    with lcc.path_of(machineid, fileid).open("rb") as stored, (site / "large.txt").open("rb") as served:
        while block := served.read(MB):
            assert stored.read(MB) == block
    assert grown < 300 * MB / 4
