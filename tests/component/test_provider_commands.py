"""The three provider commands as a user runs them: real pipelines against a scripted UNS."""

import hashlib
import json
import os
import re
import shlex
import socket
import ssl
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from cryptography.x509.oid import NameOID

from lcc_scrapy.wire import writing
from lcc_scrapy.wire.messages import (
    InitAccepted,
    InitRejected,
    Quota,
    SetAccepted,
    SetRejected,
    UrlError,
)

ROOT = Path(__file__).resolve().parents[2]
PREFIX = "http://www.example.org/"
SECRET = "correct-horse"
NO_LIMITS = Quota()


def login(seq: int = 1, quota: Quota = NO_LIMITS, lcc: str = "lcc-one", **more: object) -> InitAccepted:
    return InitAccepted(seq, "192.0.2.1", ("text/*",), quota, lcc_id=lcc, **more)  # type: ignore[arg-type]


@dataclass
class Talk:
    """One connection as the UNS saw it."""

    connection: socket.socket
    received: bytes = b""

    def read_until(self, mark: bytes) -> bool:
        while mark not in self.received:
            data = self.connection.recv(65536)
            if not data:
                return False
            self.received += data
        return True

    def send(self, data: bytes) -> None:
        self.connection.sendall(data)

    @property
    def urls(self) -> list[dict[str, str]]:
        found = re.findall(rb"<url ([^>]*)/>", self.received)
        return [dict(re.findall(r'(\w+)="([^"]*)"', item.decode())) for item in found]

    @property
    def set_tag(self) -> dict[str, str]:
        found = re.search(rb"<lococa:set ([^>]*)>", self.received)
        return dict(re.findall(r'([\w]+)="([^"]*)"', found[1].decode())) if found else {}

    @property
    def curls(self) -> list[str]:
        return [url["curl"] for url in self.urls if "op" not in url]

    @property
    def removed(self) -> list[str]:
        return [url["curl"] for url in self.urls if url.get("op") == "remove"]


Script = Callable[[Talk], None]


def accepting(answer: InitAccepted | None = None, *errors: UrlError) -> Script:
    def play(talk: Talk) -> None:
        talk.read_until(b"</lococa:init>")
        talk.send(writing.init_accepted(answer or login()))
        if talk.read_until(b"</lococa:set>"):
            talk.send(writing.set_result_start())
            for error in errors:
                talk.send(writing.url_error(error))
            dry = 0 if "dryrun" in talk.set_tag else None
            talk.send(writing.set_result_end(SetAccepted(len(talk.urls) - len(errors), dry)))

    return play


def refusing_login(code: int, reason: str, retry_after: int = 0) -> Script:
    def play(talk: Talk) -> None:
        talk.read_until(b"</lococa:init>")
        talk.send(writing.init_rejected(InitRejected(code, reason, retry_after)))

    return play


def refusing_set(code: int, reason: str) -> Script:
    def play(talk: Talk) -> None:
        talk.read_until(b"</lococa:init>")
        talk.send(writing.init_accepted(login()))
        talk.read_until(b"</lococa:set>")
        talk.send(writing.set_result_start() + writing.set_result_end(SetRejected(code, reason)))

    return play


def hanging_up_before_the_verdict(talk: Talk) -> None:
    talk.read_until(b"</lococa:init>")
    talk.send(writing.init_accepted(login()))
    talk.read_until(b"</lococa:set>")


@dataclass
class Uns:
    """A UNS that plays one script per connection, on a thread; the last script is played again."""

    scripts: list[Script] = field(default_factory=list)
    talks: list[Talk] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.address = f"127.0.0.1:{self._listener.getsockname()[1]}"
        self._thread = threading.Thread(target=self._serve)
        self._thread.start()

    def _serve(self) -> None:
        while True:
            connection, _ = self._listener.accept()
            with connection:
                connection.settimeout(30)
                if not self.scripts:
                    return
                script = self.scripts.pop(0) if len(self.scripts) > 1 else self.scripts[0]
                self.talks.append(Talk(connection))
                try:
                    script(self.talks[-1])
                    connection.shutdown(socket.SHUT_WR)
                    while connection.recv(65536):
                        pass
                except OSError:
                    pass

    def close(self) -> None:
        self.scripts = []
        with socket.create_connection(self._listener.getsockname()):
            pass
        self._thread.join(300)
        self._listener.close()

    @property
    def last(self) -> Talk:
        return self.talks[-1]


