"""What ``make bench`` runs: all of it, also behind a measurement that fails or does not end."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

BENCH = Path(__file__).parents[2] / "bench"


@pytest.fixture(scope="module")
def suite():
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(BENCH)
        import suite
    return suite


@pytest.fixture
def scripts(suite, tmp_path, monkeypatch):
    monkeypatch.setattr(suite, "HERE", tmp_path)

    def write(**texts):
        for name, text in texts.items():
            (tmp_path / f"{name}.py").write_text(text)

    return write


def test_every_measurement_is_in_the_suite_and_says_what_its_script_knows(suite):
    there = {path.stem for path in BENCH.glob("*.py")} - {"suite"}
    assert {step.name for step in suite.FULL} == there
    assert {step.name for step in suite.QUICK} <= there
    shared = "".join(path.read_text() for path in (BENCH / "crawling").glob("*.py"))
    for step in (*suite.FULL, *suite.QUICK):
        known = (BENCH / f"{step.name}.py").read_text() + shared
        assert [word for word in re.findall(r"--[a-z-]+", step.command) if f'"{word}"' not in known] == []


def test_everything_takes_less_than_two_hours(suite):
    assert sum(step.minutes for step in suite.FULL) <= 116
    assert suite.MOST <= 120
    assert sum(step.minutes for step in suite.QUICK) < 6


def test_a_measurement_that_fails_is_named_and_the_others_go_on(suite, scripts, capfd):
    scripts(fails="raise SystemExit(3)", goes="import sys; print('went', *sys.argv[1:])")
    made = suite.Suite([suite.Step("fails.py --so", 0.1), suite.Step("goes.py 'two words' x", 0.2)])
    made.run()
    assert [one.partition(" after ")[0] for one in made.failures] == ["fails.py --so: status 3"]
    said = capfd.readouterr().out
    assert "went two words x\n" in said
    assert "2 of 2: goes.py 'two words' x: about 12 s;" in said


def test_a_measurement_that_does_not_end_is_stopped(suite, scripts, monkeypatch):
    monkeypatch.setattr(suite, "LEAST_PATIENCE", 0.0)
    scripts(hangs="import time; time.sleep(600)")
    made = suite.Suite([suite.Step("hangs.py", 0.0)])
    made.run()
    assert [one.partition(" after ")[0] for one in made.failures] == ["hangs.py: stopped"]


def test_two_at_a_time_wait_for_no_other_and_say_in_one_piece_what_they_say(suite, scripts, tmp_path, capfd):
    text = """
import pathlib, sys, time
own, other = map(pathlib.Path, sys.argv[1:])
print(own.name, "begins", flush=True)
own.touch()
while not other.exists():
    time.sleep(0.01)
print(own.name, "ends", file=sys.stderr, flush=True)
"""
    scripts(meets=text)
    both = [f"meets.py {tmp_path}/{own} {tmp_path}/{other}" for own, other in ("ab", "ba")]
    made = suite.Suite([suite.Step(command, 0.1) for command in both], at_once=2)
    made.run()
    assert made.failures == []
    said = capfd.readouterr().out
    for command, own in zip(both, "ab", strict=True):
        assert f"\n=== {command}:\n{own} begins\n{own} ends\n=== done in" in said


@pytest.mark.parametrize(("told", "status", "grace"), [("SIG_DFL", -2, 60), ("SIG_IGN", -9, 0)])
def test_who_does_not_stop_when_told_is_killed(suite, monkeypatch, told, status, grace):
    monkeypatch.setattr(suite, "GRACE", grace)
    script = f"import signal, time; signal.signal(2, signal.{told}); print(flush=True); time.sleep(600)"
    with subprocess.Popen(
        [sys.executable, "-c", script], stdout=subprocess.PIPE, start_new_session=True
    ) as process:
        process.stdout.readline()
        suite.stop(process)
    assert process.returncode == status


def test_what_has_no_time_left_is_named_and_not_begun(suite, scripts, tmp_path):
    scripts(late=f"open({str(tmp_path / 'begun')!r}, 'w')")
    made = suite.Suite([suite.Step("late.py", 0.1)], most=0.0)
    made.run()
    assert made.failures == ["late.py: not begun: 0 minutes are over"]
    assert not (tmp_path / "begun").exists()


@pytest.mark.parametrize(("text", "status"), [("", None), ("1 / 0", 1)])
def test_the_status_tells_of_failures(suite, scripts, monkeypatch, text, status):
    scripts(one=text)
    monkeypatch.setattr(suite, "QUICK", (suite.Step("one.py", 0.1),))
    monkeypatch.setattr(sys, "argv", ["suite.py", "--quick"])
    if status is None:
        suite.main()
        return
    with pytest.raises(SystemExit, match="1 of 1 failed") as ended:
        suite.main()
    assert ended.value.code
