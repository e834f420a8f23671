"""People who use the dashboard: what each role may see and do, and how long a session lasts."""

import hashlib
import re
import secrets
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from lcc_scrapy.domain.errors import LccError

NAME_MAX = 64
PROVIDERS_MAX = 1000
"""Characters of all providers of one user."""

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._@+-]{0,63}")
_RANDOM_BYTES = 24
_SESSION_ID = re.compile(r"[A-Za-z0-9_-]{32}")


class Role(StrEnum):
    """What a user is: a *provider-owner* sees some providers, the others see all."""

    VIEWER = "viewer"
    OPERATOR = "operator"
    OWNER = "provider-owner"


class Action(StrEnum):
    """What can be done to a provider from the dashboard, named as the commands."""

    PAUSE = "pause"
    RESUME = "resume"
    RETRY = "retry"
    ASK = "ask"
    WANT_FULL = "want-full"
    CONFIRM_REMOVALS = "confirm-removals"


MAY: Mapping[Role, frozenset[Action]] = {
    Role.VIEWER: frozenset(),
    Role.OPERATOR: frozenset(Action),
    Role.OWNER: frozenset({Action.RETRY, Action.WANT_FULL}),
}
"""Owners may do what cannot undo a decision of the operator."""


class BadUser(LccError):
    """A user that cannot be kept as it was given."""


class NoSuchUser(LccError):
    """There is no user of this name."""

    def __init__(self, name: str) -> None:
        super().__init__(f"there is no user {name}; `lcc user list` shows all")


@dataclass(frozen=True, slots=True)
class User:
    """One row of ``users``. An empty ``password`` matches none: only a proxy can bring this user.

    ``providers`` are pids with blanks between them, of a provider-owner only. ``created`` in epoch seconds.
    """

    name: str
    role: str
    providers: str
    password: str
    created: int

    @property
    def pids(self) -> frozenset[int] | None:
        """The providers that there are for this user; None = all."""
        return frozenset(map(int, self.providers.split())) if self.role == Role.OWNER else None

    def sees(self, pid: int) -> bool:
        """Tell whether a provider is there for this user."""
        return self.pids is None or pid in self.pids

    def may(self, action: Action) -> bool:
        """Tell whether this user may do something to the providers that it sees."""
        return action in MAY[Role(self.role)]


@dataclass(frozen=True, slots=True)
class Session:
    """One row of ``sessions``: ``digest`` is the SHA-256 of what the browser keeps. Times: epoch seconds."""

    digest: str
    name: str
    created: int
    expires: int


def is_name(text: str) -> bool:
    """Tell whether a user may have this name."""
    return _NAME.fullmatch(text) is not None


def checked_user(user: User) -> User:
    """Return a user; raises ``BadUser`` for one that cannot be kept."""
    if not is_name(user.name):
        raise BadUser(f"a name has 1 to {NAME_MAX} of the characters A-Z a-z 0-9 . _ @ + -")
    if (user.role == Role.OWNER) is not bool(user.providers):
        raise BadUser(f"--provider goes with the role {Role.OWNER}, which needs one")
    if len(user.providers) > PROVIDERS_MAX:
        raise BadUser(f"more than {PROVIDERS_MAX} characters of providers: make several users")
    return user


def new_session_id() -> str:
    """Make what a browser keeps of a session: 192 random bits."""
    return secrets.token_urlsafe(_RANDOM_BYTES)


def is_session_id(text: str) -> bool:
    """Tell whether a text looks like what a browser keeps of a session."""
    return _SESSION_ID.fullmatch(text) is not None


def digest_of(session_id: str) -> str:
    """Return what is kept of a session."""
    return hashlib.sha256(session_id.encode("utf-8", "surrogatepass")).hexdigest()
