"""``lcc-push init``: registering a site, whatever is in the way, and however often it is killed."""

import json
import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.component.test_lcc_push import ROOT, SITE, Owner
from tests.http_lcc import HttpLcc, problem

KILLS = int(os.environ.get("LCC_PUSH_KILLS", "6"))
PROOF = "lcc-registration.txt"
STEPS = "init,configuration,registration_api"


class Office:
    """The registration API: a pair is active when its secret stands in the docroot."""

    def __init__(self, lcc: HttpLcc, docroot: Path) -> None:
        self.lcc, self.docroot = lcc, docroot
        self.pairs: dict[str, dict[str, str]] = {}
        self.active: set[str] = set()
        self.asked: list[dict[str, str]] = []
        self.approves = True
        lcc.routes["POST", "/v1/registrations"] = self.register

    def register(self, _handler, body):
        self.asked.append(json.loads(body))
        pid = str(len(self.pairs) + 7)
        made = {"pid": int(pid), "secret": f"secret-{pid}", "password": f"pass%word-{pid}", "file": PROOF}
        self.pairs[pid] = made
        self.lcc.routes["POST", f"/v1/registrations/{pid}/activate"] = self.activate
        return 201, {"Content-Type": "application/json"}, json.dumps(made | {"expires": 1}).encode()

    def activate(self, handler, body):
        pid = handler.path.split("/")[3]
        made = self.pairs.get(pid)
        if made is None or not self.lcc.is_known(handler, pid, made["password"]):
            return problem(401, "not known")
        if pid in self.active:
            return 409, {}, json.dumps({"detail": "active already", "error": "already-active"}).encode()
        proof = self.docroot / PROOF
        if not proof.exists() or proof.read_text() != made["secret"] or not proof.stat().st_mode & 0o004:
            return problem(409, "the file was not found in that folder")
        facts = {"pid": pid, "root": json.loads(body)["folder"], "push": {"url": f"{self.lcc.url}v1/push"}}
        if not self.approves:
            return 202, {}, json.dumps(facts).encode()
        self.active.add(pid)
        return 200, {}, json.dumps(facts).encode()


@pytest.fixture
def owner(tmp_path):
    with HttpLcc() as lcc:
        made = Owner(tmp_path, lcc)
        made.docroot.mkdir()
        yield made


@pytest.fixture
def office(owner):
    return Office(owner.lcc, owner.docroot)


def init(owner, *words):
    return owner("init", owner.lcc.url, str(owner.docroot), SITE, *words)


def password_in(owner):
    return re.search(r"password = (.*)", owner.config.read_text())[1]


def test_two_commands_register_a_site_and_push_it(owner, office):
    owner.write("index.html")
    status, said = init(
        owner, "--email", "me@example.org", "--hours", "0-6", "--timezone", "Europe/Amsterdam"
    )
    assert status == 0, said
    assert office.asked == [
        {"site": SITE, "email": "me@example.org", "hours": "0-6", "timezone": "Europe/Amsterdam"}
    ]
    assert [path.name for path in owner.docroot.iterdir()] == ["index.html"]
    assert owner.config.stat().st_mode & 0o777 == 0o600
    assert "pass%word" not in said
    assert "secret-7" not in said
    owner.lcc.password = password_in(owner)
    assert owner()[0] == 0
    assert list(owner.lcc.held) == [SITE + "index.html"]
    assert init(owner) == (
        0,
        f"lcc-push init: {owner.config}: registered already, as provider 7\n",
    )


def test_what_is_not_ours_is_not_overwritten(owner, office):
    proof = owner.write(PROOF, "of somebody else")
    status, said = init(owner)
    assert (status, proof.read_text()) == (64, "of somebody else")
    assert "not of this registration" in said
    assert not office.active
    assert init(owner, "--force")[0] == 0
    assert not proof.exists()

    before = owner.config.read_text()
    (owner.home / "other").mkdir()
    status, said = owner("init", owner.lcc.url, str(owner.home / "other"), "http://other.example/")
    assert (status, owner.config.read_text()) == (64, before)
    assert "--force" in said


def test_an_operator_may_have_to_approve(owner, office):
    office.approves = False
    status, said = init(owner)
    assert status == 75
    assert "approve" in said
    assert (owner.docroot / PROOF).exists()
    assert owner()[0] == 75
    assert "not finished" in owner()[1]
    office.approves = True
    assert init(owner)[0] == 0
    assert len(office.pairs) == 1
    assert not (owner.docroot / PROOF).exists()


def test_a_registration_that_expired_is_made_anew(owner, office):
    office.approves = False
    init(owner)
    office.approves = True
    office.pairs["7"] = {"password": "another", "secret": "x", "file": PROOF}
    status, said = init(owner)
    assert (status, office.active) == (0, {"8"}), said


