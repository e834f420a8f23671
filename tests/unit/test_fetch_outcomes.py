"""What an answer means: confirmations, and what is kept of validators."""

import pytest

from lcc_scrapy.domain.cache import fitting
from lcc_scrapy.domain.queue import Failed, NotModified, QueuedUrl, Ticket
from lcc_scrapy.fetch.outcomes import answer_of, not_served

ROW = QueuedUrl(b"k" * 16, 7, "u", "text/html", "", None, "u", None, None, None, "", 1, 1, "fetch", 1, 0, 0)
TICKET = Ticket(ROW, "7", 1, '"1"', "yesterday")


def test_a_304_confirms_only_where_its_request_was_conditional():
    assert isinstance(not_served(TICKET, 304, conditional=True), NotModified)
    refused = not_served(TICKET, 304, conditional=False)
    assert isinstance(refused, Failed)
    assert refused.code == 613


@pytest.mark.parametrize("conditional", [True, False])
def test_a_document_is_none_of_these(conditional):
    assert not_served(TICKET, 200, conditional=conditional) is None


def kept(**headers):
    fields = [(name.replace("_", "-").encode(), value.encode("latin-1")) for name, value in headers.items()]
    answer = fitting(answer_of(200, "http://h/", fields, "HTTP/1.1 200 OK", "192.0.2.1"))
    return answer.etag, answer.last_modified


@pytest.mark.parametrize("quote", ['"', 'W/"'])
@pytest.mark.parametrize("character", ["x", "\u00e9"])
def test_a_validator_is_kept_whole_or_not_at_all(quote, character):
    room = 255 - len(quote) - 1
    longest = f'{quote}{character * room}"'
    assert kept(etag=longest, last_modified="d" * 64) == (longest, "d" * 64)
    assert kept(etag=f'{quote}{character * (room + 1)}"', last_modified="d" * 65) == ("", "")
    assert kept(etag=f'{quote}{character * 60_000}"') == ("", "")
