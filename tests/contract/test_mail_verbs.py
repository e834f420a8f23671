"""What is kept about mail to providers, on every store."""

from dataclasses import replace

import pytest

from lcc_scrapy.apps.mail.rules import MailState
from lcc_scrapy.apps.mail.store import REMOVAL, rows_in
from lcc_scrapy.db.records import OUTCOME_FAILED, OUTCOME_REFUSED, OUTCOME_RETRYING, LastOutcome
from lcc_scrapy.domain.entries import urlkey

pytestmark = pytest.mark.parametrize("store", ["sqlite", "mariadb", "postgresql"], indirect=True)

NOW = 1_800_000_000
TOLD = MailState(7, since=NOW, due=NOW + 100, wanted="", held=0)


def outcome(name, at, code=404, state=OUTCOME_FAILED, pid=7):
    url = f"http://www.example.org/{name}"
    return LastOutcome(urlkey(pid, url, "text/html"), pid, code, "x", at, state, url, "text/html", url)


def pids(store, now=NOW):
    with store.read() as tx:
        return rows_in(tx).due(now, -1, 100)


def test_a_state_is_kept_and_goes_with_its_provider(store, registered):
    registered(7)
    state = replace(
        TOLD, wanted="old files", wanted_at=1, held=2, held_at=3, refused="ä@x", off=True, tries=4
    )
    with store.begin() as tx:
        assert rows_in(tx).state(7) is None
        rows_in(tx).put([TOLD, MailState(8)])
        rows_in(tx).put([state])
    with store.begin() as tx:
        assert rows_in(tx).state(7) == state
        assert not REMOVAL.removed(tx, 7, 1)
    with store.read() as tx:
        assert (rows_in(tx).state(7), rows_in(tx).state(8)) == (None, MailState(8))


def test_providers_with_an_address_come_page_by_page(store, registered):
    for pid in (1, 2, 3, 5, 8):
        registered(pid, contact="" if pid == 2 else f"{pid}@example.org")
    with store.read() as tx:
        assert rows_in(tx).due(NOW, -1, 2) == [1, 3]
        assert rows_in(tx).due(NOW, 3, 2) == [5, 8]


@pytest.mark.parametrize(
    ("state", "found"),
    [
        (TOLD, False),
        (replace(TOLD, due=NOW), True),
        (replace(TOLD, wanted="cache crash"), True),
        (replace(TOLD, held=1), True),
        (replace(TOLD, due=0, off=True), False),
        (replace(TOLD, due=0, not_before=NOW + 1), False),
        (replace(TOLD, due=0, not_before=NOW), True),
        (replace(TOLD, due=0, refused="a@example.org"), False),
        (replace(TOLD, due=0, refused="b@example.org"), True),
    ],
)
def test_only_who_may_have_to_be_told_something_is_found(store, registered, state, found):
    registered(7, contact="a@example.org")
    with store.begin() as tx:
        rows_in(tx).put([state])
    assert pids(store) == ([7] if found else [])


def test_errors_are_counted_by_code_and_the_newest_come_first(store, registered):
    registered(7)
    rows = [
        outcome("old", 10),
        outcome("a", 11),
        outcome("b", 12, 602),
        outcome("c", 13, 704, OUTCOME_REFUSED),
        outcome("d", 14),
        outcome("again", 14, 603, OUTCOME_RETRYING),
        outcome("late", 15),
        outcome("other", 12, pid=8),
    ]
    with store.begin() as tx:
        tx.put_outcomes(rows)
    with store.read() as tx:
        assert rows_in(tx).count_url_errors(7, 10, 14) == {404: 2, 602: 1, 704: 1}
        newest = rows_in(tx).newest_url_errors(7, 10, 14, 3)
    assert [row.curl[-1] for row in newest] == ["d", "c", "b"]
