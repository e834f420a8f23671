"""What site owners write, what a file proves, and which root that is."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lcc_scrapy.apps.registration import rules as registration
from lcc_scrapy.apps.registration.rules import FILE, digest_of, folder_of, proves, redirected, root_of
from lcc_scrapy.apps.registration.settings import RegistrationRules
from lcc_scrapy.domain.errors import BadField
from lcc_scrapy.domain.roots import HttpUrl, Root

PORTS = frozenset({80, 443})
SECRET = "0123456789abcdef0123456789abcdef01234567"


@pytest.mark.parametrize(
    ("written", "folder"),
    [
        ("http://www.example.org", "http://www.example.org/"),
        (" https://WWW.Example.org/docs ", "https://www.example.org/docs/"),
        ("https://www.example.org/v1.2", "https://www.example.org/v1.2/"),
        ("https://www.example.org/index.HTML", "https://www.example.org/"),
        (f"https://www.example.org/a/{FILE}", "https://www.example.org/a/"),
        ("https://www.example.org/a/#b", "https://www.example.org/a/"),
        ("http://www.example.org:80/", "http://www.example.org/"),
        ("http://www.example.org/~é/", "http://www.example.org/~%C3%A9/"),
        ("http://www.example.org/a/.well-known/", "http://www.example.org/a/.well-known/"),
    ],
)
def test_the_folder_of_what_is_written(written, folder):
    assert str(folder_of(written, PORTS)) == folder


@pytest.mark.parametrize(
    "written",
    [
        "", "www.example.org", "mailto:a@b", "http://", "http:///a", "http://x:8080/", "https://x:0/", "http://x/?a",
        "http://x/a%2fb/", "http://x/%2e%2e/", "http://x/.well-known", "http://x/.WELL-known/a", "http://x//.well-known/",
        "http://[::1/", "http://x/" + "a" * 2040,
    ],
)  # fmt: skip
def test_what_is_no_folder_is_refused(written):
    with pytest.raises(BadField) as refused:
        folder_of(written, PORTS, "folder")
    assert refused.value.field == "folder"
    assert "has a query" not in str(refused.value)


@given(st.text(max_size=60))
def test_whatever_is_written_gives_a_root_or_is_refused(text):
    for written in (text, f"http://x/{text}", f"http://{text}"):
        try:
            folder = folder_of(written, PORTS)
        except BadField:
            continue
        assert folder.path.endswith("/")
        assert folder.port in PORTS
        assert Root(folder).covers(HttpUrl.parse(str(folder) + FILE))


def test_only_the_secret_itself_proves():
    digest = digest_of(SECRET)
    good = [SECRET, SECRET + "\n", SECRET + "\r\n"]
    bad = [
        "",
        SECRET[:-1],
        SECRET + "0",
        SECRET + "\n\n",
        " " + SECRET,
        SECRET + " ",
        SECRET.upper(),
        digest,
        SECRET * 2,
    ]
    assert [proves(digest, text.encode()) for text in good] == [True] * 3
    assert not any(proves(digest, text.encode()) for text in bad)


@given(st.binary(max_size=60))
def test_nothing_else_proves(body):
    assert not proves(digest_of(SECRET), body)


@pytest.mark.parametrize(
    ("asked", "answered", "root"),
    [
        ("http://x/a/", "http://x/a/", "http://x/a/"),
        ("http://x/a/", "https://x/a/", "http://x/a/"),
        ("http://x/a/", "https://x/b/", "http://x/b/"),
        ("https://x/a/", "https://x/a/", "https://x/a/"),
        ("https://x/a/", "http://x/a/", "http://x/a/"),
        ("http://x:8080/", "https://x/", "https://x/"),
        ("http://x/", "https://x:8443/", "https://x:8443/"),
    ],
)
def test_the_root_is_the_folder_where_the_file_was_found(asked, answered, root):
    assert root_of(HttpUrl.parse(asked + FILE), HttpUrl.parse(answered + FILE)) == root


@pytest.mark.parametrize(
    ("location", "target"),
    [
        (f"/b/{FILE}", f"http://x/b/{FILE}"),
        (f"https://x/{FILE}", f"https://x/{FILE}"),
        (FILE, f"http://x/a/{FILE}"),
        (f"../{FILE}", f"http://x/{FILE}"),
        (f"http://y/{FILE}", None),
        (f"http://x.y/{FILE}", None),
        (f"http://x:81/{FILE}", None),
        (f"http://a@x/{FILE}", None),
        (f"/b/{FILE}?x", None),
        (f"/b/x{FILE}", None),
        ("/b/", None),
        (f"/.well-known/{FILE}", None),
        (f"/a%2fb/{FILE}", None),
        ("", f"http://x/a/{FILE}"),
        ("http://[", None),
    ],
)
def test_a_redirect_stays_on_the_host_and_with_the_file(location, target):
    asked = HttpUrl.parse(f"http://x/a/{FILE}")
    if target is None:
        with pytest.raises(BadField):
            redirected(asked, location.encode(), PORTS)
    else:
        assert str(redirected(asked, location.encode(), PORTS)) == target


@pytest.mark.parametrize(("text", "most", "granted"), [
    ("", 0, 0), ("0", 5, 5), ("3", 5, 3), ("9", 5, 5), ("9", 0, 9), (" 2k ", 0, 2000),
])  # fmt: skip
def test_bandwidth_is_what_is_asked_for_and_no_more_than_is_granted(text, most, granted):
    assert registration.bandwidth_of(text, most) == granted


@pytest.mark.parametrize("text", ["a@b.org", "first.last+tag@mail.example.org"])
def test_addresses_of_mail(text):
    assert registration.contact_of(f" {text} ") == text


@pytest.mark.parametrize(
    "text",
    [
        "a",
        "a@b",
        "a@b.c d",
        "@b.org",
        "a@@b.org",
        "a@b.org,c@d.org",
        "a\n@b.org",
        "é@b.org",
        "a@" + "b." * 200 + "c",
    ],
)
def test_what_is_no_address_of_mail(text):
    with pytest.raises(BadField):
        registration.contact_of(text)


@pytest.mark.parametrize(
    ("read", "text"),
    [
        (registration.ports, ""), (registration.ports, "80 x"), (registration.ports, "0"), (registration.ports, "65536"),
        (registration.ports, "-1"), (registration.uns_addresses, "uns.example.org"),
        (registration.uns_addresses, "a:99999"), (registration.uns_addresses, "http://a:1"),
        (registration.uns_addresses, "lcc://a:1"), (registration.uns_addresses, "lccs://lccs://a:1"),
    ],
)  # fmt: skip
def test_what_the_operator_writes_is_checked(read, text):
    with pytest.raises(ValueError, match="expected"):
        read(text)


def test_the_defaults_are_closed():
    rules = RegistrationRules()
    assert (rules.mode, rules.private, rules.ports) == ("off", False, PORTS)
    assert registration.uns_addresses("a:1 lccs://[::1]:2") == ("a:1", "lccs://[::1]:2")
