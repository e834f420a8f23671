"""The HTTP status of each wire code that refuses a login or a set."""

from http import HTTPStatus

STATUSES: dict[int, HTTPStatus] = {
    101: HTTPStatus.UNAUTHORIZED,
    102: HTTPStatus.FORBIDDEN,
    103: HTTPStatus.SERVICE_UNAVAILABLE,
    104: HTTPStatus.TOO_MANY_REQUESTS,
    105: HTTPStatus.BAD_REQUEST,
    201: HTTPStatus.BAD_REQUEST,
    202: HTTPStatus.FORBIDDEN,
    203: HTTPStatus.SERVICE_UNAVAILABLE,
    204: HTTPStatus.REQUEST_ENTITY_TOO_LARGE,
    206: HTTPStatus.REQUEST_TIMEOUT,
}


def status_of(code: int) -> HTTPStatus:
    """Return the status that tells of a code; 0 = nothing was refused."""
    return STATUSES[code] if code else HTTPStatus.OK
