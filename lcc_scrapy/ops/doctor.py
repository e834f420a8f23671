"""What ``lcc doctor`` looks at. A check changes nothing, and says in one line what it found.

The checks of a running LCC are in ``metrics.py``; these are about the machine that it runs on.
"""

import ctypes
import os
import resource
import socket
import stat
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any, Protocol

from cryptography.x509 import load_pem_x509_certificate

from lcc_scrapy.config.config import Config
from lcc_scrapy.db.tx import Store
from lcc_scrapy.domain.addresses import is_public
from lcc_scrapy.domain.convergence import NOT_TRIED_AGAIN, is_mismatching
from lcc_scrapy.domain.errors import LccError, UrlRefused
from lcc_scrapy.domain.providers import Provider
from lcc_scrapy.domain.roots import HttpUrl, Root, inside, not_below, root_to_add
from lcc_scrapy.http.credentials import Credentials, providers_in
from lcc_scrapy.listeners.tls import tls_endpoint
from lcc_scrapy.machine.free_space import Disks
from lcc_scrapy.machine.open_files import needed
from lcc_scrapy.machine.redis_urls import errors, why

CLOCK_SECONDS = 2.0
"""Seconds by which the clocks of this machine and of the database may differ."""

FEW_INODES = 10_000
EXPIRING_DAYS = 14
NAMES, NAME_SECONDS = 20, 5.0
"""Hosts that are looked up, and seconds for all of them together."""

_DAY = 86_400
_TIME_ERROR = 5
_TIMEX_BYTES = 256


class State(StrEnum):
    """How bad a finding is; only a problem makes the exit status 1."""

    OK = "ok"
    WARNING = "warning"
    PROBLEM = "problem"


@dataclass(frozen=True, slots=True)
class Finding:
    """One line of ``lcc doctor``: what was looked at, and what was found."""

    check: str
    state: State
    text: str


ReadSettings = Callable[[], Mapping[str, Any]]
"""Reads the settings of Scrapy: not before somebody needs them."""


class Check(Protocol):
    """What an app adds to ``lcc doctor``. An ``LccError`` that it raises is a problem, too."""

    def __call__(self, config: Config, store: Store | None, settings: ReadSettings, /) -> Iterator[Finding]:
        """Yield what was found.

        ``store`` is None where the database cannot be used; ``settings`` reads those of Scrapy.
        """


def problem(check: str, error: object) -> Finding:
    """Return the finding of something that an operator must mend."""
    return Finding(check, State.PROBLEM, str(error))


def folders(named: Mapping[str, Path]) -> Iterator[Finding]:
    """Check that this user, and nobody else, may use folders, given by the settings that name them."""
    for name, folder in named.items():
        if not folder.is_dir():
            yield problem("rights", f"{name}: there is no folder {folder}")
        elif not os.access(folder, os.R_OK | os.W_OK | os.X_OK):
            yield problem("rights", f"{name}: user {os.geteuid()} may not write to {folder}")
        elif folder.stat().st_mode & stat.S_IRWXO:
            yield Finding("rights", State.WARNING, f"{name}: other users may look into {folder}: chmod o= it")
        else:
            yield Finding("rights", State.OK, f"{name}: {folder}")


def secret_files(named: Mapping[str, str]) -> Iterator[Finding]:
    """Check that files with secrets, given by the settings that name them, can be read, by nobody else."""
    for name, text in named.items():
        path = Path(text)
        if not os.access(path, os.R_OK):
            yield problem("rights", f"{name}: cannot read {path}")
        elif path.stat().st_mode & stat.S_IRWXO:
            yield problem("rights", f"{name}: other users may read {path}: chmod o= it")
        else:
            yield Finding("rights", State.OK, f"{name}: {path}")


def credentials(path: str, now: float) -> Iterator[Finding]:
    """Check the file that says how sites are reached, with what it names; an empty path = there is none."""
    try:
        Credentials(path)
        providers = providers_in(path)
    except LccError as error:
        yield problem("credentials", error)
        return
    for pid, provider in providers.items():
        yield Finding("credentials", State.OK, f"provider {pid}: {provider}")
        for origin, site in provider.sites.items():
            if site.certificate:
                yield from secret_files({f"the client key for {origin}": site.key_file})
                yield certificate(f"of provider {pid} for {origin}", _expires(site.certificate), now)


def _expires(path: str) -> float:
    return load_pem_x509_certificate(Path(path).read_bytes()).not_valid_after_utc.timestamp()


def redis(setting: str, client: Any) -> Finding:
    """Check that a Redis answers; ``client`` is of the setting that names it."""
    try:
        client.ping()
    except errors() as error:
        return problem("redis", f"{setting}: it does not answer: {why(error)}")
    return Finding("redis", State.OK, f"{setting}: it answers")


def disks(found: Disks) -> Iterator[Finding]:
    """Check the room on disks: bytes and files."""
    shortage = found.shortage()
    if shortage:
        yield problem("disk", shortage)
    for folder, free in found.free().items():
        inodes = os.statvfs(folder)
        few = 0 < inodes.f_favail < FEW_INODES < inodes.f_files
        room = f"{free // 10**6:,} MB free on the disk of {folder}"
        if few:
            yield Finding("disk", State.WARNING, f"{room}, but only {inodes.f_favail} more files fit")
        else:
            yield Finding("disk", State.OK, room)


def clock(database_time: float | None) -> Iterator[Finding]:
    """Check that the clock is kept right (adjtimex(2)), and agrees with that of the database."""
    if _kernel_clock_is_adrift():
        yield Finding("clock", State.WARNING, "the kernel says that its clock is not synchronised: run NTP")
    if database_time is None:
        return
    difference = time.time() - database_time
    text = f"{difference:+.1f} s from the clock of the database"
    yield Finding("clock", State.OK if abs(difference) <= CLOCK_SECONDS else State.PROBLEM, text)


