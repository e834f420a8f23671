"""``lcc export`` into indexers and to commands, as it is run."""

import re
import sqlite3

import pytest
from test_cli import SITE, one_error
from test_cli_content_users import DOCS, cursor_of, forget_all, small

from lcc_scrapy.domain.cursor import Position
from lcc_scrapy.domain.entries import Operation

__all__ = ["small"]
PAGE = (DOCS / "indexers.md").read_text(encoding="utf-8")


def indexed(house, name="search.db"):
    rows = sqlite3.connect(house.folder / name).execute(
        "select link, body from documents join pages on pages.rowid = id"
    )
    return dict(rows.fetchall())


def last_line(result):
    return result.output.strip().splitlines()[-1]


def test_an_index_is_made_and_then_kept_up_to_date(small):
    small.documents("a", "b")
    words = ["export", "--format", "fts5", "-o", "search.db"]
    assert "2 documents" in small.lcc(*words).stderr
    assert set(indexed(small)) == {SITE + "a", SITE + "b"}
    small.push("a", operation=Operation.REMOVE)
    small.documents("c")
    assert "1 documents" in (told := small.lcc(*words).stderr)
    assert "1 removals" in told
    assert set(indexed(small)) == {SITE + "b", SITE + "c"}
    assert "0 documents" in small.lcc(*words).stderr
    assert {path.name for path in small.folder.iterdir()} == {"lcc-data", "search.db"}


def test_limits_are_portions_of_an_index(small):
    small.documents("a", "b", "c")
    words = ["export", "--format", "fts5", "-o", "search.db", "--limit", "2"]
    small.lcc(*words)
    assert len(indexed(small)) == 2
    small.lcc(*words)
    assert len(indexed(small)) == 3


def test_an_index_that_cannot_go_on_says_how_it_is_built_anew(small):
    small.documents("a", "b")
    words = ["export", "--format", "fts5", "-o", "search.db"]
    small.lcc(*words)
    assert "--force builds the index anew" in one_error(small.lcc(*words, "--provider", "7", status=2))
    small.push("a", operation=Operation.REMOVE)
    forget_all(small)
    assert "--force" in one_error(small.lcc(*words, status=3))
    small.lcc(*words, "--force")
    assert set(indexed(small)) == {SITE + "b"}
    assert {path.name for path in small.folder.iterdir()} == {"lcc-data", "search.db"}


def test_an_index_that_is_not_built_anew_to_the_end_leaves_the_old_one(small):
    small.documents("a", "b")
    words = ["export", "--format", "fts5", "-o", "search.db"]
    small.lcc(*words)
    next((small.data / "content" / "1" / "000" / "000").glob("2")).write_bytes(b"damaged")
    assert "lcc verify --repair" in one_error(small.lcc(*words, "--force", status=1))
    assert len(indexed(small)) == 2
    assert {path.name for path in small.folder.iterdir()} == {"lcc-data", "search.db"}


def test_ht_dig_s_folder_built_anew_names_itself(small):
    small.documents("a")
    for _ in range(2):
        small.lcc("export", "--format", "htdig", "-o", "pages", "--force")
        settings = (small.folder / "pages" / "htdig.conf").read_text()
        assert f"start_url: `{small.folder}/pages/changed`" in settings
        assert ".part" not in settings


@pytest.mark.parametrize("options", [["--cursor-file", "x"], ["--since", "x"], ["--exec", "cat"]])
def test_an_index_takes_no_cursor_and_no_command(small, options):
    done = small.lcc("export", "--format", "fts5", "-o", "search.db", *options, status=2)
    assert "keeps its own cursor" in last_line(done)
    assert {path.name for path in small.folder.iterdir()} == {"lcc-data"}


@pytest.mark.parametrize("form", ["swish-e", "swish++"])
@pytest.mark.parametrize("options", [["--cursor-file", "x"], ["--since", "x"]])
def test_who_can_only_rebuild_is_given_no_changes(small, form, options):
    done = small.lcc("export", "--format", form, "-o", "-", *options, status=2)
    assert "build it anew" in done.output
    assert {path.name for path in small.folder.iterdir()} == {"lcc-data"}


def test_an_export_goes_to_a_file_or_to_a_command(small):
    for options in ([], ["-o", "x", "--exec", "cat"]):
        assert "either -o or --exec" in last_line(
            small.lcc("export", "--format", "xapian", *options, status=2)
        )


def test_an_unknown_format_is_one_line(small):
    assert "MODULE:NAME" in one_error(small.lcc("export", "--format", "nextrieve", "-o", "-", status=1))


def test_the_position_moves_when_the_command_took_everything(small):
    small.documents("a", "b")
    words = ["export", "--format", "xapian", "--cursor-file", "position", "--exec"]
    assert "status 3" in one_error(small.lcc(*words, "cat > half; exit 3", status=1))
    assert cursor_of(small).seq == 0
    small.lcc(*words, "cat > taken")
    assert cursor_of(small).seq == 2
    assert (small.folder / "taken").read_bytes() == (small.folder / "half").read_bytes() != b""
    small.lcc(*words, "cat > nothing")
    assert (small.folder / "nothing").read_bytes() == b""


def test_a_command_that_does_not_read_to_the_end_took_nothing(small):
    small.push("a")
    small.fetch(body=b"a" * 1_000_000)
    words = ["export", "--format", "xapian", "--cursor-file", "position", "--exec", "head -c 1000 > part"]
    assert "did not read everything" in one_error(small.lcc(*words, status=1))
    assert cursor_of(small).seq == 0


def test_an_export_that_fails_ends_its_command_before_that_takes_a_part_for_the_whole(small):
    small.documents("a", "b")
    next((small.data / "content" / "1" / "000" / "000").glob("2")).write_bytes(b"damaged")
    words = ["export", "--format", "xapian", "--cursor-file", "position", "--exec", "cat > part; touch ended"]
    assert "lcc verify --repair" in one_error(small.lcc(*words, status=1))
    assert not (small.folder / "ended").exists()
    assert cursor_of(small).seq == 0


def test_the_format_of_the_docs_is_found_and_writes(small):
    (code,) = (
        block
        for block in re.findall(r"^```python\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)
        if "ExportFormat" in block
    )
    assert len([line for line in code.splitlines() if line.strip()]) <= 20
    (small.folder / "words.py").write_text(code)
    small.documents("a", "b")
    (line,) = re.findall(r"^lcc (export --format words:WORDS .*)$", PAGE, re.MULTILINE)
    done = small.run(*line.split())
    assert done.returncode == 0, done.stderr
    *rows, end = done.stdout.splitlines()
    assert [row.split("\t")[1:] for row in rows] == [[SITE + "a", "1"], [SITE + "b", "1"]]
    assert Position.parse(end.removeprefix("# cursor: ")) == cursor_of(small, "words.position")
    small.push("a", operation=Operation.REMOVE)
    assert small.run(*line.split()).stdout.splitlines()[0].endswith("\t\t0")


def test_every_format_is_in_the_table_of_the_page():
    from lcc_scrapy.apps.exports.indexers.formats import INDEXERS

    assert set(re.findall(r"^\| \[`([a-z0-9+-]+)`\]", PAGE, re.MULTILINE)) == set(INDEXERS)
