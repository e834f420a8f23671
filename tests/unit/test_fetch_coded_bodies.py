"""Which form of a body with codings is the document."""

import gzip
import zlib
from hashlib import md5
from itertools import permutations, product

import brotli
import pytest
from backports import zstd

from lcc_scrapy.content.decoding import BadCoding, decoder, to_undo
from lcc_scrapy.content.sink import TooLarge
from lcc_scrapy.domain.cache import Body, LazyBody
from lcc_scrapy.domain.queue import QueuedUrl
from lcc_scrapy.fetch.coded_bodies import CodedBody

PLAIN = b"the document\n" * 50
ENCODERS = {
    "gzip": lambda data: gzip.compress(data, mtime=0),
    "x-gzip": lambda data: gzip.compress(data, mtime=0),
    "deflate": zlib.compress,
    "br": brotli.compress,
    "zstd": zstd.compress,
}
STACKS = [*((one,) for one in ENCODERS), *permutations(ENCODERS, 2)]


def forms(stack, data=PLAIN):
    """Return a document and what each coding makes of it, the last of which is on the wire."""
    made = [data]
    for coding in stack:
        made.append(ENCODERS[coding](made[-1]))
    return made


def row(md5=None, length=None, mimetype="text/html"):
    url = "http://h/x"
    return QueuedUrl(b"", 7, url, mimetype, "", url, url, None, length, md5, "", 1, 1, "update", 1, 0, 0)


def declaring(data, what, mimetype="text/html"):
    """Return the row of a provider that declares some bytes: their md5, their length, or both."""
    digest = md5(data).hexdigest() if "md5" in what else None
    return row(digest, len(data) if "len" in what else None, mimetype)


def at_once(coroutine):
    """Run what waits for nothing."""
    try:
        coroutine.send(None)
    except StopIteration as done:
        return done.value
    raise AssertionError("it waits")


def content(stack, wire, declared, *, mimetype="text/html", path="/x.html", length=""):
    """Return the document of a body, as the client finds it."""
    body = CodedBody(to_undo(", ".join(stack)), length=length, mimetype=mimetype, path=path, row=declared)

    async def undo(body: Body, coding: str) -> Body:
        undoing = decoder(coding)
        data = b"".join(undoing.feed(body.data or b""))
        undoing.end()
        if len(data) > 1_000_000:
            raise TooLarge
        return LazyBody(data)

    if body.is_kept_as_it_comes:
        return at_once(body.content(LazyBody(wire), undo)).data
    undoing = decoder(body.to_undo)
    data = b"".join(undoing.feed(wire))
    undoing.end()
    return data


@pytest.mark.parametrize("stack", STACKS)
@pytest.mark.parametrize("what", ["md5", "len", "md5 and len"])
@pytest.mark.parametrize("name", ["/x.html", "/x.tar.gz"])
def test_the_form_that_was_declared_is_the_document(stack, what, name):
    made = forms(stack)
    for declared, length in product(made, ["", str(len(made[-1]))]):
        assert content(stack, made[-1], declaring(declared, what), path=name, length=length) == declared


@pytest.mark.parametrize("coding", ENCODERS)
def test_what_is_not_as_declared_in_any_form_is_undone(coding):
    wire = forms([coding])[-1]
    for declared in (
        row(),
        declaring(b"other", "md5"),
        declaring(b"other", "len"),
        declaring(b"other", "md5 len"),
    ):
        for length in ("", str(len(wire)), "3"):
            assert content([coding], wire, declared, length=length) == PLAIN


@pytest.mark.parametrize("coding", ENCODERS)
@pytest.mark.parametrize("declared", [row(), declaring(b"other", "md5 len"), declaring(b"other", "len")])
@pytest.mark.parametrize(
    "called",
    [
        *({"path": f"/x.{end}"} for end in ("gz", "tar.gz", "tgz", "TGZ", "taz")),
        *({"mimetype": f"application/{kind}"} for kind in ("gzip", "x-gzip", "x-tgz", "x-compressed-tar")),
    ],
)
def test_gzip_stays_on_what_is_called_gzip(coding, declared, called):
    wire = forms([coding])[-1]
    assert content([coding], wire, declared, **called) == (wire if "gzip" in coding else PLAIN)


def test_so_it_does_by_the_type_that_was_declared():
    wire = forms(["gzip"])[-1]
    assert content(["gzip"], wire, row(mimetype="application/gzip"), mimetype="text/plain") == wire


def test_of_two_codings_the_outer_one_is_undone():
    once, twice = forms(["x-gzip", "gzip"])[1:]
    assert content(["x-gzip", "gzip"], twice, row(), path="/x.tgz") == once
    assert content(["x-gzip", "gzip"], twice, declaring(b"other", "md5 len"), path="/x.tgz") == once


@pytest.mark.parametrize("stack", [["gzip", "br"], ["gzip"] * 3])
def test_more_codings_than_anybody_asked_for_are_refused(stack):
    made = forms(stack)
    with pytest.raises(BadCoding):
        content(stack, made[-1], row())
    with pytest.raises(BadCoding):
        content(["gzip"] * 3, forms(["gzip"] * 3)[-1], declaring(PLAIN, "md5 len"))


def test_what_cannot_be_undone_is_the_document_only_if_it_is_called_gzip_or_was_declared():
    junk = b"no gzip at all"
    assert content(["gzip"], junk, declaring(junk, "md5")) == junk
    assert content(["gzip"], junk, declaring(b"other", "md5"), path="/x.gz") == junk
    with pytest.raises(BadCoding):
        content(["gzip"], junk, declaring(b"other", "md5"))
    with pytest.raises(BadCoding):
        content(["gzip", "br"], junk, declaring(b"other", "md5"), path="/x.gz")


def test_a_document_that_is_too_large_without_its_coding_may_be_declared_with_it():
    wire = forms(["gzip"], bytes(2_000_000))[-1]
    assert content(["gzip"], wire, declaring(wire, "md5 len")) == wire
    with pytest.raises(TooLarge):
        content(["gzip"], wire, declaring(b"other", "md5"))


def test_a_body_whose_length_is_not_the_declared_one_is_undone_as_it_arrives():
    length = len(forms(["gzip"])[-1])
    for said, kept in (("", True), (str(length), True), (str(length + 1), False), ("9" * 5000, False)):
        body = CodedBody(["gzip"], length=said, mimetype="", path="/x", row=row(None, length))
        assert body.is_kept_as_it_comes is kept
