"""What the annotation engine reads of sites and of owners, and the ways in which these can grow."""

import io
from contextlib import suppress

from lcc_scrapy.annotation.aci_formats import ACI_MAX, BadAci, aci_of_xml
from lcc_scrapy.annotation.annotating import Page, Profiles
from lcc_scrapy.annotation.urd_formats import LINE_MAX, read_json_lines
from lcc_scrapy.annotation.urd_xml import read_xml
from lcc_scrapy.domain.boolean_rules import BadRule, parse_rule
from lcc_scrapy.domain.changes import changes_between, sentences_of
from lcc_scrapy.domain.urd_rules import BadUrd
from lcc_scrapy.domain.urds import EVERYTHING, RULE_MAX, Keyword, Process, Urd
from lcc_scrapy.feed.plain_text import MOST
from tests.faults.growth import Dimension, Parser, grown

PROCESSORS, COMMAND, WEB = "processes of `lcc annotate`", "process of a command", "thread of `lcc web`"

_PHRASES = tuple(Keyword(" ".join(["java"] * length), 1) for length in range(1, 33))
_RULE = 'any(near/3(java, ibm, "java java"), near/1000(java, x), all(not(coffee), "a b"))'
PROFILES = Profiles(
    [
        Urd(1, "o", EVERYTHING, keywords=_PHRASES),
        Urd(2, "o", EVERYTHING, processtype=Process.RULE, rule=_RULE),
        Urd(3, "o", EVERYTHING, processtype=Process.CHANGE),
        Urd(4, "o", EVERYTHING, processtype=Process.CHANGE, keywords=_PHRASES),
    ]
)


def annotate(body: bytes) -> object:
    """Compare a page with the version before, which had the same in another order."""
    pieces = body.split(b". ")
    return PROFILES.findings(Page("http://x/a", body, "text/html", "", b". ".join(pieces[::-1])), (), 0)


