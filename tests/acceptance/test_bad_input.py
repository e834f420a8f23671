"""What the LCC says to what is wrong, word for word, and that nothing is harmed by it."""

import os
import re
import signal
import socket
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from threading import Event

import pytest

from tests.database_servers import connect_mariadb
from tests.harness import BIN, PASSWORD, Lcc, wait_for
from tests.integration.site import Answer, Site, page, raw

pytestmark = pytest.mark.acceptance

INIT = (
    '<lococa:init xmlns:lococa="http://www.lococa.org/1.0">'
    f'<provider id="7" passwd="{PASSWORD}"/></lococa:init>'
)
MINUTE = r"[A-Z][a-z]{2} \d{4}-\d\d-\d\d \d\d:\d\d in UTC"


@pytest.fixture
def site() -> Iterator[Site]:
    with Site() as made:
        yield made


@pytest.fixture
def host(site: Site) -> str:
    return f"http://127.0.0.1:{site.listen()}"


@pytest.fixture
def stop_timeout() -> str:
    return "2s"


@pytest.fixture
def lcc(make_lcc: Callable[..., Lcc], host: str, stop_timeout: str) -> Lcc:
    """An LCC with provider 7, which owns ``/docs/`` of the site."""
    made = make_lcc(
        LCC_RETRY_DELAYS="1s", LCC_HOST_BACKOFF="1s", LCC_MIMETYPES="text/html", LCC_STOP_TIMEOUT=stop_timeout
    )
    made.add_provider(7, f"{host}/docs/")
    return made


@pytest.fixture
def running(lcc: Lcc) -> Lcc:
    lcc.start()
    return lcc


def talk(port: int, text: str) -> str:
    """Send bytes to the UNS, end the sending side, and return the whole answer."""
    with socket.create_connection(("127.0.0.1", port), 300) as connection:
        connection.sendall(text.encode())
        connection.shutdown(socket.SHUT_WR)
        return b"".join(iter(lambda: connection.recv(65536), b"")).decode()


def reason(answer: str) -> str:
    found = re.search(r'<(?:reason|set_rejected) code="(\d+)">(.*?)</', answer)
    return f"{found[1]} {found[2]}" if found else answer


def html(**attributes: object) -> dict[str, object]:
    return {"mimetype": "text/html", **attributes}


# --- logging in --------------------------------------------------------------------------------------


def test_an_unknown_provider_and_a_wrong_password_get_the_same_words(running: Lcc) -> None:
    for pid, done in ((99, running.lcccp(99, "--check")), (7, running.lcccp(7, "--check", password="wrong"))):
        who = f"provider {pid} at 127.0.0.1:{running.port}"
        assert (done.returncode, done.stderr) == (77, f"lcccp: login refused: 101 Not authorised ({who})\n")


def test_what_is_not_the_protocol_is_told_so(running: Lcc) -> None:
    assert reason(talk(running.port, "GET / HTTP/1.0\r\n\r\n")) == (
        "105 Not well-formed, or not this protocol: not XML: does not begin with '&lt;'"
    )
    assert reason(talk(running.port, "<html></html>")) == (
        "105 Not well-formed, or not this protocol: not this protocol: element 'html'"
    )


# --- sets --------------------------------------------------------------------------------------------


def test_nothing_of_a_set_that_was_cut_off_is_applied(running: Lcc, host: str, site: Site) -> None:
    site.put("/docs/a", page("hello"))
    cut = f'{INIT}<lococa:set set="partial" urlprefix="{host}/docs/"><url c="a" mimetype="text/html"/><url c="b" mim'
    answer = talk(running.port, cut)
    assert reason(answer) == "201 Set not well-formed or cut short: the stream ends too early"
    assert running.push_urls(7, [html(curl=f"{host}/docs/later")]).returncode == 0
    running.wait_until_fetched()
    assert [visit.path for visit in site.visits] == ["/robots.txt", "/docs/later", "/docs/later"], (
        "a 404 is tried once more"
    )


