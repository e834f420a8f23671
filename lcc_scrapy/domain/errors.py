"""Every error of the LCC, with whose fault it is and the code the wire knows it by.

::

    LccError
    ├── ConfigurationError     the operator's: a setting or folder that cannot be used (one clear line)
    │   ├── InUse              another process has it, perhaps not for long
    │   └── MissingExtra       a package is not installed that an extra of lcc-scrapy brings
    ├── Refusal                a login, a set or a query turned away; carries a wire code (1xx, 2xx, 8xx)
    ├── UrlRefused             one URL of a set turned away; carries a wire code (7xx)
    ├── NotDurable             something could not be put on disk: never answer "accepted"
    │   ├── DiskFull           now; it can when there is room again
    │   └── NotNow             nor is it tried: room is short, or its provider has no share of the spool left
    │       └── SetTooLarge    and never could: one set is larger than what a spool takes of a provider
    ├── DiskFailed             a disk does not keep what it is given: the process has to end
    ├── Exhausted              the system gives this process no descriptors, memory or ports now
    ├── StoreUnavailable       the database does not answer now; try again later
    │   └── StoreFull          because there is no room on its disk
    ├── LeaseLost              a turn belongs to another worker by now; drop the work
    └── PassedOver             sets of later logins went first; this one may not be absorbed any more
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from http import HTTPStatus


class Fault(str, Enum):
    """Who can do something about an error."""

    __str__ = str.__str__

    PROVIDER = "provider"
    USER = "user"
    SITE = "site"
    LCC = "lcc"


class Retried(str, Enum):
    """What is tried again after a failed fetch (``domain/retries.py``)."""

    __str__ = str.__str__

    NOTHING = "nothing"
    URL = "url"
    HOST = "host"


@dataclass(frozen=True)
class Code:
    """A number of the wire protocol (design section 4) with its English text."""

    number: int
    text: str
    fault: Fault
    retried: Retried = Retried.NOTHING


_TABLE = (
    Code(101, "Not authorised", Fault.PROVIDER),
    Code(102, "Provider not active", Fault.PROVIDER),
    Code(103, "Temporarily off-line, try again later", Fault.LCC),
    Code(104, "Too many connections", Fault.PROVIDER),
    Code(105, "Not well-formed, or not this protocol", Fault.PROVIDER),
    Code(201, "Set not well-formed or cut short", Fault.PROVIDER),
    Code(202, "No full sets left", Fault.PROVIDER),
    Code(203, "Temporarily off-line, try again later", Fault.LCC),
    Code(204, "Set too large", Fault.PROVIDER),
    Code(206, "Too slow or idle too long", Fault.PROVIDER),
    Code(601, "Host name not found", Fault.SITE, Retried.HOST),
    Code(602, "No connection to the host", Fault.SITE, Retried.HOST),
    Code(603, "The host did not answer in time", Fault.SITE, Retried.URL),
    Code(604, "Body too large", Fault.SITE),
    Code(605, "Redirect outside the provider's roots", Fault.SITE),
    Code(606, "Too many redirects", Fault.SITE),
    Code(607, "Mimetype differs from the declared one", Fault.PROVIDER),
    Code(608, "md5 or len differs from the declared one", Fault.PROVIDER),
    Code(609, "Files quota used up", Fault.PROVIDER),
    Code(610, "Space quota used up", Fault.PROVIDER),
    Code(611, "Forbidden by robots.txt", Fault.SITE),
    Code(612, "TLS failure", Fault.SITE, Retried.HOST),
    Code(613, "Unusable redirect or 3xx answer", Fault.SITE),
    Code(614, "Malformed or cut answer", Fault.SITE, Retried.URL),
    Code(615, "Address refused", Fault.SITE),
    Code(616, "Not stored: dropped or failed inside this LCC", Fault.LCC, Retried.URL),
    Code(701, "curl missing", Fault.PROVIDER),
    Code(702, "mimetype missing", Fault.PROVIDER),
    Code(703, "mimetype not accepted", Fault.PROVIDER),
    Code(704, "URL outside the provider's roots", Fault.PROVIDER),
    Code(705, "URL not valid or scheme not supported", Fault.PROVIDER),
    Code(706, "Attribute not valid", Fault.PROVIDER),
    Code(707, "Too long", Fault.PROVIDER),
    Code(708, "No permitted hour", Fault.PROVIDER),
    Code(801, "Not authorised", Fault.USER),
    Code(802, "Start over", Fault.LCC),
    Code(803, "Temporarily off-line, try again later", Fault.LCC),
    Code(804, "Too many connections", Fault.USER),
    Code(805, "Not well-formed, or not a query", Fault.USER),
    Code(806, "Too slow or idle too long", Fault.USER),
    Code(807, "Not allowed with this token", Fault.USER),
)

CODES: dict[int, Code] = {code.number: code for code in _TABLE}


def codes_retried(what: Retried) -> list[int]:
    """Return the wire codes after which this is tried again."""
    return [code.number for code in _TABLE if code.retried is what]


def text_of(code: int) -> str:
    """Return the English text of a wire code; 4xx and 5xx are HTTP statuses of the fetch."""
    known = CODES.get(code)
    if known is not None:
        return known.text
    try:
        return HTTPStatus(code).phrase
    except ValueError:
        return f"HTTP status {code}"


class LccError(Exception):
    """Base of all errors of the LCC."""


class BadField(LccError):
    """Something in a form or request cannot be used; ``field`` is its name."""

    def __init__(self, field: str, text: str) -> None:
        super().__init__(f"{field}: {text}")
        self.field = field
        self.text = text


class ConfigurationError(LccError):
    """A setting, folder or database that the operator must mend; the text says how."""


class InUse(ConfigurationError):
    """Another process holds what this one needs; it may be about to end."""


class MissingExtra(ConfigurationError):
    """A package is not installed; ``extra`` names the extra of lcc-scrapy that brings it."""

    def __init__(self, extra: str, package: str) -> None:
        super().__init__(f"{package} is missing: install lcc-scrapy[{extra}], as README.md says")


class NotDurable(LccError):
    """Something that was about to be promised could not be put on disk."""


class DiskFull(NotDurable):
    """There is no room for it now (or no quota); the same may go through later."""


class NotNow(NotDurable):
    """Not tried: room is short already, or the provider has used up its share of the spool."""


class SetTooLarge(NotNow):
    """A set is larger than what the spool takes of one provider when it is empty: it need not come again."""


class DiskFailed(LccError):
    """What was written may be lost although it can still be read: it must not be tried again.

    The process has to end; what is on disk shows when it starts again.
    """


class Exhausted(LccError):
    """The operating system has no more of something for this process: no fault of a site or a provider."""


class StoreUnavailable(LccError):
    """The database does not answer; the same call may go through later."""


class StorageAway(StoreUnavailable):
    """The object storage of the contents does not answer; the database does."""


class StoreFull(StoreUnavailable):
    """There is no room for what the database was to keep."""


class LeaseLost(LccError):
    """The turn is another worker's by now, or may be: drop the work; nothing was changed."""


class PassedOver(LccError):
    """A set comes too late: its UNS was away for so long that sets of later logins did not wait for it."""


class _Coded(LccError):
    def __init__(self, code: int, detail: str = "") -> None:
        self.code = code
        self.detail = detail
        super().__init__(f"{text_of(code)}: {detail}" if detail else text_of(code))


class Refusal(_Coded):
    """A login (1xx), a whole set (2xx) or a query (8xx) is turned away.

    ``retry_after`` (seconds, 0 = not said) goes out with 103, 203 and 803.
    """

    def __init__(self, code: int, detail: str = "", retry_after: int = 0) -> None:
        super().__init__(code, detail)
        self.retry_after = retry_after


class UrlRefused(_Coded):
    """One URL element is turned away (7xx); the rest of the set goes on."""
