"""Values that are made quickly are those that their own class would make."""

from dataclasses import FrozenInstanceError, asdict, dataclass, field, fields, make_dataclass, replace

import pytest

from lcc_scrapy.domain.cache import CachedUrl, Tombstone, UrlMeta
from lcc_scrapy.domain.queue import QueuedUrl, Ticket, Trip
from lcc_scrapy.domain.values import quickly_made


@pytest.mark.parametrize("value", [CachedUrl, QueuedUrl, Tombstone, UrlMeta])
def test_a_quickly_made_value_is_as_its_class_makes_it_and_frozen(value):
    names = [one.name for one in fields(value)]
    row = [f"value {number}" for number, _ in enumerate(names)]
    made = quickly_made(value)(*row)
    slow = make_dataclass(value.__name__, names, frozen=True, slots=True)(*row)
    assert (type(made), asdict(made), repr(made)) == (value, asdict(slow), repr(slow))
    assert (hash(made), hash(replace(made, urlkey=7))) == (hash(slow), hash(replace(slow, urlkey=7)))
    assert made == value(**dict(zip(names, row, strict=True))) != replace(made, urlkey=7)
    with pytest.raises(FrozenInstanceError):
        made.urlkey = 7
    with pytest.raises(TypeError, match="argument"):
        value(*row, 1)


def test_defaults_are_those_of_the_class():
    @quickly_made
    @dataclass(frozen=True, slots=True)
    class Kept:
        number: int
        text: str = "x"
        some: list[int] = field(default_factory=list)

    one, other = Kept(1), Kept(2, some=[5])
    assert (one.text, one.some, other.some) == ("x", [], [5])
    assert Kept(1).some is not one.some
    with pytest.raises(TypeError, match="number"):
        Kept()


def test_a_ticket_has_a_trip_of_its_own():
    one, other = Ticket(None, "7", 1), Ticket(None, "7", 1)
    one.trip.hops += 1
    assert (one.trip, other.trip) == (Trip(hops=1), Trip())
    assert one == other


def test_a_class_that_looks_at_its_values_does_so():
    @dataclass(frozen=True, slots=True)
    class Even:
        number: int

        def __post_init__(self):
            if self.number % 2:
                raise ValueError("odd")

    with pytest.raises(ValueError, match="odd"):
        quickly_made(Even)(1)
    assert quickly_made(Even)(2) == Even(2)