@dataclass
class Shell:
    """Runs command lines in a folder where the three commands are on the PATH."""

    folder: Path
    environment: dict[str, str]
    uns: Uns

    def __call__(self, line: str, stdin: bytes = b"") -> subprocess.CompletedProcess[str]:
        done = subprocess.run(
            ["sh", "-c", line],
            cwd=self.folder,
            env=self.environment,
            input=stdin,
            capture_output=True,
            timeout=300,
            check=False,
        )
        result = subprocess.CompletedProcess(
            line, done.returncode, done.stdout.decode(), done.stderr.decode()
        )
        assert "Traceback" not in result.stderr, result.stderr
        return result

    def lcccp(self, options: str = "") -> str:
        return f"lcccp --uns={self.uns.address} --pid=7 --pwd={SECRET} --urlprefix={PREFIX} {options}"

    def push(self, state_options: str = "", options: str = "") -> subprocess.CompletedProcess[str]:
        """The seed's own pipeline."""
        return self(
            "file2url --find docroot -name '*.html' "
            f"| lcccpstate --statefile=state.txt {state_options} | {self.lcccp(options)}"
        )

    def write(self, name: str, text: str = "text") -> Path:
        path = self.folder / "docroot" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        return path

    @property
    def state(self) -> str:
        return (self.folder / "state.txt").read_text()


@pytest.fixture
def uns() -> Iterator[Uns]:
    server = Uns([accepting()])
    yield server
    server.close()


@pytest.fixture
def shell(tmp_path: Path, uns: Uns) -> Shell:
    commands = tmp_path / "bin"
    commands.mkdir()
    for name in ("file2url", "file2url.sh", "lcccpstate", "lcccp"):
        command = commands / name
        command.write_text(f'#!/bin/sh\nexec {sys.executable} -m lcc_scrapy.push {name} "$@"\n')
        command.chmod(0o755)
    (tmp_path / "docroot").mkdir()
    environment = {"PATH": f"{commands}:{os.environ['PATH']}", "PYTHONPATH": str(ROOT), "LC_ALL": "C.UTF-8"}
    return Shell(tmp_path, environment, uns)


# --- the pipeline of the seed ----------------------------------------------------------------------


def test_the_seeds_pipeline_sends_every_file_once_and_nothing_the_second_time(shell: Shell, uns: Uns) -> None:
    shell.write("index.html", "hello")
    shell.write("sub/a page.html")
    shell.write("notes.txt")

    first, second = shell.push(), shell.push()

    assert (first.returncode, second.returncode) == (0, 0), first.stderr + second.stderr
    assert uns.talks[0].curls == ["index.html", "sub/a%20page.html"]
    assert uns.talks[0].urls[0] | {"mtime": "0"} == {
        "curl": "index.html",
        "mimetype": "text/html",
        "len": "5",
        "mtime": "0",
        "md5": hashlib.md5(b"hello").hexdigest(),
    }
    assert uns.talks[0].set_tag | {"id": ""} == {"set": "partial", "urlprefix": PREFIX, "id": ""}
    assert uns.talks[1].set_tag == {}
    assert b'<provider id="7"' in uns.talks[1].received
    assert "accepted: 2 URLs" in first.stderr
    assert "nothing to send" in second.stderr


def test_exactly_the_changes_are_sent(shell: Shell, uns: Uns) -> None:
    for name in ("same", "changed", "gone"):
        shell.write(f"{name}.html", name)
    assert shell.push().returncode == 0
    shell.write("changed.html", "other")
    shell.write("new.html")
    (shell.folder / "docroot/gone.html").unlink()

    assert shell.push().returncode == 0

    assert sorted(uns.last.curls) == ["changed.html", "new.html"]
    assert uns.last.removed == ["gone.html"]


def test_a_touched_file_is_not_sent_and_its_new_time_is_recorded(shell: Shell, uns: Uns) -> None:
    path = shell.write("a.html")
    assert shell.push().returncode == 0
    os.utime(path, (1_000_000_000, 1_000_000_000))

    assert shell.push().returncode == 0

    assert uns.last.set_tag == {}
    assert 'mtime="1000000000"' in shell.state


def test_another_mimetype_is_a_removal_and_an_addition(shell: Shell, uns: Uns) -> None:
    line = "file2url --mimetype html={} --find docroot | lcccpstate --statefile=state.txt | " + shell.lcccp()
    shell.write("a.html")
    assert shell(line.format("text/html")).returncode == 0

    assert (
        shell(line.format("text/plain").replace("state.txt", "state.txt --max-removal=100")).returncode == 0
    )

    assert [(url["mimetype"], url.get("op")) for url in uns.last.urls] == [
        ("text/plain", None),
        ("text/html", "remove"),
    ]


