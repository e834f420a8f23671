"""URDs and ACIs as XML and JSON: what is written is read again; what is wrong is told with its line."""

import io
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from lxml import etree

from lcc_scrapy.annotation import aci_formats, urd_formats
from lcc_scrapy.annotation.aci_formats import BadAci, aci_of, aci_of_xml
from lcc_scrapy.annotation.annotating import Page, Profiles
from lcc_scrapy.annotation.urd_formats import json_lines_of, read_json_lines, record_of, urd_of, xml_of
from lcc_scrapy.annotation.urd_xml import TOKEN_MAX, read_xml
from lcc_scrapy.domain.acis import Aci
from lcc_scrapy.domain.urd_rules import BadUrd
from lcc_scrapy.domain.urds import Keyword, Method, Process, Urd

TABLE_4 = b"""<urd id="7">
  <uri timing="600000" lastcheck="97876750000" port="80">
  http://www.cs.ucy.ac.cy/default.html </uri>
  <type protocol="http" method="pull" processtype="filter"/>
  <keywords>
    <keyword key="ibm" weight="1"/>
    <keyword key="research" weight="3"/>
    <keyword key="java" weight="4"/>
    <keyword key="xmpl4j" weight="5"/>
  </keywords>
  <depth level="4"/>
  <urgency urgent="1"/>
</urd>
"""
"""As printed, but for the quotes and blanks that make it well-formed, and the id that Table 5 asks for."""

TABLE_6 = b"""<aci owner="csyiazt1" extension="html" format="html"
      relevance="18" updatetime="97876950000" filesize="2000">
<uri>http://www.cs.ucy.ac.cy/default.html</uri>
<urgency urgent="1"/>
<docbase>969890.gzip</docbase>
<expired expir="false" />
<summary>This is a part of the document with keywords 1)...</summary>
</aci>
"""
KEYWORDS = (Keyword("ibm", 1), Keyword("research", 3), Keyword("java", 4), Keyword("xmpl4j", 5))
URI = "http://www.cs.ucy.ac.cy/default.html"
URD = Urd(7, "csyiazt1", URI, timing=600_000, lastcheck=97_876_750_000, depth=4, keywords=KEYWORDS)
PAGE = b"""<html><head><title>Research groups</title></head><body><h1>Databases</h1>
<p>Our compiler for <a href="java.html">Java</a> runs with XMPL4J, made by <b>IBM</b>.</p>
<p>It is written in JAVA, too. Javascript is something else.</p><script>java(java)</script>
<p>Thanks to I<i>BM</i>!</p></body></html>
"""


def read(document: bytes, owner: str = "csyiazt1") -> list[Urd]:
    return list(read_xml([document], owner))


# --- the tables of the seed ----------------------------------------------------------------------


def test_table_4_is_read() -> None:
    assert read(TABLE_4) == [URD]


def test_table_5_a_urd_is_found_by_its_id() -> None:
    """The seed asks its document for ``//urd[@id=…]``; so can whoever has an export."""
    document = "".join(xml_of([replace(URD, urdid=6), URD])).encode()
    (node,) = etree.fromstring(document).xpath("//urd[@id=7]")
    assert read(etree.tostring(node)) == [URD]


def test_table_6_comes_out_of_table_4() -> None:
    """2 x ibm (1) + 1 x research (3) + 2 x java (4) + 1 x xmpl4j (5) = 18."""
    (found,) = Profiles(read(TABLE_4)).findings(Page(URI, PAGE, "text/html", ""), (), 0)
    assert found.relevance == 18
    seeds = aci_of_xml(TABLE_6)
    aci = Aci(
        urlkey=b"", seq=0, owner=found.urd.owner, number=0, urdid=0, pid=0, extension="html", format="html",
        relevance=found.relevance, updatetime=97_876_950_000, filesize=2000, uri=found.urd.uri,
        urgency=found.urd.urgency, docbase="969890.gzip", expired=False, title="", summary=seeds.summary,
        detail="{}", made=0,
    )  # fmt: skip
    assert aci == seeds
    assert found.title == "Research groups"
    assert found.summary.startswith("1) Databases Our compiler for Java runs with XMPL4J, made by IBM. It is")


# --- URDs ----------------------------------------------------------------------------------------

LETTERS = st.characters(codec="utf-8", exclude_categories=["Cc", "Cs", "Co", "Cn", "Cf", "Zl", "Zp"])
KEYS = st.text(LETTERS, min_size=1, max_size=20).map(lambda text: f"a{text}")
URDS = st.builds(
    Urd,
    st.integers(0, 2**40),
    st.sampled_from(["o", "ö.x", "a-b"]),
    st.sampled_from(["http://x/", "https://x:444/a?b=c&d='e'", "http://x/a/"]),
    timing=st.sampled_from([0, 1000, 600_000]),
    lastcheck=st.integers(0, 2**50),
    method=st.sampled_from(Method),
    depth=st.integers(0, 100),
    urgency=st.integers(0, 2),
    threshold=st.integers(0, 10**6),
    expires=st.none() | st.integers(1, 2**50),
    keywords=st.lists(st.builds(Keyword, KEYS, st.integers(1, 10**6)), min_size=1, max_size=5).map(tuple),
)


