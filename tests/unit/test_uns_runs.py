"""Runs of plain URLs: the fast way gives what the plain one gives, to the last byte of the spool."""

import itertools
import random
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lcc_scrapy.domain.entries import EntryRules, read_entry
from lcc_scrapy.domain.roots import HttpUrl, Root, inside
from lcc_scrapy.domain.runs import PLAIN, RunRules, read_run
from lcc_scrapy.domain.sent import with_form
from lcc_scrapy.domain.uns_limits import DEFAULT_LIMITS, Limits
from lcc_scrapy.uns import effects
from lcc_scrapy.uns.codec import Codec, Malformed
from lcc_scrapy.uns.plain_urls import spelling_of
from lcc_scrapy.uns.ports import Login
from lcc_scrapy.uns.session import Session
from lcc_scrapy.uns.spool_file import record_line, record_lines
from lcc_scrapy.uns.states import LoginGranted, SetStored, StreamEnded
from lcc_scrapy.uns.url_validator import MASKS
from lcc_scrapy.wire.messages import Init, InitAccepted, Quota, SetEnd, SetStart, Url, UrlRun
from tests.faults.streams import MUTATIONS
from tests.runs import one_by_one, plainly

ROOT = "http://www.example.org/"
ROOTS = tuple(
    Root.parse(text)
    for text in (
        "http://www.example.org/dir/",
        "https://sec.example.org",
        "http://port.example.org:8080/a~b/c",
        "http://www.example.org/.well-known/",
        "http://www.example.org/a%20b/",
        "http://[2001:db8::1]/",
        "http://bücher.example/",
    )
)
PREFIXES = [
    "", "http://www.example.org/", "http://www.example.org/dir/", "http://www.example.org/dir/x?u=", "http://www.example.org",
    "http://www.example.org/dir", "https://www.example.org/dir/", "https://sec.example.org/", "http://port.example.org:8080/a~b/c/",
    "HTTP://www.example.org/dir/", "http://www.example.org/dir/é/", "http://[2001:db8::1]/", "http://www.example.org/dir/\nx/",
    "http://www.example.org/dir/..", "http://www.example.org:80/dir/", "http://xn--bcher-kva.example/x.", "http://www.example.org/dir/#",
]  # fmt: skip
URL_PARTS = [
    "a", "b.html", "dir/", "/", "//", ".", "..", "/.", "/..", ";", "?", "?x=1", "&", "=", "%", "%2e", "%2E", "%2f", "%5C", "%41", "%25",
    "%2", "://", ":", "http://www.example.org/dir/", "https://sec.example.org/", "http://evil.example/", "@", "@evil.example", "~", "x" * 900,
]  # fmt: skip
NOT_PLAIN = ["'", "#", " ", "é", "|", "\\", "[", "A", "\t", "&lt;", "&#65;", "&amp;amp;", ">", "\n", "&quot;", "&copy"]  # fmt: skip

plain_urls = st.lists(st.sampled_from(URL_PARTS), min_size=1, max_size=5).map("".join) | st.from_regex(
    PLAIN["curl"], fullmatch=True
)
types = st.sampled_from(
    ["text/html", "text/html", "text/plain", "image/png", "a/b", "x" * 63 + "/" + "y" * 63]
)
plain_values = {
    "curl": plain_urls,
    "burl": plain_urls,
    "furl": plain_urls,
    "op": st.sampled_from(["update", "remove", "remove"]),
    "mimetype": types | st.from_regex(PLAIN["mimetype"], fullmatch=True),
    "mtime": st.from_regex(PLAIN["mtime"], fullmatch=True),
    "len": st.from_regex(PLAIN["len"], fullmatch=True),
    "md5": st.from_regex(PLAIN["md5"], fullmatch=True),
}


def rules(prefix, url_length=2048, mimetypes=("text/*", "a/b")):
    return EntryRules(mimetypes, ROOTS, prefix, url_length=url_length)


