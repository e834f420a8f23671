"""What comes in runs, one by one: the same as if there were no runs."""

from collections.abc import Iterable

from lcc_scrapy.uns import effects
from lcc_scrapy.uns.spool_file import record_line, record_lines
from lcc_scrapy.wire.messages import UrlRun


def one_by_one(messages: Iterable) -> list:
    """Take the runs among messages apart."""
    return [
        single for message in messages for single in (message if isinstance(message, UrlRun) else [message])
    ]


def plainly(done: Iterable[effects.Effect]) -> list:
    """Return effects with each record as the line that is spooled; runs that are taken apart are none."""
    told: list = []
    for effect in done:
        match effect:
            case effects.Record(entry):
                told.append(record_line(entry))
            case effects.RecordRun(run):
                told += record_lines(run).splitlines(keepends=True)
            case effects.TakeOneByOne():
                pass
            case _:
                told.append(effect)
    return told
