"""Runs: many plain URLs of one set, checked together; the fast way beside ``entries.read_entry``.

A value is *plain* when it stands for itself: nothing in it is decoded, normalised or escaped, wherever it is
written. What is not plain is none the worse, it is only looked at by itself. Here each check is one look at a
whole column. What is accepted is a part of what ``read_entry`` accepts, with the same result.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from lcc_scrapy.domain.entries import RENDERED, EntryRules, Operation, accepts
from lcc_scrapy.domain.sent import form_of_run

_URL = r"[A-Za-z0-9_.~/%:=&?+!$,;@()*-]+"
PLAIN: Mapping[str, str] = {
    "curl": _URL,
    "burl": _URL,
    "furl": _URL,
    "op": "update|remove",
    "mimetype": r"[a-z0-9!#$^_.+*-]{1,63}/[a-z0-9!#$^_.+*-]{1,63}",
    "mtime": "0|[1-9][0-9]{0,12}",
    "len": "0|[1-9][0-9]{0,17}",
    "md5": "[0-9a-f]{32}",
}
"""Regular expressions of plain values, by attribute. Those of a URL are plain behind a root's beginning."""

_PLAIN_PREFIX = re.compile(f"(?!.*(?:%|/[.])){_URL}")
_ANOTHER_PATH = re.compile("%2[eEfF]|%5[cC]")

Columns = Mapping[str, Sequence[str]]
"""Values by canonical attribute name, one for each URL of a run."""


@dataclass(frozen=True, slots=True)
class RunRules:
    """What a set's runs are checked against; made once for a set."""

    rules: EntryRules
    beginnings: tuple[str, ...]
    """Of the roots; none when the set's prefix is not plain, so that no run of it is taken together."""
    prefix_is_below: bool
    """Whether all that plainly follows the set's prefix lies below a root."""

    @classmethod
    def of(cls, rules: EntryRules) -> "RunRules":
        """Prepare the rules of a set."""
        prefix, beginnings = rules.urlprefix, tuple[str, ...]()
        if not prefix or _PLAIN_PREFIX.fullmatch(prefix):
            beginnings = tuple(beginning for root in rules.roots for beginning in root.beginnings())
        return cls(rules, beginnings, prefix.startswith(beginnings))


@dataclass(frozen=True, slots=True)
class EntryRun:
    """Entries of one operation, update or remove, as columns of plain text; None = not said of any.

    All are browsable, none has a subtype or hours of its own. Removals have curl and mimetype only.
    """

    operation: Operation
    curls: Sequence[str]
    mimetypes: Sequence[str]
    furls: Sequence[str] = ()
    burls: Sequence[str] = ()
    mtimes: Sequence[str] | None = None
    lengths: Sequence[str] | None = None
    md5s: Sequence[str] | None = None
    sent: str = ""
    """The form (``domain.sent``) of all that were updated."""

    def __len__(self) -> int:
        return len(self.curls)


def read_run(
    columns: Columns, run_rules: RunRules, names: Mapping[str, str] | None = None
) -> EntryRun | None:
    """Check plain URLs together; None = look at them one by one, to see what is wrong or special.

    ``columns`` hold ``PLAIN`` values only, curl and mimetype among them; ``names``: how they were spelled.
    """
    operations = set(columns.get("op", ("update",)))
    curls = _whole(columns["curl"], run_rules)
    if len(operations) > 1 or curls is None or RENDERED in columns["mimetype"]:
        return None
    if operations == {"remove"}:
        return EntryRun(Operation.REMOVE, curls, columns["mimetype"])
    furls = _whole(columns["furl"], run_rules) if "furl" in columns else curls
    burls = _whole(columns["burl"], run_rules) if "burl" in columns else curls
    accepted = all(accepts(run_rules.rules.mimetypes, mimetype) for mimetype in set(columns["mimetype"]))
    if furls is None or burls is None or not accepted:
        return None
    declared = (columns.get("mtime"), columns.get("len"), columns.get("md5"))
    whole = {"curl": curls, "furl": furls, "burl": burls}
    relative = {
        (names or {}).get(name, name): name in whole and whole[name] is not column
        for name, column in columns.items()
    }
    form = form_of_run(relative, run_rules.rules.urlprefix)
    return EntryRun(Operation.UPDATE, curls, columns["mimetype"], furls, burls, *declared, sent=form)


def _whole(urls: Sequence[str], run_rules: RunRules) -> Sequence[str] | None:
    """Return the URLs with the set's prefix when each is as it will be requested, and below a root."""
    rules = run_rules.rules
    lines = "\n".join(("", *urls, ""))
    if "/." in lines or "\n." in lines or "?\n" in lines or ("%" in lines and _ANOTHER_PATH.search(lines)):
        return None
    relative = "://" not in lines
    if relative:
        urls = [rules.urlprefix + url for url in urls]
    below = (relative and run_rules.prefix_is_below) or all(
        url.startswith(run_rules.beginnings) for url in urls
    )
    return urls if below and max(map(len, urls)) <= rules.url_length else None