def test_urls_that_are_wrong_are_told_at_once_and_the_rest_goes_on(running: Lcc, host: str) -> None:
    urls = [
        html(curl="http://other.example/x"),
        html(curl=f"{host}/docs/a", mimetype="image/png"),
        html(),
        html(curl=f"{host}/docs/a", mimetype=""),
        html(curl=f"{host}/docs/a", md5="123"),
        html(curl=f"{host}/docs/ok"),
    ]
    done = running.push_urls(7, urls)
    assert done.returncode == 1
    assert done.stderr.splitlines() == [
        "lcccp: 5 URLs refused:",
        f"lcccp:   704 URL outside the provider's roots: not below {host}/docs/  http://other.example/x",
        f"lcccp:   703 mimetype not accepted: image/png  {host}/docs/a",
        "lcccp:   701 curl missing  ",
        f"lcccp:   702 mimetype missing  {host}/docs/a",
        f"lcccp:   706 Attribute not valid: md5 '123', expected 32 hex digits  {host}/docs/a",
        "lcccp: accepted: 1 URLs",
    ]


def test_what_went_wrong_with_a_fetch_is_told_at_the_next_login(running: Lcc, host: str, site: Site) -> None:
    site.put("/docs/a", page("hello"))
    urls = [html(curl=f"{host}/docs/a", md5="0" * 32), html(curl=f"{host}/docs/gone")]
    assert running.push_urls(7, urls).returncode == 0
    running.wait_until_fetched()
    assert running.lcccp(7, "--check").stdout.splitlines()[-3:] == [
        "errors since the last login: 2",
        f"  608 md5 or len differs from the declared one  {host}/docs/a",
        f"  404 Not Found  {host}/docs/gone",
    ]
    assert running.lcccp(7, "--check").stdout.splitlines()[-1] == "errors since the last login: 0"


def test_a_host_that_is_down_is_explained(running: Lcc) -> None:
    with socket.socket() as deaf:
        deaf.bind(("127.0.0.1", 0))
        place = f"127.0.0.1:{deaf.getsockname()[1]}"
        running.add_provider(8, f"http://{place}/")
        assert running.push_urls(8, [html(curl=f"http://{place}/x")]).returncode == 0
        why = rf"^why +host {place} has failed since .*, next request .*602 \(No connection to the host: .*{place}"

        def is_explained() -> bool:  # between two waits, which grow, it is told otherwise
            said = running.lcc("explain", f"http://{place}/x", check=False).stdout
            return re.search(why, said, re.MULTILINE) is not None

        wait_for(is_explained, 20, "the reason")
        assert running.status()["queued"] == 1


# --- the operator ------------------------------------------------------------------------------------


def test_a_root_without_a_scheme_is_refused(lcc: Lcc) -> None:
    done = lcc.lcc(
        "provider", "add", "9", "--password-file", "-", "--root", "www.example.org/", check=False, stdin="x\n"
    )
    assert (done.returncode, done.stderr) == (
        1,
        "lcc: error: root 'www.example.org/' has no scheme: write http://www.example.org/\n",
    )


def one_line(said: str, beginning: str) -> str:
    """Return the one line that says why a crawl did not start; there must be no other trouble."""
    assert "Traceback" not in said
    lines = [line.partition(beginning)[2] for line in said.splitlines() if beginning in line]
    assert len(lines) == 1, said
    assert "] ERROR:" not in said
    return lines[0]


REFUSED = "[lcc_scrapy.app.wiring] CRITICAL: "
USAGE = "scrapy: error: "


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("nowhere.sqlite", "the database file FOLDER/nowhere.sqlite does not exist: correct LCC_DATABASE_URL, or bring the file back"),
        ("lcc-data", "the database does not answer: unable to open database file"),
        ("lcc-data/lcc.json", "the database cannot be used: file is not a database"),
    ],
)  # fmt: skip
def test_a_database_that_does_not_open_is_refused(lcc: Lcc, name: str, said: str) -> None:
    lcc.settings["LCC_DATABASE_URL"] = f"sqlite:///{lcc.folder}/{name}"
    said = said.replace("FOLDER", str(lcc.folder))
    assert one_line(lcc.refused(), REFUSED) == said
    done = lcc.lcc("status", check=False)
    assert (done.returncode, done.stderr) == (1, f"lcc: error: {said}\n")


