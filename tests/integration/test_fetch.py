"""``lcc fetch``: one URL fetched as a crawl would, told in every detail, and nothing stored."""

import gzip
import json
import os
import signal
import socket
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from hashlib import md5, sha256
from pathlib import Path
from typing import Any

import pytest

from lcc_scrapy.domain.providers import Provider
from lcc_scrapy.domain.timeslots import parse_mask
from tests.harness import BIN, Lcc, lccs, wait_for
from tests.integration.project import make_project
from tests.integration.site import Answer, Site, page, unknown_certificate

BODY = b"<p>the body</p>" * 7
LARGE = bytes(range(256)) * 100
PID, STRANGER, EXEMPT, FULL, STRICT = 7, 8, 9, 10, 11


@dataclass
class Scene:
    """An LCC with some providers, and a site below whose root they all are."""

    lcc: Lcc
    site: Site
    root: str

    def fetch(self, path: str, *options: str, pid: int = PID) -> subprocess.CompletedProcess[str]:
        url = path if "://" in path else self.root + path
        return self.lcc.lcc("fetch", url, "--provider", str(pid), *options, check=False)

    def tell(self, path: str, *options: str, pid: int = PID) -> dict[str, Any]:
        """Fetch; returns what is told, with the exit status."""
        done = self.fetch(path, "--json", *options, pid=pid)
        assert done.stdout, done.stderr
        return {**json.loads(done.stdout), "exit": done.returncode, "stderr": done.stderr}

    def rows(self) -> list[Any]:
        tables = ("qdb", "lccurl", "urlerrors", "tombstones", "fsmdb", "outcomes")
        counted = [self.lcc.sql(f"select count(*) from {table}")[0][0] for table in tables]
        pidb = self.lcc.sql("select fileused, spaceused, nurlproc, nurlerrs, state, lastconnseq from pidb")
        return [counted, pidb]

    def left_behind(self) -> list[str]:
        data = self.lcc.folder / "lcc-data"
        files = [path.name for path in (data / "content").rglob("*") if path.is_file()]
        return [*(path.name for path in data.glob("trial-*")), *(name for name in files if name.isdigit())]


@pytest.fixture(scope="module")
def scene(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Scene]:
    with Site() as site, lccs(tmp_path_factory.mktemp("fetch")) as make:
        lcc = make(
            LCC_FETCH_MAX_BYTES="60k",
            LCC_MEMORY_BODY="8k",
            LCC_FETCH_TIMEOUT="2s",
            LCC_RETRY_DELAYS="10s",
            LCC_CONTACT="me@h",
        )
        root = f"http://127.0.0.1:{site.listen()}/in/"
        everywhere = [root, f"https://127.0.0.1:{site.listen(unknown_certificate(lcc.folder))}/in/"]
        lcc.register(
            Provider(PID, "", allowprivate=True),
            Provider(STRANGER, ""),
            Provider(EXEMPT, "", allowprivate=True, ignorerobots=True),
            Provider(FULL, "", allowprivate=True, spacemax=50),
            Provider(STRICT, "", allowprivate=True, declared="strict"),
            roots=[everywhere] * 5,
        )
        made = Scene(lcc, site, root)
        before = made.rows()
        yield made
        assert made.rows() == before, "a trial changed the LCC"
        assert made.left_behind() == []
        assert lcc.sql("select count(*) from turns where owner <> ''") == [(0,)]


def test_a_document_is_told_with_all_its_facts(scene: Scene) -> None:
    scene.site.put(
        "/in/a", page(gzip.compress(BODY), content_encoding="gzip", content_type="Text/HTML; charset=UTF-8")
    )
    told = scene.tell("a")
    assert (told["exit"], told["stored"], told["code"], told["stderr"]) == (0, True, 0, "")
    assert (told["mimetype"], told["charset"], told["length"]) == ("text/html", "utf-8", len(BODY))
    assert (told["md5"], told["sha256"]) == (md5(BODY).hexdigest(), sha256(BODY).hexdigest())
    assert ["Content-Type", "Text/HTML; charset=UTF-8"] in told["headers"]
    robots, hop = told["hops"]
    assert (robots["for"], robots["status"]) == ("robots.txt", 404)
    assert (hop["url"], hop["status"], hop["peer"], hop["error"]) == (scene.root + "a", 200, "127.0.0.1", "")
    (visit,) = scene.site.asked("/in/a")
    assert visit.headers["user-agent"] == "lcc-scrapy/0.1.0 (+me@h)"
    assert visit.headers["accept-encoding"] == "br, deflate, gzip, zstd"


