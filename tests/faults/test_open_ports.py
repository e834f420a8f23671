"""A running LCC listens where it was told to and nowhere else, and opens nothing but http and https."""

import signal
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from lcc_scrapy.domain.providers import Provider
from tests.faults.canary import Canary
from tests.harness import BIN, Lcc, wait_for
from tests.integration.project import make_project
from tests.integration.site import Site, page

pytestmark = pytest.mark.slow

LISTENING = "0A"
UNIX_LISTENING = 0x10000


def family(pid: int) -> list[int]:
    """Return a process and all its descendants."""
    children: list[int] = []
    with suppress(OSError):
        for task in Path(f"/proc/{pid}/task").iterdir():
            children += map(int, (task / "children").read_text().split())
    return [pid, *(one for child in children for one in family(child))]


def sockets(pid: int) -> set[str]:
    """Return the inodes of a process's sockets."""
    found = set()
    for descriptor in Path(f"/proc/{pid}/fd").iterdir():
        with suppress(OSError):
            target = str(descriptor.readlink())
            if target.startswith("socket:["):
                found.add(target[8:-1])
    return found


def listening(pid: int) -> list[str]:
    """Return where a process and its descendants listen: ``tcp 127.0.0.1:80``, any UDP port, ``unix PATH``."""
    own = set().union(*map(sockets, family(pid)))
    found = []
    for kind in ("tcp", "tcp6", "udp", "udp6"):
        for line in Path(f"/proc/net/{kind}").read_text().splitlines()[1:]:
            fields = line.split()
            waits = fields[3] == LISTENING if kind.startswith("tcp") else fields[2].endswith(":0000")
            if fields[9] in own and waits:
                address, port = fields[1].split(":")
                found.append(f"{kind} {_address(address)}:{int(port, 16)}")
    for line in Path("/proc/net/unix").read_text().splitlines()[1:]:
        fields = line.split()
        if fields[6] in own and int(fields[3], 16) & UNIX_LISTENING:
            found.append(f"unix {fields[7] if len(fields) > 7 else ''}")
    return sorted(found)


def _address(text: str) -> str:
    return ".".join(str(byte) for byte in reversed(bytes.fromhex(text))) if len(text) == 8 else text


@pytest.fixture
def site() -> Iterator[Site]:
    with Site() as made:
        yield made


def at_work(lcc: Lcc, site: Site, pid: int) -> None:
    """Have something fetched, so that whatever opens late is open."""
    port = site.listen()
    lcc.register(Provider(pid, "", allowprivate=True), roots=[[f"http://127.0.0.1:{port}/"]])
    site.put("/page.html", page("hello"))
    done = lcc.push_urls(pid, [{"curl": f"http://127.0.0.1:{port}/page.html", "mimetype": "text/html"}])
    assert done.returncode == 0, done.stderr
    lcc.wait_until_fetched(60)


