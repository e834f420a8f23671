"""A content user that follows the feed in a process of its own, and what it was told."""

import json
import signal
import subprocess
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from itertools import pairwise

from tests.harness import BIN, Lcc, wait_for


class Followed:
    """What ``lcc follow`` has written so far, beside an LCC."""

    def __init__(self, lcc: Lcc, name: str = "followed", settings: Mapping[str, str] | None = None) -> None:
        self._lcc = lcc
        self._out, self.log = lcc.folder / f"{name}.jsonl", lcc.folder / f"{name}.log"
        command = [BIN / "lcc", "follow", "--cursor-file", f"{name}.cursor"]
        with self._out.open("ab") as out, self.log.open("ab") as log:
            self.process = subprocess.Popen(
                command, env={**lcc.environment, **(settings or {})}, cwd=lcc.folder, stdout=out, stderr=log
            )

    def rows(self) -> list[dict[str, object]]:
        """Return all rows, oldest first; a line that is being written is none yet."""
        return [json.loads(line) for line in self._out.read_bytes().split(b"\n")[:-1]]

    def state(self) -> dict[str, int]:
        """Return the documents that there are by what was told, with the newest seq of each."""
        documents: dict[str, int] = {}
        for row in self.rows():
            if row["op"] == "upsert":
                documents[str(row["docid"])] = int(str(row["seq"]))
            else:
                documents.pop(str(row["docid"]), None)
        return documents

    def see_that_nothing_was_missed_or_told_twice(self) -> None:
        """Wait until all is told that there is; each change once, in the order of the feed."""
        there = {bytes(key).hex(): seq for key, seq in self._lcc.sql("select urlkey, seq from lccurl")}
        wait_for(lambda: self.state() == there, 60, "the follower to be told everything")
        seqs = [int(str(row["seq"])) for row in self.rows()]
        assert all(before < after for before, after in pairwise(seqs)), "told twice, or out of order"
        assert max(Counter(seqs).values(), default=1) == 1
        assert self.process.poll() is None, self.log.read_text()

    def end(self) -> None:
        """End it; what it was told stays."""
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
            assert self.process.wait(300) == 0, self.log.read_text()


@contextmanager
def following(lcc: Lcc, name: str = "followed", **settings: str) -> Iterator[Followed]:
    """Follow meanwhile, with settings of its own."""
    followed = Followed(lcc, name, settings)
    try:
        yield followed
        followed.end()
    finally:
        if followed.process.poll() is None:
            followed.process.kill()
            followed.process.wait(60)
