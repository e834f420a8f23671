"""Logins whose sets may still come, the same on every store."""

from little_lcc import PID, update

from lcc_scrapy.db.records import OpenLogin, Overtaking, Uns


def note(lcc, *logins):
    with lcc.store.begin() as tx:
        for pid, connseq, uns in logins:
            tx.insert_logins([OpenLogin(pid, connseq, uns, 100 + connseq)])


def earlier(lcc, logins):
    with lcc.store.read() as tx:
        found = tx.earlier_logins(logins)
    assert found == sorted(found, key=lambda login: (login.pid, login.connseq))
    return [(login.pid, login.connseq, login.uns) for login in found]


def of(lcc, uns):
    with lcc.store.read() as tx:
        return [(login.pid, login.connseq) for login in tx.logins_of(uns, (0, 0), 100)]


def test_a_login_comes_back_as_it_was_noted_until_it_is_dropped(lcc):
    note(lcc, (PID, 2**40, "a"))
    with lcc.store.begin() as tx:
        assert tx.logins([(PID, 2**40), (PID, 1)]) == {
            (PID, 2**40): OpenLogin(PID, 2**40, "a", 100 + 2**40, passed=False, stage="open")
        }
        tx.drop_logins([(PID, 2**40)])
        tx.drop_logins([(PID, 1)])
        assert tx.logins([(PID, 2**40)]) == {}


def test_the_earliest_logins_of_each_provider_are_those_to_wait_for(lcc):
    note(lcc, (PID, 12, "a"), (PID, 9, "b"), (PID, 10, "a"), (8, 3, "a"), (9, 1, "a"))
    assert earlier(lcc, {PID: 12, 8: 4, 99: 5}) == [(PID, 9, "b"), (PID, 10, "a"), (8, 3, "a")]
    assert earlier(lcc, {PID: 9, 8: 3, 9: 2}) == [(9, 1, "a")]
    assert earlier(lcc, {}) == []
    assert earlier(lcc, dict.fromkeys(range(8, 400), 5)) == [(8, 3, "a"), (9, 1, "a")]


def test_earlier_logins_are_told_apart_by_their_stage_and_whether_they_were_overtaken(lcc):
    note(lcc, *((PID, seq, "a") for seq in range(1, 9)), (8, 1, "a"))
    with lcc.store.begin() as tx:
        tx.overtake(PID, 4)
        tx.mark_logins({(PID, 3): "idle", (PID, 5): "complete", (PID, 7): "complete", (9, 9): "idle"})
        found = tx.earlier_logins({PID: 9, 8: 1})
    assert [(one.connseq, one.stage, one.overtaken) for one in found] == [
        (1, "open", True),
        (3, "idle", True),
        (4, "open", False),
        (5, "complete", False),
    ]


def test_what_overtaking_sets_named_is_kept_until_no_login_of_their_provider_is_overtaken(lcc):
    keys = [bytes([number]) * 16 for number in range(6)]
    note(lcc, (PID, 3, "a"), (8, 3, "a"))
    with lcc.store.begin() as tx:
        tx.overtake(PID, 9)
        tx.put_overtaking([Overtaking(key, PID, 9) for key in reversed(keys[:4])])
        tx.put_overtaking(
            [Overtaking(keys[1], PID, 10), Overtaking(keys[4], 8, 4), Overtaking(keys[5], 8, 4)]
        )
        assert tx.named_later(keys, 8) == set(keys[:4])
        assert tx.named_later(keys, 9) == {keys[1]}
        assert tx.named_later([keys[0]], 9) == set()
        assert tx.overtaking(PID, 8, b"", 3) == keys[:3]
        assert tx.overtaking(PID, 8, keys[2], 3) == [keys[3]]
        assert tx.overtaking(PID, 9, b"", 9) == [keys[1]]
        assert tx.forget_overtaking(1) == 1
        assert tx.forget_overtaking(5) == 1
        assert tx.overtaking(8, 0, b"", 9) == []
        tx.drop_logins([(PID, 3)])
        assert tx.forget_overtaking(9) == 4
        assert tx.forget_overtaking(9) == 0


def test_a_login_that_was_passed_over_is_not_waited_for_any_more(lcc):
    note(lcc, (PID, 9, "b"), (PID, 10, "a"), (PID, 11, "b"), (PID, 12, "b"), (8, 3, "b"))
    with lcc.store.begin() as tx:
        assert tx.pass_over(PID, 12, "b") == 2
        assert tx.pass_over(PID, 12, "b") == 0
        noted = tx.logins([(PID, seq) for seq in (9, 10, 11, 12)])
        assert [noted[PID, seq].passed for seq in (9, 10, 11, 12)] == [True, False, True, False]
    assert earlier(lcc, {PID: 13, 8: 4}) == [(PID, 10, "a"), (PID, 12, "b"), (8, 3, "b")]
    assert earlier(lcc, {PID: 10}) == []
    assert of(lcc, "b") == [(PID, 9), (PID, 11), (PID, 12), (8, 3)]


def test_the_logins_of_a_uns_are_paged(lcc):
    note(lcc, (8, 1, "a"), (PID, 3, "a"), (PID, 2, "b"), (PID, 1, "a"), (9, 2, "a"))
    with lcc.store.read() as tx:
        page = [(one.pid, one.connseq) for one in tx.logins_of("a", (0, 0), 2)]
        assert page == [(PID, 1), (PID, 3)]
        assert [(one.pid, one.connseq) for one in tx.logins_of("a", page[-1], 2)] == [(8, 1), (9, 2)]
        assert tx.logins_of("a", (9, 2), 2) == []


def test_a_provider_goes_with_its_logins(lcc):
    lcc.add(8)
    note(lcc, (PID, 1, "a"), (8, 1, "a"))
    with lcc.store.begin() as tx:
        tx.delete_provider(8)
    assert of(lcc, "a") == [(PID, 1)]


def test_a_uns_is_replaced_by_its_id(lcc):
    with lcc.store.begin() as tx:
        tx.put_uns(Uns("b", "host-b", 5))
        tx.put_uns(Uns("a", "höst", 2**40))
        tx.put_uns(Uns("b", "host-c", 6))
    with lcc.store.read() as tx:
        assert tx.unses() == [Uns("a", "höst", 2**40), Uns("b", "host-c", 6)]


def test_waiting_urls_are_counted_per_provider(lcc):
    lcc.add(8)
    lcc.push(*map(update, "abcd"))
    with lcc.store.read() as tx:
        assert tx.waiting_urls([PID, 8, 99]) == {PID: 4, 8: 0}
        assert tx.waiting_urls([]) == {}
