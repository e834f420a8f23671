"""``lcc-push`` against a real LCC, over its socket; and all of it in one file, on the oldest Python that it knows."""

import os
import re
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.component.test_lcc_push import Owner
from tests.component.test_lcc_push_init import Office
from tests.harness import PASSWORD, wait_for
from tests.http_lcc import HttpLcc

ROOT = Path(__file__).resolve().parents[2]
KILLS = int(os.environ.get("LCC_PUSH_KILLS", "4"))
STEPS = "one_push,delivery,ledger,logins,state,client,link,lcccpstate,http_push,web,unconfirmed"
OLD = ("3.8", "3.9", "3.10")

pytestmark = pytest.mark.slow


def old_pythons():
    """Return the Pythons older than ours that this machine has."""
    folders = sorted((Path.home() / ".pyenv" / "versions").glob("3.*/bin/python"))
    found = [str(path) for path in folders if path.parts[-3].startswith(tuple(f"{one}." for one in OLD))]
    return found or [path for one in OLD if (path := interpreter(shutil.which(f"python{one}")))]


def interpreter(command):
    """Return the Python itself where a command only starts one, and needs an environment for it."""
    if command is None:
        return ""
    asked = [command, "-c", "import sys; print(sys.executable)"]
    done = subprocess.run(asked, capture_output=True, text=True, timeout=300, check=False)
    return done.stdout.strip() if done.returncode == 0 else ""


def kill_at_lines(owner, change, is_told):
    """Kill pushes at lines that are spread over the whole of one; after each a plain run tells what changed."""

    def run(at):
        environment = {"HOME": str(owner.home), "PATH": os.environ["PATH"], "PYTHONPATH": str(ROOT)}
        return subprocess.run(
            [sys.executable, str(ROOT / "tests" / "killed_at_line.py"), str(at), STEPS, "--quiet"],
            env=environment, cwd=owner.home, capture_output=True, timeout=300, check=False,
        )  # fmt: skip

    owner()
    change(-1)
    done = run(0)
    assert done.returncode == 0, done.stderr
    lines = int(re.search(rb"lines (\d+)", done.stderr)[1])
    for number in range(KILLS):
        at = 1 + number * (lines - 1) // max(1, KILLS)
        change(number)
        assert run(at).returncode == -signal.SIGKILL, at
        status, said = owner()
        assert status == 0, (at, said)
        assert "other logins" not in said, at
        assert is_told(number), at
        assert owner() == (0, ""), at
    print(f"{KILLS} pushes killed at lines spread over {lines}")


def test_kills_at_any_line_lose_nothing_over_http(tmp_path):
    with HttpLcc() as lcc:
        owner = Owner(tmp_path, lcc)
        owner.write("a.html")
        owner.configure()
        kill_at_lines(
            owner,
            lambda number: owner.write(f"{number}.html", "new"),
            lambda number: f"http://www.example.org/{number}.html" in lcc.held,
        )


def test_kills_at_any_line_lose_nothing_over_the_socket_of_a_real_lcc(make_lcc, tmp_path):
    lcc = make_lcc(LCC_POLL="0.5")
    lcc.add_provider(7, "http://www.example.org/")
    lcc.start_uns()
    try:
        owner = Owner(tmp_path / "owner", HttpLcc(password=PASSWORD))
        owner.home.mkdir()
        owner.lcc.url = f"127.0.0.1:{lcc.port}"
        owner.write("a.html")
        owner.configure()

        def told(number):
            wait_for(
                lambda: (f"http://www.example.org/{number}.html",) in lcc.sql("select furl from qdb"),
                what="the URL in the queue",
            )
            return True

        kill_at_lines(owner, lambda number: owner.write(f"{number}.html", "new"), told)
    finally:
        lcc.stop_uns()


@pytest.mark.parametrize("python", old_pythons() or [sys.executable])
def test_the_one_file_registers_and_pushes_on_an_old_python(tmp_path, python):
    target = tmp_path / "lcc-provider.pyz"
    built = subprocess.run(
        [sys.executable, str(ROOT / "tools" / "build_pyz.py"), "--output", str(target)],
        capture_output=True, timeout=300, check=False,
    )  # fmt: skip
    assert built.returncode == 0, built.stderr

    class OneFile(Owner):
        def start(self, *words, **more):
            return subprocess.Popen(
                [python, "-I", str(target), "lcc-push", *words],
                cwd=self.home, env={"HOME": str(self.home), "PATH": "/nowhere", **more},
                stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
            )  # fmt: skip

    with HttpLcc() as lcc:
        owner = OneFile(tmp_path, lcc)
        owner.write("index.html")
        Office(lcc, owner.docroot)
        assert owner("init", lcc.url, str(owner.docroot), "http://www.example.org/")[0] == 0
        lcc.password = re.search(r"password = (.*)", owner.config.read_text())[1]
        assert owner()[0] == 0
        assert list(lcc.held) == ["http://www.example.org/index.html"]
        lcc.likes, lcc.revision = ("http://elsewhere/",), "2"
        owner.write("b.html")
        assert [owner()[0] for _ in range(2)] == [1, 1]
        (tmp_path / "map.xml").write_text(
            "<urlset><url><loc>http://elsewhere/a</loc><lastmod>2024-05-01</lastmod></url></urlset>"
        )
        assert owner("--sitemap", "map.xml")[0] == 0
        assert "http://elsewhere/a" in lcc.held
        assert owner("--urls", "-", stdin="http://elsewhere/b\n")[0] == 0
        with_encoding = '<?xml version="1.0" encoding="{}"?>{}'
        entry = "<urlset><url><loc>http://elsewhere/?文&x</loc></url></urlset>"
        for label, codec, status in (("x-sjis", "cp932", 0), ("none", "utf-8", 65), ("hex", "utf-8", 65)):
            (tmp_path / "map.xml").write_bytes(with_encoding.format(label, entry).encode(codec))
            assert owner("--sitemap", "map.xml", "--max-removal", "100")[0] == status
        assert "http://elsewhere/?%E6%96%87&x" in lcc.held
