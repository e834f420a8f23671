"""The route of pushes as ``lcc web`` has it."""

from collections.abc import Iterator, Sequence

from lcc_scrapy.config.config import Config
from lcc_scrapy.web.parts import Public, PublicRoutes
from lcc_scrapy.web.public import Unbounded


class _Routes:
    def settings(self, _config: Config) -> Sequence[str]:
        return ()

    def routes(self, public: Public) -> Iterator[Unbounded]:
        from lcc_scrapy.apps.push_http.push_route import PushRoute  # noqa: PLC0415 - it needs Twisted

        yield Unbounded("/v1/push", PushRoute(public.uns, public.config.web.proxies))


ROUTES: PublicRoutes = _Routes()
