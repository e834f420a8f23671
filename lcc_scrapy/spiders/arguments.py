"""Spider arguments (``-a NAME=VALUE``): which ones a spider has, and the refusal of any other.

A misspelt argument would otherwise be silent: ``stop_when_dun=1`` makes a cron job a daemon.
"""

import difflib
import inspect
import sys
from collections.abc import Collection, Mapping
from typing import Final

from scrapy import Spider

USAGE: Final = 2
"""The status of a command that was called wrongly."""
_YES: Final = {"1", "yes", "true", "on"}
_NO: Final = {"", "0", "no", "false", "off"}
_NAMED: Final = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)


def arguments_of(spider: type[Spider]) -> frozenset[str]:
    """Return the arguments of a spider: its classes' ``arguments``, and what their ``__init__`` name."""
    own = [kind for kind in spider.__mro__ if kind not in Spider.__mro__]
    listed = {name for kind in own for name in vars(kind).get("arguments", ())}
    in_signatures = {name for kind in own if "__init__" in vars(kind) for name in _parameters(kind)}
    return frozenset(listed | in_signatures)


def _parameters(kind: type) -> list[str]:
    first, *others = inspect.signature(vars(kind)["__init__"]).parameters.values()
    del first  # the spider itself
    return [parameter.name for parameter in others if parameter.kind in _NAMED]


def refuse_unknown(given: Collection[str], known: Collection[str]) -> None:
    """Raise ``ValueError`` for the first unknown argument; those that begin with ``_`` are of schedulers.

    scrapyd gives ``_job`` to each spider.
    """
    unknown = sorted(name for name in given if name not in known and not name.startswith("_"))
    if unknown:
        close = difflib.get_close_matches(unknown[0], known, n=1)
        meant = f", did you mean {close[0]}?" if close else ":"
        there_are = f"there are {', '.join(sorted(known))}" if known else "there are none"
        raise ValueError(f"unknown argument {unknown[0]}{meant} {there_are}")


def is_yes(arguments: Mapping[str, str], name: str) -> bool:
    """Read an argument that is 1 or 0 (missing = 0); raises ``ValueError``."""
    text = str(arguments.get(name, "")).lower()
    if text not in _YES | _NO:
        raise ValueError(f"{name}={text}: expected 1 or 0")
    return text in _YES


def end_with_usage(spider: str, error: ValueError) -> SystemExit:
    """Say in one line what is wrong with a spider's arguments; raise what is returned."""
    sys.stderr.write(f"spider {spider}: {error}\n")
    return SystemExit(USAGE)
