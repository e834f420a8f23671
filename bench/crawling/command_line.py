"""What measurements have in common on the command line."""

import argparse
from pathlib import Path
from typing import Any

from crawling.lcc import no_mariadb

CHECKOUT = Path(__file__).resolve().parents[2]
"""The one that this bench is of."""

_SHARED: dict[str, dict[str, Any]] = {
    "--database": {"choices": ("sqlite", "mariadb"), "default": "sqlite"},
    "--markdown": {"type": Path, "help": "append the table to this file"},
    "--scratch": {"type": Path, "default": Path.cwd(), "help": "where everything is written"},
    "--source": {
        "type": Path,
        "action": "append",
        "default": [],
        "help": "another checkout",
    },
}


def parser(text: str | None, *shared: str) -> argparse.ArgumentParser:
    """Return a parser with some of the options that several measurements have."""
    made = argparse.ArgumentParser(description=text, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name in shared:
        made.add_argument(name, **_SHARED[name])
    return made


def parsed(options: argparse.ArgumentParser) -> argparse.Namespace:
    """Read the command line; ends with status 0 where the database it asks for is not there.

    ``sources`` are the checkouts to measure, this one among them.
    """
    given = options.parse_args()
    if "mariadb" in getattr(given, "database", "") and (reason := no_mariadb()):
        options.exit(0, f"not measured: {reason}\n")
    if "source" in given:
        given.sources = [*(one.resolve() for one in given.source), CHECKOUT]
    return given
