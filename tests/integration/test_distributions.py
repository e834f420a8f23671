"""What ``make dist`` makes: the same bytes each time, and a wheel that works where nothing else of ours is."""

import os
import subprocess
import sys
import sysconfig
import venv
from hashlib import sha256
from pathlib import Path

import pytest

from lcc_scrapy import __version__

ROOT = Path(__file__).parents[2]
WHEEL = f"lcc_scrapy-{__version__}-py3-none-any.whl"

pytestmark = pytest.mark.slow


def run(*command: object, folder: Path, **environment: str) -> str:
    """Run a command in a folder, in an environment that says nothing of this project."""
    kept = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("LCC_", "SCRAPY_", "PYTHON"))
    }
    done = subprocess.run(
        [str(word) for word in command],
        cwd=folder,
        env=kept | environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout
    return done.stdout


def build(folder: Path, **environment: str) -> dict[str, str]:
    """Build what ``make dist`` builds; returns the digests of the files by their names."""
    run(sys.executable, "-m", "hatchling", "build", "-d", folder, folder=ROOT, **environment)
    run(
        sys.executable,
        "tools/build_pyz.py",
        "--output",
        folder / "lcc-provider.pyz",
        folder=ROOT,
        **environment,
    )
    return {path.name: sha256(path.read_bytes()).hexdigest() for path in folder.iterdir()}


def test_what_is_built_is_the_same_each_time_and_works_in_an_empty_folder(tmp_path: Path) -> None:
    built = build(tmp_path / "dist", TZ="UTC")
    assert sorted(built) == ["lcc-provider.pyz", WHEEL, f"lcc_scrapy-{__version__}.tar.gz"]
    before = os.umask(0o077)
    try:
        assert build(tmp_path / "again", TZ="Asia/Tokyo") == built
    finally:
        os.umask(before)

    bin_folder = install(tmp_path / "dist" / WHEEL, tmp_path / "venv")
    empty = tmp_path / "empty"
    empty.mkdir()
    home = {"HOME": str(tmp_path), "PATH": f"{bin_folder}:{os.environ['PATH']}"}
    assert run("lcc", "--version", folder=empty, **home) == f"lcc, version {__version__}\n"
    run("lcc", "init", folder=empty, **home)
    assert run("python", "-m", "scrapy", "list", folder=empty, **home).split() == ["lcc_push", "lcc_spider"]
    assert "--statefile" in run(
        sys.executable, "-I", tmp_path / "dist" / "lcc-provider.pyz", "lcccpstate", "--help", folder=empty
    )


def install(wheel: Path, folder: Path) -> Path:
    """Install a wheel into a fresh virtual environment, beside the packages of this one; returns its ``bin``."""
    venv.create(folder, with_pip=False)
    python = folder / "bin" / "python"
    run(
        sys.executable,
        "-m",
        "pip",
        "--python",
        python,
        "install",
        "-q",
        "--no-deps",
        "--no-index",
        wheel,
        folder=folder,
    )
    packages = next((folder / "lib").glob("python*/site-packages"))
    (packages / "others.pth").write_text(
        sysconfig.get_path("purelib") + "\n"
    )  # an editable install is not seen by this
    return folder / "bin"
