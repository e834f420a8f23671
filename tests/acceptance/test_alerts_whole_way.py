"""The whole way of alerts with real processes: pushed, crawled, annotated, told by mail, webhook and feed.

Then the same while ``kill -9`` meets each process LCC_ALERT_KILLS times (``make soak`` takes 20): the crawl, the
coordinator, a processor, the delivery, and ``lcc web``.
"""

import json
import os
import signal
import threading
import urllib.error
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import cycle, islice
from pathlib import Path
from types import SimpleNamespace

import pytest

from tests.alert_house import hook_server
from tests.alert_story import OWNERS, WATCHED, Story, asked, copy_site, profiles, verdicts
from tests.annotated_lcc import processors
from tests.forkserver import popen
from tests.harness import BIN, Lcc, Nginx, wait_for
from tests.mail_server import mail_server
from tests.ports import free_port

pytestmark = [pytest.mark.acceptance, pytest.mark.slow]

KILLS = int(os.environ.get("LCC_ALERT_KILLS", "1"))

VICTIMS = ("crawl", "coordinator", "processor", "delivery", "web")
COMMANDS = {
    "coordinator": ("annotate", "--only", "engine", "--processors", "2"),
    "delivery": ("annotate", "--only", "alerts"),
    "web": ("web",),
}
CHANGES = ("anna", "bert", "both", "nobody")


@dataclass
class Scene:
    """An LCC whose processes may be killed, its site, and the servers that are told."""

    lcc: Lcc
    story: Story
    mails: object
    hooks: object
    web_port: int
    secrets: dict[str, str] = field(default_factory=dict)
    tokens: dict[str, str] = field(default_factory=dict)
    processes: dict[str, object] = field(default_factory=dict)

    def furnish(self) -> None:
        self.lcc.add_provider(7, self.story.root)
        for words in profiles(self.story.root):
            self.lcc.lcc("urd", "add", *words)
        for owner in OWNERS:
            self.lcc.lcc("recipient", "add", owner, "--mail", f"{owner}@example.org")
            hook = self.lcc.lcc("recipient", "add", owner, "--webhook", f"{self.hooks.url}/{owner}")
            token = self.lcc.lcc("token", "add", owner, "--scope", "annotate")
            self.secrets[owner], self.tokens[owner] = hook.stdout.strip(), token.stdout.strip()
        # begins at the end of the feed: pages that are pushed from now on come by it
        self.lcc.lcc("annotate", "--only", "engine", "--once", "--processors", "1")

    def start(self, name: str) -> None:
        if name == "crawl":
            self.lcc.start()
            return
        with (self.lcc.folder / f"{name}.log").open("ab") as log:
            command = [str(BIN / "lcc"), *COMMANDS[name]]
            self.processes[name] = popen(command, env=self.lcc.environment, cwd=self.lcc.cwd, log=log)

    def kill(self, name: str) -> None:
        """Kill a process, and start it again; the coordinator starts processors itself."""
        if name == "processor":
            wait_for(lambda: processors(self.processes["coordinator"].pid), what="a processor")
            for pid in processors(self.processes["coordinator"].pid)[:1]:
                os.kill(pid, signal.SIGKILL)
            return
        if name == "crawl":
            self.lcc.stop(signal.SIGKILL)
        else:
            self.processes[name].kill()
            self.processes[name].wait(300)
        self.start(name)

    def stop(self) -> None:
        for process in self.processes.values():
            process.send_signal(signal.SIGTERM)
        for name, process in self.processes.items():
            assert process.wait(300) == 0, (self.lcc.folder / f"{name}.log").read_text()[-3000:]
        assert self.lcc.stop() == 0

    def end(self) -> None:
        for process in self.processes.values():
            process.kill()
            process.wait(300)

    def push(self) -> None:
        """Push until the crawl has taken all; who pushes does so again when a crawl was killed under him."""
        wait_for(lambda: not self.lcc.push(self.story.site, 7, self.story.root).returncode, what="the push")

    def count(self) -> int:
        return int(self.lcc.sql("select count(*) from aci")[0][0])

    def is_settled(self) -> bool:
        if self.count() < self.story.due.total() or self.lcc.is_spooled():
            return False
        if self.lcc.sql("select count(*) from qdb") != [(0,)]:
            return False
        engine = json.loads(self.lcc.lcc("annotate", "status", "--json").stdout)
        told = json.loads(self.lcc.lcc("alerts", "status", "--json").stdout)
        return not (engine["waiting"] or engine["behind"] or engine["urds_to_run"] or told["waiting"])

    def verdicts(self):
        return verdicts(
            self.story, self.mails, self.hooks, self.secrets, port=self.web_port, tokens=self.tokens
        )


