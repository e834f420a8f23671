"""What operators do: housekeeping, backup, restore, verification, metrics, fetching again.

Nothing on a page's way is here.
"""
