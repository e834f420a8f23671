"""One tree, served by real servers: the same identities from all of them, by every adapter that they allow."""

import gzip
import os
import re
import socket
import subprocess
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory, mkdtemp

import pytest

from lcc_scrapy.apps.tracker.entries import Directory, Entry, Kind, Unlisted, of_entries
from lcc_scrapy.apps.tracker.ftp_listing import FtpListing
from lcc_scrapy.apps.tracker.listed import Known, Unchanged
from lcc_scrapy.apps.tracker.settings import ScanLimits
from lcc_scrapy.apps.tracker.spool import visible
from tests.harness import wait_for
from tests.integration.mirror_servers import ALL, FTP, Served, served
from tests.scans import identities, scanned

pytestmark = pytest.mark.slow

NAMES = (
    "plain", "two words", "päivä", "100%", "a#b", "a&b", "a+b", 'quote"d', "semi;colon", "a=b; c", "co:lon", "q?x",
    "(paren)", "tilde~1", "percent%41", "apo's", "-dash", "<tag>", "b" * 200,
)  # fmt: skip
SIZES = (0, 1, 972, 973, 1000, 1023, 1024, 1025, 9999, 10_000, 1_500_000)


def reference(tree: Path) -> Iterator[Directory]:
    """List a tree as the file system has it."""
    for folder, _, _ in os.walk(os.fsencode(tree)):
        above = tuple(part for part in os.path.relpath(folder, os.fsencode(tree)).split(b"/") if part != b".")
        entries = []
        for one in os.scandir(folder):
            kind = Kind.LINK if one.is_symlink() else Kind.DIR if one.is_dir() else Kind.FILE
            size = one.stat().st_size if kind is Kind.FILE else 0
            target = os.readlink(one.path) if kind is Kind.LINK else b""
            entries.append(Entry((*above, one.name), kind, size, target=target))
        yield of_entries(above, entries)


@pytest.fixture(scope="module")
def new_tree() -> Iterator[Callable[[], Path]]:
    """Give what makes folders that servers reach which do not run as this user: pytest's are shut."""
    with TemporaryDirectory(prefix="lcc-trees.") as folder:
        Path(folder).chmod(0o755)
        yield lambda: Path(mkdtemp(dir=folder))


@pytest.fixture(scope="module")
def tree(new_tree) -> Path:
    made = new_tree()
    for number, name in enumerate(NAMES):
        folder = made / "names" / f"{name} d"
        folder.mkdir(parents=True)
        (made / "names" / name).write_bytes(b"x" * number)
        (folder / "inner").write_bytes(b"y" * (number + 7))
    (made / "sizes").mkdir()
    for size in SIZES:
        (made / "sizes" / f"of {size}").write_bytes(b"s" * size)
    (made / "deep" / "1" / "2" / "3" / "4").mkdir(parents=True)
    (made / "deep" / "1" / "2" / "3" / "4" / "bottom").write_bytes(b"b")
    (made / "empty").mkdir()
    (made / ".hidden").mkdir()
    (made / ".hidden" / "inside").write_bytes(b"h")
    (made / "sizes" / ".htaccess").write_bytes(b"")
    opened(made)
    return made


def opened(tree: Path) -> None:
    """Let the users under whom servers run read a tree."""
    subprocess.run(["chmod", "-R", "a+rX", str(tree)], check=True)


@pytest.fixture(scope="module")
def serve(tree, tmp_path_factory) -> Iterator[Callable[..., Served]]:
    """Give what serves the tree; each server runs once."""
    running, contexts = {}, []

    def serving(name: str) -> Served:
        if name not in running:
            context = served(name, tree, tmp_path_factory.mktemp("served") / name)
            running[name] = context.__enter__()
            contexts.append(context)
        return running[name]

    yield serving
    for context in contexts:
        context.__exit__(None, None, None)


ADAPTERS = dict.fromkeys(ALL, "index") | {
    "vsftpd": "list", "proftpd": "list", "pure-ftpd": "list", "pyftpdlib": "mlsd", "rsync": "rsync",
}  # fmt: skip


@pytest.mark.parametrize("name", ALL)
def test_a_server_lists_what_the_tree_has(name, tree, serve, tmp_path):
    found = scanned(serve(name).url, tmp_path)
    assert found.listed.adapter == ADAPTERS[name]
    assert identities(found) == identities(visible(reference(tree)))


@pytest.mark.parametrize("name", ["proftpd", "pure-ftpd", "vsftpd"])
@pytest.mark.parametrize("way", ["mlsd", "list"])
def test_directory_by_directory_a_server_lists_the_same(  # noqa: PLR0917
    way, name, tree, serve, tmp_path, monkeypatch
):
    """vsftpd has no MLSD, so that both ways end in LIST of each directory."""

    async def none(self, *_):
        self._by_mlsd = self._by_mlsd and way == "mlsd"

    monkeypatch.setattr(FtpListing, "_recursive", none)
    if way == "list":
        monkeypatch.setattr(FtpListing, "_by_facts", none)
    found = scanned(serve(name).url, tmp_path)
    assert found.listed.adapter == ("list" if name == "vsftpd" else way)
    assert identities(found) == identities(visible(reference(tree)))


@pytest.fixture(scope="module")
def listed_tree(tree, new_tree) -> Path:
    """A tree with a listing that its owner made by cron."""
    made = new_tree() / "tree"
    subprocess.run(["cp", "-a", str(tree), str(made)], check=True)
    made.parent.chmod(0o755)
    listing = subprocess.run(
        ["ls", "-lR"], cwd=made, check=True, capture_output=True, env={"LC_ALL": "C"}
    ).stdout
    (made / "ls-lR.gz").write_bytes(gzip.compress(listing))
    opened(made)
    return made


