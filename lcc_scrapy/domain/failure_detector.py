"""Failure detector: who has sent no heartbeat for too long, as seen by one who looks now and then.

Only changes of a sign count, and only the observer's own clock: clocks of other machines may be wrong.
"""


class FailureDetector:
    """``patience`` in seconds; time in which nobody looked is not held against anybody."""

    def __init__(self, patience: float) -> None:
        self._patience = patience
        self._seen: dict[str, tuple[int, float, float]] = {}

    def is_dead(self, name: str, sign: int, now: float) -> bool:
        """Look at somebody's newest sign; tell whether it has been the same for too long."""
        before, since, looked = self._seen.get(name, (sign, now, now))
        if sign != before or now - looked > self._patience / 2:
            since = now
        self._seen[name] = (sign, since, now)
        return now - since >= self._patience
