"""References to other places as browsers resolve them (URL Standard): Location, links, sitemaps, feeds.

``ada`` parses them: what it returns has no dot segments, backslashes or line ends. ``HttpUrl`` refuses what
may not be requested, and writes the rest as it is requested and stored.
"""

import re

from ada_url import join_url, normalize_url

from lcc_scrapy.domain.errors import UrlRefused
from lcc_scrapy.domain.roots import HttpUrl

_BEYOND_ASCII = re.compile(rb"[\x80-\xff]")
_AROUND = "".join(map(chr, range(33)))
_INSIDE = str.maketrans("", "", "\t\r\n")
_LONGEST = 100_000
"""Characters of a reference that are looked at; nothing near it is a URL that can be requested."""


def resolve(reference: str, base: str) -> str:
    """Return the absolute URL, of any scheme and without fragment, that a reference at ``base`` means.

    Raises ``UrlRefused`` 705 for what is no URL.
    """
    if len(reference) > _LONGEST:
        raise UrlRefused(707, f"URL of {len(reference)} characters")
    try:
        url = join_url(base, reference) if base else normalize_url(reference)
    except ValueError:
        raise UrlRefused(705, "no valid URL") from None
    return url.partition("#")[0]


def without_blanks(reference: str) -> str:
    """Return a reference without the blanks around and the line ends and tabs inside, which do not count.

    For who encodes a part of it before it is resolved.
    """
    return reference.strip(_AROUND).translate(_INSIDE)


def http_url(reference: str, base: str) -> HttpUrl:
    """Return what a reference at ``base`` leads to; raises ``UrlRefused`` as ``HttpUrl.parse`` does."""
    return HttpUrl.parse(resolve(reference, base))


def redirect(location: bytes, base: HttpUrl) -> HttpUrl:
    """Return where a ``Location`` leads, to be requested as a browser would; raises as ``http_url`` does.

    Its octets go into the request as they came, percent-encoded. A host must be UTF-8.
    """
    ascii_only = _BEYOND_ASCII.sub(lambda octet: b"%%%02X" % octet[0][0], location)
    return HttpUrl.as_written(resolve(ascii_only.decode("ascii"), str(base)))
