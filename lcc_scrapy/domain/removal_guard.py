"""The one guard over every path by which many documents could vanish at once (design section 5).

An unmounted docroot, a truncated set or a site that answers 404 to everything looks like a mass
removal. Beyond a share of a provider's documents within a day, removals are held until somebody decides.
"""

FEW = 20
"""Removals within a day that are never held."""

DAY = 86400


def room(removed_today: int, known: int, max_share: float) -> int:
    """Return how many documents may still go today; if more are to go together, all of them are held.

    ``known`` counts the provider's documents now, ``removed_today`` those that went within the day;
    ``max_share`` is between 0 and 1.
    """
    most = max(FEW, int(max_share * (known + removed_today)))
    return max(0, most - removed_today)


def doubts(named: int, unreadable: int) -> bool:
    """Tell whether a full set says too little to remove anything, however few documents it leaves out.

    ``named`` counts the URLs that it says exist, ``unreadable`` those whose key could not be read: any
    document may be among them.
    """
    return not named or unreadable > 0


def removed_within_day(removed: int, since: int, now: float) -> int:
    """Return how many removals of the running day count; ``since`` is when that day began."""
    return removed if now - since < DAY else 0


def notice(pid: int, count: int, why: str) -> str:
    """Say that removals are held, and who decides."""
    return (
        f"provider {pid}: {count} removals are held ({why}): `lcc provider confirm-removals {pid}`"
        " carries them out, a later full set decides anew"
    )