@st.composite
def columns(draw):
    names = ["curl", "mimetype", *draw(st.sets(st.sampled_from(sorted(set(PLAIN) - {"curl", "mimetype"}))))]
    count = draw(st.integers(1, 3))
    return {name: draw(st.lists(plain_values[name], min_size=count, max_size=count)) for name in names}


# --- checked together ----------------------------------------------------------------------------


@settings(max_examples=400, deadline=None)
@given(columns(), st.sampled_from(PREFIXES), st.sampled_from([2048, 60]))
def test_what_is_checked_together_is_what_is_checked_one_by_one(given_columns, prefix, longest):
    checked = rules(prefix, longest)
    run = read_run(given_columns, RunRules.of(checked))
    if run is not None:
        singly = [
            with_form(read_entry(url.attributes, checked), url.as_sent, prefix)
            for url in UrlRun(given_columns)
        ]
        assert record_lines(run) == "".join(map(record_line, singly))
        assert len(run) == len(singly)


@pytest.mark.parametrize(
    ("prefix", "curl"),
    [
        ("http://www.example.org/dir/", "a/b.html"),
        ("http://www.example.org/dir/x", "a%20b?c=d&e"),
        ("https://www.example.org/dir/x?u=", "a"),
        ("", "http://www.example.org/dir/a"),
        ("http://www.example.org/", "https://sec.example.org/a"),
        ("http://port.example.org:8080/a~b/", "c/d"),
    ],
)
def test_plain_urls_below_a_root_are_checked_together(prefix, curl):
    given_columns = {"curl": [curl] * 2, "mimetype": ["text/html"] * 2}
    assert read_run(given_columns, RunRules.of(rules(prefix))) is not None


@pytest.mark.parametrize(
    "curl",
    [
        ".", ".a", "..", "a/.", "a/.b", "a/../b", "a?", "%2e%2e/a", "%2E", "a%2fb", "a%2Fb", "a%5cb", "a%5Cb", "a?u=http://b",
        "http://www.example.org/", "http://www.example.org/dirt/a", "http://evil.example/dir/", "http://www.example.org@evil.example/dir/",
        "http://www.example.org:80/dir/a", "HTTP://www.example.org/dir/a", "x" * 2048,
    ],
)  # fmt: skip
def test_what_is_not_plainly_below_a_root_is_looked_at_by_itself(curl):
    together = RunRules.of(rules("http://www.example.org/dir/"))
    for urls in ([curl, "a"], ["a", curl], [curl]):
        assert read_run({"curl": urls, "mimetype": ["text/html"] * len(urls)}, together) is None
        assert (
            read_run(
                {"curl": ["a"] * len(urls), "furl": urls, "mimetype": ["text/html"] * len(urls)}, together
            )
            is None
        )


@settings(max_examples=500)
@given(st.sampled_from(ROOTS), st.lists(st.sampled_from(URL_PARTS), max_size=6).map("".join))
def test_what_plainly_begins_like_a_root_is_requested_as_written_and_lies_below_it(root, rest):
    for beginning in root.beginnings():
        url = beginning + rest
        odd = "/." in url or "%2" in url or "%5" in url or url.endswith("?")
        if not odd and len(url) <= 2048:
            parsed = HttpUrl.parse(url)
            assert str(parsed) == url
            assert inside(parsed, (root,))


def test_roots_that_mean_one_place_only_have_beginnings():
    assert ROOTS[0].beginnings() == ("http://www.example.org/dir/", "https://www.example.org/dir/")
    assert ROOTS[2].beginnings() == ("http://port.example.org:8080/a~b/c/",)
    assert [root.beginnings() for root in ROOTS[3:5]] == [(), ()]


# --- read without a parser -----------------------------------------------------------------------

