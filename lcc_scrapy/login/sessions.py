"""Sessions of browsers: a random id in a cookie, of which the database keeps the SHA-256. Blocking."""

from lcc_scrapy.db.tx import Store
from lcc_scrapy.domain.users import Session, digest_of, is_session_id, new_session_id

MOST = 20
"""Sessions that one user, or one token, has at a time; the oldest make room."""


class Sessions:
    """The sessions of one set of pages; ``of`` names it, so that no session is good for other pages."""

    def __init__(self, store: Store, of: str = "") -> None:
        self._store = store
        self._of = of

    def digest(self, shown: str) -> str:
        """Return what the database has of an id."""
        return digest_of(self._of + shown)

    def find(self, shown: str, now: int) -> Session | None:
        """Return the session that a browser shows, unless it has ended."""
        if not is_session_id(shown):
            return None
        with self._store.read() as tx:
            session = tx.session(self.digest(shown))
        return session if session is not None and now < session.expires else None

    def begin(self, name: str, before: str, now: int, seconds: int) -> str:
        """Begin a session and return its id. It ends ``before``, the one that the browser had."""
        made = new_session_id()
        with self._store.begin() as tx:
            tx.end_session(self.digest(before))
            tx.forget_sessions(now)
            for old in tx.sessions_of(name)[MOST - 1 :]:
                tx.end_session(old.digest)
            tx.insert_session(Session(self.digest(made), name, now, now + seconds))
        return made

    def end(self, shown: str) -> None:
        """End a session."""
        with self._store.begin() as tx:
            tx.end_session(self.digest(shown))
