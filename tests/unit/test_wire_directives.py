"""Files of directives as people and programs write them, and as nobody should."""

import io
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lcc_scrapy.domain.directives import DEPTH_MAX, OWNER_MAX, OWNERS_MAX, Directive, directive
from lcc_scrapy.domain.roots import HttpUrl
from lcc_scrapy.wire.directives import LINE_MAX, READERS, Unreadable, read_jsonl, read_text, read_xml
from lcc_scrapy.wire.messages import NAMESPACE

HERE = "http://www.example.org/"
XML = f'<lococa:directives xmlns:lococa="{NAMESPACE}">%s</lococa:directives>'


def text(*lines):
    return list(read_text(io.BytesIO("\n".join(lines).encode())))


def xml(inside, around=XML):
    return list(read_xml(io.BytesIO((around % inside).encode())))


def asked(link, parent="", depth=0, owners=()):
    return Directive(HttpUrl.parse(link), parent, depth, tuple(owners))


def test_the_form_of_the_seed_is_read():
    lines = text(
        "\ufeff# what anna wants", "", f"[{HERE}a, {HERE}, 2, {{anna, bert}}]", f"  [{HERE}b, , 0, {{}}]\r"
    )
    assert lines == [
        (3, asked(HERE + "a", HERE, 2, ("anna", "bert"))),
        (4, asked(HERE + "b")),
    ]


def test_a_comma_without_a_blank_behind_it_belongs_to_the_url():
    assert text(f"[{HERE}a,b,{{c}}, {HERE}x,y, 1, {{anna,bert}}]") == [
        (1, asked(f"{HERE}a,b,%7Bc%7D", HERE + "x,y", 1, ("anna", "bert")))
    ]


@pytest.mark.parametrize(
    ("line", "told"),
    [
        (f"{HERE}a", "expected [link"),
        (f"[{HERE}a, {HERE}, 1]", "expected [link"),
        (f"[{HERE}a,{HERE},1,{{anna}}]", "expected [link"),
        (f"[{HERE}a, , 1, anna]", "expected [link"),
        ("[ftp://www.example.org/, , 1, {anna}]", "link 'ftp://www.example.org/': scheme 'ftp'"),
        (f"[{HERE}a, mailto:anna, 1, {{anna}}]", "parent link 'mailto:anna'"),
        (f"[{HERE}a, , -1, {{anna}}]", "depth '-1', expected a whole number from 0"),
        (f"[{HERE}a, , {DEPTH_MAX + 1}, {{anna}}]", "depth '101'"),
        (f"[{HERE}a, , ٣, {{anna}}]", "depth"),
        (f"[{HERE}a, , 1, {{anna,, bert}}]", "owner ''"),
        (f"[{HERE}a, , 1, {{anna b}}]", "owner 'anna b'"),
        (f"[{HERE}a, , 1, {{<b>}}]", "owner '<b>'"),
        (f"[{HERE}a, , 1, {{{'a' * (OWNER_MAX + 1)}}}]", "owner 'aaaa"),
        (f"[{HERE}a, , 1, {{an\x07na}}]", "owner"),
        (f"[{HERE}a, , 1, {{{','.join(map(str, range(OWNERS_MAX + 1)))}}}]", "101 owners, at most 100"),
        ("[" + "a" * LINE_MAX + "]", f"longer than {LINE_MAX} bytes"),
    ],
)
def test_what_is_wrong_in_a_line_is_told_in_one_and_the_next_is_read(line, told):
    (first, second) = text(line, f"[{HERE}z, , 0, {{}}]")
    assert first[0] == 1
    assert told in first[1]
    assert "\n" not in first[1]
    assert second == (2, asked(HERE + "z"))


def test_bytes_that_are_no_text_are_one_wrong_line():
    assert list(read_text(io.BytesIO(b"[\xff\xfe]\n"))) == [(1, "not UTF-8")]


def test_json_lines_are_read_and_what_is_not_said_has_its_default():
    lines = [
        {"link": HERE + "a", "parent": HERE, "depth": 2, "owners": ["anna"]},
        {"link": HERE + "b"},
    ]
    file = io.BytesIO("".join(json.dumps(line) + "\n" for line in lines).encode())
    assert list(read_jsonl(file)) == [(1, asked(HERE + "a", HERE, 2, ("anna",))), (2, asked(HERE + "b"))]


@pytest.mark.parametrize(
    "line",
    [
        "[" * 10_000,
        "nonsense",
        "[]",
        "{}",
        '{"link": 3}',
        '{"link": "http://x.example/", "depth": true}',
        '{"link": "http://x.example/", "depth": 1.5}',
        '{"link": "http://x.example/", "depth": "2"}',
        '{"link": "http://x.example/", "depth": 1' + "0" * 5000 + "}",
        '{"link": "http://x.example/", "owners": "anna"}',
        '{"link": "http://x.example/", "owners": [["anna"]]}',
        '{"link": "http://x.example/", "owners": ["\\ud800"]}',
        '{"link": "http://x.example/", "until": 3}',
    ],
)
def test_an_object_that_is_no_directive_is_told(line):
    ((number, said),) = read_jsonl(io.BytesIO(line.encode()))
    assert (number, type(said)) == (1, str)


