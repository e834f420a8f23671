"""How much a text matters to a URD (seed 002 section 6.2; it names weights, and no formula: decision 147)."""

OCCURRENCES_MAX = 10
"""Occurrences of one keyword that count: what stands on a page a thousand times is no more about it."""


def score(weight: int, occurrences: int) -> int:
    """Return what one keyword adds to the relevance of a text in which it occurs so many times."""
    return weight * min(occurrences, OCCURRENCES_MAX)
