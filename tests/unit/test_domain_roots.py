# ruff: noqa: RUF001 - look-alikes are what this is about
"""Which URLs lie inside a root: hundreds of spellings (design section 3 ``proots``)."""

import re
from posixpath import normpath
from unittest.mock import patch
from urllib.parse import unquote

import pytest
import yarl
from hypothesis import given
from hypothesis import strategies as st

from lcc_scrapy.domain import roots
from lcc_scrapy.domain.errors import UrlRefused
from lcc_scrapy.domain.roots import URL_MAX, HttpUrl, Root, covering, hosts, inside

ROOTS = tuple(
    map(
        Root.parse,
        ["http://www.example.org/dir/", "https://sec.example.org/", "http://port.example.org:8080/"],
    )
)

INSIDE = """
http://www.example.org/dir/
http://www.example.org/dir/a
http://www.example.org/dir/a/b/c.html
http://www.example.org/dir//a
http://www.example.org/dir/a?b=c&d=%2F..%2f
http://www.example.org/dir/?../../x
http://www.example.org/dir/a#fragment/../..
http://www.example.org/dir/...
http://www.example.org/dir/..a
http://www.example.org/dir/a..
http://www.example.org/dir/.hidden
http://www.example.org/dir/a;b=c
http://www.example.org/dir/a@b
http://www.example.org/dir/user:pass@host
http://www.example.org/dir/http://evil.example/
http://www.example.org/dir/%C3%A9
http://www.example.org/dir/é
http://www.example.org/dir/a b
http://www.example.org/dir/%zz
http://www.example.org/dir/%
http://www.example.org/%64ir/a
http://www.example.org/d%69%72/a
http://www.example.org:80/dir/a
http://www.example.org:/dir/a
HTTP://WWW.EXAMPLE.ORG/dir/a
hTTp://wWw.ExAmPlE.oRg/dir/a
 http://www.example.org/dir/a
http://www.example.org/dir/trailing-blank\x20
https://www.example.org/dir/a
https://www.example.org:443/dir/a
https://sec.example.org/
https://sec.example.org
https://sec.example.org?x
https://sec.example.org/anything
https://sec.example.org:443/x
http://port.example.org:8080/x
http://ｗｗｗ.example.org/dir/fullwidth
http://www.example。org/dir/ideographic-stop
""".strip("\n").split("\n")

TRAVERSALS = [
    f"http://www.example.org/dir{path}"
    for dots in ("..", "%2e%2e", "%2E%2E", ".%2e", "%2e.", ".%2E", "..;", "..;a=b", "%2e%2e;x", ".", "%2e", ".;")
    for path in (f"/{dots}/secret", f"/{dots}", f"/a/{dots}/b", f"/a/b/{dots}/{dots}/{dots}/c", f"//{dots}/x", f"/{dots}?q", f"/{dots}#f")
]  # fmt: skip

SLASHES = [
    f"http://www.example.org/dir/{text}"
    for slash in ("%2f", "%2F", "%5c", "%5C", "\\")
    for text in (f"a{slash}b", f"..{slash}x", f"{slash}", f"{slash}{slash}evil.example", f"%2e%2e{slash}", f"a/b{slash}..{slash}c")
]  # fmt: skip

USERINFO = [
    f"{scheme}://{user}@{host}/dir/a"
    for scheme in ("http", "https")
    for user in ("", "user", "user:pw", ":", "www.example.org", "www.example.org:80", "a%40b", "a@b")
    for host in ("www.example.org", "evil.example")
]  # fmt: skip

LOOKALIKES = [
    f"http://{host}/dir/a"
    for host in (
        "example.org", "ww.example.org", "wwww.example.org", "xwww.example.org", "www.example.org.evil.example",
        "www.example.orgx", "www.example.org.", "www-example.org", "www.examp1e.org", "www.exаmple.org",
        "wwwexample.org", "evil.example", "www.example.com", "www.example.org:81", "www.example.org:443",
        "www.example.org:8080", "www.example.org%2eevil.example", "www.example.org%00.evil.example",
        "www.example.org\\.evil.example", "www.example.org\\@evil.example", "127.0.0.1", "[::1]", "localhost",
        "www.example.org&x", "www.example.org*", "www_example.org", "a.www.example.org", "WWW.EXAMPLE.0RG",
        "www.example.org:080000", "www.example.org:99999", "www.example.org:-80", "www.example.org:8O",
        "www.example.org:0", "www.example.org:80:80", "wwẇ.example.org", "www.examp\u200dle.org.evil.example",
        "www..example.org", ".www.example.org", "www.example.org,evil.example", "www.example.org evil.example",
        "xn--www-example-org", "[www.example.org]", "ⓦ.example.org", "www.example.org‥evil.example",
    )
]  # fmt: skip

