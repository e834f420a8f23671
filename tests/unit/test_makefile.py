"""What the Makefile and CI name is there: files, tests that are chosen by name, variables that tests read."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PLACES = ("Makefile", ".ci/run", "CONTRIBUTING.md", "README.md")
TEXTS = {name: (ROOT / name).read_text() for name in PLACES if (ROOT / name).exists()}
RECIPES = [line.strip() for line in TEXTS["Makefile"].splitlines() if line.startswith("\t")]
SOAK = [line for line in RECIPES if "-m pytest" in line and "tests/" in line]


def files_in(text):
    return re.findall(r"\b(?:tests|bench|tools)/[\w/]+\.py\b", text)


@pytest.mark.parametrize("place", TEXTS)
def test_every_program_that_is_named_is_there(place):
    assert [name for name in files_in(TEXTS[place]) if not (ROOT / name).is_file()] == []


@pytest.mark.parametrize("line", SOAK, ids=lambda line: line.split()[0])
def test_every_line_of_the_soak_chooses_tests_that_are_there_and_sets_what_they_read(line):
    named = [(ROOT / name).read_text() for name in files_in(line)]
    assert named
    for word in re.findall(r" -k (\w+)", line):
        assert any(re.search(rf"def test_\w*{word}", text) for text in named)
    said = " ".join([*named, *(one.read_text() for one in (ROOT / "tests").glob("*.py"))])
    assert [name for name in re.findall(r"\b(LCC_\w+)=", line) if name not in said] == []


def test_the_soak_is_found_and_says_nothing_twice():
    assert len(SOAK) > 15
    assert len(set(SOAK)) == len(SOAK)


def test_ci_runs_what_check_runs():
    checked = re.search(r"^check: (.*?) ##", TEXTS["Makefile"], re.MULTILINE)[1].split()
    run = " ".join(
        re.findall(r"^make (.*)$", TEXTS.get(".ci/run", "make " + " ".join(checked)), re.MULTILINE)
    )
    assert sorted(checked) == sorted(word for word in run.split() if not word.startswith("-"))
