"""XML in any encoding, and with ampersands that nobody wrote as XML wants them; through each of its readers."""

import codecs
import encodings
import io
import pkgutil
from contextlib import suppress
from urllib.parse import unquote

import pytest
import webencodings
from hypothesis import given
from hypothesis import strategies as st

from lcc_scrapy.annotation.aci_formats import BadAci, aci_of_xml
from lcc_scrapy.annotation.urd_xml import read_xml as read_urds
from lcc_scrapy.apps.query.wire.reading import NotUnderstood, QueryReader
from lcc_scrapy.apps.sources.reading import Unreadable, read
from lcc_scrapy.domain.urd_rules import BadUrd
from lcc_scrapy.links.listings import read_listing
from lcc_scrapy.links.rules import LinkRules
from lcc_scrapy.push import pipe
from lcc_scrapy.push.answers import AnswerReader, NotAnAnswer
from lcc_scrapy.push.sitemap import NotASitemap, SitemapReader
from lcc_scrapy.uns.codec import Codec
from lcc_scrapy.wire.directives import Unreadable as UnreadableDirectives
from lcc_scrapy.wire.directives import read_xml as read_directives
from lcc_scrapy.wire.messages import NAMESPACE, InitRejected
from lcc_scrapy.wire.xml_parsing import BadXml, Utf8Text, in_utf8

PLACE = "http://www.example.org/{}"
SITEMAP = "<urlset><url><loc>http://www.example.org/{}</loc></url></urlset>"
URD = "<urd><uri>http://www.example.org/{}</uri><keywords><keyword key='k'/></keywords></urd>"
ACI = "<aci><title>{}</title></aci>"
DIRECTIVES = (
    f"<lococa:directives xmlns:lococa='{NAMESPACE}'>"
    "<directive link='http://www.example.org/{}' depth='1'><owner>a</owner></directive></lococa:directives>"
)


def sitemap_of_lcc_push(document, size=1 << 20):
    reader, found = SitemapReader(), []
    for at in range(0, len(document), size):
        found += reader.feed(document[at : at + size])
    return [entry.loc for entry in found + reader.finish()]


def source(document):
    return [entry.url for entry in read([document]).entries]


def urds(document):
    return [unquote(urd.uri) for urd in read_urds([document], "somebody")]


def directives(document):
    return [unquote(str(found.link)) for _, found in read_directives(io.BytesIO(document))]


def acis(document):
    return [PLACE.format(aci_of_xml(document).title)]


def spider(document):
    return [page.url for page in read_listing(document, PLACE.format("sitemap.xml"), LinkRules()).pages]


READERS = {
    "lcc-push --sitemap": (sitemap_of_lcc_push, SITEMAP, NotASitemap),
    "source": (source, SITEMAP, Unreadable),
    "lcc urd import": (urds, URD, BadUrd),
    "lcc directives": (directives, DIRECTIVES, UnreadableDirectives),
    "ACI": (acis, ACI, BadAci),
}


@pytest.fixture(params=READERS)
def reader(request):
    return READERS[request.param]


def declared(label, body):
    return f'<?xml version="1.0" encoding="{label}"?>\n{body}'


def python_labels():
    modules = {module.name for module in pkgutil.iter_modules(encodings.__path__)}
    return sorted((modules | set(encodings.aliases.aliases)) - {"aliases"})


MULTIBYTE = {
    "Shift_JIS": "cp932", "shift-jis": "cp932", "Windows-31J": "cp932", "x-sjis": "cp932", "MS932": "cp932",
    "EUC-JP": "euc_jp", "x-euc-jp": "euc_jp", "ISO-2022-JP": "iso2022_jp", "GBK": "gbk", "GB2312": "gbk",
    "x-gbk": "gbk", "GB18030": "gb18030", "hz-gb-2312": "hz", "Big5": "big5", "Big5-HKSCS": "big5hkscs",
    "x-x-big5": "big5",
}  # fmt: skip
KOREAN = ("EUC-KR", "ks_c_5601-1987", "windows-949", "iso-2022-kr")


@pytest.mark.parametrize("label", MULTIBYTE)
def test_an_encoding_of_several_bytes_is_read(reader, label):
    take, form, _ = reader
    document = declared(label, form.format("文章")).encode(MULTIBYTE[label])
    assert take(document) == [PLACE.format("文章")]


