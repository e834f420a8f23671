"""Foreign text made fit to be shown: nothing that steers a terminal or forges a line, no password."""

from __future__ import annotations

import re

_PASSWORD_IN_URL = re.compile(r"(?<=://)([^\s/?#:@'\"]*):[^\s/?#]*@")


def printable(text: str) -> str:
    r"""Make what is no visible character visible as ``\x1b``, ``\u202e``, ….

    That is C0 and C1 controls, line ends (U+2028 too), bidirectional overrides, surrogates, and what
    Unicode has not assigned.
    """
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode("ascii") for c in text)


def without_passwords(text: str) -> str:
    """Blank the passwords of URLs: ``mysql://lcc:***@db/lcc``."""
    return _PASSWORD_IN_URL.sub(r"\1:***@", text) if "://" in text else text
