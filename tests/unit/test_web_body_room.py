"""Memory for bodies: one client never takes the room of all, and what is not sent takes none."""

import pytest

from lcc_scrapy.web.body_room import SMALL, BodyRoom, NoRoom

LARGE = 10 * SMALL


@pytest.fixture
def room():
    return BodyRoom(4 * LARGE, LARGE)


def refused(place, size):
    with pytest.raises(NoRoom) as told:
        place.add(size)
    return told.value.mine


def test_one_client_leaves_room_for_the_others(room):
    with room.place("a") as first, room.place("a") as second, room.place("b") as other:
        first.add(LARGE - SMALL)
        second.add(SMALL)
        assert refused(second, 1)
        other.add(LARGE)
        assert refused(other, 1)
    assert room.taken == 0


def test_all_clients_together_are_bounded(room):
    with room.place(None) as local, room.place("a") as other:
        local.add(4 * LARGE - SMALL - 1)
        other.add(SMALL + 1)
        assert not refused(other, 1)
        assert not refused(local, 1)
    assert room.taken == 0


def test_small_bodies_have_room_always(room):
    with room.place("a") as large, room.place("a") as small:
        large.add(LARGE)
        small.add(SMALL - 1)
        small.add(1)
        assert room.taken == LARGE
        assert refused(small, 1)


def test_a_body_that_outgrows_what_is_small_counts_from_its_first_byte(room):
    with room.place("a") as place:
        for _ in range(SMALL + 1):
            place.add(1)
        assert room.taken == SMALL + 1
        place.add(LARGE - SMALL - 1)
        assert room.taken == LARGE


def test_what_is_refused_is_not_counted(room):
    with room.place("a") as place:
        place.add(LARGE)
        assert refused(place, 1)
    with room.place("a") as again:
        again.add(LARGE)
