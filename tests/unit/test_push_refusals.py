"""What the LCC refused is sent again once it may be taken, and no run is green before."""

import io
import json
import os
import sys
import tempfile
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lcc_scrapy.push import client, delivery, lcccp, lcccpstate, pipe
from lcc_scrapy.push.state import Header, StateFile
from lcc_scrapy.wire.messages import InitAccepted, Quota, SetAccepted, SetRejected, UrlError

PREFIX = "http://www.example.org/"
LISTED = 2
"""So many errors does this LCC list at a login."""


@dataclass
class Lcc:
    """An LCC that takes URLs whose first letter it likes, up to so many, and fetches behind the login."""

    likes: str = "abc"
    most: int = 100
    says: str = "a revision"
    held: dict = field(default_factory=dict)
    waiting: dict = field(default_factory=dict)
    errors: list = field(default_factory=list)
    sets: list = field(default_factory=list)
    ids: list = field(default_factory=list)
    seq: int = 0
    fate: str = "accepted"

    def connect(self, *_):
        return self

    def login(self, _):
        self.fetch()
        self.seq += 1
        revision = f"{self.likes}{self.most}" if self.says else ""
        errors, self.errors = self.errors, []
        return InitAccepted(
            self.seq, "", ("text/*",), Quota(), len(errors), 0, tuple(errors[-LISTED:]), "lcc", revision
        )

    def fetch(self):
        for name, url in self.waiting.items():
            if name in self.held or len(self.held) < self.most:
                self.held[name] = url["md5"]
            else:
                self.errors.append(UrlError(609, "full", PREFIX + name, {**url, "curl": PREFIX + name}))
        self.waiting = {}

    def submit(self, start, urls, on_error):
        found = [pipe.parse_element(url)[1] for url in urls]
        self.sets.append([("-" if "op" in url else "") + url["curl"] for url in found])
        self.ids.append(start.set_id)
        if self.fate == "rejected":
            return SetRejected(203, "later")
        if start.full:
            self.held = {name: md5 for name, md5 in self.held.items() if name in self.sets[-1]}
        for url in found:
            name = url["curl"]
            if "op" in url:
                self.held.pop(name, None)
                self.waiting.pop(name, None)
            elif name[0] in self.likes:
                self.waiting[name] = url
            else:
                on_error(UrlError(704, "outside", PREFIX + name, url))
        if self.fate == "lost":
            raise client.Lost("gone")
        return SetAccepted(len(found))

    later_login = None

    def close(self):
        pass

    def narrow(self, likes):
        """Take other roots: what lies outside goes, and its provider is told."""
        self.likes = likes
        for name in [name for name in self.held if name[0] not in likes]:
            self.errors.append(UrlError(704, "outside", "", {"c": PREFIX + name, "mimetype": "text/html"}))
            del self.held[name]


@dataclass
class Done:
    status: int
    said: str
    out: str


class Provider:
    """A site and its commands, in this process."""

    def __init__(self, lcc, folder):
        self.lcc = lcc
        self.state = folder / "state.txt"
        self.site = {}

    def lines(self):
        for name, md5 in self.site.items():
            yield f'<url curl="{name}" mimetype="text/html" len="1" mtime="1" md5="{md5}"/>\n'
        yield f'<end count="{len(self.site)}"/>\n'

    def push(self, *options, full=False):
        said = io.StringIO()
        with pytest.MonkeyPatch.context() as patch, redirect_stderr(said):
            patch.setattr(delivery.client, "connect", self.lcc.connect)
            handed = _run(patch, lcccpstate.main, "".join(self.lines()), self._options(full=full))
            given = [f"--uns=h --pid=7 --pwd=x --urlprefix={PREFIX}", *options]
            done = _run(patch, lcccp.main, handed.out, " ".join(given))
        return Done(done.status, said.getvalue(), done.out)

    def _options(self, *, full):
        return f"--statefile={self.state} --max-removal=100{' --full' if full else ''}"

    @property
    def refused(self):
        return self.state.read_text().count(' refused="')


def _run(patch, main, given, options):
    patch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(given.encode())))
    out = io.TextIOWrapper(io.BytesIO())
    with redirect_stdout(out):
        status = main(options.split())
    out.flush()
    return Done(status, "", out.buffer.getvalue().decode())


@pytest.fixture
def lcc():
    return Lcc()


@pytest.fixture
def provider(lcc, tmp_path):
    made = Provider(lcc, tmp_path)
    made.site = {"a1": "m", "x1": "m", "x2": "m"}
    return made


def test_what_is_refused_is_sent_once_and_no_run_is_green(lcc, provider):
    first, second, third = provider.push(), provider.push(), provider.push()
    assert [first.status, second.status, third.status] == [1, 1, 1]
    assert lcc.sets == [["a1", "x1", "x2"]]
    assert "2 URLs refused:" in first.said
    assert "1 unchanged, 2 refused before" in second.said
    assert "2 URLs still refused:\n" in second.said
    assert "704 URL outside the provider's roots  x1" in second.said


