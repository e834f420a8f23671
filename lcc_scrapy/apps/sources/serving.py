"""Where hubs reach this LCC, as the settings say."""

from collections.abc import Iterator, Sequence

from fastapi import APIRouter

from lcc_scrapy.apps.sources.opening import callback_service
from lcc_scrapy.apps.sources.routes import make_router
from lcc_scrapy.config.config import Config
from lcc_scrapy.web.parts import Public, PublicRoutes


class _Routes:
    def settings(self, _config: Config) -> Sequence[str]:
        return ()

    def routes(self, public: Public) -> Iterator[APIRouter]:
        if public.config.public_url:
            yield make_router(callback_service(public.config, public.store, public.config.agent))


ROUTES: PublicRoutes = _Routes()
