"""A site of real pages, two owners with three profiles, and what each of them is to be told of it.

What is expected comes from ``tests.naive_annotation``, which shares no automaton with the engine. What arrived
is read where owners read it: in mails, in signed calls of webhooks, and in Atom feeds.
"""

import json
import re
import shutil
import urllib.request
from collections import Counter
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from xml.etree import ElementTree as ET

from standardwebhooks.webhooks import Webhook

from lcc_scrapy.annotation.page_text import text_of
from tests.naive_annotation import NaiveText

PAGES = 300
OWNERS = ("anna", "bert")
PHRASE = "hash join"
WATCHED = "sql-vacuum.html"
ATOM = "{http://www.w3.org/2005/Atom}"
NEWS = {
    "anna": "Since today a hash join is explained here in one more sentence.",
    "bert": "Since today vacuum says more of dead tuples than before.",
    "both": "Since today vacuum removes dead tuples while a hash join runs.",
    "nobody": "Since today the weather is mentioned here.",
}
"""Sentences that a site adds to its pages, by whom they concern."""

Told = tuple[str, str]
"""Owner, and URL of a page."""


def copy_site(source: Path, site: Path, pages: int = PAGES) -> list[str]:
    """Copy pages of a documentation, the watched one among them; returns their names."""
    found = sorted(path.name for path in source.glob("*.html"))
    step = max(len(found) // pages, 1)
    names = sorted({WATCHED, *found[::step][: pages - 1]})
    names += [name for name in found if name not in names][: pages - len(names)]
    site.mkdir(parents=True)
    for name in names:
        shutil.copyfile(source / name, site / name)
    return sorted(names)


def profiles(root: str) -> list[list[str]]:
    """Return the profiles, each as the words behind ``lcc urd add``."""
    return [
        ["anna", root, "--keyword", PHRASE, "--urgency", "2"],
        ["anna", root + WATCHED, "--process", "change", "--urgency", "2"],
        ["bert", "*", "--rule", 'all(vacuum, "dead tuples")', "--urgency", "1"],
    ]


@dataclass
class Story:
    """What is due: how often each owner is to be told of each page, once for each version that matters."""

    site: Path
    root: str
    due: Counter[Told] = field(default_factory=Counter)
    changed: dict[str, set[str]] = field(default_factory=dict)

    def begins(self) -> None:
        """Count every page as new."""
        for path in sorted(self.site.glob("*.html")):
            self._count(path, is_new=True)

    def change(self, name: str, whom: str, number: int = 0) -> None:
        """Add a sentence to a page, and count who is to be told of it."""
        path = self.site / name
        text = path.read_text(encoding="utf-8")
        added = f"<p>{NEWS[whom]} This is change {number}.</p></body>"
        changed = re.sub("</body>", added, text, count=1, flags=re.IGNORECASE)
        assert changed != text, f"{name} has no end"
        path.write_text(changed, encoding="utf-8")
        self.changed[name] = self._count(path, is_new=False)

    def _count(self, path: Path, *, is_new: bool) -> set[str]:
        owners = self.concerned(path, is_new=is_new)
        self.due.update((owner, self.root + path.name) for owner in owners)
        return owners

    @staticmethod
    def concerned(path: Path, *, is_new: bool) -> set[str]:
        """Return whom a version of a page concerns."""
        page = text_of(path.read_bytes(), "text/html", "utf-8")
        assert page is not None
        naive = NaiveText(page.title, page.paragraphs)
        anna = naive.where(PHRASE) or (path.name == WATCHED and not is_new)
        bert = naive.where("vacuum") and naive.where("dead tuples")
        return {owner for owner, is_it in (("anna", anna), ("bert", bert)) if is_it}

    def plain(self, count: int) -> list[str]:
        """Return pages that concern nobody so far, the watched one not among them."""
        paths = (path for path in sorted(self.site.glob("*.html")) if path.name != WATCHED)
        return [path.name for path in paths if not self.concerned(path, is_new=True)][:count]


def mailed(mails, owner):
    """Return the mails of an owner: which page each is about, with its Message-ID."""
    found = []
    for one in list(mails.to(f"{owner}@example.org")):
        part = one.message.get_body(("plain",))
        found.append((one.message["Message-ID"], part.get_content().splitlines()[1]))
    return found


def called(hooks, owner, secret):
    """Return the calls of an owner's webhook, each verified: which page it is about, with its id."""
    found = []
    for _, headers, body in list(hooks.at(f"/{owner}")):
        at = datetime.fromtimestamp(int(headers["webhook-timestamp"]), UTC)
        # not verify(), which refuses what came minutes ago
        signature = Webhook(secret).sign(headers["webhook-id"], at, body.decode())
        assert signature in headers["webhook-signature"].split()
        said = json.loads(body)
        assert said["data"]["owner"] == owner
        (aci,) = said["data"]["acis"]
        found.append((headers["webhook-id"], aci["uri"]))
    return found


def fed(port, token):
    """Return the entries of an owner's Atom feed, of all of its pages: which page each is about, with its id."""
    address, found = f"http://127.0.0.1:{port}/v1/acis/atom", []
    while address:
        asked = urllib.request.Request(address, headers={"Authorization": f"Bearer {token}"})
        with urllib.request.urlopen(asked, timeout=60) as answer:
            feed = ET.fromstring(answer.read())
        links = {link.get("rel"): link.get("href") for link in feed.iter(f"{ATOM}link")}
        for entry in feed.iter(f"{ATOM}entry"):
            found.append((entry.findtext(f"{ATOM}id"), entry.find(f"{ATOM}link").get("href")))
        address = links.get("next")
    return found


def asked(port, token, wait=0, after=0):
    """Return ACIs of an owner as JSON, and the number behind which to go on."""
    address = f"http://127.0.0.1:{port}/v1/acis?after={after}&wait={wait}"
    request = urllib.request.Request(address, headers={"Authorization": f"Bearer {token}"})
    with urllib.request.urlopen(request, timeout=120) as answer:
        said = json.loads(answer.read())
    return said["acis"], said["last"]


@dataclass(frozen=True)
class Verdict:
    """What arrived by one way for one owner, beside what was due."""

    owner: str
    way: str
    due: int
    told: int
    repeated: int
    wrong: tuple[str, ...]


def judge(story: Story, owner: str, way: str, arrived) -> Verdict:
    """Compare. What came twice under one id is one message, which receivers drop, and is counted."""
    due = Counter({url: count for (whose, url), count in story.due.items() if whose == owner})
    told = Counter(dict(arrived).values())
    wrong = [f"{url}: not told" for url in (due - told).elements()]
    wrong += [f"{url}: told and not due" for url in (told - due).elements()]
    return Verdict(owner, way, due.total(), told.total(), len(arrived) - told.total(), tuple(wrong))


def verdicts(story: Story, mails, hooks, secrets, *, port, tokens) -> list[Verdict]:
    """Compare all that arrived, by each way."""
    ways = {
        "mail": partial(mailed, mails),
        "webhook": lambda owner: called(hooks, owner, secrets[owner]),
        "atom": lambda owner: fed(port, tokens[owner]),
    }
    return [judge(story, owner, way, read(owner)) for owner in OWNERS for way, read in ways.items()]