def test_file2url_sh_is_the_same_command(shell: Shell) -> None:
    shell.write("a.html")
    assert shell("file2url.sh --find docroot").stdout == shell("file2url --find docroot").stdout


# --- nothing is removed by mistake -----------------------------------------------------------------


def test_an_unmounted_docroot_removes_nothing(shell: Shell, uns: Uns) -> None:
    path = shell.write("a.html")
    assert shell.push().returncode == 0
    before = shell.state
    path.unlink()

    done = shell.push()

    assert done.returncode == 65
    assert "1 of 1 known URLs would be removed" in done.stderr
    assert "nothing sent" in done.stderr
    assert len(uns.talks) == 1
    assert shell.state == before


def test_a_missing_docroot_sends_nothing(shell: Shell, uns: Uns) -> None:
    shell.write("a.html")
    assert shell.push().returncode == 0
    (shell.folder / "docroot").rename(shell.folder / "elsewhere")

    done = shell.push()

    assert done.returncode == 65
    assert "file2url: docroot: no such folder" in done.stderr
    assert len(uns.talks) == 1


def test_a_first_stage_that_dies_half_way_updates_but_removes_nothing(shell: Shell, uns: Uns) -> None:
    for name in ("a", "b", "c"):
        shell.write(f"{name}.html")
    assert shell.push().returncode == 0
    shell.write("a.html", "changed")

    done = shell("file2url --find docroot | head -n 1 | lcccpstate --statefile=state.txt | " + shell.lcccp())

    assert done.returncode == 65
    assert "lcccpstate: input not complete (no end mark)" in done.stderr
    assert (uns.last.curls, uns.last.removed) == (["a.html"], [])
    assert shell.push().returncode == 0
    assert uns.last.set_tag == {}


def test_a_second_stage_that_dies_half_way_sends_nothing(shell: Shell, uns: Uns) -> None:
    shell.write("a.html")
    shell.write("b.html")

    done = shell("file2url --find docroot | lcccpstate --statefile=state.txt | head -n 2 | " + shell.lcccp())

    assert done.returncode == 65
    assert "lcccpstate failed; nothing sent" in done.stderr
    assert not uns.talks
    assert not (shell.folder / "state.txt").exists()


@pytest.mark.parametrize(("gone", "status"), [(12, 65), (11, 0)])
def test_more_than_half_of_a_larger_site_is_not_removed(
    shell: Shell, uns: Uns, gone: int, status: int
) -> None:
    paths = [shell.write(f"{number:02}.html") for number in range(22)]
    assert shell.push().returncode == 0
    for path in paths[:gone]:
        path.unlink()

    assert shell.push().returncode == status
    assert len(uns.talks) == (1 if status else 2)
    assert shell.push("--max-removal 100").returncode == 0
    assert len(uns.talks[1].removed) == gone


def test_a_file_that_cannot_be_read_is_not_removed(shell: Shell, uns: Uns) -> None:
    shell.write("a.html")
    assert shell.push().returncode == 0

    line = '<keep curl="a.html" mimetype="text/html"/>\n<end count="1"/>\n'
    done = shell(f"lcccpstate --statefile=state.txt | {shell.lcccp()}", line.encode())

    assert done.returncode == 0
    assert uns.last.set_tag == {}
    assert 'curl="a.html"' in shell.state


def test_a_full_set_without_end_mark_is_not_sent(shell: Shell, uns: Uns) -> None:
    done = shell(shell.lcccp("--full"), b'<url curl="a.html" mimetype="text/html"/>\n')
    assert (done.returncode, uns.talks) == (65, [])
    assert "no full set; nothing sent" in done.stderr


def test_a_full_set_of_nothing_is_not_sent(shell: Shell, uns: Uns) -> None:
    done = shell(f"file2url --find docroot | {shell.lcccp('--full')}")
    assert (done.returncode, uns.talks) == (65, [])


def test_removals_of_an_input_that_counts_wrong_are_held_back(shell: Shell, uns: Uns) -> None:
    lines = b"""<url curl="a.html" mimetype="text/html"/>
<url curl="b.html" mimetype="text/html" op="remove"/>
<end count="3"/>
"""
    done = shell(shell.lcccp(), lines)
    assert done.returncode == 65
    assert "1 removals are not sent" in done.stderr
    assert (uns.last.curls, uns.last.removed) == (["a.html"], [])


def test_updates_by_hand_need_no_end_mark(shell: Shell, uns: Uns) -> None:
    done = shell(shell.lcccp("--timeofday 20-06"), b'<url c="a.html" mimetype="text/html"/>\n')
    assert done.returncode == 0
    assert uns.last.urls == [{"curl": "a.html", "mimetype": "text/html", "timeofday": "20-06"}]


