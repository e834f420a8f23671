"""How fast pages are read for their links, and whether an independent reader finds the same ones.

python bench/links.py                                  # the pages of `make corpora`
python bench/links.py /usr/share/doc DIR --pages 5000
python bench/links.py --other scrapy                   # against Scrapy's LinkExtractor instead of html5lib

The independent reader is html5lib, the reference implementation of the HTML standard's parser; the links are
then taken from its tree by the plain words of the standard, and resolved as ours are.
"""

import argparse
import random
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

from lcc_scrapy.db import schema
from lcc_scrapy.db.records import DocumentLink
from lcc_scrapy.db.sql.store import SqlStore
from lcc_scrapy.domain.errors import UrlRefused
from lcc_scrapy.domain.references import resolve
from lcc_scrapy.links.canonical import canonical
from lcc_scrapy.links.links import read_page
from lcc_scrapy.links.rules import LinkRules

SITE = "http://www.example.org/"
RULES = LinkRules(relations=frozenset({"a", "area", "frame", "iframe", "refresh"}))
NAMESPACE = "{http://www.w3.org/1999/xhtml}"
TAGS = {"a": "href", "area": "href", "frame": "src", "iframe": "src"}

Reader = Callable[[bytes, str], set[str]]


def ours(body: bytes, url: str) -> set[str]:
    return {link.url for link in read_page(body, url, "text/html", "", [], RULES).links}


def by_html5lib(body: bytes, url: str) -> set[str]:
    import html5lib  # noqa: PLC0415

    tree = html5lib.parse(body, likely_encoding="utf-8")
    base = next((one.get("href") for one in tree.iter(f"{NAMESPACE}base") if one.get("href")), "")
    hrefs = (one.get(name) for tag, name in TAGS.items() for one in tree.iter(NAMESPACE + tag))
    metas = (one for one in tree.iter(f"{NAMESPACE}meta") if one.get("http-equiv", "").lower() == "refresh")
    refreshes = (one.get("content", "").partition("=")[2] for one in metas)
    found = (href for href in (*hrefs, *refreshes) if href and not href.startswith("#"))
    return set(placed(found, resolve(base, url)))


def by_scrapy(body: bytes, url: str) -> set[str]:
    from scrapy.http import HtmlResponse  # noqa: PLC0415
    from scrapy.linkextractors import LinkExtractor  # noqa: PLC0415

    extractor = LinkExtractor(tags=tuple(TAGS), attrs=("href", "src"), deny_extensions=[], strip=True)
    return set(placed((one.url for one in extractor.extract_links(HtmlResponse(url, body=body))), url))


def placed(hrefs: Iterator[str], base: str) -> Iterator[str]:
    """Yield links as ours are resolved; they are compared in canonical form, in which case and dots go."""
    for href in hrefs:
        try:
            yield canonical(href, base)
        except (UrlRefused, ValueError):
            continue


OTHERS: dict[str, Reader] = {"html5lib": by_html5lib, "scrapy": by_scrapy}


def pages_of(folders: list[Path], most: int) -> list[tuple[str, bytes]]:
    files = [
        (f"{SITE}{path.relative_to(folder)}", path)
        for folder in folders
        for path in sorted(folder.rglob("*.htm*"))
        if path.is_file() and path.suffix in {".htm", ".html"}
    ]
    random.Random(1).shuffle(files)
    return [(url, path.read_bytes()) for url, path in files[:most]]


def rate(pages: list[tuple[str, bytes]], repeat: int) -> float:
    """Return pages per second of processor time, the best of some runs."""
    best = float("inf")
    for _ in range(repeat):
        start = time.process_time()
        for url, body in pages:
            read_page(body, url, "text/html", "", [], LinkRules())
        best = min(best, time.process_time() - start)
    return len(pages) / best


