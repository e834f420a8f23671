"""A processor: compares pages with profiles, in a process of its own, as pages are hostile and it is bounded.

Run as a program, with the process id of its parent, bytes of address space, and whether link texts count (1,
0), it reads requests on stdin and answers on stdout (``annotation.messages``). It has no database and no
network. Whoever started it ends it when a page takes too long.
"""

import os
import resource
import signal
import sys
import time
from io import FileIO
from threading import Event, Thread
from typing import Any

from lcc_scrapy.annotation import messages
from lcc_scrapy.annotation.annotating import Page, Profiles
from lcc_scrapy.domain.urds import Urd
from lcc_scrapy.feed.text_worker import refuse_network
from lcc_scrapy.machine.framed_pipes import Closed, buffered, read, write, written
from lcc_scrapy.machine.garbage_collection import collect_seldom
from lcc_scrapy.queue.settling_process.child import end_with

SMALL = 1000
"""URDs that are taken at once; more are indexed in a thread, while pages are compared with those before."""

WHY_MAX = 500

_FOR_THE_PARENT = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


def main() -> None:
    """Answer requests until stdin ends."""
    for number in _FOR_THE_PARENT:
        signal.signal(number, signal.SIG_IGN)
    parent, memory, link_texts = map(int, sys.argv[1:4])
    end_with(parent)
    resource.setrlimit(resource.RLIMIT_AS, (memory, memory))
    answers = os.dup(1)
    os.dup2(2, 1)  # what anybody prints is no answer
    sys.addaudithook(refuse_network)
    serve(0, answers, Processing(link_texts=bool(link_texts)))


def serve(requests: int, answers: int, processing: "Processing") -> None:
    """Answer requests until their pipe ends."""
    collect_seldom()
    file = buffered(FileIO(requests))
    try:
        while True:
            answer = processing.answer(*read(file))
            if answer is not None:
                write(answers, written(answer))
    except (Closed, BrokenPipeError):
        return


class Processing:
    """What a processor does, one request after the other."""

    def __init__(self, *, link_texts: bool) -> None:
        self._profiles = Profiles(link_texts=link_texts)
        self._link_texts = link_texts
        self._urds: dict[int, Urd] = {}
        self._removed: set[int] = set()
        self._indexed = Event()
        self._indexed.set()

    def answer(self, said: list[Any], parts: list[bytes]) -> list[Any] | None:
        """Do what a message wants; returns the answer, if there is one."""
        if said[0] == messages.URDS:
            self._collect(messages.urds_of(said[1]), said[2])
            return None
        if said[0] == messages.RENEW:
            return [messages.READY, self._renew(afresh=said[1])]
        try:
            return self._page(said[1:], parts)
        except MemoryError:
            os._exit(1)  # what is left of it may be broken: another process goes on
        except Exception as error:  # noqa: BLE001 - whatever a broken page brings the libraries to
            return [messages.FAILED, f"{type(error).__name__}: {error}"[:WHY_MAX]]

    def _collect(self, urds: list[Urd], removed: list[int]) -> None:
        for urdid in removed:
            self._urds.pop(urdid, None)
        self._removed = (self._removed | set(removed)) - {one.urdid for one in urds}
        self._urds.update({one.urdid: one for one in urds})

    def _renew(self, *, afresh: bool) -> int:
        """Take the URDs that were collected; many of them while pages are answered."""
        self._indexed.wait()
        urds, removed = list(self._urds.values()), frozenset(self._removed)
        self._urds, self._removed = {}, set()
        if afresh:
            self._profiles = Profiles(urds, link_texts=self._link_texts)
        elif len(urds) + len(removed) > SMALL:
            self._indexed.clear()
            Thread(target=self._change, args=(urds, removed), daemon=True).start()
        else:
            self._profiles.change(urds, removed)
            if self._profiles.wants_merging:
                Thread(target=self._profiles.merge, daemon=True).start()
        return len(self._profiles)

    def _change(self, urds: list[Urd], removed: frozenset[int]) -> None:
        try:
            self._profiles.change(urds, removed)
        except BaseException:  # noqa: BLE001 - without them it is of no use; another process may have the memory
            os._exit(1)
        self._indexed.set()
        self._profiles.merge()

    def _page(self, said: list[Any], parts: list[bytes]) -> list[Any]:
        url, mimetype, charset, owners, now, only, exactly = said
        if exactly:
            self._indexed.wait()
        before = time.process_time()
        page = Page(url, parts[0], mimetype, charset, parts[1] if len(parts) > 1 else None)
        findings = self._profiles.findings(page, frozenset(owners), now, frozenset(only))
        return [messages.FOUND, messages.said_findings(findings), time.process_time() - before]


if __name__ == "__main__":
    main()
