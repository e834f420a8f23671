"""Mirror servers that mean harm: what each got is asserted. None harms the tracker, and none is believed."""

import asyncio
import gzip
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import replace

import pytest

from lcc_scrapy.apps.tracker import entries, ftp_listing, manifests
from lcc_scrapy.apps.tracker.effort import Effort
from lcc_scrapy.apps.tracker.entries import Unlisted
from lcc_scrapy.apps.tracker.ftp import Control
from lcc_scrapy.apps.tracker.settings import ScanLimits
from tests.faults.canary import Canary
from tests.integration.site import Site, page
from tests.little_ftp import LittleFtp
from tests.scans import identities, scanned

GOOD = b"-rw-r--r-- 1 ftp ftp 5 Jan  1 2020 a\r\ndrwxr-xr-x 2 ftp ftp 4096 Jan  1 2020 s\r\n\r\ns:\r\n-rw-r--r-- 1 ftp ftp 3 Jan  1 2020 b\r\n"
QUICK = replace(ScanLimits(), most_bytes=300_000, most_entries=1000, requests=500)


def refused(server: LittleFtp, folder, limits: ScanLimits = QUICK) -> str:
    """Scan a server that cannot be scanned, and return the one line that its operator is told."""
    with pytest.raises(Unlisted) as raised:
        scanned(server.url, folder, limits)
    assert "\n" not in str(raised.value)
    return str(raised.value)


def test_the_little_server_itself_is_good(tmp_path):
    with LittleFtp({"LIST -lR": GOOD}) as server:
        assert set(identities(scanned(server.url, tmp_path, QUICK))) == {(), (b"s",)}


@pytest.mark.parametrize("host", ["10,0,0,1", "127,0,0,2", "169,254,169,254"])
def test_a_data_connection_goes_to_the_server_itself_whatever_address_it_names(host, tmp_path):
    """The canary listens at every address of this machine; only the server's own address is connected to."""
    with Canary() as canary:
        named = f"227 go to ({host},{canary.port // 256},{canary.port % 256})"
        with LittleFtp({"LIST -lR": GOOD}, {"EPSV": "500 no", "PASV": named}) as server:
            why = refused(server, tmp_path)
        assert set(canary.visitors) <= {"127.0.0.1"}
    assert why


@pytest.mark.parametrize("reply", ["229 passive (|||22|)", "229 passive (|||0|)", "229 passive (|||65536|)"])
def test_a_port_where_no_data_can_be_is_refused(reply, tmp_path):
    with LittleFtp({"LIST -lR": GOOD}, {"EPSV": reply}) as server:
        assert "for data, which is refused" in refused(server, tmp_path)


def test_a_server_at_a_private_address_gets_no_connection(tmp_path):
    with Canary() as canary:
        for scheme in ("ftp", "http", "rsync"):
            with pytest.raises(Unlisted, match="its address is private"):
                scanned(f"{scheme}://127.0.0.1:{canary.port}/m/", tmp_path, private=False)
        assert canary.visitors == []


async def endless_lines(writer):
    while True:
        writer.write(b"-rw-r--r-- 1 ftp ftp 5 Jan  1 2020 again\r\n" * 1000)
        await writer.drain()


async def endless_line(writer):
    while True:
        writer.write(b"x" * 10_000)
        await writer.drain()


@pytest.mark.parametrize(("data", "why"), [(endless_lines, "300000 bytes"), (endless_line, "300000 bytes")])
def test_a_listing_without_end_ends_at_a_bound(data, why, tmp_path):
    with LittleFtp({"LIST -lR": data}) as server:
        assert why in refused(server, tmp_path)


@pytest.mark.parametrize("command", ["LIST -lR", "MLSD"])
def test_a_line_without_end_is_no_line(command, tmp_path):
    with LittleFtp({command: b"x" * 100_000}) as server:
        assert "a line of more than 8192 bytes" in refused(server, tmp_path)


