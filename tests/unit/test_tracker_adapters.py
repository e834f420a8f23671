"""What adapters of the mirror tracker read: lines of MLSD and rsync, index pages, checksum files; and their spool."""

import asyncio
import tempfile
import tracemalloc

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lcc_scrapy.apps.tracker import effort as efforts
from lcc_scrapy.apps.tracker import index_pages, manifests, mlsd, rsync
from lcc_scrapy.apps.tracker.effort import CannotScan, Effort
from lcc_scrapy.apps.tracker.entries import Directory, Entry, Kind, Unlisted
from lcc_scrapy.apps.tracker.index_pages import Indexed, NoIndex
from lcc_scrapy.apps.tracker.settings import ScanLimits
from lcc_scrapy.apps.tracker.spool import Files, Spool, visible

NAMES = st.binary(min_size=1, max_size=20).filter(lambda name: not {0, 47} & set(name))


# --- MLSD -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("line", "entry"),
    [
        (b"type=file;size=12;modify=20200101000000; a b", Entry((b"d", b"a b"), Kind.FILE, 12)),
        (b"Type=File;Size=0;UNIX.mode=0644; a; b=c", Entry((b"d", b"a; b=c"), Kind.FILE, 0)),
        (b"modify=20200101;type=dir;unique=x; s", Entry((b"d", b"s"), Kind.DIR)),
        (b"type=OS.unix=slink:/To/Where; l", Entry((b"d", b"l"), Kind.LINK, target=b"/To/Where")),
        (b"type=OS.unix=symlink; l", Entry((b"d", b"l"), Kind.LINK, target=b"?")),
        (b"type=file; no size", Entry((b"d", b"no size"), Kind.FILE, -1)),
        (b"type=odd;size=1; odd", Entry((b"d", b"odd"), Kind.FILE, -1)),
    ],
)
def test_a_line_of_facts_is_an_entry(line, entry):
    assert mlsd.parsed(line).entry((b"d",)) == entry


def test_lines_about_the_directory_itself_and_devices_are_known():
    for line in (b"type=cdir; /d", b"type=pdir; /", b"type=dir; .", b"type=dir; .."):
        assert mlsd.parsed(line).is_itself
    assert not mlsd.parsed(b"type=dir; ...").is_itself
    for kind in (b"chr-1/3", b"blk", b"fifo", b"socket"):
        assert mlsd.parsed(b"type=OS.unix=%b; x" % kind).is_device
    assert not mlsd.parsed(b"type=OS.unix=slink:fifo; x").is_device
    for none in (b"", b"type=file;size=1;", b"type=file; "):
        assert mlsd.parsed(none) is None


# --- rsync ----------------------------------------------------------------------------------------


def test_lines_of_rsync_are_entries_with_their_names_as_bytes():
    lines = [
        b"drwxr-xr-x        4096 2026/11/24 13:59:53 .",
        rb"-rw-r--r--+  123456789012 2026/11/24 13:59:53 c#\#134#012",
        b"-rw-r--r--           1 2026/11/24 13:59:53 new\\#012line -> x",
        b"lrwxrwxrwx           1 2026/11/24 13:59:53 l -> a -> b",
        b"prw-r--r--           0 2026/11/24 13:59:53 pipe",
        b"-rw-r--r--           2 2026/11/24 13:59:53 d/\xff\xfe",
    ]
    assert list(rsync.entries(lines)) == [
        Entry((), Kind.DIR, target=b"?"),
        Entry((b"c#\\#012",), Kind.FILE, 123456789012, target=b"?"),
        Entry((b"new\nline -> x",), Kind.FILE, 1, target=b"?"),
        Entry((b"l",), Kind.LINK, target=b"a -> b"),
        Entry((b"d", b"\xff\xfe"), Kind.FILE, 2, target=b"?"),
    ]
    for line in (b"", b"rsync: oops", b"-rw-r--r-- 1,234 2026/11/24 13:59:53 x"):
        with pytest.raises(Unlisted, match="no line of rsync"):
            list(rsync.entries([line]))


def test_only_directories_that_could_not_be_read_may_be_missing():
    closed = b'rsync: [sender] opendir "/a/b" (in mirror) failed: Permission denied (13)\n'
    end = b"rsync error: some files/attrs were not transferred (see previous errors) (code 23) at main.c\n"
    assert rsync._unread(23, closed + end) == {(b"a", b"b")}
    assert rsync._unread(0, b"") == frozenset()
    other = b'rsync: [sender] readlink_stat("/x" (in mirror)) failed: Input/output error (5)\n'
    root = closed.replace(b"/a/b", b"/")
    for status, said in (
        (23, end),
        (23, closed + other + end),
        (23, root + end),
        (24, closed),
        (12, b""),
        (5, b"@ERROR: max\n"),
    ):
        with pytest.raises(CannotScan, match=f"status {status}"):
            rsync._unread(status, said)


