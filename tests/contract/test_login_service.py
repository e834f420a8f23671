"""What the login service says at a login, and how full sets are counted from their acceptance on, on every store."""

import re

import pytest
from little_lcc import PID, START, removal, update

from lcc_scrapy.db.records import REFUSED_TYPES
from lcc_scrapy.db.sql.store import SqlStore
from lcc_scrapy.domain.providers import State
from lcc_scrapy.domain.tokens import Token, digest_of, new_secret
from lcc_scrapy.intake.absorbing import Intake
from lcc_scrapy.intake.spooled import SpooledFile
from lcc_scrapy.login import login_service
from lcc_scrapy.login.login_service import LoginRules
from lcc_scrapy.providers import registration
from lcc_scrapy.providers.registration import want_full_set
from lcc_scrapy.uns.spool import SMALLEST
from tests.little_uns import little_uns

ACCEPTED = '<set_accepted received="1"/>'
IMAGE = {"c": "a", "mimetype": "image/png"}
SPENT = '<set_rejected code="202">No full sets left</set_rejected>'


@pytest.fixture
def uns(lcc, tmp_path, monkeypatch):
    """A UNS whose provider has one document and may send three full sets."""
    lcc.store_pages("a")
    lcc.change(fullsetsallowed=3)
    lcc.connseq = 0
    with lcc.store.begin() as tx:
        tx.forget_psets(lcc.now + 1, lcc.now + 1)
    with little_uns(lcc, tmp_path / "spool", monkeypatch) as made:
        yield made


def full(uns, **attributes):
    return uns.push("a", full=True, **attributes)


def allowed(uns):
    told = uns.log_in()
    told.hang_up()
    return told.told("allowed")


# --- types ------------------------------------------------------------------------------------------


def test_a_provider_with_types_of_its_own_is_told_them_and_what_others_send_is_counted(uns, lcc):
    assert uns.push(IMAGE) == '<set_accepted received="0"/>'
    with lcc.store.read() as tx:
        assert tx.tallies()[REFUSED_TYPES] == 1
    lcc.change(mimetypes="image/* application/postscript")
    told = uns.log_in()
    told.hang_up()
    assert "<mime>image/*</mime>" in told.said
    assert uns.push(IMAGE) == ACCEPTED
    with lcc.store.read() as tx:
        assert tx.tallies()[REFUSED_TYPES] == 1


# --- locked rows ------------------------------------------------------------------------------------


@pytest.fixture
def holder(store):
    """What keeps the rows of some providers, as a machine does that is lost in the middle of a commit."""
    if getattr(store, "engine", None) is None or store.engine.dialect.name == "sqlite":
        pytest.skip("no rows are locked by themselves")
    other = SqlStore(store.url)
    yield other
    other.close()


def test_a_locked_provider_waits_alone_and_is_let_in_when_its_row_is_free(uns, lcc, holder):
    lcc.add(8)
    with holder.begin() as tx:
        tx.lock_providers([7])
        locked, other = uns.log_in(7), uns.log_in(8)
        assert "init_accepted" in other.said
        assert locked.said == ""
    uns.clock.advance(login_service.LOOK_AGAIN)
    assert "init_accepted" in locked.said


def test_a_provider_that_stays_locked_is_told_to_try_again_later(uns, holder):
    with holder.begin() as tx:
        tx.lock_providers([7])
        locked = uns.log_in(7)
        uns.clock.pump(
            [login_service.LOOK_AGAIN] * round(login_service.PATIENCE / login_service.LOOK_AGAIN + 1)
        )
        assert '<reason code="103"' in locked.said


# --- full sets -------------------------------------------------------------------------------------


def test_full_sets_that_wait_in_the_spool_count(uns, lcc):
    assert [full(uns) for _ in range(4)] == [ACCEPTED, ACCEPTED, ACCEPTED, SPENT]
    assert (allowed(uns), lcc.provider().fullsetsused) == ("0", 0)
    uns.absorb()
    assert (allowed(uns), lcc.provider().fullsetsused) == ("0", 3)
    lcc.now += int(lcc.policy.fullset_period)
    assert (allowed(uns), full(uns)) == ("3", ACCEPTED)


