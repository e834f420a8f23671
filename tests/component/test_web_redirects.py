"""``lcc web`` sends readers of contents to object storage: to whom, with what, and what the storage says then."""

import gzip
import io
import shutil
import socket
import subprocess
import time
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from urllib.error import HTTPError
from urllib.parse import parse_qs, urlsplit
from urllib.request import Request, urlopen

import pytest
from test_web_changes import problem
from web_house import WebHouse

from lcc_scrapy.apps.object_storage import objects
from lcc_scrapy.apps.object_storage.objects import ContentObjects
from lcc_scrapy.domain.cache import LazyBody
from lcc_scrapy.domain.front import SubLcc
from lcc_scrapy.feed.content import ContentElsewhere, StoredContent
from lcc_scrapy.feed.library import Library
from lcc_scrapy.feed.remote_content import OtherMachines
from lcc_scrapy.front.sub_http import SubHttp
from lcc_scrapy.http.blocking import Exchanges
from lcc_scrapy.web.app import make_app
from tests.harness import missing
from tests.s3_server import CREDENTIALS, s3_on_disk, s3_server

BODY = b"<script>document.title = 'ran'</script>" * 1000
SECONDS = 60


@pytest.fixture(autouse=True)
def credentials(monkeypatch):
    for name, value in CREDENTIALS.items():
        monkeypatch.setenv(name, value)


@pytest.fixture(scope="module")
def moto():
    with s3_server() as running:
        yield running.url


@pytest.fixture(scope="module")
def rclone(tmp_path_factory):
    with s3_on_disk(tmp_path_factory.mktemp("buckets")) as running:
        yield running.url


class RedirectingHouse(WebHouse):
    """An API whose contents are objects at a URL."""

    def __init__(self, url, seconds=SECONDS):
        super().__init__()
        self.objects = ContentObjects(url, 1)
        self.stored = StoredContent(self.objects)
        self.shelf.versions = lambda keys: {}
        self.lcc = replace(
            self.lcc,
            open=Library(self.shelf, self.stored).open,
            address=partial(self.stored.address, seconds=seconds),
        )
        self.app = make_app(self.lcc)
        self.row = self.add("page", BODY)

    def add(self, name, body, **values):
        row = self.shelf.add(name, body, **values)
        self.objects.keep([(row.fetched_fileid, LazyBody(body))])
        return row

    @property
    def path(self):
        return f"/v1/documents/{self.row.docid}/content"

    def get(self, path="", **headers):
        """Return the answer to a request, not that of where it leads to."""
        with self.client() as client:
            shown = {name.replace("_", "-"): value for name, value in headers.items()}
            return client.get(path or self.path, headers=shown, follow_redirects=False)

    def address(self):
        answer = self.get()
        assert answer.status_code == 302
        return answer.headers["location"]


@pytest.fixture(params=["moto", "rclone"])
def house(request, tmp_path):
    url = request.getfixturevalue(request.param)
    return RedirectingHouse(url.replace("/contents", f"/{tmp_path.name}"))


@pytest.fixture
def strict(rclone, tmp_path):
    """The house whose server looks at signatures."""
    return RedirectingHouse(rclone.replace("/contents", f"/{tmp_path.name}"))


def read(address, **headers):
    """Return status, headers and body, as any program gets them."""
    request = Request(address, headers={name.replace("_", "-"): value for name, value in headers.items()})
    try:
        with urlopen(request, timeout=60) as answer:
            return answer.status, answer.headers, answer.read()
    except HTTPError as error:
        return error.code, error.headers, error.read()


# --- who is sent there ----------------------------------------------------------------------------------


def test_a_content_is_read_from_the_storage_without_a_token(house):
    answer = house.get()
    assert (answer.status_code, answer.content) == (302, b"")
    assert answer.headers["cache-control"] == "no-store"
    assert answer.headers["referrer-policy"] == "no-referrer"
    status, told, body = read(answer.headers["location"])
    assert (status, body, told["content-length"]) == (200, BODY, str(len(BODY)))


def test_no_browser_is_to_render_what_the_storage_sends(house):
    large = house.add("large", b"<script>" + bytes(objects.PART + 1))  # in parts
    for path in (house.path, f"/v1/documents/{large.docid}/content"):
        told = read(house.get(path).headers["location"])[1]
        assert told["content-disposition"] == "attachment"
        assert told["content-type"] == "application/octet-stream"


