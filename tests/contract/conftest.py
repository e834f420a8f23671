"""A little LCC on every store, whose books are checked at the end of every test."""

from collections.abc import Iterator

import pytest
from little_lcc import LittleLcc, assert_books_balance

from lcc_scrapy.intake import absorbing, open_sets


@pytest.fixture
def lcc(store, monkeypatch) -> Iterator[LittleLcc]:
    """Provider 7 on an empty store; sets are absorbed three entries at a time."""
    monkeypatch.setattr(absorbing, "CHUNK", 3)
    monkeypatch.setattr(absorbing, "NEW_CHUNK", 3)
    monkeypatch.setattr(open_sets, "STEP", 0)
    made = LittleLcc(store)
    made.add()
    yield made
    assert_books_balance(store, made.files)
