"""``lcc front query`` as it is run: what sub-LCCs in processes of their own say, merged, over one socket."""

import json
import re
import signal
import subprocess
import time
from dataclasses import replace

import pytest
from front_house import PROGRAM, FrontHouse
from test_cli import SITE

from lcc_scrapy.apps.query.client import Rejected, ask, connect
from lcc_scrapy.apps.query.wire.messages import (
    Content,
    ContentEnds,
    Missing,
    Query,
    Reached,
    ResultBegins,
    ResultEnds,
    Row,
    Wanted,
    What,
)
from lcc_scrapy.cli.context import PARTIAL, START_OVER
from lcc_scrapy.domain.entries import Operation
from lcc_scrapy.domain.front import Moving
from lcc_scrapy.feed.store_feed import GENERATION
from lcc_scrapy.front.directory import Directory
from tests.forkserver import popen
from tests.harness import BIN, wait_for

pytestmark = pytest.mark.slow
PATH = "query.sock"


class Asked(FrontHouse):
    """A front with its query socket."""

    def serve(self):
        self.settings |= {"LCC_POLL": "0.1", "LCC_FRONT_PATIENCE": "60s"}
        self.log = self.folder / "query.log"
        words = ["front", "query", "--listen", f"unix:{PATH}", "--listen=tcp:0:interface=127.0.0.1"]
        with self.log.open("wb") as out:
            self.server = popen([str(BIN / "lcc"), *words], env=self.environment, cwd=self.folder, log=out)
        wait_for(lambda: "listening on" in self.log.read_text() or self.server.poll() is not None, 300)
        self.port = int(re.search(r"127\.0\.0\.1:(\d+)", self.log.read_text())[1])

    def said(self, query=Query(), place=""):  # noqa: B008 - it does not change
        with connect(place or str(self.folder / PATH)) as wire:
            return list(ask(wire, query))

    def close(self):
        self.server.send_signal(signal.SIGTERM)
        assert self.server.wait(300) == 0
        assert "Traceback" not in self.log.read_text()
        super().close()


@pytest.fixture
def front(tmp_path):
    made = Asked(tmp_path / "front")
    try:
        made.add_sub("a", 1)
        made.add_sub("b", 2)
        made.serve()
        yield made
    finally:
        made.close()


def of(said, kind):
    return [one for one in said if isinstance(one, kind)]


def told(said):
    return sorted((row.values["pid"], row.values["curl"].removeprefix(SITE)) for row in of(said, Row))


def own_rows(front):
    """Return what the sub-LCCs say themselves, by docid."""
    found = {}
    for sub in front.subs.values():
        path = sub.folder / "own.sock"
        with (sub.folder / "own.log").open("w") as out:
            words = [*PROGRAM, "query", "--listen", f"unix:{path}"]
            server = subprocess.Popen(words, env=sub.environment, cwd=sub.folder, stderr=out)
        try:
            wait_for(path.exists, 300)
            with connect(str(path)) as wire:
                found |= {row.values["docid"]: row for row in of(list(ask(wire, Query())), Row)}
        finally:
            server.terminate()
            server.wait(300)
    return found


def bodies_of(said):
    found, row, body = {}, None, b""
    for one in said:
        match one:
            case Row():
                row, body = one, b""
            case Content(data):
                body += data
            case ContentEnds():
                found[row.values["curl"]] = body
    return found


def test_rows_are_those_of_the_sub_lccs_column_by_column_with_contents(front):
    a, b = front.subs["a"], front.subs["b"]
    a.change("x", "é?y=1&z=2")
    b.change("x", "gone")
    b.push("gone", pid=2, operation=Operation.REMOVE)
    own = own_rows(front)
    said = front.said()
    assert {row.values["docid"]: row for row in of(said, Row)} == own
    assert len(own) == len(of(said, Row)) == 4
    first, last = said[0], said[-1]
    assert isinstance(first, ResultBegins)
    assert first.lcc == ""
    assert last == ResultEnds(last.position, 3, 1, 0)
    assert of(said, Reached)[-1].position == last.position
    assert of(said, Missing) == []
    inside = front.said(Query(content=Wanted.INSIDE, mimetypes=("text/*",)))
    assert bodies_of(inside) == {SITE + name: (SITE + name).encode() for name in ("x", "é?y=1&z=2")}
    assert told(front.said(Query(providers=(2,), limit=1))) in ([("2", "x")], [("2", "gone")])
    assert of(front.said(Query(since=last.position)), Row) == []
    assert len(of(front.said(Query(since=first.position)), Row)) == 4


def test_a_sub_lcc_that_is_down_is_missing_and_comes_next(front):
    a, b = front.subs["a"], front.subs["b"]
    a.change("x")
    b.change("x")
    since = front.said()[-1].position
    b.kill()
    a.change("y")
    b.change("y")
    said = front.said(Query(since=since))
    assert told(said) == [("1", "y")]
    assert of(said, Missing) == [Missing("b")]
    assert isinstance(said[-2], Missing)
    wait_for(lambda: "left out: sub-LCC b" in front.log.read_text(), 60)
    with pytest.raises(Rejected, match="without sub-LCC b"):
        front.said(Query(what=What.IDS))
    b.start()
    wait_for(lambda: told(front.said(Query(since=said[-1].position))) == [("2", "y")], 300)