SPELLINGS = {"curl": ["c", "curl"], "burl": ["b", "burl"], "furl": ["f", "furl"]}
VALUES = {
    **{
        name: ["a", "b.html", "dir/c?x=1&y", "http://www.example.org/dir/d", "e%20f", "d/../e", "?", "a:b/c"]
        for name in SPELLINGS
    },
    "op": ["update", "remove", "remove", "nothing", ""],
    "mimetype": ["text/html", "text/html", "text/html", "text/plain", "image/png", "Text/HTML", ""],
    "mtime": ["0", "1700000000", "9999999999999", "20020131235959", "007", "-1", ""],
    "len": ["0", "12", "9" * 18, "9" * 19, "07", ""],
    "md5": ["0123456789abcdef" * 2, "0123456789ABCDEF" * 2, "x", ""],
}
"""What is plain comes first."""

BETWEEN = ["\n", "", "\r\n", " ", "text", "]]", "<!-- <url c='x'/> -->", "<later/>", "<later><url c='x'/></later>", "<url/>",
    "<url c='a' mimetype='text/html'></url>", "<?pi <url/>?>", "<![CDATA[<url/>]]>", '<?xml version="1.0"?>', "&amp;", "&",
    "<url c='a' own='b' mimetype='text/html'/>", "<x:url xmlns:x='urn:x'/>", "é", "\udcff"]  # fmt: skip
BROKEN = ["<!-- ", " -->", "<![CDATA[", "]]>", "<?pi ", "?>", "<later>", "</later>", "<later a='", "'>", '<later a="', '">', "</lococa:set>",
    "<lococa:set set='full'>", "<url c=>", "<url c='b' c='b'/>", "&lt;", "\0", "<", '<?xml version="1.0" encoding="latin-1"?>', "<!DOCTYPE x>",
    "</lococa:notify>", "</set>", "<!", "</url>", "\r"]  # fmt: skip
LIMITS = [
    DEFAULT_LIMITS,
    Limits(set_urls=70),
    Limits(set_bytes=20_000),
    Limits(attributes=4),
    Limits(depth=2),
    Limits(element_bytes=16_384, names=2),
    Limits(url_length=40),
    Limits(login_bytes=9000),
]


def elements(chance):
    """Return some elements that are mostly spelled alike and mostly plain."""
    names = ["curl", "mimetype", *chance.sample(sorted(PLAIN), chance.choice((0, 1, 3)))]
    chance.shuffle(names)
    if chance.random() < 0.9:
        names = list(dict.fromkeys(names))
    spelled = [chance.choice(SPELLINGS.get(name, [name])) for name in names]
    pools = {name: VALUES[name][: chance.choice((1, 1, 2, 2, 3, 9))] for name in names}
    odd, tag, end = (
        chance.choice((0, 0, 0.03)),
        chance.choice(("url", "url", "lococa:url")),
        chance.choice(("/>", " />")),
    )
    made = []
    for _ in range(chance.choice((1, 2, 9, 40, 150))):
        values = [chance.choice(pools[name]).replace("&", "&amp;") for name in names]
        if chance.random() < odd:
            values[chance.randrange(len(values))] += chance.choice(NOT_PLAIN)
        said = "".join(f' {name}="{value}"' for name, value in zip(spelled, values, strict=True))
        made.append(f"<{tag}{said}{end}{chance.choice(BETWEEN) if chance.random() < odd else chr(10)}")
    return "".join(made)


def a_stream(chance):
    """Return a login and a set of either dialect, changed or not."""
    parts = [elements(chance) for _ in range(chance.choice((1, 2, 4)))]
    parts += [chance.choice(BETWEEN) for _ in range(chance.choice((0, 1, 3)))]
    parts += [chance.choice(BROKEN) for _ in range(chance.choice((0, 0, 0, 1)))]
    chance.shuffle(parts)
    prefix = chance.choice(PREFIXES) if chance.random() < 0.3 else "http://www.example.org/dir/"
    prefixed = f" urlprefix='{prefix}'".replace(chr(10), "&#10;")
    a_set = f"set='{chance.choice(('full', 'partial'))}'{prefixed}>" + "\n".join(["", *parts])
    init, provider = chance.choice(("init", "init", "init", "later")), "<provider id='7' passwd='x'/>"
    if chance.random() < 0.3:
        text = f"<lococa:notify><{init}>{provider}</{init}><set {a_set}</set></lococa:notify>"
    else:
        text = f"<lococa:{init}>{provider}</lococa:{init}><lococa:set {a_set}</lococa:set>"
    data = text.encode("utf-8", "surrogateescape")
    for _ in range(chance.choice((0, 0, 0, 1, 3))):
        data = chance.choice(MUTATIONS)(data, chance)
    return data


