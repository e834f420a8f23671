"""Commits of small contents to this disk and to object storage, one after the other: contents a second.

    python bench/object_storage.py [s3://BUCKET/PREFIX?endpoint=…]

Without a URL it starts the server of the tests, which is slow: real ones are faster by far.
"""

import os
import statistics
import sys
import tempfile
import time
from contextlib import ExitStack
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent))

from lcc_scrapy.content.store import ContentStore, content_store
from lcc_scrapy.domain.cache import LazyBody
from tests.s3_server import CREDENTIALS, s3_server

COMMIT, ROUNDS, SIZE = 200, 7, 10_000


def rate(contents: ContentStore, first: int) -> float:
    """Return contents a second of one commit."""
    bodies = [(first + number, LazyBody(os.urandom(SIZE))) for number in range(COMMIT)]
    began = time.perf_counter()
    contents.keep(bodies)
    took = time.perf_counter() - began
    contents.remove(fileid for fileid, _ in bodies)
    return COMMIT / took


def main(url: str = "") -> None:
    """Measure both, interleaved."""
    with ExitStack() as running:
        if not url:
            os.environ.update(CREDENTIALS)
            url = running.enter_context(s3_server()).url
        folder = Path(running.enter_context(tempfile.TemporaryDirectory(dir=Path.cwd())))
        stores = {"disk": content_store("", folder, 1), "objects": content_store(url, folder, 1)}
        rates: dict[str, list[float]] = {name: [] for name in stores}
        for number in range(1, ROUNDS + 1):
            for name, contents in stores.items():
                rates[name].append(rate(contents, number * 1000))
    for name, found in rates.items():
        print(
            f"{name}: {statistics.median(found):.0f} a second"
            f" (median of {ROUNDS}, {min(found):.0f} to {max(found):.0f})"
        )


if __name__ == "__main__":
    main(*sys.argv[1:])