def checked(urd: Urd) -> Urd | None:
    try:
        return urd_of(record_of(urd))
    except BadUrd:
        return None  # two keywords are the same words


@given(st.lists(URDS.map(checked).filter(bool), max_size=3))
def test_what_is_written_is_read_and_written_again_as_the_same_bytes(urds: list[Urd]) -> None:
    document, lines = "".join(xml_of(urds)), "".join(json_lines_of(urds))
    assert read(document.encode()) == urds
    assert "".join(xml_of(read(document.encode()))) == document
    again = list(read_json_lines(io.BytesIO(lines.encode())))
    assert again == urds
    assert "".join(json_lines_of(again)) == lines


def test_rules_changes_and_ends_survive() -> None:
    rule = Urd(1, "o", "*", processtype=Process.RULE, rule='all("a <b>", near/3(c, d))', expires=5)
    change = Urd(2, "o", "https://x/", port=443, protocol="https", processtype=Process.CHANGE, threshold=0)
    assert read("".join(xml_of([rule, change])).encode()) == [rule, change]
    assert [urd_of(record_of(one)) for one in (rule, change)] == [rule, change]


@pytest.mark.parametrize("size", [1, 7, 100_000])
def test_a_document_may_come_in_any_pieces(size: int) -> None:
    document = "".join(xml_of([URD] * 50)).encode()
    pieces = (document[at : at + size] for at in range(0, len(document), size))
    assert list(read_xml(pieces)) == [URD] * 50


def test_the_owner_of_the_document_goes_before_the_one_given() -> None:
    assert read(TABLE_4.replace(b'id="7"', b'owner="other"'))[0].owner == "other"
    assert urd_of({"uri": "*", "keywords": [{"key": "a"}]}, "o") == Urd(0, "o", "*", keywords=(Keyword("a"),))


