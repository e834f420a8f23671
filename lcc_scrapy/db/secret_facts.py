"""Secrets that belong to the LCC itself, kept as facts (``lccinfo``): made when they are first asked for."""

import secrets

from lcc_scrapy.db.tx import Store


def secret_fact(store: Store, name: str) -> bytes:
    """Return the secret of a name, 32 random bytes; the same in every process."""
    with store.read() as tx:
        known = tx.info(name)
    return bytes.fromhex(known or _made(store, name))


def _made(store: Store, name: str) -> str:
    with store.begin() as tx:
        tx.take(name, 0)  # whoever comes second waits here, and finds it
        known = tx.info(name) or secrets.token_hex(32)
        tx.set_info(name, known)
    return known
