"""Each app is a folder and a line: without them and the apps that need them, the rest of the LCC works."""

import shutil
import subprocess
import sys
from pathlib import Path
from urllib.error import HTTPError
from urllib.request import urlopen

import pytest

from lcc_scrapy.apps import APPS
from lcc_scrapy.runtime.apps import ours
from tests.harness import Lcc
from tests.ports import free_port
from tests.push_process import push_server

ROOT = Path(__file__).parents[2]
PAGES = 10
NAMES = [module.split(".")[2] for module in APPS]

pytestmark = [pytest.mark.acceptance, pytest.mark.slow]


@pytest.fixture(scope="module")
def compiled(tmp_path_factory):
    """A copy of the program, compiled: each process of each test would do it again."""
    source = tmp_path_factory.mktemp("compiled")
    shutil.copytree(ROOT / "lcc_scrapy", source / "lcc_scrapy", ignore=shutil.ignore_patterns("__pycache__"))
    subprocess.run([sys.executable, "-m", "compileall", "-q", source / "lcc_scrapy"], check=True, timeout=300)
    return source


def with_those_that_need_it(name: str) -> list[str]:
    """Return the names of an app and of all that cannot be without it; they stand after it."""
    found = [name]
    for app in ours().installed:
        if {*found} & {*app.needs}:
            found.append(app.name)
    return found


def delete(source: Path, names: list[str]) -> None:
    """Delete the folders of apps and their lines."""
    listed = source / "lcc_scrapy/apps/__init__.py"
    lines = listed.read_text().splitlines(keepends=True)
    for name in names:
        shutil.rmtree(source / "lcc_scrapy/apps" / name)
        (line,) = [line for line in lines if line.strip() == f'"lcc_scrapy.apps.{name}.app",']
        lines.remove(line)
    listed.write_text("".join(lines))


def commands_of(names: list[str]) -> set[str]:
    return {path for app in ours().installed if app.name in names for path in app.commands if " " not in path}


@pytest.fixture(params=[*map(with_those_that_need_it, NAMES), NAMES], ids=[*NAMES, "all"])
def names(request):
    return request.param


@pytest.fixture
def lcc(tmp_path, names, compiled):
    """An LCC whose commands run a copy of the program; no file of the original is imported."""
    source = tmp_path / "source"
    shutil.copytree(compiled, source)
    delete(source, names)
    house = tmp_path / "house"
    house.mkdir()
    made = Lcc(house, "", {"PYTHONPATH": str(source)})
    yield made
    made.stop(9)


def test_without_it_pages_are_pushed_fetched_and_served(lcc, names, nginx, tmp_path):
    where = [sys.executable, "-c", "import lcc_scrapy; print(lcc_scrapy.__file__)"]
    found = subprocess.run(
        where, env=lcc.environment, cwd=lcc.folder, capture_output=True, text=True, check=True
    )
    assert found.stdout.startswith(lcc.settings["PYTHONPATH"])
    shown = {line.split()[0] for line in lcc.lcc("--help").stdout.splitlines() if line.startswith("  ")}
    assert {"crawl", "web"} <= shown
    assert not shown & commands_of(names)

    lcc.lcc("init")
    docroot = tmp_path / "www"
    docroot.mkdir()
    for number in range(PAGES):
        (docroot / f"{number}.html").write_text(f"<p>page {number}")
    nginx.start({"site": docroot})
    root = f"http://127.0.0.1:{nginx.ports['site']}/"
    lcc.add_provider(7, root)
    lcc.start()
    urls = [
        {"curl": f"{root}{number}.html", "op": "update", "mimetype": "text/html"} for number in range(PAGES)
    ]
    pushed = lcc.push_urls(7, urls)
    assert pushed.returncode == 0, pushed.stderr
    lcc.wait_until_fetched()
    assert lcc.stop() == 0, lcc.log_text()
    assert lcc.sql("select count(*) from lccurl") == [(PAGES,)]
    assert "Traceback" not in lcc.log_text()

    port = free_port()
    with push_server(lcc, LCC_WEB_ENDPOINT=f"127.0.0.1:{port}") as web:
        assert urlopen(f"http://127.0.0.1:{port}/healthz", timeout=300).read() == b"ok\n"
        with pytest.raises(HTTPError, match="404" if "push_http" in names else "405"):
            urlopen(f"http://127.0.0.1:{web.port}/v1/push", timeout=300)
