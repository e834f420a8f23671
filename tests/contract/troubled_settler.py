"""A settling process that gets into the trouble which TEST_TROUBLE names, once: the file TEST_ONCE remembers."""

import errno
import os
import signal
import time
from pathlib import Path
from typing import Any

from lcc_scrapy.content import files
from lcc_scrapy.content.files import ContentFiles
from lcc_scrapy.domain.errors import DiskFailed
from lcc_scrapy.queue.settling_process import child
from lcc_scrapy.queue.settling_process.serving import Service

commit, keep, write = Service.commit, ContentFiles._keep, files._write


def is_first() -> bool:
    try:
        Path(os.environ["TEST_ONCE"]).touch(exist_ok=False)
    except FileExistsError:
        return False
    return True


def die() -> None:
    if is_first():
        os.kill(os.getpid(), signal.SIGKILL)


def dies_before(self: Service, said: Any, bodies: Any) -> Any:
    die()
    return commit(self, said, bodies)


def dies_after(self: Service, said: Any, bodies: Any) -> Any:
    answer = commit(self, said, bodies)
    die()
    return answer


def dies_with_half_a_file(path: str, data: bytes, *, synced: bool) -> None:
    if Path(path).name == "2":
        write(path, data[: len(data) // 2], synced=synced)
        die()
    write(path, data, synced=synced)


def dies_with_all_files(self: ContentFiles, bodies: Any) -> None:
    keep(self, bodies)
    die()


def dies_over_a_body(self: ContentFiles, bodies: Any) -> None:
    keep(self, bodies)
    if any(body.to_store == b"b" for _, body in bodies):
        os.kill(os.getpid(), signal.SIGKILL)


def has_no_room(self: ContentFiles, bodies: Any) -> None:
    keep(self, bodies[:1])
    if is_first():
        raise OSError(errno.ENOSPC, "No space left on device")
    keep(self, bodies)


def has_a_slow_disk(self: ContentFiles, bodies: Any) -> None:
    with open("/dev/null", "wb", 0) as disk:
        for _ in range(12):  # four times as long as it may stand still
            time.sleep(0.17)
            disk.write(b"a block")
    keep(self, bodies)


def has_a_broken_disk(self: ContentFiles, bodies: Any) -> None:
    raise DiskFailed("fsync of a file: Input/output error")


def is_defective(self: ContentFiles, bodies: Any) -> None:
    raise ZeroDivisionError("a defect")


TROUBLE: dict[str, tuple[Any, str, Any]] = {
    "before": (Service, "commit", dies_before),
    "half a file": (files, "_write", dies_with_half_a_file),
    "all files": (ContentFiles, "_keep", dies_with_all_files),
    "a body": (ContentFiles, "_keep", dies_over_a_body),
    "after": (Service, "commit", dies_after),
    "no room": (ContentFiles, "_keep", has_no_room),
    "slow disk": (ContentFiles, "_keep", has_a_slow_disk),
    "broken disk": (ContentFiles, "_keep", has_a_broken_disk),
    "defect": (ContentFiles, "_keep", is_defective),
}

if __name__ == "__main__":
    setattr(*TROUBLE[os.environ["TEST_TROUBLE"]])
    child.main()
