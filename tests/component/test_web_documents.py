"""The HTTP API: documents and their contents, exports, named cursors, health and metrics."""

import asyncio
import base64
import gzip
import io
import json
import tarfile
import threading
from dataclasses import replace
from hashlib import sha256

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from test_web_changes import names, problem
from web_house import WebHouse

from lcc_scrapy.apps.resourcesync.routes import make_router
from lcc_scrapy.apps.resourcesync.store import StorePublications
from lcc_scrapy.domain.cursor import Position
from lcc_scrapy.domain.errors import StoreUnavailable
from lcc_scrapy.domain.tokens import METRICS, READ, new_secret
from lcc_scrapy.feed.content import ContentElsewhere, ContentGone, ContentLost
from lcc_scrapy.feed.reader import Look
from lcc_scrapy.feed.row_formats import COLUMNS
from lcc_scrapy.web.ports import Measure
from tests.memory_store import MemoryStore

BODY = bytes(range(256)) * 1000
ABSENT = "0" * 32


@pytest.fixture
def house():
    made = WebHouse()
    made.row = made.shelf.add("page", BODY)
    return made


@pytest.fixture
def client(house):
    with house.client() as made:
        yield made


def path(row):
    return f"/v1/documents/{row.docid}/content"


# --- rows ---------------------------------------------------------------------------------------------


def test_a_document_is_its_row_and_is_not_sent_again_while_it_stays(house, client):
    answer = client.get(f"/v1/documents/{house.row.docid}")
    assert answer.json()["curl"] == house.row.curl
    same = client.get(f"/v1/documents/{house.row.docid}", headers={"If-None-Match": answer.headers["etag"]})
    assert (same.status_code, same.content) == (304, b"")
    house.shelf.add("page", b"new")
    again = client.get(f"/v1/documents/{house.row.docid}", headers={"If-None-Match": answer.headers["etag"]})
    assert (again.status_code, again.json()["len"]) == (200, 3)


def test_what_is_not_there_is_404_and_so_is_what_a_token_may_not_see(house):
    with house.client(house.token(providers="8")) as client:
        for docid in (ABSENT, house.row.docid):
            problem(client.get(f"/v1/documents/{docid}"), 404, "not-there")
            problem(client.get(f"/v1/documents/{docid}/content"), 404, "not-there")


@pytest.mark.parametrize(
    "docid", ["x", "0" * 31, "0" * 33, "A" * 32, "..", "%2e%2e%2f" * 3, "0" * 31 + "%00", "é" * 32]
)
def test_a_docid_is_32_digits_and_nothing_else(client, docid):
    for url in (f"/v1/documents/{docid}/content", f"/v1/documents/{docid}"):
        assert client.get(url).status_code in {404, 422}


# --- contents -----------------------------------------------------------------------------------------


def test_a_content_is_whole_and_says_what_it_is(house, client):
    answer = client.get(path(house.row))
    digest = base64.b64encode(sha256(BODY).digest()).decode()
    assert (answer.status_code, answer.content) == (200, BODY)
    told = answer.headers
    assert told["etag"] == f'"{sha256(BODY).hexdigest()}"'
    assert told["repr-digest"] == told["content-digest"] == f"sha-256=:{digest}:"
    assert (told["content-length"], told["accept-ranges"]) == (str(len(BODY)), "bytes")
    assert "content-encoding" not in told


def test_no_browser_is_to_render_a_content(house, client):
    told = client.get(path(house.row)).headers
    assert told["content-disposition"] == f'attachment; filename="{house.row.docid}.html"'
    assert told["x-content-type-options"] == "nosniff"
    assert "sandbox" in told["content-security-policy"]
    assert told["cross-origin-resource-policy"] == "same-origin"