def test_a_restart_still_counts_what_waits(uns):
    full(uns)
    full(uns)
    uns.restart()
    assert allowed(uns) == "1"
    assert [full(uns), full(uns)] == [ACCEPTED, SPENT]


def test_a_set_that_is_being_absorbed_counts_once(uns, lcc):
    full(uns)
    (waiting,) = uns.spool.ready()
    intake = Intake(lcc.store, SpooledFile(waiting.path), lcc.policy)
    intake.step(lcc.now)
    assert (allowed(uns), lcc.provider().fullsetsused) == ("2", 1)
    intake.close()


@pytest.mark.parametrize("absorbing", [False, True])
def test_conversations_that_go_on_together_do_not_get_more(uns, lcc, absorbing):
    answers = []
    for one in [uns.log_in() for _ in range(5)]:
        answers.append(one.send("a", full=True))
        if absorbing:
            uns.absorb()
    assert [SPENT in answer for answer in answers] == [False] * 3 + [True] * 2
    uns.absorb()
    assert (lcc.provider().fullsetsused, uns.spool.ready()) == (3, [])


def test_a_set_that_could_not_be_kept_does_not_count(uns):
    uns.spool.max_bytes = uns.spool.used + 2 * SMALLEST + 300
    names = [f"{number:0100}" for number in range(30)]
    assert re.search('code="20[34]"', uns.push(*names, full=True, id="x" * 120))
    uns.spool.max_bytes = 0
    assert allowed(uns) == "3"


def test_a_set_that_fails_at_its_end_takes_nothing_from_a_conversation_that_is_open(uns, monkeypatch):
    waiting = uns.log_in()
    for _ in range(2):
        full(uns)
    with monkeypatch.context() as broken:
        broken.setattr("os.fsync", lambda _descriptor: (_ for _ in ()).throw(OSError("no space")))
        assert "203" in full(uns)
    assert ACCEPTED in waiting.send("a", full=True)


def test_the_same_set_again_counts_once_before_and_after_it_is_absorbed(uns, lcc):
    assert [full(uns, id="s"), full(uns, id="s")] == [ACCEPTED, ACCEPTED]
    assert allowed(uns) == "2"
    uns.absorb()
    assert (allowed(uns), lcc.provider().fullsetsused) == ("2", 1)
    full(uns)
    full(uns)
    assert [full(uns, id="s"), full(uns, id="t"), full(uns)] == [ACCEPTED, SPENT, SPENT]
    uns.absorb()
    assert lcc.provider().fullsetsused == 3


def test_without_an_id_the_same_set_counts_again(uns, lcc):
    full(uns)
    full(uns)
    uns.absorb()
    assert lcc.provider().fullsetsused == 2


def test_partial_sets_and_dry_runs_never_count(uns, lcc):
    assert [uns.push("a") for _ in range(5)] == [ACCEPTED] * 5
    assert [full(uns, dryrun="yes") for _ in range(5)] == [
        '<set_accepted received="1" would_remove="0"/>'
    ] * 5
    uns.absorb()
    assert (allowed(uns), lcc.provider().fullsetsused) == ("3", 0)


def test_a_wanted_full_set_is_free_and_the_next_one_is_not(uns, lcc):
    lcc.change(fullsetsallowed=0)
    want_full_set(lcc.store, PID, "old files")
    assert [full(uns), full(uns)] == [ACCEPTED, SPENT]
    uns.absorb()
    assert (lcc.provider().fullsetwanted, lcc.provider().fullsetsused) == ("", 0)


def test_what_was_free_when_it_was_accepted_stays_so(uns, lcc):
    want_full_set(lcc.store, PID, "old files")
    full(uns)
    want_full_set(lcc.store, PID, "")
    uns.absorb()
    assert lcc.provider().fullsetsused == 0


