"""What CI and the image install: pinned, with digests, and what pyproject.toml asks for."""

import re
import tomllib
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
LOCKS = {"requirements-dev.lock": {"dev"}, "contrib/compose/requirements.lock": {"web", "redis"}}
LINE = re.compile(r"([a-z0-9-]+)==([0-9][\w.+!]*)(?: ; [^\\]+)? \\|    --hash=sha256:[0-9a-f]{64}(?: \\)?")


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
    lines = (ROOT / name).read_text(encoding="utf-8").splitlines()
    assert [line for line in lines if not LINE.fullmatch(line)] == []


@pytest.mark.parametrize("name", LOCKS)
def test_a_lock_has_all_that_is_asked_for(name: str) -> None:
    text = (ROOT / name).read_text(encoding="utf-8")
    versions = dict(found.groups() for found in LINE.finditer(text) if found[1])
    wanted = asked_for(LOCKS[name])
    assert len(versions) > len(wanted) > 20
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
