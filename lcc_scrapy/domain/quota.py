"""The space and files a provider may use (seed 001 "Provider information": ``filesmax``, ``spacemax``)."""

from lcc_scrapy.domain.providers import Provider

FILES = 609
SPACE = 610


def refusal(provider: Provider, files: int, space: int, before: int | None, length: int) -> int:
    """Return 609 or 610 when a body of ``length`` bytes does not fit, 0 when it is to be stored.

    ``files`` and ``space`` (bytes) are in use now; ``before`` is the length of the copy that the body
    replaces, None for a new document. What does not make usage grow always fits, also over the quota.
    """
    if before is None and provider.filesmax and files >= provider.filesmax:
        return FILES
    growth = length - (before or 0)
    return SPACE if provider.spacemax and growth > 0 and space + growth > provider.spacemax else 0
