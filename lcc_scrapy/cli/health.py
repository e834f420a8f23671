"""``lcc health``: whether the server process of a container lives and can work."""

import signal
from collections.abc import Iterator
from contextlib import contextmanager

import click

from lcc_scrapy.cli import printing
from lcc_scrapy.cli.context import Failure, Lcc, pass_lcc

PATIENCE = 10
"""Seconds that the database has to answer."""


@click.command()
@click.option("--process-only", is_flag=True, help="Do not ask the database.")
@pass_lcc
def health(lcc: Lcc, *, process_only: bool) -> None:
    """Tell whether the server process here lives, and its database answers.

    For health checks of containers. Any server (`lcc crawl`, `lcc uns`, `lcc web` and others) renews the time
    of LCC_HEALTH_FILE while its event loop runs. Exit status 0: healthy; 1: it gave no sign of life for
    LCC_WATCHDOG, or the database does not answer. Who restarts what is not healthy takes --process-only: no
    restart of a server brings its database back.

    \b
    lcc health
    lcc health --process-only
    """  # noqa: D301
    _check_process(lcc)
    if not process_only:
        with _patience(), lcc.store():
            pass
    click.echo("healthy")


def _check_process(lcc: Lcc) -> None:
    from lcc_scrapy.machine.watchdog import SILENCE, silence_of

    file = lcc.config.health_file
    if not file:
        raise Failure("LCC_HEALTH_FILE is empty: servers give no sign of life that can be read here")
    silence = silence_of(file)
    if silence is None:
        raise Failure(f"no server has given a sign of life: there is no {printing.plain(file)}")
    if silence > (lcc.config.watchdog or SILENCE):
        raise Failure(f"the server gave no sign of life for {silence:.0f} s")


@contextmanager
def _patience() -> Iterator[None]:
    """End the wait for a database that accepts connections and says nothing."""

    def give_up(*_: object) -> None:
        raise Failure(f"the database said nothing for {PATIENCE} s")

    before = signal.signal(signal.SIGALRM, give_up)
    signal.alarm(PATIENCE)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)
