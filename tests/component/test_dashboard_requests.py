"""Random requests to the dashboard: who may not see a provider learns nothing of it, and changes nothing.

``LCC_DASHBOARD_REQUESTS`` says how many each visitor makes (default 700; ``make soak`` takes 10,000).
"""

import os
import random
import re
from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import quote, urlencode

import pytest
from argon2 import PasswordHasher
from httpx2 import Response
from sqlalchemy import inspect, text
from starlette.testclient import TestClient

from lcc_scrapy.apps.dashboard.actions import FIELDS
from lcc_scrapy.db.records import DocumentLink, UrlErrorRecord
from lcc_scrapy.domain.login_limits import ThrottleRules
from lcc_scrapy.domain.throttling import Rate
from lcc_scrapy.domain.users import MAY, Action, Role
from lcc_scrapy.feed import fts5_search
from lcc_scrapy.login import passwords
from tests.dashboard_house import EVIL, DashboardHouse, key_of, post, sign_in, write_index
from tests.web_house import NOW

REQUESTS = int(os.environ.get("LCC_DASHBOARD_REQUESTS", "700"))
OWN, FOREIGN = 7, 18
CANARY = "Kanarienvogel"
"""Stands in all that is told of provider 18, and in no request."""

SAME = f"http://www.example.org/{FOREIGN}/none"
"""A page of the foreign provider links here."""

WORD = "gemeinsam"
"""Documents of both have it."""

ANSWERS = {200, 303, 307, 401, 403, 404, 405, 422}
METHODS = ("GET", "POST", "HEAD", "PUT", "DELETE", "PATCH", "OPTIONS")
ENDLESS = "/dashboard/changes/events"
"""Ends for strangers only."""

TELLING = (
    "/dashboard/providers", "/dashboard/providers/{number}", "/dashboard/urls", "/dashboard/urls/{docid}/text",
    "/dashboard/urls/{docid}/changes", "/dashboard/changes", "/dashboard/audit", "/dashboard/search",
    "/dashboard/urls/{docid}/content", "/dashboard/urls/{docid}/picture", "/dashboard/urls/links-to",
)  # fmt: skip
"""Pages that tell of provider 18 to whom they may."""

HEADERS: Sequence[dict[str, str]] = (
    {},
    {},
    {},
    {},
    {"Sec-Fetch-Site": "cross-site"},
    {"Remote-User": "otto"},
)

GARBAGE = (
    "", "x", "0", "-1", "+7", "07", "7.0", "99", "1" * 18, "1" * 40, "\u0667", "7,18", "../18", "None", "%", "%25",
    "\x00", "' or 1=1 --", EVIL, "0" * 32, "g" * 32, "\ud7ff\U0010ffff", "a" * 300, "http://", "http://[",
)  # fmt: skip
NAMES = (
    "q", "url", "order", "falling", "value", "after", "state", "version", "before", "done", "count", "code",
    "reason", "sure", "name", "password", "form", "form", "pid",
)  # fmt: skip
WORDS = (
    "name", "pid", "failures", "nurlproc", "1", "yes", "active", "paused", "pause", "404", "503 404", "vera", "otto", WORD,
)  # fmt: skip


@pytest.fixture(autouse=True)
def time_enough(monkeypatch: pytest.MonkeyPatch) -> None:
    """A busy machine ends no search."""
    monkeypatch.setattr(fts5_search, "SECONDS", 1e6)


@pytest.fixture(autouse=True)
def quick_passwords(monkeypatch: pytest.MonkeyPatch) -> None:
    """One pass over little memory: how a password is hashed is tested elsewhere."""
    monkeypatch.setattr(passwords, "_HASHER", PasswordHasher(1, 8, 1))


