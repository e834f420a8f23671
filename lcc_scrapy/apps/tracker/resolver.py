"""Look-ups for whoever sent an HTTP request, by the policy as it is now."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from hashlib import sha256
from http import HTTPStatus

from fastapi import Request, Response

from lcc_scrapy.apps.tracker.answering import Answer, Answering
from lcc_scrapy.apps.tracker.comparison import COMPARED
from lcc_scrapy.apps.tracker.lookup import Replica
from lcc_scrapy.apps.tracker.rules.policy import Policy
from lcc_scrapy.apps.tracker.rules.questions import Question
from lcc_scrapy.db.tx import Store
from lcc_scrapy.domain.notations import Networks
from lcc_scrapy.listeners.peers import is_address
from lcc_scrapy.web.ranges import is_named
from lcc_scrapy.web.sharing import address_of

FRESH = 60
"""Seconds for which a client may keep an answer; it is for its network alone."""


@dataclass(frozen=True, slots=True)
class Resolver:
    """Answers requests; ``proxies`` are believed about whose request they bring. Blocking."""

    store: Store
    policy: Callable[[], Policy]
    limit: int
    proxies: Networks = ()

    def of_question(self, request: Request, question: Question) -> tuple[Answer, Replica | None]:
        """Look a URL up, and tell where to follow it; raises ``UrlRefused``, ``BadDomain``.

        What is followed is among the ``COMPARED`` best, however few the answer is to have.
        """
        whose, limit = client_of(request, self.proxies), self._limit(question)
        answer = self._answering().of_url(question.url, whose, question.tld, max(limit, COMPARED))
        replicas = answer.found.replicas
        cut = replace(answer, found=replace(answer.found, replicas=replicas[:limit]))
        return cut, to_follow(replicas)

    def of_urn(self, request: Request, urn: str, at_least: int = 0) -> tuple[Replica, ...]:
        """Look a name up, for so many replicas if the limit is less; raises ``BadUrn``."""
        whose = client_of(request, self.proxies)
        return self._answering().of_urn(urn, whose, max(self.limit, at_least))

    def _limit(self, question: Question) -> int:
        return self.limit if question.limit is None else question.limit

    def _answering(self) -> Answering:
        return Answering(self.store, self.policy(), self.limit)


def client_of(request: Request, proxies: Networks) -> str:
    """Return a client's address, "" for who has none: a Unix socket without a proxy."""
    found = address_of(request.scope, proxies)
    return found if is_address(found) else ""


def to_follow(replicas: tuple[Replica, ...]) -> Replica | None:
    """Return the replica to be redirected to: the best that is not for rsync, which follows no redirects."""
    return next((one for one in replicas if not one.url.startswith("rsync:")), None)


def cacheable(request: Request, answer: Response) -> Response:
    """Let a client keep an answer for a while; where it has the same page already, return 304.

    Redirects and refusals have no tag: it is that of a body, and these tell what they do elsewhere.
    """
    kept = {"Cache-Control": f"private, max-age={FRESH}", "Vary": "Accept"}
    answer.headers.update(kept)
    if answer.status_code != HTTPStatus.OK:
        return answer
    tag = f'"{sha256(answer.body).hexdigest()[:32]}"'
    kept["ETag"] = answer.headers["ETag"] = f"W/{tag}"
    if is_named(request.headers.get("if-none-match", ""), tag, weakly=True):
        return Response(status_code=HTTPStatus.NOT_MODIFIED, headers=kept)
    return answer