def store(pages: list[tuple[str, bytes]], together: int = 64) -> None:
    """Store the links of pages as a spider does, so many pages in one transaction, and read them."""
    found = [
        [
            DocumentLink(one.url, one.relation, nofollow=one.nofollow)
            for one in read_page(body, url, "text/html", "", [], LinkRules()).links
        ]
        for url, body in pages
    ]
    with TemporaryDirectory() as folder:
        file = Path(folder) / "lcc.sqlite"
        schema.upgrade(f"sqlite:///{file}")
        kept = SqlStore(f"sqlite:///{file}")
        empty, start = _size(kept), time.process_time()
        keys = [number.to_bytes(16, "big") for number in range(len(found))]
        for at in range(0, len(found), together):
            with kept.begin() as tx:
                tx.put_links(dict(zip(keys[at : at + together], found[at:], strict=False)), 1)
        wrote, start = time.process_time() - start, time.process_time()
        with kept.read() as tx:
            same = [tx.links_of(key) for key in keys] == found
        read, room = time.process_time() - start, _size(kept) - empty
        kept.close()
    count = sum(map(len, found))
    told = "as they were" if same else "NOT AS THEY WERE"
    print(f"{count} links, {told}, in {room / 1000:.0f} kB: {room / len(found):.0f} bytes a page")
    print(f"a page: {wrote / len(found) * 1e6:.0f} µs to store, {read / len(found) * 1e6:.0f} µs to read")


def _size(kept: SqlStore) -> int:
    with kept.engine.connect() as connection:
        pages = connection.exec_driver_sql("SELECT * FROM pragma_page_count()").scalar_one()
        free = connection.exec_driver_sql("SELECT * FROM pragma_freelist_count()").scalar_one()
        return int(pages - free) * int(connection.exec_driver_sql("PRAGMA page_size").scalar_one())


def compare(pages: list[tuple[str, bytes]], other: Reader) -> Counter[str]:
    """Count pages by whether both find the same, and the links that only one of them finds."""
    counted: Counter[str] = Counter()
    for number, (url, body) in enumerate(pages, 1):
        itself = {canonical(url)}  # a page that leads to a place in itself
        mine, theirs = ours(body, url) - itself, other(body, url) - itself
        counted["pages with the same links"] += mine == theirs
        counted["links of both"] += len(mine & theirs)
        for name, only in (("only ours", mine - theirs), ("only theirs", theirs - mine)):
            counted[f"links {name}"] += len(only)
            for link in sorted(only)[:3]:
                print(f"  {name}: {link} on {url}", file=sys.stderr)
        if sys.stderr.isatty() and number % 50 == 0:
            print(f"\r{number} of {len(pages)} pages compared", end="", file=sys.stderr)
    return counted


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("folders", nargs="*", type=Path, default=[Path(".corpora")])
    parser.add_argument("--pages", type=int, default=2000, help="pages to read (2000)")
    parser.add_argument("--repeat", type=int, default=3, help="runs of which the best counts (3)")
    parser.add_argument("--other", choices=OTHERS, default="html5lib", help="the independent reader")
    parser.add_argument("--store", action="store_true", help="only store the links and read them again")
    given = parser.parse_args()
    pages = pages_of(given.folders, given.pages)
    if not pages:
        parser.exit(66, "no pages there: `make corpora` fetches some\n")
    if given.store:
        store(pages)
        return
    size = sum(len(body) for _, body in pages)
    speed = rate(pages, given.repeat)
    print(f"{len(pages)} pages of {size / len(pages) / 1000:.1f} kB on average")
    print(f"{speed:.0f} pages/s, {speed * size / len(pages) / 1e6:.1f} MB/s of processor time")
    counted = compare(pages, OTHERS[given.other])
    print(f"against {given.other}: {counted['pages with the same links'] / len(pages):.2%} of pages the same")
    for name in ("links of both", "links only ours", "links only theirs"):
        print(f"{name}: {counted[name]}")


if __name__ == "__main__":
    main()
