"""``scrapy lcc …``: the same commands through Scrapy's own command line."""

import argparse

from scrapy.commands import ScrapyCommand

from lcc_scrapy.cli.main import main

_NO_PREFIX = "\0"


class LccCommand(ScrapyCommand):
    """Hands everything that follows to ``lcc``, its options too."""

    requires_project = False
    requires_crawler_process = False

    def syntax(self) -> str:
        """Return what follows the name."""
        return "[-s NAME=VALUE] COMMAND …"

    def short_desc(self) -> str:
        """Return what Scrapy's list of commands says."""
        return "Local Content Cache: set it up, watch it, and read what changed"

    def add_options(self, parser: argparse.ArgumentParser) -> None:
        """Let Scrapy's parser take no option at all, not even ``--help``: all of them are ours."""
        parser.prefix_chars = _NO_PREFIX
        parser.set_defaults(profile=None)

    def process_options(self, args: list[str], opts: argparse.Namespace) -> None:
        """Leave the settings to ``lcc``."""

    def run(self, args: list[str], opts: argparse.Namespace) -> None:
        """Run a command; its exit status is that of ``scrapy``."""
        del opts
        try:
            main(args, prog_name="scrapy lcc")
        except SystemExit as ended:
            self.exitcode = ended.code if isinstance(ended.code, int) else int(ended.code is not None)
