"""Answers ht://Dig (``handler PROTOCOL URL CONFIGURATION``) with the file that the URL names, or with 404."""

import re
import shutil
import sys
from pathlib import Path
from typing import IO
from urllib.parse import unquote

_PAGE = re.compile(r"http://lcc/([0-9a-f]{2})([0-9a-f]{30}-[0-9a-f]{8})(?:/.*)?", re.DOTALL)


def _is_of(answer: IO[bytes], url: str) -> bool:
    """Tell whether an answer is that of a URL, however ht://Dig escaped it."""
    said = next((line[3:] for line in answer if line.startswith(b"u:\t")), b"")
    answer.seek(0)
    return unquote(said.decode().rstrip("\n")) == unquote(url)


def main() -> None:
    """Write the answer to stdout."""
    url = sys.argv[2]
    page = _PAGE.fullmatch(url)
    path = Path(__file__).parent / "pages" / (f"{page[1]}/{page[1]}{page[2]}" if page else "none")
    try:
        with path.open("rb") as answer:
            if not _is_of(answer, url):  # what a page embeds, taken as relative to it
                raise FileNotFoundError  # noqa: TRY301 - one way to say no
            shutil.copyfileobj(answer, sys.stdout.buffer)
    except FileNotFoundError:
        print(f"s:\t404\nr:\tNot Found\nu:\t{url}\n")  # noqa: T201 - that is what it is for


if __name__ == "__main__":
    main()
