"""What serves registration, as the settings say."""

from fastapi import APIRouter

from lcc_scrapy.config.config import Config
from lcc_scrapy.db.tx import Store
from lcc_scrapy.domain.registration import OFF
from lcc_scrapy.mail.sending import smtp_mailer
from lcc_scrapy.registration.hints import Places
from lcc_scrapy.registration.routes import make_router
from lcc_scrapy.registration.service import Registering, Registrations
from lcc_scrapy.registration.steps import Steps


def registration_routes(config: Config, store: Store) -> list[APIRouter]:
    """Return the routes of registration; none where it is off."""
    rules = config.registration
    if rules.mode == OFF:
        return []
    registrations = Registrations(store, rules, fullsets=config.fullsets)
    return [routes_of(config, registrations, Places(config.public_url, rules.uns))]


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
