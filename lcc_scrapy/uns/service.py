"""The Update Notification Server: listens, counts connections, and stops in an orderly way."""

import logging
import time
from abc import abstractmethod
from collections.abc import Callable
from typing import Any, TypeVar

from twisted.internet.defer import Deferred, inlineCallbacks
from twisted.internet.threads import deferToThreadPool

from lcc_scrapy.domain.errors import DiskFailed, Refusal
from lcc_scrapy.domain.listen_rules import UnsListenRules
from lcc_scrapy.domain.uns_limits import DEFAULT_LIMITS, Limits
from lcc_scrapy.listeners.conversation import LAST_WORDS_SECONDS, ConversationService
from lcc_scrapy.uns.conversations import Conversations
from lcc_scrapy.uns.dialect import Dialect
from lcc_scrapy.uns.ports import UNLIMITED, AcceptedSets, LoginService, Resources
from lcc_scrapy.uns.protocol import ProviderProtocol, UnsProtocol
from lcc_scrapy.uns.set_receiver import Context, Shared
from lcc_scrapy.uns.spool import SpoolFolder
from lcc_scrapy.wire.messages import Init

log = logging.getLogger(__name__)

_DANGER = (
    "would take passwords in plain text from other machines; use ssl:, or set LCC_UNS_ALLOW_PLAIN_REMOTE"
)

T = TypeVar("T")


P = TypeVar("P", bound=ProviderProtocol)


class ProviderService(ConversationService[P, UnsListenRules]):
    """Listens for providers, counts their connections, and stops in an orderly way."""

    def __init__(self, reactor: Any, listen_rules: UnsListenRules, context: Context) -> None:
        super().__init__(reactor, "uns", listen_rules, lambda: context.limits.login_seconds, _DANGER)
        self._context = context
        self._served: set[P] = set()
        self._stopping = False

    @property
    def limits(self) -> Limits:
        """The bounds of conversations that begin now."""
        return self._context.limits

    @property
    def conversations(self) -> Conversations:
        """The open conversations."""
        return self._context.conversations

    @inlineCallbacks
    def stop(self) -> Any:
        """Stop listening, let conversations end, then end them; done within ``stop_seconds`` and 4 s."""
        self._stopping = True
        yield self._listeners.close()
        for seconds, end in (
            (self._listen_rules.stop_seconds, ProviderProtocol.stop),
            (LAST_WORDS_SECONDS, ProviderProtocol.cut),
            (LAST_WORDS_SECONDS, ProviderProtocol.cut),
        ):
            yield self._wait_until_all_gone(seconds)
            for protocol in list(self._open):
                end(protocol)

    def apply(self, listen_rules: UnsListenRules, limits: Limits) -> None:
        """Go on with other bounds, for connections from now on; endpoints stay as they are."""
        self._go_by(listen_rules)
        self.conversations.allow(
            listen_rules.connections_per_address,
            listen_rules.connections_max,
            listen_rules.connections_per_provider,
        )
        self._context.limits = limits

    def _converse(self, peer: str) -> P | None:
        if self.conversations.crowded(peer):
            return None
        protocol = self._make(peer)
        protocol.factory = self
        return protocol

    @abstractmethod
    def _make(self, peer: str) -> P:
        """Make a conversation."""

    def entered(self, conversation: P) -> Refusal | None:
        """Count a connection (for ``ProviderProtocol``)."""
        self._open.add(conversation)
        if self.conversations.arrive(conversation.peer):
            self._served.add(conversation)
            return None
        crowd = {"peer": conversation.peer, "all": len(self.conversations), "code": 104}
        line = "uns too many connections peer=%(peer)s in all=%(all)d"
        self._context.journal.note(logging.WARNING, line, crowd)
        return Refusal(104, "", self._context.limits.retry_after)

    def left(self, conversation: P) -> None:
        """Count a connection out (for ``ProviderProtocol``)."""
        self.conversations.leave(conversation.peer, served=conversation in self._served)
        self._served.discard(conversation)
        super().left(conversation)


def conversations_of(rules: UnsListenRules) -> Conversations:
    """Return the counters of a server with these bounds."""
    return Conversations(rules.connections_per_address, rules.connections_max, rules.connections_per_provider)


class UnsService(ProviderService[UnsProtocol]):
    """Built by the wiring; ``reactor`` is Twisted's, passed in. Without a login service, nobody is let in."""

    def __init__(
        self,
        reactor: Any,
        login_service: LoginService | None,
        accepted_sets: AcceptedSets,
        spool: SpoolFolder,
        *,
        listen_rules: UnsListenRules,
        limits: Limits = DEFAULT_LIMITS,
        resources: Resources = UNLIMITED,
        now: Callable[[], float] = time.time,
    ) -> None:
        self._shared = Shared(
            login_service=login_service,
            accepted_sets=accepted_sets,
            spool=spool,
            conversations=conversations_of(listen_rules),
            limits=limits,
            clock=reactor,
            now=now,
            in_thread=self._in_thread,
            resources=resources,
        )
        super().__init__(reactor, listen_rules, self._shared)

    def let_in(self, login_service: LoginService) -> None:
        """Ask this login service from now on."""
        self._shared.login_service = login_service

    def _make(self, peer: str) -> UnsProtocol:
        return UnsProtocol(self._shared, peer, self)

    def converse(self, peer: str, dialect: Dialect, init: Init | None) -> UnsProtocol | None:
        """Make a conversation for a connection that others accepted (see ``ProviderProtocol``).

        None where there are too many to refuse one more, or when the server stops.
        """
        if self._stopping or self.conversations.crowded(peer):
            return None
        return UnsProtocol(self._shared, peer, self, dialect, init)

    def _in_thread(self, work: Callable[[], T]) -> Deferred[T]:
        return deferToThreadPool(self._reactor, self._reactor.getThreadPool(), self._watched, work)

    def _watched(self, work: Callable[[], T]) -> T:
        """Let nothing be answered any more once a disk has failed."""
        try:
            return work()
        except DiskFailed as error:
            self._shared.resources.notice(error)
            raise
