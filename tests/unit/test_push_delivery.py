"""Address, quota, password and retries, without a network."""

import io

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lcc_scrapy.domain.printable import printable
from lcc_scrapy.push import client, delivery, password, quota
from lcc_scrapy.push.client import Address
from lcc_scrapy.push.command import Notes, Status, Stop
from lcc_scrapy.push.delivery import Delivery
from lcc_scrapy.push.ledger import Ledger
from lcc_scrapy.push.plan import Plan
from lcc_scrapy.push.submission import Demand, Item, Submission
from lcc_scrapy.wire import writing
from lcc_scrapy.wire.messages import (
    UNLIMITED,
    Init,
    InitAccepted,
    InitRejected,
    Quota,
    SetAccepted,
    SetRejected,
    SetStart,
)


@pytest.mark.parametrize(
    ("text", "address"),
    [
        ("lcc.example", Address("lcc.example", 9000)),
        ("lcc.example:1", Address("lcc.example", 1)),
        ("[::1]", Address("::1", 9000)),
        ("[::1]:77", Address("::1", 77)),
        ("2001:db8::1", Address("2001:db8::1", 9000)),
        ("fe80::1%eth0", Address("fe80::1%eth0", 9000)),
    ],
)
def test_an_address_has_a_host_and_maybe_a_port(text, address):
    assert Address.parse(text) == address
    assert Address.parse(str(address)) == address


@pytest.mark.parametrize("text", ["", ":9000", "h:0", "h:65536", "h:x", "[::1", "[::1]x", "[]:1", "a:b:c:"])
def test_anything_else_is_no_address(text):
    with pytest.raises(ValueError):
        Address.parse(text)


# --- quota -----------------------------------------------------------------------------------------


def item(name, size=0, *, new=True):
    return Item(writing.url({"curl": name, "mimetype": "text/html"}), size, new)


def test_a_partial_set_needs_room_for_what_is_new():
    found = quota.fit(lambda: [item("a", 5), item("b", 7, new=False)], Demand(9, 4), full=False, trim=False)
    assert found.demand == Demand(1, 5)
    assert found.excess == "5 bytes into 4"


def test_a_full_set_takes_the_place_of_what_was_there():
    assert quota.room_for(Quota(3, 4, 5, 6), full=True) == Demand(7, 11)
    assert quota.room_for(Quota(3, 4, 5, 6), full=False) == Demand(4, 6)
    assert quota.room_for(Quota(3, UNLIMITED, 5, -6), full=True) == Demand(UNLIMITED, 5)


@given(
    st.lists(st.tuples(st.integers(0, 9), st.booleans())),
    st.integers(0, 9),
    st.integers(0, 30),
    st.booleans(),
)
def test_after_trimming_the_new_ones_fit_and_no_other_is_left_out(sizes, files, space, full):
    items = [item(str(number), size, new=new) for number, (size, new) in enumerate(sizes)]
    found = quota.fit(lambda: items, Demand(files, space), full=full, trim=True)
    admitted = list(found.admitted(items))
    assert [i for i in items if not i.new] == [i for i in admitted if not i.new]
    counted = [i for i in admitted if full or i.new]
    fixed = Demand(sum(full and not i.new for i in items), sum(i.size for i in items if full and not i.new))
    assert len(counted) <= max(files, fixed.files)
    assert sum(i.size for i in counted) <= max(space, fixed.space)
    if not found.excess:
        assert admitted == items


# --- the password ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "cmdline",
    [b"lcccp\0--pwd=secret\0--check\0", b"lcccp\0--pwd\0secret\0--check\0", b"--pwd\0--pwd\0--pwd=x\0"],
)
def test_every_password_is_found_in_the_argument_memory(cmdline):
    shown = bytearray(cmdline)
    for offset, length in password.secret_places(cmdline):
        shown[offset : offset + length] = b"*" * length
    assert b"secret" not in shown
    assert len(shown) == len(cmdline)
    assert shown.count(b"\0") == cmdline.count(b"\0")
    assert b"*" in shown


def test_a_restart_leaves_the_password_out():
    words = ["py", "-m", "x", "lcccp", "--pwd", "a", "--uns=h", "--pwd=b", "--pwd-file=f"]
    assert password.without_password(words) == ["py", "-m", "x", "lcccp", "--uns=h", "--pwd-file=f"]