def _article(n: int) -> bytes:
    text = "".join(
        f"<p>This is <b>sentence</b> {number} of a <a href=x>page</a>. " for number in range(n // 60 + 1)
    )
    return f"<title>Page</title>{text}".encode()


def _numbered(name: str, form: str, head: str = "", tail: str = "") -> Dimension:
    return Dimension(
        name,
        lambda n: (head + "".join(form % at for at in range(max(1, n // (len(form) + 4)))) + tail).encode(),
    )


PAGES = Parser(
    "annotation of pages", PROCESSORS, MOST, annotate, _article,
    (
        grown("one word", "a"), grown("one word not ASCII", "\xe4"), grown("words", "a "), grown("words not ASCII", "\xe4 "),
        grown("a keyword", "java "), grown("a keyword in tags", "<b>java</b> "), grown("a keyword in sentences", "java. "),
        grown("terms of near", "java x ibm "), grown("depth", "<div>"), grown("depth of words", "<b>a"),
        grown("links", "<a href=x>a"), grown("links without an end", "<a href"), grown("links in scripts", "<script><a href=x>"),
        grown("lines to be kept", "<pre>a\n"), grown("line ends", "\n", "<pre>"), grown("paragraphs", "<p>a"),
        grown("sentences", "a. "), _numbered("different sentences", "a%d. "), grown("ends of sentences", "."),
        grown("Han", "\u6771"), grown("marks", "\u0301", "a"), grown("what becomes long", "\ufdfa"), grown("what is not seen", "\xad"),
        grown("words without an end", "a|"), grown("references", "&eacute;"),
    ),
)  # fmt: skip
"""A page of the same words in one block, or in many; each also as a change of itself."""


def compare(body: bytes) -> object:
    old = sentences_of(body.decode().split("\n"))
    return changes_between(old, old[::-1]), changes_between(old, old[1::2]), changes_between([], old)


CHANGES = Parser(
    "changes of texts", PROCESSORS, MOST, compare, _numbered("", "This is line %d.\n").make,
    (
        grown("the same line", "a\n"), grown("two lines", "a\nb\n"), _numbered("different lines", "a%d\n"),
        grown("ends of sentences", ". "), grown("a line", "a"), grown("a line of blanks", " ", "a.", "b"),
    ),
)  # fmt: skip


def rule(text: bytes) -> object:
    with suppress(BadRule):
        return parse_rule(text.decode())
    return None


RULES = Parser(
    "rules of URDs", WEB, RULE_MAX, rule, _numbered("", "w%d,", "any(", "x)").make,
    (
        grown("blanks", " "), grown("blanks behind", " ", "any"), grown("blanks within", "any ("), grown("depth", "not("),
        grown("terms", "a,", "any(", "a)"), grown("near", "near/1(a,b),", "any(", "a)"), grown("digits", "1", "near/", "(a, b)"),
        grown("a word", "a"), grown("a phrase", "a ", '"', '"'), grown("quotes", '"'), grown("commas", ","), grown("brackets", ")"),
    ),
)  # fmt: skip


def urds(document: bytes) -> object:
    pieces = (document[at : at + 65_536] for at in range(0, len(document), 65_536))
    with suppress(BadUrd):
        return sum(1 for _ in read_xml(pieces, "o"))
    return None


_URD = '<urd><uri>http://x/</uri><keywords><keyword key="java"/></keywords></urd>'
_OPEN = "<urd><uri>http://x/</uri>"
URDS = Parser(
    "URDs in XML", COMMAND, 1 << 40, urds, grown("", _URD, "<urds>", "</urds>").make,
    (
        grown("URDs", _URD, "<urds>", "</urds>"), _numbered("keywords", '<keyword key="a%d"/>', f"{_OPEN}<keywords>", "</keywords></urd>"),
        grown("a keyword", "a", f'{_OPEN}<keywords><keyword key="', '"/></keywords></urd>'), grown("a uri", "a", "<urd><uri>http://"),
        grown("blanks", " ", "<urds>", "</urds>"), grown("depth", "<urds>"), grown("a tag", "a", "<"), _numbered("attributes", ' a%d=""', "<urds", "/>"),
        grown("a comment", "-", "<urds><!--"), grown("line ends", "\n", "<urds>"), grown("references", "&amp;", "<urd><rule>"),
        grown("keyword elements", "<keywords/>", _OPEN, "</urd>"), grown("open", "<"),
    ),
)  # fmt: skip


def lines(document: bytes) -> object:
    with suppress(BadUrd):
        return sum(1 for _ in read_json_lines(io.BytesIO(document), "o"))
    return None


_LINE = '{"uri": "*", "keywords": [{"key": "java"}]}\n'
LINES = Parser(
    "URDs in JSON", COMMAND, LINE_MAX, lines, grown("", _LINE).make,
    (
        grown("lines", _LINE), grown("empty lines", "\n"), grown("blanks", " "), grown("brackets", "["), grown("objects", '{"a":'),
        grown("keywords", '{"key":"a"},', '{"uri":"*","keywords":[', "{}]}"), _numbered("different keywords", '{"key":"a%d"},', '{"uri":"*","keywords":[', '{"key":"a"}]}'),
        grown("a keyword", "a", '{"uri":"*","keywords":[{"key":"', '"}]}'), _numbered("fields", '"a%d":1,', "{", '"uri":"*"}'), grown("a number", "9", '{"uri":"*","depth":', "}"),
    ),
)  # fmt: skip


def aci(document: bytes) -> object:
    with suppress(BadAci):
        return aci_of_xml(document)
    return None


ACIS = Parser(
    "ACIs in XML", COMMAND, ACI_MAX, aci, grown("", "<mine>a</mine>", "<aci>", "</aci>").make,
    (
        grown("elements", "<a/>", "<aci>", "</aci>"), _numbered("names", "<a%d/>", "<aci>", "</aci>"), _numbered("attributes", ' a%d=""', "<aci", "/>"),
        grown("depth", "<a>", "<aci>"), grown("text", "a", "<aci><title>", "</title></aci>"), grown("detail", "[", "<aci><detail>", "</detail></aci>"),
        grown("namespaces", '<a xmlns="u"/>', "<aci>", "</aci>"), grown("references", "&amp;", "<aci><title>", "</title></aci>"),
    ),
    resident=True,
)  # fmt: skip

PARSERS = (PAGES, CHANGES, RULES, URDS, LINES, ACIS)