@pytest.mark.parametrize(
    "served", ["", "x", "text/*", "text/html\r\nSet-Cookie: a=b", "Text/HTML", "ümlaut/x"]
)
def test_a_type_that_is_none_is_not_passed_on(house, client, served):
    row = house.shelf.add("odd", served_type=served)
    assert client.get(path(row)).headers["content-type"] == "application/octet-stream"
    assert "set-cookie" not in client.get(path(row)).headers


def test_a_part_of_a_content_says_which_part_it_is(house, client):
    answer = client.get(path(house.row), headers={"Range": "bytes=1000-1999"})
    assert (answer.status_code, answer.content) == (206, BODY[1000:2000])
    assert answer.headers["content-range"] == f"bytes 1000-1999/{len(BODY)}"
    assert "content-digest" not in answer.headers
    assert answer.headers["repr-digest"]


def test_a_part_that_does_not_exist_is_416(house, client):
    answer = client.get(path(house.row), headers={"Range": f"bytes={len(BODY)}-"})
    problem(answer, 416, "no-such-range")
    assert answer.headers["content-range"] == f"bytes */{len(BODY)}"


def test_a_part_is_sent_if_the_content_is_still_the_same(house, client):
    part = {"Range": "bytes=0-9"}
    tag = client.get(path(house.row)).headers["etag"]
    assert client.get(path(house.row), headers={**part, "If-Range": tag}).status_code == 206
    for other in ('"x"', f"W/{tag}", "Sat, 21 Nov 2026 18:30:03 GMT"):
        assert client.get(path(house.row), headers={**part, "If-Range": other}).status_code == 200
    assert client.get(path(house.row), headers={"If-None-Match": tag}).status_code == 304
    assert client.get(path(house.row), headers={"If-None-Match": f'"x", W/{tag}'}).status_code == 304
    assert client.get(path(house.row), headers={"If-Match": tag}).status_code == 200
    problem(client.get(path(house.row), headers={"If-Match": '"x"'}), 412, "changed")


def test_head_tells_what_get_would(house, client):
    head, got = client.head(path(house.row)), client.get(path(house.row))
    assert (head.status_code, head.content) == (200, b"")
    assert dict(head.headers) == dict(got.headers)


def test_head_reads_nothing_and_is_about_the_whole(house, client):
    class Unread(io.BytesIO):
        def read(self, size=-1):
            raise AssertionError(f"read {size}")

    object.__setattr__(house.lcc, "open", lambda _row: Unread(BODY))
    head = client.head(path(house.row), headers={"Range": "bytes=5-9"})
    assert (head.status_code, head.headers["content-length"]) == (200, str(len(BODY)))
    assert client.head(path(house.row), headers={"If-None-Match": "*"}).status_code == 304


def test_an_empty_content_is_a_content(house, client):
    row = house.shelf.add("empty", b"")
    answer = client.get(path(row))
    assert (answer.status_code, answer.content, answer.headers["content-length"]) == (200, b"", "0")
    assert client.get(path(row), headers={"Range": "bytes=0-"}).status_code == 416


def test_a_content_that_is_replaced_at_this_moment_is_that_of_its_new_row(house, client):
    opened = house.shelf.open

    def replaced(row):
        if row.seq == house.row.seq:
            house.new = house.shelf.add("page", b"new")
            raise ContentGone("read on")
        return opened(row)

    object.__setattr__(house.lcc, "open", replaced)
    answer = client.get(path(house.row))
    assert (answer.content, answer.headers["etag"]) == (b"new", f'"{sha256(b"new").hexdigest()}"')


@pytest.mark.parametrize(
    ("error", "status", "name"),
    [
        (ContentGone("read on"), 410, "content-gone"),
        (ContentLost("run `lcc verify --repair`"), 500, "content-lost"),
        (ContentElsewhere("below /var/lib/lcc"), 503, "content-elsewhere"),
        (StoreUnavailable("lost connection"), 503, "database-away"),
    ],
)
def test_a_content_that_cannot_be_had_says_why(house, client, error, status, name):
    def fail(_):
        raise error

    object.__setattr__(house.lcc, "open", fail)
    assert "/var/lib" not in problem(client.get(path(house.row)), status, name)


