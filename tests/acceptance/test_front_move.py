"""A provider moves between two sub-LCCs at work, and the command that moves it is killed again and again."""

import json
import os
import random
import subprocess
import threading
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from hashlib import sha256
from itertools import pairwise
from pathlib import Path
from types import SimpleNamespace

import pytest

from lcc_scrapy.db.sql.move_verbs import BY_PROVIDER
from lcc_scrapy.domain.cache import CachedUrl
from lcc_scrapy.front.content_user import FrontContentUser
from tests.forkserver import popen
from tests.harness import BIN, PASSWORD, Lcc, run, wait_for
from tests.integration.site import NOT_FOUND, Site, overlaps, page
from tests.ports import free_port
from tests.web_process import serving

pytestmark = [pytest.mark.acceptance, pytest.mark.slow]

KILLS = int(os.environ.get("LCC_MOVE_KILLS", "3"))
DOCUMENTS = int(os.environ.get("LCC_MOVE_DOCUMENTS", "250"))
MOVED, STAYS = 7, 8
VERSIONS, TRY_LATER, REMOVED = 5, 75, "removed"


@dataclass
class House:
    """Two sub-LCCs with a crawl and an HTTP API each, and a front."""

    folder: Path
    subs: dict[str, Lcc]
    port: int
    settings: dict[str, str]
    roots: dict[int, str]

    @property
    def environment(self) -> dict[str, str]:
        return {**next(iter(self.subs.values())).environment, **self.settings}

    def front(self, *words: str) -> str:
        done = run([str(BIN / "lcc"), "front", *words], env=self.environment, cwd=self.folder)
        assert done.returncode == 0, done.stdout + done.stderr
        return str(done.stdout).strip()

    @property
    def settings_of_users(self) -> dict[str, str]:
        return {"SCRAPY_SETTINGS_MODULE": "lcc_scrapy.settings", **self.settings}

    @property
    def move_log(self) -> Path:
        return self.folder / "move.log"

    def mover(self, target: str, source: str) -> subprocess.Popen[bytes]:
        """Start to move the provider; what is said goes to a log that begins anew."""
        content = self.subs[source].folder / "lcc-data/content"
        words = ("front", "move", str(MOVED), "--to", target, "--content", str(content))
        front = {"LCC_FRONT_DATABASE_URL": self.settings["LCC_FRONT_DATABASE_URL"]}
        environment = self.subs[target].environment | front
        with self.move_log.open("wb") as log:
            return popen([str(BIN / "lcc"), *words], env=environment, cwd=self.folder, log=log)

    def push_to_all(self, names: Sequence[str]) -> None:
        for pid in self.roots:
            assert self.push(pid, names)[0] == 0
        self.wait_until_fetched()

    def wait_until_fetched(self) -> None:
        for sub in self.subs.values():
            sub.wait_until_fetched()

    def push(self, pid: int, names: Iterable[str], operation: str = "update") -> tuple[int, str]:
        """Push URLs; return what `lcccp` ends with, and says."""
        kind = f'op="{operation}" mimetype="text/html"'
        lines = [f'<url curl="{self.roots[pid]}{name}" {kind}/>' for name in names]
        done = subprocess.run(
            [str(BIN / "lcccp"), f"--uns=127.0.0.1:{self.port}", f"--pid={pid}"],
            env=self.environment | {"LCC_PWD": PASSWORD}, cwd=self.folder, capture_output=True, text=True,
            input="\n".join([*lines, f'<end count="{len(lines)}"/>\n']), timeout=300, check=False,
        )  # fmt: skip
        return done.returncode, done.stderr