def _kernel_clock_is_adrift() -> bool:
    try:
        state: int = ctypes.CDLL(None).adjtimex(ctypes.create_string_buffer(_TIMEX_BYTES))
    except (OSError, AttributeError):  # another kernel
        return False
    return state == _TIME_ERROR


def open_files(connections: int) -> Finding:
    """Check that this user may open the files that ``connections`` at a time need."""
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    wanted = needed(connections)
    if hard != resource.RLIM_INFINITY and hard < wanted:
        text = f"{hard} are permitted, LCC_CONNECTIONS_MAX may need {wanted}: raise LimitNOFILE"
        return Finding("open files", State.WARNING, text)
    return Finding("open files", State.OK, f"{wanted} may be needed and are permitted")


def port(host: str, number: int, *, expected: bool) -> Finding:
    """Check one TCP address to listen at. ``expected``: somebody of this LCC should listen there now."""
    where = f"{host or '*'}:{number}"
    if _answers(host or "localhost", number):
        if expected:
            return Finding("port", State.OK, f"{where} answers")
        return problem("port", f"{where} is taken by another process, no UNS of this LCC runs")
    if expected:
        return problem("port", f"{where} does not answer, though a UNS of this LCC says that it runs")
    try:
        with socket.socket(_family(host)) as own:  # noqa: TID251 - one that listens nowhere
            own.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            own.bind((host, number))
    except (OSError, OverflowError) as error:
        return problem("port", f"{where} cannot be listened at: {getattr(error, 'strerror', '') or error}")
    return Finding("port", State.OK, f"{where} is free")


def _answers(host: str, number: int) -> bool:
    with socket.socket(_family(host)) as probe:  # noqa: TID251 - to a port of ours
        probe.settimeout(NAME_SECONDS)
        try:
            return probe.connect_ex((host, number)) == 0
        except (OSError, OverflowError):
            return False


def _family(host: str) -> socket.AddressFamily:
    return socket.AF_INET6 if ":" in host else socket.AF_INET


def certificate(where: str, expires: float, now: float) -> Finding:
    """Check that a certificate is valid for a while; the times are epoch seconds."""
    days = (expires - now) / _DAY
    if days <= 0:
        return problem("certificate", f"{where}: it expired {-days:.0f} days ago")
    state = State.OK if days > EXPIRING_DAYS else State.WARNING
    return Finding("certificate", state, f"{where}: valid for {days:.0f} days")


def certificates(endpoints: Iterable[str]) -> Iterator[Finding]:
    """Check the certificates of endpoints with TLS, written as Twisted has them."""
    for endpoint in endpoints:
        try:
            server = tls_endpoint(None, endpoint)
        except (ValueError, TypeError) as error:
            yield problem("certificate", f"{endpoint}: {error}")
            continue
        if server is not None:
            yield certificate(endpoint, server.certificates.expires(), time.time())


def mismatches(providers: Iterable[Provider]) -> Iterator[Finding]:
    """Name the providers whose sites serve something else than they declare."""
    for one in providers:
        if is_mismatching(one.mismatched):
            told = f"{NOT_TRIED_AGAIN} ({one.mismatched} in a row): see `lcc errors {one.pid}`"
            yield Finding(f"provider {one.pid}", State.WARNING, told)


def names(hosts: Sequence[tuple[str, bool]]) -> Iterator[Finding]:
    """Look hosts up. Each is (host, whether its roots may have private addresses)."""
    if not hosts:
        return
    answers = list(_looked_up([host for host, _ in hosts]))
    failed = [host for host, found in answers if not found]
    private = dict(hosts)
    for host, found in answers:
        if found and not private[host] and not any(map(is_public, found)):
            text = f"{host} has private addresses only ({found[0]}): its provider needs --allow-private"
            yield Finding("dns", State.WARNING, text)
    if len(failed) == len(hosts):
        yield problem("dns", f"none of {len(hosts)} hosts can be looked up, for example {failed[0]}")
    else:
        yield from (Finding("dns", State.WARNING, f"{host} cannot be looked up") for host in failed)
        yield Finding("dns", State.OK, f"{len(hosts) - len(failed)} of {len(hosts)} hosts are found")


def former_names(pid: int, roots: tuple[Root, ...], urls: Iterable[str]) -> Iterator[Finding]:
    """Name the roots that a provider lacks since names are those of UTS 46, by URLs as it sends them."""
    said = set()
    for text in urls:
        with suppress(UrlRefused):
            url = HttpUrl.parse(text)
            missing = None if inside(url, roots) else root_to_add(url, roots)
            if missing is not None and missing not in said:
                said.add(missing)
                what = f"provider {pid}: {not_below(roots, url)}; what is cached below {missing[0]} stays"
                yield Finding("names", State.WARNING, what)


def _looked_up(hosts: Iterable[str]) -> Iterator[tuple[str, list[str]]]:
    """Return the addresses of hosts, none of those that are not found in time."""
    until = time.monotonic() + NAME_SECONDS
    found: dict[str, list[str]] = {}

    def look_up(host: str) -> None:
        with suppress(OSError, UnicodeError):
            found[host] = [str(one[4][0]) for one in socket.getaddrinfo(host, None, 0, socket.SOCK_STREAM)]

    # of their own: a pool would keep the process alive for as long as a resolver hangs
    asked = {host: threading.Thread(target=look_up, args=(host,), daemon=True) for host in hosts}
    for thread in asked.values():
        thread.start()
    for host, thread in asked.items():
        thread.join(max(0.0, until - time.monotonic()))
        yield host, found.get(host, [])
