"""WebSub (W3C Recommendation, 2018): what a subscriber says to a hub, and what it believes of one. No I/O."""

import hmac
import re
import secrets
from collections.abc import Mapping
from dataclasses import dataclass, replace
from urllib.parse import urlencode

from lcc_scrapy.apps.sources.rules import Source

LEASE = 864_000
"""Seconds for which a subscription is asked for; a hub may say otherwise."""

LONGEST_LEASE = 30 * 86_400
"""Seconds after which a subscription is renewed at the latest, whatever its hub says."""

CHALLENGE_MAX = 1024
SUBSCRIBE, UNSUBSCRIBE, DENIED = "subscribe", "unsubscribe", "denied"

_METHODS = frozenset({"sha1", "sha256", "sha384", "sha512"})
_SIGNATURE = re.compile(r"([a-z0-9]{4,6})=([0-9a-fA-F]{40,128})")


def prepared(source: Source, hub: str, topic: str) -> Source:
    """Return a source whose hub is about to be asked for a subscription: to be kept before that.

    The name of its callback and its secret are made once for each hub: one that is left can send nothing.
    """
    if hub != source.hub:
        source = replace(source, callback=secrets.token_urlsafe(24), secret=secrets.token_urlsafe(32))
    lease = source.lease if (hub, topic) == (source.hub, source.topic) else 0
    return replace(source, hub=hub, topic=topic, lease=lease, asked=SUBSCRIBE)


def callback_url(public_url: str, source: Source) -> str:
    """Return where a hub reaches the callback of a source."""
    return f"{public_url.rstrip('/')}/v1/websub/{source.callback}"


def form(source: Source, public_url: str, mode: str) -> bytes:
    """Return the body of a request to a hub (section 5.1)."""
    said = {"hub.mode": mode, "hub.topic": source.topic, "hub.callback": callback_url(public_url, source)}
    if mode == SUBSCRIBE:
        said |= {"hub.lease_seconds": str(LEASE), "hub.secret": source.secret}
    return urlencode(said).encode("ascii")


def needs_subscription(source: Source, hub: str, topic: str, now: int) -> bool:
    """Tell whether a hub has to be asked: there is no subscription, or it ends before two more looks."""
    ends_soon = source.lease - now < 2 * source.every
    return ends_soon or (source.hub, source.topic) != (hub, topic)


@dataclass(frozen=True, slots=True)
class Verdict:
    """What to do about a verification of intent: echo the ``challenge``, and keep ``source`` as it is now.

    ``source`` None = it is gone; the challenge "" = there is nothing to confirm (404).
    """

    source: Source | None
    challenge: str = ""


def verified(source: Source, said: Mapping[str, str], now: int) -> Verdict:
    """Judge a hub's verification of intent (section 5.3): only what was asked for is confirmed."""
    mode, challenge = said.get("hub.mode", ""), said.get("hub.challenge", "")
    if said.get("hub.topic") != source.topic or not mode or mode not in {source.asked, DENIED}:
        return Verdict(source)
    if mode == DENIED:
        why = f"its hub denies the subscription: {said.get('hub.reason', '')[:100]}"
        return Verdict(replace(source, asked="", lease=0, error=_plain(why)), "denied")
    if not 0 < len(challenge) <= CHALLENGE_MAX:
        return Verdict(source)
    if mode == UNSUBSCRIBE:
        return Verdict(None, challenge)
    lease = now + _lease(said.get("hub.lease_seconds", ""))
    return Verdict(replace(source, asked="", lease=lease), challenge)


def _lease(text: str) -> int:
    seconds = int(text) if text.isascii() and text.isdigit() and len(text) < 12 else LEASE  # noqa: PLR2004
    return max(60, min(seconds, LONGEST_LEASE))


def is_signed(secret: str, header: str, body: bytes) -> bool:
    """Tell whether content was signed with the secret (section 8): ``sha256=…`` in X-Hub-Signature."""
    said = _SIGNATURE.fullmatch(header.strip())
    if said is None or said[1] not in _METHODS or not secret:
        return False
    right = hmac.new(secret.encode(), body, said[1]).hexdigest()
    return hmac.compare_digest(right, said[2].lower())


def _plain(text: str) -> str:
    return " ".join(text.split()).encode("ascii", "backslashreplace").decode()[:255]