class Watched(io.BytesIO):
    def __init__(self, data, seekable):
        super().__init__(data)
        self.can_seek = seekable

    def seekable(self):
        return self.can_seek


@pytest.mark.parametrize("seekable", [True, False])
def test_a_content_is_closed_whatever_is_asked_of_it(house, client, seekable):
    opened = []

    def watched(row):
        opened.append(Watched(BODY, seekable))
        return opened[-1]

    object.__setattr__(house.lcc, "open", watched)
    for headers in (
        {}, {"Range": "bytes=100000-100009"}, {"Range": "bytes=999999-"}, {"If-Match": '"x"'}, {"If-None-Match": "*"},
    ):  # fmt: skip
        answer = client.get(path(house.row), headers=headers)
        if answer.status_code == 206:
            assert answer.content == BODY[100000:100010]
    client.head(path(house.row))
    assert len(opened) == 6
    assert all(stream.closed for stream in opened)


# --- exports ------------------------------------------------------------------------------------------


def test_an_export_holds_contents_and_ends_with_the_cursor(house, client):
    answer = client.get("/v1/export?format=tar.gz")
    assert answer.headers["content-disposition"] == 'attachment; filename="lcc-export.tar.gz"'
    with tarfile.open(fileobj=io.BytesIO(answer.content)) as tar:
        *documents, manifest = [tar.extractfile(member).read() for member in tar]
    assert documents == [BODY]
    end = json.loads(manifest.splitlines()[-1])
    assert end["op"] == "end"
    assert names(client.get("/v1/changes", params={"since": end["cursor"]})) == []


@pytest.mark.parametrize("form", ["zip", "jsonl", "warc", "tar.gz"])
def test_every_format_is_served(client, form):
    assert len(client.get("/v1/export", params={"format": form, "limit": 1}).content) > 100


def test_an_export_is_of_what_a_token_may_see(house):
    house.shelf.add("other", b"secret", pid=8)
    with house.client(house.token(providers="8")) as client:
        lines = client.get("/v1/export?format=jsonl").text.splitlines()
        assert [json.loads(line)["op"] for line in lines] == ["upsert", "end"]
        problem(client.get("/v1/export?format=jsonl&provider=7"), 403, "not-allowed")


@pytest.mark.parametrize("query", ["", "format=exe", "format=jsonl&limit=-1"])
def test_an_export_of_what_is_not_known_is_refused(client, query):
    problem(client.get(f"/v1/export?{query}"), 422, "bad-parameter")


def test_an_export_that_cannot_go_on_breaks_off_where_the_client_sees_it(house, client):
    def fail(_):
        raise ContentLost("the file is damaged")

    object.__setattr__(house.lcc, "open", fail)
    answer = client.get("/v1/export?format=jsonl")
    assert b'"op": "end"' not in answer.content


@pytest.mark.parametrize("path", ["/v1/ids", "/resourcesync/resourcelist-00-0000.xml"])
def test_a_list_that_cannot_go_on_breaks_off_and_only_one_line_tells_of_it(house, caplog, path):
    def documents(after, _limit, _seen=0):
        if after:
            raise StoreUnavailable("gone away")
        return [house.row]

    house.shelf.documents = documents
    house.app.include_router(make_router(StorePublications(MemoryStore()), "http://testserver"))
    with house.client() as client:
        answer = client.get(path)
    assert house.row.docid in answer.text
    assert '"op": "end"' not in answer.text
    assert "</urlset>" not in answer.text
    (line,) = [one.getMessage() for one in caplog.records if one.levelname == "WARNING"]
    assert line == f"{path} was cut: gone away"