@pytest.fixture
def house(tmp_path: Path) -> DashboardHouse:
    many, index = Rate(1_000_000, 1), tmp_path / "search.db"
    made = DashboardHouse(login=ThrottleRules(per_address=many, per_id=many), index=index)
    own = made.document(OWN, "plain", [b"<title>one</title>", b"<title>two</title>"])
    made.waiting(OWN, psetid=1)
    made.provider(FOREIGN, name=CANARY, roots=(f"http://{CANARY}.example/", "http://www.example.org/"))
    plain = made.document(FOREIGN, "plain", [f"<title>{CANARY} {n}</title>".encode() for n in range(2)])
    linking = made.document(FOREIGN, CANARY)
    made.picture(FOREIGN, comment=CANARY.encode())
    made.waiting(FOREIGN, CANARY, psetid=2)
    with made.store.begin() as tx:
        tx.put_links({plain.urlkey: [DocumentLink(f"http://x/{CANARY}", CANARY, True)]})
        tx.put_links({linking.urlkey: [DocumentLink(SAME, "a")]})
        tx.add_errors([UrlErrorRecord(FOREIGN, 404, CANARY, f"http://x/{CANARY}", "{}", NOW)], 100)
    texts = ((own, f"{WORD} of sven's"), (plain, f"{CANARY} {WORD} {CANARY}"))
    write_index(index, ((row, text.encode()) for row, text in texts), made.head())
    with made.browser("otto") as client:
        post(client, f"/providers/{FOREIGN}/want-full", reason=CANARY)
        post(client, f"/providers/{FOREIGN}/pause")
    return made


def rows_of(house: DashboardHouse, *, without: Collection[str] = ()) -> dict[str, list[dict[str, Any]]]:
    """Return all rows by their tables, but for some tables."""
    with house.store.engine.connect() as connection:
        names = set(inspect(connection).get_table_names()) - set(without)
        return {
            name: [dict(row) for row in connection.execute(text(f"SELECT * FROM {name}")).mappings()]
            for name in names
        }


def foreign_rows(house: DashboardHouse) -> dict[str, list[dict[str, Any]]]:
    """Return all rows that are of no provider of sven's, but for the audit log and the sessions."""
    tables = rows_of(house, without={"audit", "sessions", "counters"})
    return {name: [row for row in rows if not is_own(row)] for name, rows in tables.items()}


def is_own(row: dict[str, Any]) -> bool:
    """Tell whether a row is of the provider that sven has; turns are named by the provider's number."""
    return row.get("pid") == OWN or next(iter(row.values())) in (OWN, str(OWN))


class Asked(NamedTuple):
    """A request; ``template`` is its path as the routes have it."""

    template: str
    method: str
    path: str
    query: dict[str, str]
    form: dict[str, str]
    headers: dict[str, str]


