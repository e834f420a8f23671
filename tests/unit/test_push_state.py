"""The state file, and what differs from it."""

import io
import os
import tempfile
from contextlib import closing
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lcc_scrapy.push import pipe, state, unconfirmed
from lcc_scrapy.push.changes import Comparison, Known, same_content
from lcc_scrapy.push.command import Stop
from lcc_scrapy.push.state import Damaged, Header, StateFile, key_of
from lcc_scrapy.wire.messages import Url

A = {"curl": "a", "mimetype": "text/html", "len": "1", "mtime": "10", "md5": "aa"}
B = A | {"curl": "b"}


@pytest.fixture
def file(tmp_path):
    return StateFile(tmp_path / "state.txt")


def lines(*urls):
    return [pipe.write(Url(url)) for url in urls]


def committed(file, *urls, header=None):
    header = header or Header(id="one")
    file.write_pending(header, lines(*urls))
    file.commit(header)


def compare(file, *given, complete=True):
    with closing(Known.load(file)) as known:
        comparison = Comparison(known, io.BytesIO())
        for line in given:
            comparison.take(line)
        comparison.finish(complete=complete)
    return comparison


def changes(comparison, *, full=False):
    found = [pipe.parse(line[:-1]).attributes for line in comparison.set_lines(full=full)]
    return [(url["curl"], url.get("op", "new" if "new" in url else "known")) for url in found]


# --- the file --------------------------------------------------------------------------------------


@given(st.builds(Header, *[st.text('ab "<>&\n\u20ac')] * 6, st.integers(0)))
def test_a_header_reads_back_as_it_was_written(header):
    assert Header.read(header.write()) == header


def test_a_pending_state_is_none_until_it_is_committed(file):
    file.write_pending(Header(id="one"), lines(A))
    assert file.header() is None
    file.commit(Header(id="one", lcc="l", seq=3))
    assert file.header() == Header(id="one", lcc="l", seq=3)
    assert file.header(pending=True) is None


def test_a_crash_while_committing_leaves_the_old_state_whole(file, monkeypatch):
    committed(file, A)
    file.write_pending(Header(id="two"), lines(A, B))
    before = file.path.read_bytes()

    def crash(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(Path, "replace", crash)
    with pytest.raises(KeyboardInterrupt):
        file.commit(Header(id="two"))
    assert file.path.read_bytes() == before
    monkeypatch.undo()
    file.commit(Header(id="two"))
    with closing(Known.load(file)) as known:
        assert known.count == 2


def test_the_new_state_is_on_disk_before_it_takes_the_place_of_the_old_one(file, monkeypatch):
    calls = []
    monkeypatch.setattr(os, "fsync", lambda _: calls.append("fsync"))
    replace = Path.replace
    monkeypatch.setattr(Path, "replace", lambda *names: (calls.append("rename"), replace(*names)))
    file.write_pending(Header(), [])
    assert calls == ["fsync", "rename", "fsync"]


def test_any_truncation_or_change_is_noticed(file):
    committed(file, A, B)
    whole = file.path.read_bytes()
    for cut in range(len(whole)):
        file.path.write_bytes(whole[:cut])
        with pytest.raises(Damaged):
            Known.load(file)
    for other in (
        whole.replace(b'mtime="10"', b'mtime="11"', 1),
        whole + b"\n",
        whole.replace(b'version="1"', b'version="2"'),
    ):
        file.path.write_bytes(other)
        with pytest.raises(Damaged):
            Known.load(file)


def test_what_was_left_out_is_not_in_the_committed_state(file):
    file.write_pending(Header(), lines(A, B))
    file.commit(Header(), {key_of(A)})
    known = Known.load(file)
    assert (known.has(key_of(A)), known.has(key_of(B))) == (False, True)
    known.close()


def test_a_second_run_is_turned_away(file):
    with file.locked(), pytest.raises(Stop) as stop, file.locked():
        pass
    assert stop.value.status == 75
    with file.locked():
        pass


def test_a_wish_is_remembered_until_it_is_forgotten(file):
    assert file.wish() == ""
    file.record_full_set_request("old files")
    assert file.wish() == "old files"
    file.record_full_set_request("")
    assert file.wish() == "not said"
    file.forget_full_set_request()
    file.forget_full_set_request()
    assert file.wish() == ""


def test_the_key_is_curl_and_mimetype_without_case_and_parameters():
    assert key_of(A) == key_of(A | {"mimetype": "Text/HTML; charset=x", "md5": "zz"})
    assert key_of(A) != key_of(B)
    assert len(key_of(A)) == 16


# --- what differs ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("new", "same"),
    [
        (A, True),
        (A | {"mtime": "99"}, True),
        (A | {"md5": "bb"}, False),
        (A | {"len": "2"}, False),
        (A | {"burl": "frame"}, False),
        ({k: v for k, v in A.items() if k != "md5"}, True),
        ({k: v for k, v in A.items() if k != "md5"} | {"mtime": "99"}, False),
        ({k: v for k, v in A.items() if k not in {"md5", "mtime"}}, False),
        ({k: v for k, v in A.items() if k != "len"}, False),
    ],
)
def test_md5_and_len_decide_or_else_len_and_mtime(new, same):
    assert same_content(A, new) is same


