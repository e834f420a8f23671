"""What CI and the image install: pinned, with digests, and what pyproject.toml asks for."""

import re
import tomllib

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from tools.lock import HEAD, LOCKS, ROOT, fits, is_usable, read, version_of

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
LINE = re.compile(r"[a-z0-9-]+==[0-9][\w.+!]* \\|    --hash=sha256:[0-9a-f]{64}( \\)?")


def asked_for(extras: set[str]) -> dict[str, Requirement]:
    """Return what a wheel with some extras asks for itself."""
    found: dict[str, Requirement] = {}
    lines = [*PROJECT["dependencies"], *(one for extra in extras for one in extras_of(extra))]
    for one in map(Requirement, lines):
        if one.name == PROJECT["name"]:
            found |= asked_for(one.extras)
        elif one.marker is None or one.marker.evaluate({"platform_machine": "x86_64"}):
            found[canonicalize_name(one.name)] = one
    return found


def extras_of(extra: str) -> list[str]:
    return PROJECT["optional-dependencies"][extra]


@pytest.mark.parametrize("name", LOCKS)
def test_a_lock_has_pins_and_digests_and_nothing_else(name: str) -> None:
    first, *lines = (ROOT / name).read_text(encoding="utf-8").splitlines()
    assert first == HEAD
    assert [line for line in lines if not LINE.fullmatch(line)] == []
    names = [package for package, _ in read(ROOT / name)]
    assert names == sorted(set(names))


@pytest.mark.parametrize("name", LOCKS)
def test_a_lock_has_all_that_is_asked_for(name: str) -> None:
    versions = dict(read(ROOT / name))
    wanted = asked_for(Requirement(f"lcc-scrapy{LOCKS[name][1:]}").extras)
    assert {
        package: str(one.specifier)
        for package, one in wanted.items()
        if package not in versions or not one.specifier.contains(versions[package])
    } == {}


@pytest.mark.parametrize(
    ("lock", "reader"),
    [("requirements-dev.lock", ".ci/run"), ("/tmp/requirements.lock", "contrib/compose/Dockerfile")],
)
def test_what_installs_by_a_lock_checks_it(lock: str, reader: str) -> None:
    assert f"--no-deps --require-hashes -r {lock}" in (ROOT / reader).read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("filename", "does"),
    [
        ("scrapy-2.19.0-py3-none-any.whl", True),
        ("scrapy-2.19.0-cp311-cp311-manylinux_2_28_aarch64.whl", True),
        ("scrapy-2.19.0-cp310-abi3-manylinux_2_17_x86_64.manylinux2014_x86_64.whl", True),
        ("scrapy-2.19.1-py3-none-any.whl", False),
        ("scrapy-2.19.0-cp39-cp39-manylinux_2_28_x86_64.whl", False),
        ("scrapy-2.19.0-cp311-cp311-macosx_11_0_arm64.whl", False),
        ("scrapy-2.19.0.tar.gz", False),
        ("odd.whl", False),
    ],
)
def test_digests_are_of_wheels_for_linux_and_this_python(filename: str, does: bool) -> None:
    assert fits(filename, version_of("scrapy-2.19.0.tar.gz")) == does


@pytest.mark.parametrize(
    ("file", "does"),
    [
        ({"filename": "a-2.0.tar.gz"}, True),
        ({"filename": "a-2.0rc1.tar.gz"}, False),
        ({"filename": "a-2.0.tar.gz", "yanked": "broken"}, False),
        ({"filename": "a-2.0.tar.gz", "requires-python": "<3"}, False),
        ({"filename": "a-2.0.exe"}, False),
        ({"filename": "a-2.0.tar.gz", "requires-python": ">= '2.7'"}, False),
    ],
)
def test_a_newer_version_is_one_that_can_be_had(file: dict[str, object], does: bool) -> None:
    assert is_usable(file) == does
