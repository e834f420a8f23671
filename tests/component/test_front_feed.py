"""The feed of a front: real answers of ``lcc web`` over memory, sub-LCCs that fail in every way, and moves."""

import json
import threading
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, urlsplit

import pytest
from starlette.testclient import TestClient
from web_house import SITE, WebHouse

from lcc_scrapy.apps.query.answering import DOCUMENT
from lcc_scrapy.apps.query.front import DOCIDS, DOCIDS_MAX, FrontSource
from lcc_scrapy.apps.query.wire.messages import Missing
from lcc_scrapy.domain.cache import CachedUrl, UrlMeta
from lcc_scrapy.domain.cursor import BadCursor, Position, StartOver
from lcc_scrapy.domain.errors import ConfigurationError, LccError, Refusal
from lcc_scrapy.domain.front import SubLcc
from lcc_scrapy.domain.front_cursor import FrontPosition
from lcc_scrapy.domain.front_moves import Move
from lcc_scrapy.domain.http_serving import Bounds
from lcc_scrapy.domain.selection import Selection
from lcc_scrapy.domain.tokens import Token, digest_of, new_secret
from lcc_scrapy.feed.content import ContentElsewhere, ContentGone
from lcc_scrapy.front import feed as feed_module
from lcc_scrapy.front.content_user import FrontChanges
from lcc_scrapy.front.directory import Directory
from lcc_scrapy.front.feed import FIRST_REST, FrontFeed, FrontReader
from lcc_scrapy.front.silent import Silent
from lcc_scrapy.front.sub_http import SubFailed
from lcc_scrapy.front.tokens import FrontTokens
from lcc_scrapy.front.web import Front as WebFront
from lcc_scrapy.front.web import make_app

EVERYTHING = Selection()


class Sub(WebHouse):
    """A sub-LCC in memory behind a real socket. ``trouble`` answers instead of it."""

    def __init__(self, name, folder, pid):
        super().__init__()
        self.name, self.pid, self.trouble = name, pid, None
        self.shelf.lcc = f"lcc-{name}"
        self.requests = []
        self.token_file = folder / f"token-{name}"
        self.token_file.write_text(self.token())
        self._lock = threading.Lock()

    @contextmanager
    def serving(self):
        sub = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def log_message(self, *_):
                pass

            def do_GET(self):
                status, body = sub.answer(self.path, dict(self.headers))
                self.send_response(status)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

        server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        server.daemon_threads = True
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        try:
            with self.client(token="") as self.inner:
                yield f"http://127.0.0.1:{server.server_port}"
        finally:
            server.shutdown()
            thread.join(60)
            server.server_close()

    def answer(self, path, headers):
        self.requests.append(path)
        if self.trouble is not None:
            return self.trouble()
        with self._lock:
            shown = {name: value for name, value in headers.items() if name in {"Authorization", "If-Match"}}
            answer = self.inner.get(path, headers=shown)
        return answer.status_code, answer.content

    def add(self, name, **values):
        return self.shelf.add(name, pid=self.pid, **values)


class Front:
    def __init__(self, folder, subs, urls):
        self.now = 0.0
        self.directory = Directory(f"sqlite:///{folder}/front.sqlite")
        self.directory.create()
        for sub, url in zip(subs, urls, strict=True):
            self.make_known(sub, url)
        self.feed = FrontFeed(self.directory, 60.0, lambda: self.now)

    def make_known(self, sub, url):
        row = SubLcc(sub.name, "127.0.0.1:9", sub.shelf.lcc, url, str(sub.token_file))
        self.directory.add(row)
        self.directory.assign(sub.pid, sub.name)

    def read(self, since=None, **options):
        """Read to the end; returns the reader and the names of what was told."""
        since = FrontPosition.parse(since) if since else None
        reader = FrontReader(self.feed, options.pop("selection", EVERYTHING), since, **options)
        told = [(row.op, row.pid, row.curl.removeprefix(SITE)) for page in reader.pages() for row in page]
        return reader, sorted(told)


