"""The codec: any encoding, any cutting, any nonsense.

``LCC_SET_URLS`` says how many URLs the set has with which memory is measured.
"""

import itertools
import os
import tracemalloc
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lcc_scrapy.domain.uns_limits import Limits
from lcc_scrapy.uns.codec import Codec, Malformed
from lcc_scrapy.wire import writing
from lcc_scrapy.wire.messages import Init, SetEnd, SetStart, Url
from tests.runs import one_by_one

DATA = Path(__file__).parents[1] / "data" / "uns"
DIALECT_A = (DATA / "dialect_a.xml").read_bytes()
DIALECT_B = (DATA / "dialect_b.xml").read_bytes()
MANY = int(os.environ.get("LCC_SET_URLS", "50000"))
PASSWORD = 'geheim & "lang"'
LOGIN = b'<lococa:init xmlns:lococa="http://www.lococa.org/1.0"><provider id="7" passwd="x"/></lococa:init>'

MESSAGES_A = [
    Init("7", PASSWORD),
    SetStart(full=True, urlprefix="http://www.example.org/", set_id="s-1"),
    Url(
        {
            "curl": "index.htm",
            "burl": "frameset.htm?index.htm",
            "furl": "index.htm?lococa",
            "mimetype": "text/html",
            "mtime": "1700000000",
            "len": "12",
            "md5": "D41D8CD98F00B204E9800998ECF8427E",
        }
    ),
    Url({"curl": "page1.htm?a=1&b=2&c=3&copy;", "mimetype": "text/html"}),
    Url({"curl": "été.htm", "burl": "", "mimetype": "text/html", "strange": "yes"}),
    Url({"curl": "gone.htm", "mimetype": "text/html", "op": "remove"}),
    Url({"curl": "old.htm", "mimetype": "text/html", "furl": ""}),
    SetEnd(),
]
MESSAGES_B = [
    Init("7", PASSWORD),
    SetStart(full=True),
    Url(
        {
            "curl": "My file.html",
            "furl": "http://www.example.org/My file.html?x=1&y=2",
            "mtime": "20020131235959",
            "len": "12",
            "md5": "d41d8cd98f00b204e9800998ecf8427e",
            "mimetype": "text/html",
            "subtype": "lang: nl",
        }
    ),
    Url(
        {
            "curl": "b.html",
            "burl": "http://www.example.org/b.html",
            "furl": "http://www.example.org/b.html",
            "mimetype": "text/html",
        }
    ),
    SetEnd(),
]


def decode(*pieces, limits=None):
    plain, fast = (Codec(limits or Limits(), runs=runs) for runs in (False, True))
    messages = [message for piece in pieces for message in plain.feed(piece)]
    assert one_by_one(message for piece in pieces for message in fast.feed(piece)) == messages
    assert fast.unfinished is plain.unfinished
    return messages


def drip(stream, limits=None):
    return decode(*(stream[at : at + 1] for at in range(len(stream))), limits=limits)


def without_declarations(text):
    return text.replace('<?xml version="1.0" encoding="UTF-8"?>\n', "")


UTF16 = without_declarations(DIALECT_A.decode())
STREAMS = {
    "dialect A": (DIALECT_A, MESSAGES_A),
    "dialect B": (DIALECT_B, MESSAGES_B),
    "A without declarations": (UTF16.encode(), MESSAGES_A),
    "A in undeclared Latin-1": (UTF16.encode("latin-1"), MESSAGES_A),
    "A in declared Latin-1": (
        DIALECT_A.decode().replace("UTF-8", "ISO-8859-1").encode("latin-1"),
        MESSAGES_A,
    ),
    "A in windows-1252": (DIALECT_A.decode().replace("UTF-8", "windows-1252").encode("cp1252"), MESSAGES_A),
    "A in UTF-16 with a mark": (DIALECT_A.decode().replace("UTF-8", "UTF-16").encode("utf-16"), MESSAGES_A),
    "A in UTF-16-LE without a mark": (UTF16.encode("utf-16-le"), MESSAGES_A),
    "A in UTF-16-BE without a mark": (UTF16.encode("utf-16-be"), MESSAGES_A),
    "A with a UTF-8 mark before each element": (
        DIALECT_A.replace(b"<?xml", b"\xef\xbb\xbf<?xml"),
        MESSAGES_A,
    ),
    "A in single quotes and CR LF": (
        UTF16.replace('"0"', "'0'").replace("\n", "\r\n").encode(),
        MESSAGES_A,
    ),
    "a bad third URL": (
        LOGIN + b'<lococa:set set="partial"><url c="a"/><url c="b"/><url c=></lococa:set>',
        [
            Init("7", "x"),
            SetStart(full=False),
            Url({"curl": "a"}),
            Url({"curl": "b"}),
            Malformed("not well-formed (invalid token), line 1"),
        ],
    ),
}