@pytest.mark.parametrize("label", KOREAN)
def test_korean_is_read(reader, label):
    take, form, _ = reader
    codec = "iso2022_kr" if label.startswith("iso") else "cp949"
    assert take(declared(label, form.format("문서")).encode(codec)) == [PLACE.format("문서")]


@pytest.mark.parametrize(
    ("label", "codec", "character"),
    [
        ("Shift_JIS", "cp932", "①"), ("EUC-KR", "cp949", "똠"), ("GB2312", "gb18030", "囍"), ("GBK", "gb18030", "€"),
        ("Big5", "big5hkscs", "嘅"),
    ],
)  # fmt: skip
def test_characters_that_sites_use_beyond_their_encoding_are_read(reader, label, codec, character):
    take, form, _ = reader
    assert take(declared(label, form.format(character)).encode(codec)) == [PLACE.format(character)]


@pytest.mark.parametrize(
    "label", ["windows-1252", "ISO-8859-1", "x-cp1252", "ISO-8859-15", "macintosh", "l1"]
)
def test_an_encoding_of_one_byte_is_read(reader, label):
    take, form, _ = reader
    codec = {"x-cp1252": "cp1252"}.get(label, label)
    assert take(declared(label, form.format("é")).encode(codec)) == [PLACE.format("é")]


NONSENSE = [
    "none", "null", "x", "utf8mb4", "x-user-defined", "replacement", "ansi", "hex", "rot13", "rot_13", "zlib",
    "bz2", "uu", "quopri", "base64", "idna", "punycode", "undefined", "unicode_escape", "raw_unicode_escape",
    "utf-7", "charmap", "mbcs", "oem", "aliases", "cp037", "cp500", "EBCDIC-CP-US", "a" * 500,
]  # fmt: skip


@pytest.mark.parametrize("label", NONSENSE, ids=lambda label: label[:20])
def test_an_encoding_that_nobody_knows_is_refused_by_its_name(reader, label):
    take, form, error = reader
    with pytest.raises(error, match="encoding") as refused:
        take(declared(label, form.format("a")).encode())
    assert label[:40] in str(refused.value)


@pytest.mark.parametrize("label", ["", " ", "8", "-", "é", "utf 8", "a" * 2000])
def test_a_label_that_is_none_is_refused(reader, label):
    take, form, error = reader
    with pytest.raises(error):
        take(declared(label, form.format("a")).encode())


def test_whatever_python_calls_an_encoding_is_read_or_refused(reader):
    take, form, error = reader
    for label in python_labels():
        try:
            found = take(declared(label, form.format("a")).encode())
        except error:
            continue
        assert found == [PLACE.format("a")], label


READ_BY_NOBODY = {"replacement", "x-user-defined"}


@pytest.mark.parametrize(("label", "standard"), sorted(webencodings.LABELS.items()))
def test_every_label_of_the_encoding_standard_is_known_but_two(label, standard):
    document = declared(label, SITEMAP.format("a")).encode()
    if standard in READ_BY_NOBODY or label == "iso-2022-kr":
        pytest.skip("the standard reads nothing of it")
    if ":" in label or label[0].isdigit():
        with pytest.raises(NotASitemap):  # XML allows no such label
            sitemap_of_lcc_push(document)
    else:
        assert sitemap_of_lcc_push(document) == [PLACE.format("a")]


@pytest.mark.parametrize("codec", ["utf-16", "utf-16-le", "utf-16-be", "utf-32", "utf-32-le", "utf-32-be"])
@pytest.mark.parametrize("label", ["UTF-16", "UTF-8", "Shift_JIS", "none"])
def test_bytes_that_show_their_encoding_count_more_than_its_name(reader, codec, label):
    take, form, _ = reader
    assert take(declared(label, form.format("é")).encode(codec)) == [PLACE.format("é")]


@pytest.mark.parametrize("label", ["ISO-8859-1", "Shift_JIS", "UTF-16", "windows-1252", "none"])
def test_a_byte_order_mark_counts_more_than_a_name(reader, label):
    take, form, _ = reader
    assert take(codecs.BOM_UTF8 + declared(label, form.format("é")).encode()) == [PLACE.format("é")]