@pytest.fixture
def subs(tmp_path):
    made = [Sub(name, tmp_path, pid) for pid, name in enumerate("abc", 1)]
    with made[0].serving() as first, made[1].serving() as second, made[2].serving() as third:
        for sub, url in zip(made, (first, second, third), strict=True):
            sub.url = url
        yield made


@pytest.fixture
def front(tmp_path, subs):
    made = Front(tmp_path, subs[:2], [sub.url for sub in subs[:2]])
    yield made
    made.feed.close()
    made.directory.close()


def test_all_sub_lccs_are_told_once_and_then_what_changed(front, subs):
    a, b, _ = subs
    a.add("x"), a.add("y"), b.add("x")
    reader, told = front.read()
    assert told == [("upsert", 1, "x"), ("upsert", 1, "y"), ("upsert", 2, "x")]
    assert front.read(str(reader.position))[1] == []
    b.add("x", body=b"new"), a.shelf.remove("y", pid=1)
    reader, told = front.read(str(reader.position))
    assert told == [("remove", 1, "y"), ("upsert", 2, "x")]
    assert (reader.failed, reader.start_over) == ({}, {})


def test_rows_are_the_same_as_the_sub_lccs_own_and_name_the_url_of_the_content(front, subs):
    a = subs[0]
    row = a.add("x", subtype="lang:en")
    own = json.loads(a.inner.get("/v1/changes", headers=_shown(a)).content)["changes"]
    reader = FrontReader(front.feed, EVERYTHING)
    (page,) = reader.pages()
    assert reader.records(page) == [{**own[0], "path": f"{a.url}/v1/documents/{row.docid}/content"}]


def test_whole_rows_have_all_columns_and_the_answers_of_their_sites(front, subs):
    a, b, _ = subs
    kept = [
        a.add("x", len=9, md5="0" * 32, etag='"x"', last_modified="yesterday", final_url=SITE + "to"),
        b.add("y", origin="spider", subtype="lang:en", mtime=5),
    ]
    a.add("gone"), a.shelf.remove("gone", pid=1)
    a.shelf.heads = {
        kept[0].urlkey: UrlMeta(kept[0].urlkey, "HTTP/1.1 200 OK", '[["A", "\\udc80"]]', "::1", 7)
    }
    reader = FrontReader(front.feed, EVERYTHING, whole=True)
    found, answers = [], {}
    for page in reader.pages():
        found += page
        answers |= reader.answers([row for row in page if isinstance(row, CachedUrl)])
        assert reader.answers(kept).keys() <= {row.urlkey for row in page}
    told = {name: {row.urlkey: getattr(row, name) for row in kept} for name in DOCUMENT}
    assert {
        name: {row.urlkey: getattr(row, name) for row in found if row.op == "upsert"} for name in DOCUMENT
    } == told
    assert [row.op for row in found].count("remove") == 1
    assert answers == a.shelf.heads
    assert FrontReader(front.feed, EVERYTHING).answers(found) == {}


@pytest.mark.parametrize(
    "headers", ["nonsense", "{}", "[1]", '[["a"]]', '[["a", 1]]', '[["a", "b", "c"]]', "[" * 100_000, None]
)
def test_an_answer_of_a_site_that_is_none_is_not_believed(front, subs, headers):
    row = subs[0].add("x")
    subs[0].shelf.heads = {row.urlkey: UrlMeta(row.urlkey, "HTTP/1.1 200 OK", headers, "", 7)}
    reader = FrontReader(front.feed, EVERYTHING, whole=True)
    assert list(reader.pages()) == []
    assert "its answer is none" in reader.failed["a"]


def _ids(*lines, lcc="lcc-a", documents=None, selection=EVERYTHING):
    listed = [{"docid": f"{number:032x}", "seq": number} for number in lines]
    cursor = str(Position(lcc, 1, 9, 9, selection.digest))
    end = [{"op": "end", "cursor": cursor, "documents": documents}] if documents is not None else []
    return "".join(json.dumps(one) + "\n" for one in [*listed, *end]).encode()