def test_a_database_that_may_only_be_read_is_refused(make_lcc: Callable[..., Lcc]) -> None:
    lcc = make_lcc("mariadb")
    name = lcc.database_url.rsplit("/", 1)[1]
    reader = f"reader_{os.getpid()}"
    with connect_mariadb() as connection, connection.cursor() as cursor:
        cursor.execute(f"create user {reader}@'127.0.0.1'")
        try:
            cursor.execute(f"grant select on {name}.* to {reader}@'127.0.0.1'")
            lcc.settings["LCC_DATABASE_URL"] = lcc.database_url.replace("root@", f"{reader}@")
            said = one_line(lcc.refused(), REFUSED)
        finally:
            cursor.execute(f"drop user {reader}@'127.0.0.1'")
    assert re.fullmatch(r"the database cannot be written to: UPDATE command denied to user .*", said)


def test_a_port_that_is_taken_is_refused(lcc: Lcc) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", lcc.own_port))
        taken.listen()
        assert one_line(lcc.refused(), REFUSED) == (
            f"port {lcc.own_port} at 127.0.0.1 is taken or not ours ([Errno 98] Address already in use);"
            " set LCC_UNS_ENDPOINTS or stop the other process"
        )


def test_a_second_crawl_on_the_same_spool_is_refused_and_the_first_goes_on(
    running: Lcc, make_lcc: Callable[..., Lcc]
) -> None:
    assert running.crawl is not None
    spool = running.folder / "lcc-data" / "spool"
    said = (
        f"spool folder {spool} is in use by process {running.crawl.pid}; stop it, set another LCC_SPOOL_DIR,"
        " or, to fetch only, an empty LCC_UNS_ENDPOINTS"
    )
    assert one_line(running.refused(), REFUSED) == said
    other = make_lcc()
    assert one_line(other.refused(LCC_SPOOL_DIR=str(spool)), REFUSED) == said
    assert running.lcccp(7, "--check").returncode == 0


def test_without_a_data_folder_nothing_starts_and_nothing_is_made(lcc: Lcc, tmp_path: Path) -> None:
    wrong = tmp_path / "wrong"
    wrong.mkdir()
    lcc.settings = {}
    said = "no LCC here: go to the folder where `lcc init` was run, or set LCC_DATA_DIR"
    lcc.folder = wrong
    done = lcc.lcc("status", check=False)
    assert (done.returncode, done.stderr) == (1, f"lcc: error: {said}\n")
    assert one_line(lcc.refused(), USAGE) == said
    (wrong / "scrapy.cfg").write_text("[settings]\ndefault = lcc_scrapy.settings\n")
    said = f"no LCC data directory at {wrong}/lcc-data: run `lcc init` there first, or set LCC_DATA_DIR"
    done = lcc.lcc("status", check=False)
    assert (done.returncode, done.stderr) == (1, f"lcc: error: {said}\n")
    assert one_line(lcc.refused(), USAGE) == said
    assert [path.name for path in wrong.iterdir()] == ["scrapy.cfg"]


def test_init_in_no_project_makes_one_of_the_current_folder(lcc: Lcc, tmp_path: Path) -> None:
    lcc.project, lcc.settings = tmp_path / "mine", {}
    (lcc.project / "below").mkdir(parents=True)
    said = lcc.lcc("init").stdout
    assert said.startswith(f"{lcc.project}/scrapy.cfg written")
    assert sorted(path.name for path in lcc.project.iterdir()) == ["below", "lcc-data", "scrapy.cfg"]
    lcc.project /= "below"
    assert f"data directory  {tmp_path}/mine/lcc-data\n" in lcc.lcc("status").stdout


def test_init_makes_no_project_where_the_data_folder_is_named(lcc: Lcc, tmp_path: Path) -> None:
    lcc.project, data = tmp_path / "elsewhere", tmp_path / "data"
    lcc.project.mkdir()
    lcc.settings = {"LCC_DATA_DIR": str(data)}
    lcc.lcc("init")
    assert (data / "lcc.json").exists()
    assert list(lcc.project.iterdir()) == []