# --- full sets that the LCC asks for ---------------------------------------------------------------


def test_a_wanted_full_set_is_sent_by_the_next_run(shell: Shell, uns: Uns) -> None:
    wanted = login(quota=Quota(fullset_wanted=True, fullset_reason="cache crash"))
    uns.scripts = [accepting(), accepting(wanted), accepting(wanted), accepting()]
    shell.write("a.html")
    shell.write("b.html")
    shell.push()
    shell.write("a.html", "changed")

    second, third, fourth = shell.push(), shell.push(), shell.push()

    assert "wants a full set (cache crash): the next run sends it" in second.stderr
    assert uns.talks[1].curls == ["a.html"]
    assert "asked for a full set (cache crash)" in third.stderr
    assert uns.talks[2].set_tag["set"] == "full"
    assert uns.talks[2].curls == ["a.html", "b.html"]
    assert uns.talks[3].set_tag == {}
    assert not (shell.folder / "state.txt.wanted").exists()
    assert fourth.returncode == 0


def test_full_makes_a_damaged_state_anew(shell: Shell, uns: Uns) -> None:
    shell.write("a.html")
    shell.push()
    (shell.folder / "state.txt").write_text(shell.state[:-20])

    refused, mended = shell.push(), shell.push("--full")

    assert refused.returncode == 65
    assert "Run once with --full" in refused.stderr
    assert mended.returncode == 0
    assert uns.last.set_tag["set"] == "full"
    assert shell.push().returncode == 0


# --- the state is committed only after acceptance --------------------------------------------------


@pytest.mark.parametrize(
    ("script", "status"),
    [
        (refusing_set(201, "cut"), 3),
        (refusing_set(203, "later"), 75),
        (refusing_login(101, "Not authorised"), 77),
        (refusing_login(103, "later", 60), 75),
        (hanging_up_before_the_verdict, 75),
    ],
)
def test_what_was_not_accepted_is_sent_again(shell: Shell, uns: Uns, script: Script, status: int) -> None:
    uns.scripts = [script, accepting()]
    shell.write("a.html")

    failed = shell.push()
    assert failed.returncode == status, failed.stderr
    assert not (shell.folder / "state.txt").exists()

    assert shell.push().returncode == 0
    assert uns.last.curls == ["a.html"]


def test_a_resend_after_a_lost_reply_keeps_its_id_and_a_changed_set_does_not(shell: Shell, uns: Uns) -> None:
    uns.scripts = [hanging_up_before_the_verdict]
    shell.write("a.html")
    lost = shell.push()
    shell.push()
    shell.write("b.html")
    shell.push()

    ids = [talk.set_tag["id"] for talk in uns.talks]
    assert ids[0] == ids[1] != ids[2]
    assert f"outcome unknown; run again, the set is recognised by its id {ids[0]}" in lost.stderr


def test_a_resend_keeps_its_id_whatever_it_adds_changes_and_removes(shell: Shell, uns: Uns) -> None:
    uns.scripts = [accepting(), hanging_up_before_the_verdict, hanging_up_before_the_verdict, accepting()]
    for name in ("changed", "gone", "same"):
        shell.write(f"{name}.html")
    shell.push()
    shell.write("changed.html", "other")
    shell.write("new.html")
    (shell.folder / "docroot/gone.html").unlink()

    assert [shell.push().returncode for _ in range(3)] == [75, 75, 0]

    assert len({talk.set_tag["id"] for talk in uns.talks[1:]}) == 1
    assert uns.talks[1].urls == uns.talks[3].urls
    assert shell.push().returncode == 0
    assert uns.last.set_tag == {}


def test_a_change_taken_back_after_lost_replies_is_sent(shell: Shell, uns: Uns) -> None:
    uns.scripts = [accepting(), hanging_up_before_the_verdict, hanging_up_before_the_verdict, accepting()]
    path = shell.write("a.html", "old")
    shell.write("same.html")
    shell.push()
    path.write_text("new")
    assert shell.push().returncode == 75
    path.write_text("old")
    assert shell.push().returncode == 75

    assert shell.push().returncode == 0

    sent = [talk.urls[0]["md5"] for talk in (uns.talks[1], uns.talks[3])]
    assert sent == [hashlib.md5(text).hexdigest() for text in (b"new", b"old")]
    assert uns.last.curls == ["a.html"]
    assert uns.talks[1].set_tag["id"] != uns.talks[2].set_tag["id"] == uns.talks[3].set_tag["id"]
    assert shell.push().returncode == 0
    assert uns.last.set_tag == {}


