"""Metalink 4 (RFC 5854): one file and its mirrors, for programs that fetch from several."""

from collections.abc import Sequence

from lxml import etree

from lcc_scrapy import __version__
from lcc_scrapy.apps.tracker.lookup import Found, Replica
from lcc_scrapy.apps.tracker.rules.mirror_links import DIGESTS, country_of
from lcc_scrapy.apps.tracker.rules.tracked import Place

NAMESPACE = "urn:ietf:params:xml:ns:metalink"
"""Section 3."""


def metalink(place: Place, found: Found) -> bytes:
    """Return the document about a file. Its size is not known, a digest perhaps."""
    document = etree.fromstring(f'<metalink xmlns="{NAMESPACE}"/>')
    etree.SubElement(document, _named("generator")).text = f"lcc-scrapy/{__version__}"
    file = etree.SubElement(document, _named("file"), name=file_name(place))
    digest = bytes.fromhex(found.digest)
    if len(digest) in DIGESTS:
        etree.SubElement(file, _named("hash"), type=DIGESTS[len(digest)][0]).text = found.digest
    _add_urls(file, found.replicas)
    return etree.tostring(document, encoding="UTF-8", xml_declaration=True)


def _add_urls(file: etree._Element, replicas: Sequence[Replica]) -> None:
    for number, one in enumerate(replicas, 1):
        url = etree.SubElement(file, _named("url"), priority=str(number))
        country = country_of(one.domain)
        if country:
            url.set("location", country)
        url.text = one.url


def _named(element: str) -> str:
    return f"{{{NAMESPACE}}}{element}"


def file_name(place: Place) -> str:
    """Return the name of a file for somebody's disk, never a path; escaped where it has odd characters."""
    name = place.path[-1].decode("utf-8", "replace")
    as_it_is = name.isprintable() and "\ufffd" not in name and "\\" not in name
    return name if as_it_is else str(place).rpartition("/")[2]
