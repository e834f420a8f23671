"""``lcc-push`` as the owner of a site runs it, against an LCC over HTTP and over a socket."""

import os
import re
import signal
import ssl
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

from lcc_scrapy.push.state import StateFile
from lcc_scrapy.wire.messages import UrlError
from tests.certificates import Authority
from tests.http_lcc import HttpLcc, problem, read_body

ROOT = Path(__file__).resolve().parents[2]
SITE = "http://www.example.org/"
KILLS = int(os.environ.get("LCC_PUSH_KILLS", "3"))


@dataclass
class Owner:
    """The owner of a site: a home, a docroot, a configuration; what runs is a real process."""

    home: Path
    lcc: HttpLcc
    python: tuple[str, ...] = (sys.executable,)

    @property
    def config(self) -> Path:
        return self.home / ".config" / "lcc-push.ini"

    @property
    def state(self) -> Path:
        return self.home / ".config" / "lcc-push.docroot.state"

    @property
    def docroot(self) -> Path:
        return self.home / "www"

    def write(self, name: str, text: str = "text") -> Path:
        path = self.docroot / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        return path

    def configure(self, **values: str) -> None:
        given = {
            "server": self.lcc.url, "pid": "7", "password": self.lcc.password,
            "docroot": str(self.docroot), "url": SITE, **values,
        }  # fmt: skip
        lines = ["[lcc-push]", *(f"{name} = {value}" for name, value in given.items() if value)]
        self.config.parent.mkdir(exist_ok=True)
        self.config.write_text("\n".join(lines) + "\n")
        self.config.chmod(0o600)

    def start(self, *words: str, **more: str) -> subprocess.Popen[bytes]:
        environment = {"HOME": str(self.home), "PATH": os.environ["PATH"], "PYTHONPATH": str(ROOT), **more}
        return subprocess.Popen(
            [*self.python, "-m", "lcc_scrapy.push", "lcc-push", *words],
            cwd=self.home,
            env=environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )

    def __call__(self, *words: str, stdin: str = "", **more: str) -> tuple[int, str]:
        process = self.start(*words, **more)
        out, err = process.communicate(stdin.encode("utf-8", "surrogateescape"), 300)
        said = (out + err).decode()
        assert "Traceback" not in said, said
        assert self.lcc.password not in said
        return process.returncode, said


@pytest.fixture
def owner(tmp_path):
    with HttpLcc() as lcc:
        made = Owner(tmp_path, lcc)
        made.docroot.mkdir()
        made.configure()
        yield made


def let_time_pass(path: Path) -> None:
    """Make all that is marked in a state file due."""
    state = StateFile(path)
    with state.opened() as reader:
        lines = [
            re.sub(rb'failed="(\d+ \d+) [1-9]\d*"', rb'failed="\1 1"', line) for _, line in reader.lines()
        ]
    state.write(reader.header, lines)


# --- what changed --------------------------------------------------------------------------------


def test_the_first_run_tells_all_and_the_next_one_nothing_in_silence(owner):
    owner.write("index.html")
    owner.write("a b/ü.html")
    owner.write(".hidden/x.html")
    (owner.docroot / "line\nend.txt").write_text("x")
    Path(os.fsdecode(bytes(owner.docroot) + b"/\xff.html")).write_text("x")

    status, said = owner()
    assert (status, said) == (0, "lcc-push: 4 new, 0 changed, 0 removed, 0 unchanged; accepted: 4 URLs\n")
    assert sorted(owner.lcc.sets[0]) == ["%FF.html", "a%20b/%C3%BC.html", "index.html", "line%0Aend.txt"]
    assert owner() == (0, "")
    assert len(owner.lcc.sets) == 1