def test_xml_is_read_with_or_without_prefixes():
    inside = (
        f'\n<directive link="{HERE}a?x=1&amp;y=2" parent="{HERE}" depth="2">'
        "<owner>anna</owner> <owner> bert\n</owner></directive><!-- x --><?x y?>"
        f'\n<lococa:directive link="{HERE}b"/>'
    )
    assert xml(inside) == [
        (2, asked(HERE + "a?x=1&y=2", HERE, 2, ("anna", "bert"))),
        (4, asked(HERE + "b")),
    ]
    default = f'<directives xmlns="{NAMESPACE}"><directive link="{HERE}c"/>%s</directives>'
    assert xml("", default) == [(1, asked(HERE + "c"))]


def test_a_wrong_directive_in_xml_is_told_with_its_line_and_the_next_is_read():
    lines = xml(f'\n<directive link="x"/>\n<directive link="{HERE}b" depth="1"/>')
    assert lines[0][0] == 2
    assert "link 'x'" in lines[0][1]
    assert lines[1] == (3, asked(HERE + "b", "", 1))


@pytest.mark.parametrize(
    ("document", "told"),
    [
        ("", "no element found"),
        ("<directives/>", "not this format"),
        (f'<set xmlns="{NAMESPACE}"/>', "may not stand here"),
        ('<!DOCTYPE a [<!ENTITY b "c">]><a/>', "document type declaration"),
        ('<!DOCTYPE a SYSTEM "file:///etc/passwd"><a/>', "document type declaration"),
        ('<?xml version="1.0" encoding="x-nobody"?><a/>', "encoding"),
        (XML % "<directive><directive/></directive>", "may not stand here"),
        (XML % "<directive><owner><b/></owner></directive>", "may not stand here"),
        (XML % "<directive op='remove'/>", "not with these attributes"),
        (XML % "<directive><owner name='anna'/></directive>", "not with these attributes"),
        (XML % "<url/>", "may not stand here"),
        (XML % "text", "text outside of owners"),
        (XML % "&xxe;", "undefined entity"),
        (XML % ("<directive>" + "<owner/>" * 1001), "more than 1000 owners"),
        (XML % ("<directive><owner>" + "a" * 20_000), "owner that is too long"),
        (XML % ("<directive link='" + "a" * 1_000_000), "in one piece of markup"),
        (XML % ("<" + "a" * 1_000_000), "in one piece of markup"),
        (XML % "".join(f"<directive xmlns:a{n}='b'/>" for n in range(40)), "more than 32 namespaces"),
    ],
)
def test_what_is_not_this_format_ends_a_file(document, told):
    with pytest.raises(Unreadable, match=r"^line ") as refused:
        list(read_xml(io.BytesIO(document.encode())))
    assert told in str(refused.value)
    assert "\n" not in str(refused.value)


NAMES = st.text(st.characters(codec="utf-8", exclude_categories=["C", "Z"], exclude_characters=",{}[]<>\"'&"))
OWNERS = st.sets(NAMES.filter(bool), max_size=4)
URLS = st.builds(lambda path: HERE + path, st.text("abz/?=%,;~.-_0é", max_size=20))


@given(st.lists(st.tuples(URLS, URLS | st.just(""), st.integers(0, 100), OWNERS), max_size=4))
def test_every_form_says_the_same(asked_for):
    wanted, lines, objects, elements = [], [], [], []
    for link, parent, depth, owners in asked_for:
        names = [name[:OWNER_MAX] for name in sorted(owners)]
        one = directive(link, parent, depth, names)
        wanted.append(one)
        lines.append(f"[{one.link}, {one.parent}, {depth}, {{{', '.join(one.owners)}}}]\n")
        said = {"link": str(one.link), "parent": one.parent, "depth": depth, "owners": names}
        objects.append(json.dumps(said) + "\n")
        urls = f'link="{one.link!s}" parent="{one.parent}"'.replace("&", "&amp;")
        elements.append(
            f'<directive {urls} depth="{depth}">'
            + "".join(f"<owner>{name}</owner>" for name in names)
            + "</directive>"
        )
    files = {"text": "".join(lines), "jsonl": "".join(objects), "xml": XML % "".join(elements)}
    for form, file in files.items():
        assert [said for _, said in READERS[form](io.BytesIO(file.encode()))] == wanted


@given(st.binary(max_size=300), st.sampled_from(sorted(READERS)))
def test_nothing_that_is_given_breaks_a_reader(data, form):
    try:
        for number, said in READERS[form](io.BytesIO(data)):
            assert number > 0
            assert isinstance(said, (str, Directive))
    except Unreadable:
        assert form == "xml"
