"""Texts and queries in every encoding of browsers.

``data/encodings.json`` has what Chromium 156 makes of them: the digests of what its ``TextDecoder`` returns for
single bytes and for all pairs of bytes (``..``, behind a prefix), each decoded alone, and of the queries in
which it asks for each character on a page in an encoding. Where Chromium differs from the Encoding Standard,
the standard's text is in the digest (four characters of Big5), or the bytes are left out (escape sequences of
ISO-2022-JP that are cut).
"""

import json
from collections.abc import Iterator
from hashlib import sha256
from itertools import product
from pathlib import Path

import pytest

from lcc_scrapy.content.charsets import PIECE, decoded, decoder, encoding_of, marked, query_in
from lcc_scrapy.content.multibyte import NAMES, multibyte

CHROMIUM = json.loads((Path(__file__).parents[1] / "data" / "encodings.json").read_text())
LABELS = CHROMIUM["labels"]
DECODED = [(encoding, prefix) for encoding, found in CHROMIUM["decoded"].items() for prefix in found]
SHORT = [(encoding, prefix) for encoding, prefix in DECODED if prefix in {"", ".."}]
OF_REPLACEMENT = ["csiso2022kr", "hz-gb-2312", "iso-2022-cn", "iso-2022-cn-ext", "iso-2022-kr", "replacement"]


def digest(texts: Iterator[str], between: str = "\n") -> str:
    return sha256(between.join(texts).encode("utf-8", "surrogatepass")).hexdigest()


def inputs(encoding: str, prefix: str) -> Iterator[bytes]:
    if not prefix:
        return (bytes((byte,)) for byte in range(0x100))
    before = bytes.fromhex(prefix.removesuffix(".."))
    pairs = (bytes(pair) for pair in product(range(0x100), repeat=2))
    cut = {b"\x1b$", b"\x1b("} if encoding == "iso-2022-jp" else ()
    return (before + pair for pair in pairs if pair not in cut)


def characters(encoding: str) -> Iterator[str]:
    most = 0x30000 if encoding in NAMES or encoding == "iso-2022-jp" else 0x10000
    return (chr(code) for code in range(0x21, most) if not 0xD800 <= code < 0xE000 and code != ord("#"))


def alone(data: bytes, encoding: str) -> str:
    return decoder(encoding).decode(data, True)


def test_all_labels_are_known() -> None:
    named = [(label, encoding) for encoding, labels in LABELS.items() for label in labels.split()]
    assert len(named) + len(OF_REPLACEMENT) == 228
    assert [(label, encoding_of(label)) for label, _ in named] == named
    assert [encoding_of(f"\t {label.upper()}\n") for label, _ in named] == [one for _, one in named]


def test_what_browsers_refuse_to_read_is_read_as_python_does() -> None:
    assert [encoding_of(label) for label in OF_REPLACEMENT] == ["iso2022_kr", "hz", "", "", "iso2022_kr", ""]
    assert decoded(b"~{VPND~}", encoding_of("hz-gb-2312")) == "中文"


@pytest.mark.parametrize(("encoding", "prefix"), SHORT)
def test_all_bytes_are_decoded_as_by_browsers(encoding: str, prefix: str) -> None:
    found = digest(alone(data, encoding) for data in inputs(encoding, prefix))
    assert found == CHROMIUM["decoded"][encoding][prefix]


@pytest.mark.parametrize("encoding", sorted(NAMES))
def test_a_text_is_the_same_whether_or_not_a_piece_of_it_is_malformed(encoding: str) -> None:
    read, table = multibyte(encoding), multibyte(encoding).table
    leads = [lead for byte in range(0x81, 0x100) if read._cut.fullmatch(lead := bytes((byte,)))]
    pairs = (lead + bytes((trail,)) for lead in leads for trail in range(0x100))
    good = [pair for pair in pairs if "\ufffd" not in table[pair]]
    text = "".join(map(table.__getitem__, good))
    assert decoded(b"".join(good), encoding) == text
    assert decoded(b"".join([*good, b"\xff"]), encoding).endswith("\ufffd")
    assert decoded(b"".join([b"\xff ", *good]), encoding)[2:] == text


@pytest.mark.parametrize("encoding", CHROMIUM["queries"])
def test_queries_are_written_as_by_browsers(encoding: str) -> None:
    found = digest((query_in(encoding, character) for character in characters(encoding)), "")
    assert found == CHROMIUM["queries"][encoding]