@pytest.mark.parametrize(
    "label", ["UTF-16", "utf-16le", "UTF-16BE", "UTF-32", "ucs-2", "ISO-10646-UCS-2", "unicode"]
)
def test_a_name_of_wide_characters_on_bytes_is_utf_8_as_in_browsers(reader, label):
    take, form, _ = reader
    assert take(declared(label, form.format("é")).encode()) == [PLACE.format("é")]


@pytest.mark.parametrize("label", ["Shift_JIS", "EUC-JP", "GB18030", "Big5", "UTF-8", "windows-1253"])
def test_bytes_that_are_not_in_their_encoding_are_refused(reader, label):
    take, form, error = reader
    broken = declared(label, form.format("QQ")).encode().replace(b"QQ", b"\x81\x20")
    with pytest.raises(error):
        take(broken)


def test_a_spider_reads_a_list_in_its_encoding_and_none_that_nobody_knows():
    for label, codec in MULTIBYTE.items():
        assert len(spider(declared(label, SITEMAP.format("文")).encode(codec))) == 1, label
    assert spider(declared("none", SITEMAP.format("a")).encode()) == []
    assert spider(SITEMAP.format("a").encode("utf-16")) == [PLACE.format("a")]


SWITCHED = {"ISO-2022-JP", "hz-gb-2312"}
"""ASCII as long as nothing switches to another set: expat reads them as such."""


@pytest.mark.parametrize(
    "label", [*sorted(MULTIBYTE.keys() - SWITCHED), *NONSENSE, ""], ids=lambda label: label[:20]
)
def test_an_answer_in_an_encoding_that_expat_cannot_cut_is_no_answer(label):
    with pytest.raises(NotAnAnswer):
        AnswerReader().feed(declared(label, '<init_rejected><reason code="101">a</reason>').encode())


@pytest.mark.parametrize("label", ["UTF-8", "ISO-8859-1", "windows-1252", "us-ascii"])
def test_an_answer_of_an_old_server_is_read(label):
    answer = declared(label, '<lococa:init_rejected><reason code="101">no</reason></lococa:init_rejected>')
    assert AnswerReader().feed(answer.encode()) == [InitRejected(101, "no")]


@pytest.mark.parametrize("label", [*MULTIBYTE, *NONSENSE], ids=lambda label: label[:20])
def test_lines_of_the_pipe_are_utf_8_whatever_they_say(label):
    assert pipe.parse_element(declared(label, '<url curl="é"/>').encode()) == ("url", {"curl": "é"})


# --- ampersands ----------------------------------------------------------------------------------

LISTS = {"lcc-push --sitemap": sitemap_of_lcc_push, "source": source, "spider": spider}
WRITTEN = {
    "?a=1&b=2": "?a=1&b=2",
    "?a=1&amp;b=2": "?a=1&b=2",
    "?a=1&#38;b=2&#x26;c": "?a=1&b=2&c",
    "?a&": "?a&",
    "?a&&b&amp;&": "?a&&b&&",
    "?a=1&amp=2": "?a=1&amp=2",
    "?a=1&lt=2&copy=3": "?a=1&lt=2&copy=3",
    "?a=1&#b": None,
    "?a=&#x;1": None,
    "?a=1&_=2;": "?a=1&_=2;",
    "caf&eacute;": "caf%C3%A9",
    "<![CDATA[?a=1&b=2]]>": "?a=1&b=2",
    "<![CDATA[?a=1&amp;b=2]]>": "?a=1&amp;b=2",
    "<!-- & <![CDATA[ -->?a=1&b=2": "?a=1&b=2",
    "<![CDATA[?a]]>&<![CDATA[&b]]>": "?a&&b",
}


@pytest.mark.parametrize("take", LISTS.values(), ids=LISTS)
@pytest.mark.parametrize("written", [one for one in WRITTEN if WRITTEN[one]])
def test_an_ampersand_that_begins_no_reference_is_one(take, written):
    found = [url.replace("é", "%C3%A9") for url in take(SITEMAP.format(written).encode())]
    assert found == [PLACE.format(WRITTEN[written])]


@pytest.mark.parametrize("codec", ["utf-8", "utf-16", "shift_jis"])
def test_it_is_one_in_every_encoding(codec):
    document = declared(codec, SITEMAP.format("?a=1&b=2&amp;c")).encode(codec)
    for take in LISTS.values():
        assert take(document) == [PLACE.format("?a=1&b=2&c")]


