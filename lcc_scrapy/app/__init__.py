"""The application: opens the database and the disks, and connects interfaces and implementations.

No rules and no SQL; only spiders, components and commands import it.
"""
