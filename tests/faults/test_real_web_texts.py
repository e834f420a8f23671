"""Labels of charsets, encodings of XML, names of hosts and links of pages, through the doors that users have.

Chromium says what is right: it decodes, parses and resolves the same bytes.
"""

import json
import shutil
import subprocess
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from webencodings import LABELS

from lcc_scrapy.domain.providers import Provider
from tests.acceptance.pushers import Conversation
from tests.faults.real_web_site import RealWebSite, page
from tests.forkserver import run
from tests.harness import BIN, PASSWORD, Lcc, missing

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]

CHROMIUM = shutil.which("chromium") or shutil.which("google-chrome")
PID = 7


@pytest.fixture
def site() -> Iterator[RealWebSite]:
    with RealWebSite() as made:
        yield made


def in_chromium(script: str, argument: object) -> Any:
    """Evaluate a function in a browser; playwright wants a thread without an event loop."""
    if CHROMIUM is None:
        missing("chromium", "apt-get install chromium")

    def evaluated() -> Any:
        from playwright.sync_api import sync_playwright

        with sync_playwright() as playwright:
            options = ["--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"]
            browser = playwright.chromium.launch(executable_path=CHROMIUM, args=options, timeout=240_000)
            found = browser.new_page().evaluate(script, argument)
            browser.close()
        return found

    with ThreadPoolExecutor(1) as apart:
        return apart.submit(evaluated).result()


# --- labels of charsets ---------------------------------------------------------------------------------

SAMPLE = "".join(
    f"{lead:02x}{trail:02x}20" for lead, trail in ((0xB1, 0xE2), (0xC4, 0xE3), (0xE6, 0xB3), (0xCF, 0xF0))
)
"""Bytes that say something else in nearly every encoding; all are legal in most."""
DECODE = """([labels, hex]) => labels.map(label => {
    const bytes = new Uint8Array(hex.match(/../g).map(one => parseInt(one, 16)));
    try { return new TextDecoder(label).decode(bytes) } catch (error) { return null }
})"""


@pytest.mark.soak
def test_every_label_decodes_its_bytes_as_in_a_browser(
    make_lcc: Callable[..., Lcc], site: RealWebSite
) -> None:
    known = {
        label: text
        for label, text in zip(LABELS, in_chromium(DECODE, [list(LABELS), SAMPLE]), strict=True)
        if text
    }
    wanted = {label: " ".join(text.split()) for label, text in known.items() if "utf-16" not in LABELS[label]}
    lcc, port = make_lcc(LCC_ERRORS_KEPT="1000"), site.listen()
    root = f"http://127.0.0.1:{port}/"
    names = {f"{root}{number}.html": label for number, label in enumerate(wanted)}
    for url, label in names.items():
        body = b"<!doctype html><title>" + bytes.fromhex(SAMPLE) + b"</title><p>text</p>"
        site.put(
            port,
            "/" + url.rpartition("/")[2],
            page(body, "200 OK", f"Content-Type: text/html; charset={label}"),
        )
    lcc.register(Provider(PID, "", allowprivate=True, ignorerobots=True), roots=[[root]])
    lcc.start()
    push(lcc, list(names))
    lcc.wait_until_fetched()
    lines = lcc.lcc("export", "--format", "jsonl", "--text", "--no-content", "-o", "-").stdout.splitlines()
    titles = {names[row["curl"]]: row["title"] for row in map(json.loads, lines) if row.get("curl") in names}
    wrong = {label: (titles.get(label), text) for label, text in wanted.items() if titles.get(label) != text}
    print(f"\n{len(wanted)} labels, {len(wrong)} of them decoded otherwise than by Chromium")
    assert wrong == {}


def push(lcc: Lcc, urls: list[str]) -> None:
    conversation = Conversation(lcc.port, PID)
    assert "init_accepted" in conversation.login_answer()
    told = conversation.push("partial", [{"curl": url, "mimetype": "text/html"} for url in urls])
    assert f'received="{len(urls)}"' in told, told
    conversation.close()


# --- names of hosts -------------------------------------------------------------------------------------

NAMES = (
    "straße", "STRASSE", "STRAẞE", "faß", "βόλος", "ΒΌΛΟΣ", "Bücher", "ᏣᎳᎩ", "ꮳꮃꭹ", "☃", "i❤", "a_b", "ＡＢＣ", "日本",  # noqa: RUF001
    "نامه\u200cای", "ශ්\u200dරී", "xn--strae-oqa", "ǆ", "a\u00adb", "Ⅷ", "𝐚𝐛", "ı", "İstanbul",  # noqa: RUF001
)  # fmt: skip
HOSTS = "names => names.map(name => new URL(`http://${name}.example/`).host)"


@pytest.mark.soak
def test_names_of_hosts_are_registered_as_in_a_browser(make_lcc: Callable[..., Lcc]) -> None:
    lcc = make_lcc()
    found = {}
    for number, name in enumerate(NAMES, 1):
        lcc.add_provider(number, f"http://{name}.example/")
    for pid, root in lcc.sql("select pid, root from proots"):
        found[NAMES[int(str(pid)) - 1]] = str(root).split("/")[2]
    assert found == dict(zip(NAMES, in_chromium(HOSTS, list(NAMES)), strict=True))


# --- encodings of XML -----------------------------------------------------------------------------------

ENCODINGS = (
    "none",
    "Windows-31J",
    "x-sjis",
    "utf-8",
    "ISO-8859-1",
    "x-gbk",
    "UTF-7",
    "hex",
    "idna",
    "no such one",
)