ELSEWHERE = """
http://www.example.org
http://www.example.org/
http://www.example.org/dir
http://www.example.org/dirx
http://www.example.org/dir.html
http://www.example.org/Dir/a
http://www.example.org/DIR/a
http://www.example.org/ dir/a
http://www.example.org//dir/a
http://www.example.org/%20dir/a
http://www.example.org/x/dir/a
http://www.example.org/?dir/a
http://www.example.org/?/dir/a
http://www.example.org/#/dir/a
http://www.example.org/;dir/a
http://www.example.org/di%72x/a
http://www.example.org/%2564ir/a
https://www.example.org:80/dir/a
https://www.example.org:8443/dir/a
http://www.example.org:443/dir/a
http://sec.example.org/
http://sec.example.org:443/
http://port.example.org/
http://port.example.org:80/
http://port.example.org:8081/
https://port.example.org:8080/
https://port.example.org/
https://sec.example.org:80/
""".strip().split("\n")

INVALID = [
    "", " ", "/", "/dir/a", "dir/a", "www.example.org/dir/a", "//www.example.org/dir/a", "http:", "http:/", "http://",
    "http:///", "http:///dir/a", "http:/www.example.org/dir/a", "http:www.example.org/dir/a", "http:\\\\www.example.org\\dir",
    "http:/\\www.example.org/dir/a", "http://?x", "http://#x", "http://:80/", "http://:80", "://www.example.org/dir/a",
    "file:///dir/a", "ftp://www.example.org/dir/a", "data:text/html,x", "javascript:alert(1)", "s3://www.example.org/dir/a",
    "gopher://www.example.org/dir/a", "httpx://www.example.org/dir/a", "http+unix://www.example.org/dir/a", "h ttp://www.example.org/dir/a",
    "http://[::1", "http://::1]/", "http://[]/", "http://[zz]/", "http://a[b]c/", "http://www.example.org:port/",
    "http://" + "a" * 64 + ".org/", "http://" + "a." * 130 + "org/",
    *[f"http://www.example.org/dir/a{chr(code)}b" for code in (0, 1, 8, 9, 10, 11, 12, 13, 27, 31, 127, 0xD800, 0xDFFF)],
    *[f"http://www.exa{chr(code)}mple.org/dir/" for code in (0, 9, 10, 13, 32, 127)],
    *[f"{chr(code)}http://www.example.org/dir/a" for code in (0, 9, 10, 13)],
]  # fmt: skip

OUTSIDE = [*TRAVERSALS, *SLASHES, *USERINFO, *LOOKALIKES, *ELSEWHERE, *INVALID]


def parsed(text):
    """Return the URL, or None when it is refused as one should be."""
    try:
        return HttpUrl.parse(text)
    except UrlRefused as error:
        refused = error
    assert refused.code == (707 if len(text) > URL_MAX else 705)
    return None


def covered(text):
    url = parsed(text)
    return url is not None and inside(url, ROOTS)


def test_there_are_three_hundred_spellings():
    assert len({*INSIDE, *OUTSIDE}) >= 300


@pytest.mark.parametrize("text", INSIDE)
def test_an_honest_spelling_is_inside(text):
    assert covered(text)


@pytest.mark.parametrize("text", OUTSIDE)
def test_a_spelling_that_leads_elsewhere_is_not_inside(text):
    assert not covered(text)


@pytest.mark.parametrize("text", INVALID)
def test_what_is_no_http_url_is_refused(text):
    with pytest.raises(UrlRefused) as refused:
        HttpUrl.parse(text)
    assert refused.value.code == 705


