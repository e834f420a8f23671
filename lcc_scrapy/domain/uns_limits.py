"""What one connection may use. Every bound says what happens at it.

The defaults are those of the settings; ``intake_service.limits_of`` makes the limits of an LCC out of them.
"""

from dataclasses import dataclass

from lcc_scrapy.domain.roots import URL_MAX

_M, _G = 1000**2, 1000**3

LEAST_ELEMENT_BYTES = 16 * 1024
"""The codec looks at its bounds once in so many bytes: smaller ones could not be kept exactly."""
LEAST_DEPTH = 3
"""What dialect B needs."""
LEAST_ATTRIBUTES = 10
"""What a URL has when it says all that can be said."""


@dataclass(frozen=True, slots=True)
class Limits:
    """Bounds of one conversation: sizes in bytes, times in seconds. None of them can be switched off."""

    login_bytes: int = 65536
    """Before the login is complete; more is answered with 105."""
    login_seconds: float = 10.0
    """Until the login is complete; later is answered with 206."""
    element_bytes: int = 65536
    """Since an element last began or ended; more is answered with 105 or 201 and goes no further."""
    depth: int = 8
    """Nested elements; deeper is answered with 105 or 201."""
    attributes: int = 16
    """Attributes of one element; more are answered with 105 or 201."""
    names: int = 256
    """Different unknown attribute and element names; more are answered with 105 or 201."""
    url_length: int = URL_MAX
    """Characters of a URL, as given and as encoded; longer ones are answered with 707."""
    set_urls: int = 10_000_000
    """URL elements of one set; more are answered with 204."""
    set_bytes: int = 10 * _G
    """Of everything after the login; more is answered with 204."""
    idle_seconds: float = 60.0
    """In which the provider neither sends nor reads; longer is answered with 206."""
    rate: int = 500
    """Bytes per second of a set, on average; slower is answered with 206."""
    rate_grace_seconds: float = 30.0
    """After the beginning of a set, before the rate is looked at."""
    total_seconds: float = 7200.0
    """Of the whole conversation; longer is answered with 206."""
    reply_bytes: int = _M
    """Of URL errors that wait for a provider who does not read; at the bound nothing more is read from it."""
    replies_bytes: int = 64 * _M
    """Of the same for all providers together, shared by what is left free (``domain.dynamic_threshold``)."""
    linger_seconds: float = 60.0
    """After the answer, in which the rest is read and discarded; then the connection is cut."""
    linger_bytes: int = 64 * _M
    """Read and discarded after the answer; then the connection is cut."""
    retry_after: int = 300
    """What 103, 104 and 203 advise when nothing better is known."""


DEFAULT_LIMITS = Limits()