def cut(data, chance):
    """Cut a stream behind the beginning of its set, so that its first URLs may be in runs, and elsewhere."""
    places = [
        data.find(b"'>") + 2,
        *(chance.randrange(len(data) + 1) for _ in range(chance.choice((0, 1, 9, 60)))),
    ]
    edges = [0, *sorted(places), len(data)]
    return [data[start:end] for start, end in itertools.pairwise(edges)]


seeds = st.integers(0, 1 << 32)


@settings(max_examples=400, deadline=None)
@given(seeds)
def test_a_stream_gives_the_same_messages_in_runs_and_without_them(seed):
    chance = random.Random(seed)
    data, limits = a_stream(chance), chance.choice(LIMITS)
    plain, fast = Codec(limits, runs=False), Codec(limits)
    expected = plain.feed(data)
    assert one_by_one(message for piece in cut(data, chance) for message in fast.feed(piece)) == expected
    if not any(isinstance(message, Malformed) for message in expected):
        assert fast.unfinished is plain.unfinished


LOGIN = Login(7, InitAccepted(3, "", ("text/*", "a/b"), Quota()), ROOTS)


def conversation(pieces, limits, *, runs):
    """Return what a session wants done; the login service and the spool agree to everything."""
    codec, session, done = Codec(limits, runs=runs), Session(limits), []
    waiting = [*(message for piece in pieces for message in codec.feed(piece)), StreamEnded(codec.unfinished)]
    waiting.reverse()
    while waiting:
        wanted = session.take(waiting.pop())
        done += wanted
        for effect in wanted:
            match effect:
                case effects.Authenticate():
                    waiting.append(LoginGranted(LOGIN))
                case effects.CommitSet():
                    waiting.append(SetStored())
                case effects.TakeOneByOne(run):
                    waiting += reversed(list(run))
    return done


@settings(max_examples=400, deadline=None)
@given(seeds)
def test_a_conversation_is_answered_and_spooled_alike_in_runs_and_without_them(seed):
    chance = random.Random(seed)
    data, limits = a_stream(chance), chance.choice(LIMITS)
    pieces = cut(data, chance)
    fast, plain = (conversation(pieces, limits, runs=runs) for runs in (True, False))
    assert plainly(fast) == plainly(plain)


def test_the_streams_of_these_tests_have_runs():
    done = [
        conversation(cut(a_stream(chance), chance), DEFAULT_LIMITS, runs=True)
        for chance in map(random.Random, range(60))
    ]
    recorded = [[effect for effect in one if isinstance(effect, effects.RecordRun)] for one in done]
    assert sum(map(bool, recorded)) > 15
    assert sum(len(runs) > 1 for runs in recorded) > 8
    assert sum(any(isinstance(effect, effects.TakeOneByOne) for effect in one) for one in done) > 8


HEAD = b'<lococa:init><provider id="7" passwd="x"/></lococa:init><lococa:set set="partial" urlprefix="http://www.example.org/dir/">'
TAIL = b"</lococa:set>"
PLAIN_URL = '<url c="{}.html" mimetype="text/html" len="0" mtime="1700000000" md5="0123456789abcdef0123456789abcdef"/>\n'
PLAIN_URLS = "".join(PLAIN_URL.format(number) for number in range(300)).encode()


