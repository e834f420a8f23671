"""Items of a Redis key as producers of scrapy-redis write them: a URL, or a JSON object with one.

They are read as by ``RedisMixin.make_request_from_data`` of scrapy-redis 0.9: ``url`` and ``method`` make the
request, ``meta`` is for callbacks, all other members are form data. Form data of a GET replace the query of
its URL.
"""

import json
from collections.abc import Iterator, Mapping
from typing import Any
from urllib.parse import urlencode, urlsplit, urlunsplit

from lcc_scrapy.domain.errors import UrlRefused

ITEM_MAX = 65_536
"""Bytes of one item; a longer one is refused."""


def url_of(item: bytes, encoding: str = "utf-8") -> str:
    """Return the URL that an item asks for, as written; raises ``UrlRefused`` (701, 705, 706, 707).

    A request that is no GET is refused: the LCC keeps what a URL serves to everybody.
    """
    if len(item) > ITEM_MAX:
        raise UrlRefused(707, f"item of {len(item)} bytes, at most {ITEM_MAX}")
    try:
        text = item.decode(encoding)
    except (UnicodeDecodeError, LookupError):
        raise UrlRefused(705, f"item is not {encoding}") from None
    members = _object(text)
    return text if members is None else _requested(members)


def _object(text: str) -> dict[str, Any] | None:
    try:
        read = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return read if isinstance(read, dict) else None


def _requested(members: Mapping[str, Any]) -> str:
    url = members.get("url")
    if url is None:
        raise UrlRefused(701, "item without url")
    if not isinstance(url, str):
        raise UrlRefused(705, "url is no text")
    if str(members.get("method", "GET")).upper() != "GET":
        raise UrlRefused(706, "method is not GET")
    form = {name: value for name, value in members.items() if name not in {"url", "method", "meta"}}
    return _with_query(url, form) if form else url


def _with_query(url: str, form: Mapping[str, Any]) -> str:
    try:
        return urlunsplit(urlsplit(url)._replace(query=urlencode(list(_pairs(form)))))
    except ValueError as error:
        raise UrlRefused(705, str(error)) from None


def _pairs(form: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    for name, value in form.items():
        for one in value if isinstance(value, list) else [value]:
            if not isinstance(one, str):
                raise UrlRefused(706, f"{name[:40]} is no text")
            yield name, one
