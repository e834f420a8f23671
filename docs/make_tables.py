"""Write the table of settings into settings.md, out of their declarations.

Run ``python docs/make_tables.py`` after a change of a setting. A test tells when it was forgotten.
"""

import re
from pathlib import Path

from lcc_scrapy.config.config import every_setting
from lcc_scrapy.runtime.apps import ours

PAGE = Path(__file__).with_name("settings.md")
_BETWEEN_MARKS = re.compile(r"(<!-- settings: begin -->\n).*?(<!-- settings: end -->)", re.DOTALL)


def settings_table() -> str:
    """Return every setting with its default and meaning, as Markdown."""
    rows = [
        f"| `{setting.name}` | {f'`{setting.default}`' if setting.default else ''} | {setting.meaning} "
        f"| {'live' if setting.live else 'restart'} |"
        for setting in every_setting(ours())
    ]
    return "\n".join(["| setting | default | meaning | change |", "|---|---|---|---|", *rows])


def with_table(page: str) -> str:
    """Return the page with the part between its marks replaced."""
    return _BETWEEN_MARKS.sub(lambda marks: f"{marks[1]}\n{settings_table()}\n\n{marks[2]}", page)


def main() -> None:
    """Bring the page up to date."""
    PAGE.write_text(with_table(PAGE.read_text(encoding="utf-8")), encoding="utf-8")


if __name__ == "__main__":
    main()
