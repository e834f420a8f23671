"""What JSON says of a set and of its URLs, as messages of the protocol."""

import json
import re
from collections.abc import Mapping
from urllib.parse import urlsplit

from lcc_scrapy.push.filetypes import UNKNOWN, mimetype_of
from lcc_scrapy.uns.charsets import Unreadable
from lcc_scrapy.uns.grammar import CANONICAL, set_start
from lcc_scrapy.wire.messages import SetStart, Url
from lcc_scrapy.wire.writing import NOT_XML

URLS = "urls"
SET_FIELDS = frozenset({"set", "urlprefix", "id", "ifabsent", "outside", "dryrun"})
"""Those of a set, as the attributes of the XML element."""

PAGE = "text/html"
"""The type of a URL that says none and whose name has no ending that tells."""

_SHOWN = 40
_NAME = re.compile(r"(?!xml)[a-z_][a-z0-9_.-]{0,254}", re.IGNORECASE)
_decode = json.JSONDecoder(parse_int=str, parse_float=str, parse_constant=str).decode
"""Numbers stay text, for what they mean is read where attributes are read; long ones cost nothing."""


def value_of(raw: bytes) -> object:
    """Parse one value; raises ``Unreadable``."""
    try:
        return _decode(raw.decode())
    except RecursionError:
        raise Unreadable("too many nested values") from None
    except ValueError as error:  # also what is not UTF-8
        what = f"not JSON: {getattr(error, 'msg', 'not UTF-8')}"
        raise Unreadable(f"{what}: {raw[:_SHOWN].decode(errors='replace')!r}") from None


def set_of(fields: Mapping[str, object]) -> SetStart:
    """Return the beginning of a set; raises ``Unreadable``."""
    for name in fields:
        check_field(name)
    return set_start({name: _text(name, value) for name, value in fields.items() if value is not None})


def check_field(name: str) -> None:
    """Refuse a field that a set does not have; raises ``Unreadable``."""
    if name not in SET_FIELDS:
        raise Unreadable(f"unknown field {name[:_SHOWN]!r} of a set")


def url_of(value: object, most: int) -> Url:
    """Return a URL, given as text or as an object of at most so many attributes; raises ``Unreadable``."""
    if isinstance(value, str):
        text = _text("url", value)
        return Url({"curl": text, "mimetype": type_by_name(text)}, {"curl": text})
    if not isinstance(value, dict):
        raise Unreadable(f"a URL is text or an object, not {str(value)[:_SHOWN]!r}")
    if len(value) > most:
        raise Unreadable(f"more than {most} attributes in one URL")
    sent = {_name(name): _text(name, given) for name, given in value.items() if given is not None}
    attributes = {CANONICAL.get(name, name): text for name, text in sent.items()}
    if "mimetype" not in attributes:
        attributes["mimetype"] = type_by_name(attributes.get("curl", ""))
    return Url(attributes, sent)


def type_by_name(url: str) -> str:
    """Return the mimetype that the ending of a name stands for, as ``file2url`` would say it."""
    try:
        path = urlsplit(url).path
    except ValueError:
        return PAGE
    known = mimetype_of(path.rpartition("/")[2].encode("utf-8", "surrogatepass"))
    return PAGE if known == UNKNOWN else known


def _name(name: str) -> str:
    """Return the name of an attribute, which an answer may have to repeat in XML."""
    if not _NAME.fullmatch(name):
        raise Unreadable(f"no name of an attribute: {name[:_SHOWN]!r}")
    return name


def _text(name: str, value: object) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if not isinstance(value, str):
        raise Unreadable(f"{name[:_SHOWN]!r} is neither text nor a number")
    if NOT_XML.search(value):
        raise Unreadable(f"a character in {name[:_SHOWN]!r} that no XML can hold")
    return value
