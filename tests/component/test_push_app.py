"""The application of the public endpoint: what holds for the routers that are handed to it."""

import asyncio
from concurrent.futures import ThreadPoolExecutor

import pytest
from fastapi import APIRouter, Request
from starlette.responses import PlainTextResponse
from starlette.testclient import TestClient

from lcc_scrapy.domain.http_serving import Bounds
from lcc_scrapy.domain.shares import Share
from lcc_scrapy.domain.throttling import Rate
from lcc_scrapy.web.public import BODY_BYTES, Unbounded, make_public_app


def router():
    made = APIRouter()

    async def size(request: Request):
        return PlainTextResponse(str(len(await request.body())))

    made.post("/small")(size)
    made.post("/large", max_body_size=10 * BODY_BYTES)(size)
    return made


async def push(scope, receive, send):
    body, more = b"", True
    while more:
        message = await receive()
        body, more = body + message.get("body", b""), message.get("more_body", False)
    await PlainTextResponse(f"pushed {len(body)}")(scope, receive, send)


def client(share=None, refusal_delay=0.0, peer=("192.0.2.1", 1)):
    bounds = Bounds(share=share or Share(), refusal_delay=refusal_delay)
    return TestClient(make_public_app([Unbounded("/v1/push", push), router()], bounds), client=peer)


def test_bodies_are_bounded_unless_their_route_says_another_bound():
    asked = client()
    assert asked.post("/small", content=b"x" * BODY_BYTES).text == str(BODY_BYTES)
    assert asked.post("/small", content=b"x" * (BODY_BYTES + 1)).status_code == 413
    assert asked.post("/large", content=b"x" * (9 * BODY_BYTES)).text == str(9 * BODY_BYTES)
    assert asked.post("/large", content=b"x" * (11 * BODY_BYTES)).status_code == 413


def test_a_push_bounds_its_body_itself():
    assert client().post("/v1/push", content=b"x" * (20 * BODY_BYTES)).text == f"pushed {20 * BODY_BYTES}"


@pytest.mark.parametrize("path", ["/v1/push", "/v1/push/"])
def test_a_push_looks_after_the_time_of_its_body_itself(path):
    sent = []

    async def slow():
        await asyncio.sleep(0.05)
        return {"type": "http.request", "body": b"x"}

    async def send(message):
        sent.append(message)

    async def run():
        scope = {"type": "http", "method": "POST", "path": path, "headers": [], "client": ("192.0.2.1", 1)}
        await make_public_app([Unbounded("/v1/push", push)], Bounds(silence=0.01))(scope, slow, send)

    with ThreadPoolExecutor(1) as apart:
        apart.submit(asyncio.run, run()).result()
    assert sent[-1]["body"] == b"pushed 1"


def test_unknown_paths_and_methods_are_told_as_problems():
    asked = client()
    assert asked.get("/nothing").json()["status"] == 404
    answer = asked.get("/small")
    assert answer.status_code == 405
    assert answer.headers["Allow"] == "POST"
    assert answer.headers["X-Content-Type-Options"] == "nosniff"


def test_without_a_push_service_there_is_no_such_route():
    assert TestClient(make_public_app([router()])).post("/v1/push").status_code == 404


def test_a_client_has_its_share_of_all_routes_together():
    asked = client(Share(rate=Rate(2, 3600.0)))
    assert [asked.post(path, content=b"x").status_code for path in ("/small", "/v1/push", "/large")] == [
        200,
        200,
        429,
    ]
