"""Write the diagrams of states into their pages, out of the tables in the code.

Run ``python docs/make_diagrams.py`` after a change of a table. A test tells when it was forgotten.
"""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from lcc_scrapy.apps.query import states as query_states
from lcc_scrapy.domain import turn_states
from lcc_scrapy.uns import states as uns_states

PAGES: Mapping[str, list[Mapping[Any, Any]]] = {
    "protocol-states.md": [uns_states.TABLE],
    "query-states.md": [query_states.TABLE],
    "turn-states.md": [turn_states.WINDOW, turn_states.FETCHES],
}
"""The tables of each page, in the order of its diagrams."""

_ARROWS = re.compile(r"(    \[\*\] --> \w+\n).*?(    \w+ --> \[\*\]\n)", re.DOTALL)


def arrows(table: Mapping[Any, Any]) -> str:
    """Return the lines of a Mermaid state diagram."""
    events: dict[Any, list[str]] = {}
    for (state, event), following in table.items():
        events.setdefault((state, following), []).append(getattr(event, "__name__", event))
    return "".join(f"    {start} --> {end}: {', '.join(names)}\n" for (start, end), names in events.items())


def with_diagrams(name: str, page: str) -> str:
    """Return a page with the arrows of its diagrams replaced."""
    tables = iter(PAGES[name])
    return _ARROWS.sub(lambda ends: f"{ends[1]}{arrows(next(tables))}{ends[2]}", page)


def main() -> None:
    """Bring the pages up to date."""
    for name in PAGES:
        page = Path(__file__).with_name(name)
        page.write_text(with_diagrams(name, page.read_text(encoding="utf-8")), encoding="utf-8")


if __name__ == "__main__":
    main()
