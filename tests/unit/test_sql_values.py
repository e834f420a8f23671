"""Values that are made of rows are those that their own class would make."""

from dataclasses import FrozenInstanceError, dataclass, fields, replace

import pytest

from lcc_scrapy.db.sql.values import maker
from lcc_scrapy.domain.cache import CachedUrl, Tombstone
from lcc_scrapy.domain.queue import QueuedUrl


@pytest.mark.parametrize("value", [CachedUrl, QueuedUrl, Tombstone])
def test_a_made_value_is_one_of_its_class_and_frozen(value):
    row = [f"value {number}" for number, _ in enumerate(fields(value))]
    made = maker(value)(*row)
    assert type(made) is value
    assert made == value(*row)
    assert hash(made) == hash(value(*row))
    assert replace(made, pid=7).pid == 7
    with pytest.raises(FrozenInstanceError):
        made.pid = 7


def test_a_class_that_looks_at_its_values_does_so():
    @dataclass(frozen=True, slots=True)
    class Even:
        number: int

        def __post_init__(self):
            if self.number % 2:
                raise ValueError("odd")

    with pytest.raises(ValueError, match="odd"):
        maker(Even)(1)
    assert maker(Even)(2) == Even(2)
