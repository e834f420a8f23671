"""``lcc directives`` and the spider on a real site: one fetch for all who ask, and as deep as each one wants."""

from collections import defaultdict
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.acceptance.conftest import Lcc, Nginx
from tests.acceptance.test_spidered_sites import pages, spider

pytestmark = [pytest.mark.acceptance]

LINKS = {"a": "bc", "b": "d", "c": "da", "d": "e", "e": "f", "f": ""}


@pytest.fixture
def site(tmp_path: Path) -> Path:
    folder = tmp_path / "site"
    folder.mkdir()
    for name, linked in LINKS.items():
        text = "".join(f"<a href='{one}.html'>{one}</a> " for one in linked)
        (folder / f"{name}.html").write_text(f"<title>{name}</title>{text}<a href='/elsewhere'>x</a>")
    (folder / "index.html").write_text("<a href='f.html'>f</a>")
    return folder


def owners(lcc: Lcc, root: str) -> dict[str, dict[str, int]]:
    """Return who wants which page, and how many links from there."""
    found: defaultdict[str, dict[str, int]] = defaultdict(dict)
    query = "select furl, owner, reach from owners join spidered on owners.furlkey = spidered.furlkey"
    for furl, owner, reach in lcc.sql(query):
        found[str(furl).removeprefix(root).removesuffix(".html")][str(owner)] = int(str(reach))
    return dict(found)


def test_two_owners_cost_one_fetch_each_page_and_who_goes_deeper_later_only_the_rest(
    site: Path, nginx: Nginx, make_lcc: Callable[..., Lcc]
) -> None:
    nginx.start({"site": site})
    root = f"http://127.0.0.1:{nginx.ports['site']}/"
    lcc = make_lcc("sqlite")
    lcc.add_provider(7, root)
    asked = f"[{root}a.html, {root}, 1, {{anna}}]\n[{root}a.html, , 2, {{bert}}]\n"
    lcc.lcc("directives", "-", stdin=asked)
    lcc.lcc("directives", "-", stdin=asked)
    spider(lcc, "directives=1")
    assert pages(nginx.log("site")) == {f"/{name}.html": 1 for name in "abcd"} | {"/elsewhere": 1}
    assert owners(lcc, root) == {
        "a": {"anna": 1, "bert": 2},
        "b": {"anna": 0, "bert": 1},
        "c": {"anna": 0, "bert": 1},
        "d": {"bert": 0},
        "elsewhere": {"anna": 0, "bert": 1},
    }

    nginx.clear("site")
    lcc.lcc("directives", "-", stdin=f"[{root}a.html, , 3, {{anna}}]\n")
    spider(lcc, "directives=1")
    assert pages(nginx.log("site")) == {"/e.html": 1}
    assert owners(lcc, root)["e"] == {"anna": 0}

    nginx.clear("site")
    spider(lcc, "directives=1")
    assert pages(nginx.log("site")) == {}
    assert {origin for (origin,) in lcc.sql("select origin from lccurl")} == {"directive", "spider"}


def test_depth_nothing_needs_no_spider_and_the_spider_goes_on_from_there(
    site: Path, nginx: Nginx, make_lcc: Callable[..., Lcc]
) -> None:
    nginx.start({"site": site})
    root = f"http://127.0.0.1:{nginx.ports['site']}/"
    lcc = make_lcc("sqlite")
    lcc.add_provider(7, root)
    lcc.start()
    lcc.lcc("directives", "-", stdin=f"[{root}d.html, , 0, {{anna}}]\n")
    lcc.wait_until_fetched()
    lcc.lcc("directives", "-", stdin=f"[{root}d.html, , 1, {{anna}}]\n")
    lcc.wait_until_fetched()
    assert pages(nginx.log("site")) == {"/d.html": 1}
    assert lcc.stop() == 0
    spider(lcc, "directives=1")
    assert pages(nginx.log("site")) == {"/d.html": 1, "/e.html": 1, "/elsewhere": 1}
