"""What one connection may use. Every bound says what happens at it."""

from dataclasses import dataclass
from typing import Any

from lcc_scrapy.domain import notations as read
from lcc_scrapy.domain.roots import URL_MAX
from lcc_scrapy.domain.settings import LIVE, setting

LEAST_ELEMENT_BYTES = 16 * 1024
"""The codec looks at its bounds once in so many bytes: smaller ones could not be kept exactly."""
LEAST_DEPTH = 3
"""What dialect B needs."""
LEAST_ATTRIBUTES = 10
"""What a URL has when it says all that can be said."""


def _url_length(text: Any) -> int:
    length = read.at_least_one(text)
    if length > URL_MAX:
        raise ValueError(f"{text!r}, expected at most {URL_MAX}, which is what the database takes")
    return length


# fmt: off
@dataclass(frozen=True, slots=True)
class ConversationLimits:
    """Bounds of a conversation with the UNS or the query socket: sizes in bytes, times in seconds."""

    linger_seconds: float = setting("LCC_LINGER_SECONDS", "60s", read.period, "Time after the answer in which what still comes is read and thrown away; then the connection is cut.", LIVE)
    linger_bytes: int = setting("LCC_LINGER_BYTES", "64M", read.size, "Bytes that are read and thrown away after the answer; then the connection is cut.", LIVE)
    retry_after: int = setting("LCC_RETRY_AFTER", "5m", read.whole_seconds, "When 103, 104 and 203 advise to come again, unless something better is known.", LIVE)


@dataclass(frozen=True, slots=True)
class Limits(ConversationLimits):
    """Bounds of a conversation with the UNS. None of them can be switched off."""

    login_bytes: int = setting("LCC_LOGIN_BYTES", "65536", read.at_least(1, read.size), "Bytes before a login is complete, looked at every 8 KiB; more get 105.", LIVE)
    login_seconds: float = setting("LCC_LOGIN_SECONDS", "10s", read.period, "Time from connecting to a complete login; later gets 206.", LIVE)
    element_bytes: int = setting("LCC_ELEMENT_BYTES", "65536", read.at_least(LEAST_ELEMENT_BYTES, read.size), "Bytes since an XML element last began or ended; more get 105 or 201 and are not parsed.", LIVE)
    depth: int = setting("LCC_ELEMENT_DEPTH", "8", read.at_least(LEAST_DEPTH, read.whole), "Nested XML elements; deeper ones get 105 or 201.", LIVE)
    attributes: int = setting("LCC_ELEMENT_ATTRIBUTES", "16", read.at_least(LEAST_ATTRIBUTES, read.whole), "Attributes of one XML element; more get 105 or 201.", LIVE)
    names: int = setting("LCC_UNKNOWN_NAMES", "256", read.whole, "Different element and attribute names in one conversation that the protocol does not have; more get 105 or 201.", LIVE)
    url_length: int = setting("LCC_URL_LENGTH", "2048", _url_length, "Characters of a URL, as given and as encoded; longer ones are refused one by one (707). Not more than 2048.", LIVE)
    set_urls: int = setting("LCC_SET_MAX_URLS", "10000000", read.at_least_one, "URLs in one set; more get 204.", LIVE)
    set_bytes: int = setting("LCC_SET_MAX_BYTES", "10G", read.at_least(1, read.size), "Bytes of one set on the wire; more get 204.", LIVE)
    idle_seconds: float = setting("LCC_IDLE_SECONDS", "60s", read.period, "Time in which a provider that is logged in neither sends nor reads; longer gets 206. A set that is still being sent holds complete ones of later logins for as long at most.", LIVE)
    rate: int = setting("LCC_MIN_RATE", "500", read.at_least(1, read.size), "Bytes per second of a set, on average since it began; slower gets 206.", LIVE)
    rate_grace_seconds: float = setting("LCC_MIN_RATE_GRACE", "30s", read.duration, "Time from the beginning of a set during which LCC_MIN_RATE is not looked at.", LIVE)
    total_seconds: float = setting("LCC_CONVERSATION_SECONDS", "2h", read.period, "Time from connecting to the end of a set; later gets 206.", LIVE)
    reply_bytes: int = setting("LCC_REPLY_BYTES", "1M", read.at_least(1, read.size), "Bytes of URL errors kept for a provider that does not read them; then nothing more is read from it, until LCC_IDLE_SECONDS end it.", LIVE)
    replies_bytes: int = setting("LCC_REPLIES_BYTES", "64M", read.at_least(1, read.size), "The same for all providers together; they share it, each gets as much as is left free.", LIVE)
# fmt: on


DEFAULT_LIMITS = Limits()