def test_an_unknown_option_is_refused_everywhere(lcc: Lcc) -> None:
    done = lcc.lcc("status", "--nonsense", check=False)
    assert (done.returncode, done.stderr.splitlines()[-1]) == (2, "Error: No such option '--nonsense'.")
    done = lcc.lcccp(7, "--nonsense")
    assert (done.returncode, done.stderr) == (
        64,
        "lcccp: unrecognized arguments: --nonsense\nTry 'lcccp --help'.\n",
    )
    assert one_line(lcc.refused("--nonsense"), USAGE)
    assert one_line(lcc.refused("-s", "LCC_WINDOW=none"), USAGE) == (
        "LCC_WINDOW: 'none', expected a whole number from 1 on"
    )


def test_an_unknown_setting_of_ours_gives_a_warning(lcc: Lcc) -> None:
    lcc.start("-s", "LCC_WINDOWS=3")
    assert "WARNING: unknown setting LCC_WINDOWS" in lcc.log_text()


def test_a_crawl_says_where_it_listens(lcc: Lcc) -> None:
    lcc.start()
    line = f"listening for providers on 127.0.0.1:{lcc.own_port}\n"
    wait_for(lambda: line in lcc.log_text(), 100, "the line")
    done = lcc.lcc("-s", "LCC_WINDOWS=3", "status")
    assert done.stderr == "lcc: warning: unknown setting LCC_WINDOWS\n"


# --- a provider's pipeline ---------------------------------------------------------------------------


@pytest.fixture
def pushed(running: Lcc, host: str, site: Site, tmp_path: Path) -> Path:
    """A docroot of thirty pages that were pushed and fetched."""
    docroot = tmp_path / "docroot"
    docroot.mkdir()
    for number in range(30):
        (docroot / f"{number:02}.html").write_text(f"page {number}")
        site.put(f"/docs/{number:02}.html", page(f"page {number}"))
    assert running.push(docroot, 7, f"{host}/docs/", "-name '*.html'").returncode == 0
    running.wait_until_fetched()
    return docroot


def cached(lcc: Lcc) -> int:
    return int(str(lcc.sql("select count(*) from lccurl")[0][0]))


def test_an_unmounted_docroot_removes_nothing(running: Lcc, host: str, pushed: Path) -> None:
    pushed.rename(pushed.with_name("elsewhere"))
    pushed.mkdir()
    done = running.push(pushed, 7, f"{host}/docs/", "-name '*.html'")
    assert done.returncode == 65
    assert set(done.stderr.splitlines()) == {
        (
            "lcccpstate: 30 of 30 known URLs would be removed; is the site mounted and whole?"
            " Nothing forwarded, state unchanged. If it is right: --max-removal 100"
        ),
        "lcccp: input not complete (no end mark); nothing sent",
    }
    assert cached(running) == 30


