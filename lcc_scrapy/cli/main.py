"""``lcc``: the operator's and the content user's commands."""

import os
import sys
from typing import Any

import click

from lcc_scrapy import __version__
from lcc_scrapy.cli.context import Lcc, LccGroup
from lcc_scrapy.cli.crawl import crawl
from lcc_scrapy.cli.database import db
from lcc_scrapy.cli.explain import explain
from lcc_scrapy.cli.export import export
from lcc_scrapy.cli.fetch import fetch
from lcc_scrapy.cli.follow import follow
from lcc_scrapy.cli.initialise import init
from lcc_scrapy.cli.path import path
from lcc_scrapy.cli.provider import provider
from lcc_scrapy.cli.select import select
from lcc_scrapy.cli.status import errors, status
from lcc_scrapy.cli.uns import uns
from lcc_scrapy.cli.verify import verify
from lcc_scrapy.providers.secrecy import hide_passwords_of_urls


def _named_value(_ctx: click.Context, _param: click.Parameter, given: tuple[str, ...]) -> dict[str, str]:
    pairs = {}
    for text in given:
        name, equals, value = text.partition("=")
        if not equals or not name:
            raise click.BadParameter(f"{text!r}, expected NAME=VALUE")
        pairs[name.strip()] = value
    return pairs


@click.group(cls=LccGroup, context_settings={"help_option_names": ["-h", "--help"]})
@click.option(
    "-s",
    "--set",
    "settings",
    metavar="NAME=VALUE",
    multiple=True,
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


for _command in (
    init, uns, crawl, db, provider, status, errors, explain, fetch, path, verify, select, follow, export,
):  # fmt: skip
    lcc.add_command(_command)


def main(args: list[str] | None = None, prog_name: str = "lcc") -> Any:
    """Run ``lcc`` and exit: 0 done, 1 failed, 2 usage, 3 start over (``select``, ``follow``, ``export``)."""
    if args is None or prog_name != "lcc":
        hide_passwords_of_urls()
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