@pytest.mark.parametrize(
    ("text", "normal"),
    [
        ("HTTP://Www.Example.ORG", "http://www.example.org/"),
        ("http://www.example.org:80/a", "http://www.example.org/a"),
        ("https://www.example.org:443/a", "https://www.example.org/a"),
        ("https://www.example.org:80/a", "https://www.example.org:80/a"),
        ("http://www.example.org/a b/é?q=ü r#frag", "http://www.example.org/a%20b/%C3%A9?q=%C3%BC%20r"),
        ("http://bücher.example/", "http://xn--bcher-kva.example/"),
        ("http://XN--BCHER-KVA.example/", "http://xn--bcher-kva.example/"),
        ("http://b%C3%BCcher.%45xample/", "http://xn--bcher-kva.example/"),
        ("http://[2001:DB8::1]:8080/a", "http://[2001:db8::1]:8080/a"),
        ("http://www.example.org/%7Ea/%zz", "http://www.example.org/%7Ea/%zz"),
        ("http://www.example.org?a", "http://www.example.org/?a"),
        ("http://www.example.org/a['b']?c['d']", "http://www.example.org/a%5B'b'%5D?c%5B%27d%27%5D"),
        ('http://a_b.example.org/<x>"', "http://a_b.example.org/%3Cx%3E%22"),
    ],
)
def test_a_url_is_written_as_it_will_be_requested(text, normal):
    assert str(HttpUrl.parse(text)) == normal
    assert str(HttpUrl.parse(normal)) == normal


ADDRESSES = [
    "127.1", "127.0.1", "2130706433", "0x7f000001", "0x7f.0.0.1", "0177.0.0.1", "127.0.0.01", "127.0.0.1.", "127.0.0.256", "1.2.3",
    "0x", "1.2.3.4.5", "example.123", "example.0x1f", "１２７．１", "[::1", "[::1]x", "[::1].", "[fe80::1%25lo]", "[fe80::1%lo]", "[v1.fe80]",
    "[127.0.0.1]", "[::1]:80]", "[:1]", "[::ffff:127.0.0.256]",
]  # fmt: skip


@pytest.mark.parametrize("host", ADDRESSES)
def test_an_address_is_canonical_or_refused(host):
    with pytest.raises(UrlRefused) as refused:
        HttpUrl.parse(f"http://{host}/")
    assert refused.value.code == 705


@pytest.mark.parametrize(
    ("host", "canonical"),
    [
        ("127.0.0.1", "127.0.0.1"),
        ("１２７．０．０．１", "127.0.0.1"),
        ("[0:0:0:0:0:0:0:1]", "[::1]"),
        ("[::FFFF:127.0.0.1]", "[::ffff:7f00:1]"),
        ("1and1.example", "1and1.example"),
        ("4.example.co1", "4.example.co1"),
        ("a.0xg", "a.0xg"),
    ],
)
def test_a_host_is_compared_in_one_form(host, canonical):
    assert str(HttpUrl.parse(f"http://{host}/")) == f"http://{canonical}/"


@pytest.mark.parametrize(
    "dots", ["\u2024", "\u2024a", "a.\u2024", "\u2025", "a\u2026b", "\u2024\u2024", "a\u2024.b"]
)
def test_characters_that_become_dots_make_no_empty_labels(dots):
    """Such a URL could not be read again as it is written down."""
    with pytest.raises(UrlRefused) as refused:
        HttpUrl.parse(f"http://{dots}/")
    assert refused.value.code == 705


@pytest.mark.parametrize("dot", ["\u3002", "\uff0e", "\uff61"])
def test_full_stops_of_other_scripts_separate_labels(dot):
    assert HttpUrl.parse(f"http://www{dot}example.org/").host == "www.example.org"


@pytest.mark.parametrize(
    ("pushed", "root", "said"),
    [
        ("http://straße.example/x", "http://strasse.example/", "http://xn--strae-oqa.example/"),
        ("https://straße.example/a/x", "http://strasse.example/a/", "http://xn--strae-oqa.example/a/"),
        ("http://βόλος.example/x", "http://xn--nxasmq6b.example/", "http://xn--nxasmm1c.example/"),
        ("http://ꭰ.example:81/x", "http://xn--kz9a.example:81/", "http://xn--58d.example:81/"),
        (
            "http://نامه\u200cای.example/x",
            "http://xn--mgba3gch31f.example/",
            "http://xn--mgba3gch31f060k.example/",
        ),
    ],
)
def test_a_refusal_names_the_root_that_is_missing_since_names_are_those_of_uts_46(pushed, root, said):
    url, before = HttpUrl.parse(pushed), Root.parse(root)
    assert not before.covers(url)
    assert roots.not_below([before], url).endswith(f"add the root {said}")
    assert Root.parse(said).covers(url)


