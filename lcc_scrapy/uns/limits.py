"""What one connection may use. Every bound says what happens at it."""

from dataclasses import dataclass

_KIB = 1024


@dataclass(frozen=True, slots=True)
class Limits:
    """Bounds of one conversation: sizes in bytes, times in seconds. None of them can be switched off."""

    login_bytes: int = 64 * _KIB
    """Before the login is complete; more is answered with 105."""
    login_seconds: float = 10.0
    """Until the login is complete; later is answered with 206."""
    element_bytes: int = 64 * _KIB
    """Since an element last began or ended; more is answered with 105 or 201 and goes no further."""
    depth: int = 8
    """Nested elements; deeper is answered with 105 or 201."""
    attributes: int = 16
    """Attributes of one element; more are answered with 105 or 201."""
    names: int = 256
    """Different unknown attribute and element names; more are answered with 105 or 201."""
    set_urls: int = 5_000_000
    """URL elements of one set; more are answered with 204."""
    set_bytes: int = 2_000_000_000
    """Of everything after the login; more is answered with 204."""
    idle_seconds: float = 60.0
    """In which the provider neither sends nor reads; longer is answered with 206."""
    rate: int = 500
    """Bytes per second of a set, on average; slower is answered with 206."""
    rate_grace_seconds: float = 30.0
    """After the beginning of a set, before the rate is looked at."""
    total_seconds: float = 7200.0
    """Of the whole conversation; longer is answered with 206."""
    reply_bytes: int = 1024 * _KIB
    """Of URL errors that wait for a provider who does not read; at the bound nothing more is read from it."""
    linger_seconds: float = 60.0
    """After the answer, in which the rest is read and discarded; then the connection is cut."""
    linger_bytes: int = 64 * _KIB * _KIB
    """Read and discarded after the answer (64 MiB); then the connection is cut."""
    retry_after: int = 300
    """What 103, 104 and 203 advise when nothing better is known."""


DEFAULT_LIMITS = Limits()
