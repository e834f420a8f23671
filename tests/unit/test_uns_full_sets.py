"""Full sets between their acceptance and the database."""

from lcc_scrapy.uns.full_sets import Accepted, AcceptedFullSets, FullSet


def test_sets_wait_until_they_are_removed_and_stay_counted():
    book = AcceptedFullSets()
    first, second = FullSet(7, 1, "", charged=True), FullSet(7, 2, "s", charged=False)
    for one in (first, second, FullSet(8, 1, "", charged=True)):
        book.add(one)
    assert book.of(7) == Accepted((first, second), 1)
    book.remove(7, 1)
    book.remove(7, 99)
    assert book.of(7) == Accepted((second,), 1)
    assert book.of(9) == Accepted((), 0)


def test_a_set_that_could_not_be_kept_was_never_accepted():
    book = AcceptedFullSets()
    kept, lost = FullSet(7, 1, "", charged=True), FullSet(7, 2, "", charged=True)
    book.add(kept)
    book.add(lost)
    book.withdraw(lost)
    book.withdraw(lost)
    assert book.of(7) == Accepted((kept,), 1)


def test_each_id_is_counted_once_and_each_set_without_one():
    sets = [("", True), ("", True), ("", False), ("a", True), ("a", True), ("b", True), ("c", False)]
    brought = Accepted(tuple(FullSet(7, seq, name, charged) for seq, (name, charged) in enumerate(sets)), 9)
    assert brought.newly_charged([]) == 4
    assert brought.newly_charged(["a", "z"]) == 3
    assert brought.without([0, 3]).newly_charged([]) == 3
    assert brought.without(range(9)) == Accepted((), 9)