@contextmanager
def at_work(make: Callable[..., Lcc], folder: Path, database: str, roots: dict[int, str]) -> Iterator[House]:
    subs, proxied = {}, {}
    with ExitStack() as closing:
        for name in ("a", "b"):
            lcc = make(database, LCC_KEEP_VERSIONS=str(VERSIONS))
            proxied[name] = free_port()
            lcc.settings["LCC_UNS_ENDPOINTS"] += f" haproxy:tcp:{proxied[name]}:interface=127.0.0.1"
            subs[name] = lcc
        for pid, root in roots.items():
            subs["a"].add_provider(pid, root)
        front = folder / "front"
        front.mkdir()
        port = free_port()
        house = House(front, subs, port, {
            "LCC_DATA_DIR": str(front / "data"), "LCC_FRONT_DATABASE_URL": f"sqlite:///{front}/front.sqlite",
            "LCC_UNS_ENDPOINTS": f"tcp:{port}:interface=127.0.0.1", "LCC_LOGIN_SECONDS": "300s",
        }, roots)  # fmt: skip
        house.front("init")
        for name, lcc in subs.items():
            lcc.start()
            web, _ = closing.enter_context(
                serving(SimpleNamespace(folder=lcc.folder, environment=lcc.environment))
            )
            token = lcc.folder / "token"
            token.write_text(lcc.lcc("token", "add", "front").stdout)
            house.front(
                "add", name, "--uns", f"127.0.0.1:{proxied[name]}", "--database", lcc.shared_url,
                "--web", f"http://127.0.0.1:{web}", "--token-file", str(token),
            )  # fmt: skip
        for pid in roots:
            house.front("assign", str(pid), "--to", "a")
        with (front / "uns.log").open("ab") as log:
            uns = popen([str(BIN / "lcc"), "front", "uns"], env=house.environment, cwd=front, log=log)
        try:
            wait_for(lambda: b"listening on" in (front / "uns.log").read_bytes(), 100, "the front")
            yield house
        finally:
            uns.kill()
            uns.wait(300)


class Follower(threading.Thread):
    """Asks the front for changes all the time."""

    def __init__(self, house: House) -> None:
        super().__init__()
        self._told: dict[tuple[int, str], list[str]] = defaultdict(list)
        self._over = threading.Event()
        self._settings = house.settings_of_users
        self._failure: BaseException | None = None

    def run(self) -> None:
        try:
            self._follow()
        except BaseException as error:
            self._failure = error

    def _follow(self) -> None:
        position = None
        with FrontContentUser(self._settings) as user:
            last = False
            while not last:
                last = self._over.wait(0.1)
                changes = user.select(since=position)
                for row in changes:
                    state = row.sha256 if isinstance(row, CachedUrl) else REMOVED
                    self._told[row.pid, row.docid].append(state)
                position = str(changes.position)

    def ended(self) -> dict[tuple[int, str], list[str]]:
        """Ask once more; return the states of each document that it was told, in order."""
        self._over.set()
        self.join(300)
        assert self._failure is None, self._failure
        return self._told


def killed_and_run_again(house: House, target: str, source: str, kills: int) -> int:
    """Move the provider; kill the command at any moment, so often at most; return how often that was."""
    done, longest = 0, 1.5
    while True:
        process = house.mover(target, source)
        try:
            status = process.wait(random.uniform(0.3, longest) if done < kills else 300)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait(300)
            done, longest = done + 1, longest * 1.1
            continue
        assert status == 0, house.move_log.read_text()
        return done


@pytest.fixture
def site() -> Iterator[Site]:
    with Site() as made:
        yield made


