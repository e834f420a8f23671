"""What must hold for any input, with inputs that Hypothesis makes; ``make fuzz`` looks for others."""

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.faults.streams import stream, transcripts
from tests.fuzz import seeds, targets

VALID = transcripts(7, "x")
HOSTS = [
    "www.example.org",
    "sec.example.org",
    "port.example.org:8080",
    "[2001:db8::1]",
    "bücher.example",
    "evil.example",
    "example.org",
]
URL_PARTS = [
    "http://", "https://", "HTTP:", "//", "/", "\\", ".", "..", "%2e", "%2f", "%5c", "%00", "%0a", "%", "@", ":", ":80", ":443", ":8080", "?", "#",
    ";", "&", "=", " ", "+", "*", "[", "]", "dir", "d%69r", "a b", "a%20b", "é", "%C3%A9", "e\u0301", "\u3002", "\uff0f", "\u2024", "\u212a", "\u00ad",
    "\u200d", "\ufeff", "xn--", "\x7f", "\t", "\n", "user:pw@", "0x7f.1", "localhost", *HOSTS,
]  # fmt: skip
urls = st.builds(
    "{}{}/{}".format,
    st.sampled_from(["http://", "https://", "", "//", " http://"]),
    st.sampled_from(HOSTS) | st.text(max_size=8),
    st.lists(st.sampled_from(URL_PARTS) | st.text(max_size=3), max_size=8).map("".join),
) | st.lists(st.sampled_from(URL_PARTS) | st.text(max_size=3), max_size=10).map("".join)


@settings(deadline=None)
@given(st.integers(0, 1 << 32), st.integers(0, 255))
def test_any_stream_gives_the_same_messages_in_any_pieces(seed, size):
    targets.codec(bytes([size]) + stream(seed, 0, VALID).data[:20_000])


@settings(deadline=None)
@given(st.binary(max_size=300))
def test_any_bytes_give_the_same_messages_in_any_pieces(data):
    targets.codec(data)


JSON = st.sampled_from(
    ["{", "}", "[", "]", ",", ":", '"', "\\", "\n", " ", '"set"', '"full"', '"urls"', '"a"', '"c"', "1", "null", "\\u0", '{"set":"full"}\n',
     '{"set":"full","urls":['],
)  # fmt: skip


@settings(max_examples=300, deadline=None)
@given(st.lists(JSON | st.text(max_size=2), max_size=20).map("".join), st.integers(0, 255))
def test_any_set_in_json_is_the_same_in_any_pieces(text, size):
    targets.json_set(bytes([size]) + text.encode())


@settings(max_examples=200, deadline=None)
@given(st.binary(min_size=4, max_size=4), st.integers(0, 1 << 32))
def test_any_conversation_follows_the_table_and_ends_in_well_formed_answers(choices, seed):
    targets.conversation(choices + stream(seed, 1, VALID).data[:20_000])


@settings(max_examples=600, deadline=None)
@given(urls)
def test_a_url_inside_a_root_is_asked_for_inside_it(text):
    targets.url(text.encode("utf-8", "replace"))


@settings(deadline=None)
@given(st.integers(0, 1 << 32))
def test_a_changed_spool_file_is_damaged_and_nothing_else(seed):
    chance, data = random.Random(seed), bytearray(seeds.spooled())
    for _ in range(chance.randrange(4)):
        at = chance.randrange(len(data))
        data[at : at + chance.randrange(3)] = chance.choice(
            (b"", b"[", b"{", b"1", b"null", b"\n", b"\\ud800", b"\xff", b"e9", b"-")
        )
    targets.spool_file(bytes(data))


READERS = ["content_coding", "notations", "spool_file", "query", "answer", "http_answer"]
changes = st.lists(st.tuples(st.integers(0, 200), st.integers(0, 9), st.binary(max_size=9)), max_size=4)


@settings(max_examples=300, deadline=None)
@given(st.sampled_from([(name, seed) for name in READERS for seed in seeds.seeds(name)]), changes)
def test_any_bytes_are_read_or_refused(beginning, changes):
    name, seed = beginning
    whole = bytearray(seed)
    for at, gone, put in changes:
        whole[at : at + gone] = put
    targets.TARGETS[name](bytes(whole))


repeated = st.tuples(st.sampled_from(list(seeds.seeds("cost"))), st.binary(min_size=1, max_size=6))


@settings(max_examples=30, deadline=None)
@given(repeated, st.integers(0, 200), st.integers(0, 1000))
def test_nothing_takes_more_time_to_read_than_its_length(beginning, at, times):
    seed, unit = beginning
    targets.cost(seed[: 1 + at] + unit * times + seed[1 + at :])


def test_the_costs_that_are_watched_are_those_of_all_readers():
    assert seeds.READERS == targets._COSTED


@pytest.mark.parametrize("name", targets.TARGETS)
def test_what_fuzzing_begins_with_is_fine(name):
    for seed in seeds.seeds(name):
        targets.TARGETS[name](seed)