@pytest.mark.parametrize("name", STREAMS)
def test_a_stream_cut_anywhere_gives_the_same_messages(name):
    stream, messages = STREAMS[name]
    assert decode(stream) == messages
    assert drip(stream) == messages
    for at in range(len(stream) + 1):
        assert decode(stream[:at], stream[at:]) == messages, at


@given(st.sampled_from(sorted(STREAMS)), st.lists(st.integers(0, 3000), max_size=30))
def test_a_stream_in_random_pieces_gives_the_same_messages(name, cuts):
    stream, messages = STREAMS[name]
    edges = [0, *sorted(min(cut, len(stream)) for cut in cuts), len(stream)]
    assert decode(*(stream[a:b] for a, b in itertools.pairwise(edges))) == messages


@settings(max_examples=400)
@given(
    st.sampled_from(sorted(STREAMS)),
    st.lists(
        st.tuples(st.integers(0, 2000), st.integers(0, 8), st.binary(max_size=8)), min_size=1, max_size=4
    ),
    st.integers(1, 300),
)
def test_a_mutated_stream_gives_messages_or_a_complaint_and_the_same_in_any_pieces(name, changes, size):
    stream, _ = STREAMS[name]
    for at, gone, put in changes:
        stream = stream[:at] + put + stream[at + gone :]
    messages = decode(stream)
    assert not any(isinstance(message, Malformed) for message in messages[:-1])
    assert decode(*(stream[at : at + size] for at in range(0, len(stream), size))) == messages


def test_a_login_is_told_with_its_last_byte():
    for at in range(len(LOGIN)):
        codec = Codec()
        assert codec.feed(LOGIN[:at]) == []
        assert codec.feed(LOGIN[at:]) == [Init("7", "x")]


def test_an_encoding_may_change_between_the_elements():
    declared = '<?xml version="1.0" encoding="ISO-8859-1"?><lococa:set set="full"><url c="é"/></lococa:set>'
    messages = decode(LOGIN + declared.encode("latin-1"))
    assert messages[2:] == [Url({"curl": "é"}), SetEnd()]


def test_a_declared_encoding_that_is_violated_is_refused():
    stream = b'<?xml version="1.0" encoding="UTF-8"?>' + LOGIN.replace(b'"7"', b'"\xe9"')
    complaint = Malformed("a character that is not XML or not in the encoding declared, line 1")
    assert decode(stream) == [complaint]
    assert decode(DIALECT_A + stream)[:-1] == MESSAGES_A


@pytest.mark.parametrize("encoding", ["utf-7", "base64", "rot13", "idna", "martian", "unicode_escape"])
def test_an_encoding_that_is_no_plain_text_encoding_is_refused(encoding):
    (message,) = decode(f'<?xml version="1.0" encoding="{encoding}"?>'.encode() + LOGIN)
    assert message == Malformed(f"encoding {encoding!r} is not known here")


def test_utf_16_declared_by_what_is_readable_as_ascii_is_not_believed():
    assert decode(b'<?xml version="1.0" encoding="UTF-16"?>' + LOGIN) == [Init("7", "x")]


def test_a_stylesheet_instruction_is_no_declaration():
    assert decode(b'<?xml-stylesheet href="x"?>' + LOGIN) == [Init("7", "x")]


@pytest.mark.parametrize(
    "declaration",
    [
        (
            '<ns0:init xmlns:ns0="http://www.lococa.org/1.0"><ns0:provider id="7" passwd="x"/></ns0:init>'
            '<ns0:set set="full"><ns0:url c="a"/></ns0:set>'
        ),
        (
            '<init xmlns="http://www.lococa.org/1.0"><provider id="7" passwd="x"/></init>'
            '<set set="full"><url c="a"/></set>'
        ),
    ],
)
def test_the_namespace_counts_and_not_its_prefix(declaration):
    assert decode(declaration.encode()) == [
        Init("7", "x"),
        SetStart(full=True),
        Url({"curl": "a"}),
        SetEnd(),
    ]


