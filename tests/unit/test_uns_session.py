"""The session: what may follow what, and what is said then."""

import itertools
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lcc_scrapy.domain.entries import Declared, Operation, UrlEntry
from lcc_scrapy.domain.errors import Refusal, text_of
from lcc_scrapy.domain.roots import Root
from lcc_scrapy.domain.sent import as_sent, values_of
from lcc_scrapy.domain.uns_limits import Limits
from lcc_scrapy.uns import effects
from lcc_scrapy.uns.codec import Malformed
from lcc_scrapy.uns.ports import Login
from lcc_scrapy.uns.session import OutOfTurn, Session
from lcc_scrapy.uns.states import (
    TABLE,
    FullSetSpent,
    LoginGranted,
    LoginRefused,
    SetCounted,
    SetStored,
    SpoolFailed,
    State,
    Stopping,
    StreamEnded,
    TooSlow,
    Vanished,
)
from lcc_scrapy.wire.messages import Init, InitAccepted, Quota, SetEnd, SetStart, Url, UrlRun

ROOT = "http://www.example.org/"
LOGIN = Login(7, InitAccepted(3, "10.0.0.9", ("text/*",), Quota()), (Root.parse(ROOT),))
FULL, PARTIAL = SetStart(full=True, urlprefix=ROOT), SetStart(full=False, urlprefix=ROOT)
GOOD = Url({"curl": "a.html", "mimetype": "text/html"})
ENTRY = UrlEntry(
    ROOT + "a.html",
    "text/html",
    Operation.UPDATE,
    ROOT + "a.html",
    ROOT + "a.html",
    sent=f'[["curl",{len(ROOT)}],"mimetype"]',
)

RUN = UrlRun({"curl": ["a.html", "b.html"], "mimetype": ["text/html"] * 2, "len": ["7", "8"]})

EVENTS = {
    Init: Init("7", "x"),
    SetStart: FULL,
    Url: GOOD,
    UrlRun: RUN,
    SetEnd: SetEnd(),
    Malformed: Malformed("bad"),
    LoginGranted: LoginGranted(LOGIN),
    LoginRefused: LoginRefused(Refusal(101)),
    FullSetSpent: FullSetSpent(),
    SetStored: SetStored(),
    SetCounted: SetCounted(4),
    SpoolFailed: SpoolFailed(),
    TooSlow: TooSlow("late"),
    Stopping: Stopping(),
    StreamEnded: StreamEnded(),
    Vanished: Vanished(),
}
WAY = {
    State.CONNECTED: [],
    State.AUTHENTICATING: [Init],
    State.READY: [Init, LoginGranted],
    State.RECEIVING: [Init, LoginGranted, SetStart],
    State.SETTLING: [Init, LoginGranted, SetStart, SetEnd],
    State.LINGERING: [Init, LoginGranted, SetStart, SetEnd, SetStored],
    State.CLOSED: [Init, LoginGranted, SetStart, SetEnd, SetStored, StreamEnded],
}


def session_in(state, login=LOGIN):
    session = Session(Limits(retry_after=300))
    for event in WAY[state]:
        session.receive(LoginGranted(login) if event is LoginGranted else EVENTS[event])
    assert session.state is state
    return session


def receiving(start, login=LOGIN):
    session = session_in(State.READY, login)
    assert session.receive(start) == [effects.OpenSet(start)]
    return session


def written(done):
    return b"".join(effect.data for effect in done if isinstance(effect, effects.Write)).decode()


@pytest.mark.parametrize(("state", "event"), list(itertools.product(State, EVENTS)))
def test_an_event_follows_the_table_or_is_refused_and_changes_nothing(state, event):
    session = session_in(state)
    before = dict(vars(session))
    if (state, event) in TABLE:
        session.receive(EVENTS[event])
        assert session.state is TABLE[state, event]
    else:
        with pytest.raises(OutOfTurn):
            session.receive(EVENTS[event])
        assert vars(session) == before


@pytest.mark.parametrize(("state", "event"), list(itertools.product(State, EVENTS)))
def test_whatever_comes_is_taken_without_an_exception(state, event):
    session = session_in(state)
    done = session.take(EVENTS[event])
    if done and isinstance(done[-1], effects.HalfClose):
        assert session.over
        assert isinstance(done[-2], effects.Write)


@given(st.lists(st.sampled_from(sorted(EVENTS, key=lambda kind: kind.__name__)), max_size=12))
def test_any_row_of_events_opens_at_most_one_set_and_settles_it_once(kinds):
    session, done = Session(), []
    for kind in kinds:
        done += session.take(EVENTS[kind])
    opened = sum(isinstance(effect, effects.OpenSet) for effect in done)
    ended = sum(isinstance(effect, effects.CommitSet | effects.CountSet | effects.DropSet) for effect in done)
    assert ended <= opened <= 1
    if opened and session.over:
        assert ended == 1
    assert sum(isinstance(effect, effects.HalfClose) for effect in done) <= 1