@pytest.mark.parametrize(
    ("old", "new", "told"),
    [
        ('protocol="http"', 'protocol="ftp"', "line 4: protocol 'ftp', expected http or https"),
        ("http://www", "gopher://www", "line 13: uri 'gopher://www.cs.ucy.ac.cy/default.html': scheme 'gopher'"),
        ('processtype="filter"', 'processtype="x"', "line 4: processtype 'x', expected `filter` or `rule` or"),
        ("<depth level", "<dept level", "line 11: <dept> inside of <urd> is no part of a URD"),
        ("level=", "levels=", "line 11: 'levels' is no attribute of <depth>"),
        ('"4"/>\n  <urg', '"4"/><depth/>\n  <urg', "line 11: <depth> stands there twice"),
        ('level="4"', 'level="-4"', "line 11: level '-4', expected a whole number"),
        ('level="4"', 'level="' + "9" * 20 + '"', "line 11: level '99999999999999999999', expected a whole"),
        ('level="4"', 'level="400"', "line 13: depth 400, expected a whole number from 0 to 100"),
        ('key="java"', 'key="' + "j" * 65_536 + '"', "line 8: keyword of 65536 characters, expected 1 to 200"),
        ("<keywords>", "<keywords>java", "line 6: text 'java' is no part of a URD"),
        ("<urd ", "<!DOCTYPE urd><urd ", "line 1: it has a document type (<!DOCTYPE), which is not read"),
        ("</urd>", "", "line 14: no element found"),
        ("<urd ", "<html ", "line 1: <html> at the beginning is no part of a URD"),
        ("<uri timing", "<rule>", "line 3: mismatched tag"),
        ("http://www", "http://" + "w" * 5000, "line 3: uri of more than 4096 characters"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_told_with_its_line(old: str, new: str, told: str) -> None:
    with pytest.raises(BadUrd) as refused:
        read(TABLE_4.decode().replace(old, new, 1).encode())
    assert str(refused.value).startswith(told)
    assert len(str(refused.value)) < 200


def test_a_uri_has_to_be_there() -> None:
    with pytest.raises(BadUrd, match="line 1: <uri> is missing"):
        read(b'<urd owner="o"/>')


def test_a_million_keywords_are_refused_at_the_first_too_many() -> None:
    with pytest.raises(BadUrd, match="line 1001: more than 1000 keywords"):
        read(b"<urd><keywords>" + b'<keyword key="a"/>\n' * 1_000_000)


def test_a_piece_of_xml_has_a_bound() -> None:
    with pytest.raises(BadUrd, match=f"line 1: a piece of XML of more than {TOKEN_MAX} bytes"):
        list(read_xml([b'<urd owner="' + b"x" * 500_000] + [b"x" * 500_000] * 3))


@pytest.mark.parametrize(
    ("line", "told"),
    [
        (b"{", "line 2: this is not JSON"),
        (b"[" * 100_000, "line 2: this is not JSON"),
        (b"\xff", "line 2: this is not JSON"),
        (b"[]", "line 2: expected an object with the fields of a URD"),
        (b'{"owner": "o"}', "line 2: uri is missing"),
        (b'{"uri": "*", "colour": 1}', "line 2: 'colour' is no field of a URD"),
        (b'{"uri": "*", "protocol": "ftp"}', "line 2: protocol 'ftp', expected http or https"),
        (b'{"uri": "*", "depth": true}', "line 2: depth 'True', expected a whole number"),
        (b'{"uri": "*", "depth": 1.5}', "line 2: depth '1.5', expected a whole number"),
        (b'{"uri": 1}', "line 2: uri, expected a text"),
        (b'{"uri": "*", "method": "shout"}', "line 2: method 'shout', expected `pull` or `push`"),
        (b'{"uri": "*", "method": []}', "line 2: method '[]', expected `pull` or `push`"),
        (b'{"uri": "*", "keywords": {}}', "line 2: keywords, expected a list"),
        (b'{"uri": "*", "keywords": ["a"]}', "line 2: a keyword, expected {"),
        (b'{"uri": "*", "keywords": [{"key": 1}]}', "line 2: key, expected a text"),
        (b'{"uri": "*", "depth": ' + b"9" * 5000 + b"}", "line 2: "),
        (b" " * (urd_formats.LINE_MAX + 1), "line 2: more than 2000000 bytes"),
    ],
    ids=str,
)
def test_bad_lines_of_json_are_told_with_their_number(line: bytes, told: str) -> None:
    with pytest.raises(BadUrd) as refused:
        list(read_json_lines(io.BytesIO(b"\n" + line), "o"))
    assert str(refused.value).startswith(told)
    assert len(str(refused.value)) < 200


# --- ACIs ----------------------------------------------------------------------------------------

ACI = Aci(
    bytes(range(16)), 12, "o", 3, 7, 5, "html", "text/html", 18, 97_876_950_000, 2000, 'http://x/?a="b"&c', 2,
    "1/234", True, "Title <b> & 'more'", "1) one\n2) \u2026two", '{"keywords": [{"key": "a]]>", "weight": 1}]}', 99,
)  # fmt: skip


def test_an_aci_survives_xml_and_json() -> None:
    assert aci_of_xml(aci_formats.xml_of(ACI).encode()) == ACI
    assert aci_of(aci_formats.record_of(ACI)) == ACI


def test_elements_attributes_and_fields_of_others_survive() -> None:
    more = TABLE_6.replace(b"</aci>", b'<x:mine xmlns:x="u" a="1"><b>2</b></x:mine> text<also/></aci>')
    aci = aci_of_xml(more.replace(b"<aci ", b'<aci lang="el" '))
    written = aci_formats.xml_of(aci)
    assert '<x:mine xmlns:x="u" a="1"><b>2</b></x:mine>\n  <also/>' in written
    assert ' lang="el"' in written
    assert aci_of_xml(written.encode()) == aci
    assert aci_formats.xml_of(aci_of_xml(written.encode())) == written
    record = {**aci_formats.record_of(ACI), "stars": [1, {"a": 2}]}
    assert aci_formats.record_of(aci_of(record)) == record


def test_what_is_kept_of_others_cannot_break_the_document() -> None:
    bad = '{"elements": ["<a>", "</aci>", "<!DOCTYPE a><a/>", 1, "<fine/>"], "attributes": {"a b": "", "owner": "x"}}'
    written = aci_formats.xml_of(replace(ACI, detail=bad))
    assert aci_of_xml(written.encode()).owner == "o"
    assert [one.tag for one in etree.fromstring(written)][-1] == "fine"


@pytest.mark.parametrize("detail", ["", "[]", "{", "[" * 100_000])
def test_a_detail_that_is_no_object_counts_for_nothing(detail: str) -> None:
    assert aci_formats.record_of(replace(ACI, detail=detail))["detail"] == {}


def test_characters_that_xml_cannot_hold_are_replaced() -> None:
    written = aci_formats.xml_of(replace(ACI, title="a\x00b\rc\ud800", detail="{}"))
    assert aci_of_xml(written.encode()).title == "a\ufffdb\rc\ufffd"


@pytest.mark.parametrize(
    ("document", "told"),
    [
        (b"<aci", "not well-formed"),
        (b"", "not well-formed"),
        (b"<a/>", "<a> is no ACI"),
        (b'<!DOCTYPE aci [<!ENTITY x "y">]><aci/>', "it has a document type"),
        (b'<aci relevance="much"/>', "relevance 'much', expected a whole number"),
        (b'<aci docid="xyz"/>', "docid 'xyz', expected hex digits"),
        (b"<aci>" + b" " * aci_formats.ACI_MAX, "1000005 bytes, at most 1000000"),
    ],
    ids=lambda given: str(given)[:30],
)
def test_what_is_no_aci_is_refused(document: bytes, told: str) -> None:
    with pytest.raises(BadAci) as refused:
        aci_of_xml(document)
    assert str(refused.value).startswith(told)


@pytest.mark.parametrize(
    "record", [[], {"detail": []}, {"uri": 1}, {"relevance": True}, {"docid": "x"}], ids=str
)
def test_what_is_no_record_of_an_aci_is_refused(record: object) -> None:
    with pytest.raises(BadAci):
        aci_of(record)
