"""Extracts title and main text of pages, in a process of its own: pages are hostile, and so it is bounded.

Run as a program, with the seconds for a page, it reads requests on stdin, each a line of JSON (``type``,
``charset``, ``size``) and ``size`` bytes of content, and answers each with a line of JSON (``title``,
``text``). The first line it writes says that it is ready. A page that takes more CPU time
ends it, and one that takes too much memory may; whoever started it starts another one.
"""

import json
import logging
import resource
import signal
import sys
import warnings
from typing import IO, NoReturn

from lcc_scrapy.content.charsets import decoded
from lcc_scrapy.content.declared_charset import encoding_of_text

MEMORY = 2 << 30
"""Bytes of address space; the libraries take a fifth of it."""

MARKUP = {"text/html", "application/xhtml+xml"}


def main() -> None:
    """Answer requests until stdin ends."""
    seconds = float(sys.argv[1])
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for whoever reads the answers
    logging.disable()
    warnings.simplefilter("ignore")
    import trafilatura  # noqa: F401, PLC0415 - what takes time is over when it says ready

    sys.addaudithook(refuse_network)
    requests, answers = sys.stdin.buffer, sys.stdout
    _say(answers, {})
    while line := requests.readline():
        request = json.loads(line)
        body = requests.read(request["size"])
        signal.setitimer(signal.ITIMER_PROF, seconds)  # at its end the process is killed
        title, text = extract(body, request["type"], request["charset"])
        signal.setitimer(signal.ITIMER_PROF, 0)
        _say(answers, {"title": title, "text": text})


def extract(body: bytes, mimetype: str, charset: str) -> tuple[str | None, str | None]:
    """Return title and main text of a page, or the whole of a text; None = there is none."""
    text = decoded(body, encoding_of_text(body, charset, mimetype))
    if mimetype not in MARKUP:
        return None, text or None
    try:
        return _of_page(text)
    except Exception:  # noqa: BLE001 - whatever a broken page brings the libraries to
        return None, None


def refuse_network(event: str, _: object) -> None:
    """Hold, as an audit hook, that nothing in a page leads anywhere."""
    if event.startswith(("socket.", "urllib.", "subprocess.", "os.exec", "os.system", "os.posix_spawn")):
        _refuse(event)


def _refuse(event: str) -> NoReturn:
    raise RuntimeError(f"the extraction of text wanted {event}")


def _of_page(text: str) -> tuple[str | None, str | None]:
    import trafilatura  # noqa: PLC0415 - an extra
    from trafilatura.metadata import extract_title  # noqa: PLC0415 - the rest of the metadata is slow

    tree = trafilatura.load_html(text) if text.strip() else None
    if tree is None:
        return None, None
    return extract_title(tree) or None, trafilatura.extract(tree, include_comments=False) or None


def _say(answers: IO[str], answer: dict[str, str | None]) -> None:
    answers.write(json.dumps(answer) + "\n")
    answers.flush()


if __name__ == "__main__":
    main()
