"""What users can set, hear or meet is documented; pages that are generated are up to date; links lead somewhere.

The ``lcc`` commands have a test of their own (``test_cli_docs.py``).
"""

import importlib.util
import re
import subprocess
import sys
from dataclasses import fields
from fnmatch import fnmatchcase as fnmatch
from pathlib import Path

import pytest

from lcc_scrapy import __version__, signals
from lcc_scrapy.config.config import every_setting
from lcc_scrapy.db.schema import tables_of
from lcc_scrapy.domain.entries import urlkey
from lcc_scrapy.domain.errors import CODES
from lcc_scrapy.engine.ignored_settings import REASONS
from lcc_scrapy.runtime.apps import App, ours

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
PAGES = sorted([*ROOT.glob("*.md"), *DOCS.glob("*.md"), *(DOCS / "decisions").glob("*.md")])
SETTINGS = every_setting(ours())
NOT_SETTINGS = {
    "LCC_PASSWORD",
    "LCC_PWD",
    "LCC_TEST_MARIADB",
    "LCC_TEST_POSTGRESQL",
    "LCC_KILLS",
    "LCC_WRITE_DOCS",
    "LCC_MACHINE",
    "LCC_FUZZ_SECONDS",
    "LCC_TEST_PROCESSES",
    "LCC_SLOW_PROCESSES",
    "LCC_TITLES",
}
"""Names from the environment that only the provider commands or these tests read."""
DECISION_PAGES = sorted((DOCS / "decisions").glob("[0-9]*.md"))
DECISIONS = [
    (page, int(number), title, text)
    for page in DECISION_PAGES
    for number, title, text in re.findall(
        r"^## (\d+)\. ([^\n]+)\n(.+?)(?=^## |\Z)", page.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL
    )
]
"""Each with its page, number, title and text."""


def text_of(page: str) -> str:
    return (DOCS / page).read_text(encoding="utf-8")


