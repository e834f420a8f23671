# ruff: noqa: INP001, T201 - tools are no package
"""Write the lock files: one version of each package that CI and the image install, and its files' digests.

``python -m tools.lock`` resolves ``pyproject.toml`` anew and writes them. ``--behind`` changes nothing: it
tells which locked versions have a newer one at the index, and exits 1 if there are any. The index is that of
pip. The files are those for Linux and the Python that runs this; other systems install by ``pyproject.toml``.
"""

import argparse
import json
import subprocess
import sys
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from pathlib import Path
from typing import Any
from urllib.request import Request, urlopen

from packaging.specifiers import SpecifierSet
from packaging.tags import compatible_tags, cpython_tags
from packaging.utils import (
    InvalidWheelFilename,
    canonicalize_name,
    parse_sdist_filename,
    parse_wheel_filename,
)
from packaging.version import InvalidVersion, Version

ROOT = Path(__file__).parents[1]
LOCKS = {"requirements-dev.lock": ".[dev]", "contrib/compose/requirements.lock": ".[web,redis]"}
"""What is installed by each file: CI's environment, the image with its usual extras."""

HEAD = "# Written by `make lock`; pip install --no-deps --require-hashes -r of this file"
PLATFORMS = [
    f"{kind}_{machine}"
    for machine in ("x86_64", "aarch64")
    for kind in (*(f"manylinux_2_{minor}" for minor in range(36, 4, -1)), "manylinux2014", "linux")
]
TAGS = frozenset(cpython_tags(platforms=PLATFORMS)) | frozenset(compatible_tags(platforms=PLATFORMS))
PYTHON = ".".join(map(str, sys.version_info[:3]))
SECONDS = 60
AT_ONCE = 8


def main() -> int:
    """Do what the command line says; returns the exit status."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--behind", action="store_true", help="only tell which versions are behind")
    if parser.parse_args().behind:
        return tell_behind()
    for name, wanted in LOCKS.items():
        (ROOT / name).write_text("\n".join([HEAD, *locked(resolved(wanted))]) + "\n", encoding="utf-8")
        print(f"{name} is written")
    return 0


def tell_behind() -> int:
    """Print a line for each locked version that is not the newest one."""
    versions = {name: version for lock in LOCKS for name, version in read(ROOT / lock)}
    found = [
        f"{name} {version} is locked, {newest} is there"
        for (name, version), newest in zip(
            sorted(versions.items()), at_once(newest_of, sorted(versions)), strict=True
        )
        if newest > version
    ]
    print("\n".join(found) or f"all {len(versions)} locked versions are the newest")
    return bool(found)


def read(lock: Path) -> Iterator[tuple[str, Version]]:
    """Yield the packages of a lock file with their versions."""
    for line in lock.read_text(encoding="utf-8").splitlines():
        name, pinned, rest = line.partition("==")
        if pinned:
            yield name, Version(rest.split()[0])


def resolved(wanted: str) -> dict[str, tuple[Version, str]]:
    """Return what pip would install into an empty environment: versions and digests by package."""
    done = subprocess.run(
        [
            *(sys.executable, "-m", "pip", "install", "--quiet", "--dry-run", "--ignore-installed"),
            *("--report", "-", "--editable", wanted),
        ],
        cwd=ROOT,
        check=True,
        stdout=subprocess.PIPE,
    )
    return {
        canonicalize_name(one["metadata"]["name"]): (
            Version(one["metadata"]["version"]),
            one["download_info"]["archive_info"]["hashes"]["sha256"],
        )
        for one in json.loads(done.stdout)["install"]
        if "archive_info" in one["download_info"]
    }


def locked(packages: dict[str, tuple[Version, str]]) -> Iterator[str]:
    """Yield the lines of a lock file."""
    names = sorted(packages)
    for name, files in zip(names, at_once(files_of, names), strict=True):
        version, digest = packages[name]
        digests = sorted(
            {digest} | {one["hashes"]["sha256"] for one in files if fits(one["filename"], version)}
        )
        yield f"{name}=={version} \\"
        yield " \\\n".join(f"    --hash=sha256:{one}" for one in digests)


def fits(filename: str, version: Version) -> bool:
    """Tell whether a file is a wheel of this version for Linux and this Python."""
    try:
        _, its, _, tags = parse_wheel_filename(filename)
    except (InvalidWheelFilename, InvalidVersion):
        return False
    return its == version and not tags.isdisjoint(TAGS)


def newest_of(name: str) -> Version:
    """Return the newest version of a package at the index that this Python may have; 0 = early ones only."""
    found = (version_of(one["filename"]) for one in files_of(name) if is_usable(one))
    return max(found, default=Version("0"))


def is_usable(file: dict[str, Any]) -> bool:
    """Tell whether a file is no early release, is not withdrawn, and is for this Python."""
    try:
        version = version_of(file["filename"])
        needs = SpecifierSet(file.get("requires-python") or "")
    except ValueError:  # what somebody uploaded long ago
        return False
    return not version.is_prerelease and not file.get("yanked") and needs.contains(PYTHON)


def version_of(filename: str) -> Version:
    """Return whose version a file is; raises ``ValueError``."""
    parsed: tuple[Any, ...] = (
        parse_wheel_filename(filename) if filename.endswith(".whl") else parse_sdist_filename(filename)
    )
    return parsed[1]  # type: ignore[no-any-return]


def files_of(name: str) -> list[dict[str, Any]]:
    """Return the files of a package at the index (Python's PEP 691)."""
    asked = Request(f"{index()}/{name}/", headers={"Accept": "application/vnd.pypi.simple.v1+json"})  # noqa: S310
    with urlopen(asked, timeout=SECONDS) as answer:  # noqa: S310 - the index of pip
        return json.load(answer)["files"]  # type: ignore[no-any-return]


@cache
def index() -> str:
    """Return the address of pip's index."""
    asked = [sys.executable, "-m", "pip", "config", "get", "global.index-url"]
    said = subprocess.run(asked, check=False, capture_output=True, text=True).stdout.strip()
    return (said or "https://pypi.org/simple").rstrip("/")


def at_once(work: Any, items: Iterable[str]) -> list[Any]:
    """Return what ``work`` makes of each item, some of them at a time."""
    with ThreadPoolExecutor(AT_ONCE) as pool:
        return list(pool.map(work, items))


if __name__ == "__main__":
    sys.exit(main())
