"""A Scrapy project of somebody else's, in which the LCC's spiders are at home too."""

from pathlib import Path
from textwrap import dedent


def make_project(folder: Path, files: dict[str, str]) -> Path:
    """Write a project named ``shop``: ``scrapy.cfg``, packages, and the given files below ``shop/``."""
    package = folder / "shop"
    (package / "spiders").mkdir(parents=True)
    (folder / "scrapy.cfg").write_text("[settings]\ndefault = shop.settings\n")
    for name in ("__init__.py", "spiders/__init__.py"):
        (package / name).touch()
    for name, text in files.items():
        (package / name).write_text(dedent(text))
    return folder
