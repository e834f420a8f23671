"""Programs from PyPI in a virtual environment of their own, so that they change no version of ours."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.harness import missing


def install(folder: Path, *requirements: str) -> Path:
    """Make an environment with these packages, by our own pip; returns the folder of its programs.

    Tests that need one are skipped without ``LCC_PYPI``: installing takes longer than they do.
    """
    if not os.environ.get("LCC_PYPI"):
        pytest.skip(f"installs {', '.join(requirements)} from PyPI: set LCC_PYPI=1, as `make soak` does")
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(folder)], check=True, timeout=300)
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "--python", str(folder)]
    done = subprocess.run(
        [*pip, "install", "-q", *requirements], capture_output=True, text=True, timeout=300, check=False
    )
    if done.returncode:
        missing(" ".join(requirements), f"pip says: {done.stderr[-500:]}")
    return folder / "bin"