def test_new_changed_unchanged_and_removed_are_told_apart(file):
    committed(file, A, B, A | {"curl": "c"})
    found = compare(file, Url(A), Url(B | {"md5": "bb"}), Url(A | {"curl": "d"}))
    assert changes(found) == [("b", "known"), ("d", "new"), ("c", "remove")]
    assert changes(found, full=True) == [("a", "known"), ("b", "known"), ("d", "new")]
    assert str(found.counts) == "1 new, 1 changed, 1 removed, 1 unchanged"


def test_an_incomplete_input_removes_nothing_and_forgets_nothing(file):
    committed(file, A, B)
    found = compare(file, Url(A | {"md5": "bb"}), complete=False)
    assert changes(found) == [("a", "known")]
    assert list(found.state_lines()) == lines(A | {"md5": "bb"}, B)


def test_what_is_kept_stays_as_it_was_also_in_a_full_set(file):
    committed(file, A, B)
    found = compare(file, Url(A), pipe.Keep("b", "text/html"), pipe.Keep("new", "text/html"))
    assert changes(found) == []
    assert changes(found, full=True) == [("a", "known"), ("new", "new"), ("b", "known")]
    assert list(found.state_lines()) == lines(A, B)


def test_keeping_a_curl_keeps_every_view_of_it(file):
    committed(file, A, A | {"mimetype": "text/plain"})
    assert changes(compare(file, pipe.Keep("a"))) == []


def test_the_first_of_two_equal_keys_counts(file):
    found = compare(file, Url(A), Url(A | {"md5": "bb"}))
    assert list(found.state_lines()) == lines(A)
    assert found.counts.twice == 1


def test_an_explicit_removal_counts_as_absence(file):
    committed(file, A, B)
    assert changes(compare(file, Url(A), Url(B | {"op": "remove"}))) == [("b", "remove")]


@pytest.mark.parametrize(
    ("known", "present", "percent", "refused"),
    [
        (20, 1, 50, False),
        (20, 0, 50, True),
        (20, 0, 100, False),
        (21, 10, 50, True),
        (22, 11, 50, False),
        (30, 29, 0, True),
    ],
)
def test_the_share_that_may_be_removed_at_once(file, known, present, percent, refused):
    urls = [A | {"curl": str(number)} for number in range(known)]
    committed(file, *urls)
    found = compare(file, *map(Url, urls[:present]))
    assert found.too_many_removals(percent) is refused


def test_a_state_of_a_version_to_come_is_not_guessed_at():
    with pytest.raises(Damaged, match="version"):
        Header.read(Header().write().replace(f'version="{state.VERSION}"'.encode(), b'version="9"'))


# --- what a set of unknown fate leaves in doubt ----------------------------------------------------


def pended(file, *urls):
    """Leave a pending state whose set may have been accepted."""
    header = file.header() or Header()
    file.write_pending(Header(id="lost", base=header.id), lines(*urls))
    unconfirmed.record(file)


def test_what_a_lost_set_changed_counts_as_changed_also_as_it_was_before(file):
    committed(file, A, B)
    pended(file, A | {"md5": "bb"}, B | {"mtime": "99"})
    assert changes(compare(file, Url(A), Url(B))) == [("a", "known")]


def test_what_a_lost_set_added_is_new_or_else_removed(file):
    committed(file, A)
    pended(file, A, B)
    assert changes(compare(file, Url(A), Url(B))) == [("b", "new")]
    assert changes(compare(file, Url(A))) == [("b", "remove")]


def test_what_a_lost_set_removed_is_sent_again_when_it_is_back(file):
    committed(file, A, B)
    pended(file, A)
    assert changes(compare(file, Url(A), Url(B))) == [("b", "known")]
    assert changes(compare(file, Url(A))) == [("b", "remove")]


def test_without_a_state_a_lost_first_set_leaves_everything_in_doubt(file):
    pended(file, A, B)
    assert changes(compare(file, Url(A))) == [("a", "new"), ("b", "remove")]


