"""``GET /?url=``: where exact replicas are, as page, JSON or Metalink; ``/redirect``."""

import json
from dataclasses import asdict

from fastapi import APIRouter, Request, Response
from fastapi.responses import RedirectResponse

from lcc_scrapy.apps.tracker import lookup_pages
from lcc_scrapy.apps.tracker.answering import Answer
from lcc_scrapy.apps.tracker.lookup import Found, Replica
from lcc_scrapy.apps.tracker.metalink import metalink
from lcc_scrapy.apps.tracker.resolver import Resolver, cacheable
from lcc_scrapy.apps.tracker.rules.mirror_links import digest_header, link_header
from lcc_scrapy.apps.tracker.rules.questions import TYPES, BadQuestion, Question, preferred
from lcc_scrapy.apps.tracker.rules.tracked import BadDomain, Place
from lcc_scrapy.domain.errors import LccError, UrlRefused
from lcc_scrapy.web.own_address import own_address
from lcc_scrapy.web.problems import problem

READING = ["GET", "HEAD"]

_REFUSED = (BadQuestion, UrlRefused, BadDomain)
_FORMATS = {media_type: name for name, media_type in TYPES.items()}


def make_router(resolver: Resolver, public_url: str = "") -> APIRouter:
    """Return the routes; ``public_url`` is where clients find them, "" = as each request says."""
    router = APIRouter()
    routes = _Routes(resolver, public_url)
    router.add_api_route("/", routes.find, methods=READING, response_class=Response)
    router.add_api_route("/redirect", routes.redirect, methods=READING, response_class=Response)
    return router


class _Routes:
    def __init__(self, resolver: Resolver, public_url: str) -> None:
        self._resolver = resolver
        self._public_url = public_url

    def find(self, request: Request) -> Response:
        """Answer as it is asked for: a redirect only where the policy has it and no format was named."""
        return self._answer(request, always=False)

    def redirect(self, request: Request) -> Response:
        """Redirect to the best mirror, whatever the policy has."""
        return self._answer(request, always=True)

    def _answer(self, request: Request, *, always: bool) -> Response:
        question = Question()
        wanted = _FORMATS[preferred(request.headers.get("accept", ""), tuple(_FORMATS))]
        try:
            question = Question.parse(request.scope["query_string"])
            wanted = question.format or wanted
            if not question.url:
                return cacheable(request, lookup_pages.form_page(self._base(request), question))
            answer, best = self._resolver.of_question(request, question)
            redirects = answer.rules.answer == "redirect" and not question.format and wanted == "html"
            moved = _moved(question, answer, best) if always or redirects else None
            return cacheable(request, moved or self._listed(request, question, answer.found, wanted))
        except _REFUSED as error:
            return self._refused(request, question, error, wanted)

    def _listed(self, request: Request, question: Question, found: Found, wanted: str) -> Response:
        if wanted == "html":
            made: Response = lookup_pages.found_page(self._base(request), question, found)
        elif wanted == "json":
            made = _as_json(question, found)
        else:
            made = _as_metalink(question, found)
        _add_links(made, question, found, anchor=str(Place.parse(question.url)))
        return made

    def _refused(self, request: Request, question: Question, error: LccError, wanted: str) -> Response:
        if wanted == "html":
            return lookup_pages.form_page(self._base(request), question, str(error))
        return problem(422, str(error), "bad-question")

    def _base(self, request: Request) -> str:
        return own_address(request, self._public_url)


def _moved(question: Question, answer: Answer, best: Replica | None) -> Response | None:
    """Return a redirect to the best mirror, None where there is none."""
    if best is None:
        return None
    made = RedirectResponse(best.url, 302)
    _add_links(made, question, answer.found)
    digest = digest_header(bytes.fromhex(answer.found.digest))
    if digest:
        made.headers["Digest"] = digest
    return made


def _as_json(question: Question, found: Found) -> Response:
    facts = asdict(found)
    del facts["steps"]
    body = json.dumps({"url": question.url, **facts})
    return Response(body, 200 if found.replicas else 404, media_type=TYPES["json"])


def _as_metalink(question: Question, found: Found) -> Response:
    if found.is_directory or not found.replicas:
        why = "a Metalink is of one file that has mirrors" if found.known else "no server lists this URL"
        return problem(404, why, "no-replicas")
    return Response(metalink(Place.parse(question.url), found), media_type=TYPES["meta4"])


def _add_links(answer: Response, question: Question, found: Found, anchor: str = "") -> None:
    """Name the mirrors in a header; ``anchor`` is what they are mirrors of, "" = of the answer itself."""
    if not found.replicas:
        return
    described = f'<./?{question}&format=meta4>; rel=describedby; type="{TYPES["meta4"]}"'
    more = [] if found.is_directory else [described]
    mirrors = [(one.url, one.domain) for one in found.replicas]
    links = link_header(mirrors, more, anchor)
    if links:
        answer.headers["Link"] = links