def test_a_reply_without_end_is_no_reply(tmp_path):
    for greeting, why in (
        (b"220-" + b"x" * 100_000, "a line of more than"),
        (b"220-hello\r\n" + b"hello\r\n" * 5000, "more than 1000 lines"),
        (b"SSH-2.0-OpenSSH\r\n", "this is no FTP"),
        (b"120 wait\r\n" * 100, "connecting"),
    ):
        with LittleFtp(greeting=greeting) as server:
            assert why in refused(server, tmp_path)


HANGING = ("connect", "USER", "PASS", "TYPE", "MDTM", "CWD", "EPSV", "LIST", "MLST", "MLSD", "PASV", "end")


def hanging(command: str) -> LittleFtp:
    replies = {"EPSV": "500 no"} if command == "PASV" else {}
    if command in {"MLST", "MLSD"}:
        replies["LIST -lR"] = "502 no"
    data = {"LIST -lR": GOOD, "MLSD": b""}
    return LittleFtp(data, replies, silent_at=command, end=b"" if command == "end" else b"226 done\r\n")


@pytest.mark.slow
def test_a_server_that_hangs_at_a_command_is_left(tmp_path):
    """All of them hang at the same time, long enough that nothing else takes as long."""
    with ExitStack() as stack:
        servers = {command: stack.enter_context(hanging(command)) for command in HANGING}
        threads = stack.enter_context(ThreadPoolExecutor(len(HANGING)))
        limits = replace(QUICK, patience=8.0)
        told = {command: threads.submit(refused, one, tmp_path, limits) for command, one in servers.items()}
        assert {one.result() for one in told.values()} == {"nothing came for 8 s"}
    for command, server in servers.items():
        heard = [one.split()[0] for one in server.commands if one != "QUIT"]
        assert heard[-1:] == {"connect": [], "end": ["LIST"]}.get(command, [command])


def test_a_server_that_drips_ends_at_the_deadline(tmp_path):
    async def drip(writer):
        while True:
            writer.write(b"-")
            await writer.drain()
            await asyncio.sleep(0.05)

    with LittleFtp({"LIST -lR": drip}) as server:
        limits = replace(QUICK, deadline=0.5)
        assert refused(server, tmp_path, limits) == "not done after 0.5 s (LCC_TRACKER_DEADLINE)"


def test_a_listing_that_breaks_off_is_not_taken(tmp_path):
    with LittleFtp({"LIST -lR": GOOD}, end=b"426 broken\r\n") as server:
        assert "the transfer broke off" in refused(server, tmp_path)


def test_a_listing_that_says_that_it_is_cut_is_asked_for_directory_by_directory(tmp_path):
    facts = {"MLSD /": b"type=file;size=5; a\r\ntype=dir; s\r\n", "MLSD /s": b"type=file;size=3; b\r\n"}
    with LittleFtp({"LIST -lR": GOOD, **facts}, end=b"226 Output truncated to 2 matches\r\n") as server:
        found = scanned(server.url, tmp_path, QUICK)
    assert found.listed.adapter == "mlsd"
    assert [one.path for one in found] == [(), (b"s",)]


def test_names_that_lead_elsewhere_make_a_directory_unsound(tmp_path):
    hostile = [b"type=file;size=1; a/../../etc/passwd", b"type=dir; ../up", b"type=file;size=1; x\0y"]
    for line in hostile:
        with LittleFtp(
            {"MLSD /": b"type=file;size=5; good\r\n" + line + b"\r\n"}, {"LIST -lR": "502 no"}
        ) as server:
            found = scanned(server.url, tmp_path, QUICK)
        assert identities(found) == {(): None}
        assert not any(".." in command or "passwd" in command for command in server.commands)


