"""The settling process: commits what its crawl hands it, and ends when that has ended, however it did.

Run as a program, with the crawl's process id, it reads requests on stdin and answers on stdout. It begins
nothing of its own, so a signal that is meant for the crawl does not end it.
"""

import ctypes
import os
import signal
import sys

_PR_SET_PDEATHSIG = 1
_FOR_THE_CRAWL = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


def main() -> None:
    """Commit until stdin ends."""
    for number in _FOR_THE_CRAWL:
        signal.signal(number, signal.SIG_IGN)
    end_with(int(sys.argv[1]))
    answers = os.dup(1)
    os.dup2(2, 1)  # what anybody prints is no answer
    from lcc_scrapy.queue.settling_process.serving import serve  # noqa: PLC0415 - signals are ignored first

    serve(0, answers)


def end_with(parent: int) -> None:
    """Let the kernel end this process with its parent; elsewhere, and in between, stdin ends."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:
        os._exit(0)


if __name__ == "__main__":
    main()