@pytest.mark.parametrize("path", ["/v1/export", "/v1/ids"])
def test_nothing_is_read_any_more_for_a_client_that_is_gone(path):
    house = WebHouse()
    row, read = house.shelf.add("a", pid=8), []
    house.shelf.top = 30_000

    def page(after, _limit, _seen=0):
        read.append(after)
        number = len(read)
        return [replace(row, seq=number, urlkey=number.to_bytes(16))] if number < house.shelf.top else []

    house.shelf.documents = page
    house.shelf.look = lambda after, limit: Look(page(after, limit), house.shelf.head())
    with house.client(token="") as client:
        client.portal.call(gone_soon, house, path, read)
    assert len(read) < house.shelf.top


async def gone_soon(house, path, read):
    """Ask, and be gone when it is being read."""
    asked = iter([{"type": "http.request", "body": b"", "more_body": False}])

    async def receive():
        if (message := next(asked, None)) is not None:
            return message
        while len(read) < 10:
            await asyncio.sleep(0.001)
        return {"type": "http.disconnect"}

    async def send(_message):
        pass

    scope = {
        "type": "http", "asgi": {"version": "3.0", "spec_version": "2.3"}, "http_version": "1.1", "method": "GET",
        "scheme": "http", "path": path, "raw_path": path.encode(), "root_path": "", "client": ("192.0.2.1", 1),
        "server": ("lcc", 80), "query_string": b"provider=7&format=jsonl",
        "headers": [(b"authorization", f"Bearer {house.token()}".encode())],
    }  # fmt: skip
    await house.app(scope, receive, send)


def test_more_exports_than_may_be_written_are_sent_away():
    house = WebHouse(exports=1)
    house.shelf.add("page", BODY)
    go_on, begun = threading.Event(), threading.Event()

    def slow(row):
        begun.set()
        assert go_on.wait(20)
        return io.BytesIO(BODY)

    object.__setattr__(house.lcc, "open", slow)
    with house.client() as client:
        first = threading.Thread(target=client.get, args=("/v1/export?format=jsonl",))
        first.start()
        assert begun.wait(20)
        problem(client.get("/v1/export?format=jsonl"), 503, "busy")
        go_on.set()
        first.join()
        assert client.get("/v1/export?format=jsonl").status_code == 200


# --- named cursors ------------------------------------------------------------------------------------


def test_a_named_cursor_is_where_somebody_goes_on(house, client):
    begun = client.get("/v1/changes?name=main&limit=0").json()["cursor"]
    assert client.get("/v1/cursors/main").json()["cursor"] == begun
    told = client.get("/v1/changes?name=main").json()
    assert names(client.get("/v1/changes?name=main")) == ["page"]
    moved = client.put("/v1/cursors/main", json={"cursor": told["cursor"]})
    assert (moved.status_code, moved.json()["seq"]) == (200, 1)
    assert names(client.get("/v1/changes?name=main")) == []
    assert [one["name"] for one in client.get("/v1/cursors").json()["cursors"]] == ["main"]
    assert client.delete("/v1/cursors/main").status_code == 204
    problem(client.delete("/v1/cursors/main"), 404, "not-there")
    problem(client.get("/v1/cursors/main"), 404, "not-there")


@pytest.mark.parametrize("body", [b"J\xff>", b'{"cursor": "\xe9"}', b"{", b""])
def test_a_body_that_is_no_json_in_utf_8_is_422(client, body):
    asked = client.put("/v1/cursors/main", content=body, headers={"Content-Type": "application/json"})
    problem(asked, 422, "bad-parameter")


def test_a_named_cursor_belongs_to_the_label_of_its_token(house):
    one, same, other = house.token("one"), house.token("one"), house.token("other")
    with house.client(one) as client:
        client.get("/v1/changes?name=main")
        assert client.get("/v1/cursors/main", headers={"Authorization": f"Bearer {same}"}).status_code == 200
        problem(
            client.get("/v1/cursors/main", headers={"Authorization": f"Bearer {other}"}), 404, "not-there"
        )


