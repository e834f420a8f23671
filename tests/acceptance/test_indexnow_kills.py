"""``lcc web`` is killed while it takes submissions: what was acknowledged comes into the queue.

``LCC_INDEXNOW_KILLS`` says how often (default 3; ``make soak`` takes 20).
"""

import json
import os
import random
import threading
import urllib.request
from contextlib import suppress

import pytest

from lcc_scrapy.apps.indexnow.store import rows_in
from tests.harness import wait_for
from tests.indexnow_house import Receiver
from tests.integration.site import Site, page

KILLS = int(os.environ.get("LCC_INDEXNOW_KILLS", "3"))
pytestmark = [pytest.mark.acceptance, pytest.mark.slow]


KEYS = 12
"""Fewer than a site may have."""


class Sender(threading.Thread):
    """Submits one URL or many after the other, and remembers what was acknowledged."""

    def __init__(self, number, receiver, site):
        super().__init__()
        self.number, self.receiver, self.site = number, receiver, site
        self.acknowledged = set()
        self.statuses = set()
        self.over = False

    def run(self):
        key, count = key_of(self.number), 0
        while not self.over:
            urls = [f"{self.site}{self.number}/{count}/{each}" for each in range(1 + 700 * (count % 7 == 0))]
            count += 1
            said = {
                "host": self.site.split("/")[2],
                "key": key,
                "urlList": urls,
                "keyLocation": f"{self.site}{key}",
            }
            with suppress(OSError):
                request = urllib.request.Request(
                    f"{self.receiver.url}/indexnow",
                    json.dumps(said).encode(),
                    {"Content-Type": "application/json"},
                )
                with urllib.request.urlopen(request, timeout=300) as answer:
                    self.statuses.add(answer.status)
                    self.acknowledged.update(urls)


def key_of(number):
    return f"key-of-sender-{number % KEYS}"


def states_of(receiver):
    with receiver.store.read() as tx:
        return {row.state for row in rows_in(tx).site_keys()}


def test_no_kill_loses_what_was_acknowledged(make_lcc):
    chance = random.Random(int(os.environ.get("LCC_SEED", "1")))
    acknowledged = set()
    with Site() as site:
        url = f"http://127.0.0.1:{site.listen()}/"
        with Receiver(make_lcc(), url) as receiver:
            for round_ in range(KILLS):
                senders = [Sender(3 * round_ + number, receiver, url) for number in range(3)]
                for sender in senders:
                    name = key_of(sender.number)
                    late = [page("", "503 Later")] * (sender.number % 2)
                    site.put(f"/{name}", *late, page(name))
                    sender.start()
                enough = chance.randrange(1, 1500)
                try:
                    wait_for(lambda: sum(len(one.acknowledged) for one in senders) >= enough)  # noqa: B023
                    receiver.kill()
                finally:
                    for sender in senders:
                        sender.over = True
                    for sender in senders:
                        sender.join(300)
                acknowledged |= set().union(*(one.acknowledged for one in senders))
                assert set().union(*(one.statuses for one in senders)) <= {200, 202}
                receiver.start()
            wait_for(lambda: acknowledged <= receiver.queued(), what="all that was acknowledged")
            wait_for(
                lambda: states_of(receiver) == {"good"}, what="keys of what was stored and not acknowledged"
            )
    print(f"{KILLS} kills, {len(acknowledged)} URLs acknowledged, none lost")