def test_every_state_but_the_last_can_be_left_and_every_event_has_a_place():
    assert {state for state, _ in TABLE} == set(State) - {State.CLOSED}
    assert {event for _, event in TABLE} == set(EVENTS)


def test_a_login_is_answered_with_all_that_the_desk_says():
    session = Session()
    assert session.take(Init("7", "secret")) == [effects.Authenticate(Init("7", "secret"))]
    assert session.waiting
    answer = written(session.take(LoginGranted(LOGIN)))
    assert '<connect_info seq="3" lastConnectIP="10.0.0.9"/>' in answer
    assert "<mime>text/*</mime>" in answer
    assert not session.waiting


@pytest.mark.parametrize("code", [101, 102, 103, 104])
def test_a_refused_login_is_told_why(code):
    session = session_in(State.AUTHENTICATING)
    done = session.take(LoginRefused(Refusal(code, "for the log only", 30)))
    assert f'<reason code="{code}" retry-after="30">' in written(done)
    assert "for the log" not in written(done)
    assert done[-1] == effects.HalfClose()
    assert not session.told


def test_a_good_set_is_recorded_committed_and_counted():
    session = receiving(PARTIAL)
    assert session.take(GOOD) == [effects.Record(ENTRY)]
    removal = Url({"curl": "b.html", "mimetype": "text/html", "furl": ""})
    assert session.take(removal) == [effects.Record(UrlEntry(ROOT + "b.html", "text/html", Operation.REMOVE))]
    assert session.take(SetEnd()) == [effects.CommitSet(0)]
    assert session.waiting
    done = session.take(SetStored())
    assert written(done) == (
        '<lococa:set_result>\n  <errors>\n  </errors>\n  <set_accepted received="2"/>\n</lococa:set_result>\n'
    )
    assert done[-1] == effects.HalfClose()
    assert session.told


def test_the_declared_values_are_recorded():
    url = Url({**GOOD.attributes, "mtime": "20020131235959", "len": "12", "md5": "A" * 32, "burl": ""})
    (record,) = receiving(PARTIAL).take(url)
    assert replace(record.entry, sent=ENTRY.sent) == replace(
        ENTRY, burl=None, declared=Declared(1012521599, 12, "a" * 32)
    )


def test_what_was_sent_is_recorded_and_told_in_the_provider_s_own_words():
    sent = {"c": "a.html", "mimetype": "Text/HTML", "mtime": "20020131235959", "own": "<mark>"}
    canonical = {"curl" if name == "c" else name: value for name, value in sent.items()}
    (record,) = receiving(PARTIAL).take(Url(canonical, sent))
    assert as_sent(record.entry.sent, values_of(record.entry)) == sent
    done = receiving(PARTIAL).take(Url(canonical | {"md5": "x"}, sent | {"md5": "x"}))
    assert 'c="a.html" mimetype="Text/HTML" mtime="20020131235959" own="&lt;mark&gt;" md5="x"' in written(
        done
    )


@pytest.mark.parametrize(
    ("attributes", "code", "url"),
    [
        ({"mimetype": "text/html"}, 701, ""),
        ({"curl": "a"}, 702, ROOT + "a"),
        ({"curl": "a", "mimetype": "image/png"}, 703, ROOT + "a"),
        ({"curl": "http://other.example/a", "mimetype": "text/html"}, 704, "http://other.example/a"),
        ({"curl": "a", "furl": "ftp://x/", "mimetype": "text/html"}, 705, "ftp://x/"),
        ({"curl": "a", "mimetype": "text/html", "md5": "x"}, 706, ROOT + "a"),
        ({"curl": "a" * 2049, "mimetype": "text/html"}, 707, ROOT + "a" * 2049),
    ],
)
def test_a_bad_url_is_told_at_once_with_all_that_was_submitted_and_the_set_goes_on(attributes, code, url):
    session = receiving(PARTIAL)
    done = session.take(Url({**attributes, "own": "<mark>"}))
    assert not any(isinstance(effect, effects.Record) for effect in done)
    told = written(done)
    assert told.startswith("<lococa:set_result>\n  <errors>\n")
    assert f'<url code="{code}" url="{url}"' in told
    assert all(f'{name}="' in told for name in attributes)
    assert 'own="&lt;mark&gt;"' in told
    assert written(session.take(Url({}))).startswith("    <url code=")
    session.take(GOOD)
    session.take(SetEnd())
    assert written(session.take(SetStored())) == (
        '  </errors>\n  <set_accepted received="1"/>\n</lococa:set_result>\n'
    )


