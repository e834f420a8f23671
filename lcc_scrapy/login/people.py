"""People who may sign in: one transaction for each change; a change ends the sessions of its user."""

from collections.abc import Collection
from dataclasses import replace

from lcc_scrapy.db.tx import Store
from lcc_scrapy.domain.users import BadUser, NoSuchUser, User, checked_user


def add(store: Store, user: User) -> None:
    """Add a user; raises ``BadUser``."""
    checked = checked_user(user)
    with store.begin() as tx:
        if tx.user(user.name) is not None:
            raise BadUser(f"user {user.name} exists already; `lcc user set` changes it")
        tx.put_user(checked)


def change(
    store: Store,
    name: str,
    *,
    role: str | None = None,
    pids: Collection[int] | None = None,
    password: str | None = None,
) -> None:
    """Change a user; None = as it is. ``password`` is a hash. Raises ``NoSuchUser`` or ``BadUser``."""
    with store.begin() as tx:
        user = tx.user(name)
        if user is None:
            raise NoSuchUser(name)
        changed = replace(
            user,
            role=user.role if role is None else role,
            providers=user.providers if pids is None else written(pids),
            password=user.password if password is None else password,
        )
        tx.put_user(checked_user(changed))
        tx.end_sessions(name)


def remove(store: Store, name: str) -> None:
    """Remove a user; raises ``NoSuchUser``."""
    with store.begin() as tx:
        if tx.user(name) is None:
            raise NoSuchUser(name)
        tx.delete_user(name)


def everybody(store: Store) -> list[User]:
    """Return all users by name."""
    with store.read() as tx:
        return tx.users()


def written(pids: Collection[int]) -> str:
    """Return providers as a user has them."""
    return " ".join(map(str, sorted(set(pids))))