@pytest.mark.parametrize("name", [*FTP, "apache", "nginx", "lighttpd"])
def test_a_listing_that_the_server_made_is_taken_and_asked_for_once_while_it_is_the_same(
    name, tree, listed_tree, tmp_path
):
    with served(name, listed_tree, tmp_path / "served") as server:
        first = scanned(server.url, tmp_path)
        assert (first.listed.adapter, bool(first.listed.validator)) == ("ls-lR.gz", True)
        assert identities(first) == identities(visible(reference(tree)))
        known = Known("ls-lR.gz", first.listed.validator)
        wait_for(lambda: set_of_transfers(server.said()), 10, "the first scan in the server's log")
        before = server.said()
        assert scanned(server.url, tmp_path, known=known) == Unchanged(known.adapter, known.validator)
        assert not set_of_transfers(server.said()[len(before) :])
        if name in FTP:
            old = time.time() + 3 * 86_400
            assert scanned(server.url, tmp_path, known=known, now=old).listed.adapter == ADAPTERS[name]


def set_of_transfers(said: str) -> set[str]:
    return set(re.findall(r"RETR|LIST|MLSD|GET /\S*ls-lR", said))


def test_links_and_odd_bytes_come_through_where_servers_show_them(tmp_path, new_tree):
    tree = new_tree()
    (tree / "d").mkdir()
    (tree / "d" / "loop").symlink_to("..")
    (tree / "d" / "file").write_bytes(b"f")
    (tree / "link").symlink_to("d/file")
    (Path(os.fsdecode(os.fsencode(tree) + b"/\xff\xfe"))).write_bytes(b"latin")
    opened(tree)
    expected = identities(visible(reference(tree)))
    for name in ("vsftpd", "proftpd", "pure-ftpd", "rsync"):
        with served(name, tree, tmp_path / name) as server:
            assert identities(scanned(server.url, tmp_path)) == expected, name


@pytest.mark.parametrize("name", ["pyftpdlib", "apache", "nginx", "lighttpd"])
def test_a_loop_ends_where_links_look_like_directories(name, tmp_path, new_tree):
    tree = new_tree()
    (tree / "a" / "b").mkdir(parents=True)
    (tree / "a" / "file").write_bytes(b"f")
    (tree / "a" / "b" / "up").symlink_to("..")
    (tree / "a" / "b" / "other").write_bytes(b"o")
    (tree / "self").symlink_to(".")
    opened(tree)
    with served(name, tree, tmp_path / name) as server:
        found = scanned(server.url, tmp_path, ScanLimits(depth=8))
    assert identities(found) == identities(visible(reference(tree)))
    links = {(*one.path, link[0]): link[1] for one in found for link in one.links}
    assert links == {(b"self",): b".", (b"a", b"b", b"up"): b".."}


@pytest.mark.parametrize("name", ["vsftpd", "proftpd", "nginx"])
def test_a_checksum_file_gives_files_their_content(name, tmp_path, new_tree):
    tree = new_tree()
    (tree / "d" / "e").mkdir(parents=True)
    (tree / "d" / "e" / "two words").write_bytes(b"content")
    (tree / "d" / "one").write_bytes(b"1")
    sums = subprocess.run(
        ["sha256sum", "one", "e/two words"], cwd=tree / "d", check=True, capture_output=True
    )
    (tree / "d" / "SHA256SUMS").write_bytes(sums.stdout + b"garbage\n" + b"0" * 64 + b"  ../outside\n")
    opened(tree)
    with served(name, tree, tmp_path / name) as server:
        found = {one.path: one.digests for one in scanned(server.url, tmp_path)}
    lines = dict(line.split("  ")[::-1] for line in sums.stdout.decode().splitlines())
    assert found[b"d",] == [(b"one", bytes.fromhex(lines["one"]))]
    assert found[b"d", b"e"] == [(b"two words", bytes.fromhex(lines["e/two words"]))]
    assert found[()] == []


@pytest.mark.parametrize("name", ["vsftpd", "proftpd", "pure-ftpd", "rsync"])
def test_a_directory_that_a_server_does_not_list_has_no_identity(name, tmp_path, new_tree):
    tree = new_tree()
    for folder in ("open", "shut"):
        (tree / folder).mkdir()
        (tree / folder / "file").write_bytes(b"f")
    opened(tree)
    (tree / "shut").chmod(0o700)
    with served(name, tree, tmp_path / name) as server:
        found = identities(scanned(server.url, tmp_path))
    assert found[b"open",] is not None
    assert found.get((b"shut",)) is None
    assert found[()] is None


@pytest.mark.parametrize("name", ["proftpd", "rsync", "nginx"])
def test_a_server_beyond_a_bound_is_not_scanned(name, serve, tmp_path):
    url = serve(name).url
    few = replace(ScanLimits(), most_entries=20)
    for limits, why in ((few, "20 entries"), (replace(ScanLimits(), depth=3), "3 deep")):
        with pytest.raises(Unlisted, match=why):
            scanned(url, tmp_path, limits)
    with pytest.raises(Unlisted, match="500 bytes"):
        scanned(url, tmp_path, replace(ScanLimits(), most_bytes=500))


def test_no_server_at_a_private_address_is_scanned_unless_it_may_be(tmp_path):
    """The kernel would queue a connection that nobody has accepted yet."""
    with ThreadPoolExecutor() as threads, socket.create_server(("127.0.0.1", 0)) as listening:
        listening.setblocking(False)
        for scheme in ("ftp", "rsync", "http"):
            url = f"{scheme}://127.0.0.1:{listening.getsockname()[1]}/mirror/"
            with pytest.raises(Unlisted, match="its address is private"):
                threads.submit(scanned, url, tmp_path, private=False).result()
            with pytest.raises(BlockingIOError):
                listening.accept()
