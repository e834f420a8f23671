"""What a user asked for: where to, as whom, which kind of set."""

from __future__ import annotations

import ssl
from dataclasses import dataclass, replace

from lcc_scrapy.push import quota
from lcc_scrapy.push.client import Server
from lcc_scrapy.wire.messages import Init, SetStart


@dataclass(frozen=True)
class Plan:
    """What the user asked for. ``start.set_id`` is empty unless the user named the set."""

    address: Server
    login: Init
    start: SetStart
    tls: ssl.SSLContext | None = None
    timeout: float = 300.0
    retries: int = 0
    over_quota: quota.OverQuota = quota.OverQuota.WARN
    errors_kept: int = 20

    def with_kind(self, *, full: bool) -> Plan:
        """Return the plan for a full or a partial set."""
        return replace(self, start=replace(self.start, full=full))