def test_what_is_looked_for_is_seen(tmp_path: Path) -> None:
    program = (
        "import socket,time; a=socket.create_server(('127.0.0.1',0)); b=socket.socket(socket.AF_UNIX);"
        f"b.bind('{tmp_path}/door'); b.listen(); c=socket.socket(socket.AF_INET,socket.SOCK_DGRAM); c.bind(('127.0.0.1',0));"
        "print(flush=True); time.sleep(60)"
    )
    with subprocess.Popen([str(BIN / "python"), "-c", program], stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        process.stdout.readline()
        found = [text.split(":")[0] for text in listening(process.pid)]
        process.kill()
    assert found == ["tcp 127.0.0.1", "udp 127.0.0.1", f"unix {tmp_path}/door"]


def test_a_crawl_listens_for_providers_only(make_lcc: Callable[..., Lcc], site: Site) -> None:
    lcc = make_lcc()
    lcc.start()
    at_work(lcc, site, 1)
    assert lcc.crawl is not None
    found = listening(lcc.crawl.pid)
    print(f"\nscrapy crawl lcc_push: {found}")
    assert found == [f"tcp 127.0.0.1:{lcc.port}"]
    assert lcc.stop() == 0


def test_a_crawl_without_endpoints_listens_nowhere_and_lcc_uns_where_it_is_told(
    make_lcc: Callable[..., Lcc], site: Site
) -> None:
    lcc = make_lcc()
    lcc.start_uns()
    lcc.fetch_only()
    at_work(lcc, site, 1)
    assert lcc.crawl is not None
    assert lcc.uns is not None
    print(
        f"\nscrapy crawl -s LCC_UNS_ENDPOINTS=: {listening(lcc.crawl.pid)}; lcc uns: {listening(lcc.uns.pid)}"
    )
    assert listening(lcc.crawl.pid) == []
    assert listening(lcc.uns.pid) == [f"tcp 127.0.0.1:{lcc.port}"]
    assert lcc.stop() == 0
    assert lcc.stop_uns() == 0


@contextmanager
def workers(lcc: Lcc, number: int) -> Iterator[int]:
    with (lcc.folder / "crawl.log").open("ab") as log:
        process = subprocess.Popen(
            [str(BIN / "lcc"), "crawl", "--workers", str(number)],
            env=lcc.environment,
            cwd=lcc.cwd,
            stdout=log,
            stderr=log,
        )
    try:
        yield process.pid
        process.send_signal(signal.SIGTERM)
        assert process.wait(300) == 0
    finally:
        process.kill()
        process.wait(300)


def test_of_several_workers_one_listens(make_lcc: Callable[..., Lcc], site: Site) -> None:
    lcc = make_lcc()
    with workers(lcc, 2) as pid:
        wait_for(lambda: lcc.log_text().count("Spider opened") == 2, 60, "both workers")
        at_work(lcc, site, 1)
        found = listening(pid)
        print(f"\nlcc crawl --workers 2: {len(family(pid))} processes, {found}")
        assert len(family(pid)) >= 3
        assert found == [f"tcp 127.0.0.1:{lcc.port}"]


# --- a project that would open more ----------------------------------------------------------------

OPEN_HEARTED = {
    "settings.py": """
        BOT_NAME = "shop"
        SPIDER_MODULES = ["shop.spiders"]
        ADDONS = {"lcc_scrapy.addon.LccAddon": 100}
        TELNETCONSOLE_ENABLED = True
        REMOTE_CONTROL_ENABLED = True
        DOWNLOAD_HANDLERS = {
            "file": "scrapy.core.downloader.handlers.file.FileDownloadHandler",
            "data": "scrapy.core.downloader.handlers.datauri.DataURIDownloadHandler",
            "s3": "scrapy.core.downloader.handlers.s3.S3DownloadHandler",
            "ftp": "scrapy.core.downloader.handlers.ftp.FTPDownloadHandler",
        }
    """,
    "spiders/push.py": """
        from scrapy import Request
        from scrapy.http.request import NO_CALLBACK

        from lcc_scrapy.spiders.lcc_push import LccPushSpider

        TRIED = ("file:///etc/passwd", "data:,hello", "s3://bucket/key", "ftp://127.0.0.1/x", "gopher://127.0.0.1/x")


        class ShopPush(LccPushSpider):
            name = "shop_push"

            async def parse_document(self, response):
                for url in TRIED:
                    try:
                        request = Request(url, callback=NO_CALLBACK, meta={"dont_obey_robotstxt": True})
                        answer = await self.crawler.engine.download_async(request)
                        said = f"opened {len(answer.body)} bytes"
                    except Exception as error:
                        said = type(error).__name__
                    self.logger.info("TRIED %s: %s", url, said)
                for item in ():
                    yield item
    """,
}


def test_a_project_can_open_neither_files_nor_doors(
    make_lcc: Callable[..., Lcc], site: Site, tmp_path: Path
) -> None:
    """Nor does a proxy of the environment come between, for nobody asked for one."""
    lcc = make_lcc(project=make_project(tmp_path / "project", OPEN_HEARTED))
    with Canary() as canary:
        proxy = f"http://127.0.0.1:{canary.port}"
        lcc.settings |= dict.fromkeys(("http_proxy", "https_proxy", "HTTP_PROXY", "HTTPS_PROXY"), proxy)
        lcc.start(spider="shop_push")
        at_work(lcc, site, 1)
        assert lcc.crawl is not None
        found = listening(lcc.crawl.pid)
        assert lcc.stop() == 0
        assert canary.visitors == []
    tried = dict(
        line.split("TRIED ")[1].rsplit(": ", 1) for line in lcc.log_text().splitlines() if "TRIED " in line
    )
    print(f"\nlistening {found}; {tried}")
    assert found == [f"tcp 127.0.0.1:{lcc.port}"]
    assert len(tried) == 5
    assert set(tried.values()) == {"NotSupported"}
    assert len(lcc.sql("select furl from lccurl")) == 1
