"""The page behind the link in a mail: it asks first, a POST ends the mail, strangers learn nothing."""

import re

import pytest
from fastapi import FastAPI
from starlette.testclient import TestClient

from lcc_scrapy.domain.errors import StoreUnavailable
from lcc_scrapy.domain.providers import Provider
from lcc_scrapy.mail.routes import make_router
from lcc_scrapy.mail.unsubscribing import PATH, Unsubscribing
from tests.memory_store import MemoryStore


@pytest.fixture
def store():
    made = MemoryStore()
    with made.begin() as tx:
        tx.insert_provider(Provider(7, "x"), [])
    return made


def client_of(service):
    app = FastAPI()
    app.include_router(make_router(service))
    return TestClient(app)


def is_off(store):
    with store.read() as tx:
        state = tx.mail_state(7)
    return state is not None and state.off


def test_the_link_shows_a_button_and_changes_nothing_and_the_button_ends_the_mail(store):
    service = Unsubscribing(store, "https://push.example.org")
    with client_of(service) as client:
        link = service.link(7).removeprefix("https://push.example.org")
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
    service = Unsubscribing(store, "")
    token = Unsubscribing(store, "https://x.example").link(7).partition("?")[2]
    with client_of(service) as client:
        done = client.post(f"{PATH}?{token}", data={"List-Unsubscribe": "One-Click"})
    assert (done.status_code, is_off(store)) == (200, True)


@pytest.mark.parametrize(
    "token", ["", "7-" + "0" * 40, "x", '"><script>alert(1)</script>', "7-\u202e", "7\x00"]
)
@pytest.mark.parametrize("method", ["get", "post"])
def test_a_token_of_nobody_gets_one_page_that_repeats_nothing(store, token, method):
    with client_of(Unsubscribing(store, "")) as client:
        answer = client.request(method, PATH, params={"t": token})
    assert answer.status_code == 404
    assert "not valid" in answer.text
    assert "alert(1)" not in answer.text
    assert not is_off(store)


def test_a_token_that_is_too_long_is_not_looked_at(store):
    with client_of(Unsubscribing(store, "")) as client:
        assert client.get(PATH, params={"t": "x" * 81}).status_code == 422
        assert client.get(PATH).status_code == 404


def test_a_database_that_is_away_is_said_so():
    class Away:
        def whose(self, token):
            raise StoreUnavailable("gone")

        end = whose

    with client_of(Away()) as client:
        answers = [client.get(PATH, params={"t": "x"}), client.post(PATH, params={"t": "x"})]
    assert {answer.status_code for answer in answers} == {503}
    assert all("gone" not in answer.text for answer in answers)