@pytest.mark.soak_of("sqlite")
@pytest.mark.parametrize("database", ["sqlite", "mariadb"])
def test_a_provider_moves_to_and_fro_though_the_command_is_killed(
    make_lcc: Callable[..., Lcc], tmp_path: Path, site: Site, database: str
) -> None:
    ports = {pid: site.listen() for pid in (MOVED, STAYS)}
    names = [f"{number}.html" for number in range(DOCUMENTS)]
    changing, removed = names[:20], names[20:30]
    publish(site, names, "first")
    with at_work(make_lcc, tmp_path, database, roots_at(ports)) as house:
        house.push_to_all(names)
        publish(site, changing, "second")
        site.put("/missing.html", NOT_FOUND)
        assert house.push(MOVED, [*changing, "missing.html"])[0] == 0
        assert house.push(MOVED, removed, "remove")[0] == 0
        house.wait_until_fetched()
        follower, kills, rounds = Follower(house), 0, 0
        follower.start()
        where, other = "a", "b"
        while kills < KILLS or not rounds:
            before = len(site.visits)
            kills += killed_and_run_again(house, other, where, KILLS - kills)
            assert len(site.visits) == before
            where, other, rounds = other, where, rounds + 1
            assert house.front("show", str(MOVED)) == where
            publish(site, names[:10], f"round {rounds}")
            house.push_to_all(names[:10])
        told = follower.ended()

        assert not any(overlaps([one for one in site.visits if one.port == port]) for port in ports.values())
        here, left = house.subs[where], house.subs[other]
        of_it = f"where pid = {MOVED}"
        for table in (*BY_PROVIDER, "pidb", "lccurl", "tombstones", "versions", "qpsdb"):
            assert left.sql(f"select count(*) from {table} {of_it}") == [(0,)], table
        assert here.sql(f"select count(*) from lccurl {of_it}") == [(DOCUMENTS - 10,)]
        assert here.sql(f"select count(*) from tombstones {of_it}") == [(10,)]
        assert here.sql(f"select count(*) from versions {of_it}") == [(10 + 10 * min(VERSIONS, 1 + rounds),)]
        assert here.sql(f"select state from pidb {of_it}") == [("active",)]
        for sub in house.subs.values():
            assert sub.stop() == 0
            sub.start_once_more()  # which removes what killed processes left
            found = sub.lcc("verify", check=False)
            assert found.returncode == 0, found.stdout + found.stderr
        for states in told.values():
            assert all(one != other for one, other in pairwise(states)), states
        with FrontContentUser(house.settings_of_users) as user:
            documents = {(row.pid, row.docid): row for row in user.select() if isinstance(row, CachedUrl)}
            last = {key: states[-1] for key, states in told.items() if states[-1] != REMOVED}
            assert {key: row.sha256 for key, row in documents.items()} == last
            for row in documents.values():
                with user.open(row) as content:
                    assert sha256(content.read()).hexdigest() == row.sha256
    print(json.dumps({"kills": kills, "moves": rounds, "told": sum(map(len, told.values()))}))


def test_what_is_under_way_ends_in_the_source_and_meanwhile_the_provider_is_told_to_try_later(
    make_lcc: Callable[..., Lcc], tmp_path: Path, site: Site
) -> None:
    ports = {pid: site.listen() for pid in (MOVED, STAYS)}
    held = threading.Event()
    site.put("/0.html", replace(page("slow"), held=held))
    publish(site, ["1.html", "2.html"], "first")
    with at_work(make_lcc, tmp_path, "sqlite", roots_at(ports)) as house:
        assert house.push(MOVED, ["0.html", "1.html"])[0] == 0
        wait_for(lambda: site.is_busy, 20, "the fetch")
        mover = house.mover("b", "a")
        try:
            wait_for(lambda: "ends its fetch" in house.move_log.read_text(), 60, "the mover to wait")
            status, said = house.push(MOVED, ["2.html"])
            assert (status, "103" in said) == (TRY_LATER, True), said
            assert house.push(STAYS, ["2.html"])[0] == 0
            house.front("move", str(MOVED), "--to", "b", "--give-up")
            mover.kill()
            mover.wait(300)
            assert house.push(MOVED, ["2.html"])[0] == 0
            mover = house.mover("b", "a")
            wait_for(lambda: "ends its fetch" in house.move_log.read_text(), 60, "the mover to wait")
            held.set()
            assert mover.wait(300) == 0, house.move_log.read_text()
        finally:
            held.set()
            mover.kill()
            mover.wait(300)
        house.wait_until_fetched()
        mine = [one for one in site.visits if one.port == ports[MOVED] and one.path.endswith(".html")]
        assert sorted(one.path for one in mine) == ["/0.html", "/1.html", "/2.html"]
        assert not overlaps(mine)
        assert house.subs["b"].sql("select count(*) from lccurl") == [(3,)]


def publish(site: Site, names: Iterable[str], text: str) -> None:
    for name in names:
        site.put(f"/{name}", page(f"{name} {text}"))


def roots_at(ports: dict[int, int]) -> dict[int, str]:
    return {pid: f"http://127.0.0.1:{port}/" for pid, port in ports.items()}