def test_a_query_waits_for_a_change_of_any_sub_lcc(front):
    since = front.said()[-1].position
    begun = time.monotonic()
    with connect(str(front.folder / PATH)) as wire:
        answer = ask(wire, Query(since=since, wait=120))
        assert isinstance(next(answer), ResultBegins)
        front.subs["b"].change("x")
        assert told(list(answer)) == [("2", "x")]
    assert time.monotonic() - begun < 115
    quiet = Query(providers=(1,), wait=1)
    assert of(front.said(replace(quiet, since=front.said(quiet)[-1].position)), Row) == []


def test_ids_are_listed_by_docid_and_the_feed_goes_on_behind_them(front):
    a, b = front.subs["a"], front.subs["b"]
    a.change(*"xyz")
    b.change(*"xyz")
    rows = of(front.said(), Row)
    said = front.said(Query(what=What.IDS, providers=(1, 2)))
    listed = [(row.values["docid"], row.values["seq"]) for row in of(said, Row)]
    assert listed == sorted((row.values["docid"], row.values["seq"]) for row in rows)
    assert len(listed) == said[-1].documents == 6
    b.change("new")
    again = front.said(Query(since=said[-1].position, providers=(1, 2)))
    assert told(again) == [("2", "new")]
    directory = Directory(f"sqlite:///{front.data}/front.sqlite")
    moving = directory.sub("a"), directory.sub("b")
    begun = Moving(1, "a", "b", "active")
    directory.hold(begun)
    directory.copying(begun, moving[0].lccid, moving[1].lccid, 3)
    directory.close()
    with pytest.raises(Rejected, match="a provider moves"):
        front.said(Query(what=What.IDS))


def test_rows_of_documents_are_found_wherever_they_are(front):
    a, b = front.subs["a"], front.subs["b"]
    a.change("x", "y")
    b.change("x")
    by_docid = {row.values["docid"]: row for row in of(front.said(), Row)}
    docids = (*by_docid, "0" * 32)
    said = front.said(Query(what=What.ROWS, docids=docids))
    assert {row.values["docid"]: row for row in of(said, Row)} == by_docid
    assert told(front.said(Query(what=What.ROWS, docids=docids, providers=(2,)))) == [("2", "x")]
    front.lcc("front", "withdraw", "2")
    front.lcc("front", "assign", "2", "--to", "a")  # as behind the flip of a move: b's rows are left-overs
    assert {pid for pid, _ in told(front.said(Query(what=What.ROWS, docids=docids)))} == {"1"}
    b.kill()
    said = front.said(Query(what=What.ROWS, docids=docids))
    assert of(said, Missing) == [Missing("b")]


def test_what_no_front_can_answer_is_refused_with_a_reason(front):
    for query, why in (
        (Query(content=Wanted.REFERENCE), "a front has no files"),
        (Query(anew=("c",)), "no sub-LCC c"),
        (Query(what=What.IDS, anew=("a",)), "nor anew"),
        (Query(since="x"), "cursor"),
    ):
        with pytest.raises(Rejected, match=why) as caught:
            front.said(query)
        assert caught.value.code == 805


def test_over_tcp_a_token_of_the_front_decides_what_is_told(front):
    front.subs["a"].change("x")
    front.subs["b"].change("x")
    place = f"127.0.0.1:{front.port}"
    with pytest.raises(Rejected) as caught:
        front.said(place=place)
    assert caught.value.code == 801
    token = front.lcc("token", "add", "--front", "narrow", "--provider", "2").stdout.strip()
    assert told(front.said(Query(token=token), place)) == [("2", "x")]
    with pytest.raises(Rejected) as caught:
        front.said(Query(token=token, providers=(1,)), place)
    assert caught.value.code == 807


def test_ask_prints_what_a_front_says_and_ends_with_the_status_of_what_is_missing(front):
    a, b = front.subs["a"], front.subs["b"]
    a.change("x")
    b.change("x")
    words = ("ask", f"./{PATH}", "--cursor-file", "position")
    rows = [json.loads(line) for line in front.lcc(*words, "--content", "pages").stdout.splitlines()]
    assert sorted((row["pid"], row["curl"]) for row in rows) == [(1, f"{SITE}x"), (2, f"{SITE}x")]
    assert {(front.folder / "pages" / row["docid"]).read_bytes() for row in rows} == {f"{SITE}x".encode()}
    a.change("y")
    b.kill()
    partial = front.lcc(*words, status=PARTIAL)
    assert [json.loads(line)["curl"] for line in partial.stdout.splitlines()] == [f"{SITE}y"]
    assert "sub-LCC b did not answer" in partial.stderr
    store = b.store()
    with store.begin() as tx:
        tx.set_info(GENERATION, "2")  # as after a restored backup
    store.close()
    b.start()
    wait_for(lambda: front.run(*words).returncode == START_OVER, 300)
    over = front.lcc(*words, status=START_OVER)
    assert "--anew b" in over.stderr
    anew = front.lcc(*words, "--anew", "b")
    assert [json.loads(line)["curl"] for line in anew.stdout.splitlines()] == [f"{SITE}x"]
    assert front.lcc(*words).stdout == ""
