"""Two trackers that are real processes: one serves its domains, the other fetches them over HTTP."""

import json
import signal
import urllib.error
import urllib.request
from contextlib import contextmanager

import pytest
from sqlalchemy import select

from lcc_scrapy.apps.tracker.tables import tr_digests
from lcc_scrapy.db.sql.store import SqlStore
from tests.forkserver import popen
from tests.harness import BIN, wait_for
from tests.mirrors import NOW, Tracker, tree_of
from tests.ports import free_port

A, B = "ftp://ftp.example.de/", "http://m.example.de/"
TREE = tree_of("pub/app/own 2\npub/app/1.0/app.tgz 5\npub/app/1.0/doc/README 7\npub/own 1")
OTHER = tree_of("mirrors/1.0/app.tgz 5\nmirrors/1.0/doc/README 7")


class Ours:
    """A tracker, its settings, and the processes that it runs."""

    def __init__(self, lcc):
        self.lcc = lcc
        self.port = free_port()
        self.url = f"http://127.0.0.1:{self.port}/"

    def __call__(self, *words, check=True):
        return self.lcc.lcc("tracker", *words, check=check)

    def load(self, url, tree, domain="de"):
        store = SqlStore(self.lcc.shared_url)
        Tracker(store).load(url, tree, domain, at=NOW)
        store.close()

    def identities(self):
        store = SqlStore(self.lcc.shared_url)
        with store.engine.connect() as connection:
            columns = tr_digests.c
            query = select(columns.url, columns.name, columns.md5, columns.sha)
            found = sorted(tuple(map(str, row)) for row in connection.execute(query))
        store.close()
        return found

    @contextmanager
    def running(self, *words):
        with (self.lcc.folder / f"{words[0]}.log").open("ab") as log:
            words = [str(BIN / "lcc"), "tracker", *words]
            process = popen(words, env=self.lcc.environment, cwd=self.lcc.folder, log=log)
        try:
            yield process
        finally:
            process.kill()
            process.wait(300)

    @contextmanager
    def serving(self):
        with self.running("serve", "--listen", f"127.0.0.1:{self.port}"):
            wait_for(lambda: self.ask("trackers")[0] == 200, what="lcc tracker serve")
            yield

    def ask(self, path, **fields):
        """Return status, headers and body."""
        headers = {name.replace("_", "-"): value for name, value in fields.items()}
        try:
            with urllib.request.urlopen(urllib.request.Request(self.url + path, headers=headers)) as answer:
                return answer.status, answer.headers, answer.read()
        except urllib.error.HTTPError as error:
            with error:
                return error.code, error.headers, error.read()
        except urllib.error.URLError:
            return 0, {}, b""


@pytest.fixture
def theirs(make_lcc, tmp_path):
    made = Ours(make_lcc(LCC_TRACKER_EXPORTS=str(tmp_path / "exports")))
    made.load(A, TREE)
    made.load(B, OTHER)
    made("export")
    return made


@pytest.fixture
def ours(make_lcc, theirs):
    made = Ours(make_lcc(LCC_TRACKER_PEERS_PRIVATE="yes"))
    made("domain", "add", "de", "--peer", theirs.url)
    return made


def test_what_one_tracker_serves_another_fetches_and_has_then(ours, theirs):
    with theirs.serving():
        assert ours("import", "de").stdout == "domain de: generation 2, 9 directories\n"
        assert ours.identities() == theirs.identities() != []
        assert ours("lookup", f"{A}pub/app/1.0/").stdout == f"{B}mirrors/1.0/\n"
        assert ours("import", "de", theirs.url).stdout == "domain de: nothing new\n"
        theirs.load(B, TREE)
        theirs("export")
        assert ours("import", "de").stdout == "domain de: generation 3, 10 directories\n"
        assert ours.identities() == theirs.identities()
    done = ours("import", "de", check=False)
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == f"lcc: error: domain de: {theirs.url}exchange/de.json: connection refused\n"
    (one,) = json.loads(ours("domain", "list", "--json").stdout)
    assert (one["generation"], one["error"]) == (3, f"{theirs.url}exchange/de.json: connection refused")
    assert one["checked"] > NOW / 2


def test_what_is_unchanged_costs_one_conditional_question(ours, theirs):
    with theirs.serving():
        ours("import", "de")
        ours("import", "de")
    log = (theirs.lcc.folder / "serve.log").read_text()
    asked = [line for line in log.splitlines() if "/exchange/" in line]
    assert len(asked) == 5, log
    assert "304" in asked[4], asked


def test_scans_fetch_and_export_what_has_changed(ours, theirs):
    theirs.load(A, OTHER)
    assert theirs("scan", "--once").stdout.startswith("domain de: 2 servers, 8 directories; de-3.digests.gz")
    assert theirs("scan", "--once").stdout == ""
    with theirs.serving():
        assert ours("scan", "--once").stdout == "domain de: generation 3, 8 directories\n"
        assert ours("scan", "--once").stdout == "", "it was asked just now"
    assert ours.identities() == theirs.identities()


