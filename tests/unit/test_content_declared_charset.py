"""In which encoding a text is: the cases of HTML are as Chromium 156 and the HTML Standard see them."""

import pytest

from lcc_scrapy.content.declared_charset import encoding_of_text

META = b'<meta charset="windows-1251">'
FAR = b"<!--" + b"x" * 5000 + b"-->"
VERY_FAR = b"<!--" + b"x" * 200_000 + b"-->"
PRAGMA = b'<meta http-equiv="Content-Type" content="%s">'


def of_html(head: bytes) -> str:
    return encoding_of_text(head + b"<p>\xe0</p>", "", "text/html")


@pytest.mark.parametrize(
    "head",
    [
        META, FAR + META, VERY_FAR + META, b"<body><p>x" + META, b"<body>" + FAR + META,
        b'<meta charset="bogus">' + META, b'<meta charset="bogus">' + FAR + META, b'<meta charset="">' + META,
        b"<noscript>" + META + b"</noscript>", b"<template>" + META, b"<svg>" + META, b"<object>" + META,
        b"<meta charset=windows-1251>", b"<META CHARSET='Windows-1251'>", b'<meta charset=" cp1251 ">',
        b'<meta/charset="windows-1251"/>', b'<meta\ncharset = "windows-1251"', b"<!-->" + META, b"<!--->" + META,
        PRAGMA % b"text/html; charset=windows-1251", PRAGMA % b"charset charset = windows-1251 ; x",
        PRAGMA % b"text/html; charset='windows-1251'",
        b'<meta content="text/html; charset=windows-1251" http-equiv=content-type>',
        b'<meta http-equiv=content-type content="text/html;charset=koi8-r" charset=windows-1251>',
        b'<meta charset="windows-1251" charset="koi8-r">', META + b"<meta charset=koi8-r>",
        b'<?xml version="1.0" encoding="windows-1251"?>', b'<?xml version="1.0" encoding="koi8-r"?>' + META,
        b'<?xml version="1.0" encoding="bogus"?>' + META, b"<script>'<meta charset=koi8-r>'</script>" + META,
        b"<a title='<meta charset=koi8-r>'>" + META, b"<a title=x>'" + META, b"a < b > c" + META,
    ],
)  # fmt: skip
def test_a_page_declares_its_charset(head: bytes) -> None:
    assert of_html(head) == "windows-1251"


@pytest.mark.parametrize(
    "head",
    [
        b"<!-- " + META + b" -->", b"<!-- " + META, FAR + b"<!-- " + META + b" -->", b"<!" + META,
        b"<script>'" + META + b"'</script>", b"<script>" + META, b"<STYLE>" + META + b"</style>",
        b"<title>" + META + b"</title>", b"<textarea>" + META + b"</textarea>", b"<title>" + META,
        b"<iframe>" + META + b"</iframe>", b"<xmp>" + META + b"</xmp>", b"<noframes>" + META + b"</noframes>",
        b"<plaintext>" + META, b'<a title="' + META.replace(b'"', b"'") + b'">',
        b'<meta name="x" content="<meta charset=windows-1251>">', b"</meta charset=windows-1251>",
        b"<metax charset=windows-1251>", b'<meta content="text/html; charset=windows-1251">',
        b'<meta charset=bogus http-equiv=content-type content="text/html;charset=windows-1251">',
        b' <?xml version="1.0" encoding="windows-1251"?>', b'<meta charset="utf-7">',
        PRAGMA % b"text/html; charset='windows-1251", PRAGMA % b"text/html; charset",
    ],
)  # fmt: skip
def test_what_is_no_declaration_is_not_believed(head: bytes) -> None:
    assert of_html(head) == "windows-1252"


@pytest.mark.parametrize("label", [b"utf-16", b"UTF-16LE", b"utf-16be", b"ucs-2", b"unicode", b"utf-8"])
@pytest.mark.parametrize("form", [b"<meta charset='%s'>", b'<?xml version="1.0" encoding="%s"?>'])
def test_a_declaration_that_can_be_read_is_not_in_utf_16(form: bytes, label: bytes) -> None:
    assert of_html(form % label) == "utf-8"


def test_a_declaration_may_not_ask_for_user_defined_characters() -> None:
    assert of_html(b"<meta charset=x-user-defined>") == "windows-1252"
    assert encoding_of_text(b"", "x-user-defined", "text/html") == "x-user-defined"


def test_a_mark_says_more_than_the_site_and_the_site_more_than_the_page() -> None:
    assert encoding_of_text(b"\xef\xbb\xbf" + META, "koi8-r", "text/html") == "utf-8"
    assert encoding_of_text(META, "koi8-r", "text/html") == "koi8-r"
    assert encoding_of_text(META, "no-such-charset", "text/html") == "windows-1251"


@pytest.mark.parametrize(("codec", "encoding"), [("utf-16-le", "utf-16le"), ("utf-16-be", "utf-16be")])
def test_xml_without_a_mark_tells_its_width_by_its_first_characters(codec: str, encoding: str) -> None:
    text = '<?xml version="1.0" encoding="utf-16"?><a/>'.encode(codec)
    assert {encoding_of_text(text, "", kind) for kind in ("text/html", "text/xml")} == {encoding}


@pytest.mark.parametrize("mimetype", ["text/xml", "application/xml", "application/rss+xml"])
def test_xml_declares_its_encoding_in_its_own_way(mimetype: str) -> None:
    assert encoding_of_text(b"<?xml version='1.0' encoding='koi8-r' ?>" + META, "", mimetype) == "koi8-r"
    assert encoding_of_text(META, "", mimetype) == "utf-8"


def test_xhtml_may_declare_it_in_both_ways() -> None:
    declaration = b"<?xml version='1.0' encoding='koi8-r'?>"
    assert encoding_of_text(declaration + META, "", "application/xhtml+xml") == "koi8-r"
    assert encoding_of_text(META, "", "application/xhtml+xml") == "windows-1251"


def test_what_declares_nothing_is_utf_8_if_it_may_be() -> None:
    assert encoding_of_text("é".encode(), "", "text/plain") == "utf-8"
    assert encoding_of_text(META + b"\xe9", "", "text/plain") == "windows-1252"
    assert encoding_of_text("é€".encode()[:-1], "", "text/html", whole=False) == "utf-8"
    assert encoding_of_text("é€".encode()[:-1], "", "text/html") == "windows-1252"