def test_a_directory_with_dots_or_a_control_byte_in_its_name_is_asked_for_as_it_is(tmp_path):
    facts = b"type=cdir; .\r\ntype=pdir; ..\r\ntype=dir; \x01\x1b[2J\xff\r\ntype=dir; .\r\n"
    with LittleFtp(
        {"MLSD /": facts, "MLSD": b"type=file;size=1; \xfe\xff\r\n"}, {"LIST -lR": "502 no"}
    ) as server:
        found = list(scanned(server.url, tmp_path, QUICK))
    assert [one.path for one in found] == [(), (b"\x01\x1b[2J\xff",)]
    assert found[1].files == [(b"1", b"\xfe\xff")]


def test_a_directory_whose_name_no_command_can_hold_stays_unknown(tmp_path):
    facts = b"type=dir; a\rRETR secret\r\ntype=dir; good\r\n"
    data = {"MLSD /": facts, "MLSD /good": b"type=file;size=1; x\r\n"}
    with LittleFtp(data, {"LIST -lR": "502 no"}) as server:
        assert [one.path for one in scanned(server.url, tmp_path, QUICK)] == [(), (b"good",)]
    assert not any("secret" in command for command in server.commands)


@pytest.mark.parametrize("size", [b"18446744073709551616", b"-1", b"1e9", b"", b"9" * 60])
def test_a_size_that_is_none_makes_a_directory_unsound(size, tmp_path):
    with LittleFtp({"MLSD /": b"type=file;size=%b; big\r\n" % size}, {"LIST -lR": "502 no"}) as server:
        assert identities(scanned(server.url, tmp_path, QUICK)) == {(): None}


def test_a_tree_without_end_ends_at_a_bound(tmp_path):
    with LittleFtp({"MLSD": b"type=dir; deeper\r\n"}, {"LIST -lR": "502 no"}) as server:
        assert "64 deep" in refused(server, tmp_path)
    wide = b"".join(b"type=dir; %d\r\n" % number for number in range(100))
    with LittleFtp({"MLSD": wide}, {"LIST -lR": "502 no"}) as server:
        limits = replace(QUICK, most_entries=1_000_000, most_bytes=100_000_000, depth=1000)
        assert "more than 500 questions" in refused(server, tmp_path, limits)
    assert len(server.commands) <= 501


def test_a_loop_that_a_server_admits_is_a_link(tmp_path):
    facts = b"type=dir;unique=1; self\r\ntype=dir;unique=2; d\r\ntype=file;size=1;unique=3; f\r\n"
    inner = b"type=dir;unique=1; up\r\ntype=dir;unique=2; self\r\n"
    replies = {"LIST -lR": "502 no", "MLST /": b"250- x\r\n type=dir;unique=1; /\r\n250 end\r\n"}
    with LittleFtp({"MLSD /": facts, "MLSD /d": inner}, replies) as server:
        found = list(scanned(server.url, tmp_path, QUICK))
    assert [one.links for one in found] == [[(b"self", b".")], [(b"up", b".."), (b"self", b".")]]


def ready_made(body: bytes, size: int | None = None) -> LittleFtp:
    stamp = time.strftime("213 %Y%m%d%H%M%S", time.gmtime())
    length = len(body) if size is None else size
    return LittleFtp({"RETR": body}, {"MDTM /ls-lR.gz": stamp, "SIZE /ls-lR.gz": f"213 {length}"})


@pytest.mark.parametrize(
    ("body", "why"),
    [
        (gzip.compress(bytes(50_000_000)), "a line of more than"),
        (gzip.compress(b"total 0\n" * 5_000_000), "300000 bytes unpacked"),
        (gzip.compress(GOOD)[:-9], "cannot be unpacked"),
        (b"\x1f\x8b" + b"junk" * 10, "cannot be unpacked"),
        (gzip.compress(b"") * 2000, "cannot be unpacked"),
        (gzip.compress(b""), "nothing is listed"),
    ],
    ids=["zeros", "lines", "cut", "junk", "members", "empty"],
)
def test_packed_listings_that_are_bombs_or_junk_are_refused(body, why, tmp_path):
    with ready_made(body) as server, pytest.raises(Unlisted, match=why):
        identities(scanned(server.url, tmp_path, QUICK))