def test_the_next_run_after_other_roots_delivers_it(lcc, provider):
    provider.push()
    provider.push()
    lcc.likes += "x"
    mended, after = provider.push(), provider.push()
    assert (mended.status, after.status) == (0, 0)
    assert lcc.sets[1:] == [["x1", "x2"]]
    assert lcc.held == provider.site
    assert provider.refused == 0


def test_what_is_refused_once_more_waits_for_the_next_change(lcc, provider):
    provider.push()
    lcc.most = 50
    provider.push()
    assert provider.push().status == 1
    assert lcc.sets == [["a1", "x1", "x2"], ["x1", "x2"]]


def test_an_lcc_that_gives_no_revision_is_not_asked_again(lcc, provider):
    lcc.says = ""
    provider.push()
    lcc.likes += "x"
    assert provider.push().status == 1
    assert len(lcc.sets) == 1
    assert provider.push(full=True).status == 0
    assert (provider.push().status, provider.refused) == (0, 0)


def test_a_refused_url_whose_file_changed_is_sent(lcc, provider):
    provider.push()
    provider.site["x1"] = "other"
    assert provider.push().status == 1
    assert lcc.sets[1:] == [["x1"]]
    assert provider.refused == 2


def test_a_refused_url_that_is_gone_is_removed_and_forgotten(lcc, provider):
    provider.push()
    del provider.site["x1"], provider.site["x2"]
    assert provider.push().status == 0
    assert sorted(lcc.sets[1]) == ["-x1", "-x2"]
    assert provider.push().status == 0
    assert len(lcc.sets) == 2


def test_a_quota_that_was_raised_brings_what_it_refused(lcc, provider):
    lcc.likes, lcc.most = "ax", 1
    first, second, third = provider.push(), provider.push(), provider.push()
    assert [first.status, second.status, third.status] == [0, 1, 1]
    assert len(lcc.sets) == 1
    lcc.most = 3
    provider.push()
    lcc.fetch()
    assert lcc.held == provider.site
    assert provider.push().status == 0


def test_a_quota_that_was_raised_before_anybody_learned_of_it_does_too(lcc, provider):
    lcc.likes, lcc.most = "ax", 1
    provider.push()
    lcc.fetch()
    lcc.most = 3
    provider.push()
    lcc.fetch()
    assert lcc.held == provider.site


def test_roots_that_were_narrowed_and_mended_bring_the_documents_back(lcc, provider):
    lcc.likes = "ax"
    provider.push()
    lcc.fetch()
    lcc.narrow("a")
    assert provider.push().status == 1
    lcc.likes = "ax"
    assert provider.push().status == 0
    lcc.fetch()
    assert lcc.held == provider.site


def test_more_errors_than_were_listed_have_the_whole_site_looked_at_again(lcc, provider):
    provider.site |= {f"a{number}": "m" for number in range(9)}
    lcc.likes, lcc.most = "ax", 3
    provider.push()
    assert provider.push().status == 1
    assert provider.refused == LISTED
    lcc.most = 100
    provider.site["a1"] = "other"
    provider.push()
    lcc.fetch()
    assert lcc.held == provider.site
    assert len(lcc.sets[-1]) == len(provider.site)
    provider.push()
    assert len(lcc.sets) == 2


def test_a_fetch_that_failed_for_other_reasons_is_not_refused(lcc, provider):
    lcc.likes = "ax"
    provider.push()
    lcc.errors = [UrlError(404, "Not Found", "", {"curl": PREFIX + "x1", "mimetype": "text/html"})]
    assert provider.push().status == 0
    lcc.most = 50
    assert provider.push().status == 0
    assert len(lcc.sets) == 1


def test_a_set_that_was_lost_keeps_its_id_with_what_it_brings_again(lcc, provider):
    provider.push()
    lcc.likes, lcc.fate = "ax", "lost"
    assert provider.push().status == 75
    lcc.fate = "accepted"
    assert provider.push().status == 0
    assert lcc.sets[1:] == [["x1", "x2"]] * 2
    assert lcc.ids[1] == lcc.ids[2] != lcc.ids[0]


def test_what_is_sent_anew_is_not_marked_for_an_earlier_refusal(lcc, provider):
    lcc.likes, lcc.most = "ax", 1
    provider.site = {"a1": "m", "x1": "m"}
    provider.push()
    lcc.fetch()
    provider.site = {"x1": "other"}
    assert provider.push().status == 0
    assert (lcc.sets[1], provider.refused) == (["x1", "-a1"], 0)


