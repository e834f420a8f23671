"""Settings of the dashboard of ``lcc web``."""

import re
from dataclasses import dataclass

from lcc_scrapy.domain import notations as read
from lcc_scrapy.domain.settings import setting

_HEADER = re.compile(r"[A-Za-z0-9-]{1,64}")


def header_name(text: str) -> str:
    """Read the name of a header, empty = none; raises ``ValueError``."""
    text = str(text).strip()
    if text and not _HEADER.fullmatch(text):
        raise ValueError(f"{text!r}, expected the name of a header, for example Remote-User")
    return text.lower()


# fmt: off
@dataclass(frozen=True, slots=True)
class DashboardRules:
    """How people sign in to the dashboard, and where it searches."""

    user_header: str = setting("LCC_DASHBOARD_USER_HEADER", "", header_name, "Header in which a proxy among LCC_WEB_PROXIES says which user of the [dashboard](dashboard.md) it has signed in: `Remote-User`, `X-Auth-Request-Preferred-Username`. Empty = none, people sign in with their passwords.")
    session: float = setting("LCC_DASHBOARD_SESSION", "12h", read.period, "How long somebody stays signed in to the dashboard.")
    search_index: str = setting("LCC_SEARCH_INDEX", "", str.strip, "Full-text index in which the [dashboard](dashboard.md#search) searches: the file of `lcc export --format fts5 -o FILE`. Empty = texts are not searched.")
# fmt: on
