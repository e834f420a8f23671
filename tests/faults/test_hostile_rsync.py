"""rsync servers that mean harm: a program of the same name says what rsync would print of them."""

import os
import shlex
from dataclasses import replace
from pathlib import Path

import pytest

from lcc_scrapy.apps.tracker import entries, rsync
from lcc_scrapy.apps.tracker.entries import Unlisted
from lcc_scrapy.apps.tracker.settings import ScanLimits
from tests.faults.canary import Canary
from tests.harness import wait_for
from tests.scans import identities, scanned

QUICK = replace(ScanLimits(), most_bytes=300_000, most_entries=1000)
WHEN = "2020/01/01 00:00:00"
URL = "rsync://127.0.0.1:9/mirror/"


@pytest.fixture
def rsync_says(tmp_path, monkeypatch):
    """Return what makes scans run a shell script in place of rsync."""
    programs, data = tmp_path / "bin", tmp_path / "data"
    for folder in (programs, data):
        folder.mkdir()
    monkeypatch.setattr(rsync, "_ENVIRONMENT", {"PATH": f"{programs}:/usr/bin:/bin"})

    def scan(script, limits=QUICK, **more):
        program = programs / "rsync"
        program.write_text(f"#!/bin/sh\n{script}\n")
        program.chmod(0o755)
        return scanned(URL, data, limits, **more)

    return scan


def lines(*some: bytes) -> str:
    """Return a script that prints lines as they are."""
    escaped = "".join(f"\\{byte:03o}" for line in some for byte in line + b"\n")
    return f"printf {shlex.quote(escaped)}"


BASE = f"drwxr-xr-x 4096 {WHEN} .".encode()


def entry(name: bytes, size: bytes = b"5", kind: bytes = b"-") -> bytes:
    return kind + b"rw-r--r-- %b %b %b" % (size, WHEN.encode(), name)


@pytest.mark.parametrize(
    ("script", "why"),
    [
        (f"yes -- '{entry(b'again').decode()}'", "300000 bytes"),
        ("yes x | tr -d '\\n'", "300000 bytes"),
        ("head -c 100000 /dev/zero", "a line of more than 32768 bytes"),
        ("echo motd", "no line of rsync"),
        (lines(BASE) + "; printf %s -rw-r--r--", "or a cut one"),
        ("yes oops 1>&2", "nothing came for 1 s"),
        ("exit 5", "rsync ended with status 5: nothing said"),
        ("printf 'failed: \\033[2J\\n' 1>&2; exit 23", "rsync ended with status 23"),
        ("sleep 600", "nothing came for 1 s"),
        ("exec >&-; sleep 600", "nothing came for 1 s"),
        ("kill -9 $$", "status -9"),
        (lines(entry(b"a"), entry(b"d/e")), "came before its directory"),
    ],
    ids=("lines", "line", "zeros", "greeting", "cut", "complaints", "status", "control", "hangs", "silent", "killed",
         "unnamed"),
)  # fmt: skip
def test_what_is_no_listing_is_refused_in_one_line(script, why, rsync_says):
    with pytest.raises(Unlisted, match=why) as raised:
        identities(rsync_says(script, replace(QUICK, patience=1.0)))
    assert "\n" not in str(raised.value)


@pytest.mark.parametrize("most", [130_000, 190_000, 250_000, 300_000, 380_000, 440_000])
def test_one_that_says_more_than_was_read_is_ended_too(most, rsync_says):
    """What is left of its output when it is ended, and whether asyncio still reads, depends on the moment."""
    with pytest.raises(Unlisted, match=f"{most} bytes"):
        rsync_says("yes x", replace(QUICK, most_bytes=most), bandwidth=200_000)


def test_a_program_that_hangs_is_ended_with_its_children(rsync_says):
    seconds = f"6{os.getpid()}"  # by which it is known
    with pytest.raises(Unlisted, match="nothing came"):
        rsync_says(f"sleep {seconds} & sleep {seconds}", replace(QUICK, patience=1.0))
    wait_for(lambda: not any(_runs(pid, seconds) for pid in Path("/proc").glob("[0-9]*")), what="their end")


def _runs(process: Path, word: str) -> bool:
    try:
        return (process / "cmdline").read_bytes() == b"sleep\0%b\0" % word.encode()
    except OSError:
        return False


@pytest.mark.parametrize(
    ("line", "is_sound"),
    [
        (entry(rb"new\#012line"), True),
        (entry(b"\x01\x1b[2J\xff\xfe"), True),
        (entry(b"big", b"18446744073709551615"), True),
        (entry(b"big", b"18446744073709551616"), False),
        (entry(b"big", b"9" * 5000), False),
        (entry(b".."), False),
        (entry(rb"a\#000b"), False),
        (entry(b"x" * 256), False),
        (entry(b"..", kind=b"d"), False),
    ],
    ids=range(9),
)
def test_names_are_bytes_and_what_cannot_be_one_makes_its_directory_unsound(line, is_sound, rsync_says):
    made = identities(rsync_says(lines(BASE, entry(b"a"), line)))
    assert (made[()] is not None) == is_sound
    assert set(made) == {()}


def test_it_gets_no_environment_of_this_process_and_one_address(rsync_says, monkeypatch):
    monkeypatch.setenv("LCC_DATABASE_URL", "secret")
    with pytest.raises(Unlisted) as raised:
        rsync_says("echo failed: $(env | cut -d= -f1) 1>&2; exit 23")
    assert set(str(raised.value).partition("failed: ")[2].split()) <= {"PATH", "PWD", "SHLVL", "_", "OLDPWD"}
    with pytest.raises(Unlisted, match=r" -- rsync://127\.0\.0\.1:9/mirror/$"):
        rsync_says("echo failed: $* 1>&2; exit 23")


def test_a_server_that_hangs_or_says_something_else_is_left(tmp_path):
    """The real rsync, and a server that accepts and never says anything."""
    with Canary() as canary, pytest.raises(Unlisted):
        scanned(f"rsync://127.0.0.1:{canary.port}/m/", tmp_path, replace(QUICK, patience=1.0))


def test_what_it_complains_about_counts_as_what_it_lists(rsync_says):
    """It goes on for as long as lines come, however slowly."""
    with pytest.raises(Unlisted, match="300000 bytes"):
        rsync_says("yes complaint 1>&2 & while sleep 0.2; do echo; done", replace(QUICK, deadline=30.0))


def test_the_entries_of_one_directory_take_a_bounded_memory(rsync_says, monkeypatch):
    script = lines(BASE, *(entry(b"%d" % number) for number in range(500)))
    assert set(identities(rsync_says(script))) == {()}
    monkeypatch.setattr(entries, "HELD_MAX", 100_000)
    with pytest.raises(Unlisted, match="more than 100000 bytes of memory"):
        rsync_says(script)


def test_entries_of_directories_that_are_done_are_no_longer_held(rsync_says, monkeypatch):
    monkeypatch.setattr(entries, "HELD_MAX", 30_000)
    parts = [BASE, *(one for number in range(40) for one in deep(b"%d" % number))]
    assert len(identities(rsync_says(lines(*parts)))) == 41


def deep(name: bytes) -> list[bytes]:
    return [entry(name, kind=b"d"), *(entry(b"%b/%d" % (name, number)) for number in range(20))]
