"""``/resourcesync`` and ``/.well-known/resourcesync``: the documents over HTTP, for whoever has a token."""

from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import IO, Annotated, Any

from anyio import CapacityLimiter
from fastapi import APIRouter, Depends, Path, Request
from fastapi.responses import StreamingResponse

from lcc_scrapy.apps.resourcesync import documents, packages
from lcc_scrapy.apps.resourcesync.documents import MEDIA_TYPE, PACKAGE_TYPE, Site
from lcc_scrapy.apps.resourcesync.parts import (
    BITS_MAX,
    PART,
    ChangesPart,
    DocumentsPart,
    Keys,
    changes_parts,
    documents_parts,
)
from lcc_scrapy.apps.resourcesync.publications import Publications, Span
from lcc_scrapy.apps.resourcesync.store import StorePublications
from lcc_scrapy.config.config import Config
from lcc_scrapy.db.tx import Store
from lcc_scrapy.domain.selection import Selection
from lcc_scrapy.web.access import Reading, TheLcc
from lcc_scrapy.web.own_address import needed_address
from lcc_scrapy.web.parts import ApiRoutes
from lcc_scrapy.web.ports import Lcc
from lcc_scrapy.web.problems import NotThere, as_bytes, told
from lcc_scrapy.web.sharing import streaming
from lcc_scrapy.web.streams import Threads, Written, unless_broken

_SEQ_MAX = 2**63 - 1


class Xml(StreamingResponse):
    """A document, sent as it is written."""

    media_type = MEDIA_TYPE

    def __init__(self, written: Iterable[str], status_code: int = 200) -> None:
        super().__init__(unless_broken(written), status_code)


_PACKAGE: dict[int | str, dict[str, Any]] = {
    200: {"description": "Contents, and `manifest.xml`.", "content": as_bytes(PACKAGE_TYPE)}
}
_ANSWERS = {
    200: {"description": "A ResourceSync document.", "content": as_bytes(MEDIA_TYPE)},
    **told(404, 410),
}


def _selected(token: Reading) -> Selection:
    return token.narrowed(Selection())


Selected = Annotated[Selection, Depends(_selected)]
"""All that a token is for."""

Bits = Annotated[int, Path(ge=0, le=BITS_MAX)]
Number = Annotated[int, Path(ge=0)]
Seq = Annotated[int, Path(ge=0, le=_SEQ_MAX)]
Key = Annotated[str, Path(pattern="^[0-9a-f]{32}$", description="32 lower-case hex digits.")]


def _api_routes(config: Config, store: Store) -> Iterator[APIRouter]:
    yield make_router(StorePublications(store), config.web_url)


ROUTES: ApiRoutes = _api_routes


def make_router(publications: Publications, url: str) -> APIRouter:
    """Return the routes; ``url`` is how clients see this server, empty = as each request says."""
    routes = _Routes(publications, url)
    router = APIRouter(
        tags=["resourcesync"],
        default_response_class=Xml,
        responses=_ANSWERS,
        dependencies=[Depends(streaming)],
    )
    router.add_api_route("/.well-known/resourcesync", routes.source_description)
    for name, endpoint in (
        ("capabilitylist", routes.capability_list),
        ("resourcelist", routes.resource_list),
        ("resourcelist-{bits}-{number}", routes.resource_list_part),
        ("resourcedump", routes.resource_dump),
        ("resourcedump-{bits}-{number}", routes.resource_dump_part),
        ("resourcemanifest-{first}-{last}", routes.resource_dump_manifest),
        ("changelist", routes.change_list),
        ("changelist-{after}-{upto}", routes.change_list_part),
        ("changedump", routes.change_dump),
        ("changedump-{after}-{upto}", routes.change_dump_part),
        ("changemanifest-{after}-{upto}", routes.change_dump_manifest),
    ):
        router.add_api_route(f"/resourcesync/{name}.xml", endpoint)
    for name, package in (
        ("resourcedump-{first}-{last}", routes.resource_package),
        ("changedump-{after}-{upto}", routes.change_package),
    ):
        path = f"/resourcesync/{name}.zip"
        router.add_api_route(path, package, response_class=StreamingResponse, responses=_PACKAGE)
    return router