def script(name):
    spec = importlib.util.spec_from_file_location(name, DOCS / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def without_code(text: str) -> str:
    return re.sub(r"^```.*?^```", "", text, flags=re.MULTILINE | re.DOTALL)


def test_every_part_of_an_app_is_documented():
    table = text_of("apps.md").partition("## What an app can have")[2]
    assert set(re.findall(r"^\| `(\w+)` \|", table, re.MULTILINE)) == {one.name for one in fields(App)}


@pytest.mark.parametrize("setting", SETTINGS, ids=lambda setting: setting.name)
def test_every_setting_is_in_the_table_with_its_default(setting):
    rows = [line for line in text_of("settings.md").splitlines() if line.startswith(f"| `{setting.name}` |")]
    assert len(rows) == 1
    assert setting.default in rows[0]
    assert setting.meaning in rows[0]


def test_the_table_of_settings_is_up_to_date():
    page = text_of("settings.md")
    assert script("make_tables").with_table(page) == page, "run `python docs/make_tables.py`"


def test_the_diagrams_are_up_to_date():
    diagrams = script("make_diagrams")
    for name, tables in diagrams.PAGES.items():
        page = text_of(name)
        assert page.count("stateDiagram-v2") == len(tables)
        assert diagrams.with_diagrams(name, page) == page, "run `python docs/make_diagrams.py`"


def test_no_page_names_a_setting_that_does_not_exist():
    known = {setting.name for setting in SETTINGS} | NOT_SETTINGS
    for page in PAGES:
        named = set(re.findall(r"\bLCC_[A-Z_]+[A-Z]\b", page.read_text(encoding="utf-8")))
        assert named <= known, page.name


@pytest.mark.parametrize("code", CODES.values(), ids=lambda code: str(code.number))
def test_every_code_is_documented_with_its_text_and_whose_fault_it_is(code):
    rows = re.findall(rf"^\| {code.number} \| (.*?) \| (\w+) \|", text_of("protocol.md"), re.MULTILINE)
    assert rows
    for text, fault in rows:
        assert text.startswith(code.text)
        assert fault.lower() == code.fault


def test_every_signal_is_documented():
    names = {name for name in vars(signals) if name.startswith("lcc_")}
    assert set(re.findall(r"^\| `(lcc_\w+)` \|", text_of("scrapy.md"), re.MULTILINE)) == names


@pytest.mark.parametrize("name", [name for names in REASONS.values() for name in names])
def test_what_the_log_calls_ignored_is_said_to_be_so_in_the_table(name):
    rows = re.findall(r"^\| (`.*?) \| (.*?) \|", text_of("scrapy.md"), re.MULTILINE)
    said = [kind for names, kind in rows for one in re.findall("`(.*?)`", names) if fnmatch(name, one)]
    assert len(said) == 1
    assert said[0].startswith(("fixed", "ignored"))


def provider_options(command):
    done = subprocess.run(
        [sys.executable, "-m", "lcc_scrapy.push", command, "--help"],
        capture_output=True,
        text=True,
        check=True,
    )
    return set(re.findall(r"^  (?:-\w, )?(--[a-z][a-z0-9-]+)", done.stdout, re.MULTILINE)) - {"--help"}


@pytest.mark.parametrize("command", ["file2url", "lcccpstate", "lcccp"])
def test_every_option_of_the_provider_commands_is_documented(command):
    section = re.search(
        rf"^## {command}\n(.*?)(?=^## )", text_of("provider-commands.md"), re.MULTILINE | re.DOTALL
    )
    options = provider_options(command)
    assert options
    assert options <= set(re.findall(r"--[a-z][a-z0-9-]+", section[1]))


@pytest.mark.parametrize("table", tables_of(), ids=lambda table: table.name)
def test_every_table_and_column_is_documented(table):
    page = text_of("content.md")
    found = re.search(rf"^### {table.name}\b(.*?)(?=^##|\Z)", page, re.MULTILINE | re.DOTALL)
    row = re.search(rf"^\|[^|]*`{table.name}`[^|]*\|(.*)$", page, re.MULTILINE)
    described = found or row
    assert described
    assert {column.name for column in table.columns} <= set(re.findall(r"`(\w+)`", described[1]))


def test_the_docids_in_the_docs_are_right():
    rows = re.findall(
        r"^\| (\d+) \| `(.*?)` \| `(.*?)` \| `([0-9a-f]{32})` \|", text_of("content.md"), re.MULTILINE
    )
    assert len(rows) >= 3
    for pid, curl, mimetype, docid in rows:
        assert urlkey(int(pid), curl, mimetype).hex() == docid


@pytest.mark.parametrize(("page", "number", "title", "text"), DECISIONS, ids=[str(d[1]) for d in DECISIONS])
def test_a_decision_is_titled_complete_short_and_in_the_index_below_its_page(page, number, title, text):
    listed = re.search(
        rf"^- \[.+\]\({page.name}\)\n((?:  - .+\n)+)", text_of("decisions/index.md"), re.MULTILINE
    )
    assert f"  - {number}: {title}\n" in listed[1]
    for part in ("**What was decided.**", "**Why.**", "**What it costs.**"):
        assert part in text
    assert len([line for line in text.splitlines() if line]) <= 30


def test_no_two_decisions_have_the_same_number():
    numbers = [number for _, number, _, _ in DECISIONS]
    assert len(numbers) == len(set(numbers)) > 0


@pytest.mark.parametrize("page", DECISION_PAGES, ids=lambda path: path.stem[:4])
def test_a_page_of_decisions_has_them_in_order_and_the_lowest_number_in_its_name(page):
    numbers = [number for found, number, _, _ in DECISIONS if found == page]
    assert numbers == sorted(numbers)
    assert numbers[0] == int(page.name[:4])


def test_the_index_has_every_decision_once_in_order_within_its_subject():
    subjects = text_of("decisions/index.md").split("\n## ")[1:]
    pages = [re.findall(r"^- \[.+\]\((\d+-.+\.md)\)$", subject, re.MULTILINE) for subject in subjects]
    assert all(names == sorted(names) for names in pages)
    assert sorted(name for names in pages for name in names) == [page.name for page in DECISION_PAGES]
    listed = re.findall(r"^  - (\d+): ", text_of("decisions/index.md"), re.MULTILINE)
    assert sorted(map(int, listed)) == sorted(number for _, number, _, _ in DECISIONS)


def test_decisions_that_pages_and_code_name_are_headings_or_in_the_index_as_part_of_one():
    known = {number for _, number, _, _ in DECISIONS}
    introduction = text_of("decisions/index.md").partition("\n## ")[0]
    known |= {int(number) for number in re.findall(r"\d+", introduction.partition("Never used")[0])}
    sources = [*PAGES, *(ROOT / "lcc_scrapy").rglob("*.py"), *(ROOT / "tests").rglob("*.py")]
    named = {
        int(number)
        for path in sources
        for number in re.findall(r"\b[Dd]ecisions?\s+\[?(\d+)", path.read_text(encoding="utf-8"))
    }
    assert len(named) > 50
    assert named - known == set()


def test_links_to_decisions_lead_to_the_pages_that_have_them():
    pages = {number: page.name for page, number, _, _ in DECISIONS}
    linked = [
        (int(number), name)
        for page in PAGES
        for number, name in re.findall(
            r"\[(?:[Dd]ecision\s+)?(\d+)\]\([^)\s]*?(\d{4}-[a-z-]+\.md)\)", page.read_text(encoding="utf-8")
        )
    ]
    assert len(linked) > 50
    assert [(number, name) for number, name in linked if pages[number] != name] == []


@pytest.mark.parametrize("page", PAGES, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_relative_links_lead_to_files(page):
    text = without_code(page.read_text(encoding="utf-8"))
    targets = re.findall(r"\]\(([^)\s]+)\)", text)
    local = [target.partition("#")[0] for target in targets if not re.match(r"[a-z]+:", target)]
    assert [target for target in local if target and not (page.parent / target).exists()] == []


def test_the_tests_that_show_promises_exist():
    named = set(re.findall(r"`(tests/[a-z_/]+\.py)`", text_of("security.md")))
    assert len(named) > 20
    assert [test for test in named if not (ROOT / test).exists()] == []


def test_every_page_is_in_the_table_of_contents():
    contents = set(re.search(r"```{toctree}\n(.*?)```", text_of("index.md"), re.DOTALL)[1].split())
    assert {page.stem for page in DOCS.glob("*.md")} - {"index"} <= contents


def test_the_tests_that_pages_name_exist():
    written = "".join(path.read_text(encoding="utf-8") for path in (ROOT / "tests").rglob("test_*.py"))
    named = {
        name
        for page in DOCS.rglob("*.md")
        for name in re.findall(r"`(test_\w+)`", page.read_text(encoding="utf-8"))
    }
    assert named
    assert {name for name in named if f"def {name}(" not in written} == set()


def test_nothing_is_installed_from_an_index_that_does_not_have_it():
    sources = [
        *(ROOT / "lcc_scrapy").rglob("*.py"),
        *(ROOT / "contrib").rglob("*"),
        *(ROOT / "tools").glob("*.py"),
    ]
    texts = [path.read_text(encoding="utf-8") for path in (*PAGES, *sources) if path.is_file()]
    by_name = re.compile(r"\b(?:pip|pipx|uv)\b[^\n]* (?:install|run|add) [^\n]*\blcc-scrapy\b")
    assert [found[0] for text in texts if (found := by_name.search(text))] == []


def test_wheels_that_pages_install_have_the_version_that_is_built():
    named = {
        name for page in PAGES for name in re.findall(r"lcc_scrapy-([\w.]+?)-py3", page.read_text("utf-8"))
    }
    assert named == {__version__}
