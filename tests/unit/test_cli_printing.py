"""How results look."""

import io

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lcc_scrapy.cli import printing
from lcc_scrapy.domain.timeslots import parse_mask


@given(st.sampled_from([24, 168]).flatmap(lambda n: st.text("01", min_size=n, max_size=n)))
def test_hours_are_shown_as_they_may_be_given(mask):
    shown = printing.hours(mask)
    if "0" not in mask:
        assert shown == "always"
    elif "1" not in mask:
        assert shown == "never"
    else:
        assert parse_mask(shown, len(mask)) == mask


@pytest.mark.parametrize("text", ["mon-fri 20-6", "0-8", "sat-sun 0-24", "mon 9-17,wed 9-17"])
def test_hours_read_like_the_usual_notation(text):
    assert printing.hours(parse_mask(text)) == text


@pytest.mark.parametrize(
    ("count", "text"),
    [(0, "0 B"), (999, "999 B"), (1500, "1.5 kB"), (2_000_000, "2.0 MB"), (10**16, "10000.0 TB")],
)
def test_sizes_count_in_thousands(count, text):
    assert printing.size(count) == text


def test_moments_are_shown_in_utc():
    assert printing.moment(1_800_000_000) == "2027-01-15 08:00:00Z"
    assert printing.moment(0) == ""


def test_nothing_that_a_terminal_obeys_is_printed():
    assert printing.plain("a\x1b[31m\u202eb\x9b\tä€") == r"a\x1b[31m\u202eb\x9b\tä€"


def test_tables_in_a_pipe_are_separated_by_tabs(capsys):
    printing.table(("name", "size"), [("[red]a\tb", 1), (None, 22)])
    assert capsys.readouterr().out == "name\tsize\n[red]a\\tb\t1\n\t22\n"


def test_an_empty_table_prints_nothing(capsys):
    printing.table(("name",), [])
    assert capsys.readouterr().out == ""


def test_tables_on_a_terminal_take_no_markup_from_their_cells():
    from rich.console import Console

    console = Console(width=60, record=True, file=io.StringIO())
    console.print(printing.rich_table(("url", "size"), [("[bold]x[/bold]", 12)]))
    assert "[bold]x[/bold]" in console.export_text()
