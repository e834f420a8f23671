"""Links come from the settings or the loopback, never from the Host that a client names; no path redirects."""

import pytest
from fastapi import APIRouter, FastAPI, Request
from fastapi.testclient import TestClient

from lcc_scrapy.web.own_address import needed_address, own_address, take_either_spelling
from lcc_scrapy.web.problems import install

HOSTILE = {"Host": "evil.example"}


def made_app(said: str = "") -> FastAPI:
    app, router = FastAPI(), APIRouter()

    @router.get("/relative")
    def relative(request: Request) -> str:
        return own_address(request, said)

    @router.get("/absolute")
    def absolute(request: Request) -> str:
        return needed_address(request, said, "LCC_WEB_URL")

    @router.post("/form")
    async def form(request: Request) -> str:
        return (await request.body()).decode()

    @router.get("/either/")
    @router.get("/either")
    def either(request: Request) -> str:
        return request.url.path

    app.include_router(router)
    install(app, [router])
    take_either_spelling(app)
    return app


def client(said: str = "", *, server: str = "192.0.2.1", peer: str = "192.0.2.7") -> TestClient:
    host = f"[{server}]" if ":" in server else server
    return TestClient(made_app(said), base_url=f"http://{host}:8080", client=(peer, 1), headers=HOSTILE)


def test_a_setting_says_the_address_whatever_the_client_names() -> None:
    with client("https://lcc.example.org/") as web:
        assert web.get("/relative").json() == web.get("/absolute").json() == "https://lcc.example.org"


@pytest.mark.parametrize(("server", "peer"), [("127.0.0.1", "192.0.2.7"), ("192.0.2.1", "127.0.0.1")])
def test_without_it_links_are_relative_and_who_cannot_do_without_is_told_the_setting(
    server: str, peer: str
) -> None:
    with client(server=server, peer=peer) as web:
        assert web.get("/relative").json() == ""
        refused = web.get("/absolute")
    assert refused.status_code == 500
    assert refused.json()["error"] == "address-not-said"
    assert "LCC_WEB_URL" in refused.json()["detail"]


@pytest.mark.parametrize("server", ["127.0.0.1", "::1"])
def test_over_loopback_the_address_is_that_of_the_socket(server: str) -> None:
    with client(server=server, peer=server) as web:
        assert web.get("/absolute").json() == f"http://{f'[{server}]' if ':' in server else server}:8080"


@pytest.mark.parametrize("path", ["/form", "/form/", "/form//"])
def test_both_spellings_of_a_path_answer_without_a_redirect(path: str) -> None:
    with client() as web:
        answer = web.post(path, content="password=secret", follow_redirects=False)
    assert (answer.status_code, answer.json()) == (200, "password=secret")


def test_a_path_that_has_both_spellings_keeps_them() -> None:
    with client() as web:
        assert [web.get(path).json() for path in ("/either", "/either/")] == ["/either", "/either/"]
        assert web.get("/no/such/path/", follow_redirects=False).status_code == 404
