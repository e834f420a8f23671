"""The page behind the link in a mail: it asks first, a POST ends the mail, strangers learn nothing."""

import hmac
import re

import pytest
from fastapi import FastAPI
from starlette.testclient import TestClient

from lcc_scrapy.annotation.recipients import SUBSCRIBERS as RECIPIENTS
from lcc_scrapy.apps.mail.store import SUBSCRIBERS, rows_in
from lcc_scrapy.db.secret_facts import secret_fact
from lcc_scrapy.domain.errors import StoreUnavailable
from lcc_scrapy.domain.providers import Provider
from lcc_scrapy.mail.routes import make_router
from lcc_scrapy.mail.unsubscribing import PATH, Unsubscribing
from tests.sqlite_store import sqlite_store


@pytest.fixture
def store():
    made = sqlite_store()
    with made.begin() as tx:
        tx.insert_provider(Provider(7, "x"), [])
    return made


def client_of(service):
    app = FastAPI()
    app.include_router(make_router(service))
    return TestClient(app)


def is_off(store):
    with store.read() as tx:
        state = rows_in(tx).state(7)
    return state is not None and state.off


def test_the_link_shows_a_button_and_changes_nothing_and_the_button_ends_the_mail(store):
    service = Unsubscribing(store, "https://push.example.org", [SUBSCRIBERS])
    with client_of(service) as client:
        link = service.link(SUBSCRIBERS, 7).removeprefix("https://push.example.org")
        page = client.get(link)
        assert (page.status_code, is_off(store)) == (200, False)
        action = re.search(r'<form method="post" action="([^"]+)"><button>', page.text)[1]
        done = client.post(f"{PATH}{action}")
        assert (done.status_code, is_off(store)) == (200, True)
        assert client.post(link).status_code == 200
        assert "frame-ancestors 'none'" in page.headers["content-security-policy"]
        assert page.headers["referrer-policy"] == "no-referrer"
        assert "Press the button" in page.text
        assert "<script" not in page.text


def test_a_mail_program_unsubscribes_with_one_click(store):
    service = Unsubscribing(store, "", [SUBSCRIBERS])
    token = Unsubscribing(store, "https://x.example").link(SUBSCRIBERS, 7).partition("?")[2]
    with client_of(service) as client:
        done = client.post(f"{PATH}?{token}", data={"List-Unsubscribe": "One-Click"})
    assert (done.status_code, is_off(store)) == (200, True)


@pytest.mark.parametrize(
    "token", ["", "7-" + "0" * 40, "x", '"><script>alert(1)</script>', "7-\u202e", "7\x00"]
)
@pytest.mark.parametrize("method", ["get", "post"])
def test_a_token_of_nobody_gets_one_page_that_repeats_nothing(store, token, method):
    with client_of(Unsubscribing(store, "", [SUBSCRIBERS])) as client:
        answer = client.request(method, PATH, params={"t": token})
    assert answer.status_code == 404
    assert "not valid" in answer.text
    assert "alert(1)" not in answer.text
    assert not is_off(store)


def test_a_token_that_is_too_long_is_not_looked_at(store):
    with client_of(Unsubscribing(store, "", [SUBSCRIBERS])) as client:
        assert client.get(PATH, params={"t": "x" * 81}).status_code == 422
        assert client.get(PATH).status_code == 404


def test_providers_and_recipients_of_alerts_have_links_of_their_own(store):
    service = Unsubscribing(store, "", [RECIPIENTS, SUBSCRIBERS])
    key = secret_fact(store, "mailkey")
    tokens = {
        kind: f"{kind.letter}7-{hmac.digest(key, proved, 'sha256').hex()[:40]}"
        for kind, proved in ((SUBSCRIBERS, b"unsubscribe 7"), (RECIPIENTS, b"unsubscribe recipient 7"))
    }
    for kind, token in tokens.items():
        assert service.find(token) == (kind, 7), "links in mails that were sent stay good"
        assert Unsubscribing(store, "", {RECIPIENTS, SUBSCRIBERS} - {kind}).find(token) is None
    assert service.find(tokens[SUBSCRIBERS].replace("7-", "r7-")) is None
    with client_of(service) as client:
        assert (
            "recipient 7 gets no more mail about pages"
            in client.get(PATH, params={"t": tokens[RECIPIENTS]}).text
        )
        assert client.post(PATH, params={"t": tokens[RECIPIENTS]}).status_code == 404, "it is gone"
    assert not is_off(store)


def test_a_database_that_is_away_is_said_so():
    class Away:
        def find(self, token):
            raise StoreUnavailable("gone")

        end = find

    with client_of(Away()) as client:
        answers = [client.get(PATH, params={"t": "x"}), client.post(PATH, params={"t": "x"})]
    assert {answer.status_code for answer in answers} == {503}
    assert all("gone" not in answer.text for answer in answers)
