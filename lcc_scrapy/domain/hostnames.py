"""Names of hosts in the one ASCII form by which they are compared, stored and looked up (UTS 46).

Non-transitional, as in browsers: ``ß``, ``ς`` and joiners stay what they are. ``idna.encode`` is stricter: it
refuses emoji and ``_``, which are in use. Names that are ASCII already are not looked into.
"""

import re
import unicodedata

from idna import IDNAError, check_bidi, uts46_remap
from idna.core import check_initial_combiner, valid_contextj

_LABEL_MAX = 63
_JOINERS = re.compile("[\u200c\u200d]")
_PREFIX = "xn--"
_RIGHT_TO_LEFT = frozenset({"R", "AL", "AN"})


def ascii_name(name: str) -> str:
    """Return a name in lower case and ASCII; raises ``ValueError`` for one that no resolver takes."""
    made = name.lower() if name.isascii() else _encoded(name)
    labels = made.removesuffix(".").split(".")
    if not all(0 < len(label) <= _LABEL_MAX for label in labels):
        raise ValueError("an empty or too long label")
    return made


def _encoded(name: str) -> str:
    try:
        labels = uts46_remap(name, std3_rules=False).split(".")
        is_bidi = any(unicodedata.bidirectional(one) in _RIGHT_TO_LEFT for label in labels for one in label)
        for label in labels:
            _check(label, is_bidi=is_bidi)
    except IDNAError as error:
        raise ValueError(str(error)) from None
    return ".".join(
        label if label.isascii() else _PREFIX + label.encode("punycode").decode() for label in labels
    )


def _check(label: str, *, is_bidi: bool) -> None:
    """Check a label as UTS 46 section 4.1 does; with ``is_bidi`` all labels of its name, too (RFC 5893)."""
    if is_bidi and label:
        check_bidi(label, check_ltr=True)
    if label.isascii():
        return
    if label.startswith(_PREFIX):
        raise ValueError(f"{label!r} is said to be ASCII")
    check_initial_combiner(label)
    if not all(valid_contextj(label, found.start()) for found in _JOINERS.finditer(label)):
        raise ValueError(f"a joiner that joins nothing in {label!r}")


def former_name(name: str) -> str:
    """Return the form of an ASCII name that IDNA 2003 gave it, which older roots have; empty = the same."""
    try:
        labels = (
            label[len(_PREFIX) :].encode().decode("punycode") if label.startswith(_PREFIX) else label
            for label in name.split(".")
        )
        former = ".".join(labels).encode("idna").decode().lower()
    except UnicodeError:
        return ""
    return "" if former == name else former
