"""An address is one address: what steers a mail server, or names several people, is none."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lcc_scrapy.domain.mail_addresses import ADDRESS_MAX, address, is_address, sender


@pytest.mark.parametrize(
    ("text", "sent"),
    [
        ("webmaster@example.org", "webmaster@example.org"),
        ("Web.Master+lcc@Example.ORG", "Web.Master+lcc@example.org"),
        ("info@bücher.example", "info@xn--bcher-kva.example"),
        ("root@localhost", "root@localhost"),
        ("o'hara@example.org", "o'hara@example.org"),
    ],
)
def test_an_address_is_sent_with_its_domain_in_idna_form(text, sent):
    assert address(text) == sent


@pytest.mark.parametrize(
    "text",
    [
        "",
        "+31 20 1234567",
        "the webmaster",
        "@example.org",
        "a@",
        "a@b@",
        "a b@example.org",
        "a@example.org, b@example.org",
        "a@example.org b@example.org",
        "<a@example.org>",
        "A <a@example.org>",
        '"a b"@example.org',
        "a(comment)@example.org",
        "a@[127.0.0.1]",
        "a@example.org\r\nRCPT TO:<b@example.org>",
        "a@example.org\n",
        "a\r\n@example.org",
        "a@exa\0mple.org",
        "a@example..org",
        "a@.example.org",
        "a@example.org.",
        "a@-example.org",
        "a@exam_ple.org",
        ".a@example.org",
        "a..b@example.org",
        "jürgen@example.org",
        "a@example.org>",
        "@relay.example:a@example.org",
        "a%b@example.org\u2028",
        "a@example\u3002\u3002org",
        f"{'a' * 65}@example.org",
        f"a@{'b' * 64}.org",
        f"a@{'b.' * 130}org",
        f"a@{'ü' * 300}.org",
        "a@\ud800.org",
    ],
)
def test_what_is_not_one_address_is_refused(text):
    with pytest.raises(ValueError, match="expected one address like webmaster@example"):
        address(text)
    assert not is_address(text)


@given(st.text(max_size=60) | st.text("a@.<> \r\n\0\"'ü,:;-", max_size=60))
def test_what_is_taken_is_short_printable_ascii_with_one_at_sign(text):
    if is_address(text):
        sent = address(text)
        assert sent.isascii()
        assert sent.isprintable()
        assert not set(sent) & set(' <>,;:"()[]\\')
        assert sent.count("@") == 1
        assert len(sent) <= ADDRESS_MAX
        assert address(sent) == sent


@pytest.mark.parametrize(
    ("text", "name", "sent"),
    [
        ("lcc@example.org", "", "lcc@example.org"),
        (" LCC of Example <lcc@example.org>", "LCC of Example", "lcc@example.org"),
        ('"Örtlicher Cache" <lcc@example.org>', "Örtlicher Cache", "lcc@example.org"),
    ],
)
def test_a_sender_may_have_a_name(text, name, sent):
    assert sender(text) == (name, sent)


@pytest.mark.parametrize(
    "text", ["LCC <lcc>", "L\r\nBcc: x@y.org <lcc@example.org>", "<lcc@example.org> x", ""]
)
def test_a_sender_without_an_address_is_refused(text):
    with pytest.raises(ValueError, match="expected one address"):
        sender(text)