def test_the_first_full_set_of_an_empty_provider_is_free(uns, lcc):
    lcc.add(8, fullsetsallowed=1)
    assert [uns.push("a", full=True, pid=8) for _ in range(3)] == [ACCEPTED, ACCEPTED, SPENT]
    uns.absorb()
    assert lcc.provider(8).fullsetsused == 1
    lcc.change(8, fullsetsused=0)
    assert [uns.push("b", full=True, pid=8) for _ in range(2)] == [ACCEPTED, SPENT]


def test_unlimited_full_sets_are_never_spent(uns, lcc):
    lcc.change(fullsetsallowed=None)
    assert [full(uns) for _ in range(20)] == [ACCEPTED] * 20
    assert allowed(uns) == "9223372036854775807"


# --- full-set requests ------------------------------------------------------------------------------


def test_a_wish_is_told_until_a_full_set_that_was_sent_after_it_waits(uns, lcc):
    full(uns)
    want_full_set(lcc.store, PID, "cache crash")
    told = uns.log_in()
    assert (told.told("wanted"), told.told("reason")) == ("yes", "cache crash")
    told.send("a", full=True)
    assert uns.log_in().told("wanted") == "no"
    assert lcc.provider().fullsetwanted == "cache crash"
    uns.absorb()
    assert lcc.provider().fullsetwanted == ""


def test_a_wish_is_not_told_again_while_its_answer_is_being_absorbed(uns, lcc):
    want_full_set(lcc.store, PID, "old files")
    full(uns)
    (waiting,) = uns.spool.ready()
    intake = Intake(lcc.store, SpooledFile(waiting.path), lcc.policy)
    intake.step(lcc.now)
    assert uns.log_in().told("wanted") == "no"
    intake.close()
    uns.absorb()
    assert lcc.provider().fullsetwanted == ""


def test_a_wish_that_comes_while_the_answer_to_another_waits_is_told(uns, lcc):
    want_full_set(lcc.store, PID, "old files")
    full(uns)
    want_full_set(lcc.store, PID, "cache crash")
    assert uns.log_in().told("reason") == "cache crash"
    uns.absorb()
    assert uns.log_in().told("reason") == "cache crash"


# --- guessing --------------------------------------------------------------------------------------


def test_whoever_guesses_is_told_to_come_later_the_provider_at_home_is_not(uns):
    uns.log_in()
    uns.restart()
    assert [uns.guess(7, f"198.51.100.{number}") for number in range(12)] == ["101"] * 10 + ["103"] * 2
    stranger = uns.log_in(peer="203.0.113.9").hang_up()
    assert '<reason code="103" retry-after="6">Temporarily off-line, try again later</reason>' in stranger
    assert "init_accepted" in uns.log_in().said
    uns.clock.advance(6)
    assert "init_accepted" in uns.log_in(peer="203.0.113.9").said
    assert "init_accepted" in uns.log_in(peer="203.0.113.9").said


def test_an_id_that_nobody_has_is_guessed_at_like_any_other(uns):
    def answers(pid):
        return [uns.guess(pid, f"198.51.100.{number}") for number in range(12)]

    assert answers(99) == answers("no number") == answers(7)


def test_another_spelling_of_an_id_is_no_other_id(uns):
    for number in range(10):
        uns.guess("0" * number + "7", f"198.51.100.{number}")
    assert uns.guess("00000000007", "198.51.100.99") == "103"


def test_one_address_may_try_so_many_ids(uns):
    assert [uns.guess(pid, "198.51.100.1") for pid in range(100, 132)] == ["101"] * 30 + ["103"] * 2
    assert uns.guess(133, "198.51.100.2") == "101"


def test_right_passwords_are_never_throttled(uns):
    assert all("init_accepted" in uns.log_in(peer="198.51.100.1").hang_up() for _ in range(50))


def test_a_changed_password_is_noticed_at_once(uns, lcc):
    assert "init_accepted" in uns.log_in().said
    lcc.change(password="another hash")
    assert 'code="101"' in uns.log_in().hang_up()
    assert "init_accepted" in uns.log_in(password="another hash").said


# --- push tokens -----------------------------------------------------------------------------------


def token(lcc, scopes="push", providers="7", **values):
    secret = new_secret()
    with lcc.store.begin() as tx:
        tx.insert_token(Token(digest_of(secret), "site", scopes, providers, "", lcc.now, **values))
    return secret


