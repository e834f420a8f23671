"""The object cache: compressed files, earlier contents, and what content users get of them."""

import hashlib
import json
import os
import tarfile
from collections.abc import Callable
from pathlib import Path

import pytest
from backports import zstd

from lcc_scrapy.content_user import ContentUser
from tests.acceptance.conftest import Lcc, Nginx
from tests.harness import wait_for

pytestmark = [pytest.mark.acceptance, pytest.mark.slow]

PAGE = "<p>what the page says, for the {}th time</p>\n" * 200
LARGE = b"".join(
    hashlib.sha256(bytes([n % 256, n // 256])).hexdigest().encode() + b"\n" for n in range(40_000)
)


def page(number: int) -> bytes:
    return PAGE.replace("{}", str(number)).encode()


def site_of(folder: Path) -> Path:
    """Make pages, a body that goes to its file while it arrives, and one that is compressed already."""
    folder.mkdir()
    (folder / "page.html").write_bytes(page(0))
    (folder / "other.html").write_bytes(page(99))
    (folder / "large.txt").write_bytes(LARGE)
    (folder / "image.png").write_bytes(b"\x89PNG" + bytes(5000))
    (folder / "empty.html").write_bytes(b"")
    return folder


def contents(site: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in sorted(site.iterdir())}


def served(lcc: Lcc, site_url: str) -> dict[str, bytes]:
    """Return the newest content of every document as ``ContentUser`` gives it."""
    found = {}
    with ContentUser(lcc.settings) as user:
        for row in user.documents():
            with user.open(row) as stream:
                found[row.furl.removeprefix(site_url)] = stream.read()
    return found


def versions(lcc: Lcc, url: str) -> list[bytes]:
    found = []
    with ContentUser(lcc.settings) as user:
        (row,) = user.find(url)
        for one in user.versions(row):
            with user.open(one) as stream:
                found.append(stream.read())
    return found


def push(lcc: Lcc, site: Path, url: str) -> None:
    assert lcc.push(site, 1, url, "-type f").returncode == 0
    lcc.wait_until_fetched()


def exported(lcc: Lcc, form: str) -> dict[str, str]:
    """Return the digests of what an export holds, by name."""
    file = lcc.folder / f"export.{form}"
    lcc.lcc("export", "--format", "tar.gz", "--force", "-o", str(file))
    with tarfile.open(file) as archive:
        return {
            member.name: hashlib.sha256(archive.extractfile(member).read()).hexdigest()  # type: ignore[union-attr]
            for member in archive
            if member.name != "manifest.jsonl"
        }


def test_compressed_contents_and_three_versions_from_push_to_export(
    make_lcc: Callable[..., Lcc], nginx: Nginx, tmp_path: Path
) -> None:
    site = site_of(tmp_path / "site")
    nginx.start({"site": site})
    url = f"http://127.0.0.1:{nginx.ports['site']}/"
    lcc = make_lcc(LCC_CONTENT_COMPRESSION="zstd", LCC_KEEP_VERSIONS="3", LCC_FILE_GRACE="2s")
    lcc.add_provider(1, url)
    lcc.start()
    push(lcc, site, url)
    for number in range(1, 6):
        (site / "page.html").write_bytes(page(number))
        os.utime(site / "page.html", (number, number))
        push(lcc, site, url)

    assert served(lcc, url) == contents(site)
    assert versions(lcc, url + "page.html") == [page(4), page(3), page(2)]
    codings = dict(lcc.sql("select furl, file_encoding from lccurl"))
    assert {str(furl).removeprefix(url): coding for furl, coding in codings.items()} == {
        "page.html": "zstd", "other.html": "zstd", "large.txt": "zstd", "image.png": "", "empty.html": "",
    }  # fmt: skip
    (row,) = lcc.sql(
        f"select fetched_machineid, fetched_fileid, fetched_len from lccurl where furl = '{url}large.txt'"
    )
    file = lcc.path_of(row[0], row[1])  # type: ignore[arg-type]
    assert row[2] == len(LARGE)
    assert file.stat().st_size < 0.7 * len(LARGE)
    assert zstd.decompress(file.read_bytes()) == LARGE
    ((headers,),) = lcc.sql("select sum(head_len) from lccurl")
    assert headers == sum(len(text) - 2 for (text,) in lcc.sql("select headers from lccmeta"))
    used = sum(map(len, contents(site).values())) + headers  # type: ignore[operator]
    assert lcc.sql("select fileused, spaceused from pidb") == [(5, used)]

    wait_for(lambda: lcc.sql("select count(*) from fsmdb") == [(0,)], 60, "the files of older contents to go")
    assert len(list((lcc.folder / "lcc-data/content/1/000").rglob("*"))) == 1 + 5 + 3
    meta = json.loads(lcc.lcc("meta", url + "page.html", "--json").stdout)
    assert (meta["status"], meta["peer"], meta["length"]) == ("HTTP/1.1 200 OK", "127.0.0.1", len(page(5)))
    assert [one["len"] for one in meta["versions"]] == [len(page(n)) for n in (4, 3, 2)]

    before = exported(lcc, "zstd")
    assert lcc.stop() == 0
    assert lcc.lcc("verify").returncode == 0
    assert before == in_plain(lcc, site, url)


def in_plain(lcc: Lcc, site: Path, url: str) -> dict[str, str]:
    """Store everything anew, half of it without compression, and return what is exported then."""
    lcc.settings["LCC_CONTENT_COMPRESSION"] = "none"
    lcc.start()
    originals = contents(site)
    for change in (b"meanwhile", None):
        for name in ("page.html", "large.txt"):
            (site / name).write_bytes(change or originals[name])
        push(lcc, site, url)
    assert served(lcc, url) == originals
    codings = [coding for (coding,) in lcc.sql("select file_encoding from lccurl")]
    assert sorted(codings) == ["", "", "", "", "zstd"]
    assert versions(lcc, url + "page.html") == [b"meanwhile", page(5), page(4)]
    found = exported(lcc, "plain")
    assert lcc.stop() == 0
    assert lcc.lcc("verify").returncode == 0
    return found