def test_a_full_set_keeps_what_it_refuses_but_can_name_and_counts_what_it_cannot():
    session = receiving(FULL)
    done = session.take(Url({"curl": "a.html", "mimetype": "text/html", "md5": "x"}))
    assert done[0] == effects.Record(
        UrlEntry(ROOT + "a.html", "text/html", Operation.PRESENT, ROOT + "a.html")
    )
    for attributes in ({}, {"curl": "a"}, {"mimetype": "text/html"}):
        (only_told,) = session.take(Url(attributes))
        assert isinstance(only_told, effects.Write)
    assert session.take(SetEnd()) == [effects.CommitSet(3)]
    assert 'received="0"' in written(session.take(SetStored()))


def test_what_lies_outside_is_dropped_silently_when_the_provider_wants_that():
    session = receiving(replace(FULL, drop_outside=True))
    assert session.take(Url({"curl": "http://other.example/", "mimetype": "text/html"})) == []
    assert session.take(SetEnd()) == [effects.CommitSet(0)]


def test_a_dry_run_is_counted_and_not_committed():
    session = receiving(replace(FULL, dryrun=True))
    session.take(GOOD)
    assert session.take(SetEnd()) == [effects.CountSet(0)]
    assert '<set_accepted received="1" would_remove="4"/>' in written(session.take(SetCounted(4)))


def test_a_dry_run_tells_what_would_be_held():
    session = receiving(replace(FULL, dryrun=True))
    session.take(SetEnd())
    answer = written(session.take(SetCounted(0, 30)))
    assert '<set_accepted received="0" would_remove="0" would_hold="30"/>' in answer


def test_a_full_set_that_others_used_up_meanwhile_is_refused_when_it_is_complete():
    session = receiving(FULL)
    session.take(GOOD)
    session.take(SetEnd())
    done = session.take(FullSetSpent())
    assert '<set_rejected code="202">No full sets left</set_rejected>' in written(done)
    assert done[-1] == effects.HalfClose()
    assert session.told


SPENT = replace(LOGIN, fullsets_left=0)


def test_a_full_set_too_many_is_refused_before_its_first_url():
    session = session_in(State.READY, SPENT)
    done = session.take(FULL)
    assert '<set_rejected code="202">No full sets left</set_rejected>' in written(done)
    assert done[-1] == effects.HalfClose()
    assert session.take(GOOD) == session.take(SetEnd()) == []
    assert session.told


@pytest.mark.parametrize(
    ("login", "start"),
    [
        (replace(SPENT, fullsets_left=None), FULL),
        (replace(SPENT, fullsets_left=1), FULL),
        (replace(SPENT, empty=True), FULL),
        (replace(SPENT, accepted=replace(LOGIN.accepted, quota=Quota(fullset_wanted=True))), FULL),
        (replace(SPENT, counted_sets=frozenset({"s"})), replace(FULL, set_id="s")),
        (SPENT, replace(FULL, dryrun=True)),
        (SPENT, PARTIAL),
    ],
)
def test_a_set_that_costs_no_full_set_or_one_that_is_left_may_begin(login, start):
    assert session_in(State.READY, login).take(start) == [effects.OpenSet(start)]


@pytest.mark.parametrize(
    ("event", "code"),
    [
        (Malformed("bad"), 201),
        (Malformed("long", too_large=True), 204),
        (TooSlow("late"), 206),
        (SpoolFailed(), 203),
        (SpoolFailed(too_large=True), 204),
        (Stopping(), 203),
        (StreamEnded(), 201),
        (Init("7", "x"), 201),
        (SetStart(full=True), 201),
    ],
)
def test_a_set_that_goes_wrong_is_dropped_whole_and_its_provider_told(event, code):
    session = receiving(PARTIAL)
    session.take(GOOD)
    done = session.take(event)
    assert done[0] == effects.DropSet()
    assert f'<set_rejected code="{code}"' in written(done)
    assert session.over


@pytest.mark.parametrize(
    ("event", "code"),
    [
        (Malformed("bad"), 105),
        (Malformed("long", too_large=True), 105),
        (TooSlow("late"), 206),
        (Stopping(), 103),
        (StreamEnded(unfinished=True), 105),
        (SetStart(full=True), 105),
        (SetEnd(), 105),
    ],
)
def test_whatever_goes_wrong_before_the_login_is_a_refused_login(event, code):
    assert f'<reason code="{code}"' in written(Session(Limits(retry_after=300)).take(event))


def test_a_set_that_cannot_be_made_durable_is_not_accepted():
    done = session_in(State.SETTLING).take(SpoolFailed())
    assert '<set_rejected code="203" retry-after="300">' in written(done)
    assert "set_accepted" not in written(done)


