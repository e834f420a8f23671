"""A profile as a form: what its fields say, and what is made of them."""

from collections.abc import Mapping
from datetime import UTC, datetime

from markupsafe import Markup

from lcc_scrapy.domain.directives import DEPTH_MAX
from lcc_scrapy.domain.errors import BadField
from lcc_scrapy.domain.notations import duration
from lcc_scrapy.domain.urd_rules import THRESHOLD_MAX, TIMING_MAX
from lcc_scrapy.domain.urds import Keyword, Method, Process, Urd
from lcc_scrapy.web import html

FIELDS = frozenset(
    {"uri", "processtype", "keywords", "rule", "threshold", "urgency", "timing", "depth", "expires", "do"}
)
SEVERAL = frozenset({"keywords", "rule"})
"""Fields with several lines."""

_PROCESSES = {
    str(Process.FILTER): "it has these keywords",
    str(Process.RULE): "it meets this rule",
    str(Process.CHANGE): "it changes",
}
_URGENCIES = {"2": "at once", "1": "soon", "0": "in the daily digest"}
_UNITS = ((86_400, "d"), (3600, "h"), (60, "m"), (1, "s"))
_DIGITS_MAX = 15


def fields(values: Mapping[str, str]) -> list[Markup]:
    """Return the fields of a profile's form."""
    said = values.get
    return [
        html.field("uri", "Pages", "A URL; a folder, if it ends in /; or * for the whole cache.",
                   said("uri", "*"), required=True),
        html.choice("processtype", "Tell me if", "", _PROCESSES,
                    said("processtype", "filter")),
        html.lines("keywords", "Keywords", "One a line: a word or a phrase, and = what each of them counts,"
                   " as in: java = 4", said("keywords", "")),
        html.lines("rule", "Rule", 'For "it meets this rule": any, all, not and NEAR over words.',
                   said("rule", ""), rows=2),
        html.number("threshold", "Relevance from which a page matters", "The sum of what its keywords count.",
                    _number(said("threshold", "1")), least=0, most=THRESHOLD_MAX),
        html.choice("urgency", "When to tell me", "", _URGENCIES, said("urgency", "1")),
        html.field("timing", "How often to look at the page", "For example 10m or 1d; 0 = whenever the cache"
                   " fetches it anyway.", said("timing", "0")),
        html.number("depth", "Links to follow from there", "0 = the page itself only.",
                    _number(said("depth", "0")), least=0, most=DEPTH_MAX),
        html.field("expires", "Until (optional)", "A day like 2030-12-31; empty = for ever.",
                   said("expires", "")),
    ]  # fmt: skip


def _number(text: str) -> int:
    return int(text) if text.isascii() and text.isdigit() and len(text) <= _DIGITS_MAX else 0


def values_of(urd: Urd) -> dict[str, str]:
    """Return what the fields of a profile say."""
    until = "" if urd.expires is None else f"{datetime.fromtimestamp(urd.expires / 1000, UTC):%Y-%m-%d}"
    return {
        "uri": urd.uri,
        "processtype": str(urd.processtype),
        "keywords": "\n".join(f"{one.key} = {one.weight}" for one in urd.keywords),
        "rule": urd.rule,
        "threshold": str(urd.threshold),
        "urgency": str(urd.urgency),
        "timing": _span(urd.timing),
        "depth": str(urd.depth),
        "expires": until,
    }


def _span(milliseconds: int) -> str:
    seconds, rest = divmod(milliseconds, 1000)
    if rest or not seconds:
        return f"{milliseconds / 1000:g}" if rest else "0"
    length, unit = next((length, unit) for length, unit in _UNITS if seconds % length == 0)
    return f"{seconds // length}{unit}"


def urd_of(values: Mapping[str, str], owner: str, before: Urd | None = None) -> Urd:
    """Return what a form says; it is not checked further. Raises ``BadField``."""
    process = values.get("processtype", "")
    if process not in list(Process):
        raise BadField("processtype", "choose one of the list")
    return Urd(
        before.urdid if before else 0,
        owner,
        values.get("uri", "").strip(),
        _timing(values.get("timing", "")),
        before.lastcheck if before else 0,
        method=before.method if before else Method.PULL,
        processtype=Process(process),
        rule=values.get("rule", "").strip() if process == Process.RULE else "",
        depth=_whole("depth", values.get("depth", "")),
        urgency=_whole("urgency", values.get("urgency", "")),
        threshold=_whole("threshold", values.get("threshold", "")),
        expires=_day(values.get("expires", "")),
        keywords=tuple(map(_keyword, filter(str.strip, values.get("keywords", "").splitlines()))),
    )


def _keyword(line: str) -> Keyword:
    key, equals, weight = line.rpartition("=")
    if not equals:
        return Keyword(line.strip())
    return Keyword(key.strip(), _whole(f"keywords, {line.strip()[:40]}", weight))


def _timing(text: str) -> int:
    try:
        milliseconds = int(duration(text.strip() or "0") * 1000)
    except ValueError as error:
        raise BadField("timing", str(error)) from None
    if milliseconds > TIMING_MAX:
        raise BadField("timing", "at most ten years")
    return milliseconds


def _whole(name: str, text: str) -> int:
    digits = text.strip()
    if not (digits.isascii() and digits.isdigit() and len(digits) <= _DIGITS_MAX):
        raise BadField(name, "write a whole number")
    return int(digits)


def _day(text: str) -> int | None:
    if not text.strip():
        return None
    try:
        return int(datetime.strptime(text.strip(), "%Y-%m-%d").replace(tzinfo=UTC).timestamp() * 1000)
    except (ValueError, OverflowError):
        raise BadField("expires", "write a day like 2030-12-31") from None
