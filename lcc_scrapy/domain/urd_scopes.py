"""Which of many URDs have a page in scope: looked up by its URL and owners, not asked one by one."""

from collections.abc import Collection, Iterable, Iterator

from lcc_scrapy.domain.urds import EVERYTHING, Urd


class UrdScopes:
    """The scopes of some URDs. ``Urd.names`` has the rule for a URL; owners of directives reach more."""

    def __init__(self, urds: Iterable[Urd]) -> None:
        self._of_uri: dict[str, list[int]] = {}
        self._of_owner: dict[str, list[int]] = {}
        for urd in urds:
            self._of_uri.setdefault(urd.uri, []).append(urd.urdid)
            self._of_owner.setdefault(urd.owner, []).append(urd.urdid)

    def of(self, url: str, owners: Collection[str]) -> set[int]:
        """Return the numbers of the URDs that have a page in scope."""
        found = {urdid for uri in _reaching(url) for urdid in self._of_uri.get(uri, ())}
        return found.union(*(self._of_owner.get(owner, ()) for owner in owners))


def _reaching(url: str) -> Iterator[str]:
    """Yield the ``uri`` of every URD that names this URL."""
    yield EVERYTHING
    yield url
    end = url.find("/")
    while end >= 0:
        yield url[: end + 1]
        end = url.find("/", end + 1)
