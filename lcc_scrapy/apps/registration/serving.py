"""What serves registration, as the settings say."""

from collections.abc import Iterator, Sequence

from fastapi import APIRouter

from lcc_scrapy.apps.registration.hints import Places
from lcc_scrapy.apps.registration.routes import make_router
from lcc_scrapy.apps.registration.rules import OFF
from lcc_scrapy.apps.registration.service import Registering, Registrations
from lcc_scrapy.apps.registration.settings import RegistrationRules
from lcc_scrapy.apps.registration.steps import Steps
from lcc_scrapy.config.config import Config
from lcc_scrapy.mail.sending import smtp_mailer
from lcc_scrapy.web.parts import Public, PublicRoutes


class _Routes:
    def settings(self, config: Config) -> Sequence[str]:
        return ("LCC_REGISTRATION",) if config.of(RegistrationRules).mode != OFF else ()

    def routes(self, public: Public) -> Iterator[APIRouter]:
        config = public.config
        rules = config.of(RegistrationRules)
        if rules.mode != OFF:
            registrations = Registrations(public.store, rules, fullsets=config.fullsets)
            yield routes_of(config, registrations, Places(config.public_url, rules.uns))


def routes_of(config: Config, registrations: Registering, places: Places) -> APIRouter:
    """Return the routes for registrations; ``places`` are where new providers push."""
    steps = Steps(
        registrations,
        slots=config.timeofday_slots,
        places=places,
        mailer=smtp_mailer(config.mail),
        checks=config.login.checks,
    )
    return make_router(steps, config.web.proxies)


ROUTES: PublicRoutes = _Routes()