def test_what_failed_is_sent_again_three_times_by_later_runs_or_when_it_changes(owner):
    for name in ("a.html", "b.html", "c.html"):
        owner.write(name)
    owner()
    failed = {"curl": SITE + "a.html", "mimetype": "text/html"}
    owner.lcc.errors = [UrlError(608, "md5 or len differs from the declared one", SITE + "a.html", failed)]
    status, said = owner()
    assert (status, "not fetched" in said) == (0, False)
    assert "1 URLs fetched, but not as declared, of earlier sets:" in said
    assert "1 URLs that failed are sent again by runs after 1, 6, 24 hours" in said
    assert owner() == (0, "")
    for _ in range(3):
        let_time_pass(owner.state)
        assert owner()[0] == 0
        assert owner() == (0, "")
    let_time_pass(owner.state)
    assert owner() == (0, "")
    assert owner.lcc.sets[1:] == [["a.html"]] * 3
    owner.write("a.html", "other")
    owner()
    assert owner.lcc.sets[4:] == [["a.html"]]


def test_what_the_login_of_a_set_reports_over_http_is_not_lost(owner):
    owner.write("a.html")
    owner()
    failed = {"curl": SITE + "a.html", "mimetype": "text/html"}
    asked = len(owner.lcc.requests)

    def report(lcc, _handler):
        lcc.errors = [UrlError(503, "", "", failed)] if len(lcc.requests) == asked + 2 else []

    owner.lcc.before = report
    owner.write("b.html")
    owner()
    let_time_pass(owner.state)
    owner()
    assert owner.lcc.sets[1:] == [["b.html"], ["a.html"]]


def test_changes_and_removals_are_told(owner):
    for name in ("a.html", "b.html", "c.html"):
        owner.write(name)
    owner()
    owner.write("a.html", "other")
    (owner.docroot / "b.html").unlink()
    assert owner()[0] == 0
    assert sorted(owner.lcc.sets[-1]) == ["-b.html", "a.html"]


def test_docroot_and_site_may_stand_on_the_command_line(owner):
    owner.configure(docroot="", url="")
    owner.write("a.html")
    assert owner(str(owner.docroot), SITE)[0] == 0
    assert list(owner.lcc.held) == [SITE + "a.html"]


def test_a_dry_run_asks_and_changes_nothing(owner):
    owner.write("a.html")
    status, said = owner("--dry-run")
    assert (status, owner.lcc.held, owner.lcc.sets) == (0, {}, [])
    assert "received 1" in said
    assert owner()[0] == 0
    assert owner.lcc.sets == [["a.html"]]


def test_a_full_run_tells_the_whole_site(owner):
    owner.write("a.html")
    owner()
    owner.lcc.held["http://www.example.org/stranger"] = {}
    assert owner("--full")[0] == 0
    assert list(owner.lcc.held) == [SITE + "a.html"]


def test_a_full_set_that_the_lcc_wants_goes_out_with_the_next_run(owner):
    owner.write("a.html")
    owner()
    owner.lcc.wanted, owner.lcc.held = True, {}
    assert "the LCC wants a full set (lost): the next run sends it" in owner()[1]
    assert owner()[0] == 0
    assert list(owner.lcc.held) == [SITE + "a.html"]


# --- nothing refused counts as told ----------------------------------------------------------------


def test_a_push_of_which_all_was_refused_is_never_green_until_it_is_mended(owner):
    owner.write("a.html")
    owner.lcc.likes = ("http://other.example/",)
    for _ in range(3):
        status, said = owner()
        assert status == 1
        assert "704 URL outside the provider's roots" in said
    assert len(owner.lcc.sets) == 1
    owner.lcc.likes, owner.lcc.revision = (SITE,), "2"
    assert owner()[0] == 0
    assert list(owner.lcc.held) == [SITE + "a.html"]
    assert owner() == (0, "")


def test_urls_by_name_that_were_refused_are_told_again_too(owner):
    owner.lcc.likes = ("http://other.example/",)
    assert owner("--urls", "-", stdin="a.html\n")[0] == 1
    owner.lcc.likes, owner.lcc.revision = (SITE,), "2"
    assert owner("--urls", "-", stdin="b.html\n")[0] == 0
    assert sorted(owner.lcc.held) == [SITE + "a.html", SITE + "b.html"]


# --- URLs by name ----------------------------------------------------------------------------------