def test_the_report_for_people_has_a_line_for_everything(scene: Scene) -> None:
    scene.site.put("/in/lines", page("", "302 Found", location="/in/there"))
    scene.site.put("/in/there", page(BODY, server="a\tb"))
    done = scene.fetch("lines")
    words = [line.split(maxsplit=1)[0] for line in done.stdout.splitlines()]
    assert words[:3] == ["robots.txt", "request", "request"]
    assert words[-6:] == ["mimetype", "charset", "length", "md5", "sha256", "verdict"]
    assert "Server: a\\tb" in done.stdout
    assert done.stdout.endswith("would be stored\n")
    assert (done.returncode, done.stderr) == (0, "")


def test_redirects_are_followed_inside_the_roots_only(scene: Scene) -> None:
    scene.site.put("/in/r", page("", "301 Moved", location="r2"))
    scene.site.put("/in/r2", page("", "302 Found", location="/out/secret"))
    told = scene.tell("r")
    assert [hop["status"] for hop in told["hops"]] == [404, 301, 302]
    assert (told["exit"], told["stored"], told["code"]) == (1, False, 605)
    assert not scene.site.asked("/out/secret")


def test_the_body_goes_where_it_is_asked_for(scene: Scene, tmp_path: Path) -> None:
    scene.site.put("/in/large", page(LARGE))
    assert scene.fetch("large", "-o", str(tmp_path / "body")).returncode == 0
    assert (tmp_path / "body").read_bytes() == LARGE
    scene.site.put("/in/small", page("small"))
    done = scene.fetch("small", "-o", "-")
    assert done.stdout == "small"
    assert done.stderr.endswith("would be stored\n")


def test_the_body_of_an_answer_that_is_no_document_is_written_too(scene: Scene, tmp_path: Path) -> None:
    done = scene.fetch("missing", "-o", str(tmp_path / "body"))
    assert done.returncode == 1
    assert (tmp_path / "body").read_text() == "nothing here"
    assert done.stdout.endswith("would not be stored: 404 Not Found; but it would be tried again first\n")


def test_what_robots_txt_forbids_is_not_fetched_but_for_the_exempted(scene: Scene) -> None:
    scene.site.put("/robots.txt", page("User-agent: *\nDisallow: /in/secret\n", content_type="text/plain"))
    scene.site.put("/in/secret", page(BODY))
    try:
        told = scene.tell("secret")
        assert (told["exit"], told["code"], told["length"]) == (1, 611, None)
        assert not scene.site.asked("/in/secret")
        told = scene.tell("secret", pid=EXEMPT)
        assert (told["exit"], told["stored"]) == (0, True)
        assert [hop["for"] for hop in told["hops"]] == ["document"]
    finally:
        del scene.site.pages["/robots.txt"]


def test_a_failing_host_is_told_with_what_a_crawl_would_do(scene: Scene) -> None:
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        down = f"http://127.0.0.1:{closed.getsockname()[1]}/"
        scene.lcc.lcc("provider", "set", str(PID), "--add-root", down)
        told = scene.tell(down)
        scene.lcc.lcc("provider", "set", str(PID), "--remove-root", down)
    assert (told["exit"], told["code"], told["tried_again"]) == (1, 602, True)
    assert "Connection" in told["hops"][-1]["error"]


def test_a_certificate_that_does_not_verify_is_refused(scene: Scene) -> None:
    (_, secure) = json.loads(scene.lcc.lcc("provider", "show", str(PID), "--json").stdout)["roots"]
    told = scene.tell(secure + "a")
    assert (told["exit"], told["code"]) == (1, 612)
    assert "certificate" in told["hops"][-1]["error"]


@pytest.mark.parametrize(
    ("name", "answer", "code", "again"),
    [
        ("too-large", page(b"x" * 70_000), 604, False),
        ("broken", page("oh", "500 Oh"), 500, True),
        ("silent", Answer((b"late",), wait=5), 603, True),
    ],
)
def test_answers_that_are_not_stored_are_told_with_their_code(
    scene: Scene, name: str, answer: Answer, code: int, again: bool
) -> None:
    scene.site.put(f"/in/{name}", answer)
    told = scene.tell(name)
    assert (told["exit"], told["stored"], told["code"], told["tried_again"]) == (1, False, code, again)


def test_nothing_connects_to_a_private_address_that_was_not_approved(scene: Scene) -> None:
    scene.site.put("/in/private", page(BODY))
    told = scene.tell("private", pid=STRANGER)
    assert (told["exit"], told["code"]) == (1, 615)
    assert not scene.site.asked("/in/private")


def test_a_url_outside_the_roots_is_not_fetched(scene: Scene) -> None:
    told = scene.tell(scene.root.replace("/in/", "/out/"))
    assert (told["exit"], told["code"], told["hops"]) == (1, 704, [])


