"""What ``lcc-push`` is asked: the command line over the configuration file over the defaults."""

from __future__ import annotations

import getpass
import os
import re
import sys
from argparse import Namespace
from dataclasses import dataclass, field
from pathlib import Path

from lcc_scrapy.push import configuration, password
from lcc_scrapy.push.command import Notes, Status, Stop
from lcc_scrapy.push.configuration import ConfigFile, Values

PASSWORD_VARIABLES = ("LCC_PASSWORD", password.VARIABLE)
_URL = re.compile(r"https?://[^\s/?#@]+(/[^\s#]*)?", re.ASCII)
_PREFIX_ENDS = ("/", "?", "=", "&")


@dataclass(frozen=True)
class Asked:
    """The settings of one push, read and checked."""

    config: Path
    server: str
    pid: str
    password: str = field(repr=False)
    ca: str
    state: Path
    """What the names of the state files begin with."""
    url: str
    values: Values = field(repr=False)

    def seconds(self, key: str, default: float) -> float:
        """Return a number of seconds above 0; raises `Stop` (64)."""
        return number(self.values, key, default, least=0.1, most=1e6)


def read(options: Namespace) -> Asked:
    """Put command line and file together; raises `Stop` (64, 65, 66, 75)."""
    file = ConfigFile(Path(options.config) if options.config else configuration.default_path())
    if options.config and not file.exists():
        raise Stop(Status.NO_INPUT, f"{file.path}: no such file")
    settings, unfinished = file.read()
    if unfinished:
        raise Stop(
            Status.TRY_LATER, f"{file.path}: the registration is not finished; run lcc-push init again"
        )
    given = {name: value for name, value in vars(options).items() if value and name in configuration.KEYS}
    values = {**settings, **given}
    for key in ("server", "pid"):
        if not values.get(key):
            raise Stop(Status.USAGE, f"no {key}: run lcc-push init, or name it in {file.path} or by --{key}")
    return Asked(
        file.path,
        values["server"],
        values["pid"],
        _password(settings),
        values.get("ca", ""),
        Path(values.get("state") or file.path.with_suffix("")).absolute(),
        prefix(values.get("url", "")),
        values,
    )


def _password(settings: Values) -> str:
    for name in PASSWORD_VARIABLES:
        if os.environ.get(name):
            return os.environ[name]
    if settings.get("password"):
        return settings["password"]
    if settings.get("password_file"):
        configuration.refuse_readable(Path(settings["password_file"]))
        return password.password(None, Path(settings["password_file"]), Notes("lcc-push"))
    if sys.stdin.isatty():
        return getpass.getpass("password: ")
    raise Stop(Status.USAGE, f"no password: put it into the configuration, or set {PASSWORD_VARIABLES[0]}")


def prefix(url: str) -> str:
    """Return the prefix of a site's URLs; one without its final slash is asked about. Raises `Stop` (64)."""
    if not url:
        return ""
    if not _URL.fullmatch(url):
        raise Stop(Status.USAGE, f"{url!r} is not http://HOST/ or https://HOST/")
    if url.endswith(_PREFIX_ENDS) and "/" in url.partition("://")[2]:
        return url
    if not confirmed(f"did you mean {url}/ ?"):
        raise Stop(Status.USAGE, f"{url} has no slash at its end: did you mean {url}/ ? Nothing sent")
    return url + "/"


def confirmed(question: str) -> bool:
    """Ask on the terminal; without one the answer is no."""
    if not (sys.stdin.isatty() and sys.stderr.isatty()):
        return False
    sys.stderr.write(f"lcc-push: {question} [y/N] ")
    sys.stderr.flush()
    return sys.stdin.readline().strip().lower() in {"y", "yes"}


def number(values: Values, key: str, default: float, *, least: float, most: float) -> float:
    """Return a number of the configuration; raises `Stop` (64)."""
    try:
        found = float(values.get(key, default))
    except ValueError:
        found = least - 1
    if not least <= found <= most:
        raise Stop(Status.USAGE, f"{key} = {values.get(key)}: expected a number from {least:g} to {most:g}")
    return found
