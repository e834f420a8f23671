"""The rules and the board that come with the LCC name what ``/metrics`` gives; a real Prometheus reads them.

The latter needs Debian's package ``prometheus`` (``make .corpora/prometheus``) and LCC_PROMETHEUS=1.
"""

import json
import os
import re
import shutil
import subprocess
import urllib.parse
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest
import yaml

from tests.forkserver import popen
from tests.harness import Lcc, wait_for
from tests.integration.site import Site, page
from tests.ports import free_port
from tests.web_process import serving

REPOSITORY = Path(__file__).parents[2]
RULES = REPOSITORY / "contrib/prometheus/lcc-rules.yml"
COMPOSE = REPOSITORY / "contrib/compose"
BOARD = REPOSITORY / "contrib/grafana/lcc.json"
PROGRAMS = REPOSITORY / ".corpora/prometheus/usr/bin"
_METRIC = re.compile(r"\blcc_[a-z0-9_]+")


def rules() -> list[dict[str, object]]:
    return [rule for group in yaml.safe_load(RULES.read_text())["groups"] for rule in group["rules"]]


def expressions() -> list[str]:
    board = json.loads(BOARD.read_text())
    of_board = [one["expr"] for panel in board["panels"] for one in panel["targets"]]
    return [*(str(rule["expr"]) for rule in rules()), *of_board]


def test_rules_and_board_name_metrics_that_there_are() -> None:
    sources = [path.read_text() for path in (REPOSITORY / "lcc_scrapy/ops").glob("*metrics.py")]
    given = {name for text in sources for name in re.findall(r'"(lcc_[a-z_]+)"', text)}
    named = {name.removesuffix("_total") for text in expressions() for name in _METRIC.findall(text)}
    assert named
    assert named <= given


def test_each_alert_says_what_is_wrong_and_what_to_do() -> None:
    alerts = [rule for rule in rules() if "alert" in rule]
    assert alerts
    for rule in alerts:
        assert set(rule["annotations"]) == {"summary", "description"}, rule["alert"]  # type: ignore[call-overload]


def test_panels_do_not_overlap_and_each_has_a_query() -> None:
    taken: set[tuple[int, int]] = set()
    for panel in json.loads(BOARD.read_text())["panels"]:
        at = panel["gridPos"]
        cells = {(at["x"] + x, at["y"] + y) for x in range(at["w"]) for y in range(at["h"])}
        assert panel["targets"], panel["title"]
        assert not cells & taken, panel["title"]
        assert at["x"] + at["w"] <= 24, panel["title"]
        taken |= cells


# --- a real one -------------------------------------------------------------------------------------

real = pytest.mark.skipif(not os.environ.get("LCC_PROMETHEUS"), reason="set LCC_PROMETHEUS=1")


@real
def test_promtool_accepts_rules_their_tests_and_the_configuration(tmp_path: Path) -> None:
    folder = shutil.copytree(RULES.parent, tmp_path / "prometheus")
    (folder / "lcc-token").write_text("token")
    shutil.copy(COMPOSE / "prometheus.yml", folder / "of-compose.yml")
    for words in (
        ["check", "config", "prometheus.yml"],
        ["check", "config", "of-compose.yml"],
        ["test", "rules", "lcc-rules-test.yml"],
    ):
        done = subprocess.run(
            [PROGRAMS / "promtool", *words], cwd=folder, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stdout + done.stderr


@pytest.fixture
def site() -> Iterator[Site]:
    with Site() as made:
        yield made


@real
def test_a_real_prometheus_scrapes_a_crawl_and_every_expression_can_be_asked(
    make_lcc: Callable[..., Lcc], site: Site, tmp_path: Path
) -> None:
    lcc: Lcc = make_lcc("sqlite")
    root = f"http://127.0.0.1:{site.listen()}/"
    lcc.add_provider(7, root)
    lcc.start()
    folder = shutil.copytree(RULES.parent, tmp_path / "prometheus")
    token = lcc.lcc("token", "add", "prometheus", "--scope", "metrics").stdout.strip()
    (folder / "lcc-token").write_text(token)
    with serving(SimpleNamespace(folder=lcc.folder, environment=lcc.environment)) as (web, _):
        config = (folder / "prometheus.yml").read_text().replace("127.0.0.1:8080", f"127.0.0.1:{web}")
        (folder / "prometheus.yml").write_text(config.replace("15s", "1s"))
        text = subprocess.run(
            ["curl", "-sf", "-H", f"Authorization: Bearer {token}", f"http://127.0.0.1:{web}/metrics"],
            capture_output=True, check=True,
        ).stdout  # fmt: skip
        checked = subprocess.run(
            [PROGRAMS / "promtool", "check", "metrics"], input=text, capture_output=True, check=False
        )
        assert checked.returncode == 0, checked.stderr.decode()
        port = free_port()
        with (tmp_path / "prometheus.log").open("wb") as log:
            process = popen(
                [str(PROGRAMS / "prometheus"), "--config.file=prometheus.yml", f"--storage.tsdb.path={tmp_path / 'data'}",
                 f"--web.listen-address=127.0.0.1:{port}"], env=dict(os.environ), cwd=folder, log=log,
            )  # fmt: skip
        try:
            wait_for(lambda: _ask(port, 'up{job="lcc"} == 1'), 100, "the first scrape")
            for numbers in (range(30), range(30, 60)):  # a rate needs two values
                push(lcc, site, root, numbers)
                wait_for(lambda: _ask(port, 'lcc_fetches_total{code!="0"}'), 100, "fetches in Prometheus")
            user = [name for name in expressions() if "cursor" in name]
            wait_for(lambda: _ask(port, "sum(rate(lcc_fetches_total[1m])) > 0"), 100, "a rate of fetches")
            told = {text: _ask(port, text) for text in expressions()}
            board = {
                one["expr"] for panel in json.loads(BOARD.read_text())["panels"] for one in panel["targets"]
            }
            empty = [text for text in board if not told[text] and text not in user]
            assert empty == []
            assert _health_check(port) == 0
            health = _get(port, "rules")["data"]["groups"][0]["rules"]
            assert {rule["name"] for rule in health if rule["health"] == "err"} == set()
        finally:
            process.kill()
            process.wait(300)
        assert _health_check(port) != 0
    lcc.stop()


def _health_check(port: int) -> int:
    """Run the health check of ``compose.yaml`` at a port; returns its exit status."""
    services = yaml.safe_load((COMPOSE / "compose.yaml").read_text())["services"]
    _, *words = services["prometheus"]["healthcheck"]["test"]
    command = [word.replace(":9090/", f":{port}/") for word in words]
    return subprocess.run(command, capture_output=True, check=False, timeout=300).returncode


def push(lcc: Lcc, site: Site, root: str, numbers: range) -> None:
    """Push pages, every third of which is missing, and wait for them."""
    for number in numbers:
        if number % 3:
            site.put(f"/{number}.html", page("text"))
    urls = [{"curl": f"{root}{n}.html", "op": "update", "mimetype": "text/html"} for n in numbers]
    assert lcc.push_urls(7, urls).returncode == 0
    lcc.wait_until_fetched()


def _get(port: int, path: str) -> dict[str, object]:
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/api/v1/{path}", timeout=60) as answer:
        return json.load(answer)


def _ask(port: int, expression: str) -> list[object]:
    try:
        return _get(port, f"query?{urllib.parse.urlencode({'query': expression})}")["data"]["result"]
    except OSError:
        return []
