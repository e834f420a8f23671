"""What FTP servers answer to ``LIST -lR`` is read to directories and identities."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lcc_scrapy.apps.tracker.entries import Directory, Unlisted
from lcc_scrapy.apps.tracker.listings import LINE_MAX, read
from lcc_scrapy.apps.tracker.summing import summed

GNU = b""".:
total 8
-rw-r--r-- 1 root root    3 Jan 25 19:43 a
drwxr-xr-x 2 root root 4096 Mar  3  2000 s
lrwxrwxrwx 1 root root    1 Mar  3  2000 z -> s

./s:
total 4
-rw-r--r-- 1 root root 5 Mar  3  2000 b
"""
VSFTPD = b""".:\r
-rw-r--r--    1 ftp      ftp             3 Jan 25 19:43 a\r
drwxr-xr-x    2 ftp      ftp          4096 Mar 03  2000 s\r
lrwxrwxrwx    1 ftp      ftp             1 Mar 03  2000 z -> s\r
\r
./s:\r
-rw-r--r--    1 ftp      ftp             5 Mar 03  2000 b\r
"""
PROFTPD = b"""-rw-r--r--   1 root     root            3 Jan 25 19:43 a\r
drwxr-xr-x   2 root     root         4096 Mar  3  2000 s\r
lrwxrwxrwx   1 root     root            1 Mar  3  2000 z -> s\r
\r
s:\r
-rw-r--r--   1 root     root            5 Mar  3  2000 b\r
"""
PURE = b"""-rw-r--r--    1 0          0                   3 Jan 25 19:43 a\r
drwxr-xr-x    2 0          0                4096 Mar  3  2000 s\r
lrwxrwxrwx    1 0          0                   1 Mar  3  2000 z -> s\r
\r
\r
./s:\r
\r
-rw-r--r--    1 0          0                   5 Mar  3  2000 b\r
"""
ROOTED = GNU.replace(b".:", b"/pub:", 1).replace(b"./s:", b"/pub/s:")
ISO = GNU.replace(b"Mar  3  2000", b"2000-03-03 00:00").replace(
    b"Jan 25 19:43", b"2026-01-25 19:43:00.123456789 +0000"
)
NO_GROUP = GNU.replace(b"root root", b"root")
DIALECTS = {"gnu": GNU, "vsftpd": VSFTPD, "proftpd": PROFTPD, "pure": PURE, "rooted": ROOTED, "iso": ISO, "group": NO_GROUP}  # fmt: skip
TREE = "138e6e1efafc21c4e9f6ccc651215bb8"
INNER = "14ef8abfe3ae0194a39de558fbcfa765"


def listed(*pieces):
    return {one.path: one for one in read(pieces)}


def block(*lines):
    return listed(b"\n".join((b".:", *lines, b"")))[()]


def entry(size, name, kind=b"-"):
    return kind + b"rw-r--r-- 1 a b " + size + b" Jan 25 19:43 " + name


@pytest.mark.parametrize("text", DIALECTS.values(), ids=DIALECTS)
def test_every_dialect_gives_the_same_directories(text):
    found = listed(text)
    assert found == {
        (): Directory((), [(b"3", b"a")], [b"s"], [(b"z", b"s")], []),
        (b"s",): Directory((b"s",), [(b"5", b"b")], [], [], []),
    }
    summary = summed(read([text]))
    assert summary.root.identity.md5.hex() == TREE
    assert summary.find((b"s",)).identity.md5.hex() == INNER


@pytest.mark.parametrize("text", DIALECTS.values(), ids=DIALECTS)
@pytest.mark.parametrize("size", [1, 2, 7, 50])
def test_the_pieces_in_which_a_listing_comes_do_not_matter(text, size):
    assert listed(*(text[at : at + size] for at in range(0, len(text), size))) == listed(text)


def test_devices_pipes_sockets_and_the_directory_itself_are_left_out():
    odd = [b"crw-r--r-- 1 a b 8, 1 Jan 25 19:43 tty", entry(b"0", b"p", b"p"), entry(b"0", b"s", b"s")]
    its = [entry(b"1", b".", b"d"), entry(b"1", b"..", b"d"), entry(b"1", b"d", b"d"), entry(b"7", b"f")]
    assert block(b"total 0", *odd, *its) == Directory((), [(b"7", b"f")], [b"d"], [], [])


@pytest.mark.parametrize(
    "name", [b"\xff\xfe", b"a b  c", b" x", b"\x1b[2J\x07", b"x:", b"a -> b", b"total 5", b"\xc3\xa9" * 100]
)
def test_names_are_bytes(name):
    assert block(entry(b"5", name)).files == [(b"5", name)]
    assert summed(read([b".:\n" + entry(b"5", name) + b"\n"])).root.identity is not None


@pytest.mark.parametrize(
    "line",
    [
        entry(b"18446744073709551616", b"x"),
        entry(b"9" * 5000, b"x"),
        entry(b"-1", b"x"),
        entry(b"5", b"x" * 256),
        entry(b"5", b"a/b"),
        entry(b"5", b".."),
        entry(b"5", b"a\0b"),
        entry(b"5", b"..", b"l"),
        entry(b"5", b"x -> ", b"l"),
        entry(b"1", b"x" * 256, b"d"),
        entry(b"1", b"a/b", b"d"),
        b"second line of a name",
        b"-rw-r--r-- 1 a b",
        b"\xff" * 3000,
    ],
    ids=range(14),
)
def test_a_line_that_cannot_be_used_costs_its_directory_and_those_above_their_identity(line):
    text = b".:\n" + entry(b"1", b"d", b"d") + b"\n" + entry(b"1", b"e", b"d") + b"\n\n"
    text += b"./d:\n" + line + b"\n" + entry(b"5", b"ok") + b"\n\n./e:\n" + entry(b"5", b"ok") + b"\n"
    summary = summed(read([text]))
    assert summary.find((b"d",)).identity is None
    assert summary.root.identity is None
    assert summary.find((b"e",)).identity is not None
    assert summary.totals.unsound == 1


def test_the_largest_size_of_64_bits_counts():
    assert block(entry(b"18446744073709551615", b"x")).files == [(b"18446744073709551615", b"x")]
    assert block(entry(b"0018", b"x"), entry(b"0", b"y")).files == [(b"18", b"x"), (b"0", b"y")]


def test_a_line_without_end_is_refused():
    with pytest.raises(Unlisted, match="line of more"):
        listed(*[b"x" * 1000] * (LINE_MAX // 1000 + 2))


@pytest.mark.parametrize("text", [b"", b"\n\n", b"\r\n"], ids=["nothing", "blank lines", "one line"])
def test_an_empty_listing_is_refused(text):
    with pytest.raises(Unlisted, match="nothing is listed"):
        summed(read([text]))


def test_heads_outside_of_the_base_or_never_named_are_strays():
    heads = [b"/etc:", b"./t:", b"../x:", b"./s/../s:", b"./s//x:", b"./s:", b".:"]
    text = GNU + b"".join(b"\n" + head + b"\n" + entry(b"9", b"evil") + b"\n" for head in heads)
    summary = summed(read([text]))
    assert summary.root.identity.md5.hex() == TREE
    assert summary.totals.strays == len(heads)


@given(st.binary(max_size=300), st.lists(st.binary(max_size=40), max_size=5))
def test_any_bytes_are_read_or_refused(head, more):
    for text in (head, GNU + head, b"\n".join(more) + GNU):
        try:
            summary = summed(read([text]))
        except Unlisted:
            continue
        assert summary.totals.dirs >= 1
        for path, _ in summary.identities():
            assert all(name not in {b"", b".", b".."} and b"/" not in name for name in path)
