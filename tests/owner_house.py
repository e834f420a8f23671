"""An HTTP API with the routes and pages of owners, on a store in memory."""

from lcc_scrapy.annotation import aci_routes, recipient_routes
from lcc_scrapy.annotation.owner_pages import make_pages
from lcc_scrapy.annotation.recipients import Recipients
from lcc_scrapy.domain.tokens import ANNOTATE
from lcc_scrapy.web.app import make_app
from tests.web_house import WebHouse


class OwnerHouse(WebHouse):
    def __init__(self, web_url="", most=3, private=False, **bounds):
        super().__init__(**bounds)
        recipients = Recipients(self.store, most, private)
        self.app = make_app(
            self.lcc,
            [
                aci_routes.make_router(self.store, web_url),
                recipient_routes.make_router(recipients),
                make_pages(self.store, recipients, web_url),
            ],
        )
        self.shelf.find = lambda url: [row for row in self.shelf.told if row.curl == url]
        self.shelf.owners = lambda row: []

    def owner(self, name="alice"):
        return self.token(name, ANNOTATE)

    def found(self, *acis):
        with self.store.begin() as tx:
            tx.put_acis(acis)
            tx.take("aci", max(0, max(one.number for one in acis) - tx.peek("aci")))
