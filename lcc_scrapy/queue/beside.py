"""One blocking call beside a block of code: the content files of a commit, beside its rows."""

from collections.abc import Callable
from threading import Thread
from typing import Any, Self


class Beside:
    """Runs one blocking call in a thread of its own while a block goes on; it has ended when the block has.

    What it raises is raised at the end of the block, unless that has failed by itself.
    """

    def __init__(self, work: Callable[..., object]) -> None:
        self._work = work
        self._thread: Thread | None = None
        self._error: BaseException | None = None

    def __enter__(self) -> Self:
        return self

    def begin(self, *args: Any) -> None:
        """Begin the call."""
        self._thread = Thread(target=self._run, args=args, daemon=True, name="lcc-beside")
        self._thread.start()

    def wait(self) -> None:
        """Wait for the end of the call, and raise what it raised."""
        if self._thread is not None:
            self._thread.join()
        if self._error is not None:
            raise self._error

    def _run(self, *args: Any) -> None:
        try:
            self._work(*args)
        except BaseException as error:  # noqa: BLE001 - it is raised where it is waited for
            self._error = error

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if self._thread is not None:
            self._thread.join()
        if self._error is not None and kind is None:
            raise self._error
