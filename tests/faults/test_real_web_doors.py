"""Odd answers through the other doors by which sites are asked: sources, and the sitemaps of ``lcc-push``.

``LCC_REAL_WEB=whole`` asks ``lcc-push`` for all of them, otherwise for some: each is a process of its own.
"""

import json
import os
import subprocess
from collections.abc import Callable

import pytest

from lcc_scrapy.domain.providers import Provider
from tests.faults.real_web_site import RealWebSite, raw
from tests.faults.real_web_wire import LENIENT, with_body
from tests.harness import BIN, PASSWORD, Lcc

pytestmark = [pytest.mark.soak, pytest.mark.timeout(900)]

PID = 7
EVERY = 1 if os.environ.get("LCC_REAL_WEB") == "whole" else 6


def sitemap(url: str) -> bytes:
    return f'<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9"><url><loc>{url}</loc></url></urlset>'.encode()


def test_odd_answers_are_read_as_sitemaps_by_sources_and_by_lcc_push(make_lcc: Callable[..., Lcc]) -> None:
    lcc = make_lcc(LCC_RETRY_DELAYS="")
    with RealWebSite() as site:
        port = site.listen()
        root = f"http://127.0.0.1:{port}/"
        lcc.register(Provider(PID, "", allowprivate=True), roots=[[root]])
        lcc.start()
        urls = {f"{root}{number}.xml": name for number, name in enumerate(LENIENT)}
        for number, (url, name) in enumerate(urls.items()):
            site.put(port, f"/{number}.xml", raw(with_body(LENIENT[name], sitemap(f"{root}{number}"))))
            lcc.lcc("source", "add", str(PID), "--sitemap", url)
        lcc.lcc("source", "run", str(PID), check=False)
        listed = json.loads(lcc.lcc("source", "list", "--json").stdout)
        failed = {urls[one["url"]]: one["error"] for one in listed if one["error"] or one["listed"] != 1}
        pushed = {name: lcc_push(lcc, url) for url, name in list(urls.items())[::EVERY]}
    assert len(listed) == len(LENIENT)
    assert failed == {}
    assert {name: told for name, told in pushed.items() if "accepted" not in told} == {}


def lcc_push(lcc: Lcc, url: str) -> str:
    state = str(lcc.folder / url.rpartition("/")[2])
    command = [
        str(BIN / "lcc-push"),
        "--server",
        f"127.0.0.1:{lcc.port}",
        "--pid",
        str(PID),
        "--state",
        state,
        "--sitemap",
        url,
    ]
    environment = {**lcc.environment, "LCC_PASSWORD": PASSWORD}
    done = subprocess.run(
        command, env=environment, cwd=lcc.folder, capture_output=True, text=True, timeout=300, check=False
    )
    return done.stderr
