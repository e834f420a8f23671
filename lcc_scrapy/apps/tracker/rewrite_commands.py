"""``lcc tracker rewrite``: the mirror tracker as a ``url_rewrite_program`` of Squid."""

import sys
from collections.abc import Callable
from contextlib import ExitStack
from threading import Lock
from typing import TYPE_CHECKING

import click

from lcc_scrapy.apps.tracker.settings import TrackerRules
from lcc_scrapy.cli.context import Lcc, never_to_be_tried_again, pass_lcc

if TYPE_CHECKING:
    from lcc_scrapy.apps.tracker.answering import Answering
    from lcc_scrapy.apps.tracker.redirection import Better
    from lcc_scrapy.apps.tracker.rules.policy import Policy


@click.command()
@pass_lcc
@never_to_be_tried_again()
def rewrite(lcc: Lcc) -> None:
    """Send Squid to replicas: a line of stdin is a request, a line of stdout where it is to go.

    Squid starts it as its `url_rewrite_program`, and it ends with Squid. The policy decides for each client
    whether it is redirected (`answer = "redirect"`) or does not notice. What has no better replica, and all
    while the database is away, stays as it is. The log goes to stderr, or to LOG_FILE.

    \b
    url_rewrite_program /usr/bin/lcc tracker rewrite
    url_rewrite_children 1 startup=1 idle=1 concurrency=100
    """  # noqa: D301
    import asyncio

    from lcc_scrapy.apps.tracker.lookup_threads import LookupThreads
    from lcc_scrapy.apps.tracker.policy import read_policy
    from lcc_scrapy.apps.tracker.rewriter import MOST_PENDING, SECONDS, THREADS, Rewriter
    from lcc_scrapy.machine import logs
    from lcc_scrapy.machine.forced_exit import leave

    policy = read_policy(lcc.config.of(TrackerRules).policy_file)
    logs.begin(lcc.settings, lcc.config.log_format)
    threads = LookupThreads(THREADS, MOST_PENDING, SECONDS)
    with ExitStack() as open_meanwhile:
        finder = _Finder(lambda: _answering(lcc, policy, open_meanwhile))
        try:
            asyncio.run(Rewriter(finder, sys.stdout.buffer, threads).serve(sys.stdin.buffer))
        finally:
            threads.close()
        if threads.pending:
            leave()


class _Finder:
    """Finds replicas; opens the database when it is first needed: Squid cannot do without its helper."""

    def __init__(self, open_: "Callable[[], Answering]") -> None:
        self._open = open_
        self._opening = Lock()
        self._answering: Answering | None = None

    def __call__(self, url: str, address: str) -> "Better | None":
        from lcc_scrapy.apps.tracker.redirection import better

        with self._opening:
            if self._answering is None:
                self._answering = self._open()
        return better(self._answering, url, address)


def _answering(lcc: Lcc, policy: "Policy", open_meanwhile: ExitStack) -> "Answering":
    from lcc_scrapy.apps.tracker.answering import Answering

    store = open_meanwhile.enter_context(lcc.store())
    return Answering(store, policy, lcc.config.of(TrackerRules).replicas)
