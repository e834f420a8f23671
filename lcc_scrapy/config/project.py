"""The settings of the Scrapy project around the current folder, read without importing Scrapy.

Scrapy takes longer to import than most commands take to run. The files are found and read as
``scrapy.utils.project.get_project_settings`` does it; a test compares both.
"""

import os
import sys
from collections.abc import Iterator, Mapping
from configparser import ConfigParser
from importlib import import_module
from pathlib import Path
from typing import Any, Protocol

DEFAULT, PROJECT, COMMAND_LINE = 0, 20, 40
"""Priorities, as Scrapy numbers them."""

_MODULE = "SCRAPY_SETTINGS_MODULE"
_FILE = "scrapy.cfg"
_CFG = """\
# Made by `lcc init`: `lcc` and `scrapy` know this folder, and all below it, by this file.
# For settings of your own, write a file my_settings.py beside it that begins with
#     from lcc_scrapy.settings import *
# and put my_settings in place of lcc_scrapy.settings here.
[settings]
default = lcc_scrapy.settings
"""


class Given(Protocol):
    """What is asked of settings: Scrapy's, or those that are read here."""

    def get(self, name: str, /) -> Any:
        """Return the value of a setting; None where nobody gave one."""

    def getpriority(self, name: str, /) -> int | None:
        """Return the priority that a setting was given with."""

    def __iter__(self) -> Iterator[str]:
        """Yield the names of all settings."""


class PlainSettings:
    """What a project's settings module says, and the command line over it."""

    def __init__(self, of_project: Mapping[str, Any], of_command_line: Mapping[str, str]) -> None:
        self._priorities = {
            **dict.fromkeys(of_project, PROJECT),
            **dict.fromkeys(of_command_line, COMMAND_LINE),
        }
        self._values = {**of_project, **of_command_line}

    def get(self, name: str, /) -> Any:
        """Return the value of a setting; None where nobody gave one."""
        return self._values.get(name)

    def getpriority(self, name: str, /) -> int | None:
        """Return the priority that a setting was given with."""
        return self._priorities.get(name)

    def __iter__(self) -> Iterator[str]:
        """Yield the names of all settings."""
        return iter(self._values)


def plain_settings(given: Mapping[str, str]) -> PlainSettings:
    """Return what the project around the current folder sets; ``given`` wins. Raises ``ImportError``."""
    _enter_project()
    module = os.environ.get(_MODULE)
    found = vars(import_module(module)) if module else {}
    return PlainSettings({name: value for name, value in found.items() if name.isupper()}, given)


def closest_scrapy_cfg() -> Path | None:
    """Return the ``scrapy.cfg`` of this folder, or of the nearest one above it."""
    here = Path.cwd()
    return next((file for folder in (here, *here.parents) if (file := folder / _FILE).exists()), None)


def begin_project(folder: Path) -> Path | None:
    """Write a ``scrapy.cfg`` with the LCC's own settings into a folder, if it is in no project so far.

    Returns the file; None where a project or a settings module is found already.
    """
    _enter_project()
    if closest_scrapy_cfg() or _MODULE in os.environ:
        return None
    file = folder / _FILE
    with file.open("x", encoding="utf-8") as new:
        new.write(_CFG)
    return file


def _enter_project() -> None:
    """Name the settings module in the environment, and let it be imported."""
    closest = closest_scrapy_cfg()
    config = ConfigParser()
    config.read([*_files_of_the_user(), *([closest] if closest else [])])
    project = os.environ.get("SCRAPY_PROJECT", "default")
    if _MODULE not in os.environ and config.has_option("settings", project):
        os.environ[_MODULE] = config.get("settings", project)
    if closest and str(closest.parent) not in sys.path:
        sys.path.append(str(closest.parent))


def _files_of_the_user() -> list[Path]:
    home = Path("~").expanduser()
    settings = Path(os.environ.get("XDG_CONFIG_HOME") or home / ".config")
    return [Path("/etc") / _FILE, settings / _FILE, home / f".{_FILE}"]