class _Routes:
    """They read the newest feed: a harvester's times hold for all replicas only if none of them lags."""

    def __init__(self, publications: Publications, url: str) -> None:
        self._publications = publications
        self._url = url

    def source_description(self, request: Request, _: Reading) -> Xml:
        """The source description: where to begin."""
        return Xml(documents.source_description(self._site(request)))

    def capability_list(self, request: Request, _: Reading) -> Xml:
        """The capability list."""
        return Xml(documents.capability_list(self._site(request)))

    def resource_list(self, request: Request, lcc: TheLcc, _: Reading) -> Xml:
        """The resource list, as an index of parts."""
        return self._documents_index(request, lcc, "resourcelist")

    def resource_list_part(
        self, *, request: Request, lcc: TheLcc, selection: Selected, bits: Bits, number: Number
    ) -> Xml:
        """A part of the resource list."""
        part = _documents_part(lcc, bits, number)
        pages = part.keys.pages(lcc.newest, selection)
        name = part.name("resourcelist")
        return Xml(documents.resource_list(self._site(request), int(lcc.now()), pages, name))

    def resource_dump(self, request: Request, lcc: TheLcc, _: Reading) -> Xml:
        """The resource dump, as an index of parts."""
        return self._documents_index(request, lcc, "resourcedump")

    def resource_dump_part(
        self, *, request: Request, lcc: TheLcc, selection: Selected, bits: Bits, number: Number
    ) -> Xml:
        """A part of the resource dump."""
        part, at = _documents_part(lcc, bits, number), self._span(lcc).last.at
        found = packages.of_documents(part.keys, part.keys.pages(lcc.newest, selection))
        return Xml(documents.resource_dump(self._site(request), at, found))

    def resource_dump_manifest(
        self, *, request: Request, lcc: TheLcc, selection: Selected, first: Key, last: Key
    ) -> Xml:
        """What is in a package of the resource dump, as long as none of it is replaced."""
        at, pages = self._span(lcc).last.at, _keys(lcc, first, last).pages(lcc.newest, selection)
        return Xml(documents.resource_dump_manifest(self._site(request), at, pages))

    def resource_package(
        self,
        *,
        request: Request,
        lcc: TheLcc,
        selection: Selected,
        threads: Threads,
        first: Key,
        last: Key,
    ) -> Written:
        """A package of the resource dump: contents in a ZIP file.

        An answer that breaks off, or has no `manifest.xml`, is not complete: ask again.
        """
        keys, at = _keys(lcc, first, last), self._span(lcc).last.at
        manifest = partial(documents.resource_dump_manifest, self._site(request), at)
        pages = keys.pages(lcc.newest, selection)
        write = partial(packages.write, manifest=manifest, pages=pages, opened=lcc.open)
        return _package(write, threads, keys.name("resourcedump"))

    def change_list(self, request: Request, lcc: TheLcc, selection: Selected) -> Xml:
        """The change list, or an index of its parts when it is long."""
        span, site = self._span(lcc), self._site(request)
        parts = changes_parts(span.first.seq, span.last.seq)
        if len(parts) == 1:
            return Xml(documents.change_list(site, span, parts[0].pages(lcc.newest, selection)))
        return Xml(_index(site, span, "changelist", parts))

    def change_list_part(
        self, *, request: Request, lcc: TheLcc, selection: Selected, after: Seq, upto: Seq
    ) -> Xml:
        """A part of the change list."""
        span, part = self._part(lcc, after, upto)
        pages = part.pages(lcc.newest, selection)
        return Xml(documents.change_list(self._site(request), span, pages, part.name("changelist")))

    def change_dump(self, request: Request, lcc: TheLcc, selection: Selected) -> Xml:
        """The change dump, or an index of its parts when it is long."""
        span, site = self._span(lcc), self._site(request)
        parts = changes_parts(span.first.seq, span.last.seq)
        if len(parts) == 1:
            found = packages.of_changes(parts[0], span, parts[0].pages(lcc.newest, selection))
            return Xml(documents.change_dump(site, span, found))
        return Xml(_index(site, span, "changedump", parts))

    def change_dump_part(
        self, *, request: Request, lcc: TheLcc, selection: Selected, after: Seq, upto: Seq
    ) -> Xml:
        """A part of the change dump."""
        span, part = self._part(lcc, after, upto)
        found = packages.of_changes(part, span, part.pages(lcc.newest, selection))
        return Xml(documents.change_dump(self._site(request), span, found, part.name("changedump")))

    def change_dump_manifest(
        self, *, request: Request, lcc: TheLcc, selection: Selected, after: Seq, upto: Seq
    ) -> Xml:
        """What is in a package of the change dump, as long as none of it is replaced."""
        span, part = self._part(lcc, after, upto)
        pages = part.pages(lcc.newest, selection)
        return Xml(documents.change_dump_manifest(self._site(request), span, part, pages))

    def change_package(
        self,
        *,
        request: Request,
        lcc: TheLcc,
        selection: Selected,
        threads: Threads,
        after: Seq,
        upto: Seq,
    ) -> Written:
        """A package of the change dump: contents in a ZIP file.

        An answer that breaks off, or has no `manifest.xml`, is not complete: ask again.
        """
        span, part = self._part(lcc, after, upto)
        manifest = partial(documents.change_dump_manifest, self._site(request), span, part)
        pages = part.pages(lcc.newest, selection)
        write = partial(packages.write, manifest=manifest, pages=pages, opened=lcc.open)
        return _package(write, threads, part.name("changedump"))

    def _documents_index(self, request: Request, lcc: Lcc, capability: str) -> Xml:
        at = {"at": self._span(lcc).last.at}
        parts: dict[str, dict[str, int]] = {part.name(capability): {} for part in documents_parts(lcc.newest)}
        return Xml(documents.index(self._site(request), capability, at, parts))

    def _part(self, lcc: Lcc, after: int, upto: int) -> tuple[Span, ChangesPart]:
        """Return what may be told now, and a part of it; raises ``NotThere``."""
        span = self._span(lcc)
        if not (span.first.seq <= after <= upto <= span.last.seq and upto - after <= PART):
            raise NotThere("there is no such part: read the list of them again")
        return span, ChangesPart(after, upto)

    def _site(self, request: Request) -> Site:
        return Site(needed_address(request, self._url, "LCC_WEB_URL"))

    def _span(self, lcc: Lcc) -> Span:
        """Publish what there is, and return what may be told of it."""
        known = self._publications.publish(lcc.newest.head(), int(lcc.now()))
        return Span.complete(known, lcc.newest.forgotten())


def _documents_part(lcc: Lcc, bits: int, number: int) -> DocumentsPart:
    """Return a part; raises ``NotThere`` when it is none, or much larger than those of the index."""
    part = DocumentsPart(bits, number)
    if number >> bits or not documents_parts(lcc.newest)[0].could_hold(part.keys):
        raise NotThere("there is no such part: read the index again")
    return part


def _keys(lcc: Lcc, first: str, last: str) -> Keys:
    """Return keys; raises ``NotThere`` when they are more than a package may hold."""
    keys = Keys(int(first, 16), int(last, 16))
    if not documents_parts(lcc.newest)[0].could_hold(keys):
        raise NotThere("there is no such package: read the list of them again")
    return keys


def _package(write: Callable[[IO[bytes]], None], threads: CapacityLimiter, name: str) -> Written:
    named = {"Content-Disposition": f'attachment; filename="{name}.zip"'}
    return Written(write, threads, media_type=PACKAGE_TYPE, headers=named)


def _index(site: Site, span: Span, capability: str, parts: Iterable[ChangesPart]) -> Iterator[str]:
    named = {part.name(capability): span.within(part.after, part.upto) for part in parts}
    return documents.index(site, capability, span.moments, named)
