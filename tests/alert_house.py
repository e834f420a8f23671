"""Alerts on a store in memory, and real servers that are told: mail, and webhooks."""

import asyncio
import threading
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from zoneinfo import ZoneInfo

from lcc_scrapy.annotation.couriers import HookCourier, MailCourier
from lcc_scrapy.annotation.delivery import Delivery, Terms
from lcc_scrapy.annotation.webhooks import Webhooks, new_secret
from lcc_scrapy.domain.acis import Aci, Channel, Recipient
from lcc_scrapy.domain.alert_limits import Deadlines
from lcc_scrapy.domain.alerts import Schedule, alerts_of
from lcc_scrapy.domain.mail_rules import MailRules
from lcc_scrapy.http.outgoing import Outgoing, tls_context
from lcc_scrapy.mail.sending import SmtpMailer
from tests.memory_store import MemoryStore

NOW = 1_800_000_000  # 2027-01-15 08:00 UTC
DAY = 86_400
SCHEDULE = Schedule(time(9, 0), Deadlines(90_000, 600, 60), ZoneInfo("UTC"))
ALICE = Recipient(0, "alice", Channel.MAIL, "a@example.org", "html", False, "", False, NOW, "")


def aci(number, owner="alice", **values):
    made = Aci(
        number.to_bytes(16, "big"), 100 + number, owner, number, 3, 7, "html", "text/html", 18,
        NOW * 1000 - 5000, 2000, f"http://www.example.org/{number}", 2, "1/5", False, f"Page {number}",
        "1) all about lamps", '{"keywords": [{"key": "lamps", "weight": 3, "occurrences": 2}], "extracts":'
        ' [{"text": "all about lamps", "marks": [[10, 15]]}]}', NOW * 1000,
    )  # fmt: skip
    return replace(made, **values)


@dataclass
class HookServer:
    """``answer`` says what a call gets: (status, headers, body), by path; None = nothing at all."""

    calls: list = field(default_factory=list)
    answer: object = lambda path: (204, {}, b"")
    let_go: threading.Event = field(default_factory=threading.Event)
    url: str = ""

    def at(self, path):
        return [one for one in self.calls if one[0] == path]


@contextmanager
def hook_server():
    made = HookServer()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self):
            body = self.rfile.read(int(self.headers["Content-Length"]))
            made.calls.append((self.path, dict(self.headers), body))
            said = made.answer(self.path)
            if said is None:
                made.let_go.wait(300)
                self.close_connection = True
                return
            status, headers, body = said
            self.send_response(status)
            for name, value in headers.items():
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        do_PUT = do_POST  # noqa: N815 - as http.server calls it

        def log_message(self, *_):
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True)
    thread.start()
    made.url = f"http://127.0.0.1:{server.server_address[1]}"
    try:
        yield made
    finally:
        made.let_go.set()
        server.shutdown()
        server.server_close()
        thread.join(60)


class AlertHouse:
    """Recipients, alerts and their delivery; ``now`` is moved by tests (epoch seconds)."""

    def __init__(self, store=None, mail_port=0, private=True, seconds=20.0, retry=7 * DAY):
        self.store = store or MemoryStore()
        self.now = float(NOW)
        self.mail_port = mail_port
        self.private = private
        self.seconds = seconds
        self.retry = retry

    def recipient(self, **values):
        with self.store.begin() as tx:
            return tx.insert_recipient(replace(ALICE, **values))

    def hook(self, url, **values):
        return self.recipient(
            channel=Channel.WEBHOOK, address=url, secret=new_secret(), **{"format": "json", **values}
        )

    def found(self, *acis):
        """Do as the engine does: put ACIs with their alerts."""
        with self.store.begin() as tx:
            recipients = tx.recipients_of({one.owner for one in acis})
            tx.put_acis(acis)
            at = int(self.now * 1000)
            tx.put_alerts([alert for one in acis for alert in alerts_of(one, recipients, at, SCHEDULE)])

    def couriers(self):
        hooks = Webhooks(Outgoing(20, tls_context()), "lcc-test")
        found = {Channel.WEBHOOK: HookCourier(hooks, 4, self.seconds, self.private)}
        if self.mail_port:
            mailer = SmtpMailer(MailRules(sender="LCC <lcc@example.org>", port=self.mail_port, timeout=60.0))
            found[Channel.MAIL] = MailCourier(mailer, "example.org", 60.0)
        return found

    def delivery(self, couriers=None, **terms):
        made = Terms("an-lcc", self.retry, 90 * DAY, **{"poll": 0.02, **terms})
        return Delivery(self.store, couriers or self.couriers(), made, lambda: self.now)

    def deliver(self, couriers=None, **terms):
        """Tell everybody until nothing is due."""

        async def told():
            delivery = self.delivery(couriers, **terms)
            try:
                return await delivery.once()
            finally:
                await delivery.close()

        return run(told())

    def alerts(self):
        with self.store.read() as tx:
            return {
                (one.number, whose.recipientid): one
                for one, whose in tx.alerts_told(None, None, 2**62, 10_000)
            }

    def states(self):
        return {key: str(one.state) for key, one in sorted(self.alerts().items())}

    def counts(self):
        names = (
            "alerts kept 0",
            "alerts kept 1",
            "alerts kept 2",
            "alerts late 0",
            "alerts late 1",
            "alerts late 2",
            "alerts given up",
        )
        with self.store.read() as tx:
            return {name.removeprefix("alerts "): tx.peek(name) for name in names if tx.peek(name)}


def run(job):
    """Run a coroutine in a loop of its own, whatever loop the tests are in."""
    result = []

    def inside():
        result.append(asyncio.run(job))

    thread = threading.Thread(target=inside)
    thread.start()
    thread.join()
    assert result, "it failed: see the traceback above"
    return result[0]