def test_a_packed_listing_of_another_size_than_was_said_is_refused(tmp_path):
    with ready_made(gzip.compress(GOOD), size=7) as server:
        assert "ls-lR.gz has 7 bytes" in refused(server, tmp_path)


@pytest.mark.parametrize(
    ("made", "size"), [("20200101000000", "213 5"), ("99999999999999", "213 5"), ("", "213 5")]
)
def test_a_packed_listing_that_is_old_or_undated_is_passed_over(made, size, tmp_path):
    replies = {"MDTM": f"213 {made}", "SIZE": size}
    with LittleFtp({"LIST -lR": GOOD}, replies) as server:
        assert scanned(server.url, tmp_path, QUICK).listed.adapter == "list"
    assert not any(command.startswith("RETR") for command in server.commands)


def test_an_empty_packed_listing_is_passed_over_and_that_in_pub_is_taken(tmp_path):
    stamp = time.strftime("213 %Y%m%d%H%M%S", time.gmtime())
    body = gzip.compress(GOOD)
    replies = {"MDTM": stamp, "SIZE /ls-lR.gz": "213 0", "SIZE /pub/ls-lR.gz": f"213 {len(body)}"}
    with LittleFtp({"RETR /pub/ls-lR.gz": body}, replies) as server:
        found = scanned(server.url, tmp_path, QUICK)
    made = identities(found)
    assert set(made) == {(), (b"pub",), (b"pub", b"s")}
    assert made[()] is None  # what else lies at the base, nobody listed
    assert made[b"pub",] is not None


def test_a_server_is_read_no_faster_than_its_bandwidth(tmp_path):
    with LittleFtp({"LIST -lR": GOOD + b"-rw-r--r-- 1 ftp ftp 5 Jan  1 2020 x\r\n" * 500}) as server:
        began = time.monotonic()
        scanned(server.url, tmp_path, QUICK, bandwidth=10_000)
        assert time.monotonic() - began > 0.5


# --- web servers ---------------------------------------------------------------------------------------------------


@pytest.fixture
def site():
    with Site() as made:
        yield made


def index(*links: str) -> bytes:
    return (
        "<html><head><title>Index of /</title></head><body>" + "\n".join(links) + "</body></html>"
    ).encode()


def test_an_index_page_names_nothing_outside_of_its_directory(site, tmp_path):
    hrefs = (
        "../",
        "/etc/",
        "//evil.example/x",
        "http://evil.example/",
        "..%2Fup",
        "a/b",
        "?C=N;O=D",
        "#top",
        "javascript:x",
        "%2e%2e/",
    )
    body = index(*(f'<a href="{href}">x</a> 01-Jan-2020 00:00 5' for href in (*hrefs, "good")))
    site.put("/", page(body))
    found = list(scanned(f"http://127.0.0.1:{site.listen()}/", tmp_path, QUICK))
    assert [one[1] for one in found[0].files if one[1] == b"good"] == [b"good"]
    assert found[0].dirs == []
    assert {visit.path for visit in site.visits} <= {"/", "/robots.txt", "/ls-lR.gz"}


FILES = b"".join(b"-rw-r--r-- 1 ftp ftp 5 Jan  1 2020 f%d\r\n" % number for number in range(1000))
FACTS = b"".join(b"type=file;size=5; f%d\r\n" % number for number in range(1000))
NO_ALL = {"LIST -lR": "502 no"}


@pytest.mark.parametrize(
    ("data", "replies"),
    [({"LIST -lR": FILES}, {}), ({"MLSD": FACTS}, NO_ALL), ({"LIST": FILES}, {**NO_ALL, "MLSD": "502 no"})],
    ids=("all at once", "facts", "one by one"),
)
def test_the_entries_of_one_directory_take_a_bounded_memory(data, replies, tmp_path, monkeypatch):
    limits = replace(QUICK, most_entries=1_000_000)
    with LittleFtp(data, replies) as server:
        assert len(next(iter(scanned(server.url, tmp_path, limits))).files) == 1000
        monkeypatch.setattr(entries, "HELD_MAX", 100_000)
        assert "entries that take more than 100000 bytes of memory" in refused(server, tmp_path, limits)