def test_a_file_that_came_and_went_around_a_lost_reply_is_removed(shell: Shell, uns: Uns) -> None:
    uns.scripts = [accepting(), hanging_up_before_the_verdict, accepting()]
    shell.write("a.html")
    shell.push()
    path = shell.write("b.html")
    assert shell.push().returncode == 75
    path.unlink()

    assert shell.push().returncode == 0

    assert (uns.last.curls, uns.last.removed) == ([], ["b.html"])
    assert "b.html" not in shell.state


def test_a_change_taken_back_after_lcccp_was_killed_is_sent(shell: Shell) -> None:
    compare = "file2url --find docroot | lcccpstate --quiet --statefile=state.txt"
    path = shell.write("a.html", "old")
    shell(compare)
    shell("lcccpstate --statefile=state.txt --commit")
    path.write_text("new")
    assert "<url" in shell(compare).stdout
    path.write_text("old")
    assert "<url" in shell(compare).stdout


def test_a_damaged_pending_state_asks_for_a_full_set(shell: Shell, uns: Uns) -> None:
    uns.scripts = [accepting(), hanging_up_before_the_verdict, accepting()]
    path = shell.write("a.html", "old")
    shell.push()
    path.write_text("new")
    assert shell.push().returncode == 75
    pending = shell.folder / "state.txt.pending"
    pending.write_text(pending.read_text()[:-20])

    refused, mended = shell.push(), shell.push("--full")

    assert refused.returncode == 65
    assert "Run once with --full" in refused.stderr
    assert mended.returncode == 0
    assert uns.last.set_tag["set"] == "full"


def test_a_state_of_another_lcc_is_not_used(shell: Shell, uns: Uns) -> None:
    uns.scripts = [accepting(), accepting(login(lcc="lcc-two"))]
    shell.write("a.html")
    shell.push()
    shell.write("b.html")

    done = shell.push()

    assert done.returncode == 65
    assert "belongs to LCC 'lcc-one', not 'lcc-two'" in done.stderr
    assert uns.last.set_tag == {}
    assert shell.push("--full").returncode == 0
    assert 'lcc="lcc-two"' in shell.state


def test_a_state_of_another_site_is_not_used(shell: Shell, uns: Uns) -> None:
    shell.write("a.html")
    shell.push()
    done = shell.push(options="--urlprefix=http://other.example/")
    assert done.returncode == 65
    assert f"belongs to urlprefix '{PREFIX}'" in done.stderr
    assert len(uns.talks) == 1


def test_two_runs_at_once_exclude_each_other(shell: Shell, uns: Uns) -> None:
    statuses = []

    def play(talk: Talk) -> None:
        statuses.append(shell("lcccpstate --statefile=state.txt </dev/null").returncode)
        accepting()(talk)

    uns.scripts = [play]
    shell.write("a.html")
    assert shell.push().returncode == 0
    assert statuses == [75]


def test_a_state_is_committed_by_hand_where_lcccp_is_elsewhere(shell: Shell, uns: Uns) -> None:
    shell.write("a.html")
    shell("file2url --find docroot | lcccpstate --statefile=state.txt > changes.txt")
    assert shell(f"{shell.lcccp('--no-commit')} < changes.txt").returncode == 0
    assert not (shell.folder / "state.txt").exists()
    assert shell("lcccpstate --statefile=state.txt --commit").returncode == 0
    assert shell.push().returncode == 0
    assert uns.last.set_tag == {}


def test_a_login_by_somebody_else_is_noticed(shell: Shell, uns: Uns) -> None:
    uns.scripts = [accepting(login(4)), refusing_set(201, "no"), accepting(login(9))]
    shell.write("a.html")
    shell.push()
    shell.write("b.html")
    done = [shell.push(), shell.push()]
    assert "other logins" not in done[0].stderr
    assert (
        "logins as this provider since the last one recorded in state.txt, the last from 192.0.2.1"
        in done[1].stderr
    )


# --- quota -----------------------------------------------------------------------------------------


def test_what_does_not_fit_is_left_out_and_sent_once_there_is_room(shell: Shell, uns: Uns) -> None:
    uns.scripts = [accepting(login(quota=Quota(files_free=2))), accepting()]
    for name in ("a", "b", "c"):
        shell.write(f"{name}.html")

    done = shell.push(options="--over-quota=trim")
    assert done.returncode == 0
    assert "over quota: 3 files for 2 places; 1 new URLs are left out" in done.stderr
    assert uns.last.curls == ["a.html", "b.html"]

    assert shell.push().returncode == 0
    assert uns.last.curls == ["c.html"]