@pytest.mark.slow
def test_standing_scans_carry_a_change_from_one_tracker_to_the_other(ours, theirs):
    ours.lcc.settings["LCC_TRACKER_PEERS_EVERY"] = "60s"
    with theirs.serving(), theirs.running("scan"), ours.running("scan") as scan:
        wait_for(lambda: ours.identities() == theirs.identities() != [], what="the first generation")
        theirs.load(A, OTHER)
        wait_for(lambda: b'"generation": 3' in theirs.ask("exchange/de.json")[2], what="the export")
        assert ours("import", "de").stdout == "domain de: generation 3, 8 directories\n"
        scan.send_signal(signal.SIGTERM)
        assert scan.wait(300) == 0


def test_files_are_served_by_their_names_only_with_conditions_and_ranges(theirs, tmp_path):
    folder = tmp_path / "exports"
    (folder / "secret").write_text("no")
    (folder / "a-1.links.gz").symlink_to(folder / "secret")
    (folder / "b-1.links.gz").write_bytes(b"large" * 1000)
    with theirs.serving():
        status, headers, body = theirs.ask("exchange/de-2.digests.gz")
        assert (status, body) == (200, (folder / "de-2.digests.gz").read_bytes())
        tag = headers["ETag"]
        assert theirs.ask("exchange/de-2.digests.gz", If_None_Match=tag)[::2] == (304, b"")
        status, headers, part = theirs.ask("exchange/de-2.digests.gz", Range="bytes=3-9")
        assert (status, part, headers["Content-Range"]) == (206, body[3:10], f"bytes 3-9/{len(body)}")
        old = theirs.ask("exchange/de-2.digests.gz", Range="bytes=3-9", If_Range='"old"')
        assert (old[0], old[2]) == (200, body)
        assert theirs.ask("exchange/de-2.digests.gz", Range="bytes=99999-")[0] == 416
        packed = theirs.ask("exchange/b-1.links.gz", Accept_Encoding="gzip")
        assert (packed[2], packed[1]["Content-Encoding"]) == (b"large" * 1000, None)
        for name in (
            "secret",
            "a-1.links.gz",
            "..%2Fde.json",
            "%2e%2e/lcc.sqlite",
            "exports.lock",
            "fr.json",
        ):
            assert theirs.ask(f"exchange/{name}")[0] == 404, name
        theirs("domain", "add", "uk", "--peer", "https://tracker.example.org/")
        own, other = json.loads(theirs.ask("trackers")[2])
        assert own["url"] == "./"
        assert [(one["domain"], one["generation"], one["made"] > NOW / 2) for one in own["domains"]] == [("de", 2, True)]  # fmt: skip
        uk = {"domain": "uk", "generation": 0, "checked": 0}
        assert other == {"url": "https://tracker.example.org/", "domains": [uk]}
        status, headers, body = theirs.ask("exchange/de.json", Range="bytes=3-9")
        assert (status, body) == (200, (folder / "de.json").read_bytes())
        assert theirs.ask("exchange/de.json", If_None_Match=headers["ETag"])[0] == 304
    theirs("domain", "remove", "de")
    theirs("export")
    assert sorted(one.name for one in folder.iterdir()) == ["exports.lock", "secret"]


def test_nothing_is_exchanged_unless_it_is_asked_for(ours, theirs):
    with ours.running("serve", "--listen", f"127.0.0.1:{ours.port}"):
        wait_for(lambda: ours.ask("trackers")[0], what="lcc tracker serve")
        assert [ours.ask(path)[0] for path in ("exchange/de.json", "trackers")] == [404, 404]
    done = ours("export", check=False)
    assert (done.returncode, done.stderr.count("\n")) == (1, 1)
    assert "LCC_TRACKER_EXPORTS is empty" in done.stderr


WRONG = (
    (("import", "fr"), "there is no domain fr"),
    (("import", "org"), "domain org is this tracker's own"),
    (
        ("import", "de", "https://other.example.org/"),
        "https://other.example.org/ may not speak for domain de",
    ),
    (("import", "de", "/nowhere"), "--peer is missing"),
    (("import", "de", "/nowhere", "--peer", "https://other.example.org/"), "/nowhere/de.json"),
    (("import", "ftp"), "is no http or https URL"),
    (("export", "de"), "DOMAIN and FOLDER, or neither"),
)


def test_what_cannot_be_exchanged_is_refused_in_one_line(ours, theirs):
    ours("domain", "add", "org")
    ours("domain", "add", "ftp", "--peer", "ftp://tracker.example.org/")
    for words, why in WRONG:
        done = ours(*words, check=False)
        assert done.returncode in {1, 2}, words
        assert "Traceback" not in done.stderr
        assert why in done.stderr.splitlines()[-1], done.stderr
    ours.lcc.settings["LCC_TRACKER_PEERS_PRIVATE"] = "no"
    done = ours("import", "de", check=False)
    assert "its address is private (LCC_TRACKER_PEERS_PRIVATE)\n" in done.stderr