def test_rsync_is_given_an_address_and_options_that_a_url_cannot_change():
    words = rsync.command("2001:db8::1", 873, "-e sh/x/", 60.0)
    assert words[-2:] == ["--", "rsync://[2001:db8::1]:873/-e sh/x/"]
    assert words[1:4] == ["--list-only", "-rl", "-8"]


# --- index pages ----------------------------------------------------------------------------------

HEAD = b"<html><head><title>Index of /pub/</title></head><body>"


@pytest.mark.parametrize(
    ("line", "entry"),
    [
        (b'<a href="a%20b">a b</a>   01-Jan-2020 00:00    1500000\n', Indexed(b"a b", False, 1500000)),
        (b'<a href="d/">d/</a>       01-Jan-2020 00:00          -\n', Indexed(b"d", True)),
        (b'<img alt="[   ]"> <a href="x">x</a>   2020-01-01 00:00  972  a text 5', Indexed(b"x", False, 972)),
        (b'<a href="x">x</a> 2020-01-01 00:00  1.2K  ', Indexed(b"x", False)),
        (
            b'<td><a href="x">x</a></td><td align="right">2020-01-01 00:00  </td><td>  0 </td>',
            Indexed(b"x", False, 0),
        ),
        (
            b'<a href="x">x</a></td><td class="m">2020-Jan-01 00:00:00</td><td class="s">0.1K</td>',
            Indexed(b"x", False),
        ),
        (b"<li><A title=1 HREF='x&amp;y%FF'> x</A></li>", Indexed(b"x&y\xff", False)),
        (b'<a href="./co:lon">x</a>', Indexed(b"co:lon", False)),
    ],
)
def test_an_entry_of_an_index_page_is_read(line, entry):
    (found,) = index_pages.read(HEAD + line, "text/html")
    assert (found.name, found.is_dir, found.size) == (entry.name, entry.is_dir, entry.size)


@pytest.mark.parametrize(
    "href", ["../", "/", "/pub/", "?C=N;O=D", "#x", "http://e/x", "mailto:x", "a/b", "", "..", "%41" * 1366]
)
def test_a_link_that_leads_elsewhere_is_no_entry(href):
    assert index_pages.read(HEAD + f'<a href="{href}">x</a>'.encode(), "text/html") == []


def test_an_index_page_may_be_empty():
    assert index_pages.read(HEAD, "text/html") == []
    assert index_pages.read(b"[]", "application/json") == []


def test_entries_in_json_have_exact_sizes():
    body = b'[{"name":"d","type":"directory","mtime":"t"},{"name":"\xff","type":"file","mtime":"t","size":7},{"name":"o","type":"other"}]'
    found = index_pages.read(body, "application/json")
    assert [(one.name, one.is_dir, one.size) for one in found] == [(b"d", True, -1), (b"\xff", False, 7)]


@pytest.mark.parametrize(
    "body",
    [b"{}", b"[1]", b'[{"name":1}]', b"[", b"[" * 100_000, b'[{"name":"\\ud800","type":"file","size":1}]'],
)
def test_json_that_is_no_index_is_none(body):
    with pytest.raises(NoIndex):
        index_pages.read(body, "application/json")


def test_a_page_without_the_title_of_an_index_is_none():
    for body in (b"", b"<title>Welcome</title><a href='x'>x</a>", b" " * 5000 + HEAD):
        with pytest.raises(NoIndex):
            index_pages.read(body, "text/html")


# --- checksum files -------------------------------------------------------------------------------

SUM = "0123456789abcdef" * 4


def test_lines_of_checksums_name_files_below_their_file():
    lines = [
        f"{SUM}  a\n",
        f"{SUM} *./d/b c\r\n",
        f"\\{SUM}  new\\nline\\\\\n",
        "# comment",
        f"{SUM}  ../up",
        f"{SUM}  /abs",
        SUM,
    ]
    found = list(manifests.read([line.encode() for line in lines], (b"x",)))
    assert found == [
        ((b"x",), b"a", bytes.fromhex(SUM)),
        ((b"x", b"d"), b"b c", bytes.fromhex(SUM)),
        ((b"x",), b"new\nline\\", bytes.fromhex(SUM)),
    ]


