"""A site owner with Python alone registers and pushes with two commands, at a real ``lcc web`` and a real crawl."""

import json
import os
import re
import shlex
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from tests.harness import wait_for
from tests.ports import free_port
from tests.push_process import PushServer, push_server

ROOT = Path(__file__).parents[2]
PYTHON = shlex.split(os.environ.get("LCC_OWNER_PYTHON", sys.executable))
PAGES = {"index.html": "<p>home", "news.html": "<p>news", "docs/a.html": "<p>a document"}

pytestmark = [pytest.mark.acceptance, pytest.mark.slow]


@dataclass
class Owner:
    """Somebody with an empty home, the one file, and a Python without packages."""

    home: Path
    pyz: Path
    docroot: Path
    site: str
    said: list[str] = field(default_factory=list)

    def __call__(self, *words: str) -> tuple[int, str]:
        """Run ``lcc-push``; gives its status and all that it says."""
        done = subprocess.run(
            [*PYTHON, "-I", "-S", str(self.pyz), "lcc-push", *words],
            cwd=self.home, env={"HOME": str(self.home)}, stdin=subprocess.DEVNULL,
            capture_output=True, text=True, timeout=300, check=False,
        )  # fmt: skip
        said = done.stdout + done.stderr
        assert "Traceback" not in said, said
        self.said.append(said)
        return done.returncode, said

    def init(self, server: PushServer, docroot: Path | None = None, site: str = "") -> tuple[int, str]:
        url = f"http://127.0.0.1:{server.port}/"
        return self("init", url, str(docroot or self.docroot), site or self.site)

    @property
    def files(self) -> set[str]:
        """Return what is in the docroot."""
        return {str(one.relative_to(self.docroot)) for one in self.docroot.rglob("*") if one.is_file()}

    @property
    def config(self) -> Path:
        return self.home / ".config" / "lcc-push.ini"


@pytest.fixture
def owner(tmp_path, nginx):
    docroot, home, pyz = tmp_path / "www", tmp_path / "home", tmp_path / "lcc-provider.pyz"
    home.mkdir()
    for name, text in PAGES.items():
        (docroot / name).parent.mkdir(parents=True, exist_ok=True)
        (docroot / name).write_text(text)
    subprocess.run(
        [sys.executable, str(ROOT / "tools" / "build_pyz.py"), "--output", str(pyz)],
        check=True, stdout=subprocess.DEVNULL, timeout=300,
    )  # fmt: skip
    nginx.start({"site": docroot})
    return Owner(home, pyz, docroot, f"http://127.0.0.1:{nginx.ports['site']}/")


@pytest.fixture
def lcc(make_lcc, owner):
    port = free_port()
    return make_lcc(
        LCC_REGISTRATION="open", LCC_REGISTRATION_PRIVATE="yes", LCC_REGISTRATION_PORTS=owner.site.split(":")[2][:-1],
        LCC_REGISTRATION_RATE="1000/s", LCC_REGISTRATION_HOST_RATE="1000/s", LCC_REGISTRATION_PROOF_RATE="1000/s",
        LCC_PUSH_ENDPOINTS=f"127.0.0.1:{port}", LCC_PUBLIC_URL=f"http://127.0.0.1:{port}",
        LCC_UNS_ENDPOINTS="",
    )  # fmt: skip


@pytest.fixture
def web(lcc):
    with push_server(lcc, LCC_PUSH_ENDPOINTS=lcc.settings["LCC_PUSH_ENDPOINTS"]) as server:
        yield server


def documents(lcc, owner):
    return {str(url).removeprefix(owner.site) for (url,) in lcc.sql("select furl from lccurl")}


def listed(lcc, what):
    return json.loads(lcc.lcc(what, "list", "--json").stdout)


def test_two_commands_and_the_site_is_cached(lcc, web, owner):
    lcc.fetch_only()
    status, said = owner.init(web)
    assert (status, owner.site in said) == (0, True), said
    assert owner.files == set(PAGES), "the proof is gone again"
    status, said = owner()
    assert (status, f"accepted: {len(PAGES)} URLs" in said) == (0, True), said
    wait_for(lambda: documents(lcc, owner) == set(PAGES), what="the documents")
    assert owner() == (0, ""), "cron has nothing to mail"
    (row,) = listed(lcc, "provider")
    assert (row["roots"], row["state"]) == ([owner.site], "active")
    (owner.docroot / "news.html").write_text("<p>other news, and longer")
    (owner.docroot / "docs" / "a.html").unlink()
    status, said = owner()
    assert (status, "0 new, 1 changed, 1 removed, 1 unchanged" in said) == (0, True), said
    wait_for(lambda: documents(lcc, owner) == set(PAGES) - {"docs/a.html"}, what="the removal")
    assert owner() == (0, "")
    _assert_untold(owner, lcc.log_text() + web.log.read_text() + "".join(owner.said))


def _assert_untold(owner, text):
    password = re.search(r"password = (\w+)", owner.config.read_text())[1]
    assert password not in text


def test_mistakes_leave_nothing_active_and_the_right_command_goes_on(lcc, web, owner):
    assert owner.init(web, site=owner.site[:-1])[0] == 64, "asked about, and there is no terminal"
    assert owner.init(web, docroot=owner.home / "www")[0] == 66
    assert owner.init(web, site="http://127.0.0.1:1/")[0] == 64, "a port that is not permitted"
    assert listed(lcc, "registration") == []
    status, said = owner.init(web, docroot=owner.docroot / "docs")
    assert (status, "is not exactly the secret" in said) == (3, True), said
    assert owner()[0] == 75, "it is not finished"
    assert listed(lcc, "provider") == []
    assert "answers 404" in web.log.read_text()
    status, said = owner.init(web)
    assert (status, owner.files) == (0, set(PAGES)), said
    assert (len(listed(lcc, "provider")), listed(lcc, "registration")) == (1, [])
    web.stop()
    status, said = owner()
    assert (status, said.count("\n")) == (69, 1), said
    web.start()
    assert owner()[0] == 0, "what could not be told is told by the next run"


def test_where_registration_is_off_the_owner_is_told_so(lcc, owner):
    with push_server(lcc, LCC_REGISTRATION="off") as server:
        status, said = owner.init(server)
    assert (status, "takes no registrations" in said) == (69, True), said
    assert (owner.files, owner.config.exists()) == (set(PAGES), False)


def test_an_owner_waits_for_the_operator_and_then_goes_on(lcc, owner):
    with push_server(
        lcc, LCC_REGISTRATION="approve", LCC_PUSH_ENDPOINTS=lcc.settings["LCC_PUSH_ENDPOINTS"]
    ) as web:
        assert owner.init(web)[0] == 75
        assert owner()[0] == 75
        (row,) = listed(lcc, "registration")
        lcc.lcc("registration", "approve", str(row["pid"]))
        assert owner.init(web)[0] == 0
        assert owner()[0] == 0
        assert owner() == (0, "")
    assert owner.files == set(PAGES)
