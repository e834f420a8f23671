"""Registered providers: adding, changing, removing, narrowing roots, groups, recounting.

No network; what providers run themselves is in ``push``.
"""
