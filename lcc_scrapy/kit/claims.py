"""Claims in rows of the database: the name under which a process has one, and whether that process lives."""

import os
import socket


def this_process() -> str:
    """Return the name under which this process claims."""
    return f"{_host()}/{os.getpid()}"


def has_ended(owner: str) -> bool:
    """Tell whether a process on this host has ended; of those on other hosts nobody knows."""
    host, _, number = owner.rpartition("/")
    if host != _host() or not number.isdigit():
        return False
    try:
        os.kill(int(number), 0)
    except ProcessLookupError:
        return True
    except OSError:
        return False
    return False


def _host() -> str:
    return socket.gethostname()[:40]