def test_errors_that_were_not_listed_are_remembered_although_the_set_was_turned_away(lcc, provider):
    provider.site = {f"a{number}": "m" for number in range(9)}
    lcc.most = 1
    provider.push()
    lcc.fetch()
    provider.site["a1"], lcc.fate = "other", "rejected"
    assert provider.push().status == 75
    lcc.most, lcc.fate = 100, "accepted"
    provider.push()
    lcc.fetch()
    assert lcc.held == provider.site


def test_a_refused_url_of_unknown_fate_is_sent_although_it_is_as_it_was(lcc, provider):
    def line(burl):
        url = f'<url curl="x1" mimetype="text/html" burl="{burl}"/>\n'
        provider.lines = lambda: [url, '<end count="1"/>\n']

    line("1")
    provider.push()
    line("2")
    lcc.fate = "lost"
    provider.push()
    line("1")
    lcc.fate = "accepted"
    provider.push()
    assert lcc.sets == [["x1"]] * 3


def test_what_did_not_fit_once_more_is_tried_at_the_next_run(lcc, provider, monkeypatch):
    provider.push()
    lcc.likes = "ax"
    monkeypatch.setattr(
        lcc, "login", lambda _: InitAccepted(9, "", (), Quota(1, 1), lcc_id="lcc", revision="r")
    )
    provider.push("--over-quota=trim")
    assert lcc.sets[1:] == [["x1"]]
    provider.push("--over-quota=trim")
    assert lcc.sets[2:] == [["x2"]]
    assert provider.refused == 0


def test_a_full_set_brings_everything_and_settles_what_was_refused(lcc, provider):
    provider.push()
    assert provider.push(full=True).status == 1
    assert lcc.sets[1] == ["a1", "x1", "x2"]
    assert provider.refused == 2
    lcc.likes = "ax"
    assert provider.push(full=True).status == 0
    assert provider.refused == 0


def test_what_was_refused_while_a_full_set_got_lost_is_sent_again_when_it_may_be_taken(lcc, provider):
    provider.site = {"a1": "1", "x1": "1"}
    lcc.likes = "ax"
    provider.push()
    lcc.fetch()
    lcc.narrow("a")
    lcc.fate = "lost"
    assert provider.push(full=True).status == 75
    lcc.fate, lcc.most = "accepted", 101  # a revision never comes back
    lcc.narrow("ax")
    provider.push()
    lcc.fetch()
    assert lcc.held == provider.site


def test_a_dry_run_changes_nothing(lcc, provider):
    provider.push()
    before = provider.state.read_text().replace('seq="1"', 'seq="2"')
    lcc.likes = "ax"
    provider.push("--dry-run")
    assert lcc.sets[1:] == [["x1", "x2"]]
    assert provider.state.read_text() == before


def test_the_json_says_how_many_are_refused(lcc, provider):
    provider.push()
    told = json.loads(provider.push("--json").out)
    assert (told["status"], told["outcome"], told["refused"]) == (1, "nothing_sent", 2)


def test_a_state_file_of_before_is_read(tmp_path):
    header = Header.read(b'<state version="1" id="i" base="" set="s" lcc="l" pid="7" urlprefix="u" seq="3"/>')
    assert (header.id, header.seq, header.revision, header.unlisted) == ("i", 3, "", "")


def test_marks_that_a_line_brings_along_are_not_believed(lcc, provider):
    state = StateFile(provider.state)
    provider.lines = lambda: [
        '<url curl="a1" mimetype="text/html" len="1" mtime="1" refused="704" new="yes"/>\n',
        '<end count="1"/>\n',
    ]
    assert provider.push().status == 0
    assert lcc.sets == [["a1"]]
    assert state.header() is not None
    assert provider.refused == 0


SITES = st.dictionaries(st.sampled_from(["a1", "a2", "x1", "x2"]), st.sampled_from("12"))


@settings(max_examples=25)
@given(
    st.lists(
        st.tuples(
            SITES,
            st.sampled_from(["accepted", "lost", "rejected"]),
            st.sampled_from(["a", "x", "ax"]),
            st.integers(0, 4),
            st.booleans(),
        ),
        max_size=6,
    ),
    SITES.filter(bool),
)
def test_whatever_happened_an_lcc_that_takes_all_gets_all(runs, site):
    lcc = Lcc()
    with tempfile.TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "fsync", lambda _: None)
        provider = Provider(lcc, Path(folder))
        for number, (found, lcc.fate, likes, most, full) in enumerate(runs):
            lcc.narrow(likes)
            lcc.most = most + 10 * number  # a revision never comes back
            provider.site = found
            provider.push(full=full)
        provider.site, lcc.fate, lcc.most = site, "accepted", 1000
        lcc.narrow("ax")
        provider.push()
        last = provider.push()
        lcc.fetch()
    assert lcc.held == site
    assert last.status == 0