@pytest.mark.parametrize("state", [State.READY, State.SETTLING])
def test_what_is_not_being_received_is_not_dropped(state):
    """A set that is being committed may be on disk already."""
    done = session_in(state).take(SpoolFailed() if state is State.SETTLING else TooSlow("late"))
    assert "<set_rejected" in written(done)
    assert effects.DropSet() not in done


def test_a_second_set_after_the_first_changes_nothing():
    session = session_in(State.SETTLING)
    assert session.take(PARTIAL) == session.take(GOOD) == session.take(SetEnd()) == []
    assert "set_accepted" in written(session.take(SetStored()))


def test_a_lost_connection_drops_the_set_but_not_one_that_is_being_committed():
    assert session_in(State.RECEIVING).take(Vanished()) == [effects.DropSet()]
    assert session_in(State.SETTLING).take(Vanished()) == []


@pytest.mark.parametrize("state", [State.CONNECTED, State.READY])
def test_a_connection_may_end_before_a_set_without_a_word(state):
    session = session_in(state)
    assert session.take(StreamEnded()) == [effects.Close()]
    assert session.told is (state is State.READY)


@pytest.mark.parametrize("event", [Malformed("bad"), TooSlow("late"), StreamEnded(), Vanished()])
def test_who_broke_off_is_told_its_errors_again_next_time(event):
    session = receiving(PARTIAL)
    session.take(event)
    assert not session.told


def test_no_password_shows_in_what_might_be_logged():
    assert "secret" not in repr(Session().take(Init("7", "secret")))


@pytest.mark.parametrize("dryrun", [False, True])
def test_why_urls_were_refused_is_noted_once_their_set_is_accepted(dryrun):
    session = receiving(replace(PARTIAL, dryrun=dryrun))
    session.take(Url({"curl": "a", "mimetype": "image/png"}))
    session.take(SetEnd())
    done = session.take(SetCounted(0) if dryrun else SetStored())
    notes = [effect for effect in done if isinstance(effect, effects.NoteRefused)]
    assert [[one.code for one in note.refused] for note in notes] == ([] if dryrun else [[703]])
    assert session.refused_types == (not dryrun)
    assert Session().refused_types == 0


@pytest.mark.parametrize("unfinished", [False, True])
def test_a_message_that_is_cut_short_is_told_and_the_connection_closed(unfinished):
    session = session_in(State.READY)
    done = session.take(StreamEnded(unfinished=unfinished))
    assert ('<set_rejected code="201"' in written(done)) is unfinished
    assert (done[-1], effects.HalfClose() in done, session.told) == (effects.Close(), False, not unfinished)


def test_what_is_cut_short_after_the_last_word_is_not_told():
    session = session_in(State.LINGERING)
    assert session.take(StreamEnded(unfinished=True)) == [effects.Close()]
    assert session.told


@pytest.mark.parametrize("state", State)
def test_a_provider_has_its_whole_answer_when_nothing_is_owed_to_it(state):
    assert session_in(state).told is (state in {State.READY, State.LINGERING, State.CLOSED})


@pytest.mark.parametrize("state", [State.CONNECTED, State.AUTHENTICATING, State.READY, State.RECEIVING])
def test_a_server_that_stops_asks_everybody_to_come_again_later(state):
    session = session_in(state)
    done = session.take(Stopping())
    code = 203 if state in {State.READY, State.RECEIVING} else 103
    assert f'code="{code}" retry-after="300"' in written(done)
    assert not session.told


@pytest.mark.parametrize(
    ("state", "event", "outcome"),
    [
        (State.CONNECTED, StreamEnded(), "nothing sent"),
        (State.CONNECTED, Malformed("a password"), f"refused 105 {text_of(105)}"),
        (State.AUTHENTICATING, LoginRefused(Refusal(101, "no such provider")), f"refused 101 {text_of(101)}"),
        (State.READY, StreamEnded(), "no set"),
        (State.READY, Malformed("bad"), f"refused 201 {text_of(201)}: bad"),
        (State.RECEIVING, TooSlow("late"), f"refused 206 {text_of(206)}: late"),
        (State.RECEIVING, Vanished(), "connection lost while receiving"),
        (State.SETTLING, Vanished(), "connection lost while settling"),
        (State.SETTLING, SetStored(), "accepted 0"),
        (State.LINGERING, Vanished(), "accepted 0"),
    ],
)
def test_the_log_is_told_how_a_conversation_ended(state, event, outcome):
    session = session_in(state)
    session.take(event)
    assert session.outcome == outcome


def test_a_run_is_recorded_whole_if_nothing_in_it_is_refused():
    (recorded,) = receiving(PARTIAL).take(RUN)
    assert (type(recorded), len(recorded.run)) == (effects.RecordRun, 2)
    bad = UrlRun({**RUN.columns, "mimetype": ["text/html", "image/png"]})
    assert receiving(PARTIAL).take(bad) == [effects.TakeOneByOne(bad)]