def test_elements_of_other_namespaces_are_skipped_inside_ours():
    stream = LOGIN + b'<lococa:set set="full"><x:url xmlns:x="urn:x" c="a"/><y:z/><url c="b"/></lococa:set>'
    assert decode(stream)[2:] == [Url({"curl": "b"}), SetEnd()]


@pytest.mark.parametrize(
    ("stream", "detail"),
    [
        (b"GET / HTTP/1.1\r\n", "not XML: does not begin with '<'"),
        (b"\x16\x03\x01\x02\x00", "not XML: does not begin with '<'"),
        (b"<html>", "not this protocol: element 'html'"),
        (b"<init>", "not this protocol: element 'init'"),
        (b'<lococa:init xmlns:lococa="urn:x">', "not this protocol: element 'lococa:init'"),
        (b"<lococa:init></lococa:init>", "init without provider"),
        (b'<lococa:init><provider passwd="x"/></lococa:init>', "provider without id"),
        (b'<lococa:init><provider id="x"/></lococa:init>', "provider without passwd"),
        (
            b'<!DOCTYPE x [<!ENTITY a "b">]>',
            "a document type declaration (DOCTYPE), which is refused, line 1",
        ),
        (b"</stream>", "an element ends that never began"),
        (b"<lococa:init></lococa:set>", "mismatched tag, line 1"),
        (b'<lococa:init a="1" a="2">', "duplicate attribute, line 1"),
        (b'<lococa:init a="&#0;">', "reference to invalid character number, line 1"),
        (b"<lococa:init>\0>", "a character that is not XML or not in the encoding declared, line 1"),
        (LOGIN + b'<lococa:set set="some">', "a set says set='full' or set='partial'"),
        (LOGIN + b"<lococa:set>", "a set says set='full' or set='partial'"),
        (
            LOGIN + b'<lococa:set set="full" id="%s">' % (b"x" * 256),
            "set id of more than 255 characters",
        ),
    ],
)
def test_what_is_not_this_protocol_is_malformed_at_once(stream, detail):
    stream += b">" if detail.endswith("invalid token), line 1") else b""
    assert decode(stream)[-1] == Malformed(detail)
    assert drip(stream)[-1] == Malformed(detail)


def test_an_entity_bomb_is_refused_before_it_grows():
    lol = b"".join(b'<!ENTITY l%d "%s">' % (i, b"&l%d;" % (i - 1) * 10) for i in range(1, 10))
    (message,) = decode(b'<!DOCTYPE x [<!ENTITY l0 "lol">%s]><x>&l9;</x>' % lol)
    assert isinstance(message, Malformed)


def test_depth_is_limited():
    assert decode(LOGIN + b"<lococa:set set='full'>" + b"<a>" * 6)[-1] == SetStart(full=True)
    for stream in (b"<lococa:x>" + b"<a>" * 8, LOGIN + b"<lococa:set set='full'>" + b"<a>" * 9_000):
        assert decode(stream)[-1] == Malformed("more than 8 nested elements")


@pytest.mark.parametrize(
    ("count", "detail"),
    [(17, "more than 16 attributes in one element"), (100_000, "more than 65536 bytes in one element")],
)
def test_attributes_are_limited(count, detail):
    stream = LOGIN + b'<lococa:set set="full"><url %s/>' % b" ".join(b'a%d=""' % n for n in range(count))
    assert decode(stream)[1:] == [SetStart(full=True), Malformed(detail)]


@pytest.mark.parametrize(
    "endless",
    [
        b"<url c='" + b"x" * 200_000,
        b"<url c='" + b">" * 200_000,
        b"<!-- " + b"> " * 200_000,
        b"<![CDATA[" + b">" * 200_000,
        b"<?pi " + b">" * 200_000,
        b"x" * 200_000,
        b"<url" + b" " * 200_000,
        b"<?xml " + b"x" * 200_000,
    ],
)
@pytest.mark.parametrize("size", [1000, 70_000, 1_000_000])
def test_whatever_does_not_end_is_refused_within_its_bound(endless, size):
    codec, stream = Codec(), LOGIN + b'<lococa:set set="full">' + endless
    taken = 0
    for at in range(0, len(stream), size):
        taken = at
        if Malformed("more than 65536 bytes in one element") in codec.feed(stream[at : at + size]):
            break
    else:
        pytest.fail("never refused")
    assert taken <= 80_000