def test_a_range_is_repeated_there(house):
    answer = house.get(Range="bytes=10-19")
    assert answer.status_code == 302
    _, told, body = read(answer.headers["location"], Range="bytes=10-19")
    assert (body, told["content-range"]) == (BODY[10:20], f"bytes 10-19/{len(BODY)}")


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"Range": "bytes=1-2, 4-5"}, 200),
        ({"Range": "lines=1-2"}, 200),
        ({"Range": f"bytes={len(BODY)}-"}, 416),
        ({"Range": "bytes=0-9", "If_Range": "{tag}"}, 206),
        ({"Range": "bytes=0-9", "If_Range": '"x"'}, 200),
        ({"If_Match": "{tag}"}, 200),
        ({"If_Match": '"x"'}, 412),
        ({"If_None_Match": "{tag}"}, 304),
        ({"If_None_Match": "*"}, 304),
        ({"If_Modified_Since": "Sat, 21 Nov 2026 18:30:03 GMT"}, 200),
        ({"If_Unmodified_Since": "Sat, 21 Nov 2020 18:30:03 GMT"}, 200),
    ],
)
def test_what_the_storage_would_understand_otherwise_is_answered_here(strict, headers, status):
    tag = f'"{strict.row.sha256}"'
    answer = strict.get(**{name: value.format(tag=tag) for name, value in headers.items()})
    assert (answer.status_code, "location" in answer.headers) == (status, False)
    assert status != 200 or answer.content == BODY


def test_a_tag_of_the_storage_is_for_the_storage(house):
    tag = read(house.address())[1]["etag"]
    answer = house.get(If_None_Match=tag)
    assert answer.status_code == 302
    assert read(answer.headers["location"], If_None_Match=tag)[0] == 304


def test_head_is_answered_here_as_before(house):
    with house.client() as client:
        answer = client.head(house.path, follow_redirects=False)
    assert (answer.status_code, answer.headers["content-length"]) == (200, str(len(BODY)))
    assert answer.headers["etag"] == f'"{house.row.sha256}"'


def test_strangers_get_no_address(house):
    removed = house.add("removed", b"x")
    house.shelf.remove("removed")
    asked = []
    house.lcc = replace(house.lcc, address=asked.append)
    house.app = make_app(house.lcc)
    for token, path, status in (
        ("", house.path, 401),
        ("x", house.path, 401),
        (house.token(scopes="metrics"), house.path, 403),
        (house.token(providers="8"), house.path, 404),
        (house.token(mimetypes="text/plain"), house.path, 404),
        (house.token(expires=1), house.path, 401),
        (house.token(), f"/v1/documents/{'0' * 32}/content", 404),
        (house.token(), f"/v1/documents/{removed.docid}/content", 404),
    ):
        with house.client(token) as client:
            answer = client.get(path, follow_redirects=False)
        assert (answer.status_code, "location" in answer.headers) == (status, False), (token, path)
    assert asked == []


def test_whoever_may_read_some_providers_is_sent_to_their_contents(house):
    with house.client(house.token(providers="7")) as client:
        assert client.get(house.path, follow_redirects=False).status_code == 302


# --- what is opened instead -----------------------------------------------------------------------------


def test_without_the_setting_contents_are_passed_through(house):
    house.lcc = replace(house.lcc, address=WebHouse().lcc.address)
    house.app = make_app(house.lcc)
    assert (house.get().status_code, house.get().content) == (200, BODY)


def test_a_compressed_content_is_decoded_here(house):
    """Even one that has as many bytes as what it is decoded to."""
    packed = io.BytesIO()
    with gzip.GzipFile("x" * (len(BODY) - len(gzip.compress(BODY)) - 1), "wb", fileobj=packed) as file:
        file.write(BODY)
    assert len(packed.getvalue()) == len(BODY)
    row = house.shelf.add("packed", BODY, file_encoding="gzip")
    house.objects.keep([(row.fetched_fileid, LazyBody(packed.getvalue()))])
    answer = house.get(f"/v1/documents/{row.docid}/content")
    assert (answer.status_code, answer.content) == (200, BODY)


def test_an_object_that_is_no_attachment_is_passed_through(house):
    """As those that were put before they were called so."""
    key = objects.relative_name(1, house.row.fetched_fileid)
    house.objects._objects.put(key, BODY, attributes={"Content-Type": "text/html"})
    answer = house.get()
    assert (answer.status_code, answer.content) == (200, BODY)
    assert answer.headers["x-content-type-options"] == "nosniff"


def test_a_content_that_is_shorter_than_its_row_says_is_not_passed_for_whole(house, caplog):
    house.objects.keep([(house.row.fetched_fileid, LazyBody(BODY[:-1]))])
    assert "location" not in house.get().headers
    assert "shorter than its row says" in caplog.text


def test_a_content_that_is_not_there_is_an_error_here(house):
    house.objects.remove([house.row.fetched_fileid])
    problem(house.get(), 500, "content-lost")


def test_a_storage_that_is_away_is_an_error_here(monkeypatch):
    monkeypatch.setattr(objects, "RETRYING", 1)
    house = WebHouse()
    row = house.shelf.add("page", BODY)
    with socket.socket() as bound, house.client() as client:
        bound.bind(("127.0.0.1", 0))  # bound and not listening: connections are refused
        url = f"s3://lcc/x?endpoint=http://127.0.0.1:{bound.getsockname()[1]}"
        address = partial(StoredContent(ContentObjects(url, 0)).address, seconds=SECONDS)
        object.__setattr__(house.lcc, "address", address)
        answer = client.get(f"/v1/documents/{row.docid}/content", follow_redirects=False)
    assert answer.headers["retry-after"]
    assert "not-a-secret" not in problem(answer, 503, "storage-away")


