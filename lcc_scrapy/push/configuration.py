"""The configuration of ``lcc-push``: an INI file that nobody else may read, where it holds a password.

::

    [lcc-push]
    server = https://lcc.example.org/
    pid = 7
    password = …
    docroot = /srv/www
    url = https://www.example.org/

A section ``[registration]`` stands in it while ``lcc-push init`` is not finished.
"""

from __future__ import annotations

import configparser
import io
import os
from contextlib import suppress
from pathlib import Path
from typing import Mapping

from lcc_scrapy.push.command import Status, Stop

SECTION = "lcc-push"
REGISTRATION = "registration"
KEYS = (
    "server", "pid", "password", "password_file", "docroot", "url", "sitemap", "include", "index", "md5",
    "ca", "state", "timeout", "retries", "interval", "max_removal",
)  # fmt: skip
SIZE_MAX = 1 << 20

Values = Mapping[str, str]


def default_path(environment: Mapping[str, str] = os.environ) -> Path:
    """Return ``~/.config/lcc-push.ini``, or where XDG_CONFIG_HOME says."""
    folder = environment.get("XDG_CONFIG_HOME", "")
    return (Path(folder) if Path(folder).is_absolute() else Path.home() / ".config") / "lcc-push.ini"


class ConfigFile:
    """The file by its path."""

    def __init__(self, path: Path) -> None:
        self.path = path.absolute()

    def exists(self) -> bool:
        """Tell whether there is one."""
        return os.path.lexists(self.path)

    def read(self) -> tuple[Values, Values]:
        """Return the settings, and what a registration left unfinished; both empty where there is no file.

        Raises `Stop`: 64 for a key that is not known or a password that others may read, 65, 66.
        """
        text = self._text()
        parser = configparser.RawConfigParser(strict=True)
        try:
            parser.read_string(text)
        except configparser.Error as error:
            reason = str(error).splitlines()[0]
            raise Stop(Status.BAD_INPUT, f"{self.path} cannot be read: {reason}") from None
        for section in parser.sections():
            if section not in {SECTION, REGISTRATION}:
                raise Stop(
                    Status.USAGE, f"{self.path}: section [{section}] is not known; expected [{SECTION}]"
                )
        settings = dict(parser[SECTION]) if SECTION in parser else {}
        self._check(settings)
        return settings, dict(parser[REGISTRATION]) if REGISTRATION in parser else {}

    def _text(self) -> str:
        try:
            with self.path.open("rb") as file:
                data = file.read(SIZE_MAX + 1)
            if len(data) > SIZE_MAX:
                raise Stop(Status.BAD_INPUT, f"{self.path} is larger than {SIZE_MAX:,} bytes")
            return data.decode("utf-8")
        except FileNotFoundError:
            return ""
        except UnicodeError:
            raise Stop(Status.BAD_INPUT, f"{self.path}: not UTF-8") from None
        except OSError as error:
            raise Stop(Status.NO_INPUT, f"{self.path}: {error.strerror}") from None

    def _check(self, settings: Values) -> None:
        for key in settings:
            if key not in KEYS:
                raise Stop(Status.USAGE, f"{self.path}: {key} is not known; there are {', '.join(KEYS)}")
        if "password" in settings:
            refuse_readable(self.path)

    def write(self, settings: Values, registration: Values | None = None) -> None:
        """Replace the file as a whole, with mode 0600; raises `Stop` (65) where it cannot be written."""
        parser = configparser.RawConfigParser()
        parser[SECTION] = dict(settings)
        if registration:
            parser[REGISTRATION] = dict(registration)
        text = io.StringIO()
        parser.write(text)
        try:
            self.path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            replace_file(self.path, text.getvalue().encode(), 0o600)
        except OSError as error:
            raise Stop(Status.BAD_INPUT, f"{self.path} cannot be written: {error.strerror}") from None


def replace_file(target: Path, data: bytes, mode: int) -> None:
    """Write a file so that whoever looks sees the old one or the new one, also after a crash."""
    temporary = target.with_name(f".{target.name}.tmp")
    with suppress(FileNotFoundError):
        temporary.unlink()
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, mode)
    with os.fdopen(descriptor, "wb") as file:
        os.fchmod(descriptor, mode)
        file.write(data)
        file.flush()
        os.fsync(descriptor)
    temporary.replace(target)
    folder = os.open(target.parent, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)


def refuse_readable(path: Path) -> None:
    """Raise `Stop` (64) if others may read this file with a password, 66 if there is none."""
    try:
        mode = path.stat().st_mode
    except OSError as error:
        raise Stop(Status.NO_INPUT, f"{path}: {error.strerror}") from None
    if mode & 0o077:
        raise Stop(Status.USAGE, f"others may read {path}, which holds a password: chmod 600 {path}")
