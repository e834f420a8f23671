"""The service as ``lcc web`` has it, out of the settings."""

from collections.abc import Iterator, Sequence

from fastapi import APIRouter

from lcc_scrapy.apps.indexnow.keys import Keys
from lcc_scrapy.apps.indexnow.queueing import Queueing
from lcc_scrapy.apps.indexnow.routes import make_router
from lcc_scrapy.apps.indexnow.rules import OFF
from lcc_scrapy.apps.indexnow.service import IndexNow
from lcc_scrapy.apps.indexnow.settings import IndexNowRules
from lcc_scrapy.config.config import Config
from lcc_scrapy.db.tx import Store
from lcc_scrapy.domain.providers import Provider
from lcc_scrapy.login.passwords import hash_made_up, made_up
from lcc_scrapy.machine.wake_redis import waker
from lcc_scrapy.web.parts import Public, PublicRoutes

NAME_MAX = 255


def make_indexnow(config: Config, store: Store) -> IndexNow | None:
    """Return the service, None where LCC_INDEXNOW is off."""
    rules = config.of(IndexNowRules)
    if rules.mode == OFF:
        return None

    def made(pid: int, root: str) -> Provider:
        """Return a provider with the defaults of `lcc provider add`, which nobody can log in as."""
        secret = hash_made_up(made_up())
        return Provider(pid, secret, name=f"IndexNow {root}"[:NAME_MAX], fullsetsallowed=config.fullsets)

    wake = waker(config.data_dir, config.wake_redis)
    queueing = Queueing(store, config.policy, config.queue_max, wake)
    return IndexNow(Keys(store, rules, made), queueing, rules)


class _Routes:
    def settings(self, config: Config) -> Sequence[str]:
        return ("LCC_INDEXNOW",) if config.of(IndexNowRules).mode != OFF else ()

    def routes(self, public: Public) -> Iterator[APIRouter]:
        service = make_indexnow(public.config, public.store)
        if service is not None:
            yield make_router(service)


ROUTES: PublicRoutes = _Routes()