def test_a_first_stage_that_dies_half_way_removes_nothing(running: Lcc, host: str, pushed: Path) -> None:
    (pushed / "05.html").write_text("changed")
    command = (
        f"file2url --find {pushed} -name '*.html' | head -n 20 | lcccpstate --statefile=state.txt "
        f"| lcccp --uns=127.0.0.1:{running.port} --pid=7 --urlprefix={host}/docs/"
    )
    environment = {**running.environment, "LCC_PWD": PASSWORD}
    done = subprocess.run(
        ["bash", "-c", command],
        env=environment,
        cwd=running.folder,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    running.wait_until_fetched()
    assert done.returncode == 65
    seen_by_file2url = {"file2url: the next command stopped reading"}  # when it had more to write
    assert set(done.stderr.splitlines()) - seen_by_file2url == {
        "lcccpstate: input not complete (no end mark): updates are forwarded, nothing is taken for removed",
        "lcccpstate: 0 new, 1 changed, 0 removed, 19 unchanged",
        "lcccp: input not complete (marked as partial): updates only",
        "lcccp: accepted: 1 URLs",
    }
    assert cached(running) == 30


# --- stopping ----------------------------------------------------------------------------------------


@pytest.fixture
def slow(running: Lcc, host: str, site: Site) -> Lcc:
    """A crawl with a body in flight that never ends, and a second URL behind it."""
    drip = raw(b"HTTP/1.1 200 OK\r\nContent-Length: 999999\r\n\r\n", *[b"."] * 9999, gap=0.1)
    site.put("/docs/slow", drip, page("slow at first"))
    site.put("/docs/next", page("next"))
    assert (
        running.push_urls(7, [html(curl=f"{host}/docs/{name}") for name in ("slow", "next")]).returncode == 0
    )
    wait_for(lambda: site.asked("/docs/slow"), 20, "the slow body")
    return running


def resumed(lcc: Lcc, site: Site) -> list[str]:
    """Start the crawl again and return what it fetched."""
    site.visits.clear()
    lcc.start()
    lcc.wait_until_fetched(30)
    assert cached(lcc) == 2
    assert lcc.lcc("verify").returncode == 0
    return [visit.path for visit in site.visits if visit.path != "/robots.txt"]


def test_sigterm_ends_with_0_in_bounded_time_and_loses_nothing(slow: Lcc, site: Site) -> None:
    began = time.monotonic()
    assert slow.stop() == 0
    assert time.monotonic() - began < 200, "the body goes on for 1,000 s"
    assert "Traceback" not in slow.log_text()
    assert resumed(slow, site) == ["/docs/slow", "/docs/next"]


def test_sigterm_ends_a_silent_server_s_fetch_too(running: Lcc, host: str, site: Site) -> None:
    silent = Event()
    site.put("/docs/slow", Answer(page("x").pieces, held=silent), page("slow at first"))
    site.put("/docs/next", page("next"))
    assert (
        running.push_urls(7, [html(curl=f"{host}/docs/{name}") for name in ("slow", "next")]).returncode == 0
    )
    wait_for(lambda: site.asked("/docs/slow"), 20, "the silent fetch")
    began = time.monotonic()
    assert running.stop() == 0
    assert time.monotonic() - began < 200, "the body goes on for 1,000 s"
    assert resumed(running, site) == ["/docs/slow", "/docs/next"]


@pytest.mark.parametrize("stop_timeout", ["600s"])
def test_a_fetch_that_ends_in_time_is_still_stored(running: Lcc, host: str, site: Site) -> None:
    ending = Event()
    site.put("/docs/a", Answer(page("hello").pieces, last=False, held=ending))
    assert running.push_urls(7, [html(curl=f"{host}/docs/a")]).returncode == 0
    wait_for(lambda: site.asked("/docs/a"), 20, "the fetch")
    assert running.crawl is not None
    running.crawl.send_signal(signal.SIGTERM)
    wait_for(lambda: "shutting down gracefully" in running.log_text(), 10, "the signal to be seen")
    ending.set()
    assert running.crawl.wait(300) == 0
    assert cached(running) == 1
    assert running.sql("select count(*) from qdb") == [(0,)]


@pytest.mark.parametrize("stop_timeout", ["600s"])
def test_a_second_sigterm_stops_at_once_and_loses_nothing(slow: Lcc, site: Site) -> None:
    assert slow.crawl is not None
    slow.crawl.send_signal(signal.SIGTERM)
    wait_for(lambda: "shutting down gracefully" in slow.log_text(), 10, "the first signal to be seen")
    slow.crawl.send_signal(signal.SIGTERM)
    slow.crawl.wait(300)
    assert resumed(slow, site) == ["/docs/slow", "/docs/next"]


def test_a_crawl_that_is_asked_to_end_when_done_does(lcc: Lcc, host: str, site: Site) -> None:
    site.put("/docs/a", page("hello"))
    lcc.start()
    assert lcc.push_urls(7, [html(curl=f"{host}/docs/a")]).returncode == 0
    lcc.wait_until_fetched()
    assert lcc.stop() == 0
    done = subprocess.run(
        [str(BIN / "scrapy"), "crawl", "lcc_push", "-a", "stop_when_done=1"],
        env=lcc.environment, cwd=lcc.folder, capture_output=True, timeout=300, check=False,
    )  # fmt: skip
    assert done.returncode == 0
