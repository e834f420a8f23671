"""The front-end UNS: takes connections as a UNS does, and passes each on when it knows whose it is."""

from typing import Any

from twisted.internet.defer import Deferred
from twisted.internet.threads import deferToThreadPool

from lcc_scrapy.domain.front import SubLcc
from lcc_scrapy.domain.listen_rules import UnsListenRules
from lcc_scrapy.domain.uns_limits import Limits
from lcc_scrapy.front.directory import Directory
from lcc_scrapy.front.relay import FrontProtocol, Routes
from lcc_scrapy.uns.service import ProviderService, conversations_of
from lcc_scrapy.uns.set_receiver import Context

_PID_DIGITS = 18


class FrontService(ProviderService[FrontProtocol]):
    """Listens at LCC_UNS_ENDPOINTS; ``reactor`` is Twisted's, whose thread pool asks the ``directory``."""

    def __init__(
        self, reactor: Any, directory: Directory, *, listen_rules: UnsListenRules, limits: Limits
    ) -> None:
        self._directory = directory
        self._routes = Routes(reactor, self._sub_of)
        context = Context(conversations=conversations_of(listen_rules), limits=limits, clock=reactor)
        super().__init__(reactor, listen_rules, context)

    def _make(self, peer: str) -> FrontProtocol:
        return FrontProtocol(self._context, peer, self, self._routes)

    def _sub_of(self, provider_id: str) -> Deferred[SubLcc | None]:
        usable = provider_id.isdecimal() and provider_id.isascii() and len(provider_id) <= _PID_DIGITS
        pid = int(provider_id) if usable else None
        return deferToThreadPool(self._reactor, self._reactor.getThreadPool(), self._directory.route, pid)
