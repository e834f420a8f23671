"""What the ``detail`` of an ACI says, for people: which words were found, and what changed."""

import json
import re
from dataclasses import dataclass

from lcc_scrapy.domain.acis import Aci

SHOWN_MAX = 50
"""Keywords, or changed sentences, that are shown."""

_WORDS_MAX = 200


@dataclass(frozen=True, slots=True)
class Detail:
    """What can be shown of an ACI. ``diff`` is a unified diff, "" = there is none."""

    keywords: tuple[str, ...] = ()
    added: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()
    diff: str = ""


def detail_of(aci: Aci) -> Detail:
    """Read the detail of an ACI; what is not as expected is left out."""
    try:
        found = json.loads(aci.detail or "{}")
    except (ValueError, RecursionError):
        return Detail()
    if not isinstance(found, dict):
        return Detail()
    diff = found.get("diff", "")
    return Detail(
        _texts(found.get("keywords")),
        _texts(found.get("added")),
        _texts(found.get("removed")),
        diff if isinstance(diff, str) else "\n".join(_texts(diff)),
    )


def _texts(found: object) -> tuple[str, ...]:
    """Return the texts of a list, of the keys of an object, or of objects that have a ``key``."""
    if not isinstance(found, (list, dict)):
        return ()
    named = (one.get("key") if isinstance(one, dict) else one for one in found)
    return tuple(one for one in named if isinstance(one, str))[:SHOWN_MAX]


def marked(text: str, keywords: tuple[str, ...]) -> list[tuple[str, bool]]:
    """Cut a text into pieces, each with whether it is one of the keywords; whole words, in whichever case."""
    words = sorted({one for one in keywords[:_WORDS_MAX] if one.strip()}, key=len, reverse=True)
    if not words:
        return [(text, False)] if text else []
    spelt = (r"\W+".join(map(re.escape, one.split())) for one in words)
    parts = re.split(rf"(?<!\w)({'|'.join(spelt)})(?!\w)", text, flags=re.IGNORECASE)
    return [(part, number % 2 == 1) for number, part in enumerate(parts) if part]