def test_an_entity_that_nobody_declared_ends_a_list():
    for take, error in ((sitemap_of_lcc_push, NotASitemap), (source, Unreadable)):
        with pytest.raises(error, match="undefined entity"):
            take(SITEMAP.format("?a&b;c").encode())


def test_a_list_that_is_text_keeps_its_ampersands():
    lines = b"http://www.example.org/?a=1&b=2&amp;c\n" * 2
    assert source(lines) == [PLACE.format("?a=1&b=2&amp;c")] * 2
    assert spider(lines) == [PLACE.format("?a=1&b=2&amp;c")]


def test_what_is_not_a_list_is_not_mended():
    for name in ("lcc urd import", "lcc directives", "ACI"):
        take, form, error = READERS[name]
        with pytest.raises(error):
            take(form.format("?a=1&b=2").encode())


@given(
    st.lists(
        st.sampled_from("&;<>!-[]#xa1\n")
        | st.sampled_from(["&amp;", "<![CDATA[", "]]>", "<!--", "-->", "&#38;"])
    ),
    st.integers(1, 9),
)
def test_cuts_change_nothing(parts, size):
    document = "".join(parts).encode()
    whole = in_utf8(document, 1 << 20, mends=True)
    text, found = Utf8Text(mends=True), b""
    for at in range(0, len(document), size):
        found += text.feed(document[at : at + size])
    assert found + text.feed(b"", last=True) == whole


@pytest.mark.parametrize("size", [1, 2, 3, 7])
def test_a_list_is_read_the_same_however_it_is_cut(size):
    for label, codec in {**MULTIBYTE, "UTF-16": "utf-16"}.items():
        document = declared(label, SITEMAP.format("文章?a&b")).encode(codec)
        assert sitemap_of_lcc_push(document, size) == [PLACE.format("文章?a&b")], label


def test_the_error_says_where_it_is():
    with pytest.raises(BadXml) as refused:
        in_utf8(b"<?xml version='1.0' encoding='none'?><a/>", 100)
    assert refused.value.sentence == "line 1: its encoding 'none' is not known"


def test_no_more_is_mended_than_is_read():
    found = in_utf8(b"<a>" + b"&" * 10_000_000, 1_000_000, mends=True)
    assert 1_000_000 <= len(found) < 1_500_000


@pytest.mark.parametrize("label", [*MULTIBYTE, *NONSENSE], ids=lambda label: label[:20])
def test_messages_of_the_protocols_are_utf_8_whatever_they_say(label):
    message = declared(label, f'<lococa:init xmlns:lococa="{NAMESPACE}"/>').encode()
    assert Codec().feed(message) is not None
    with suppress(NotUnderstood):
        QueryReader(1 << 20).feed(message)


@pytest.mark.parametrize(
    "written",
    [
        b"?a&b;c", b"?a&#0;b", b"?a&#x1;b", b"?a&#55296;b", b"?a&#xD800;b", b"?a&#xFFFE;b", b"?a&#xFFFFFF;b",
        b"?a\x01b", b"?a\x00b", b"caf\xe9", b"?a\xff", b"?a\xed\xa0\x80", b"?a\xef\xbf\xbf",
    ],
)  # fmt: skip
def test_a_url_of_which_a_part_cannot_be_read_is_no_url(written):
    """The parser of the spider reads on behind what it leaves out."""
    entry = b"<urlset><url><loc>http://www.example.org/%s</loc></url>"
    assert spider(entry % written + b"<url><loc>http://www.example.org/b</loc></url></urlset>") == [
        PLACE.format("b")
    ]
    assert spider(b"http://www.example.org/caf\xe9\nhttp://www.example.org/b\n") == [PLACE.format("b")]
    lines = b"http://www.example.org/caf\xe9\nhttp://www.example.org/b\nhttp://www.example.org/c\n"
    assert source(lines) == [PLACE.format("b"), PLACE.format("c")]


def test_every_reference_to_a_character_of_xml_is_read_by_the_spider():
    for number in (9, 10, 13, 0x20, 0xD7FF, 0xE000, 0xFFFD, 0x10000, 0x10FFFF):
        assert in_utf8(b"<a>&#%d;</a>" % number, 100, mends=True, replaces=True) == b"<a>&#%d;</a>" % number
