"""URLs that the LCC took and could not fetch as declared are sent again by later runs, three times at most."""

import json
import tempfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lcc_scrapy.push import delivery, lcccpstate, refusals
from lcc_scrapy.push.command import Notes
from lcc_scrapy.push.lcc_push import PROG
from lcc_scrapy.push.lcccpstate import Wish
from lcc_scrapy.push.one_push import Job, push
from lcc_scrapy.push.plan import Plan
from lcc_scrapy.push.refusals import AGAIN_AFTER, FAILURES, Failure
from lcc_scrapy.push.state import StateFile
from lcc_scrapy.wire.messages import Init, SetStart, UrlError
from tests.unit.test_push_refusals import PREFIX, Lcc, Provider, _run

HOUR = 3600
NOON = 1_700_000_000


@pytest.fixture
def lcc():
    return Lcc(likes="ax")


@pytest.fixture
def now(monkeypatch):
    """Return the clock of the commands, a list of one number; no disk is waited for."""
    monkeypatch.setattr("os.fsync", lambda _: None)
    epoch = [NOON]
    monkeypatch.setattr(delivery.time, "time", lambda: epoch[0])
    return epoch


@pytest.fixture
def provider(lcc, tmp_path, now):
    made = Provider(lcc, tmp_path)
    made.site = {"a1": "m", "x1": "m"}
    assert made.push().status == 0
    lcc.fetch()
    return made


def error(name, code=608):
    return UrlError(code, "as said", PREFIX + name, {"curl": PREFIX + name, "mimetype": "text/html"})


def sets_at(lcc, provider, now, *times):
    """Push at these times (seconds from now on), and return what each push sent."""
    begun, sent = now[0], []
    for at in times:
        now[0] = begun + at
        before = len(lcc.sets)
        provider.push()
        sent.append([one for urls in lcc.sets[before:] for one in urls])
        lcc.fetch()
    return sent


@pytest.mark.parametrize("code", [404, 410, 500, 503, 599, 603, 607, 608, 614])
def test_a_failed_url_is_sent_again_after_1_6_and_24_hours_and_then_no_more(lcc, provider, now, code):
    lcc.errors = [error("x1", code)]
    hours = [0, 0.9, 1, 1.1, 6.9, 7, 30.9, 31, 60, 1000]
    sent = sets_at(lcc, provider, now, *(int(hour * HOUR) for hour in hours))
    assert sent == [[], [], ["x1"], [], [], ["x1"], [], ["x1"], [], []]


@pytest.mark.parametrize("code", [200, 304, 401, 403, 451, 601, 602, 604, 605, 606, 611, 612, 613, 615, 616])
def test_what_time_does_not_mend_is_not_sent_again(lcc, provider, now, code):
    lcc.errors = [error("x1", code)]
    assert sets_at(lcc, provider, now, 0, HOUR, 30 * HOUR) == [[], [], []]
    assert " failed=" not in provider.state.read_text()


def test_all_that_time_mends_is_marked():
    assert {404, 410, *range(500, 600), 603, 607, 608, 614} == FAILURES


def test_reports_that_come_again_begin_no_new_series(lcc, provider, now):
    sent = []
    for hour in range(40):
        lcc.errors = [error("x1", 404)]
        sent += sets_at(lcc, provider, now, HOUR if hour else 0)
    assert [hour for hour, urls in enumerate(sent) if urls] == [1, 7, 31]


def test_the_times_count_from_when_it_was_sent(lcc, provider, now):
    lcc.errors = [error("x1")]
    hours = [0, 5, 10, 11, 34, 35]
    sent = sets_at(lcc, provider, now, *(hour * HOUR for hour in hours))
    assert [hour for hour, urls in zip(hours, sent, strict=True) if urls] == [5, 11, 35]


def test_a_url_that_changes_is_sent_at_once_and_forgets_its_mark(lcc, provider, now):
    lcc.errors = [error("x1")]
    sets_at(lcc, provider, now, 0)
    provider.site["x1"] = "other"
    assert sets_at(lcc, provider, now, 60, 2 * HOUR, 40 * HOUR) == [["x1"], [], []]
    lcc.errors = [error("x1")]
    assert sets_at(lcc, provider, now, 0, HOUR) == [[], ["x1"]]


def test_a_url_that_is_removed_forgets_its_mark(lcc, provider, now):
    lcc.errors = [error("x1")]
    sets_at(lcc, provider, now, 0)
    del provider.site["x1"]
    assert sets_at(lcc, provider, now, 60, 2 * HOUR) == [["-x1"], []]
    provider.site["x1"] = "m"
    assert sets_at(lcc, provider, now, 60, 2 * HOUR) == [["x1"], []]


def test_a_report_of_what_is_sent_in_the_same_run_marks_nothing(lcc, provider, now):
    lcc.errors = [error("x1"), error("a1")]
    provider.site = {"x1": "other"}
    assert sets_at(lcc, provider, now, 0, HOUR) == [["x1", "-a1"], []]