def test_over_quota_warns_and_sends_all_unless_told_otherwise(shell: Shell, uns: Uns) -> None:
    uns.scripts = [accepting(login(quota=Quota(files_used=5, files_free=0)))]
    shell.write("a.html")
    done = shell.push()
    assert (done.returncode, uns.last.curls) == (0, ["a.html"])
    assert "lcccp: over quota: 1 files for 0 places\n" in done.stderr


def test_over_quota_fail_sends_nothing(shell: Shell, uns: Uns) -> None:
    uns.scripts = [accepting(login(quota=Quota(space_free=3)))]
    shell.write("a.html")
    done = shell.push(options="--over-quota=fail")
    assert done.returncode == 3
    assert re.search(r"^lcccp: over quota: \d+ bytes into 3; nothing sent$", done.stderr, re.MULTILINE)
    assert uns.last.set_tag == {}
    assert not (shell.folder / "state.txt").exists()


# --- what the user is told -------------------------------------------------------------------------


def test_refused_urls_give_status_1_and_are_listed(shell: Shell, uns: Uns) -> None:
    uns.scripts = [accepting(None, UrlError(703, "mimetype not accepted", PREFIX + "a\x1b.html"))]
    shell.write("a.html")
    done = shell.push()
    assert done.returncode == 1
    assert "703 mimetype not accepted  http://www.example.org/a" in done.stderr
    assert "\x1b" not in done.stderr
    assert "accepted: 0 URLs" in done.stderr


def test_check_shows_quota_errors_and_wishes(shell: Shell, uns: Uns) -> None:
    quota = Quota(3, 97, 1_500_000, fullset_wanted=True, fullset_reason="old files")
    errors = (UrlError(404, "Not Found", PREFIX + "x.html"),)
    uns.scripts = [accepting(login(5, quota, error_count=4, processing=2, errors=errors))]

    done = shell(shell.lcccp("--check"))

    assert done.returncode == 0
    for line in (
        "login accepted: number 5; the one before came from 192.0.2.1",
        "files: 3 used, 97 free",
        "space: 1.5 MB used, unlimited free",
        "the LCC wants a full set: old files",
        "waiting to be fetched: 2",
        "errors since the last login: 4",
        "  404 Not Found  http://www.example.org/x.html",
        "  … and 3 more",
    ):
        assert line in done.stdout.splitlines()


def test_json_gives_one_object(shell: Shell, uns: Uns) -> None:
    shell.write("a.html")
    result = json.loads(shell.push(options="--json").stdout)
    assert (result["status"], result["outcome"], result["received"]) == (0, "accepted", 1)
    assert result["login"]["files"] == {"used": 0, "free": None}
    refused = json.loads(shell(shell.lcccp("--check --json")).stdout)
    assert refused["outcome"] == "nothing_sent"


def test_a_dry_run_tells_what_would_be_held(shell: Shell, uns: Uns) -> None:
    def play(talk: Talk) -> None:
        talk.read_until(b"</lococa:init>")
        talk.send(writing.init_accepted(login()))
        talk.read_until(b"</lococa:set>")
        talk.send(writing.set_result_start())
        talk.send(writing.set_result_end(SetAccepted(1, 0, 980)))

    uns.scripts = [play, play]
    shell.write("a.html")
    assert shell.push(options="--dry-run").stdout == "received 1\nwould_remove 0\nwould_hold 980\n"
    assert json.loads(shell.push(options="--dry-run --json").stdout)["would_hold"] == 980


def test_a_dry_run_asks_and_commits_nothing(shell: Shell, uns: Uns) -> None:
    shell.write("a.html")
    done = shell.push(options="--dry-run")
    assert (done.returncode, done.stdout) == (0, "received 1\nwould_remove 0\n")
    assert uns.last.set_tag == {"set": "partial", "urlprefix": PREFIX, "dryrun": "yes"}
    assert not (shell.folder / "state.txt").exists()


def test_print_writes_the_xml_without_password_and_does_not_connect(shell: Shell, uns: Uns) -> None:
    shell.write("a.html")
    done = shell(f"file2url --no-md5 --find docroot | {shell.lcccp('--print')}")
    assert done.returncode == 0
    assert SECRET not in done.stdout
    assert '<provider id="7" passwd="***"/>' in done.stdout
    assert '<url curl="a.html" mimetype="text/html" len="4"' in done.stdout
    assert done.stdout.endswith("</lococa:set>\n")
    assert not uns.talks


