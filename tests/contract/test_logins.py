"""Logins whose sets may still come, the same on every store."""

from little_lcc import PID, update

from lcc_scrapy.storage.records import OpenLogin, Uns


def note(lcc, *logins):
    with lcc.store.begin() as tx:
        for pid, connseq, uns in logins:
            tx.insert_login(OpenLogin(pid, connseq, uns, 100 + connseq))


def earlier(lcc, logins):
    with lcc.store.read() as tx:
        return {pid: (login.connseq, login.uns) for pid, login in tx.earlier_logins(logins).items()}


def of(lcc, uns):
    with lcc.store.read() as tx:
        return [(login.pid, login.connseq) for login in tx.logins_of(uns, (0, 0), 100)]


def test_a_login_comes_back_as_it_was_noted_until_it_is_dropped(lcc):
    note(lcc, (PID, 2**40, "a"))
    with lcc.store.begin() as tx:
        assert tx.login(PID, 2**40) == OpenLogin(PID, 2**40, "a", 100 + 2**40, passed=False)
        assert tx.login(PID, 1) is None
        tx.drop_login(PID, 2**40)
        tx.drop_login(PID, 1)
        assert tx.login(PID, 2**40) is None


def test_the_earliest_login_of_each_provider_is_the_one_to_wait_for(lcc):
    note(lcc, (PID, 12, "a"), (PID, 9, "b"), (PID, 10, "a"), (8, 3, "a"), (9, 1, "a"))
    assert earlier(lcc, {PID: 12, 8: 4, 99: 5}) == {PID: (9, "b"), 8: (3, "a")}
    assert earlier(lcc, {PID: 9, 8: 3, 9: 2}) == {9: (1, "a")}
    assert earlier(lcc, {}) == {}
    assert earlier(lcc, dict.fromkeys(range(8, 400), 5)) == {8: (3, "a"), 9: (1, "a")}


def test_a_login_that_was_passed_over_is_not_waited_for_any_more(lcc):
    note(lcc, (PID, 9, "b"), (PID, 10, "a"), (PID, 11, "b"), (PID, 12, "b"), (8, 3, "b"))
    with lcc.store.begin() as tx:
        assert tx.pass_over(PID, 12, "b") == 2
        assert tx.pass_over(PID, 12, "b") == 0
        assert [tx.login(PID, seq).passed for seq in (9, 10, 11, 12)] == [True, False, True, False]
    assert earlier(lcc, {PID: 13, 8: 4}) == {PID: (10, "a"), 8: (3, "b")}
    assert earlier(lcc, {PID: 10}) == {}
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
