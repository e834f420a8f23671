"""One door to the commands, for ``lcc-provider.pyz`` and ``python -m lcc_scrapy.push``."""

import os
import sys

COMMANDS = ("lcc-push", "file2url", "lcccpstate", "lcccp")
PYTHON = (3, 8)


def main() -> int:
    """Run the command that the file's own name says (a symlink), or else the first argument."""
    if sys.version_info < PYTHON:
        sys.stderr.write("lcc-provider: Python 3.8 or newer is needed\n")
        return 69
    name = command_named(os.path.basename(sys.argv[0]))  # noqa: PTH119
    if name is None and len(sys.argv) > 1:
        name = command_named(sys.argv[1])
        if name is not None:
            del sys.argv[1]
    if name is None:
        sys.stderr.write(
            "usage: lcc-provider.pyz lcc-push|file2url|lcccpstate|lcccp [options]; each has --help\n"
        )
        return 64
    return start(name)


def command_named(word: str) -> "str | None":
    """Return the command that a word stands for: file2url.sh is file2url, lcccp.pyz is lcccp."""
    stem = word[: word.rfind(".")] if word.endswith((".sh", ".pyz")) else word
    return stem if stem in COMMANDS else None


def start(name: str) -> int:
    """Run one command on sys.argv."""
    from importlib import import_module  # noqa: PLC0415

    return int(import_module("lcc_scrapy.push." + name.replace("-", "_")).main())


if __name__ == "__main__":
    sys.exit(main())
