"""The query socket: listens, counts connections, and stops in an orderly way."""

import logging
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from twisted.internet.defer import Deferred, inlineCallbacks

from lcc_scrapy.apps.query.answering import Answer
from lcc_scrapy.apps.query.protocol import QueryProtocol, Shared
from lcc_scrapy.apps.query.settings import DEFAULT_LIMITS, Limits, QueryListenRules
from lcc_scrapy.apps.query.wire.messages import Query
from lcc_scrapy.domain.errors import Refusal
from lcc_scrapy.listeners.conversation import (
    LAST_WORDS_SECONDS,
    ConversationService,
)
from lcc_scrapy.listeners.peers import LOCAL, neighbourhood

log = logging.getLogger(__name__)

_DANGER = (
    "would take tokens and give documents in plain text over the network;"
    " use ssl:, or set LCC_QUERY_ALLOW_PLAIN_REMOTE"
)
UNNAMED = "unnamed"
"""The peer of whom a proxy at a Unix socket does not say who it is."""


class QueryService(ConversationService[QueryProtocol, QueryListenRules]):
    """``answer`` makes an answer to a query of a peer; ``in_thread`` runs what blocks."""

    def __init__(
        self,
        reactor: Any,
        answer: Callable[[Query, str], Answer],
        in_thread: Callable[[Callable[[], Any]], Deferred[Any]],
        *,
        listen_rules: QueryListenRules,
        limits: Limits = DEFAULT_LIMITS,
    ) -> None:
        super().__init__(reactor, "query", listen_rules, lambda: self._shared.limits.query_seconds, _DANGER)
        self._shared = Shared(answer, in_thread, reactor, limits)
        self._places: Counter[str] = Counter()

    @inlineCallbacks
    def stop(self) -> Any:
        """Stop listening, let answers end, then cut them; done within ``stop_seconds`` and 2 s."""
        yield self._listeners.close()
        for protocol in list(self._open):
            protocol.stop()
        yield self._wait_until_all_gone(self._listen_rules.stop_seconds)
        for protocol in list(self._open):
            protocol.cut()
        yield self._wait_until_all_gone(LAST_WORDS_SECONDS)

    def apply(self, listen_rules: QueryListenRules, limits: Limits) -> None:
        """Go on with other bounds, for connections from now on; endpoints stay as they are."""
        self._go_by(listen_rules)
        self._shared = replace(self._shared, limits=limits)

    def _endpoints(self) -> Sequence[str]:
        return [_for_few(endpoint) for endpoint in self._listen_rules.endpoints]

    def _converse(self, peer: str) -> QueryProtocol | None:
        if len(self._open) >= 2 * self._listen_rules.connections_max:
            return None
        protocol = QueryProtocol(self._shared, peer, self)
        protocol.factory = self
        return protocol

    def _converse_by_proxy(self, peer: str) -> QueryProtocol | None:
        """Begin a conversation with one who is not local, whether the proxy said who it is or not."""
        return self._converse(UNNAMED if peer == LOCAL else peer)

    def entered(self, conversation: QueryProtocol) -> Refusal | None:
        """Count a connection (for ``QueryProtocol``)."""
        self._open.add(conversation)
        place = neighbourhood(conversation.peer)
        self._places[place] += 1
        too_near = (
            conversation.peer != LOCAL and self._places[place] > self._listen_rules.connections_per_address
        )
        if not too_near and len(self._open) <= self._listen_rules.connections_max:
            return None
        log.warning("query too many connections peer=%s in all=%d", conversation.peer, len(self._open))
        return Refusal(804, "", self._shared.limits.retry_after)

    def left(self, conversation: QueryProtocol) -> None:
        """Count a connection out (for ``QueryProtocol``)."""
        self._places[neighbourhood(conversation.peer)] -= 1
        self._places += Counter()
        super().left(conversation)


def _for_few(endpoint: str) -> str:
    """Let only the owner and its group open a Unix socket, unless it says who may; Twisted lets everybody."""
    is_unix = endpoint.removeprefix("haproxy:").startswith("unix:")
    return f"{endpoint}:mode=660" if is_unix and ":mode=" not in endpoint else endpoint
