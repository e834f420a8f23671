"""What can be done to a provider from its page: the use cases of the commands of the same names. Blocking."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from lcc_scrapy.db.auditing import Audited
from lcc_scrapy.db.tx import Store
from lcc_scrapy.domain.audit import DETAIL_MAX, AuditEntry
from lcc_scrapy.domain.errors import BadField
from lcc_scrapy.domain.policy import QueuePolicy
from lcc_scrapy.domain.printable import printable
from lcc_scrapy.domain.providers import State, checked_reason
from lcc_scrapy.domain.users import Action, Role, User
from lcc_scrapy.ops.fetch_again import QUEUED, SOONER, Again, Terms, open_pids
from lcc_scrapy.providers import asking, registration
from lcc_scrapy.queue.held_removals import confirm_removals

FIELDS: Mapping[Action, frozenset[str]] = {
    Action.PAUSE: frozenset(),
    Action.RESUME: frozenset(),
    Action.RETRY: frozenset({"code"}),
    Action.ASK: frozenset(),
    Action.WANT_FULL: frozenset({"reason"}),
    Action.CONFIRM_REMOVALS: frozenset({"sure"}),
}
"""The fields of the form of each action."""

_CODES = range(300, 800)
_PLACE = "dashboard"
"""Where something was done, in the audit log."""

Values = Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Wish:
    """Who wants what of which provider; ``now`` in epoch seconds."""

    user: User
    action: Action
    pid: int
    values: Values
    now: int


class Actions:
    """Carries wishes out, each with its entry in the audit log."""

    def __init__(self, store: Store, policy: QueuePolicy, queue_max: int) -> None:
        self._store = store
        self._policy = policy
        self._queue_max = queue_max
        self._verbs: Mapping[Action, Callable[[Store, Wish], int]] = {
            Action.PAUSE: self._pause,
            Action.RESUME: self._resume,
            Action.RETRY: self._retry,
            Action.ASK: self._ask,
            Action.WANT_FULL: self._want_full,
            Action.CONFIRM_REMOVALS: self._confirm_removals,
        }

    def do(self, wish: Wish) -> int:
        """Carry a wish out; returns how many URLs it concerned. Raises ``LccError``."""
        told = " ".join(f"{name}={value}" for name, value in sorted(wish.values.items()) if value)
        entry = AuditEntry(
            0, wish.now, wish.user.name, _PLACE, wish.action, wish.pid, printable(told)[:DETAIL_MAX]
        )
        return self._verbs[wish.action](Audited(self._store, entry), wish)

    def _pause(self, store: Store, wish: Wish) -> int:
        registration.change(store, wish.pid, {"state": State.PAUSED})
        return 0

    def _resume(self, store: Store, wish: Wish) -> int:
        registration.change(store, wish.pid, {"state": State.ACTIVE})
        return 0

    def _retry(self, store: Store, wish: Wish) -> int:
        codes = _codes(wish.values.get("code", ""))
        again = Again(store, Terms(self._policy, self._queue_max, wish.now))
        (pid,) = open_pids(store, [wish.pid])
        return sum(page[QUEUED] + page[SOONER] for page in again.retry(pid, codes))

    def _ask(self, store: Store, wish: Wish) -> int:
        return len(asking.ask_now(store, wish.pid, wish.now))

    def _want_full(self, store: Store, wish: Wish) -> int:
        try:
            reason = checked_reason(wish.values.get("reason", ""))
        except ValueError as error:
            raise BadField("reason", str(error)) from None
        if not reason and wish.user.role == Role.OWNER:
            raise BadField("reason", "only an operator withdraws the request for a full set")
        registration.want_full_set(store, wish.pid, reason)
        return 0

    def _confirm_removals(self, store: Store, wish: Wish) -> int:
        if wish.values.get("sure") != "yes":
            raise BadField("sure", "tick the box to remove the documents")
        return confirm_removals(store, wish.pid, wish.now, self._policy)


def _codes(text: str) -> list[int]:
    """Read codes with blanks between them; none = whatever failed. Raises ``BadField``."""
    codes = [int(word) for word in text.split() if word.isascii() and word.isdigit() and len(word) == 3]  # noqa: PLR2004 - digits
    if len(codes) != len(text.split()) or not all(code in _CODES for code in codes):
        raise BadField("code", "write codes from 300 to 799, with blanks between them")
    return codes