def test_a_failed_url_goes_along_with_other_news(lcc, provider, now):
    lcc.errors = [error("x1")]
    sets_at(lcc, provider, now, 0)
    provider.site["a2"] = "m"
    assert sets_at(lcc, provider, now, HOUR) == [["a2", "x1"]]


@pytest.mark.parametrize("fate", ["lost", "rejected"])
def test_a_set_that_was_not_accepted_does_not_count(lcc, provider, now, fate):
    lcc.errors = [error("x1")]
    sets_at(lcc, provider, now, 0)
    lcc.fate = fate
    assert sets_at(lcc, provider, now, HOUR, HOUR + 60) == [["x1"]] * 2
    assert lcc.ids[-1] == lcc.ids[-2]
    lcc.fate = "accepted"
    assert sets_at(lcc, provider, now, 60, 60 + HOUR, 60 + 6 * HOUR) == [["x1"], [], ["x1"]]


@pytest.mark.parametrize("fate", ["lost", "rejected"])
def test_a_report_counts_whatever_became_of_its_set(lcc, provider, now, fate):
    provider.site["a2"], lcc.fate, lcc.errors = "m", fate, [error("x1")]
    sets_at(lcc, provider, now, 0)
    lcc.fate = "accepted"
    assert sets_at(lcc, provider, now, 60, HOUR) == [["a2"], ["x1"]]


def test_a_dry_run_keeps_what_its_login_reported(lcc, provider, now):
    lcc.errors = [error("x1")]
    provider.push("--dry-run")
    assert sets_at(lcc, provider, now, 60, HOUR) == [[], ["x1"]]


def test_a_full_set_counts_when_it_was_due(lcc, provider, now):
    lcc.errors = [error("x1")]
    provider.push(full=True)
    now[0] += HOUR // 2
    provider.push(full=True)
    assert "608 0 " in provider.state.read_text()
    now[0] += HOUR // 2
    provider.push(full=True)
    assert f'failed="608 1 {now[0] + AGAIN_AFTER[1]}"' in provider.state.read_text()
    assert sets_at(lcc, provider, now, HOUR, AGAIN_AFTER[1]) == [[], ["x1"]]


def test_marks_never_leave_the_state(lcc, provider, now):
    lcc.errors = [error("x1")]
    provider.push()
    sent = []
    submit = lcc.submit
    lcc.submit = lambda start, urls, on_error: submit(
        start, [sent.append(url) or url for url in urls], on_error
    )
    now[0] += HOUR
    provider.push()
    now[0] += 6 * HOUR
    provider.push(full=True)
    assert len(sent) == 3
    assert not any(b"failed" in url for url in sent)


def test_marks_do_not_pass_to_lcccp_either(lcc, provider, now):
    lcc.errors = [error("x1")]
    provider.push()
    assert " failed=" in provider.state.read_text()
    with pytest.MonkeyPatch.context() as patch:
        handed = _run(
            patch, lcccpstate.main, "".join(provider.lines()), f"--statefile={provider.state} --full"
        )
    assert ('curl="x1"' in handed.out, "failed" in handed.out) == (True, False)


def test_what_is_in_doubt_has_no_mark(lcc, provider, now):
    lcc.errors = [error("x1")]
    provider.push()
    provider.site["x1"], lcc.fate = "other", "lost"
    sets_at(lcc, provider, now, 60, 120)
    assert " failed=" not in provider.state.read_text()


def test_a_mark_that_a_line_brings_along_is_not_believed(lcc, provider, now):
    provider.lines = lambda: [
        '<url curl="a1" mimetype="text/html" len="1" mtime="1" md5="m" failed="608 0 1"/>\n',
        '<url curl="x1" mimetype="text/html" len="1" mtime="1" md5="m"/>\n',
        '<end count="2"/>\n',
    ]
    assert sets_at(lcc, provider, now, 0, HOUR) == [[], []]
    assert " failed=" not in provider.state.read_text()


def test_a_refusal_takes_the_place_of_a_failure(lcc, provider, now):
    lcc.errors = [error("x1", 404)]
    sets_at(lcc, provider, now, 0)
    lcc.narrow("a")
    assert sets_at(lcc, provider, now, 60, 2 * HOUR) == [["x1"], []]  # asked once, since the revision changed
    text = provider.state.read_text()
    assert (' refused="704"' in text, " failed=" in text) == (True, False)
    lcc.errors = [error("x1", 404)]
    assert sets_at(lcc, provider, now, 60) == [[]]
    assert (provider.refused, " failed=" in provider.state.read_text()) == (1, False)


def test_a_clock_that_was_far_ahead_delays_nothing(lcc, provider, now):
    lcc.errors = [error("x1")]
    now[0] += 10**9
    provider.push()
    now[0] -= 10**9
    assert sets_at(lcc, provider, now, 0) == [["x1"]]