def test_a_refusal_names_no_root_to_add_where_none_had_the_name_before():
    for text in ("http://straße.example/x", "http://strasse.example/b/x", "http://bücher.example/"):
        text_of_refusal = roots.not_below([Root.parse("http://strasse.example/a/")], HttpUrl.parse(text))
        assert text_of_refusal == "not below http://strasse.example/a/"


def test_a_refusal_with_a_root_to_add_fits_into_its_column():
    label = "ß" * 24
    url = HttpUrl.parse(f"http://{label}.{label}.{label}.example/{'x' * 300}/y")
    root = Root.parse(f"http://{'s' * 48}.{'s' * 48}.{'s' * 48}.example/{'x' * 300}/")
    said = roots.not_below([root], url)
    assert said.startswith(f"add the root http://{url.host}/x")
    assert len(said) <= 200


def test_the_hosts_of_roots_are_with_their_ports_and_https():
    assert hosts(ROOTS) == {
        "www.example.org:80",
        "www.example.org:443",
        "sec.example.org:443",
        "port.example.org:8080",
    }


@given(st.text(alphabet=st.sampled_from(list("w.:@/\\[]%#?1a0xＦ。\t")), max_size=25))
def test_the_http_client_reads_the_same_host_and_port(text):
    url = parsed(f"http://{text}")
    if url is not None:
        theirs = yarl.URL(str(url), encoded=True)
        assert (theirs.raw_host, theirs.port) == (url.host, url.port)


def test_a_root_in_idna_covers_both_spellings():
    for spelling in ("http://bücher.example/", "http://xn--bcher-kva.example/"):
        root = Root.parse(spelling)
        assert root.covers(HttpUrl.parse("http://BÜCHER.example/a"))
        assert root.covers(HttpUrl.parse("http://xn--bcher-kva.example/a"))
        assert not root.covers(HttpUrl.parse("http://bucher.example/a"))


def test_a_root_without_a_slash_at_its_end_covers_itself_and_what_is_below():
    root = Root.parse("http://www.example.org/dir")
    assert [root.covers(HttpUrl.parse(f"http://www.example.org/{path}")) for path in ("dir", "dir/", "dir/a", "dirx")] == [
        True, True, True, False,
    ]  # fmt: skip


def test_an_encoded_root_covers_the_decoded_path():
    root = Root.parse("http://www.example.org/a%20b/")
    assert root.covers(HttpUrl.parse("http://www.example.org/a b/c"))


@pytest.mark.parametrize(
    "text",
    ["www.example.org/", "http://www.example.org/?q", "http://www.example.org/a/../b/", "http://www.example.org/a%2fb/",
     "http://www.example.org/./", "http://user@www.example.org/", "ftp://www.example.org/", "http://www.example.org/a\\b/"],
)  # fmt: skip
def test_a_root_that_could_mean_two_places_is_refused(text):
    with pytest.raises(UrlRefused) as refused:
        Root.parse(text)
    assert refused.value.code == 705


def test_no_roots_cover_nothing():
    assert not inside(HttpUrl.parse("http://www.example.org/"), ())


def test_the_longest_url_fits_and_one_more_is_too_long():
    stem = "http://www.example.org/"
    longest = stem + "x" * (URL_MAX - len(stem))
    assert str(HttpUrl.parse(longest)) == longest
    for text in (longest + "x", stem + "é" * 400):
        with pytest.raises(UrlRefused) as refused:
            HttpUrl.parse(text)
        assert refused.value.code == 707


@given(st.text(alphabet=st.sampled_from(list("./\\%2eEfF5cC;@:?# ~aé\t")), max_size=14))
def test_nothing_that_is_inside_can_climb_out(tail):
    url = parsed("http://www.example.org/dir/" + tail)
    if url is None or not inside(url, ROOTS):
        return
    decoded = unquote(url.path).replace("\\", "/")
    assert (normpath(decoded) + "/").startswith("/dir/")
    assert url.host == "www.example.org"


@given(st.text(max_size=60))
def test_any_text_is_parsed_or_refused(text):
    url = parsed(text)
    if url is not None:
        assert str(url).isascii()
        assert HttpUrl.parse(str(url)) == url


@given(st.from_regex(roots._PLAIN, fullmatch=True))
def test_plain_urls_are_read_as_all_others_are(text: str) -> None:
    """The quick reading of a plain URL and the thorough one agree, in what they refuse as well."""

    def read() -> object:
        try:
            return HttpUrl.parse(text)
        except UrlRefused as error:
            return error.code

    quick = read()
    with patch.object(roots, "_PLAIN", re.compile("(?!)")):
        assert read() == quick