@dataclass
class Visitor:
    """A browser whose user tries everything; who is signed out signs in again."""

    house: DashboardHouse
    client: TestClient
    chance: random.Random
    name: str
    answered: Counter[tuple[str, int]] = field(default_factory=Counter)
    """How often, by path as the routes have it, and status."""

    def __post_init__(self) -> None:
        """Take the routes from the dashboard itself, so that further ones are tried as well."""
        routes = self.house.dashboard.routes
        self._routes = sorted((method, route.path) for route in routes for method in route.methods)
        tables = rows_of(self.house)
        docids = {row["urlkey"].hex(): row["mimetype"] for row in tables["lccurl"]}
        self._docids = list(docids)
        (self._picture,) = (docid for docid, mimetype in docids.items() if mimetype == "image/png")
        self._versions = sorted((row["seq"], row["urlkey"].hex()) for row in tables["versions"])
        self._seqs = [str(seq) for seq, _ in self._versions]
        self._key = key_of(self.client) if self.name else ""

    def answers(self) -> Iterator[tuple[str, str, Response]]:
        """Ask for everything as it should be, then at random.

        Gives the path as the routes have it, the request, and its answer.
        """
        right = [*self._right()]
        for number in range(max(REQUESTS, len(right))):
            if self.name and self.client.get("/dashboard/find").status_code == 401:
                assert sign_in(self.client, self.name).status_code == 303
                self._key = key_of(self.client)
            yield self._sent(right[number] if number < len(right) else self._random())

    def _right(self) -> Iterator[Asked]:
        """Give each route with a provider of one's own and a foreign one, with the token and with a wrong one."""
        for method, template in self._routes:
            for pid, (seq, docid) in zip((OWN, FOREIGN), self._versions, strict=True):
                path = template.format(number=pid, docid=docid)
                query = {"url": docid, "version": str(seq), "q": WORD}
                if template.endswith("/links-to"):
                    query |= {"url": SAME, "pid": str(pid)}
                if template.endswith("/picture"):
                    path, query = path.replace(docid, self._picture), {}
                form = self._own_fields(template)
                for token in ({}, {"form": "f" * 64}) if template != ENDLESS or not self.name else ():
                    yield Asked(template, method, path, query, form | token, {})

    def _random(self) -> Asked:
        method, template = self.chance.choice(self._routes)
        if self.chance.random() < 0.15:
            method = self.chance.choice(METHODS)
        if template == ENDLESS and method == "GET" and self.name:
            template = "/dashboard/changes"
        path = re.sub(r"{(\w+)}", self._filled, template) + self.chance.choice(("", "", "", "", "", "/"))
        form = self._own_fields(template) if self.chance.random() < 0.5 else self._values()
        return Asked(template, method, path, self._values(), form, self.chance.choice(HEADERS))

    def _sent(self, asked: Asked) -> tuple[str, str, Response]:
        url = f"{asked.path}?{urlencode(asked.query, errors='replace')}"
        form = {"form": self._key, **asked.form}
        answer = self.client.request(
            asked.method,
            url,
            data=form if asked.method in {"POST", "PUT", "PATCH"} else None,
            headers=asked.headers,
            follow_redirects=False,
        )
        self.answered[asked.template, answer.status_code] += 1
        told = f"{asked.method} {url} {form} {asked.headers}"
        if asked.method == "POST" and form["form"] != self._key:
            assert answer.status_code != 303, f"a form without its token: {told}"
        return asked.template, told, answer

    def _filled(self, found: re.Match[str]) -> str:
        near = {"number": [str(OWN), str(FOREIGN), "8"], "docid": self._docids}
        return quote(self._some(near[found[1]]), safe="")

    def _some(self, near: Sequence[str]) -> str:
        """Return something real three times of four, else garbage."""
        return self.chance.choice(near if self.chance.random() < 0.75 else GARBAGE)

    def _values(self) -> dict[str, str]:
        urls = [
            f"http://www.example.org/{pid}/{name}" for pid in (OWN, FOREIGN) for name in ("plain", "none")
        ]
        near = [str(OWN), str(FOREIGN), *self._docids, *self._seqs, *urls, *WORDS]
        likely = {"version": self._seqs, "url": [*urls, *self._docids], "form": [self._key, ""]}
        some = self.chance.sample(NAMES, self.chance.randrange(5))
        return {name: self._some(likely.get(name, near)) for name in some}

    def _own_fields(self, template: str) -> dict[str, str]:
        """Fill the form of an action as it has to be."""
        action = template.rpartition("/")[2]
        filled = {"sure": "yes", "reason": "old files", "code": "404"}
        return {name: filled[name] for name in FIELDS[Action(action)]} if action in set(Action) else {}


def told(answer: Response) -> str:
    return f"{answer.status_code} {dict(answer.headers)} {answer.text}"


def visitor_of(house: DashboardHouse, client: TestClient, name: str) -> Visitor:
    seed = random.randrange(1 << 32)
    print("seed", seed)
    return Visitor(house, client, random.Random(seed), name)


@pytest.mark.parametrize("name", ["sven", ""], ids=["owner", "stranger"])
def test_who_may_not_see_a_provider_learns_nothing_of_it_and_changes_nothing(
    house: DashboardHouse, name: str
) -> None:
    before, entries = foreign_rows(house), len(house.log())
    with house.browser(name) as client:
        visitor = visitor_of(house, client, name)
        for _, request, answer in visitor.answers():
            assert answer.status_code in ANSWERS, request
            assert CANARY.casefold() not in told(answer).casefold(), request
            assert f"roots of provider {FOREIGN}" not in answer.text, request
    assert foreign_rows(house) == before
    new = set(house.log()[: len(house.log()) - entries])
    permitted = {("sven", "dashboard", action, OWN) for action in MAY[Role.OWNER]}
    assert new <= permitted
    assert bool(new) is bool(name), "what is permitted is done and noted"
    assert (visitor.answered["/dashboard/providers/{number}", 200] > 0) is bool(name)


def test_a_viewer_sees_everything_and_changes_nothing(house: DashboardHouse) -> None:
    before, entries = rows_of(house, without={"sessions", "lccinfo"}), house.log()
    shown = Counter[str]()
    with house.browser("vera") as client:
        for template, request, answer in visitor_of(house, client, "vera").answers():
            assert answer.status_code in ANSWERS, request
            shown[template] += CANARY in told(answer)
    assert rows_of(house, without={"sessions", "lccinfo"}) == before
    assert house.log() == entries
    for template in TELLING:
        assert shown[template] > 0, "the canary is where it has to be"