def test_a_proof_that_fails_says_what_the_lcc_says(owner, office, tmp_path):
    office.docroot = tmp_path
    status, said = init(owner)
    assert status == 3
    assert "the file was not found in that folder" in said
    assert f"The file is {owner.docroot / PROOF}: does {SITE}{PROOF} show it?" in said


def test_a_wrong_docroot_is_mended_by_the_right_command(owner, office, tmp_path):
    office.docroot = tmp_path / "right"
    office.docroot.mkdir()
    assert init(owner)[0] == 3
    status, said = owner("init", owner.lcc.url, str(office.docroot), SITE)
    assert (status, len(office.pairs)) == (0, 1), said
    assert f"docroot = {office.docroot}\n" in owner.config.read_text()
    assert not [*owner.docroot.iterdir(), *office.docroot.iterdir()]


def test_a_file_that_came_in_the_place_of_the_proof_stays_in_a_wrong_docroot(owner, office, tmp_path):
    office.docroot = tmp_path / "right"
    office.docroot.mkdir()
    assert init(owner)[0] == 3
    theirs = owner.write(PROOF, "of somebody else")
    assert owner("init", owner.lcc.url, str(office.docroot), SITE)[0] == 0
    assert theirs.read_text() == "of somebody else"


def test_an_unfinished_registration_of_another_site_is_asked_about(owner, office, tmp_path):
    office.docroot = tmp_path
    assert init(owner)[0] == 3
    before = owner.config.read_text()
    status, said = owner("init", owner.lcc.url, str(owner.docroot), SITE + "docs/")
    assert (status, owner.config.read_text(), len(office.pairs)) == (64, before, 1)
    assert f"is of {SITE}, whose registration is not finished" in said
    assert owner("init", owner.lcc.url, str(owner.docroot), SITE + "docs/", "--force")[0] == 3
    assert len(office.pairs) == 2


@pytest.mark.parametrize(
    ("answer", "status"),
    [
        ((201, {}, b"garbage"), 69),
        ((201, {}, b"[" * 100_000), 69),
        ((201, {}, b"x" * 10_000_000), 69),
        (
            (
                201,
                {},
                json.dumps({"pid": 7, "secret": "a" * 9, "password": "p" * 9, "file": "../x.txt"}).encode(),
            ),
            69,
        ),
        (
            (
                201,
                {},
                json.dumps({"pid": "7\n[x]", "secret": "a" * 9, "password": "p" * 9, "file": PROOF}).encode(),
            ),
            69,
        ),
        (problem(404, "nothing"), 69),
        (problem(422, "bandwidth: not understood"), 64),
        (problem(429, "slowly", Retry_After="60"), 75),
    ],
)
def test_what_is_no_registration_leaves_nothing_behind(owner, answer, status):
    owner.lcc.before = lambda *_: answer
    found, said = init(owner)
    assert found == status, said
    assert said.count("\n") == 1
    assert len(said) < 1000
    assert not owner.config.exists()
    assert not list(owner.docroot.iterdir())


def test_mistakes_are_said_before_anything_is_asked(owner, office):
    docroot = str(owner.docroot)
    for words, status in (
        (("init", owner.lcc.url, docroot + "x", SITE), 66),
        (("init", owner.lcc.url, docroot, SITE[:-1]), 64),
        (("init", "http://lcc.example.org/", docroot, SITE), 64),
        (("init", "lcc.example.org:9000", docroot, SITE), 64),
        (("init", owner.lcc.url, docroot), 64),
    ):
        assert owner(*words)[0] == status
    assert not office.asked
    assert not owner.config.exists()


def test_after_a_kill_at_any_line_the_same_command_goes_on(owner, office):
    def run(at):
        environment = {"HOME": str(owner.home), "PATH": os.environ["PATH"], "PYTHONPATH": str(ROOT)}
        words = ["init", owner.lcc.url, str(owner.docroot), SITE]
        return subprocess.run(
            [sys.executable, str(ROOT / "tests" / "killed_at_line.py"), str(at), STEPS, *words],
            env=environment, cwd=owner.home, capture_output=True, timeout=300, check=False,
        )  # fmt: skip

    done = run(0)
    assert done.returncode == 0, done.stderr
    lines = int(re.search(rb"lines (\d+)", done.stderr)[1])
    for number in range(KILLS):
        owner.config.unlink(missing_ok=True)
        at = 1 + number * (lines - 1) // max(1, KILLS - 1)
        assert run(at).returncode == -signal.SIGKILL, at
        status, said = init(owner)
        assert status == 0, (at, said)
        assert not list(owner.docroot.iterdir()), at
        assert password_in(owner) == office.pairs[max(office.active, key=int)]["password"], at
        assert "[registration]" not in owner.config.read_text()
    print(
        f"init killed at {KILLS} of its {lines} lines; {len(office.pairs)} pairs for {KILLS + 1} registrations"
    )
