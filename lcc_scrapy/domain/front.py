"""Sub-LCCs behind one front, and where a new provider goes (seed 003 section 12)."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum

from lcc_scrapy.domain.errors import LccError


class SubState(StrEnum):
    """Whether a sub-LCC takes new providers (``active``) or only serves those that it has (``full``)."""

    ACTIVE = "active"
    FULL = "full"


class FrontError(LccError):
    """Something that the front's database does not know, or has already; the text says what to do."""


@dataclass(frozen=True, slots=True)
class SubLcc:
    """One row of FEDB: how a sub-LCC is reached.

    ``uns`` is ``HOST:PORT`` of its UNS, behind which it believes our PROXY header. ``lccid`` is its id,
    ``web`` the URL of its `lcc web`, ``token_file`` holds a token for that, ``database`` is its
    LCC_DATABASE_URL; these may be empty. ``capacity`` counts documents and waiting URLs, 0 = no limit.
    """

    name: str
    uns: str
    lccid: str = ""
    web: str = ""
    token_file: str = ""
    database: str = ""
    capacity: int = 0
    state: SubState = SubState.ACTIVE


@dataclass(frozen=True, slots=True)
class Load:
    """What sub-LCCs have, by their names: ``urls`` are documents and waiting URLs, where these are known.

    ``fresh`` providers are too new to have all their documents: each counts as one of average size.
    """

    urls: Mapping[str, int]
    providers: Mapping[str, int] = field(default_factory=dict)
    fresh: Mapping[str, int] = field(default_factory=dict)

    @property
    def average(self) -> float:
        """Return how many URLs a provider has that is not new; 1 at least."""
        old = sum(self.providers.get(name, 0) - self.fresh.get(name, 0) for name in self.urls)
        return max(1.0, sum(self.urls.values()) / max(1, old))

    def with_one_more(self, name: str) -> "Load":
        """Return it with a new provider in a sub-LCC."""
        return Load(self.urls, _one_more(self.providers, name), _one_more(self.fresh, name))


def _one_more(counts: Mapping[str, int], name: str) -> Mapping[str, int]:
    return {**counts, name: counts.get(name, 0) + 1}


def place(subs: Sequence[SubLcc], load: Load) -> SubLcc:
    """Return the sub-LCC for a new provider: the least full active one, then that with fewest providers.

    Raises ``FrontError`` when none has room.
    """
    fit = [one for one in subs if one.state == SubState.ACTIVE and _share(one, load) < 1]
    if not fit:
        raise FrontError("no active sub-LCC has room: add one, or raise a capacity")
    size = load.average
    providers = load.providers
    return min(fit, key=lambda one: (_share(one, load, size), providers.get(one.name, 0), one.name))


def _share(sub: SubLcc, load: Load, size: float = 0) -> float:
    """Return which part of its capacity is used, when a new provider has ``size`` URLs."""
    expected = load.urls.get(sub.name, 0) + size * load.fresh.get(sub.name, 0)
    return expected / sub.capacity if sub.capacity else 0.0


def next_to_move(urls: Mapping[int, int], target: int) -> int | None:
    """Return the provider that moves next to a sub-LCC with ``target`` URLs, None = it is as full as can be.

    ``urls`` are those of the source's providers, by pid. The largest one goes that does not make the target
    fuller than the source is then.
    """
    surplus = sum(urls.values()) - target
    fit = [(count, -pid) for pid, count in urls.items() if 0 < count <= surplus / 2]
    return -max(fit)[1] if fit else None


class MoveStep(StrEnum):
    """How far a move is: nothing of the provider changes any more, its rows are copied, and it is removed."""

    HOLD = "hold"
    COPY = "copy"
    REMOVE = "remove"


@dataclass(frozen=True, slots=True)
class Moving:
    """A provider on its way from one sub-LCC to another, by their names.

    ``state`` is what it was when the move began, and will be again. ``number`` is that of its move
    (``domain.front_moves``), 0 = nothing is copied yet.
    """

    pid: int
    source: str
    target: str
    state: str
    step: MoveStep = MoveStep.HOLD
    number: int = 0
