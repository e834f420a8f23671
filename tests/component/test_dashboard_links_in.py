"""Pages that link to a URL, in the dashboard: found a part at a time, and of one's own providers only."""

import html
import re

import pytest
from argon2 import PasswordHasher

from lcc_scrapy.apps.dashboard import links_in
from lcc_scrapy.db.records import DocumentLink
from lcc_scrapy.login import passwords
from tests.dashboard_house import EVIL, DashboardHouse

TO = "http://www.example.org/7/target"


@pytest.fixture(autouse=True)
def quick_passwords(monkeypatch):
    """One pass over little memory: how a password is hashed is tested elsewhere."""
    monkeypatch.setattr(passwords, "_HASHER", PasswordHasher(1, 8, 1))


@pytest.fixture
def house():
    made = DashboardHouse()
    made.target = made.document(7, "target", [b"x"])
    return made


def linking(house, pid, name, to=TO):
    row = house.document(pid, name, [b"x"])
    with house.store.begin() as tx:
        tx.put_links({row.urlkey: [DocumentLink(to, "a")]}, pid)
    return row.furl


def links(shown):
    part = shown.partition("Pages that link to ")[2]
    urls = re.findall(r'<a href="/dashboard/urls\?url=[^"]*">([^<]*)</a>', part)
    return [html.unescape(one) for one in urls if html.unescape(one) != TO]


def asked(client, **query):
    return client.get("/dashboard/urls/links-to", params={"url": TO, **query})


def test_the_page_of_a_url_tells_which_pages_link_to_it(house):
    expected = [linking(house, 7, "one"), linking(house, 7, "two")]
    linking(house, 7, "three", TO + "/other")
    with house.browser("sven") as client:
        shown = client.get("/dashboard/urls", params={"url": TO}).text
    assert sorted(links(shown)) == expected
    assert "Looked at the links of 4 pages of provider 7" in shown


def test_a_link_is_stored_in_another_spelling_than_the_url_of_its_document(house):
    house.document(7, "a%7eb", [b"x"])
    expected = linking(house, 7, "one", "http://www.example.org/7/a~b")
    with house.browser("sven") as client:
        shown = client.get("/dashboard/urls", params={"url": "http://www.example.org/7/a%7eb"}).text
        assert links(shown) == [expected]


def test_an_owner_sees_links_of_own_providers_alone(house):
    foreign, own = linking(house, 8, "secret"), linking(house, 7, "own")
    with house.browser("sven") as client:
        assert links(client.get("/dashboard/urls", params={"url": TO}).text) == [own]
        assert links(asked(client, pid=7).text) == [own]
        assert "all providers" not in asked(client, pid=7).text
        for query in ({}, {"pid": 8}, {"pid": 99}, {"pid": ""}):
            told = asked(client, **query)
            assert (told.status_code, "secret" in told.text) == (404, False)
    with house.browser("vera") as client:
        assert links(asked(client, pid=8).text) == [foreign]
        assert sorted(links(asked(client).text)) == sorted([foreign, own])
        assert "/links-to?url=" in asked(client, pid=7).text.partition("pages of all providers")[0]


def test_one_looks_further_until_all_were_looked_at(house, monkeypatch):
    monkeypatch.setattr(links_in, "LOOKED_AT", 7)
    monkeypatch.setattr(links_in, "SHOWN", 2)
    expected = [linking(house, 7, f"page{n}") for n in range(20)]
    found, path = [], f"/dashboard/urls/links-to?url={TO}&pid=7"
    with house.browser("sven") as client:
        while path:
            shown = client.get(path).text
            assert len(links(shown)) <= 2
            found += links(shown)
            on = re.search(r'href="([^"]*links-to[^"]*after=[^"]*)">Look further', shown)
            path = html.unescape(on[1]) if on else ""
    assert sorted(found) == sorted(expected)


def test_where_no_links_are_stored_nothing_is_claimed(house):
    with house.store.begin() as tx:
        tx.delete_links([house.target.urlkey])
    with house.browser("sven") as client:
        for shown in (client.get("/dashboard/urls", params={"url": TO}).text, asked(client, pid=7).text):
            assert "No links are stored of these pages" in shown
            assert "None of them links to it" not in shown


def test_what_an_address_has_wrong_is_no_error(house):
    with house.browser("vera") as client:
        for query in ({"pid": "x"}, {"after": "x"}, {"after": "0" * 30}, {"url": ""}, {"pid": "1" * 40}):
            assert asked(client, **query).status_code == 404
        shown = asked(client, url=f"http://{EVIL}", pid=7)
        assert shown.status_code == 200
        assert "<script" not in shown.text
        assert "\u202e" not in shown.text
