"""How the documentation is built: ``python -m sphinx -W -b html docs docs/_build/html``."""

from pygments.lexers.special import TextLexer
from sphinx.application import Sphinx

from lcc_scrapy import __version__

project = "lcc-scrapy"
copyright = "the lcc-scrapy authors"
version = release = __version__
extensions = ["myst_parser"]
source_suffix = {".md": "markdown"}
exclude_patterns = ["_build"]
html_theme = "furo"
html_title = f"lcc-scrapy {version}"
myst_heading_anchors = 3


def setup(app: Sphinx) -> None:
    """Show the state diagram as text: drawing it would need a script from elsewhere."""
    app.add_lexer("mermaid", TextLexer)