# --- spool ----------------------------------------------------------------------------------------

DIRECTORIES = st.builds(
    Directory,
    st.lists(NAMES, max_size=3).map(tuple),
    st.lists(st.tuples(st.integers(0, 2**64 - 1).map(lambda size: b"%d" % size), NAMES), max_size=3),
    st.lists(NAMES, max_size=3),
    st.lists(st.tuples(NAMES, NAMES), max_size=3),
    st.lists(st.tuples(NAMES, st.binary(min_size=16, max_size=16)), max_size=2),
    st.booleans(),
)


@given(st.lists(DIRECTORIES, max_size=5), st.booleans())
def test_a_spool_gives_what_was_written_any_number_of_times(directories, backwards):
    with tempfile.TemporaryFile() as file:
        spool = Spool(file, backwards=backwards)
        for one in directories:
            spool.write(one)
        expected = directories[::-1] if backwards else directories
        assert list(spool) == expected
        assert list(spool) == expected


def test_a_target_with_a_nul_is_none(tmp_path):
    files = Files(tmp_path)
    spool = Spool(files.new())
    spool.write(Directory((), [], [], [(b"l", b"a\0b"), (b"m", b"c")], []))
    assert list(spool) == [Directory((), [], [], [(b"m", b"c")], [], sound=False)]
    assert list(tmp_path.iterdir()) == []
    files.close()
    assert spool.file.closed


def test_names_with_a_leading_dot_are_left_out_with_all_behind_them():
    listing = [
        Directory(
            (),
            [(b"1", b".a"), (b"2", b"b")],
            [b".c", b"d"],
            [(b".l", b"x"), (b"m", b".x")],
            [(b".a", b"1" * 16)],
        ),
        Directory((b".c",), [(b"1", b"a")], [], [], []),
        Directory((b"d", b".e"), [(b"1", b"a")], [], [], []),
        Directory((b"d",), [(b"1", b"a.b")], [], [], []),
    ]
    assert list(visible(listing)) == [
        Directory((), [(b"2", b"b")], [b"d"], [(b"m", b".x")], []),
        Directory((b"d",), [(b"1", b"a.b")], [], [], []),
    ]


# --- effort ---------------------------------------------------------------------------------------


def test_what_goes_beyond_a_bound_is_refused_and_what_does_not_is_not():
    effort = Effort(ScanLimits(most_bytes=10, most_entries=5, depth=2, requests=2))
    effort.ask()
    effort.ask()
    effort.enter(5, 2)
    for beyond in (effort.ask, lambda: effort.enter(1, 0), lambda: effort.enter(0, 3)):
        with pytest.raises(CannotScan, match="LCC_TRACKER"):
            beyond()


def test_bytes_wait_for_their_bandwidth(monkeypatch):
    slept = []

    async def sleep(seconds):
        slept.append(seconds)

    monkeypatch.setattr(efforts.asyncio, "sleep", sleep)

    def take():
        effort = Effort(ScanLimits(most_bytes=5000), bandwidth=1000, now=lambda: 100.0)
        for take in (effort.take(400), effort.take(3000)):
            with pytest.raises(StopIteration):
                take.send(None)
        with pytest.raises(CannotScan, match="5000 bytes"):
            effort.take(1601).send(None)

    assert asyncio.iscoroutinefunction(sleep)
    take()
    assert slept == [pytest.approx(400 / 1000 + 3000 / 1000 - 0.5 - 0.5)]


TITLE = b"<title>Index of /</title>"
ENDLESS = {
    "links": (TITLE + b"<a >" * 500_000, "text/html"),
    "names": (TITLE + b"".join(b'<a href="%d">' % number for number in range(30_000)), "text/html"),
    "objects": (b"[" + b'{"name":"x","type":"other"},' * 30_000 + b"0]", "application/json"),
    "lists": (b'[{"name":[' + b"[]," * 2_000_000 + b"[]]}]", "application/json"),
    "a name": (b'[{"name":"' + b"x" * 8_000_000 + b'","type":"directory"}]', "application/json"),
    "brackets": (b"[" * 8_000_000, "application/json"),
}


@pytest.mark.parametrize("kind", ENDLESS)
def test_an_endless_page_is_refused_for_little_memory(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(index_pages, "LINKS", 20_000)
    body, mimetype = ENDLESS[kind]
    tracemalloc.start()
    try:
        with pytest.raises(index_pages.NoIndex):
            index_pages.read(body, mimetype)
        assert tracemalloc.get_traced_memory()[1] < 60_000_000, "its text, and what it lists"
    finally:
        tracemalloc.stop()