@pytest.mark.parametrize("mark", ["", "608", "608 0", "a b c", "608 0 1 2", "608 -7 1"])
def test_a_mark_that_cannot_be_read_harms_nothing(mark):
    failure = Failure.of({"failed": mark})
    assert failure is None or failure.sent(NOON).due == NOON + AGAIN_AFTER[1]


def test_the_report_names_what_became_of_each(lcc, provider, monkeypatch):
    monkeypatch.setattr("tests.unit.test_push_refusals.LISTED", 10)
    lcc.errors = [error("a1", 404), error("x1", 608), error("x2", 607), error("x3", 503), error("x4", 611)]
    said = provider.push().said
    assert "1 URLs not found at the site, of earlier sets:\n" in said
    assert "2 URLs fetched, but not as declared, of earlier sets:\n" in said
    assert "2 URLs not fetched, of earlier sets:\n" in said
    assert said.index("not as declared") < said.index("608 as said") < said.index("not fetched")
    assert "2 URLs that failed are sent again by runs after 1, 6, 24 hours" in said
    assert "not fetched" not in said[said.index("not as declared") : said.index("607 as said")]


def test_a_stored_document_is_never_called_not_fetched(lcc, provider):
    lcc.errors = [error("x1", 608)]
    assert "not fetched" not in provider.push().said


def test_the_json_says_how_many_are_sent_again(lcc, provider):
    lcc.errors = [error("x1")]
    assert json.loads(provider.push("--json").out)["again"] == 1


def test_a_run_that_sends_again_says_so(lcc, provider, now):
    lcc.errors = [error("x1")]
    provider.push()
    now[0] += HOUR
    assert "1 URLs that failed earlier are sent again" in provider.push().said


class Named:
    """A sitemap without times."""

    name = "sitemap"
    is_whole = True
    undated_is_same = True

    def write(self, out, notes):
        out.write(f'<url curl="{PREFIX}x1" mimetype="text/html"/>\n<end count="1"/>\n'.encode())


def test_lcc_push_takes_its_time_from_its_caller(lcc, tmp_path, monkeypatch):
    monkeypatch.setattr(delivery.client, "connect", lcc.connect)
    lcc.submit = lambda start, urls, on_error: sent.append(len(list(urls))) or delivery.SetAccepted(1)
    sent, plan = [], Plan("h", Init("7", "x"), SetStart(full=False))
    plan = Plan(Address(), plan.login, plan.start)
    job = Job.of(Named(), plan, tmp_path / "state", Wish(undated_is_same=True))
    for hour in range(40):
        lcc.errors = (
            [UrlError(608, "", "", {"curl": PREFIX + "x1", "mimetype": "text/html"})] if hour == 1 else []
        )
        push(job, Notes(PROG, quiet=True), clock=lambda hour=hour: NOON + hour * HOUR)
    assert sent == [1] * 4


class Address:
    logins_of_a_set = 0


SITES = st.dictionaries(st.sampled_from(["a1", "a2", "x1"]), st.sampled_from("12"), min_size=1)
RUNS = st.lists(
    st.tuples(
        SITES,
        st.sampled_from(["accepted", "lost", "rejected"]),
        st.lists(st.sampled_from(["a1", "a2", "x1"]), max_size=2),
        st.integers(0, 10),
        st.booleans(),
    ),
    max_size=8,
)


@settings(max_examples=25, deadline=None)
@given(RUNS)
def test_whatever_happens_no_content_is_sent_again_more_than_three_times(runs):
    lcc = Lcc(likes="ax")
    with tempfile.TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        patch.setattr("os.fsync", lambda _: None)
        epoch = [NOON]
        patch.setattr(delivery.time, "time", lambda: epoch[0])
        provider = Provider(lcc, Path(folder))
        for provider.site, lcc.fate, failed, hours, full in runs:
            lcc.errors = [error(name) for name in failed]
            epoch[0] += hours * HOUR
            provider.push(full=full)
            lcc.fetch()
        lcc.fate = "accepted"
        provider.push()
        before = len(lcc.sets)
        for _ in range(9):
            lcc.errors = [error("a1"), error("x1")]
            epoch[0] += 25 * HOUR
            provider.push()
        assert StateFile(provider.state).header() is not None
    again = [name for urls in lcc.sets[before:] for name in urls]
    assert all(again.count(name) <= 3 for name in again)


def test_the_marks_are_few_bytes_of_what_is_marked():
    login = Lcc(errors=[error("x1"), error("x2")]).login(None)
    codes = refusals.reported(login, PREFIX)
    lines = [b'<url curl="x1" mimetype="text/html"/>\n', b'<url curl="y" mimetype="text/html"/>\n']
    marked = list(refusals.with_marks(lines, codes, NOON))
    assert marked[0] == b'<url curl="x1" mimetype="text/html" failed="608 0 1700003600"/>\n'
    assert marked[1] == lines[1]
