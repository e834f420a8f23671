"""From nothing to the first document in containers, which are confined as ``contrib/compose`` says.

Part of ``make soak``, that is of runs with ``LCC_IMAGE=1``: it makes an image out of Debian's packages and builds the
LCC's on it, which takes some minutes. ``LCC_IMAGE=FILE`` takes a tar file of a root file system as base instead.
"""

import json
import os
import re
import signal
import subprocess
import time
from pathlib import Path

import pytest

from tests.containers import BASE, Podman, skip_unless_possible
from tests.harness import BIN, PASSWORD, Nginx, answers, wait_for
from tests.mariadb_server import mariadb_server
from tests.ports import free_port

DATA = ("--volume", "lcc:/var/lib/lcc")
USER = 990
WATCHDOG = 20
"""Seconds: far more than the 5 between two signs of life, and less than the 120 of the default."""
GRACE = 60


class House:
    """A database server, a site, and an LCC in containers: ``crawl``, ``uns`` and ``web`` side by side."""

    def __init__(self, podman, folder, database, nginx):
        self.podman, self.folder, self.database, self.nginx = podman, folder, database, nginx
        self.uns_port, self.web_port = free_port(), free_port()
        self.site = f"http://127.0.0.1:{nginx.ports['site']}/"
        secret = folder / "database-url"
        secret.write_text(database.url("lcc"))
        secret.chmod(0o400)
        os.chown(secret, USER, USER)
        self.options = (
            *DATA,
            *("--volume", f"{secret}:/run/secrets/database-url:ro"),
            *("--env", "LCC_DATABASE_URL_FILE=/run/secrets/database-url"),
            *("--env", f"LCC_UNS_ENDPOINTS=tcp:{self.uns_port}:interface=127.0.0.1"),
            *("--env", f"LCC_WEB_ENDPOINT=127.0.0.1:{self.web_port}"),
            *("--env", f"LCC_WATCHDOG={WATCHDOG}", "--env", "LCC_POLL=0.5"),
        )

    def lcc(self, *words, stdin=""):
        """Run a command in a container of its own, and return what it said."""
        return self.podman.run("lcc", *words, options=self.options, stdin=stdin).stdout

    def begin(self):
        self.lcc("init")
        self.lcc(
            *("provider", "add", "7", "--password-file", "-", "--root", self.site, "--allow-private"),
            stdin=PASSWORD + "\n",
        )
        self.token = self.lcc("token", "add", "reader").strip()
        for name, command in SERVERS.items():
            self.podman.run("lcc", *command, options=("--detach", "--name", name, *self.options))
        wait_for(lambda: answers(self.uns_port) and answers(self.web_port), 60, "the servers")

    def push(self):
        """Push the site with ``lcc-push``, as its owner does from another machine."""
        words = ["--server", f"127.0.0.1:{self.uns_port}", "--pid", "7", "--state", str(self.folder / "push")]
        subprocess.run(
            [str(BIN / "lcc-push"), *words, str(self.folder / "site"), self.site],
            env={"PATH": os.environ["PATH"], "LCC_PASSWORD": PASSWORD, "HOME": str(self.folder)},
            check=True,
            timeout=300,
        )

    def ask(self, path):
        done = subprocess.run(
            ["curl", "-s", "-H", "@-", f"http://127.0.0.1:{self.web_port}{path}"],
            input=f"Authorization: Bearer {self.token}\n".encode(),
            capture_output=True,
            check=False,
            timeout=300,
        )
        return done.stdout

    def documents(self):
        return {row["curl"]: row for row in json.loads(self.ask("/v1/changes") or "{}").get("changes", ())}

    def document(self, page):
        """Wait for a page of the site over HTTP, and return its content."""
        wait_for(lambda: self.site + page in self.documents(), 60, page)
        return self.ask(self.documents()[self.site + page]["path"])

    def write(self, page, text):
        (self.folder / "site" / page).write_text(text)

    def is_healthy(self, name):
        """Run the image's HEALTHCHECK, as the machine does that runs the container."""
        return self.podman("healthcheck", "run", name, check=False).returncode == 0

    def exec(self, name, *words):
        return self.podman("exec", name, *words, check=False)

    def process(self, name):
        """Return the process id, seen from outside, of the one that is 1 inside."""
        return int(self.podman.inspect(name)["State"]["Pid"])

    def children(self, name):
        process = self.process(name)
        return [int(word) for word in Path(f"/proc/{process}/task/{process}/children").read_text().split()]


SERVERS = {"crawl": ("crawl", "--workers", "2", "--no-uns"), "uns": ("uns",), "web": ("web",)}


@pytest.fixture(scope="module")
def house(tmp_path_factory):
    """An LCC that fetched the first document after nothing was there but a database server and a site."""
    wanted = os.environ.get("LCC_IMAGE", "")
    if not wanted:
        pytest.skip("builds an image: set LCC_IMAGE=1")
    skip_unless_possible()
    folder = tmp_path_factory.mktemp("container")
    (folder / "site").mkdir()
    (folder / "podman").mkdir()
    nginx, podman = Nginx(folder), Podman(folder / "podman")
    try:
        podman.make_base(Path(wanted) if os.sep in wanted else None)
        began = time.monotonic()
        podman.build("lcc")
        built = time.monotonic()
        nginx.start({"site": folder / "site"})
        with mariadb_server(folder / "database") as database:
            ready = time.monotonic()
            made = House(podman, folder, database, nginx)
            made.write("index.html", "<p>the first")
            made.begin()
            made.push()
            assert made.document("index.html") == b"<p>the first"
            first = time.monotonic() - ready
            size, base = (podman.size(image) / 1e6 for image in ("lcc", BASE))
            print(
                f"\nimage: {size:.0f} MB with a base of {base:.0f} MB, built in {built - began:.0f} s;"
                f" from `lcc init` to the first document: {first:.1f} s"
            )
            yield made
    finally:
        nginx.stop()
        podman.close()


