"""Formats by name: those that come along, and ``module:NAME`` for those of a team of its own."""

import sys
from importlib import import_module

from lcc_scrapy.apps.exports.formats import FORMATS
from lcc_scrapy.apps.exports.indexers.formats import INDEXERS
from lcc_scrapy.apps.exports.indexers.interface import IndexFormat
from lcc_scrapy.apps.exports.interface import ExportFormat
from lcc_scrapy.domain.errors import ConfigurationError

NAMES = (*FORMATS, *INDEXERS)


def choose(name: str) -> ExportFormat | IndexFormat:
    """Return a format; modules are looked for in the current folder too. Raises ``ConfigurationError``."""
    module, colon, attribute = name.partition(":")
    if not colon:
        found = {**FORMATS, **INDEXERS}.get(name)
        if found is None:
            known = ", ".join(NAMES)
            raise ConfigurationError(f"no format {name!r}: there are {known}, and MODULE:NAME for your own")
        return found
    form = _imported(module, attribute)
    if not isinstance(form, ExportFormat | IndexFormat):
        raise ConfigurationError(f"{name} is no format: make it an ExportFormat or an IndexFormat")
    return form


def _imported(module: str, attribute: str) -> object:
    if "" not in sys.path:
        sys.path.insert(0, "")
    try:
        return getattr(import_module(module), attribute)
    except (ImportError, AttributeError, ValueError) as error:
        raise ConfigurationError(f"no format {module}:{attribute}: {error}") from None
