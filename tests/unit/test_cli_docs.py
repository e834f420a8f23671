"""docs/commands.md names every command and option, and none that does not exist."""

import re
from pathlib import Path

import click
import pytest

from lcc_scrapy.cli.main import lcc
from lcc_scrapy.feed.row_formats import COLUMNS

TEXT = (Path(__file__).parents[2] / "docs" / "commands.md").read_text(encoding="utf-8")
SECTIONS = dict(re.findall(r"^## `(lcc[^`]*)`\n(.*?)(?=^## |\Z)", TEXT, re.MULTILINE | re.DOTALL))


def commands(command=lcc, name="lcc"):
    yield name, command
    if isinstance(command, click.Group):
        context = click.Context(command)
        for word in command.list_commands(context):
            yield from commands(command.get_command(context, word), f"{name} {word}")


def options_of(command):
    context = click.Context(command)
    params = [param for param in command.get_params(context) if param is not command.get_help_option(context)]
    options = [param for param in params if isinstance(param, click.Option)]
    return {text for option in options for text in (*option.opts, *option.secondary_opts)}


def documented(section):
    rows = re.findall(r"^\| (`-.*?) \|", section, re.MULTILINE)
    return {text for row in rows for text in re.findall(r"`(--?[a-z-]+)", row)}


def test_every_command_is_documented_and_no_other():
    assert set(SECTIONS) == {name for name, _ in commands()}


@pytest.mark.parametrize(("name", "command"), list(commands()))
def test_every_option_is_documented_and_no_other(name, command):
    assert documented(SECTIONS[name]) == options_of(command)


@pytest.mark.parametrize(("name", "command"), list(commands()))
def test_every_command_says_what_it_does_and_shows_an_example(name, command):
    assert command.help
    if not isinstance(command, click.Group):
        assert name in command.help
        assert f"{name} " in SECTIONS[name] or f"{name}\n" in SECTIONS[name]


@pytest.mark.parametrize("command", [command for _, command in commands()])
def test_every_option_has_a_help_text(command):
    options = [param for param in command.params if isinstance(param, click.Option)]
    assert all(option.help for option in options)


def test_every_column_of_the_feed_is_documented():
    assert set(COLUMNS) <= set(re.findall(r"`([a-z_0-9]+)`", SECTIONS["lcc select"]))
