"""What alerts need, made of the settings."""

from functools import partial

from lcc_scrapy.annotation.couriers import Courier, HookCourier, MailCourier
from lcc_scrapy.annotation.delivery import Delivery, Terms
from lcc_scrapy.annotation.recipients import SUBSCRIBERS
from lcc_scrapy.annotation.webhooks import Webhooks
from lcc_scrapy.config.config import Config
from lcc_scrapy.db.tx import Store
from lcc_scrapy.domain.acis import Channel
from lcc_scrapy.domain.alerts import Schedule
from lcc_scrapy.domain.mail_addresses import sender
from lcc_scrapy.http.outgoing import Outgoing, tls_context
from lcc_scrapy.mail.sending import smtp_mailer
from lcc_scrapy.mail.unsubscribing import Unsubscribing

PAGES = "/my/alerts"
"""Where ``lcc web`` shows an owner's alerts."""


def schedule_of(config: Config) -> Schedule:
    """Return when alerts are due."""
    return Schedule(config.alerts.digest, config.alerts.deadlines, config.timezone)


def delivery_of(config: Config, store: Store, lcc_id: str) -> Delivery:
    """Return what tells recipients; to be made and closed in a running event loop."""
    rules = config.alerts
    terms = Terms(
        lcc_id,
        rules.retry,
        rules.kept,
        config.poll,
        pages=f"{config.web_url}{PAGES}" if config.web_url else "",
        operator=config.contact,
        ending=partial(Unsubscribing(store, config.public_url).link, SUBSCRIBERS),
    )
    return Delivery(store, couriers_of(config), terms)


def couriers_of(config: Config) -> dict[Channel, Courier]:
    """Return how messages reach recipients; without LCC_MAIL_FROM there is no mail."""
    rules, mailer = config.alerts, smtp_mailer(config.mail)
    hooks = Webhooks(Outgoing(rules.at_a_time + 1, tls_context()), config.agent)
    found: dict[Channel, Courier] = {
        Channel.WEBHOOK: HookCourier(hooks, rules.at_a_time, rules.timeout, rules.private)
    }
    if mailer is not None:
        domain = sender(config.mail.sender)[1].rpartition("@")[2]
        found[Channel.MAIL] = MailCourier(mailer, domain, config.mail.timeout)
    return found