@pytest.mark.parametrize(
    ("text", "query"),
    [
        ("日本", "%1B$BF|K\\%1B(B"),
        ("日a本", "%1B$BF|%1B(Ba%1B$BK\\%1B(B"),
        ("a\xa5\\~\u203e日", "a%1B(J\\%1B(B\\~%1B(J~%1B$BF|%1B(B"),
        ("日\U0001f600本", "%1B$BF|%1B(B%26%23128512%3B%1B$BK\\%1B(B"),
        ("ｱｲ", "%1B$B%%22%$%1B(B"),
        ("\xa5\U0001f600a", "%1B(J\\%26%23128512%3Ba%1B(B"),
        ("\x0e", "%26%2365533%3B"),
    ],
)
def test_queries_in_iso_2022_jp_switch_between_its_sets(text: str, query: str) -> None:
    assert query_in("iso-2022-jp", text) == query


def test_in_iso_2022_jp_two_escape_sequences_have_something_between_them() -> None:
    assert alone(b"\x1b(B\x1b(Bx", "iso-2022-jp") == "\ufffdx"
    assert alone(b"\x1b$B\x1b(Bx", "iso-2022-jp") == "\ufffdx"
    assert alone(b"\x1b$B0!\x1b(Bx", "iso-2022-jp") == "亜x"


@pytest.mark.parametrize("encoding", ["big5", "euc-jp", "windows-1252", "iso-2022-jp"])
def test_of_ascii_browsers_leave_in_queries_what_they_leave(encoding: str) -> None:
    assert query_in(encoding, " x\"<>'|[]{}^`%41%zz") == "%20x%22%3C%3E%27|[]{}^`%41%zz"
    assert query_in(encoding, "&=+;,/?:@!$()*~-_.") == "&=+;,/?:@!$()*~-_."


@pytest.mark.parametrize("encoding", ["utf-16le", "utf-16be", "utf-8", "iso2022_kr", "utf-32-le"])
def test_other_queries_are_in_utf_8(encoding: str) -> None:
    assert query_in(encoding, "é¢") == "%C3%A9%C2%A2"


@pytest.mark.parametrize("encoding", ["utf-8", "utf-16le", "gb18030", "shift_jis", "euc-jp", "iso-2022-jp"])
@pytest.mark.parametrize("begin", range(4))
def test_a_long_text_is_decoded_in_pieces_as_at_once(encoding: str, begin: int) -> None:
    text = "x" * begin + "日本" * PIECE
    codec = {"shift_jis": "cp932", "iso-2022-jp": "iso2022_jp"}.get(encoding, encoding)
    assert decoded(text.encode(codec), encoding) == text


@pytest.mark.parametrize(
    ("encoding", "data", "text"),
    [
        ("gb18030", b"x\x81\x30\x81", "x"),
        ("euc-jp", b"x\x8f\xa1", "x"),
        ("shift_jis", b"x\x81", "x"),
        ("iso-2022-jp", b"x\x1b$", "x"),
        ("iso-2022-jp", b"\x1b$B\x30", ""),
        ("utf-8", b"x\xe2\x82", "x"),
        ("utf-16le", b"x\0y", "x"),
    ],
)
def test_half_a_character_at_the_end_is_an_error_only_of_a_whole_text(
    encoding: str, data: bytes, text: str
) -> None:
    assert decoded(data, encoding, whole=False) == text
    assert decoded(data, encoding).startswith(f"{text}\ufffd")


def test_a_byte_order_mark_is_not_part_of_the_text() -> None:
    assert decoded("\ufeffx".encode("utf-16-le"), "utf-16le") == "x"
    assert decoded(b"\xef\xbb\xbfx", "utf-8") == "x"
    assert decoded(b"\xef\xbb\xbfx", "windows-1252") == "ï»¿x"
    assert marked(b"\xff\xfe\0\0") == ("utf-32-le", 4)
    assert marked(b"\xff\xfex\0") == ("utf-16le", 2)


@pytest.mark.parametrize(
    "label",
    [
        *("", None, "martian", "zlib", "rot13", "idna", "punycode", "undefined", "utf-7", "mbcs"),
        *("unicode_escape", "unicode-escape", "Raw-Unicode-Escape", "raw_unicode_escape"),
        *("x" * 10_000, "a\0b", "é", "utf-8\xa0", "..", "__init__", "aliases"),
    ],
)
def test_what_no_page_is_in_is_no_charset(label: str | None) -> None:
    assert encoding_of(label) == ""


def test_labels_that_only_python_knows_are_read() -> None:
    assert encoding_of("utf-32") == "utf-32-le"
    assert decoded(b"\x81", encoding_of("CP437")) == "ü"