PROBES = {
    "write into the root": "touch /x",
    "write into the program": "touch /opt/lcc/x",
    "change the program": "echo >> /opt/lcc/bin/lcc",
    "write into /etc": "touch /etc/x",
    "write into /run": "touch /run/x",
    "write into /var": "touch /var/x",
    "become root": "python3 -c 'import os; os.setuid(0)'",
    "mount": "mount -t tmpfs tmpfs /tmp",
    "make files of somebody else": "touch /tmp/x && chown 0 /tmp/x",
    "read what is root's": "cat /etc/shadow",
}


@pytest.mark.parametrize("name", SERVERS)
def test_a_server_writes_into_its_volume_and_memory_only(house, name):
    assert house.exec(name, "id", "-u").stdout.strip() == str(USER)
    status = house.exec(name, "cat", "/proc/1/status").stdout
    assert re.search(r"^CapEff:\s0+$", status, re.MULTILINE)
    assert re.search(r"^CapBnd:\s0+$", status, re.MULTILINE)
    assert re.search(r"^NoNewPrivs:\s1$", status, re.MULTILINE)
    assert house.exec(name, "sh", "-c", "touch /var/lib/lcc/x /tmp/x && rm /var/lib/lcc/x").returncode == 0
    possible = [what for what, probe in PROBES.items() if house.exec(name, "sh", "-c", probe).returncode == 0]
    assert possible == []


@pytest.mark.parametrize("name", SERVERS)
def test_a_server_that_stands_still_is_not_healthy(house, name):
    wait_for(lambda: house.is_healthy(name), 60, "health")
    process = house.process(name)
    os.kill(process, signal.SIGSTOP)
    try:
        wait_for(lambda: not house.is_healthy(name), WATCHDOG + 60, "the end of its health")
        assert "gave no sign of life for" in house.exec(name, "lcc", "health").stderr
    finally:
        os.kill(process, signal.SIGCONT)
    wait_for(lambda: house.is_healthy(name), 60, "health")


def test_a_crawl_process_that_stands_still_is_replaced_by_lcc_crawl(house):
    frozen, other = children = house.children("crawl")
    os.kill(frozen, signal.SIGSTOP)
    wait_for(lambda: frozen not in house.children("crawl"), WATCHDOG + 60, "the kill")
    wait_for(lambda: len(house.children("crawl")) == len(children), 60, "another one")
    assert other in house.children("crawl")
    assert house.is_healthy("crawl")


def test_without_its_database_no_server_is_healthy_and_all_of_them_live(house):
    house.database.stop()
    try:
        for name in SERVERS:
            assert not house.is_healthy(name)
            assert "does not answer" in house.exec(name, "lcc", "health").stderr
            wait_for(
                lambda name=name: house.exec(name, "lcc", "health", "--process-only").returncode == 0, 60
            )
    finally:
        house.database.start()
    for name in SERVERS:
        wait_for(lambda name=name: house.is_healthy(name), 60, "health")
    house.write("after.html", "<p>after the database came back")
    house.push()
    assert house.document("after.html") == b"<p>after the database came back"


@pytest.mark.parametrize("name", SERVERS)
def test_a_server_that_is_told_to_stop_ends_well_and_goes_on_when_it_is_started_again(house, name):
    wait_for(lambda: house.is_healthy(name), 60, "health")
    house.podman("kill", "--signal", "TERM", name)
    wait_for(lambda: house.podman.inspect(name)["State"]["Status"] == "exited", GRACE, "the end")
    assert house.podman.inspect(name)["State"]["ExitCode"] == 0
    house.podman("start", name)
    wait_for(lambda: answers(house.uns_port) and answers(house.web_port), 60, "the servers")
    house.write(f"{name}.html", f"<p>after {name} was stopped")
    house.push()
    assert house.document(f"{name}.html") == f"<p>after {name} was stopped".encode()
    wait_for(lambda: house.is_healthy(name), 60, "health")


def test_a_backup_has_database_and_contents(house):
    house.lcc("db", "backup", "--force", "/var/lib/lcc/backup.sqlite")
    tar = house.podman.run(
        *("lcc", "-cvf", "/dev/null", "backup.sqlite", "data/lcc.json", "data/content"),
        options=(*DATA, "--entrypoint", "tar"),
    )
    packed = tar.stdout.splitlines()
    assert {"backup.sqlite", "data/lcc.json", "data/content/machine-id"} <= set(packed)
    contents = [name for name in packed if name.startswith("data/content/") and not name.endswith("/")]
    assert len(contents) > len(house.documents())


def test_an_image_has_no_wheel_no_index_and_no_cache(house):
    said = house.podman("history", "--no-trunc", "lcc").stdout
    assert "PIP_INDEX_URL" not in said
    inside = house.exec(
        "web", "sh", "-c", "ls -A /tmp /root/.cache /var/lib/lcc/.cache; ls /opt/lcc/bin"
    ).stdout
    assert ".whl" not in inside
    assert "\npip" not in inside
