"""SIGHUP: settings and certificates are read again while everything goes on.

New values can only come from the project's ``settings.py``: a process cannot be given another environment or
command line, and what stands there wins as it did before. The file is read by a process of its own, so that
all that it imports is read anew, and nothing that it does can harm this one.
"""

import json
import logging
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Mapping
from contextlib import redirect_stdout
from types import FrameType
from typing import Any, Protocol

from scrapy.settings import SETTINGS_PRIORITIES, BaseSettings
from scrapy.utils.project import get_project_settings
from twisted.internet.defer import Deferred, inlineCallbacks
from twisted.internet.threads import deferToThreadPool

from lcc_scrapy.config.config import Config, Renewal, load, renew, unknown_settings
from lcc_scrapy.domain.errors import ConfigurationError

_log = logging.getLogger(__name__)

PATIENCE = 60.0
"""Seconds after which a settings file that is still being read counts as broken."""

_PROJECT = SETTINGS_PRIORITIES["project"]


class Reloadable(Protocol):
    """What settings and certificates are for."""

    config: Config

    def apply(self, config: Config) -> None:
        """Go on with these settings."""

    def renew_certificates(self) -> Deferred[int]:
        """Read the certificates again; the result is how many there are."""


class Reloader:
    """Reads settings and certificates again on SIGHUP, one time after the other.

    SIGHUP also comes when the terminal is closed in which a process was started: then it stops as on SIGTERM.
    """

    def __init__(self, reactor: Any, settings: BaseSettings, target: Reloadable) -> None:
        self._reactor = reactor
        self._settings = settings
        self._target = target
        self._hang_up = HangUp()
        self._before: Any = None
        self._asked = self._running = self._ended = False

    def install(self) -> None:
        """Listen for SIGHUP from now on; nothing is done outside of the main thread."""
        if threading.current_thread() is threading.main_thread():
            self._before = signal.signal(signal.SIGHUP, self._signalled)

    def stop(self) -> None:
        """Read nothing any more, since all is ending."""
        self._ended = True

    def restore(self) -> None:
        """Leave SIGHUP to who had it before."""
        self.stop()
        if self._before is not None:
            signal.signal(signal.SIGHUP, self._before)
            self._before = None

    def _signalled(self, _number: int, _frame: FrameType | None) -> None:
        if self._hang_up.is_meant():
            signal.raise_signal(signal.SIGTERM)
        else:
            self._reactor.callFromThread(self.reload)

    def reload(self) -> None:
        """Read everything again, soon; several calls while that is being done make one more."""
        self._asked = True
        if not self._running:
            self._running = True
            self._reload()

    @inlineCallbacks
    def _reload(self) -> Any:
        while self._asked and not self._ended:
            self._asked = False
            yield self._renew_settings().addErrback(_log_failure)
            yield self._renew_certificates().addErrback(_log_failure)
        self._running = False

    @inlineCallbacks
    def _renew_settings(self) -> Any:
        pool = self._reactor.getThreadPool()
        try:
            fresh = yield deferToThreadPool(self._reactor, pool, settings_of_now)
            settings = renewed(self._settings, fresh)
            renewal = renew(self._target.config, load(settings))
        except ConfigurationError as error:
            _log.error("SIGHUP: the old settings stay in use: %s", error)
            return
        if not self._ended:
            self._target.apply(renewal.config)
            _log.info("SIGHUP: settings read again: %s", summary(renewal))
            for name in unknown_settings(settings):
                _log.warning("unknown setting %s", name)

    @inlineCallbacks
    def _renew_certificates(self) -> Any:
        try:
            count = yield self._target.renew_certificates()
        except ConfigurationError as error:
            _log.error("SIGHUP: %s", error)
            return
        if count:
            _log.info("SIGHUP: certificates read again: %d", count)


class HangUp:
    """Tells a SIGHUP that says "the terminal is gone" from one that was sent on purpose."""

    def __init__(self) -> None:
        self._had_terminal = _has_terminal()

    def is_meant(self) -> bool:
        """Tell whether there was a terminal at the start and is none now."""
        return self._had_terminal and not _has_terminal()


def _has_terminal() -> bool:
    try:
        os.close(os.open("/dev/tty", os.O_RDONLY | os.O_NOCTTY))
    except OSError:
        return False
    return True


def _log_failure(failure: Any) -> None:
    _log.error("SIGHUP: %s", failure.getErrorMessage(), exc_info=failure.value)


def summary(renewal: Renewal) -> str:
    """Say in a line which settings changed, and which of them wait for a restart; no values."""
    parts = []
    if renewal.changed:
        parts.append(f"{', '.join(renewal.changed)} changed")
    if renewal.waiting:
        parts.append(f"{', '.join(renewal.waiting)} changed, too, but not before a restart")
    return "; ".join(parts) or "nothing changed"


def renewed(running: BaseSettings, fresh: Mapping[str, Any]) -> BaseSettings:
    """Return the LCC's settings as they would be after a restart, the project's ones being ``fresh``.

    What came from elsewhere (the command line, a spider, an add-on) is as it was.
    """
    made = BaseSettings()
    for name, value in fresh.items():
        made.set(name, value, _PROJECT)
    for name in (name for name in running if str(name).startswith("LCC_")):
        priority = running.getpriority(name)
        if priority is not None and priority != _PROJECT:
            made.set(name, running[name], priority)
    return made


def settings_of_now() -> dict[str, Any]:
    """Return the ``LCC_*`` settings of the project as its file has them now (blocking).

    Raises ``ConfigurationError`` with one line when it cannot be read.
    """
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}
    command = [sys.executable, "-m", __name__]
    try:
        done = subprocess.run(  # noqa: S603 - ourselves
            command,
            env=environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=PATIENCE,
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise ConfigurationError(f"the settings file was not read within {PATIENCE:g} s") from None
    except OSError as error:
        raise ConfigurationError(f"the settings file cannot be read: {error.strerror}") from None
    if done.returncode:
        lines = done.stderr.strip().splitlines() or [f"status {done.returncode}"]
        raise ConfigurationError(f"the settings file cannot be read: {lines[-1]}")
    return dict(json.loads(done.stdout))


def _print_settings() -> None:
    with redirect_stdout(sys.stderr):
        settings = get_project_settings()
        ours = {name: settings[name] for name in settings if name.startswith("LCC_")}
    json.dump(ours, sys.stdout, default=str)


if __name__ == "__main__":
    _print_settings()