def sitemap(root: str, encoding: str) -> bytes:
    return (
        f'<?xml version="1.0" encoding="{encoding}"?><urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">'
        f"<url><loc>{root}z.html?a=1&b=2</loc></url></urlset>"
    ).encode()


@pytest.mark.soak
def test_a_sitemap_in_any_encoding_is_read_or_its_source_says_why(
    make_lcc: Callable[..., Lcc], site: RealWebSite, tmp_path: Path
) -> None:
    lcc, port = make_lcc(), site.listen()
    root = f"http://127.0.0.1:{port}/"
    lcc.register(Provider(PID, "", allowprivate=True), roots=[[root]])
    lcc.start()
    for number, encoding in enumerate(ENCODINGS):
        site.put(
            port, f"/{number}.xml", page(sitemap(root, encoding), "200 OK", "Content-Type: application/xml")
        )
        assert lcc.lcc("source", "add", str(PID), "--sitemap", f"{root}{number}.xml").returncode == 0
    ran = lcc.lcc("source", "run", str(PID), check=False)
    listed = {one["url"]: one for one in json.loads(lcc.lcc("source", "list", "--json").stdout)}
    assert "Traceback" not in ran.stdout + ran.stderr + lcc.log_text()
    for number, encoding in enumerate(ENCODINGS):
        source = listed[f"{root}{number}.xml"]
        assert source["error"] or source["listed"] == 1, (encoding, source)
        pushed = lcc_push(lcc, f"{root}{number}.xml", tmp_path / str(number))
        assert "Traceback" not in pushed.stderr, encoding
        assert pushed.returncode in {0, 1, 65}, (encoding, pushed.stderr)
        assert ("accepted" in pushed.stderr) == (pushed.returncode == 0), (encoding, pushed.stderr)


def lcc_push(lcc: Lcc, sitemap_url: str, state: Path) -> subprocess.CompletedProcess[str]:
    command = [
        str(BIN / "lcc-push"),
        "--server",
        f"127.0.0.1:{lcc.port}",
        "--pid",
        str(PID),
        "--state",
        str(state),
    ]
    environment = {**lcc.environment, "LCC_PASSWORD": PASSWORD}
    return subprocess.run(
        [*command, "--sitemap", sitemap_url], env=environment, cwd=lcc.folder, capture_output=True, text=True,
        timeout=300, check=False,
    )  # fmt: skip


# --- links of pages -------------------------------------------------------------------------------------

LINK = '<a href="/found/%s">there</a>'
PAGES: dict[str, tuple[str, bytes, str]] = {
    "utf-16 in a meta of UTF-8": ("text/html", b'<meta charset="UTF-16">' + (LINK % "a.html").encode(), "/found/a.html"),
    "utf-16le in a meta": ("text/html", b'<meta charset="utf-16le">' + (LINK % "é.html").encode(), "/found/%C3%A9.html"),
    "a meta behind 4,096 bytes": (
        "text/html", b"<!--" + b"x" * 5000 + b'--><meta charset="koi8-r"><a href="?q=' + "я".encode("koi8-r") + b'">x</a>',
        "?q=%D1",
    ),
    "a bogus meta": ("text/html", b'<meta charset="bogus">' + (LINK % "b.html").encode(), "/found/b.html"),
    "a query beyond the charset": (
        "text/html; charset=windows-1252", b'<a href="?q=&#12354;">x</a>', "?q=%26%2312354%3B",
    ),
    "EUC-JP with characters of NEC": (
        "text/html; charset=euc-jp", b'<a href="?q=\xad\xa1\xad\xea">x</a>', "?q=%AD%A1%AD%EA",
    ),
    "Big5 with characters of HKSCS, which are only decoded": (
        "text/html; charset=big5", b'<a href="?q=\x87\x40\xa4\x40">x</a>', "?q=%26%2317392%3B%A4@",
    ),
    "no type at all": ("", b"<!doctype html>" + (LINK % "c.html").encode(), "/found/c.html"),
    "a type with blanks": ("text/html charset=utf-8", b"<!doctype html>" + (LINK % "d.html").encode(), "/found/d.html"),
    "two types": ("text/plain, text/html", b"<!doctype html>" + (LINK % "e.html").encode(), "/found/e.html"),
    "an absolute link with dots": ("text/html", b'<a href="http://HOST/x/../found//f.html">x</a>', "/found//f.html"),
}  # fmt: skip


def test_links_are_those_that_a_browser_finds(make_lcc: Callable[..., Lcc], site: RealWebSite) -> None:
    lcc, port = make_lcc(LCC_RETRY_DELAYS=""), site.listen()
    root = f"http://127.0.0.1:{port}/"
    links = "".join(f'<a href="{number}.html">{number}</a>' for number in range(len(PAGES)))
    site.put(port, "/index.html", page(links.encode()))
    for number, (served, body, _) in enumerate(PAGES.values()):
        named = body.replace(b"HOST", f"127.0.0.1:{port}".encode())
        site.put(port, f"/{number}.html", page(named, "200 OK", f"Content-Type: {served}"))
    lcc.register(Provider(PID, "", allowprivate=True), roots=[[root]])
    command = [
        str(BIN / "scrapy"),
        "crawl",
        "lcc_spider",
        "-a",
        f"provider={PID}",
        "-a",
        f"start={root}index.html",
    ]
    done = run(command, env=lcc.environment, cwd=lcc.cwd)
    assert done.returncode == 0, done.stderr[-3000:]
    asked = {one.path for one in site.asked}
    wanted = {
        name: path if path.startswith("/") else f"/{number}.html{path}"
        for number, (name, (_, _, path)) in enumerate(PAGES.items())
    }
    assert {name: path for name, path in wanted.items() if path not in asked} == {}
