"""The memory of a browser's processes, as its watch measures it."""

import os
from pathlib import Path

import pytest

from lcc_scrapy.rendering.browser import memory_of


@pytest.fixture(params=["told", "refused"])
def smaps(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the kernel tell everything, or refuse ``smaps_rollup``, as it does of a process with other rights."""
    read = Path.read_text

    def refused(path: Path, *arguments: object, **options: object) -> str:
        if path.name == "smaps_rollup":
            raise PermissionError(13, "Permission denied", str(path))
        return read(path, *arguments, **options)

    if request.param == "refused":
        monkeypatch.setattr(Path, "read_text", refused)


@pytest.mark.usefixtures("smaps")
def test_a_process_has_the_memory_that_it_took() -> None:
    before, held = memory_of(os.getpid()), b"x" * 200_000_000
    assert 190_000_000 < memory_of(os.getpid()) - before < 300_000_000
    assert held[-1:] == b"x"


@pytest.mark.usefixtures("smaps")
def test_a_process_that_is_gone_has_none() -> None:
    assert memory_of(2**22 + 1) == 0