def test_who_begins_by_name_is_told_of_removals_since(house, client):
    client.get("/v1/changes?name=main")
    house.shelf.remove("page")
    assert [row["op"] for row in client.get("/v1/changes?name=main").json()["changes"]] == ["remove"]


def test_a_cursor_that_is_none_is_not_kept(house, client):
    problem(client.put("/v1/cursors/main", json={"cursor": "x"}), 422, "bad-cursor")
    for body in ({}, {"cursor": 5}, {"cursor": "x" * 1001}, [], "x"):
        problem(client.put("/v1/cursors/main", json=body), 422, "bad-parameter")
    problem(client.get("/v1/cursors/main"), 404, "not-there")


def test_a_cursor_with_a_selection_that_is_none_is_not_kept(house, client):
    begun = Position.parse(client.get("/v1/changes?limit=0").json()["cursor"])
    strange = str(replace(begun, selection="é" * 100))
    problem(client.put("/v1/cursors/main", json={"cursor": strange}), 422, "bad-cursor")
    problem(client.get("/v1/cursors/main"), 404, "not-there")


def test_a_body_that_is_too_large_is_not_taken(house, client):
    parts = (b"x" * 1000 for _ in range(100))
    assert client.put("/v1/cursors/main", content=parts).status_code == 413
    assert client.put("/v1/cursors/main", content=b"x" * 100_000).status_code == 413


# --- health and metrics -------------------------------------------------------------------------------


def test_health_needs_no_token_and_tells_nothing_but_whether_it_works(house):
    with house.client(token="") as client:
        assert (client.get("/healthz").status_code, client.get("/healthz").text) == (200, "ok\n")
        house.shelf.trouble = StoreUnavailable("lost connection to db.internal")
        assert (client.get("/healthz").status_code, client.get("/healthz").text) == (503, "not ok\n")


def test_a_database_that_hangs_is_not_waited_for(house, monkeypatch):
    monkeypatch.setattr("lcc_scrapy.web.health.PATIENCE", 0.1)
    go_on = threading.Event()
    hung = []
    house.shelf.head = lambda: hung.append(go_on.wait(60))
    with house.client(token="") as client:
        assert [client.get("/healthz").status_code for _ in range(3)] == [503] * 3
        assert hung == [], "it answered while the database hung"
        go_on.set()


def test_metrics_are_for_who_has_a_token_for_them(house):
    house.measures = [
        Measure("lcc_queue_urls", "URLs", [((), 5.0)]),
        Measure(
            "lcc_fetches",
            "Fetches",
            [(("stored", "0"), 7.0), (('a"b\n', "404"), 1.0)],
            ("outcome", "code"),
            counter=True,
        ),
    ]
    with house.client(house.token(scopes=METRICS)) as client:
        answer = client.get("/metrics")
        assert answer.headers["content-type"].startswith("text/plain")
        assert "lcc_queue_urls 5.0\n" in answer.text
        assert 'lcc_fetches_total{code="0",outcome="stored"} 7.0\n' in answer.text or (
            'lcc_fetches_total{outcome="stored",code="0"} 7.0\n' in answer.text
        )
        assert 'a\\"b\\n' in answer.text
        problem(client.get("/v1/changes"), 403, "not-allowed")
    with house.client(house.token(scopes=READ)) as client:
        problem(client.get("/metrics"), 403, "not-allowed")
    with house.client(token="") as client:
        problem(client.get("/metrics"), 401, "unauthorized")


# --- everything ---------------------------------------------------------------------------------------


def test_what_the_lcc_writes_is_compressed_and_contents_are_not(house, client):
    for number in range(50):
        house.shelf.add(f"page{number}")
    with client.stream("GET", "/v1/changes", headers={"Accept-Encoding": "gzip"}) as answer:
        assert answer.headers["content-encoding"] == "gzip"
        assert len(json.loads(gzip.decompress(b"".join(answer.iter_raw())))["changes"]) == 51
    for spelling in (path(house.row), path(house.row) + "/"):
        answer = client.get(spelling, headers={"Accept-Encoding": "gzip"})
        assert (answer.status_code, answer.content) == (200, BODY)
        assert "content-encoding" not in answer.headers


