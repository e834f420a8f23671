"""The Update Notification Server: listens, counts connections, and stops in an orderly way."""

import logging
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from ipaddress import ip_network
from typing import Any, TypeVar

from twisted.internet.defer import Deferred, inlineCallbacks
from twisted.internet.interfaces import IAddress
from twisted.internet.protocol import Factory
from twisted.internet.threads import deferToThreadPool

from lcc_scrapy.domain.errors import DiskFailed, Refusal
from lcc_scrapy.doors.gatehouse import Gatehouse, HouseRules, Networks
from lcc_scrapy.doors.listening import Entrance
from lcc_scrapy.doors.peers import plain_address
from lcc_scrapy.uns.clerk import Office
from lcc_scrapy.uns.conversations import Conversations
from lcc_scrapy.uns.limits import DEFAULT_LIMITS, Limits
from lcc_scrapy.uns.ports import PLENTY, Doorstep, Means, ProviderDesk
from lcc_scrapy.uns.protocol import UnsProtocol
from lcc_scrapy.uns.spool import SpoolFolder

log = logging.getLogger(__name__)

DEFAULT_ENDPOINTS = ("tcp:9000:interface=127.0.0.1",)
DEFAULT_PROXIES = (ip_network("127.0.0.0/8"), ip_network("::1/128"))
_LAST_WORDS_SECONDS = 2.0

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Doors:
    """Where and for how many the UNS is open."""

    endpoints: Sequence[str] = DEFAULT_ENDPOINTS
    """Twisted endpoint strings; empty = do not listen."""
    allow_plain_remote: bool = False
    """Listen beyond loopback without TLS, passwords in plain sight."""
    connections_per_address: int = 10
    """An IPv6 /64 counts as one address; more are answered with 104."""
    connections_per_provider: int = 10
    """Conversations of one provider that is logged in; more are answered with 104."""
    connections_max: int = 1000
    """In all, a fifth of them for homes only; more get 104, and twice as many are cut without a word."""
    stop_seconds: float = 5.0
    """For conversations to end by themselves when the server stops; then 103 or 203 ends them."""
    proxies: Networks = DEFAULT_PROXIES
    """Whose PROXY header is believed at ``haproxy:`` endpoints; others are cut there."""


class UnsService(Factory):
    """Built by the wiring; ``reactor`` is Twisted's, passed in."""

    noisy = False

    def __init__(
        self,
        reactor: Any,
        desk: ProviderDesk,
        doorstep: Doorstep,
        spool: SpoolFolder,
        *,
        doors: Doors = Doors(),
        limits: Limits = DEFAULT_LIMITS,
        means: Means = PLENTY,
        now: Callable[[], float] = time.time,
    ) -> None:
        self._reactor = reactor
        self._doors = doors
        self._conversations = Conversations(
            doors.connections_per_address, doors.connections_max, doors.connections_per_provider
        )
        self._office = Office(
            desk, doorstep, spool, self._conversations, limits, reactor, now, self._in_thread, means
        )
        self._gatehouse = Gatehouse(self._converse, self._house_rules, reactor)
        self._entrance = Entrance(reactor, "uns", self, self._gatehouse)
        self._open: set[UnsProtocol] = set()
        self._served: set[UnsProtocol] = set()
        self._all_gone: Deferred[None] | None = None

    def in_conversation(self, pid: int, seq: int) -> bool:
        """Tell whether a login at this UNS may still bring a set."""
        return self._conversations.is_open(pid, seq)

    def sending_before(self, pid: int, seq: int) -> bool:
        """Tell whether a login of a provider before ``seq`` is bringing a set to this UNS."""
        return self._conversations.sending_before(pid, seq)

    def logged_in(self) -> dict[tuple[int, int], bool]:
        """Return all logins at this UNS that may still bring a set, and whether they have begun to."""
        return self._conversations.logged_in()

    def start(self) -> Deferred[list[Any]]:
        """Listen; the result is the list of addresses. Fails with ``ConfigurationError``."""
        danger = (
            "would take passwords in plain text from other machines;"
            " use ssl:, or set LCC_UNS_ALLOW_PLAIN_REMOTE"
        )
        return self._entrance.open(self._doors.endpoints, "" if self._doors.allow_plain_remote else danger)

    @inlineCallbacks
    def stop(self) -> Any:
        """Stop listening, let conversations end, then end them; done within ``stop_seconds`` and 4 s."""
        yield self._entrance.close()
        for seconds, end in (
            (self._doors.stop_seconds, UnsProtocol.stop),
            (_LAST_WORDS_SECONDS, UnsProtocol.cut),
            (_LAST_WORDS_SECONDS, UnsProtocol.cut),
        ):
            yield self._wait_until_all_gone(seconds)
            for protocol in list(self._open):
                end(protocol)

    def apply(self, doors: Doors, limits: Limits) -> None:
        """Go on with other bounds, for connections from now on; endpoints stay as they are."""
        self._doors = replace(doors, endpoints=self._doors.endpoints)
        self._conversations.allow(
            doors.connections_per_address, doors.connections_max, doors.connections_per_provider
        )
        self._office.limits = limits

    def renew_certificates(self) -> Any:
        """Read the certificates again (see ``Entrance``)."""
        return self._entrance.renew_certificates()

    def buildProtocol(self, addr: IAddress | None) -> UnsProtocol | None:  # noqa: N802 - Twisted's name
        return self._converse(plain_address(getattr(addr, "host", None)))

    def _house_rules(self) -> HouseRules:
        doors, limits = self._doors, self._office.limits
        return HouseRules(doors.proxies, doors.connections_max, limits.login_seconds)

    def _converse(self, peer: str) -> UnsProtocol | None:
        if self._conversations.crowded(peer):
            return None
        protocol = UnsProtocol(self._office, peer, self)
        protocol.factory = self
        return protocol

    def entered(self, protocol: UnsProtocol) -> Refusal | None:
        """Count a connection (for ``UnsProtocol``)."""
        self._open.add(protocol)
        if self._conversations.arrive(protocol.peer):
            self._served.add(protocol)
            return None
        crowd = {"peer": protocol.peer, "all": len(self._conversations), "code": 104}
        line = "uns too many connections peer=%(peer)s in all=%(all)d"
        self._office.journal.note(logging.WARNING, line, crowd)
        return Refusal(104, "", self._office.limits.retry_after)

    def left(self, protocol: UnsProtocol) -> None:
        """Count a connection out (for ``UnsProtocol``)."""
        self._open.discard(protocol)
        self._conversations.leave(protocol.peer, served=protocol in self._served)
        self._served.discard(protocol)
        if not self._open and self._all_gone is not None:
            waiting, self._all_gone = self._all_gone, None
            waiting.callback(None)

    def _wait_until_all_gone(self, seconds: float) -> Deferred[None]:
        gone: Deferred[None] = Deferred()
        if not self._open:
            gone.callback(None)
            return gone
        self._all_gone = gone
        timer = self._reactor.callLater(seconds, self._stop_waiting)
        return gone.addBoth(lambda result: (timer.active() and timer.cancel(), result)[1])

    def _stop_waiting(self) -> None:
        waiting, self._all_gone = self._all_gone, None
        if waiting is not None:
            waiting.callback(None)

    def _in_thread(self, work: Callable[[], T]) -> Deferred[T]:
        return deferToThreadPool(self._reactor, self._reactor.getThreadPool(), self._watched, work)

    def _watched(self, work: Callable[[], T]) -> T:
        """Let nothing be answered any more once a disk has failed."""
        try:
            return work()
        except DiskFailed as error:
            self._office.means.notice(error)
            raise
