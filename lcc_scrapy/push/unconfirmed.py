"""Unconfirmed sets: the LCC may have accepted them although the answer was lost.

A set may have been accepted although its reply was lost or its sender was killed. Its pending state is
about to be overwritten. So the state must first drop every URL in which the two differ. Such a URL counts
as changed until a set with it is accepted, and as removed when it is gone. Any number of lost sets in a row
leaves one line a URL.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import closing

from lcc_scrapy.push import pipe, refusals
from lcc_scrapy.push.changes import DECLARED, Known, same_content
from lcc_scrapy.push.state import Header, Reader, StateFile, attributes_in, key_of
from lcc_scrapy.wire.messages import Url

_VOUCHED = DECLARED | {pipe.REFUSED, pipe.FAILED}


def record(file: StateFile) -> None:
    """Put in doubt, in the state, what differs in a pending state that follows it and was not committed.

    Doing it again changes nothing. Raises `Damaged`.
    """
    with closing(Known.load(file, pending=True)) as pending, file.opened() as state:
        header = state.header if state else Header()
        if pending.header.id and pending.header.base == header.id:
            file.write(header, _weighed(state, pending))


def _weighed(state: Reader | None, pending: Known) -> Iterator[bytes]:
    for _, line in state.lines() if state else ():
        attributes = attributes_in(line)
        other = pending.see(key_of(attributes))
        if other and (other == line or same_content(attributes, attributes_in(other))):
            # what a login reported is true, whatever became of the set
            yield refusals.with_failure_of(attributes_in(other), line)
        else:
            yield _doubtful(attributes)
    for line in pending.unseen():
        yield _doubtful({**attributes_in(line), pipe.NEW: "yes"})


def _doubtful(attributes: Mapping[str, str]) -> bytes:
    return pipe.write(Url({name: value for name, value in attributes.items() if name not in _VOUCHED}))