def test_the_ids_of_a_sub_lcc_are_told_as_they_come(front, subs):
    subs[0].trouble = lambda: (200, _ids(1, 2, 9, documents=3))
    assert [seq for _, seq in front.feed.ids(front.directory.sub("a"), EVERYTHING)] == [1, 2, 9]


@pytest.mark.parametrize(
    ("said", "why"),
    [
        (_ids(1, 2), "without an end"),
        (_ids(2, 1, documents=2), "not in order"),
        (_ids(1, 1, documents=2), "not in order"),
        (_ids(1, documents=2), "1 ids of 2"),
        (_ids(1, lcc="other", documents=1), "LCC other answers there"),
        (_ids(1, documents=1, selection=Selection((7,))), "restricted"),
        (b'{"docid": "xyz", "seq": 1}\n', "sub-LCC a"),
        (b'{"docid": "' + b"A" * 32 + b'", "seq": 1}\n', "docid"),
        (b'{"op": "end", "cursor": "x", "documents": 0}\n', "sub-LCC a"),
        (b"[" * 4000 + b"\n", "sub-LCC a"),
        (b" " * 10_000, "more than 4096"),
        (b"nonsense\n", "sub-LCC a"),
    ],
)
def test_a_list_of_ids_that_is_none_is_not_believed(front, subs, said, why):
    subs[0].trouble = lambda: (200, said)
    with pytest.raises(SubFailed, match=why):
        list(front.feed.ids(front.directory.sub("a"), EVERYTHING))


def test_a_list_is_not_begun_without_all_sub_lccs_and_has_no_good_end_once_a_provider_moved(front, subs):
    a, b, _ = subs
    a.add("x"), b.add("x")
    source = FrontSource(front.feed, Silent())
    listed = source.inventory(EVERYTHING)
    assert len([one for page in listed.pages for one in page]) == 2
    listed = source.inventory(EVERYTHING)
    front.directory.put_move(Move(1, 1, "lcc-a", "lcc-b", 1, 2))
    with pytest.raises(Refusal, match="has moved"):
        list(listed.pages)
    b.trouble = lambda: (500, b"")
    with pytest.raises(Refusal, match="without sub-LCC b"):
        source.inventory(EVERYTHING)


def test_a_sub_lcc_that_fails_while_rows_are_found_is_missing(front, subs):
    a, b, _ = subs
    keys = [a.add("x").urlkey, b.add("y").urlkey]
    source = FrontSource(front.feed, Silent())
    found = source.rows(EVERYTHING, keys)
    b.trouble = lambda: (500, b"")
    assert [row.urlkey for rows, _ in found.pages for row in rows] == keys[:1]
    assert source.missing(found) == [Missing("b")]


