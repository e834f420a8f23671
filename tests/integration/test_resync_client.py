"""A standard harvester (resync) follows an LCC: a baseline, then what changed; by lists, and by dumps."""

import json
import shutil
import subprocess
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.acceptance.conftest import Lcc, Nginx
from tests.harness import BIN, answers, corpora, free_port, make_lcc, missing, nginx, wait_for
from tests.own_venv import install

__all__ = ["corpora", "make_lcc", "nginx"]

pytestmark = [pytest.mark.acceptance, pytest.mark.slow]

FILES = 30
HARVESTER = Path(__file__).parents[1] / "dump_harvester.py"


@dataclass
class Source:
    """An LCC with its provider's site, served to harvesters."""

    lcc: Lcc
    site: Path
    prefix: str
    url: str
    token: str

    def push(self) -> None:
        assert self.lcc.push(self.site, 1, self.prefix, "-name '*.html'").returncode == 0
        self.lcc.wait_until_fetched()

    def change(self) -> None:
        """Five documents get new contents, three are removed."""
        files = sorted(self.site.glob("*.html"))
        for path in files[:5]:
            path.write_bytes(path.read_bytes() + b"<!-- changed -->")
        for path in files[5:8]:
            path.unlink()
        self.push()

    def contents(self) -> dict[str, bytes]:
        rows = self.lcc.sql("select urlkey, fetched_machineid, fetched_fileid from lccurl")
        return {
            bytes(key).hex(): self.lcc.path_of(machineid, fileid).read_bytes()
            for key, machineid, fileid in rows
        }


@pytest.fixture(scope="module")
def resync(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of resync's programs."""
    return install(tmp_path_factory.mktemp("resync") / "venv", "resync==2.0.1")


@pytest.fixture
def site(corpora: dict[str, Path], tmp_path: Path) -> Path:
    folder = tmp_path / "site"
    folder.mkdir()
    for path in sorted(corpora["postgresql"].glob("*.html"))[:FILES]:
        shutil.copy(path, folder)
    return folder


@pytest.fixture
def source(make_lcc: Callable[..., Lcc], nginx: Nginx, site: Path) -> Iterator[Source]:
    nginx.start({"site": site})
    prefix = f"http://127.0.0.1:{nginx.ports['site']}/"
    lcc = make_lcc("sqlite", LCC_IDLE_SECONDS="200s", LCC_FETCH_TIMEOUT="200s", LCC_HTTP_SILENCE="200s")
    lcc.add_provider(1, prefix)
    lcc.start()
    port = free_port()
    lcc.settings["LCC_WEB_ENDPOINT"] = f"127.0.0.1:{port}"
    token = lcc.lcc("token", "add", "harvester").stdout.strip()
    made = Source(lcc, site, prefix, f"http://127.0.0.1:{port}", token)
    made.push()
    web = subprocess.Popen([str(BIN / "lcc"), "web"], env=lcc.environment, cwd=lcc.cwd)
    try:
        wait_for(lambda: answers(port), 60, "lcc web")
        yield made
    finally:
        web.terminate()
        web.wait(300)
    assert lcc.stop() == 0


@dataclass
class Lists:
    """resync's own harvester; it goes by lists."""

    source: Source
    programs: Path
    copy: Path

    def harvest(self, *options: str) -> str:
        resources = f"{self.source.url}/resourcesync/resourcelist.xml"
        done = subprocess.run(
            [str(self.programs / "resync-sync"), *options, "--delete", "--access-token", self.source.token,
             "-v", "--sitemap", resources, f"{self.source.url}/v1/documents", str(self.copy)],
            cwd=self.copy.parent, capture_output=True, text=True, timeout=300, check=False,
        )  # fmt: skip
        assert "mismatch" not in done.stderr
        assert "FatalError" not in done.stderr, done.stderr
        return done.stdout + done.stderr

    def held(self) -> dict[str, bytes]:
        return {path.parent.name: path.read_bytes() for path in self.copy.rglob("content")}


@dataclass
class Dumps:
    """A harvester that goes by dumps, made of resync's classes."""

    source: Source
    programs: Path
    packages: Path
    copy: Path

    def harvest(self, capability: str, since: str = "") -> dict[str, Any]:
        done = subprocess.run(
            [str(self.programs / "python"), str(HARVESTER), self.source.token,
             f"{self.source.url}/resourcesync/capabilitylist.xml", capability, since,
             str(self.packages), str(self.copy)],
            capture_output=True, text=True, timeout=300, check=False,
        )  # fmt: skip
        assert (done.returncode, done.stderr) == (0, "")
        return json.loads(done.stdout)

    def held(self) -> dict[str, bytes]:
        return {path.name: path.read_bytes() for path in self.copy.iterdir()}


def test_harvesters_take_a_baseline_and_follow_by_lists_and_by_dumps(
    source: Source, resync: Path, tmp_path: Path
) -> None:
    packages, copy = tmp_path / "packages", tmp_path / "by_dumps"
    packages.mkdir()
    copy.mkdir()
    lists, dumps = Lists(source, resync, tmp_path / "by_lists"), Dumps(source, resync, packages, copy)

    lists.harvest("--baseline", "--hash", "sha-256")
    begun = dumps.harvest("changedump")
    assert begun["packages"] == 0
    baseline = dumps.harvest("resourcedump")
    assert (baseline["packages"], baseline["updated"]) == (1, FILES)
    assert len(source.contents()) == FILES
    assert lists.held() == dumps.held() == source.contents()

    source.change()
    said = lists.harvest("--incremental", "--changelist-uri", f"{source.url}/resourcesync/changelist.xml")
    assert "updated=5, deleted=3" in said
    followed = dumps.harvest("changedump", begun["until"])
    assert [followed[name] for name in ("packages", "updated", "deleted")] == [1, 5, 3]
    assert len(source.contents()) == FILES - 3
    assert lists.held() == dumps.held() == source.contents()

    assert "IN SYNC" in lists.harvest("--audit", "--hash", "sha-256")
    again = dumps.harvest("changedump", followed["until"])
    assert (again["packages"], again["until"]) == (0, followed["until"])
    unzip_accepts(packages)


def unzip_accepts(packages: Path) -> None:
    unzip = shutil.which("unzip")
    if unzip is None:
        missing("unzip", "apt-get install unzip")
    for path in packages.iterdir():
        said = subprocess.run(
            [unzip, "-t", str(path)], capture_output=True, text=True, timeout=300, check=False
        )
        assert (said.returncode, said.stderr) == (0, "")
        assert said.stdout.splitlines()[-2].split()[1] == "manifest.xml"