def test_every_port_there_is_and_no_other_number_is_read_plainly() -> None:
    plain = {n for n in range(100_001) if roots._PLAIN.fullmatch(f"http://www.example.org:{n}/a")}
    assert plain == set(range(1, 65_536))
    for text in ("0", "65536", "70000", "99999", "100000", "00080000"):
        with pytest.raises(UrlRefused) as refused:
            HttpUrl.parse(f"http://www.example.org:{text}/a")
        assert refused.value.code == 705


def detail_of(read, text):
    with pytest.raises(UrlRefused) as refused:
        read(text)
    return refused.value.code, refused.value.detail


def test_a_url_in_too_many_blanks_is_too_long_however_short_it_is():
    assert detail_of(HttpUrl.parse, " " * URL_MAX + "http://www.example.org/")[0] == 707


def test_the_longest_url_is_counted_as_it_is_encoded():
    stem = "http://www.example.org/é"
    longest = stem + "x" * (URL_MAX - len(stem) - len("%C3%A9") + 1)
    assert len(str(HttpUrl.parse(longest))) == URL_MAX
    assert detail_of(HttpUrl.parse, longest + "x")[0] == 707


def test_the_longest_host_fits_and_one_more_is_refused():
    host = ".".join(["x" * 49] * 5) + ".abc"
    assert len(host) == 253
    assert HttpUrl.parse(f"http://{host}/").host == host
    assert detail_of(HttpUrl.parse, f"http://{host}d/")[0] == 705
    assert detail_of(HttpUrl.parse, "http://a" + "\u00ad" * 253 + ".example/")[0] == 705, "as it was written"


def test_a_refusal_says_which_scheme_it_found():
    assert "'ftp'" in detail_of(HttpUrl.parse, "ftp://www.example.org/")[1]
    assert "'missing'" in detail_of(HttpUrl.parse, "www.example.org/")[1]


def test_a_root_without_a_scheme_is_refused_with_the_one_to_write():
    assert detail_of(Root.parse, "www.example.org/")[1].endswith("write http://www.example.org/")


def test_a_root_is_written_as_its_url():
    assert str(Root.parse("HTTP://www.example.org:80/dir/")) == "http://www.example.org/dir/"


@pytest.mark.parametrize(
    ("root", "beginnings"),
    [
        ("http://x.example/dir", ("http://x.example/dir/", "https://x.example/dir/")),
        ("http://x.example/dir//", ("http://x.example/dir/", "https://x.example/dir/")),
        ("http://x.example:8080/", ("http://x.example:8080/",)),
        ("http://x.example/%41/", ()),
        ("http://x.example/.hidden/", ()),
    ],
)
def test_a_root_has_texts_with_which_whatever_lies_below_it_begins(root, beginnings):
    assert Root.parse(root).beginnings() == beginnings


@pytest.mark.parametrize(
    ("count", "said"),
    [
        (0, "it has no roots"),
        (1, "not below http://0.example/"),
        (3, "not below http://0.example/, http://1.example/, http://2.example/"),
        (5, "not below http://0.example/, http://1.example/, http://2.example/ or 2 more"),
    ],
)
def test_a_refusal_names_the_first_roots_and_counts_the_others(count, said):
    assert roots.not_below([Root.parse(f"http://{number}.example/") for number in range(count)]) == said


def test_a_link_is_fetched_as_it_is_written_normally_or_not_at_all():
    assert roots.fetch_url("HTTP://www.example.org/dir/a b", ROOTS) == "http://www.example.org/dir/a%20b"
    assert roots.fetch_url("http://www.example.org/other/", ROOTS) == ""
    assert roots.fetch_url("mailto:someone", ROOTS) == ""


def test_a_path_is_decoded_once_however_many_roots_there_are(monkeypatch):
    """URLs of a sitemap times roots times what is encoded in each: 60 s of CPU for 50 MB and 20 roots."""
    decoded = []
    plain_path = roots._plain_path
    monkeypatch.setattr(roots, "_plain_path", lambda path: decoded.append(path) or plain_path(path))
    many = tuple(Root.parse(f"http://h/{number}%41/") for number in range(100))
    asked = HttpUrl.parse("http://h/x/" + "%41" * 300)
    decoded.clear()
    assert not inside(asked, many)
    assert covering(HttpUrl.parse("http://h/99A/x%41"), many) == many[99]
    assert decoded == [asked.path, "/99A/x%41"]