def test_a_packed_listing_of_one_large_directory_takes_a_bounded_memory(tmp_path, monkeypatch):
    with ready_made(gzip.compress(FILES)) as server:
        monkeypatch.setattr(entries, "HELD_MAX", 100_000)
        assert "more than 100000 bytes of memory" in refused(
            server, tmp_path, replace(QUICK, most_entries=9999)
        )


@pytest.mark.parametrize("command", ["MLSD", "LIST -lR"])
def test_directories_that_wait_to_be_listed_take_a_bounded_memory(command, tmp_path, monkeypatch):
    """Each lists as many again, so that more wait with each level."""
    facts = b"".join(b"type=dir;unique=%d; %d\r\n" % (number, number) for number in range(100))
    lines = b"".join(b"drwxr-xr-x 2 ftp ftp 4096 Jan  1 2020 %d\r\n" % number for number in range(100))
    monkeypatch.setattr(entries, "HELD_MAX", 100_000)
    with LittleFtp({"MLSD": facts, command: facts if command == "MLSD" else lines}) as server:
        why = refused(server, tmp_path, replace(QUICK, most_entries=1_000_000, most_bytes=100_000_000))
    assert "more than 100000 bytes of memory" in why
    assert len(server.commands) < 50


def test_a_large_directory_is_read_beside_the_event_loop(tmp_path, monkeypatch):
    threads = []
    for name in ("_read_facts", "_missing"):
        real = getattr(ftp_listing, name)

        def seen(*args, real=real):
            threads.append(threading.current_thread().name)
            return real(*args)

        monkeypatch.setattr(ftp_listing, name, seen)
    with LittleFtp({"LIST -lR": GOOD.partition(b"\r\n\r\n")[0], "MLSD": FACTS}) as server:
        scanned(server.url, tmp_path, replace(QUICK, most_entries=9999))
    assert len(threads) == 2
    assert all(name.startswith("asyncio_") for name in threads)


def test_checksum_files_take_a_bounded_memory(tmp_path, monkeypatch):
    """Each line names a file far down, in a directory of its own."""
    lines = b"".join(b"%064d  %b%d/f\n" % (0, b"d/" * 500, number) for number in range(200))
    listed = b"-rw-r--r-- 1 ftp ftp 5 Jan  1 2020 SHA256SUMS\r\n"
    monkeypatch.setattr(entries, "HELD_MAX", 1_000_000)
    with LittleFtp({"LIST -lR": listed, "RETR": b"%064d  SHA256SUMS\n" % 0 + lines}) as server:
        found = list(scanned(server.url, tmp_path, QUICK))
    assert [one.digests for one in found] == [[(b"SHA256SUMS", bytes(32))]]
    collected = manifests.Collected()
    collected.add(lines.splitlines(), ())
    assert len(collected.digests) < 10


def test_replies_that_came_ahead_leave_the_event_loop_to_others():
    async def turns() -> int:
        reader = asyncio.StreamReader()
        reader.feed_data(b"220-x\r\n220 x\r\n" * 100)
        control, counted = Control((reader, Silent()), Effort(QUICK)), []
        other = asyncio.ensure_future(turn(counted))
        for _ in range(100):
            await control.reply()
        other.cancel()
        return len(counted)

    with ThreadPoolExecutor(1) as apart:
        assert apart.submit(asyncio.run, turns()).result() >= 99


async def turn(counted: list[int]) -> None:
    while True:
        counted.append(1)
        await asyncio.sleep(0)


class Silent:
    """What one would write to."""

    def get_extra_info(self, _name: str) -> tuple[str, int]:
        return "127.0.0.1", 21
