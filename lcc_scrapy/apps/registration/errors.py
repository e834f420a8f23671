"""What goes wrong, as clients are told: status, name, headers."""

from collections.abc import Mapping
from http import HTTPStatus

from lcc_scrapy.apps.registration.service import AlreadyActive, Full, Later, NotKnown
from lcc_scrapy.apps.registration.steps import Failed
from lcc_scrapy.domain.errors import BadField, LccError, StoreUnavailable
from lcc_scrapy.domain.shares import ShareUsedUp
from lcc_scrapy.web.forms import CrossSite
from lcc_scrapy.web.problems import Busy

_KINDS: dict[type[LccError], tuple[HTTPStatus, str, Mapping[str, str]]] = {
    BadField: (HTTPStatus.UNPROCESSABLE_ENTITY, "bad-field", {}),
    CrossSite: (HTTPStatus.FORBIDDEN, "cross-site", {}),
    NotKnown: (HTTPStatus.UNAUTHORIZED, "not-known", {"WWW-Authenticate": 'Basic realm="lcc registration"'}),
    AlreadyActive: (HTTPStatus.CONFLICT, "already-active", {}),
    Failed: (HTTPStatus.CONFLICT, "not-proved", {}),
    Full: (HTTPStatus.SERVICE_UNAVAILABLE, "full", {"Retry-After": "3600"}),
    Later: (HTTPStatus.SERVICE_UNAVAILABLE, "later", {"Retry-After": "60"}),
    Busy: (HTTPStatus.SERVICE_UNAVAILABLE, "busy", {"Retry-After": "60"}),
    StoreUnavailable: (HTTPStatus.SERVICE_UNAVAILABLE, "database-away", {"Retry-After": "10"}),
}
_UNTOLD: dict[type[LccError], str] = {StoreUnavailable: "the database does not answer: try again later"}


def told(error: LccError) -> tuple[HTTPStatus, str, str, dict[str, str]]:
    """Return status, name, text and headers of an answer; raises what is none of these."""
    if isinstance(error, ShareUsedUp):
        again = {"Retry-After": str(error.seconds)}
        return HTTPStatus.TOO_MANY_REQUESTS, "share-used-up", str(error), again
    kind = next((known for known in _KINDS if isinstance(error, known)), None)
    if kind is None:
        raise error
    status, name, headers = _KINDS[kind]
    return status, name, _UNTOLD.get(kind, str(error)), dict(headers)