@contextmanager
def scenes(make_lcc, nginx: Nginx, corpora: dict[str, Path], folder: Path) -> Iterator[Scene]:
    site = folder / "site"
    copy_site(corpora["postgresql"], site)
    nginx.start({"site": site})
    web_port = free_port()
    with mail_server() as mails, hook_server() as hooks:
        lcc = make_lcc(
            LCC_WEB_ENDPOINT=f"127.0.0.1:{web_port}",
            LCC_MAIL_FROM="LCC <lcc@example.org>",
            LCC_MAIL_PORT=str(mails.port),
            LCC_ALERT_PRIVATE="yes",
            LCC_ALERT_TIMEOUT="2s",  # for as long a killed delivery keeps its recipients
            LCC_MAIL_TIMEOUT="2s",
            LCC_KEEP_VERSIONS="2",
            LCC_AE_PAGE_TIMEOUT="300s",
        )
        story = Story(site, f"http://127.0.0.1:{nginx.ports['site']}/")
        scene = Scene(lcc, story, mails, hooks, web_port)
        scene.furnish()
        try:
            for name in ("crawl", *COMMANDS):
                scene.start(name)
            yield scene
            scene.stop()
        finally:
            scene.end()


@contextmanager
def follower(scene: Scene, owner: str) -> Iterator[list[dict[str, object]]]:
    """Follow the ACIs of an owner by number, whatever becomes of the server; gives what came."""
    came: list[dict[str, object]] = []
    done = threading.Event()
    state = SimpleNamespace(last=0)

    def follow() -> None:
        while not done.is_set():
            try:
                acis, state.last = asked(scene.web_port, scene.tokens[owner], wait=1, after=state.last)
                came.extend(acis)
            except (urllib.error.URLError, OSError):
                done.wait(0.1)

    thread = threading.Thread(target=follow)
    thread.start()
    try:
        yield came
    finally:
        done.set()
        thread.join(300)


def changes(scene: Scene, round_: int, pages: Iterator[str]) -> int:
    """Change five pages, the watched one among them; returns how many ACIs there will be."""
    for whom, name in zip(CHANGES, pages, strict=False):
        scene.story.change(name, whom, round_)
    if round_ % 2 == 0:
        scene.story.change(WATCHED, "nobody", round_)
    return scene.story.due.total()


def test_each_owner_is_told_of_what_concerns_it_once_whatever_is_killed(make_lcc, nginx, corpora, tmp_path):
    with scenes(make_lcc, nginx, corpora, tmp_path) as scene, follower(scene, "anna") as came:
        scene.story.begins()
        scene.push()
        wait_for(scene.is_settled, 300, "everything to be told")
        assert [(one, one.repeated) for one in scene.verdicts() if one.wrong or one.repeated] == []
        pages, kills = iter(scene.story.plain(len(CHANGES) * KILLS)), Counter()
        for round_ in range(KILLS):
            before, mails = scene.count(), len(scene.mails.mails)
            changes(scene, round_, pages)
            scene.push()
            moments = (
                lambda: True,
                lambda before=before: scene.count() > before,
                lambda mails=mails: len(scene.mails.mails) > mails,
            )
            order = islice(cycle(VICTIMS), round_ % len(VICTIMS), round_ % len(VICTIMS) + len(VICTIMS))
            for number, victim in enumerate(order):
                wait_for(moments[number * len(moments) // len(VICTIMS)], 300, "the moment")
                scene.kill(victim)
                kills[victim] += 1
            if round_ % 2:  # the watched page changes once between two of these
                wait_for(scene.is_settled, 300, "everything to be told")
        wait_for(scene.is_settled, 300, "everything to be told")
        scene.push()
        wait_for(scene.is_settled, 300, "everything to be told")
        found = scene.verdicts()
        wait_for(
            lambda: len(came) >= sum(o == "anna" for o, _ in scene.story.due.elements()), 300, "all ACIs"
        )
    assert [one for one in found if one.wrong] == []
    repeated = {f"{one.owner} {one.way}": one.repeated for one in found if one.repeated}
    # a delivery that is killed may repeat the message that was in flight, under its id (decision 151)
    assert all(count <= kills["delivery"] for count in repeated.values()), repeated
    assert not any(one.repeated for one in found if one.way == "atom")
    told = Counter(("anna", str(one["uri"])) for one in came)
    assert told == Counter({key: count for key, count in scene.story.due.items() if key[0] == "anna"})
    assert len({one["number"] for one in came}) == len(came)
    print(
        f"{kills.total()} kills, {scene.story.due.total()} ACIs, each told once; repeated under one id: {repeated}"
    )