# --- the signature --------------------------------------------------------------------------------------


def test_an_address_is_good_for_its_time_only(rclone, tmp_path):
    house = RedirectingHouse(rclone.replace("/contents", f"/{tmp_path.name}"), seconds=1)
    address = house.address()
    assert parse_qs(urlsplit(address).query)["X-Amz-Expires"] == ["1"]
    time.sleep(2.1)  # it is the server that looks at its clock
    assert read(address)[0] in {400, 403}


def test_an_address_is_good_for_one_content_and_as_it_is(strict):
    address, other = strict.address(), strict.add("other", b"x")
    assert read(address)[0] == 200
    parts = urlsplit(address)
    elsewhere = parts.path.rpartition("/")[0] + f"/{other.fetched_fileid}"
    for changed in (
        parts._replace(path=elsewhere),
        parts._replace(query=parts.query.replace("X-Amz-Expires=60", "X-Amz-Expires=600")),
        parts._replace(query=parts.query + "&response-content-type=text/html"),
        parts._replace(query=parts.query + "&response-content-disposition=inline"),
        parts._replace(query=""),
    ):
        assert changed != parts
        assert read(changed.geturl())[0] in {400, 403}, changed


def test_neither_secret_nor_address_is_in_a_log(house, caplog):
    caplog.set_level("DEBUG")
    address = house.address()
    assert parse_qs(urlsplit(address).query)["X-Amz-Signature"][0] not in caplog.text
    assert "not-a-secret" not in caplog.text + address
    ours = [record.getMessage() for record in caplog.records if record.name.startswith("lcc_scrapy")]
    assert any(f"GET {house.path} 302" in line for line in ours)


# --- clients --------------------------------------------------------------------------------------------


@contextmanager
def served(answer):
    """Run a server: ``answer`` makes status, headers and body of a path and headers. Gives its URL."""

    class Handler(BaseHTTPRequestHandler):
        def log_message(self, *_):
            pass

        def do_GET(self):
            status, headers, body = answer(self.path, self.headers)
            self.send_response(status)
            for name, value in {**headers, "Content-Length": str(len(body))}.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(body)

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}"
        finally:
            server.shutdown()
            thread.join(60)


@contextmanager
def on_a_port(house):
    """Serve an API. Gives its URL and a token for it."""
    kept = ("location", "etag", "content-type")

    def answer(path, headers):
        shown = {name: value for name, value in headers.items() if name in {"Authorization", "If-Match"}}
        got = client.get(path, headers=shown, follow_redirects=False)
        return got.status_code, {name: got.headers[name] for name in kept if name in got.headers}, got.content

    with house.client(token="") as client, served(answer) as url:
        yield url, house.token()


@contextmanager
def leading_astray():
    """Run a server that redirects everybody to another one. Gives its URL, and what the other was asked."""
    asked = []

    def note(_path, headers):
        asked.append(headers)
        return 200, {}, BODY

    with served(note) as other, served(lambda *_: (302, {"Location": f"{other}/x"}, b"")) as url:
        yield url, asked


def sub_lcc(url, token):
    return SubHttp(SubLcc("a", "", "an-lcc", url), token, Exchanges(2), 60.0)


def test_a_front_gets_contents_through_its_sub_lcc(strict):
    with on_a_port(strict) as (url, token), sub_lcc(url, token).open(strict.row) as content:
        assert content.read() == BODY


def test_our_own_clients_show_their_tokens_to_nobody_they_are_sent_to(strict):
    with leading_astray() as (url, asked):
        for client in (sub_lcc(url, "a-token"), OtherMachines(lambda _machine: url, "a-token")):
            with pytest.raises(ContentElsewhere, match="302"):
                client.open(strict.row)
        with pytest.raises(Exception, match="302"):
            sub_lcc(url, "a-token").document(strict.row.docid)
    assert asked == []


def test_curl_follows_and_leaves_its_token_behind(strict, tmp_path):
    curl = shutil.which("curl") or missing("curl", "apt-get install curl")
    with on_a_port(strict) as (url, token):
        shown = ("-H", f"Authorization: Bearer {token}")
        command = [curl, "-sSfL", *shown, "-o", str(tmp_path / "content"), url + strict.path]
        subprocess.run(command, check=True, timeout=60)
    assert (tmp_path / "content").read_bytes() == BODY


def test_a_program_in_python_keeps_its_token_as_the_documentation_says(strict):
    with on_a_port(strict) as (url, token):
        request = Request(url + strict.path)
        request.add_unredirected_header("Authorization", f"Bearer {token}")
        with urlopen(request, timeout=60) as answer:
            assert answer.read() == BODY
        # What urllib does with other headers: the storage sees the token, and refuses.
        assert read(url + strict.path, Authorization=f"Bearer {token}")[0] == 400