def test_plain_urls_are_read_and_spooled_in_runs():
    messages = Codec().feed(HEAD + PLAIN_URLS + TAIL)
    runs = [message for message in messages if isinstance(message, UrlRun)]
    assert sum(map(len, runs)) > 200, "only what stands in one bite with the beginning of the set does not"
    assert len(one_by_one(messages)) == 303
    done = conversation([HEAD + PLAIN_URLS + TAIL], DEFAULT_LIMITS, runs=True)
    assert sum(len(effect.run) for effect in done if isinstance(effect, effects.RecordRun)) > 200


@pytest.mark.parametrize(
    "hide",
    ["<!-- {} -->", "<![CDATA[{}]]>", "<?x {}?>", "<later>{}</later>", "<later><a/>{}",
     "<url c='' mimetype='' len='' mtime='' md5=''>{}</url>"],
)  # fmt: skip
def test_nothing_is_taken_for_a_url_of_the_set_that_is_none(hide):
    hidden = hide.format(PLAIN_URLS.decode()).encode()
    for stream in (HEAD + hidden, HEAD + PLAIN_URLS + hidden + PLAIN_URLS + TAIL):
        expected = Codec(runs=False).feed(stream)
        assert one_by_one(Codec().feed(stream)) == expected
    urls = [message for message in one_by_one(Codec().feed(HEAD + hidden)) if isinstance(message, Url)]
    assert len(urls) == hide.count("</url>")


@pytest.mark.parametrize(
    "name",
    ["a?b='c'", "a#b", "a b", "\u00e9", "a\\b", "a[b]", "a|b", "a&lt;b", "a&#38;b", "a&b;c&copy", "a\tb", "a\nb", "a>b", "", "a^b", "a{b}", "a`b"],
)  # fmt: skip
def test_a_name_that_is_not_plain_comes_by_itself_and_is_spooled_as_ever(name):
    odd = PLAIN_URL.replace("{}.html", name).encode()
    stream = HEAD + PLAIN_URLS + odd + PLAIN_URLS + odd * 9 + TAIL
    runs = [message for message in Codec().feed(stream) if isinstance(message, UrlRun)]
    assert sum(map(len, runs)) > 200
    said = Codec(runs=False).feed(HEAD + odd)[-1].attributes["curl"]
    assert "&" in name or not any(said in run.columns["curl"] for run in runs)
    fast, plain = (conversation([stream], DEFAULT_LIMITS, runs=runs) for runs in (True, False))
    assert plainly(fast) == plainly(plain)


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r", "\n\r"])
def test_a_complaint_after_runs_names_the_line(end):
    stream = HEAD + PLAIN_URLS.replace(b"\n", end.encode()) + b"<url c=>"
    (*_, complaint) = Codec().feed(stream)
    assert complaint == Codec(runs=False).feed(stream)[-1]
    assert isinstance(complaint, Malformed)
    assert complaint.detail.endswith(f"line {601 if end == chr(10) + chr(13) else 301}")


def test_one_url_too_many_is_refused_within_a_run():
    stream = HEAD + PLAIN_URLS
    messages = one_by_one(Codec(Limits(set_urls=200)).feed(stream))
    assert messages == Codec(Limits(set_urls=200), runs=False).feed(stream)
    assert messages[-1] == Malformed("more than 200 URLs", too_large=True)
    assert sum(isinstance(message, Url) for message in messages) == 200


def test_new_spellings_without_end_are_not_learnt():
    names = ["c", "mimetype", "len", "mtime", "md5", "op"]
    values = dict(zip(names, ["a", "text/html", "1", "2", "0" * 32, "update"], strict=True))
    stream, codec = HEAD, Codec()
    for order in itertools.islice(itertools.permutations(names), 60):
        stream += b"<url%s/>" % "".join(f' {name}="{values[name]}"' for name in order).encode() * 12
    messages = codec.feed(stream)
    assert one_by_one(messages) == Codec(runs=False).feed(stream)
    assert len(codec._spellings) == 16


