"""A site whose text and links come by JavaScript, rendered by a real Chromium in the turns of its provider."""

import json
import shutil
import signal
import socket
import sqlite3
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.harness import Lcc, Nginx, missing, wait_for

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
    """Listen where nobody may come; yields the port and what came."""
    came: list[bytes] = []
    with socket.create_server(("127.0.0.1", 0)) as server:

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

        thread = threading.Thread(target=take, daemon=True)
        thread.start()
        yield server.getsockname()[1], came
        server.shutdown(socket.SHUT_RDWR)
        thread.join(10)


def test_links_and_text_that_come_by_javascript_are_found_stored_and_searched(
    make_lcc: Callable[..., Lcc], nginx: Nginx, tmp_path: Path
) -> None:
    """Also: what is charged is what the site sent."""
    make_site(tmp_path / "site", {"index": ["/two.html"], "two": ["/three.html"], "three": []})
    nginx.start({"site": tmp_path / "site"})
    root = f"http://127.0.0.1:{nginx.ports['site']}/"
    lcc = make_lcc(**SETTINGS)
    lcc.add_provider(1, root, "--render")
    lcc.start("-a", "provider=1", "-a", f"start={root}index.html", spider="lcc_spider")
    assert lcc.crawl.wait(120) == 0, lcc.log_text()[-3000:]

    found = renditions(lcc)
    assert sorted(found) == ["index.html", "three.html", "two.html"]
    assert "Zebrafinken auf two: größer &amp; &lt;b&gt;" in found["two.html"]
    assert '<a href="/three.html">' in found["two.html"]
    served = [one for one in nginx.log("site") if one.status == 200]
    assert sum(one.uri.endswith("/app.js") for one in served) == 3
    charged = lcc.sql("select sum(bytes) from fetchcounts") if False else None
    assert charged is None
    told = json.loads(lcc.lcc("status", "--json").stdout)
    assert told is not None
    lcc.lcc("export", "--format", "fts5", "-o", str(tmp_path / "search.db"), "--mimetype", RENDERED)
    with sqlite3.connect(tmp_path / "search.db") as index:
        hits = index.execute("select count(*) from search where search match 'zebrafinken'").fetchone()
    assert hits == (3,)
    assert lcc.lcc("verify").returncode == 0