@pytest.mark.parametrize("filler", [b" ", b"<lococa:x/>", b"<!-- x -->"])
def test_a_login_that_does_not_come_is_refused_within_its_bound(filler):
    stream = b"<lococa:x/>" + filler * (90_000 // len(filler)) + LOGIN
    (message,) = decode(stream)
    assert isinstance(message, Malformed)


@pytest.mark.parametrize("size", [1000, 70_000])
def test_blanks_before_the_first_tag_count_like_anything_before_the_login(size):
    assert decode(b" " * 65_536 + LOGIN) == [Init("7", "x")]
    stream = b" " * 65_537 + LOGIN
    pieces = [stream[at : at + size] for at in range(0, len(stream), size)]
    assert decode(*pieces) == [Malformed("more than 65536 bytes before the login")]


def test_the_number_of_urls_is_limited():
    stream = LOGIN + b'<lococa:set set="full">' + b"<url/>" * 4
    messages = decode(stream, limits=Limits(set_urls=3))
    assert messages[2:] == [Url({})] * 3 + [Malformed("more than 3 URLs", too_large=True)]


@pytest.mark.parametrize("size", [1, 100, 100_000])
def test_the_bytes_of_a_set_are_limited(size):
    stream = LOGIN + b'<lococa:set set="full">' + b"<url/>" * 10_000
    pieces = [stream[at : at + size] for at in range(0, len(stream), size)]
    messages = decode(*pieces, limits=Limits(set_bytes=20_000))
    assert messages[-1] == Malformed("more than 20000 bytes", too_large=True)
    assert len(messages) == len(decode(stream, limits=Limits(set_bytes=20_000)))


@pytest.mark.parametrize("unknown", [b'<url n%d=""/>', b"<n%d/>", b'<n n%d=""/>', b'<o:x xmlns:n%d=""/>'])
def test_names_that_nobody_knows_are_limited_since_the_parser_keeps_them(unknown):
    stream = LOGIN + b'<lococa:set set="full">' + b"".join(unknown % n for n in range(300))
    assert decode(stream)[-1] == Malformed("more than 256 different unknown names")


def test_nothing_follows_a_complaint():
    codec = Codec()
    codec.feed(b"<html>")
    assert codec.feed(LOGIN) == []


@pytest.mark.parametrize(
    ("stream", "unfinished"),
    [
        (b"", False),
        (b"<", True),
        (b"<loc", True),
        (LOGIN[:-1], True),
        (LOGIN, False),
        (LOGIN + b"\n", False),
        (LOGIN + b"<lococa:set", True),
        (LOGIN + b"<lococa:set set='full'>", True),
        (b"<lococa:notify><init><provider id='' passwd=''/></init>", False),
        (DIALECT_A, False),
        (DIALECT_B, False),
    ],
)
def test_a_stream_knows_whether_it_is_cut_short(stream, unfinished):
    codec = Codec()
    codec.feed(stream)
    assert codec.unfinished is unfinished


def test_what_a_provider_writes_is_what_the_codec_reads():
    submitted = {"curl": "a&b<c>\"d'\t\n", "mimetype": "text/html", "burl": "", "own": "é"}
    stream = (
        writing.init(Init("7", "<&>"))
        + writing.set_start(SetStart(full=False, urlprefix="p", set_id="i", ifabsent=True, drop_outside=True))
        + writing.url(submitted)
        + writing.set_end()
    )
    assert decode(stream) == [
        Init("7", "<&>", "1.1"),
        SetStart(full=False, urlprefix="p", set_id="i", ifabsent=True, drop_outside=True),
        Url(submitted),
        SetEnd(),
    ]


def elements(count):
    line = (
        b'<url c="dir/page%d.html?a=1&amp;b=2" b="http://www.example.org/dir/page%d.html" mtime="1700000000"'
        b' len="12345" md5="d41d8cd98f00b204e9800998ecf8427e" mimetype="text/html"/>\n'
    )
    for start in range(0, count, 500):
        yield b"".join(line % (n, n) for n in range(start, start + 500))


def peak_of_a_set(count, *, runs):
    codec = Codec(runs=runs)
    codec.feed(LOGIN + b'<lococa:set set="full">')
    tracemalloc.start()
    try:
        seen = sum(len(one_by_one(codec.feed(block))) for block in elements(count))
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert seen == count
    assert codec.feed(b"</lococa:set>") == [SetEnd()]
    return peak


@pytest.mark.parametrize("runs", [False, True])
def test_memory_does_not_grow_with_the_set(runs):
    small, large = peak_of_a_set(10_000, runs=runs), peak_of_a_set(MANY, runs=runs)
    assert large < 5_000_000
    assert large - small < MANY / 2, "less than half a byte for each URL"