@pytest.mark.parametrize(
    "names",
    [("url",), ("url", "c"), ("url", "mimetype"), ("url", "c", "curl", "mimetype"), ("url", "c", "mimetype", "own"),
     ("url", "c", "mimetype", "timeofday"), ("url", "c", "mimetype", "subtype")],
)  # fmt: skip
def test_elements_that_cannot_be_plain_have_no_spelling(names):
    assert spelling_of(names) is None
    assert spelling_of(("url", "mimetype", "c")) is not None


def test_a_run_counts_as_one_mask_of_a_set():
    start = SetStart(full=False, urlprefix="http://www.example.org/dir/")
    run = UrlRun({"curl": ["a", "b"], "mimetype": ["text/html"] * 2})
    session = Session()
    for event in (Init("7", "x"), LoginGranted(LOGIN), start):
        session.take(event)
    masks = [f"{day} {hour}-{hour + 1}" for day in ("mon", "tue", "wed") for hour in range(24)][:MASKS]
    for mask in masks:
        session.take(Url({"curl": "c", "mimetype": "text/html", "timeofday": mask}))
    assert session.take(run) == [effects.TakeOneByOne(run)]
    (refused,) = session.take(next(iter(run)))
    assert b'code="706"' in refused.data
    session.take(SetEnd())
    assert b'received="64"' in session.take(SetStored())[0].data


def test_a_run_in_which_anything_is_wrong_is_taken_one_by_one_and_counted_once():
    start = SetStart(full=True, urlprefix="http://www.example.org/dir/")
    for limits, given_columns in (
        (DEFAULT_LIMITS, {"curl": ["a", "b"], "mimetype": ["text/html", "image/png"]}),
        (DEFAULT_LIMITS, {"curl": ["a", "../b"], "mimetype": ["text/html"] * 2}),
        (replace(DEFAULT_LIMITS, url_length=40), {"curl": ["a", "b" * 20], "mimetype": ["text/html"] * 2}),
    ):
        session, run = Session(limits), UrlRun(given_columns)
        for event in (Init("7", "x"), LoginGranted(LOGIN), start):
            session.take(event)
        assert session.take(run) == [effects.TakeOneByOne(run)]
        for url in run:
            session.take(url)
        assert session.take(SetEnd()) == [effects.CommitSet(0)]
        assert b'received="1"' in session.take(SetStored())[0].data


def in_pieces(stream, limits, *, runs):
    """Feed a stream behind the beginning of its set in pieces of 16 KiB."""
    codec, begun = Codec(limits, runs=runs), stream.index(b"'>" if b"'>" in stream else b'">') + 2
    pieces = [stream[:begun], *(stream[at : at + 16_384] for at in range(begun, len(stream), 16_384))]
    return one_by_one(message for piece in pieces for message in codec.feed(piece))


def test_the_limits_are_looked_at_in_the_same_places(monkeypatch):
    looks, look = [], Codec._look

    def noting(codec):
        look(codec)
        looks.append((codec._parsed, codec._quiet))

    monkeypatch.setattr(Codec, "_look", noting)
    for gap in range(0, 20_000, 1_999):
        stream, seen = HEAD + PLAIN_URLS + b"x>" * (gap // 2) + PLAIN_URLS * 2 + TAIL, []
        for runs in (True, False):
            looks.clear()
            in_pieces(stream, Limits(element_bytes=16_384), runs=runs)
            seen.append(tuple(looks))
        assert seen[0] == seen[1], gap


def test_a_run_does_not_hide_that_a_login_does_not_come():
    stream = HEAD[HEAD.index(b"<lococa:set") :] + PLAIN_URLS * 3
    messages = in_pieces(stream, DEFAULT_LIMITS, runs=True)
    assert messages == in_pieces(stream, DEFAULT_LIMITS, runs=False)
    assert messages[-1] == Malformed("more than 65536 bytes before the login")
