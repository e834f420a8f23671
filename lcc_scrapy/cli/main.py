"""``lcc``: the operator's and the content user's commands."""

import os
import sys
from typing import Any, cast

import click

from lcc_scrapy import __version__
from lcc_scrapy.cli.context import Lcc, OpenGroup
from lcc_scrapy.machine.garbage_collection import spare_imports
from lcc_scrapy.push.password import hide_passwords_of_urls
from lcc_scrapy.runtime.apps import load


def _named_value(_ctx: click.Context, _param: click.Parameter, given: tuple[str, ...]) -> dict[str, str]:
    pairs = {}
    for text in given:
        name, equals, value = text.partition("=")
        if not equals or not name:
            raise click.BadParameter(f"{text!r}, expected NAME=VALUE")
        pairs[name.strip()] = value
    return pairs


_COMMANDS = {
    "alerts": "alerts", "annotate": "annotate", "audit": "audit",
    "crawl": "crawl", "db": "database", "directives": "directives", "doctor": "doctor", "errors": "status",
    "explain": "explain", "fetch": "fetch", "files": "files", "follow": "follow",
    "front": "front", "health": "health", "init": "initialise", "log": "log",
    "meta": "meta", "path": "path", "provider": "provider",
    "recipient": "recipient", "refetch": "again", "retry": "again",
    "select": "select", "status": "status", "token": "token",
    "uns": "uns", "urd": "urd", "user": "user", "verify": "verify", "versions": "meta", "web": "web",
}  # fmt: skip
"""The commands, each with the module of this package in which it is found under its name."""


class Commands(OpenGroup):
    """A group whose commands are imported when they are needed: one begins before all others were read."""

    def path(self, name: str = "") -> str:
        """Return how apps name a command of ``lcc`` itself."""
        return name

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names of all commands."""
        return sorted((*_COMMANDS, *super().list_commands(ctx)))

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Return a command, None where there is none of this name."""
        module = _COMMANDS.get(cmd_name)
        if module is None:
            return super().get_command(ctx, cmd_name)
        return cast("click.Command", load(f"lcc_scrapy.cli.{module}:{cmd_name}"))


@click.group(cls=Commands, context_settings={"help_option_names": ["-h", "--help"]})
@click.option(
    "-s",
    "--set",
    "settings",
    metavar="NAME=VALUE",
    multiple=True,
    is_eager=True,  # --help shows the commands of the apps that it names
    callback=_named_value,
    help="Set a setting, for example LCC_DATA_DIR=/srv/lcc; may be repeated.",
)
@click.version_option(__version__, "--version", prog_name="lcc")
@click.pass_context
def lcc(ctx: click.Context, settings: dict[str, str]) -> None:
    """Local Content Cache: set it up, watch it, and read what changed.

    Settings (LCC_…) come from -s, the environment, or the settings.py of the Scrapy project around the
    current folder.

    \b
    lcc init
    lcc provider add 7 --password-file secret --root http://www.example.org/
    lcc status
    lcc select --cursor-file position
    """  # noqa: D301 - click wants the form feed of its paragraphs so
    ctx.obj = Lcc(settings)


def main(args: list[str] | None = None, prog_name: str = "lcc") -> Any:
    """Run ``lcc`` and exit: 0 done, 1 failed, 2 usage, 3 start over (``select`` and others with cursors)."""
    if args is None or prog_name != "lcc":
        hide_passwords_of_urls()
    spare_imports()
    try:
        return lcc.main(args, prog_name=prog_name)
    finally:
        _drop_what_stdout_refused()


def _drop_what_stdout_refused() -> None:
    """Keep the interpreter from trying again, and complaining, at its end: a full disk, a closed pipe."""
    try:
        sys.stdout.flush()
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


if __name__ == "__main__":
    main()
