"""Messages of the CP/UNS protocol (seed 003 section 13), one small value each.

What the provider sends is read by ``lcc_scrapy.uns.codec``; what the UNS answers is read by
``lcc_scrapy.push.answers``. Both sides write with ``lcc_scrapy.wire.writing``.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Union

NAMESPACE = "http://www.lococa.org/1.0"
PROTOCOL_VERSION = "1.1"
_SLOTS = {"slots": True} if sys.version_info >= (3, 10) else {}
"""The provider's commands also run on Python 3.8, which has no slots of dataclasses."""

UNLIMITED = 9223372036854775807
"""What the wire says for "no limit"."""


@dataclass(frozen=True, **_SLOTS)
class Init:
    """The provider introduces itself: ``<lococa:init><provider id= passwd=/></lococa:init>``."""

    provider_id: str
    password: str = field(repr=False)
    version: str = ""


@dataclass(frozen=True, **_SLOTS)
class SetStart:
    """A set begins. ``set_id`` is empty when the provider gave none."""

    full: bool
    urlprefix: str = ""
    set_id: str = ""
    ifabsent: bool = False
    drop_outside: bool = False
    dryrun: bool = False


@dataclass(frozen=True, **_SLOTS)
class Url:
    """One ``<url>`` element with canonical attribute names (curl, burl, furl …), otherwise as submitted."""

    attributes: Mapping[str, str]
    sent: Mapping[str, str] = field(default_factory=dict, compare=False)
    """The same in the provider's own spelling; empty where that is the canonical one."""

    @property
    def as_sent(self) -> Mapping[str, str]:
        """The attributes as they were sent."""
        return self.sent or self.attributes


@dataclass(frozen=True, **_SLOTS)
class UrlRun:
    """Some ``<url>`` elements that follow each other and have the same attributes: a column for each.

    Only plain values (``domain.runs``) come in this form; curl and mimetype are always among them.
    """

    columns: Mapping[str, Sequence[str]]
    names: Sequence[str] = field(default=(), compare=False)
    """Names of the columns as they were sent; empty where these are the canonical ones."""

    @property
    def names_as_sent(self) -> Mapping[str, str]:
        """The name of each column as it was sent, by canonical name."""
        return dict(zip(self.columns, self.names or self.columns, strict=True))

    def __len__(self) -> int:
        return len(self.columns["curl"])

    def __iter__(self) -> Iterator[Url]:
        """Give them one by one."""
        for values in zip(*self.columns.values(), strict=True):
            sent = dict(zip(self.names, values, strict=True)) if self.names else {}
            yield Url(dict(zip(self.columns, values, strict=True)), sent)


@dataclass(frozen=True, **_SLOTS)
class SetEnd:
    """The set is complete."""


Message = Union[Init, SetStart, Url, UrlRun, SetEnd]


@dataclass(frozen=True, **_SLOTS)
class UrlError:
    """A URL that was refused (7xx) or could not be fetched (4xx, 5xx, 6xx).

    ``url`` is the absolute fetch URL; ``attributes`` are those submitted.
    """

    code: int
    text: str
    url: str
    attributes: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, **_SLOTS)
class Quota:
    """Used and free amounts; a free of ``UNLIMITED`` means no limit. Space in bytes."""

    files_used: int = 0
    files_free: int = UNLIMITED
    space_used: int = 0
    space_free: int = UNLIMITED
    fullset_allowed: int = UNLIMITED
    fullset_wanted: bool = False
    fullset_reason: str = ""


@dataclass(frozen=True, **_SLOTS)
class InitAccepted:
    """What a provider learns at login. ``error_count`` is exact, ``errors`` holds the newest of them."""

    seq: int
    last_conn_ip: str
    mimetypes: tuple[str, ...]
    quota: Quota
    error_count: int = 0
    processing: int = 0
    errors: tuple[UrlError, ...] = ()
    lcc_id: str = ""
    revision: str = ""
    """Another text means that what was refused may be taken now; empty = an LCC that does not say."""


@dataclass(frozen=True, **_SLOTS)
class InitRejected:
    """A login turned away; ``retry_after`` in seconds, 0 = not said."""

    code: int
    reason: str
    retry_after: int = 0


@dataclass(frozen=True, **_SLOTS)
class SetAccepted:
    """The set is on disk. ``received`` counts its valid URLs; the rest only answers a dry run.

    ``would_hold`` counts removals that the LCC's guard would hold, None or 0 = it would hold none.
    """

    received: int
    would_remove: int | None = None
    would_hold: int | None = None


@dataclass(frozen=True, **_SLOTS)
class SetRejected:
    """Nothing of the set was taken; ``retry_after`` in seconds, 0 = not said."""

    code: int
    reason: str
    retry_after: int = 0
