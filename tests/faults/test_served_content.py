"""Documents by content coding, type and charset as sites serve them: by real pushes, and by a spider."""

import gzip
import re
from typing import Any

import pytest

from lcc_scrapy.domain.providers import Provider
from tests.harness import BIN, lccs, run
from tests.integration.site import Answer, Site, page
from tests.unit.test_fetch_coded_bodies import STACKS, declaring, forms

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]

PID, SPIDERED = 7, 8
PNG = b"\x89PNG\r\n\x1a\n" + bytes(2000)
TYPED = {
    "text/html charset=utf-8": b"<!doctype html><a href=/in/x>",
    "": b"<html>",
    "text/html (x)": b"%PDF-1.4",
    "*/*": b"plain text",
    "nonsense": PNG,
}


def chunked(body: bytes, **headers: str) -> Answer:
    answer = page(b"", content_length="", transfer_encoding="chunked", **headers)
    return Answer((*answer.pieces, b"%x\r\n%b\r\n0\r\n\r\n" % (len(body), body)), last=False)


@pytest.fixture(scope="module")
def scene(tmp_path_factory):
    with Site() as site, lccs(tmp_path_factory.mktemp("served")) as make:
        lcc = make(LCC_MEMORY_BODY="8k", LCC_FETCH_MAX_BYTES="400k", LCC_RETRY_DELAYS="")
        root = f"http://127.0.0.1:{site.listen()}/in/"
        lcc.register(Provider(PID, "", allowprivate=True), roots=[[root]])
        lcc.start()
        yield lcc, site, root


def stored(lcc, urls) -> dict[str, Any]:
    """Push URLs, and return content, type and error of each by its name."""
    assert lcc.push_urls(PID, urls).returncode == 0
    lcc.wait_until_fetched()
    errors = {error["url"]: error["code"] for error in lcc.check(PID).get("errors", ())}
    query = "select curl, fetched_machineid, fetched_fileid, file_encoding, served_type, served_charset from lccurl"
    return {
        curl.rpartition("/in/")[2]: (lcc.content(machine, file, coding), kind, charset, errors.get(curl, 0))
        for curl, machine, file, coding, kind, charset in lcc.sql(query)
    }


@pytest.mark.parametrize("length", ["short", "large"])
def test_a_document_ends_as_declared_whatever_codings_its_site_names(scene, length):
    lcc, site, root = scene
    data = b"the document\n" * (50 if length == "short" else 20_000)
    urls, expected = [], {}
    for number, stack in enumerate(STACKS):
        made = forms(stack, data)
        for at, declared in enumerate(made):
            for how, serve in (("length", page), ("chunks", chunked)):
                name = f"{length}-{number}-{at}-{how}"
                site.put(f"/in/{name}", serve(made[-1], content_encoding=", ".join(stack)))
                row = declaring(declared, "md5 len")
                urls.append({"curl": root + name, "mimetype": "text/html", "md5": row.md5, "len": row.len})
                expected[name] = declared
    found = stored(lcc, urls)
    assert {name: found[name][0] == content for name, content in expected.items()} == dict.fromkeys(
        expected, True
    )
    assert {found[name][3] for name in expected} == {0}


def test_an_archive_stays_packed_when_nothing_is_declared(scene):
    lcc, site, root = scene
    packed = gzip.compress(b"an archive", mtime=0)
    for name, kind in (("a.tar.gz", "text/plain"), ("b", "application/x-gzip"), ("c.html", "text/html")):
        site.put(f"/in/{name}", page(packed, content_encoding="x-gzip", content_type=kind))
    names = {"a.tar.gz": "application/gzip", "b": "application/gzip", "c.html": "text/html"}
    found = stored(lcc, [{"curl": root + name, "mimetype": kind} for name, kind in names.items()])
    assert [found[name][0] for name in names] == [packed, packed, b"an archive"]


@pytest.mark.parametrize("said", TYPED)
def test_a_pushed_document_without_a_type_is_what_was_declared_unless_it_is_html_or_pdf(scene, said):
    lcc, site, root = scene
    number, body = list(TYPED).index(said), TYPED[said]
    kinds = ["text/html", "text/plain", "application/pdf", "image/png"]
    urls = []
    for kind in kinds:
        name = f"type-{number}-{kind.replace('/', '-')}"
        site.put(f"/in/{name}", page(body, content_type=said))
        urls.append({"curl": root + name, "mimetype": kind})
    found = stored(lcc, urls)
    surely = {b"<!doc": "text/html", b"<html": "text/html", b"%PDF-": "application/pdf"}.get(body[:5], "")
    for url in urls:
        _, kind, charset, error = found[url["curl"].rpartition("/in/")[2]]
        assert (kind, charset) == (surely or url["mimetype"], "")
        assert error == (607 if surely and surely != url["mimetype"] else 0)


def test_a_type_and_its_charset_are_read_as_by_browsers(scene):
    lcc, site, root = scene
    said = {
        'text/plain, text/html;charset="koi8-r"': ("text/html", "koi8-r"),
        "TEXT/HTML;x=y;charset=UTF-8, */*": ("text/html", "utf-8"),
        "text/html\r\nContent-Type: text/html;charset=big5": ("text/html", "big5"),
        "application/octet-stream": ("application/octet-stream", ""),
    }
    for number, value in enumerate(said):
        site.put(f"/in/read-{number}", page(b"<html>", content_type=value))
    found = stored(lcc, [{"curl": f"{root}read-{n}", "mimetype": "text/html"} for n in range(len(said))])
    assert [found[f"read-{number}"][1:] for number in range(len(said))] == [
        (*one, 0) for one in said.values()
    ]


def test_a_spider_takes_a_document_without_a_type_for_what_it_looks_like(tmp_path):
    with Site() as site, lccs(tmp_path) as make:
        lcc = make(LCC_FETCH_MAX_BYTES="100M")
        root = f"http://127.0.0.1:{site.listen()}/in/"
        lcc.add_provider(SPIDERED, root, "--mimetype", "text/html", "--mimetype", "application/pdf")
        links = "".join(f"<a href={number}>" for number in range(len(TYPED)))
        site.put("/in/", page(f"<html>{links}<a href=endless>", content_type="text/html charset=utf-8"))
        for number, (said, body) in enumerate(TYPED.items()):
            site.put(f"/in/{number}", page(body, content_type=said))
        site.put("/in/endless", chunked(PNG + bytes(50_000_000), content_type=""))
        said = ("-a", f"provider={SPIDERED}", "-a", f"start={root}", "-s", "LCC_UNS_ENDPOINTS=")
        done = run([str(BIN / "scrapy"), "crawl", "lcc_spider", *said], env=lcc.environment, cwd=lcc.cwd)
        assert done.returncode == 0, done.stderr[-3000:]
        rows = lcc.sql("select curl, mimetype, served_type from lccurl where pid = 8 order by curl")
        assert [(curl.rpartition("/")[2], kind, served) for curl, kind, served in rows] == [
            ("", "text/html", "text/html"),
            ("0", "text/html", "text/html"),
            ("1", "text/html", "text/html"),
            ("2", "application/pdf", "application/pdf"),
        ]
        assert int(re.findall(r"'lcc/bytes_charged': (\d+)", done.stderr)[-1]) < 5_000_000
