"""The process that answers content users' queries. It needs Twisted, and its reactor."""

import time
from abc import abstractmethod
from collections.abc import Callable
from typing import Any

from scrapy.settings import BaseSettings
from twisted.internet.defer import Deferred, inlineCallbacks
from twisted.internet.threads import deferToThreadPool

from lcc_scrapy.app.opening import contents_of, other_machines, unchecked_reads
from lcc_scrapy.app.wiring import DESCRIPTORS
from lcc_scrapy.apps.query.answering import Answer, Everybody
from lcc_scrapy.apps.query.service import QueryService
from lcc_scrapy.apps.query.settings import QuerySettings
from lcc_scrapy.apps.query.sources import OneLcc, Source
from lcc_scrapy.apps.query.wire.messages import Query
from lcc_scrapy.cli.server_process import ServerProcess
from lcc_scrapy.config.config import Config
from lcc_scrapy.db.thread import DaemonPool
from lcc_scrapy.domain import tokens
from lcc_scrapy.domain.errors import Refusal, StoreUnavailable
from lcc_scrapy.feed.library import Library
from lcc_scrapy.feed.store_feed import StoreFeed
from lcc_scrapy.feed.tokens import StoreTokens
from lcc_scrapy.listeners.peers import LOCAL
from lcc_scrapy.machine.data_directory import DataDirectory
from lcc_scrapy.machine.resources import provide_descriptors


class QueryServer(ServerProcess):
    """What the query sockets of one LCC and of a front have in common."""

    last_words = 5.0
    without_database = "queries get 803"
    under_way = "answers"

    def __init__(
        self, config: Config, home: DataDirectory | None, reactor: Any, settings: BaseSettings
    ) -> None:
        super().__init__(config, home, reactor, settings)
        rules = config.of(QuerySettings)
        provide_descriptors(DESCRIPTORS + 3 * rules.listen.connections_max)
        self._pool = DaemonPool(minthreads=0, maxthreads=rules.threads, name="lcc-query")
        self._service = QueryService(
            reactor, self._answer, self._in_thread, listen_rules=rules.listen, limits=rules.limits
        )
        self._ready = False

    @abstractmethod
    def _source(self) -> Source:
        """Return what answers are made from."""

    @abstractmethod
    def _known_tokens(self) -> tokens.Tokens:
        """Return the tokens of content users."""

    @abstractmethod
    def _close(self) -> None:
        """Give connections back (in a thread)."""

    def apply(self, config: Config) -> None:
        """Go on with other settings; those that need a restart are as they were."""
        self.config = config
        rules = config.of(QuerySettings)
        self._service.apply(rules.listen, rules.limits)

    def renew_certificates(self) -> Deferred[int]:
        """Read the certificates again; the result is how many there are."""
        renewing: Deferred[int] = self._service.renew_certificates()
        return renewing

    def _answer(self, query: Query, peer: str) -> Answer:
        """Let somebody ask (in a thread); raises what it is refused with."""
        if not self._ready:
            raise StoreUnavailable("the database has not answered yet")
        if not query.token:
            if peer == LOCAL:
                return Answer(self._source(), query, Everybody())
            raise Refusal(801, "a query over TCP needs a token: `lcc token add` makes one")
        token = tokens.check(self._known_tokens(), query.token, tokens.READ, int(time.time()))
        return Answer(self._source(), query, token)

    def _in_thread(self, work: Callable[[], Any]) -> Deferred[Any]:
        return deferToThreadPool(self._reactor, self._pool, work)

    def _prepare(self) -> Any:
        self._pool.start()

    def _begin(self) -> Any:
        self._ready = True

    def _listen(self) -> Deferred[Any]:
        listening: Deferred[Any] = self._service.start()
        return listening

    @inlineCallbacks
    def _stop(self) -> Any:
        yield self._service.stop()
        yield self._in_thread(self._close)
        self._pool.stop()


class QueryProcess(QueryServer):
    """The query socket of one LCC: queries get 803 until the database answers."""

    def __init__(self, config: Config, home: DataDirectory, reactor: Any, settings: BaseSettings) -> None:
        super().__init__(config, home, reactor, settings)
        self._tokens = StoreTokens(self._store)
        self._others = other_machines(config, self._store)
        contents = contents_of(config, self._store, self._others)
        self._reads = unchecked_reads(config, self._store)
        feed = StoreFeed(self._reads, lags=self._reads is not self._store)
        self._lcc = OneLcc(Library(feed, contents))

    def _source(self) -> Source:
        return self._lcc

    def _known_tokens(self) -> tokens.Tokens:
        return self._tokens

    def _close(self) -> None:
        self._close_stores()
        if self._others is not None:
            self._others.close()
