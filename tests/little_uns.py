"""A UNS in miniature: the real conversation, desk, spool and intake, on a transport and a clock of the test's."""

import re
from contextlib import contextmanager
from pathlib import Path
from xml.sax.saxutils import quoteattr

import pytest
from twisted.internet.defer import execute
from twisted.internet.error import ConnectionDone
from twisted.internet.task import Clock
from twisted.internet.testing import StringTransport
from twisted.python.failure import Failure

from lcc_scrapy.domain.uns_limits import Limits
from lcc_scrapy.intake.absorbing import Intake
from lcc_scrapy.intake.spooled import SpooledFile
from lcc_scrapy.login import login_service, login_throttle
from lcc_scrapy.login.login_service import LoginRules, LoginService
from lcc_scrapy.uns.conversations import Conversations
from lcc_scrapy.uns.protocol import UnsProtocol
from lcc_scrapy.uns.set_receiver import Shared
from lcc_scrapy.uns.spool import SpoolFolder
from lcc_scrapy.wire.messages import NAMESPACE

SITE = "http://www.example.org/"
RULES = ("lcc", ("text/*",), 168)


class SameThread:
    """Runs the store's jobs at once."""

    def run(self, job, *args):
        return execute(job, *args)


class Wire(StringTransport):
    def loseWriteConnection(self):
        pass


class Conversation:
    """One connection of provider 7, logged in."""

    def __init__(self, uns, pid, peer, password):
        self.wire = Wire()
        self._protocol = UnsProtocol(uns.shared, peer, uns)
        self._protocol.makeConnection(self.wire)
        provider = f'<provider id="{pid}" passwd="{password}"/>'
        self.say(f'<lococa:init xmlns:lococa="{NAMESPACE}">{provider}</lococa:init>')

    def say(self, text):
        self._protocol.dataReceived(text.encode())

    @property
    def said(self):
        return self.wire.value().decode()

    def send(self, *urls, full=False, **attributes):
        """Send a set and hang up; ``urls`` are names, or attributes. Returns the whole answer."""
        attributes = {"set": "full" if full else "partial", "urlprefix": SITE, **attributes}
        self.say(_tag("lococa:set", attributes, ">"))
        for url in urls:
            given = {"c": url, "mimetype": "text/html"} if isinstance(url, str) else url
            self.say(_tag("url", given, "/>"))
        self.say("</lococa:set>")
        return self.hang_up()

    def hang_up(self):
        self._protocol.readConnectionLost()
        self._protocol.connectionLost(Failure(ConnectionDone()))
        return self.said

    def told(self, name):
        """Return an attribute of the answer to the login."""
        return re.search(rf'\b{name}="([^"]*)"', self.said)[1]


def _tag(name, attributes, end):
    return f"<{name} {' '.join(f'{key}={quoteattr(value)}' for key, value in attributes.items())}{end}"


class LittleUns:
    """The UNS of a ``LittleLcc``; nothing is absorbed until it is told to."""

    def __init__(self, lcc, folder: Path):
        self.lcc = lcc
        self.folder = folder
        self.clock = Clock()
        self.open()

    def open(self):
        """Start, or start again after a kill."""
        self.spool = SpoolFolder(self.folder)
        self.spool.lock()
        self.spool.recover()
        self.login_service = LoginService(
            self.lcc.store, SameThread(), self, LoginRules(*RULES, self.lcc.policy), SpooledFile,
            uns=self.spool.identity, is_full_for=self.spool.is_full_for, full_sets=self.spool.full_sets.of,
            now=lambda: self.lcc.now,
        )  # fmt: skip
        self.shared = Shared(
            login_service=self.login_service, accepted_sets=self, spool=self.spool,
            conversations=Conversations(1000, 1000), limits=Limits(), clock=self.clock,
            now=lambda: self.lcc.now, in_thread=execute,
        )  # fmt: skip

    def close(self):
        self.login_service.close()
        self.spool.unlock()

    def restart(self):
        self.close()
        self.open()

    # --- what the conversations need -------------------------------------------------------------

    def getThreadPool(self):
        return None

    def callLater(self, *args):
        return self.clock.callLater(*args)

    def seconds(self):
        return self.clock.seconds()

    def entered(self, _protocol):
        return None

    def left(self, _protocol):
        pass

    def set_arrived(self, _path):
        pass

    def no_set_came(self, pid, seq):
        with self.lcc.store.begin() as tx:
            tx.drop_logins([(pid, seq)])

    # --- what tests do ---------------------------------------------------------------------------

    def log_in(self, pid=7, peer="192.0.2.1", password="a hash"):
        return Conversation(self, pid, peer, password)

    def guess(self, pid, peer):
        """Try a wrong password; returns the code that answers it."""
        return re.search(r'<reason code="(\d+)"', self.log_in(pid, peer, "a guess").hang_up())[1]

    def push(self, *urls, pid=7, **attributes):
        """Log in and send a set; returns what was said of it."""
        answer = self.log_in(pid).send(*urls, **attributes)
        return re.search(r"<set_(?:accepted|rejected).*", answer)[0]

    def absorb(self):
        """Absorb all that waits."""
        for waiting in self.spool.ready():
            intake = Intake(self.lcc.store, SpooledFile(waiting.path), self.lcc.policy)
            while not intake.step(self.lcc.now).finished:
                pass
            intake.close()
            self.spool.remove([waiting])


@contextmanager
def little_uns(lcc, folder, monkeypatch: pytest.MonkeyPatch):
    """Give a UNS whose password checks take no time: the password is the hash."""
    for module in (login_service, login_throttle):
        monkeypatch.setattr(
            module, "deferToThreadPool", lambda _reactor, _pool, job, *args: execute(job, *args)
        )
    monkeypatch.setattr(login_throttle, "verify_password", lambda known, given: known == given)
    made = LittleUns(lcc, folder)
    yield made
    made.close()
