"""A root, types and a quota that were wrong, a page that was not there: once it is mended, cron's next run delivers it."""

import re
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.component.test_lcc_push import let_time_pass
from tests.harness import Lcc, wait_for
from tests.integration.site import Site, page

pytestmark = [pytest.mark.acceptance, pytest.mark.slow]


def test_the_next_run_after_the_operator_mended_it_delivers_what_was_refused(
    make_lcc: Callable[..., Lcc], tmp_path: Path
) -> None:
    docroot = tmp_path / "docroot"
    docroot.mkdir()
    with Site() as site:
        host = f"http://127.0.0.1:{site.listen()}/"
        for name in ("a.html", "b.html", "c.html", "d.css"):
            (docroot / name).write_text(f"this is {name}")
            kind = "text/css" if name.endswith("css") else "text/html"
            site.put(f"/{name}", page(f"this is {name}", content_type=kind))
        lcc = make_lcc(LCC_MIMETYPES="text/html")
        lcc.add_provider(7, f"{host}wrong/")
        lcc.start()

        def cron() -> tuple[int, str]:
            done = lcc.push(docroot, 7, host, state=str(tmp_path / "state.txt"))
            lcc.wait_until_fetched()
            return done.returncode, done.stderr

        def documents() -> list[str]:
            return sorted(str(row[0]).removeprefix(host) for row in lcc.sql("select furl from lccurl"))

        assert cron()[0] == 1
        status, said = cron()
        assert (status, documents()) == (1, [])
        assert "0 unchanged, 4 refused before" in said
        assert "704 URL outside the provider's roots  a.html" in said

        lcc.lcc("provider", "set", "7", "--root", host)
        status, said = cron()
        assert "lcccp: 4 URLs that were not taken earlier are sent again" in said
        assert (status, documents()) == (1, ["a.html", "b.html", "c.html"])
        assert re.search(r" 703 .*d\.css", said), said

        lcc.stop()
        lcc.settings["LCC_MIMETYPES"] = "text/html text/css"
        lcc.lcc("provider", "set", "7", "--filesmax", "3")
        lcc.start()
        assert cron()[0] == 0
        wait_for(lambda: lcc.sql("select nurlerrs from pidb") == [(1,)], what="the quota to refuse it")
        status, said = cron()
        assert (status, documents()) == (1, ["a.html", "b.html", "c.html"])
        assert "609 Files quota used up  d.css" in said

        lcc.lcc("provider", "set", "7", "--filesmax", "4")
        assert cron()[0] == 0
        assert documents() == ["a.html", "b.html", "c.html", "d.css"]
        assert cron() == (
            0,
            "lcccpstate: 0 new, 0 changed, 0 removed, 4 unchanged\nlcccp: nothing to send\n",
        )


def test_a_page_that_came_after_its_push_is_cached_by_a_later_run(
    make_lcc: Callable[..., Lcc], tmp_path: Path
) -> None:
    docroot, state = tmp_path / "docroot", tmp_path / "state.txt"
    docroot.mkdir()
    with Site() as site:
        host = f"http://127.0.0.1:{site.listen()}/"
        (docroot / "late.html").write_text("this is late.html")
        lcc = make_lcc(LCC_RETRY_DELAYS="1s")
        lcc.add_provider(7, host)
        lcc.start()

        def cron() -> tuple[int, str]:
            done = lcc.push(docroot, 7, host, state=str(state))
            lcc.wait_until_fetched()
            return done.returncode, done.stderr

        assert cron()[0] == 0
        status, said = cron()
        assert (status, lcc.sql("select furl from lccurl")) == (0, [])
        assert "1 URLs not found at the site, of earlier sets:\nlcccp:   404 Not Found" in said
        site.put("/late.html", page("this is late.html", content_type="text/html"))
        assert "nothing to send" in cron()[1]
        let_time_pass(state)
        assert "1 URLs that failed earlier are sent again" in cron()[1]
        assert lcc.sql("select furl from lccurl") == [(f"{host}late.html",)]
        assert "nothing to send" in cron()[1]
