"""What the settling process does: one commit after the other, until nobody asks for another one."""

import json
import logging
import traceback
from collections.abc import Mapping
from io import FileIO
from pathlib import Path
from typing import Any, BinaryIO

from lcc_scrapy.cache.file_ids import BlocksLost
from lcc_scrapy.content.store import content_store
from lcc_scrapy.db.sql.store import SqlStore
from lcc_scrapy.domain.errors import LccError
from lcc_scrapy.domain.policy import QueuePolicy
from lcc_scrapy.machine.framed_pipes import Closed, buffered, read, write, written
from lcc_scrapy.machine.garbage_collection import collect_seldom
from lcc_scrapy.queue.committing import Commits
from lcc_scrapy.queue.settling_process import messages


def serve(requests: int, answers: int) -> None:
    """Answer requests until their pipe ends."""
    logs = Logs()
    logging.basicConfig(level=logging.INFO, handlers=[logs])
    with buffered(FileIO(requests)) as file:
        try:
            _serve(file, answers, logs)
        except (Closed, BrokenPipeError):
            return


def _serve(file: BinaryIO, answers: int, logs: "Logs") -> None:
    said, _ = read(file)
    service = Service(messages.beginning_of(said), logs)
    collect_seldom()
    write(answers, written([messages.READY]))
    try:
        while True:
            write(answers, service.commit(*read(file)))
    finally:
        service.close()


class Service:
    """Commits what a crawl hands over, with a store of its own."""

    def __init__(self, begun: messages.Beginning, logs: "Logs") -> None:
        self._store = SqlStore(begun.url, pause=begun.pause)
        folder, machineid = Path(begun.folder), begun.holder.machineid
        content = content_store(begun.content_url, folder, machineid, begun.content_factory)
        self._commits = Commits(self._store, content, begun.holder)
        self._policy = QueuePolicy()
        self._logs = logs

    def commit(self, said: list[Any], bodies: list[bytes]) -> list[bytes]:
        """Do one commit; returns the answer."""
        _, now, policy, outcomes = said
        try:
            if policy is not None:
                self._policy = messages.policy_of(policy)
            settled = self._commits.commit(messages.outcomes_of(outcomes, bodies), now, self._policy)
        except Exception as error:  # noqa: BLE001 - the crawl says what is to come of it
            return written(_failed(error, self._logs.taken()))
        return messages.settled(settled, self._logs.taken())

    def close(self) -> None:
        """Close the store."""
        self._store.close()


def _failed(error: Exception, logs: list[Any]) -> list[Any]:
    kind = type(error).__name__ if isinstance(error, LccError) else ""
    text = str(error) if kind else f"{type(error).__name__}: {error}"
    blocks = error.blocks if isinstance(error, BlocksLost) else ()
    trouble = "" if kind else "".join(traceback.format_exception(error))
    return [messages.FAILED, kind, text, blocks, trouble, logs]


class Logs(logging.Handler):
    """Keeps log records for the crawl, which logs them as its own."""

    def __init__(self) -> None:
        super().__init__()
        self._records: list[Any] = []

    def emit(self, record: logging.LogRecord) -> None:
        """Keep a record."""
        self._records.append([record.name, record.levelno, *_message(record), self._trouble(record)])

    @staticmethod
    def _trouble(record: logging.LogRecord) -> str | None:
        return "".join(traceback.format_exception(record.exc_info[1])) if record.exc_info else None

    def taken(self) -> list[Any]:
        """Return the records since the last time."""
        records, self._records = self._records, []
        return records


def _message(record: logging.LogRecord) -> tuple[str, Mapping[str, Any] | None]:
    """Return a message and what it names; one whose names cannot be told is told as text."""
    if isinstance(record.args, Mapping):
        try:
            json.dumps(record.args)
        except (TypeError, ValueError):
            pass
        else:
            return str(record.msg), record.args
    return record.getMessage(), None
