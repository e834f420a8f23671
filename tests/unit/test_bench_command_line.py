"""What the measurements of ``bench/`` have in common on the command line."""

import sys
from pathlib import Path

import pytest

BENCH = Path(__file__).parents[2] / "bench"


@pytest.fixture(scope="module")
def command_line():
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(BENCH)
        from crawling import command_line
    return command_line


@pytest.fixture
def given(command_line, monkeypatch):
    def read(*words):
        monkeypatch.setattr(sys, "argv", ["bench.py", *words])
        return command_line.parsed(command_line.parser("text", "--database", "--source", "--scratch"))

    return read


def test_this_checkout_is_measured_behind_the_others(given):
    assert given().sources == [BENCH.parent]
    assert given("--source", "/before").sources == [Path("/before"), BENCH.parent]


def test_without_its_database_a_measurement_says_so_and_has_not_failed(
    given, command_line, monkeypatch, capsys
):
    monkeypatch.setattr(command_line, "no_mariadb", lambda: "no MariaDB there")
    assert given().database == "sqlite"
    with pytest.raises(SystemExit) as ended:
        given("--database", "mariadb")
    assert ended.value.code == 0
    assert "not measured: no MariaDB there" in capsys.readouterr().err
