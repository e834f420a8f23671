"""A cookie of this server, as a browser sends it back."""

from collections.abc import Iterable

from fastapi import Request


def cookie(request: Request, name: str) -> str:
    """Return the value of a cookie, "" = there is none."""
    return cookie_of(request.headers.getlist("cookie"), name)


def cookie_of(lines: Iterable[str], name: str) -> str:
    """Return the value of a cookie out of ``Cookie`` headers, "" = there is none.

    Nor is there one where several differ: a page of a neighbouring host may have planted one of them. Ours
    have no quotes, for which Python's own reader takes quadratic time (CVE-2024-7592).
    """
    pairs = (pair.partition("=") for line in lines for pair in line.split(";"))
    found = {value.strip() for key, _, value in pairs if key.strip() == name}
    return found.pop() if len(found) == 1 else ""