def test_urls_by_name_are_told_each_time_and_remove_nothing(owner):
    owner.write("a.html")
    owner()
    listed = f"# what changed\n{SITE}news?id=4\n\nreport.pdf\n"
    for _ in range(2):
        assert owner("--urls", "-", stdin=listed)[0] == 0
        assert owner.lcc.sets[-1] == [SITE + "news?id=4", "report.pdf"]
    assert owner.lcc.held[SITE + "report.pdf"]["mimetype"] == "application/pdf"
    assert owner() == (0, "")
    assert len(owner.lcc.held) == 3


def test_its_own_runs_are_no_logins_of_others(owner):
    owner.write("a.html")
    owner()
    owner("--urls", "-", stdin="b.html\n")
    owner("--dry-run")
    assert owner() == (0, "")
    owner.lcc.seq += 2
    assert "2 other logins as this provider" in owner()[1]
    assert owner() == (0, "")


# --- kills -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("moment", ["login", "set", "answered"])
def test_a_kill_loses_nothing_and_is_nobodys_login(owner, moment):
    for turn in range(KILLS):
        owner.write(f"{turn}.html", f"{moment} {turn}")
        stopped, process = [], []

        def hold(lcc, handler, stopped=stopped, process=process):
            nth = 1 if moment == "login" else 2
            if len(stopped) + 1 == nth and moment != "answered":
                process[0].send_signal(signal.SIGKILL)
                stopped.append(1)
                return problem(503, "gone")
            stopped.append(1)
            if moment == "answered" and len(stopped) == 2:
                lcc.before = lambda *_: None
                made = lcc._push(handler, read_body(handler))
                process[0].send_signal(signal.SIGKILL)
                return made
            return None

        owner.lcc.before = hold
        process.append(owner.start())
        process[0].communicate(timeout=300)
        assert process[0].returncode == -signal.SIGKILL
        owner.lcc.before = lambda *_: None
        status, said = owner()
        assert status == 0
        assert "other logins" not in said
        assert owner.lcc.held[f"{SITE}{turn}.html"]
    assert owner() == (0, "")


# --- bad input ---------------------------------------------------------------------------------------


def test_each_mistake_has_a_line_and_a_status(owner):
    def refused(*words, status, **more):
        found, said = owner(*words, **more)
        assert found == status, said
        return said

    assert "nothing to push" in refused(status=65)
    owner.write("a.html")
    docroot = str(owner.docroot)
    assert "did you mean http://www.example.org/docs/ ?" in refused(docroot, SITE + "docs", status=64)
    assert "did you mean http://www.example.org/ ?" in refused(docroot, SITE[:-1], status=64)
    assert "no such folder" in refused(docroot + "x", SITE, status=66)
    assert "is not http" in refused(docroot, "ftp://h/", status=64)
    assert "clear" in refused("--server", "http://lcc.example.org/", status=64)
    assert "is not HOST" in refused("--server", "a:b:c://", status=64)
    assert "no such file" in refused("--config", "none.ini", status=66)
    assert (
        "no such file" in refused("--ca", "none.pem", "--server", "https://127.0.0.1:1/", status=66).lower()
    )
    assert "cannot connect" in refused("--server", "http://127.0.0.1:1/", status=69)
    assert "cannot connect" in refused("--server", "127.0.0.1:1", status=69)
    assert "line 2: a blank" in refused("--urls", "-", status=65, stdin="a\nb c\n")
    assert "line 1: longer" in refused("--urls", "-", status=65, stdin="a" * 9000)
    assert "No such file" in refused("--urls", "none.txt", status=66)
    assert "max_removal" in refused("--max-removal", "x", status=64)
    assert not owner.lcc.sets


def test_a_password_that_others_may_read_is_not_used(owner):
    owner.write("a.html")
    owner.config.chmod(0o640)
    status, said = owner()
    assert (status, owner.lcc.requests) == (64, [])
    assert f"chmod 600 {owner.config}" in said
    owner.configure(password="")
    owner.config.chmod(0o644)
    assert owner(LCC_PASSWORD="wrong-one")[0] == 77
    assert owner(LCC_PASSWORD=owner.lcc.password)[0] == 0


