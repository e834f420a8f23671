"""A provider's password: from a file, the environment or a prompt; never from the command line."""

import os
import re
import sys
from pathlib import Path

import click

from lcc_scrapy.cli import printing
from lcc_scrapy.cli.context import Failure

VARIABLE = "LCC_PWD"
PASSWORD_MAX = 1000
_UNUSABLE = re.compile(r"[\x00-\x1f\x7f\ud800-\udfff]")


def for_new_provider(file: str | None) -> str:
    """Return a new provider's password: from ``file``, else from LCC_PWD, else by asking on a terminal."""
    if file is not None:
        return from_file(file)
    if VARIABLE in os.environ:
        return checked(os.environ[VARIABLE], VARIABLE)
    if sys.stdin.isatty():
        return checked(click.prompt("Password", hide_input=True, confirmation_prompt=True, err=True), "this")
    raise click.UsageError(f"no password: give --password-file FILE (- is stdin), or set {VARIABLE}")


def from_file(file: str) -> str:
    """Return the first line of a file; ``-`` is stdin."""
    try:
        content = sys.stdin.buffer.readline() if file == "-" else _private(Path(file))
        text = content.decode("utf-8")
    except OSError as error:
        raise Failure(f"cannot read the password from {file}: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise Failure(f"cannot read the password from {file}: not UTF-8") from error
    return checked(text.partition("\n")[0].rstrip("\r"), "stdin" if file == "-" else file)


def _private(file: Path) -> bytes:
    content = file.read_bytes()
    if file.stat().st_mode & 0o077:
        printing.note(f"others may read {file}; better: chmod 600 {file}")
    return content


def checked(password: str, source: str) -> str:
    """Return a password that can be used; raises ``Failure`` that names where it was found."""
    if not password:
        raise Failure(f"the password in {source} is empty: it has to stand on the first line")
    if len(password) > PASSWORD_MAX or _UNUSABLE.search(password):
        raise Failure(
            f"the password in {source} has control characters, or more than {PASSWORD_MAX} characters"
        )
    return password
