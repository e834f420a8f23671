"""Packages in a virtual environment of their own, so that they change no version of ours."""

import os
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest

from tests.harness import missing


def install(folder: Path, *requirements: str) -> Path:
    """Make an environment with these packages, by our own pip; returns the folder of its programs.

    Tests that need one are skipped without ``LCC_PYPI``: installing takes longer than they do.
    """
    if not os.environ.get("LCC_PYPI"):
        pytest.skip(f"installs {', '.join(requirements)} from PyPI: set LCC_PYPI=1, as `make soak` does")
    _make(folder)
    done = _pip(folder, *requirements)
    if done.returncode:
        missing(" ".join(requirements), f"pip says: {done.stderr[-500:]}")
    return folder / "bin"


def install_beside_ours(folder: Path, source: Path) -> Path:
    """Make an environment that sees our packages, with one more out of a folder; returns that of its programs.

    Nothing is asked of PyPI: the package is built with the hatchling that we have.
    """
    _make(folder)
    (packages,) = folder.glob("lib/python*/site-packages")
    ours = sysconfig.get_path("purelib")
    (packages / "ours.pth").write_text(f"import site; site.addsitedir({ours!r})\n")
    done = _pip(folder, "--no-index", "--no-deps", "--no-build-isolation", str(source))
    assert done.returncode == 0, done.stderr
    return folder / "bin"


def _make(folder: Path) -> None:
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(folder)], check=True, timeout=300)


def _pip(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "--python", str(folder)]
    return subprocess.run(
        [*pip, "install", "-q", *words], capture_output=True, text=True, timeout=300, check=False
    )