def test_lost_sets_in_a_row_leave_one_line_a_url(file):
    committed(file, A)
    for number in range(5):
        pended(file, A | {"md5": str(number)}, B | {"curl": str(number % 2)})
    pended(file, A)
    found = compare(file, Url(A))
    assert changes(found) == [("a", "known"), ("0", "remove"), ("1", "remove")]
    with closing(Known.load(file)) as known:
        assert known.count == 3


def test_recording_a_doubt_again_changes_nothing(file):
    committed(file, A)
    pended(file, A | {"md5": "bb"}, B)
    before = file.path.read_bytes()
    unconfirmed.record(file)
    assert file.path.read_bytes() == before


def test_a_pending_state_that_follows_another_state_leaves_no_doubt(file):
    file.write_pending(Header(id="two", base="one"), lines(B))
    left = file.pending.read_bytes()
    committed(file, A, header=Header(id="two", base="one"))
    file.pending.write_bytes(left)
    before = file.path.read_bytes()
    unconfirmed.record(file)
    assert file.path.read_bytes() == before


def test_what_is_kept_stays_in_doubt(file):
    committed(file, A)
    pended(file, A | {"md5": "bb"}, B)
    found = compare(file, pipe.Keep("a"), pipe.Keep("b", "text/html"))
    assert changes(found) == []
    assert changes(found, full=True) == [("a", "known"), ("b", "new")]
    file.write_pending(Header(id="two", base="one"), found.state_lines())
    file.commit(Header(id="two", base="one"))
    assert changes(compare(file, Url(A))) == [("a", "known"), ("b", "remove")]


def test_what_is_left_out_stays_in_doubt(file):
    committed(file, A)
    pended(file, A, B)
    file.write_pending(Header(id="two", base="one"), lines(A, B, A | {"curl": "c"}))
    file.commit(Header(id="two", base="one"), {key_of(B), key_of(A | {"curl": "c"})})
    assert changes(compare(file, Url(A))) == [("b", "remove")]


def test_what_the_lcc_may_never_have_had_is_no_part_of_the_share_that_may_go(file):
    sure, unsure = [[A | {"curl": f"{kind}{number}"} for number in range(22)] for kind in "su"]
    committed(file, *sure)
    pended(file, *sure, *unsure)
    assert not compare(file, *map(Url, sure)).too_many_removals(50)
    assert not compare(file, *map(Url, sure[:11])).too_many_removals(50)
    assert compare(file, *map(Url, sure[:10])).too_many_removals(50)


def test_an_empty_site_is_not_believed_after_a_lost_first_set_either(file):
    pended(file, A)
    assert compare(file).too_many_removals(50)


SITES = st.dictionaries(st.sampled_from("abc"), st.sampled_from("123"))


class Lcc:
    """What an LCC holds: the md5 of each curl; None for one that was not declared."""

    def __init__(self):
        self.held = {}

    def take(self, comparison, left_out, *, full):
        if full:
            self.held = {}
        for line in comparison.set_lines(full=full):
            url = pipe.parse(line[:-1]).attributes
            if "op" in url:
                self.held.pop(url["curl"], None)
            elif url["curl"] not in left_out or pipe.NEW not in url:
                self.held[url["curl"]] = url.get("md5")


@given(
    st.lists(
        st.tuples(
            SITES,
            st.sampled_from(["refused", "lost", "accepted"]),
            st.sampled_from(["full", "partial", "incomplete"]),
            st.frozensets(st.sampled_from("abc"), max_size=1),
        ),
        max_size=8,
    ),
    SITES,
)
def test_whatever_was_lost_the_next_accepted_set_brings_the_lcc_up_to_date(attempts, site):
    lcc = Lcc()
    with tempfile.TemporaryDirectory() as folder:
        file = StateFile(Path(folder, "state"))
        for number, (found, fate, kind, left_out) in enumerate(
            [*attempts, (site, "accepted", "partial", frozenset())]
        ):
            unconfirmed.record(file)
            urls = [A | {"curl": curl, "md5": md5} for curl, md5 in found.items()]
            comparison = compare(file, *map(Url, urls), complete=kind != "incomplete")
            header = Header(id=f"id{number}", base=(file.header() or Header()).id)
            file.write_pending(header, comparison.state_lines())
            if fate != "refused":
                lcc.take(comparison, left_out, full=kind == "full")
            if fate == "accepted":
                new = [url for url in comparison.set_lines(full=kind == "full") if b'new="yes"' in url]
                keys = {key_of(state.attributes_in(url)) for url in new}
                file.commit(header, {key_of(A | {"curl": curl}) for curl in left_out} & keys)
    assert lcc.held == site