@pytest.mark.parametrize(
    ("text", "said", "status"),
    [
        ("[lcc-push]\nservr = x\n", "servr is not known", 64),
        ("server = x\n", "cannot be read", 65),
        ("[other]\nx = y\n", "[other] is not known", 64),
        ("[lcc-push]\nserver = \xff\n", "not UTF-8", 65),
        ("[lcc-push]\npid = 7\n", "no server", 64),
    ],
)
def test_a_configuration_that_cannot_be_used_says_why(owner, text, said, status):
    owner.config.write_bytes(text.encode("latin-1"))
    found, words = owner()
    assert (found, said in words) == (status, True), words


def test_a_docroot_that_is_not_mounted_removes_nothing(owner):
    for number in range(30):
        owner.write(f"{number}.html")
    owner()
    for number in range(29):
        (owner.docroot / f"{number}.html").unlink()
    status, said = owner()
    assert (status, len(owner.lcc.held)) == (65, 30)
    assert "is the site mounted and whole?" in said
    assert owner("--max-removal", "100")[0] == 0
    assert len(owner.lcc.held) == 1


# --- servers that do not behave ------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("answer", "status", "said"),
    [
        (problem(401, "wrong"), 77, "HTTP 401: wrong"),
        (problem(403, "not active"), 77, "not active"),
        (problem(429, "slow down", Retry_After="7"), 75, "slow down"),
        (problem(503, "off-line"), 75, "off-line"),
        (problem(404, "nothing"), 69, "takes no pushes"),
        ((302, {"Location": "http://other.example/"}, b""), 69, "redirects to http://other.example/"),
        ((200, {"Content-Type": "text/html"}, b"<html>" * 100_000), 69, "takes no pushes"),
        ((200, {"Content-Type": "application/xml"}, b"<garbage/>"), 75, "cannot be read"),
        ((200, {"Content-Type": "application/xml"}, b"<!DOCTYPE x><lococa:init_accepted/>"), 75, "DOCTYPE"),
        (
            (200, {"Content-Type": "application/xml"}, b"<lococa:init_accepted a='" + b"x" * 3_000_000),
            75,
            "tag",
        ),
    ],
)
def test_what_a_server_answers_instead_has_a_line_and_a_status(owner, answer, status, said):
    owner.write("a.html")
    owner.lcc.before = lambda *_: answer
    found, words = owner()
    assert found == status, words
    assert said in words
    assert words.count("\n") <= 2
    owner.lcc.before = lambda *_: None
    assert owner()[0] == 0


def test_a_server_that_says_nothing_is_given_up(owner):
    import threading

    held = threading.Event()
    owner.write("a.html")
    owner.configure(timeout="0.5")
    owner.lcc.before = lambda *_: held.wait(300) and None
    try:
        status, said = owner()
    finally:
        held.set()
    assert (status, "did not answer for 0.5 seconds" in said) == (75, True), said


def test_a_second_run_beside_the_first_one_says_so(owner):
    owner.write("a.html")
    seen = []

    def beside(lcc, _handler):
        lcc.before = lambda *_: None
        seen.append(owner())

    owner.lcc.before = beside
    assert owner()[0] == 0
    assert seen[0][0] == 75
    assert "in use by another run" in seen[0][1]


def test_help_has_examples_and_every_option_is_documented(owner):
    status, said = owner("--help")
    assert status == 0
    page = (ROOT / "docs" / "lcc-push.md").read_text()
    for option in set(re.findall(r"--[a-z-]+", said)) - {"--help"}:
        assert f"`{option}" in page or f"{option} " in page, option


def test_certificates_are_verified(owner, tmp_path):
    ours, other = Authority(), Authority("Another CA")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    folder = ours.issue("127.0.0.1").write(tmp_path / "tls")
    context.load_cert_chain(folder / "cert.pem", folder / "key.pem")
    owner.lcc.wrap(context)
    for name, authority in (("ours.pem", ours), ("other.pem", other)):
        (tmp_path / name).write_bytes(authority.pem)
    owner.write("a.html")
    owner.configure()
    for words, status in (((), 69), (("--ca", "other.pem"), 69), (("--ca", "ours.pem"), 0)):
        found, said = owner(*words)
        assert found == status, said
        assert ("certificate not trusted" in said) == (status == 69)
