"""The limit of open files: raised to what the permitted connections need."""

import logging
import resource

log = logging.getLogger(__name__)

PER_CONNECTION = 3
"""Twice as many as are served may be refused at a time, and each that is served may have a spool file."""
BESIDE = 512
"""For the database, content files and fetches."""


def needed(connections: int) -> int:
    """Return how many files a process may have to open for so many connections at a time."""
    return connections * PER_CONNECTION + BESIDE


def make_room(connections: int) -> None:
    """Raise the soft limit of this process as far as needed and permitted; a warning says what is missing."""
    wanted = needed(connections)
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft == resource.RLIM_INFINITY or soft >= wanted:
        return
    most = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, hard))
    if most < wanted:
        log.warning("%d open files are permitted, LCC_CONNECTIONS_MAX may need %d", most, wanted)