# --- wrong use -------------------------------------------------------------------------------------


def test_nobody_listening_gives_69(shell: Shell) -> None:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    done = shell(f"lcccp --uns=127.0.0.1:{port} --pid=7 --pwd=x", b'<end count="0"/>\n')
    assert done.returncode == 69
    assert done.stderr == f"lcccp: cannot connect to 127.0.0.1:{port}: Connection refused\n"


def test_what_is_no_uns_gives_69(shell: Shell, uns: Uns) -> None:
    uns.scripts = [lambda talk: talk.send(b"HTTP/1.1 400 Bad Request\r\n\r\n<html></html>")]
    done = shell(shell.lcccp(), b'<end count="0"/>\n')
    assert done.returncode == 69
    assert "is no UNS" in done.stderr


def test_a_malformed_line_gives_65_with_its_number_and_nothing_is_sent(shell: Shell, uns: Uns) -> None:
    lines = b'<url curl="a.html" mimetype="text/html"/>\n<url curl="b.html" mimetype="text/html>\n'
    done = shell(shell.lcccp(), lines)
    assert (done.returncode, uns.talks) == (65, [])
    assert done.stderr.startswith("lcccp: line 2: ")


@pytest.mark.parametrize(
    "command", ["file2url --nope", "lcccpstate --statefile=s --nope", "lcccp --nope", "lcccp", "lcccpstate"]
)
def test_wrong_usage_gives_64(shell: Shell, command: str) -> None:
    done = shell(command)
    assert done.returncode == 64
    assert done.stderr


@pytest.mark.parametrize("command", ["file2url", "lcccpstate", "lcccp"])
def test_help_has_examples(shell: Shell, command: str) -> None:
    done = shell(f"{command} --help")
    assert done.returncode == 0
    assert "examples:" in done.stdout


def test_a_closed_pipe_ends_without_traceback(shell: Shell) -> None:
    for number in range(3000):
        (shell.folder / "docroot" / f"{number:04}.html").touch()
    done = shell("(file2url --find docroot; echo $? >&2) | true")
    assert done.stderr == "file2url: the next command stopped reading\n141\n"


# --- the conversation ------------------------------------------------------------------------------


def large_input() -> bytes:
    line = b'<url curl="%08d-' + b"x" * 400 + b'.html" mimetype="text/html"/>\n'
    lines = [line % number for number in range(60_000)]
    return b"".join(lines) + b'<end count="60000"/>\n'


def test_a_set_refused_early_is_not_sent_to_its_end(shell: Shell, uns: Uns) -> None:
    stopped = threading.Event()

    def play(talk: Talk) -> None:
        talk.read_until(b"</lococa:init>")
        talk.send(writing.init_accepted(login()))
        talk.read_until(b"<url ")
        talk.send(writing.set_result_start() + writing.set_result_end(SetRejected(204, "Set too large")))
        assert stopped.wait(30)

    uns.scripts = [play]
    done = shell(shell.lcccp(), large_input())
    stopped.set()
    assert done.returncode == 3
    assert "set refused: 204 Set too large" in done.stderr


def test_answers_are_read_while_a_large_set_goes_out(shell: Shell, uns: Uns) -> None:
    def play(talk: Talk) -> None:
        talk.read_until(b"</lococa:init>")
        talk.send(writing.init_accepted(login()))
        talk.read_until(b"<url ")
        talk.send(writing.set_result_start())
        error = writing.url_error(UrlError(705, "URL not valid", PREFIX + "y" * 400))
        unread = talk.received.partition(b"<lococa:set")[2]
        while True:
            *whole, rest = unread.split(b"/>")
            talk.send(error * len(whole))
            if rest.endswith(b"</lococa:set>\n"):
                break
            unread = rest + talk.connection.recv(1 << 20)
        talk.send(writing.set_result_end(SetAccepted(0)))

    uns.scripts = [play]
    done = shell(shell.lcccp(), large_input())
    assert done.returncode == 1, done.stderr
    assert "60,000 URLs refused:" in done.stderr
    assert done.stderr.count("705 URL not valid") == 20