def test_the_description_is_for_everybody_and_its_page_runs_nothing(house):
    with house.client(token="") as client:
        described = client.get("/openapi.json").json()
        assert "/v1/documents/{docid}/content" in described["paths"]
        page = client.get("/docs")
        assert all(path in page.text for path in described["paths"])
        assert "<script" not in page.text
        assert "script-src" not in page.headers["content-security-policy"]
        assert "default-src 'none'" in page.headers["content-security-policy"]


def test_the_description_has_all_columns_of_a_row(house):
    row = house.app.openapi()["components"]["schemas"]["Row"]
    assert tuple(row["properties"]) == COLUMNS
    assert set(row["required"]) == set(COLUMNS)


def test_a_method_that_a_path_does_not_take_is_told_those_that_it_does(house, client):
    for url, operations in house.app.openapi()["paths"].items():
        answer = client.request("PATCH", url.format(docid=house.row.docid, name="x", seq=1))
        problem(answer, 405, "method-not-allowed")
        assert answer.headers["allow"].lower().split(", ") == sorted(operations)
    assert client.post("/openapi.json").headers["allow"]


def test_every_route_that_tells_something_wants_a_token(house):
    open_to_all = {"/healthz", "/docs", "/openapi.json", "/"}
    with house.client(token="") as client:
        described = client.get("/openapi.json").json()["paths"]
        for url, operations in described.items():
            for method in operations:
                answer = client.request(method, url.format(docid=house.row.docid, name="x", seq=1))
                assert answer.status_code == 401 or url in open_to_all, (method, url)


def test_a_token_is_in_no_log_and_neither_is_the_query(house, client, caplog):
    caplog.set_level("DEBUG")
    secret = house.token()
    client.get("/v1/changes", headers={"Authorization": f"Bearer {secret}"})
    problem(client.get("/v1/changes", params={"token": secret}), 422, "bad-parameter")
    wrong = new_secret()
    client.get("/v1/changes", headers={"Authorization": f"Bearer {wrong}"})
    ours = [record.getMessage() for record in caplog.records if record.name.startswith("lcc_scrapy")]
    assert any("GET /v1/changes 200" in line for line in ours)
    assert not any(secret in line or wrong in line for line in ours)


def test_an_error_of_ours_is_500_and_tells_nothing(house):
    house.shelf.trouble = RuntimeError("at db.internal")
    from starlette.testclient import TestClient

    shown = {"Authorization": f"Bearer {house.token()}"}
    with TestClient(house.app, headers=shown, raise_server_exceptions=False) as client:
        answer = client.get("/v1/changes")
        assert "db.internal" not in problem(answer, 500, "bug")


@settings(max_examples=20)
@given(st.text(max_size=40), st.text(max_size=40))
def test_no_path_and_no_header_does_harm(name, value):
    house = WebHouse()
    house.shelf.add("page", BODY)
    with house.client() as client:
        shown = (
            value.encode("utf-8", "surrogatepass").replace(b"\r", b"").replace(b"\n", b"").replace(b"\0", b"")
        )
        answer = client.get(
            f"/v1/documents/{house.shelf.told[0].docid}/content",
            headers={b"Range": shown, b"If-Match": shown},
        )
        assert answer.status_code in {200, 206, 412, 416}
        from urllib.parse import quote

        odd = quote(name, safe="", errors="surrogatepass")
        assert client.get(f"/v1/documents/{odd}").status_code in {404, 422, 307, 200}
        assert client.get(f"/v1/cursors/{odd}").status_code in {404, 422, 307, 200}