def test_where_memory_cannot_be_overwritten_the_command_restarts_with_its_environment(monkeypatch):
    started = []
    monkeypatch.setattr(password.sys, "argv", ["lcccp", "--pwd=secret", "--check"])
    monkeypatch.setattr(password.sys, "orig_argv", ["python3", "lcccp", "--pwd=secret", "--check"])
    monkeypatch.setattr(password, "overwrite_arguments", lambda: False)
    monkeypatch.setattr(password.os, "execve", lambda *call: started.append(call))
    password.hide_from_process_list()
    ((program, words, environment),) = started
    assert words == [program, "lcccp", "--check"]
    assert environment["LCC_PWD"] == "secret"


def test_no_password_is_wrong_usage(monkeypatch):
    monkeypatch.delenv("LCC_PWD", raising=False)
    with pytest.raises(Stop) as stop:
        password.password(None, None, Notes("lcccp"))
    assert stop.value.status == 64


def test_a_password_file_that_others_may_read_is_pointed_out(tmp_path, capsys):
    file = tmp_path / "pwd"
    file.write_text("secret\nmore\n")
    file.chmod(0o644)
    assert password.password(None, file, Notes("lcccp")) == "secret"
    assert "chmod 600" in capsys.readouterr().err


@given(st.text())
def test_no_control_character_reaches_the_terminal(text):
    assert printable(text).isprintable()


# --- retries ---------------------------------------------------------------------------------------


class Script:
    """Stands for the network: each connection takes the next step."""

    later_login = None

    def __init__(self, *steps):
        self.steps = list(steps)
        self.starts = []

    def connect(self, *_):
        self.step = self.steps.pop(0)
        if isinstance(self.step, client.Unreachable):
            raise self.step
        return self

    def login(self, _):
        return self.step if isinstance(self.step, InitRejected) else InitAccepted(1, "", (), Quota())

    def submit(self, start, urls, _):
        self.starts.append((start, list(urls)))
        if isinstance(self.step, client.Lost):
            raise self.step
        return self.step

    def close(self):
        pass


@pytest.fixture
def deliver(monkeypatch):
    def play(*steps, retries=5, lines=b'<url curl="a" mimetype="b/c"/>\n'):
        script, slept = Script(*steps), []
        monkeypatch.setattr(delivery.client, "connect", script.connect)
        submission = Submission(io.BytesIO())
        submission.read(io.BytesIO(lines), Notes("x", quiet=True).progress())
        plan = Plan(Address("h"), Init("7", "x"), SetStart(full=False), retries=retries)
        outcome = Delivery(plan, submission, Ledger(), Notes("x", quiet=True)).run(slept.append)
        return outcome, script, slept

    return play


def test_what_may_pass_is_tried_again_under_the_same_set_id(deliver):
    steps = [
        client.Unreachable("down"),
        InitRejected(103, "later", 7),
        SetRejected(203, "later"),
        client.Lost("cut"),
        SetAccepted(1),
    ]
    outcome, script, slept = deliver(*steps)
    assert outcome.status == Status.DONE
    assert slept == [10, 7, 40, 80]
    assert len({start.set_id for start, _ in script.starts}) == 1
    assert all(urls == [b'<url curl="a" mimetype="b/c"/>\n'] for _, urls in script.starts)


@pytest.mark.parametrize(
    ("step", "status"),
    [
        (InitRejected(101, "no"), 77),
        (InitRejected(102, "no"), 77),
        (SetRejected(202, "no"), 3),
        (SetRejected(206, "slow"), 3),
    ],
)
def test_what_will_not_pass_is_not_tried_again(deliver, step, status):
    outcome, _, slept = deliver(step)
    assert (outcome.status, slept) == (status, [])


def test_the_wait_is_bounded_whatever_the_lcc_says(deliver):
    assert deliver(InitRejected(103, "later", 10**9), SetAccepted(1))[2] == [delivery.LONGEST_DELAY]


@pytest.mark.parametrize(
    ("step", "status"),
    [
        (client.Unreachable("down"), 69),
        (InitRejected(104, "busy"), 75),
        (SetRejected(203, "later"), 75),
        (client.Lost("cut"), 75),
    ],
)
def test_without_retries_the_status_says_what_happened(deliver, step, status):
    outcome, _, slept = deliver(step, retries=0)
    assert (outcome.status, slept) == (status, [])