@pytest.fixture
def certificate(tmp_path: Path) -> Path:
    """A self-signed certificate for 127.0.0.1, with its key, in one file."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "uns")])
    now = datetime.now(UTC)
    made = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.IPAddress(ip_address("127.0.0.1"))]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    file = tmp_path / "uns.pem"
    private = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    file.write_bytes(private + made.public_bytes(Encoding.PEM))
    return file


def over_tls(certificate: Path, script: Script, goodbyes: list[bytes]) -> Script:
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(certificate)

    def play(talk: Talk) -> None:
        with context.wrap_socket(
            talk.connection.dup(), server_side=True, suppress_ragged_eofs=False
        ) as secured:
            talk.connection = secured
            script(talk)
            goodbyes.append(secured.recv(1))

    return play


def test_a_large_set_goes_over_tls_to_a_server_that_is_known(
    shell: Shell, uns: Uns, certificate: Path
) -> None:
    goodbyes: list[bytes] = []
    uns.scripts = [over_tls(certificate, accepting(), goodbyes)]
    assert shell(shell.lcccp("--tls --ca=uns.pem --check")).returncode == 0
    lines = large_input().splitlines(keepends=True)[:5000]
    done = shell(shell.lcccp("--tls --ca=uns.pem"), b"".join(lines) + b'<end count="5000"/>\n')
    assert done.returncode == 0, done.stderr
    assert len(uns.last.urls) == 5000
    assert goodbyes[0] == b"", "a proper end, so that the UNS knows that its errors were read"


def test_a_server_that_is_not_known_gets_no_password(shell: Shell, uns: Uns, certificate: Path) -> None:
    uns.scripts = [over_tls(certificate, accepting(), [])]
    refused = shell(shell.lcccp("--tls --check"))
    assert refused.returncode == 69
    assert "certificate not trusted" in refused.stderr
    assert uns.last.received == b""
    assert shell(shell.lcccp("--tls --insecure --check")).returncode == 0


# --- the password ----------------------------------------------------------------------------------


@pytest.mark.skipif(not Path("/proc/self/cmdline").exists(), reason="needs /proc")
@pytest.mark.parametrize("form", [f"--pwd={SECRET}", f"--pwd {SECRET}"])
def test_the_password_is_not_in_the_process_list(shell: Shell, uns: Uns, form: str) -> None:
    seen = []

    def play(talk: Talk) -> None:
        talk.read_until(b"</lococa:init>")
        seen.append(talk.received)
        seen.extend(
            path.read_bytes() for path in Path("/proc").glob("[0-9]*/cmdline") if _is_lcccp(path, uns.address)
        )
        talk.send(writing.init_accepted(login()))

    uns.scripts = [play]
    # The shell around it would show the line itself, so that lcccp is started without one.
    words = [
        sys.executable,
        "-m",
        "lcc_scrapy.push",
        "lcccp",
        f"--uns={uns.address}",
        "--pid=7",
        "--check",
    ]
    done = subprocess.run(
        [*words, *shlex.split(form)], env=shell.environment, capture_output=True, timeout=300, check=False
    )
    assert done.returncode == 0, done.stderr
    assert SECRET.encode() in seen[0]
    assert len(seen) == 2
    assert SECRET.encode() not in seen[1]
    assert uns.address.encode() in seen[1]


def _is_lcccp(path: Path, address: str) -> bool:
    try:
        return address.encode() in path.read_bytes()
    except OSError:
        return False


def test_the_password_comes_from_a_file_or_the_environment(shell: Shell, uns: Uns) -> None:
    secret = shell.folder / "pwd"
    secret.write_text(f"{SECRET}\n")
    secret.chmod(0o600)
    line = f"lcccp --uns={uns.address} --pid=7 --check"
    for command in (f"{line} --pwd-file=pwd", f"LCC_PWD={SECRET} {line}"):
        done = shell(command)
        assert (done.returncode, done.stderr) == (0, "")
        assert f'passwd="{SECRET}"'.encode() in uns.last.received


# --- one file for shared hosts ---------------------------------------------------------------------


def test_the_single_file_runs_the_whole_pipeline(shell: Shell, uns: Uns) -> None:
    target = shell.folder / "lcc-provider.pyz"
    built = subprocess.run(
        [sys.executable, str(ROOT / "tools/build_pyz.py"), "--output", str(target)],
        capture_output=True,
        timeout=300,
        check=False,
    )
    assert built.returncode == 0, built.stderr
    (shell.folder / "file2url").symlink_to(target)
    shell.write("a.html")
    python = f"env -u PYTHONPATH {sys.executable} -I"
    options = f"--uns={uns.address} --pid=7 --pwd={SECRET} --urlprefix={PREFIX}"

    done = shell(
        f"{python} file2url --find docroot | {python} lcc-provider.pyz lcccpstate --statefile=state.txt "
        f"| {python} lcc-provider.pyz lcccp {options}"
    )

    assert done.returncode == 0, done.stderr
    assert uns.last.curls == ["a.html"]
