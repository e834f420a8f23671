"""Documents of ResourceSync as a harvester reads them, for tests."""

import xml.etree.ElementTree as ET
from datetime import UTC, datetime

NAMES = {"s": "http://www.sitemaps.org/schemas/sitemap/0.9", "rs": "http://www.openarchives.org/rs/terms/"}


class Harvested:
    """A document: its own facts and links, and those of its entries."""

    def __init__(self, xml):
        self.root = ET.fromstring(xml)
        self.facts = self.root.find("rs:md", NAMES).attrib
        self.links = {one.get("rel"): one.get("href") for one in self.root.findall("rs:ln", NAMES)}
        self.entries = [*self.root.findall("s:url", NAMES), *self.root.findall("s:sitemap", NAMES)]

    @classmethod
    def of_answer(cls, answer):
        assert answer.status_code == 200, answer.text
        assert answer.headers["content-type"].startswith("application/xml")
        return cls(answer.content)

    @property
    def locs(self):
        return [one.find("s:loc", NAMES).text for one in self.entries]

    def of(self, number):
        return dict(self.entries[number].find("rs:md", NAMES).attrib)

    def link(self, number):
        found = self.entries[number].find("rs:ln", NAMES)
        return found.get("rel"), found.get("href")


def w3c(at):
    return datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