def test_a_quota_that_is_used_up_is_told(scene: Scene) -> None:
    scene.site.put("/in/quota", page(BODY))
    told = scene.tell("quota", pid=FULL)
    assert (told["exit"], told["code"], told["length"]) == (1, 610, len(BODY))


@pytest.mark.parametrize(
    ("url", "pid", "said"),
    [
        ("http://h/", 99, "there is no provider 99; `lcc provider list` shows all"),
        ("ftp://h/", PID, "URL not valid or scheme not supported: scheme 'ftp', expected http or https"),
    ],
)
def test_what_cannot_be_tried_is_one_line(scene: Scene, url: str, pid: int, said: str) -> None:
    done = scene.fetch(url, pid=pid)
    assert (done.returncode, done.stdout, done.stderr) == (1, "", f"lcc: error: {said}\n")


def test_scrapy_s_own_command_line_does_the_same(scene: Scene) -> None:
    scene.site.put("/in/scrapy", page(BODY))
    words = ["lcc", "fetch", scene.root + "scrapy", "--provider", str(PID)]
    done = subprocess.run(
        [str(BIN / "scrapy"), *words],
        env=scene.lcc.environment, cwd=scene.lcc.cwd, capture_output=True, text=True, timeout=300, check=False,
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.endswith("would be stored\n")


# --- what is known of the URL --------------------------------------------------------------------


@pytest.fixture(scope="module")
def living(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Scene]:
    with Site() as site, lccs(tmp_path_factory.mktemp("living")) as make:
        lcc = make()
        root = f"http://127.0.0.1:{site.listen()}/in/"
        lcc.register(Provider(PID, "", allowprivate=True, declared="strict"), roots=[[root]])
        lcc.start()
        yield Scene(lcc, site, root)
        assert lcc.stop() == 0
        assert lcc.lcc("verify").returncode == 0


@pytest.fixture
def lively(living: Scene) -> Scene:
    """Return an LCC whose crawl runs and has nothing to do, with the documents ``a`` to ``e`` in its cache."""
    living.site.pages.clear()
    push(living, *"abcde")
    living.lcc.wait_until_fetched(30)
    wait_for(lambda: not is_held(living), 10, "the turn to be given back")
    living.site.visits.clear()
    return living


def push(scene: Scene, *names: str, **declared: object) -> None:
    for name in names:
        scene.site.pages.setdefault(f"/in/{name}", [page(BODY)])
    urls = [{"curl": scene.root + name, "mimetype": "text/html", **declared} for name in names]
    assert scene.lcc.push_urls(PID, urls).returncode == 0


def is_held(scene: Scene) -> bool:
    return scene.lcc.sql("select count(*) from turns where owner <> ''") != [(0,)]


def test_what_the_cache_holds_already_and_what_it_would_lose_is_told(lively: Scene) -> None:
    before = lively.rows()
    told = lively.tell("a")
    assert (told["exit"], told["stored"], told["unchanged"]) == (0, True, True)
    lively.site.put("/in/a", page("another body"))
    told = lively.tell("a")
    assert (told["exit"], told["stored"], told["unchanged"]) == (0, True, False)
    lively.site.put("/in/a", page("gone", "410 Gone"))
    told = lively.tell("a")
    assert (told["exit"], told["code"], told["removes_copy"]) == (1, 410, True)
    assert lively.rows() == before


def test_a_waiting_url_is_judged_by_what_was_declared_of_it(lively: Scene) -> None:
    lively.lcc.lcc("provider", "pause", str(PID))
    push(lively, "b", md5="0" * 32)
    wait_for(lambda: lively.lcc.sql("select count(*) from qdb") == [(1,)], 10, "the set to be absorbed")
    told = lively.tell("b")
    assert (told["exit"], told["stored"], told["code"]) == (1, False, 608)
    assert lively.lcc.sql("select count(*) from qdb") == [(1,)]
    lively.lcc.lcc("provider", "resume", str(PID))


# --- one at a time -------------------------------------------------------------------------------


def test_while_a_crawl_fetches_from_the_provider_it_is_refused(lively: Scene) -> None:
    released = threading.Event()
    lively.site.put("/in/f", Answer(page(BODY).pieces, last=False, held=released))
    push(lively, "f")
    wait_for(lambda: lively.site.asked("/in/f"), 10, "the crawl's fetch")
    done = lively.fetch("a")
    assert done.returncode == 1
    assert "run `lcc provider pause 7` and try again, or say --anyway" in done.stderr
    assert len(done.stderr.splitlines()) == 1
    assert not lively.site.asked("/in/a")
    assert lively.tell("a", "--anyway")["stored"]
    released.set()
    lively.lcc.wait_until_fetched(30)
    wait_for(lambda: not is_held(lively), 10, "the turn to be given back")
    assert lively.tell("a")["stored"]


def start_held_trial(scene: Scene, released: threading.Event) -> "subprocess.Popen[bytes]":
    """Begin a trial whose answer does not come until ``released``."""
    scene.site.put("/in/held", Answer(page(BODY).pieces, last=False, held=released))
    words = [str(BIN / "lcc"), "fetch", scene.root + "held", "--provider", str(PID)]
    trial = subprocess.Popen(
        words, env=scene.lcc.environment, cwd=scene.lcc.cwd, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    wait_for(lambda: scene.site.asked("/in/held"), 10, "the trial's fetch")
    return trial


def test_no_crawl_fetches_from_the_provider_meanwhile(lively: Scene) -> None:
    released = threading.Event()
    trial = start_held_trial(lively, released)
    push(lively, "g")
    wait_for(lambda: lively.lcc.sql("select count(*) from qdb") == [(1,)], 10, "the set to be absorbed")
    time.sleep(2)  # several looks of the crawl, which finds the turn taken
    assert not lively.site.asked("/in/g")
    released.set()
    assert trial.communicate(timeout=300)[0].endswith(b"would be stored\n")
    lively.lcc.wait_until_fetched(20)
    assert lively.site.asked("/in/g")


def test_a_trial_that_is_killed_keeps_nobody_waiting(lively: Scene) -> None:
    released = threading.Event()
    trial = start_held_trial(lively, released)
    trial.send_signal(signal.SIGKILL)
    trial.communicate(timeout=300)
    push(lively, "h")
    lively.lcc.wait_until_fetched(20)
    (left,) = (lively.lcc.folder / "lcc-data").glob("trial-*")
    os.utime(left, (1, 1))  # long ago
    assert lively.tell("a")["stored"]
    assert not left.exists()


def test_an_interrupted_trial_is_one_line(lively: Scene) -> None:
    trial = start_held_trial(lively, threading.Event())
    trial.send_signal(signal.SIGINT)
    out, err = trial.communicate(timeout=300)
    assert (trial.returncode, out) == (1, b"")
    assert err.decode().splitlines()[-1] == "lcc: error: the fetch did not come to its end"
    assert list((lively.lcc.folder / "lcc-data").glob("trial-*")) == []


@pytest.fixture
def site() -> Iterator[Site]:
    with Site() as made:
        yield made


def test_outside_the_hours_of_the_provider_it_is_refused(make_lcc: Callable[..., Lcc], site: Site) -> None:
    lcc = make_lcc()
    root = f"http://127.0.0.1:{site.listen()}/in/"
    hour = (time.gmtime().tm_hour + 12) % 24
    closed = parse_mask(f"{hour}-{hour + 1}", 168)
    lcc.register(Provider(PID, "", allowprivate=True, timeofday=closed), roots=[[root]])
    scene = Scene(lcc, site, root)
    site.put("/in/a", page(BODY))
    done = scene.fetch("a")
    assert done.returncode == 1
    assert "(UTC) only: wait, or say --anyway" in done.stderr
    assert not site.visits
    assert scene.tell("a", "--anyway")["stored"]


# --- in somebody's project -----------------------------------------------------------------------

PROJECT = {
    "settings.py": """
        BOT_NAME = "shop"
        SPIDER_MODULES = ["shop.spiders"]
        ADDONS = {"lcc_scrapy.addon.LccAddon": 100}
        DOWNLOADER_MIDDLEWARES = {"shop.parts.Signed": 500}
        ITEM_PIPELINES = {"shop.parts.Keep": 300}
        EXTENSIONS = {"shop.parts.Noisy": 300}
        FEEDS = {"items.jsonl": {"format": "jsonlines"}}
        LCC_PROJECT_COMPONENTS = "all"
        LOG_FILE = "shop.log"
    """,
    "parts.py": """
        from pathlib import Path


        class Signed:
            def process_request(self, request):
                request.headers["X-Shop"] = "yes"


        class Keep:
            def process_item(self, item):
                Path("kept").touch()
                return item


        class Noisy:
            def __init__(self):
                Path("noisy").touch()
    """,
}


def test_a_project_s_middlewares_take_part_and_nothing_else_of_it(
    make_lcc: Callable[..., Lcc], site: Site, tmp_path: Path
) -> None:
    project = make_project(tmp_path / "project", PROJECT)
    lcc = make_lcc(project=project)
    root = f"http://127.0.0.1:{site.listen()}/in/"
    lcc.register(Provider(PID, "", allowprivate=True), roots=[[root]])
    site.put("/in/a", page(BODY))
    before = sorted(path.name for path in project.iterdir())
    assert Scene(lcc, site, root).tell("a")["stored"]
    assert site.asked("/in/a")[0].headers["x-shop"] == "yes"
    assert sorted(path.name for path in project.iterdir()) == before