@pytest.mark.parametrize("pid", ["7", ""])
def test_a_push_token_is_as_good_as_the_password(uns, lcc, pid):
    assert "init_accepted" in uns.log_in(pid, password=token(lcc)).said
    assert "init_accepted" in uns.log_in().said


def test_a_token_that_is_not_for_this_gets_101(uns, lcc):
    for secret in (
        token(lcc, "read"),
        token(lcc, providers="8"),
        token(lcc, expires=int(lcc.now)),
        new_secret(),
    ):
        assert 'code="101"' in uns.log_in(password=secret).hang_up()


def test_a_token_of_a_suspended_provider_gets_102(uns, lcc):
    secret = token(lcc)
    lcc.change(state=State.DISABLED)
    assert 'code="102"' in uns.log_in("", password=secret).hang_up()


def test_who_guesses_tokens_is_told_to_come_later(uns):
    said = [uns.log_in("", password=new_secret()).hang_up() for _ in range(12)]
    assert ["103" in one for one in said] == [False] * 10 + [True] * 2


# --- confirmation and quota ------------------------------------------------------------------------


def test_a_login_confirms_all_documents_unless_a_full_set_is_wanted(uns, lcc):
    lcc.now += 1000
    uns.log_in()
    assert lcc.provider().confirmed == START + 1000
    want_full_set(lcc.store, PID, "old files")
    lcc.now += 1000
    uns.log_in()
    assert lcc.provider().confirmed == START + 1000
    full(uns)
    uns.absorb()
    lcc.now += 1000
    uns.log_in()
    assert lcc.provider().confirmed == lcc.now


def test_a_refused_login_confirms_nothing(uns, lcc):
    lcc.change(password="another")
    assert 'code="101"' in uns.log_in().said
    lcc.change(password="a hash", state="disabled")
    assert 'code="102"' in uns.log_in().said
    assert lcc.provider().confirmed == 0


def test_the_quota_is_told_before_anything_is_sent(uns, lcc):
    lcc.change(filesmax=3, spacemax=100)
    space = lcc.provider().spaceused
    told = uns.log_in().said
    assert '<files used="1" free="2"/>' in told
    assert f'<space used="{space}" free="{100 - space}"/>' in told
    lcc.change(filesmax=1, spacemax=1)
    told = uns.log_in().said
    assert '<files used="1" free="0"/>' in told
    assert f'<space used="{space}" free="0"/>' in told


def test_a_dry_run_tells_what_would_go_and_what_would_be_held(uns, lcc):
    lcc.store_pages(*[f"p{number}" for number in range(30)])
    assert uns.push("a", full=True, dryrun="yes") == (
        '<set_accepted received="1" would_remove="0" would_hold="30"/>'
    )
    gone = [{"c": f"p{number}", "mimetype": "text/html", "op": "remove"} for number in range(3)]
    assert uns.push(*gone, {"c": "x", "mimetype": "text/html", "f": ""}, dryrun="yes") == (
        '<set_accepted received="4" would_remove="3"/>'
    )
    assert len(lcc.documents()) == 31
    assert uns.spool.ready() == []
    lcc.push(*[removal(f"p{number}") for number in range(3)], update("y"))
    assert len(lcc.documents()) == 28


def test_the_revision_changes_with_roots_quota_and_types_and_with_nothing_else(uns, lcc):
    def revision():
        told = uns.log_in()
        told.hang_up()
        return told.told("revision")

    seen = [revision()]
    uns.push("b")
    uns.absorb()
    lcc.fetch_all()
    want_full_set(lcc.store, PID, "old files")
    assert revision() == seen[0]
    for values, roots in [
        ({"filesmax": 9}, None),
        ({}, lambda _: ["http://x.org/"]),
        ({}, lambda _: ["http://y.org/"]),
    ]:
        registration.change(lcc.store, PID, values, roots)
        seen.append(revision())
    uns.login_service.apply(LoginRules("lcc", ("*/*",), 168, lcc.policy))
    seen.append(revision())
    assert len(set(seen)) == len(seen)
