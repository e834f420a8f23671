# ruff: noqa: INP001 - tools are no package
"""Build ``dist/lcc-provider.pyz``: the provider commands in one file, for hosts without pip.

The same sources give the same bytes, whatever time zone and umask they are built under.
"""

import argparse
import os
import shutil
import sys
import tempfile
import time
import zipapp
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
RULES = ("__init__", "errors", "printable")
PARTS = ("__init__.py", "push/*.py", "wire/*.py", *(f"domain/{rule}.py" for rule in RULES))
ENTRY = """\
import sys

from lcc_scrapy.push.__main__ import main

sys.exit(main())
"""
TIMESTAMP = 315532800 + 86400
"""Just after the earliest time that a zip file can hold (1980)."""


def main(argv: list[str] | None = None) -> int:
    """Build the archive; returns the exit status."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0] if __doc__ else None)
    parser.add_argument("--output", type=Path, default=ROOT / "dist" / "lcc-provider.pyz")
    output = parser.parse_args(argv).output
    build(output)
    sys.stdout.write(f"{output}\n")
    return 0


def build(output: Path) -> None:
    """Write the archive, executable."""
    output.parent.mkdir(parents=True, exist_ok=True)
    os.environ["TZ"] = "UTC"  # zip files keep local times
    time.tzset()
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        _collect(folder)
        zipapp.create_archive(folder, output, interpreter="/usr/bin/env python3", compressed=True)


def _collect(folder: Path) -> None:
    package = ROOT / "lcc_scrapy"
    for source in (path for part in PARTS for path in package.glob(part)):
        target = folder / source.relative_to(ROOT)
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(source, target)
    (folder / "__main__.py").write_text(ENTRY, "utf-8")
    for path in folder.rglob("*"):
        path.chmod(0o755 if path.is_dir() else 0o644)
        os.utime(path, (TIMESTAMP, TIMESTAMP))


if __name__ == "__main__":
    sys.exit(main())