def test_so_many_documents_that_other_readers_would_have_to_wait_are_not_looked_for(front, subs):
    source, asked = FrontSource(front.feed, Silent()), len(subs[0].requests)
    with pytest.raises(Refusal, match="at a time"):
        source.rows(EVERYTHING, [number.to_bytes(16) for number in range(DOCIDS_MAX + 1)])
    assert len(subs[0].requests) == asked
    found = source.rows(EVERYTHING, [number.to_bytes(16) for number in range(DOCIDS_MAX)])
    assert list(found.pages) == [([], {})] * (DOCIDS_MAX // DOCIDS)


def _shown(sub):
    return {"Authorization": f"Bearer {sub.token_file.read_text()}"}


def test_filters_are_those_of_every_sub_lcc_and_belong_to_the_cursor(front, subs):
    subs[0].add("x"), subs[0].add("y", mimetype="application/pdf"), subs[1].add("z", mimetype="text/plain")
    text = Selection(mimetypes=("text/*",), url_prefixes=(SITE,), since=5)
    reader, told = front.read(selection=text)
    assert told == [("upsert", 1, "x"), ("upsert", 2, "z")]
    with pytest.raises(BadCursor, match="same filters"):
        front.read(str(reader.position))
    assert front.read(str(reader.position), selection=text)[1] == []


def test_a_limit_ends_the_reading_and_the_rest_comes_next(front, subs, monkeypatch):
    monkeypatch.setattr(feed_module, "PAGE", 3)
    for number in range(5):
        subs[0].add(f"{number}"), subs[1].add(f"{number}")
    since, everything = None, []
    for _ in range(4):
        reader, told = front.read(since, limit=3)
        everything += told
        since = str(reader.position)
    assert len(everything) == len(set(everything)) == 10
    assert front.read(since)[1] == []


def test_who_stops_in_the_middle_goes_on_behind_the_last_change_that_is_over(front, subs):
    for number in range(5):
        subs[0].add(f"{number}")
    changes = FrontChanges(FrontReader(front.feed, EVERYTHING))
    taken = [row.curl for row, _ in zip(changes, range(3), strict=False)]
    assert [row[2] for row in front.read(str(changes.position))[1]] == ["3", "4"]
    assert taken == [f"{SITE}{number}" for number in range(3)]
    assert len(list(changes)) == 1
    assert front.read(str(changes.position))[1] == []


@pytest.mark.parametrize(
    ("trouble", "said"),
    [
        (lambda: (500, b"oops"), "answers 500"),
        (lambda: (401, b'{"detail": "send a valid token"}'), "send a valid token"),
        (lambda: (200, b"<html>"), "its answer is none"),
        (lambda: (200, b"[" * 100_000), "its answer is none"),
        (lambda: (200, b"{}"), "its answer is none"),
        (lambda: (200, b" " * 200_000), "more than"),
        (
            lambda: (200, json.dumps({"changes": [], "cursor": "x", "more": False, "moved": {}}).encode()),
            "none",
        ),
    ],
)
def test_a_sub_lcc_that_fails_is_named_and_its_part_stays(front, subs, trouble, said):
    a, b, _ = subs
    a.add("x"), b.add("x")
    since = str(front.read()[0].position)
    a.add("y"), b.add("y")
    b.trouble = trouble
    if said == "more than":
        b.trouble = lambda: (200, b" " * (feed_module.PAGE * 49 * 1024 + 200_000))
    reader, told = front.read(since)
    assert told == [("upsert", 1, "y")]
    assert reader.failed.keys() == {"b"}
    assert said in reader.failed["b"]
    assert reader.position.part("lcc-b") == FrontPosition.parse(since).part("lcc-b")
    b.trouble = None
    assert front.read(str(reader.position))[0].failed  # it is let rest
    front.now += FIRST_REST
    reader, told = front.read(str(reader.position))
    assert (told, reader.failed) == ([("upsert", 2, "y")], {})


@pytest.mark.parametrize("status", [400, 413, 414, 422, 429, 431])
def test_a_request_that_is_refused_lets_nobody_else_do_without_the_sub_lcc(front, subs, status):
    a, b, _ = subs
    a.add("x"), b.add("x")
    since = str(front.read()[0].position)
    a.add("y"), b.add("y")
    b.trouble = lambda: (status, b'{"detail": "your head is too long"}')
    assert front.read(since)[0].failed.keys() == {"b"}
    b.trouble = None
    assert front.read(since)[0].failed == {}
    assert front.feed.find(front.directory.sub("b"), [b.shelf.told[-1].docid]).result()


@pytest.mark.parametrize("whole", [False, True])
def test_no_more_is_asked_for_than_is_wanted(front, subs, whole):
    for number in range(9):
        subs[0].add(f"{number}"), subs[1].add(f"{number}")
    front.read(limit=1, whole=whole)
    asked = [int(parse_qs(urlsplit(path).query)["limit"][0]) for sub in subs for path in sub.requests]
    assert set(asked) == {0, 1}
    everything, since = [], None
    for _ in range(9):
        reader, told = front.read(since, limit=2, whole=whole)
        everything, since = everything + told, str(reader.position)
    assert len(set(everything)) == len(everything) == 18


def test_one_that_cannot_be_connected_to_or_that_nobody_can_ask_is_named(front, subs):
    subs[0].add("x")
    front.directory.change(SubLcc("b", "127.0.0.1:9", "lcc-b", "http://127.0.0.1:1", str(subs[1].token_file)))
    front.directory.add(SubLcc("n", "127.0.0.1:9", "lcc-n"))
    front.directory.add(SubLcc("t", "127.0.0.1:9", "lcc-t", "http://127.0.0.1:1", "/there/is/none"))
    reader, told = front.read()
    assert told == [("upsert", 1, "x")]
    assert reader.failed.keys() == {"b", "n", "t"}
    assert "--token-file" in reader.failed["n"]
    assert "/there/is/none" in reader.failed["t"]


def test_a_slow_sub_lcc_holds_up_none_of_the_others(front, subs, monkeypatch):
    monkeypatch.setattr(feed_module, "PAGE", 1)
    a, b, _ = subs
    since = str(front.read()[0].position)
    let_go = threading.Event()
    b.trouble = lambda: (let_go.wait(300), (503, b""))[1]
    for number in range(5):
        a.add(f"{number}")
    pages = FrontReader(front.feed, EVERYTHING, FrontPosition.parse(since)).pages()
    try:
        assert [next(pages)[0].curl for _ in range(5)] == [f"{SITE}{number}" for number in range(5)]
    finally:
        let_go.set()
    assert list(pages) == []


def test_another_lcc_at_the_address_or_a_restricted_token_is_no_answer(front, subs):
    a, b, _ = subs
    a.shelf.lcc = "lcc-other"
    b.token_file.write_text(b.token("small", providers="2"))
    reader, told = front.read()
    assert told == []
    assert "lcc-other answers there" in reader.failed["a"]
    assert "restricted" in reader.failed["b"]


def test_a_sub_lcc_that_was_restored_is_started_over_alone_and_only_when_that_is_asked_for(front, subs):
    a, b, _ = subs
    a.add("x"), b.add("x")
    since = str(front.read()[0].position)
    b.shelf.generation = 2
    a.add("y")
    reader, told = front.read(since)
    assert told == [("upsert", 1, "y")]
    assert reader.start_over.keys() == {"b"}
    since = str(reader.position)
    assert front.read(since)[0].start_over.keys() == {"b"}
    reader, told = front.read(since, anew=["b"])
    assert (told, reader.start_over) == ([("upsert", 2, "x")], {})
    assert front.read(str(reader.position))[1] == []
    with pytest.raises(ConfigurationError, match="no sub-LCC q: it has a, b"):
        front.read(since, anew=["q"])


def test_one_that_is_added_is_read_from_its_start_and_one_that_is_removed_is_dropped(front, subs):
    a, b, c = subs
    a.add("x"), b.add("x"), c.add("x")
    since = str(front.read()[0].position)
    front.make_known(c, c.url)
    front.directory.withdraw(2)
    front.directory.remove("b")
    reader, told = front.read(since)
    assert told == [("upsert", 3, "x")]
    assert [part.position.lcc for part in reader.position.parts] == ["lcc-a", "lcc-c"]


def test_the_first_cursor_is_there_before_the_first_row(front, subs):
    subs[0].add("x")
    reader = FrontReader(front.feed, EVERYTHING)
    assert all(part.since for part in reader.position.parts)
    assert reader.position.part("lcc-a").position.began == 1
    assert front.read(str(reader.position))[1] == [("upsert", 1, "x")]


def test_a_front_without_sub_lccs_or_with_one_of_unknown_id_says_what_to_do(tmp_path):
    front = Front(tmp_path, [], [])
    with pytest.raises(ConfigurationError, match="lcc front add"):
        front.read()
    front.directory.add(SubLcc("n", "127.0.0.1:9"))
    with pytest.raises(ConfigurationError, match="front set n` its --web"):
        front.read()
    front.feed.close()


def test_a_cursor_of_another_front_is_refused(front):
    with pytest.raises(StartOver, match="another front"):
        front.read(str(FrontPosition().within(["lcc-q"])))


def test_contents_come_from_the_sub_lcc_of_their_provider(front, subs):
    a, b, _ = subs
    rows = [a.add("x", body=b"one"), b.add("x", body=b"two")]
    assert [front.feed.open(row).read() for row in rows] == [b"one", b"two"]
    a.add("x", body=b"newer")
    with pytest.raises(ContentGone, match="read on"):
        front.feed.open(rows[0])
    b.shelf.remove("x", pid=2)
    with pytest.raises(ContentGone, match="read on"):
        front.feed.open(rows[1])
    a.trouble = lambda: (503, b"")
    with pytest.raises(ContentElsewhere, match="sub-LCC a answers 503"):
        front.feed.open(rows[0])
    front.directory.change(SubLcc("a", "127.0.0.1:9", "lcc-a"))
    with pytest.raises(ContentElsewhere, match="--web"):
        front.feed.open(rows[0])


def test_a_provider_that_moves_is_told_neither_twice_nor_too_little(front, subs):
    a, b, _ = subs
    a.add("x")
    since = str(front.read()[0].position)
    a.add("y"), b.add("z")
    source = a.shelf.seq
    assert front.directory.oldest_open_move() == front.directory.newest_move() == 0
    front.directory.put_move(Move(1, 1, "lcc-a", "lcc-b", source))
    for was, name in ((1, "x"), (2, "y")):
        b.shelf.came[b.shelf.add(name, pid=1).seq] = ((1, was),)
    fresh = str(front.read()[0].position)  # of somebody who begins meanwhile
    assert front.directory.oldest_open_move() == 1
    a.shelf.top, a.shelf.told = source, []
    front.directory.put_move(Move(1, 1, "lcc-a", "lcc-b", source, b.shelf.seq))
    assert front.directory.oldest_open_move() == 0
    reader, told = front.read(since)
    assert told == [("upsert", 1, "y"), ("upsert", 2, "z")]
    assert (reader.position.moves, reader.position.notes) == (1, ())
    assert front.read(str(reader.position))[1] == front.read(fresh)[1] == []
    assert front.read()[1] == [("upsert", 1, "x"), ("upsert", 1, "y"), ("upsert", 2, "z")]


def test_what_was_read_of_a_source_that_is_removed_since_is_not_told_by_the_target(front, subs):
    a, b, _ = subs
    a.add("x"), b.add("z")
    since = str(front.read()[0].position)
    front.directory.put_move(Move(1, 1, "lcc-a", "lcc-b", a.shelf.seq, 2))
    b.shelf.came[b.shelf.add("x", pid=1).seq] = ((1, 1),)
    front.directory.withdraw(1)
    front.directory.remove("a")
    assert front.read(since)[1] == []


# --- the HTTP API -------------------------------------------------------------------------------------


@pytest.fixture
def client(front):
    """A client with a token, and one without."""
    tokens, secret = FrontTokens(front.directory), new_secret()
    tokens.add(Token(digest_of(secret), "indexer", "read", "", "", 1))
    app = make_app(WebFront(front.feed, tokens, Bounds(refusal_delay=0.0)))
    with TestClient(app, headers={"Authorization": f"Bearer {secret}"}) as made:
        yield made


def test_http_tells_the_same_with_contents_and_partial_answers(front, subs, client):
    a, b, _ = subs
    a.add("x", body=b"one"), b.add("y", body=b"two")
    first = client.get("/v1/changes?limit=0").json()
    assert (first["changes"], first["more"]) == ([], False)
    found = client.get("/v1/changes", params={"since": first["cursor"]}).json()
    assert sorted(row["curl"] for row in found["changes"]) == [f"{SITE}x", f"{SITE}y"]
    contents = {client.get(row["path"]).content for row in found["changes"]}
    assert contents == {b"one", b"two"}
    ranged = client.get(found["changes"][0]["path"], headers={"Range": "bytes=1-2"})
    assert (ranged.status_code, len(ranged.content)) == (206, 2)
    a.add("z"), a.shelf.remove("x", pid=1)
    b.trouble = lambda: (500, b"")
    found = client.get("/v1/changes", params={"since": found["cursor"]}).json()
    assert {(row["op"], row["path"] is None) for row in found["changes"]} == {
        ("upsert", False),
        ("remove", True),
    }
    assert (found["failed"], found["start_over"]) == (["b"], [])
    a.shelf.generation = 2
    found = client.get("/v1/changes", params={"since": found["cursor"]}).json()
    assert found["start_over"] == ["a"]
    found = client.get("/v1/changes", params={"since": found["cursor"], "anew": "a"}).json()
    assert [row["curl"] for row in found["changes"] if row["op"] == "upsert"] == [f"{SITE}z"]


def test_http_says_when_there_is_more(front, subs, client):
    for number in range(3):
        subs[0].add(f"{number}")
    found = client.get("/v1/changes?limit=2").json()
    assert (len(found["changes"]), found["more"]) == (2, True)
    found = client.get("/v1/changes", params={"since": found["cursor"], "limit": 2}).json()
    assert (len(found["changes"]), found["more"]) == (1, False)


@pytest.mark.parametrize(
    ("query", "status", "error"),
    [
        ("since=x", 422, "bad-cursor"),
        (f"since={FrontPosition().within(['lcc-q'])}", 410, "start-over"),
        ("anew=q", 422, "unprocessable"),
        ("limit=1001", 422, "bad-parameter"),
        ("providre=7", 422, "bad-parameter"),
    ],
)
def test_http_refuses_what_is_wrong_with_a_reason(client, query, status, error):
    answer = client.get(f"/v1/changes?{query}")
    assert answer.status_code == status
    assert answer.json()["error"].startswith(error)


def test_http_gives_nothing_without_a_token_that_admits_it(front, subs, client):
    row = subs[0].add("x")
    path = f"/v1/providers/1/documents/{row.docid}/content"
    assert client.get(path).status_code == 200
    assert client.get("/v1/changes", headers={"Authorization": ""}).status_code == 401
    assert client.get(path, headers={"Authorization": "Bearer x"}).status_code == 401
    tokens, secret = FrontTokens(front.directory), new_secret()
    tokens.add(Token(digest_of(secret), "small", "read", "2", "", 1))
    small = {"Authorization": f"Bearer {secret}"}
    assert client.get(path, headers=small).status_code == 404
    assert client.get("/v1/changes?provider=1", headers=small).status_code == 403
    gone = tokens.revoke(tokens.find(digest_of(secret)).tokenid)
    assert client.get("/v1/changes", headers=small).status_code == 401
    with pytest.raises(LccError, match="token list --front"):
        tokens.revoke(gone.tokenid)
    assert [one.used > 0 for one in tokens.all()] == [True]


def test_a_content_that_cannot_be_had_has_the_status_of_one_lcc(front, subs, client):
    a = subs[0]
    row = a.add("x")
    assert client.get(f"/v1/providers/2/documents/{row.docid}/content").status_code == 404
    assert client.get(f"/v1/providers/99/documents/{row.docid}/content").status_code == 404
    assert client.get(f"/v1/providers/{10**18}/documents/{row.docid}/content").status_code == 422
    a.trouble = lambda: (500, b"")
    answer = client.get(f"/v1/providers/1/documents/{row.docid}/content")
    assert (answer.status_code, answer.json()["error"]) == (503, "content-elsewhere")
    assert a.url not in answer.text
