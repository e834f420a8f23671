"""What serves registration, as the settings say."""

from fastapi import APIRouter

from lcc_scrapy.config.config import Config
from lcc_scrapy.db.tx import Store
from lcc_scrapy.domain.registration import OFF
from lcc_scrapy.registration.routes import make_router
from lcc_scrapy.registration.service import Registrations
from lcc_scrapy.registration.steps import Mailer, Steps

UNSERVED = "LCC_REGISTRATION is on, and no endpoint serves it: set LCC_PUSH_ENDPOINTS"
"""What is said where the settings have registration, and nowhere to register."""


def registration_routes(config: Config, store: Store, mailer: Mailer | None = None) -> list[APIRouter]:
    """Return the routes of registration; none where it is off. ``mailer`` is None where mail is off."""
    rules = config.registration
    if rules.mode == OFF:
        return []
    registrations = Registrations(store, rules, fullsets=config.fullsets)
    steps = Steps(registrations, slots=config.timeofday_slots, mailer=mailer)
    return [make_router(steps, config.web.proxies)]


def unserved(config: Config, *, is_served: bool) -> str:
    """Return the line with which ``lcc web`` warns that nobody can register; empty = all is well."""
    return UNSERVED if config.registration.mode != OFF and not is_served else ""
