"""URDs as queries of Elasticsearch and OpenSearch: documents with a field of type ``percolator``.

They are written after the documentation of these servers ("Percolator", "Bulk"). Each query finds every text
that matters to its URD, and more: no query counts occurrences, so the threshold is a field beside it.
"""

import json
from typing import Any

from lcc_scrapy.domain.boolean_rules import AllOf, AnyOf, Near, Not, Rule, Term, parse_rule
from lcc_scrapy.domain.urds import EVERYTHING, Keyword, Process, Urd

Query = dict[str, Any]

FIELDS = ("title", "body")
"""The fields of a text, as ``lcc export --format opensearch`` names them; ``link`` is its address."""


def bulk_lines(urd: Urd) -> bytes:
    """Return the two lines of a URD for the bulk interface; ``_id`` is its number."""
    return _line({"index": {"_id": str(urd.urdid)}}) + _line(document(urd))


def document(urd: Urd) -> Query:
    """Return the document of a URD."""
    return {
        "query": query(urd),
        "owner": urd.owner,
        "urgency": urd.urgency,
        "threshold": urd.threshold,
        "expires": urd.expires,
    }


def query(urd: Urd) -> Query:
    """Return what finds the texts in scope that may matter to a URD; pages reached by links are not found."""
    return {"bool": {"must": [_wanted(urd)], "filter": _scope(urd.uri)}}


def _scope(uri: str) -> list[Query]:
    if uri == EVERYTHING:
        return []
    return [{"prefix" if uri.endswith("/") else "term": {"link": uri}}]


def _wanted(urd: Urd) -> Query:
    if urd.processtype is Process.RULE:
        return _of_rule(parse_rule(urd.rule).rule)
    if not urd.keywords:
        return {"match_all": {}}
    return _any([_of_keyword(one) for one in urd.keywords])


def _of_keyword(one: Keyword) -> Query:
    return {"multi_match": {**_phrase(one.key), "boost": one.weight}}


def _of_rule(rule: Rule) -> Query:
    match rule:
        case Term(key):
            return {"multi_match": _phrase(key)}
        case AnyOf(parts):
            return _any([_of_rule(part) for part in parts])
        case AllOf(parts):
            return {"bool": {"must": [_of_rule(part) for part in parts]}}
        case Not(part):
            return {"bool": {"must_not": [_of_rule(part)]}}
        case Near(distance, terms):
            return _near(distance, list(dict.fromkeys(terms)))
    raise AssertionError(rule)


def _phrase(words: str) -> Query:
    return {"query": words, "type": "phrase", "fields": list(FIELDS)}


def _any(queries: list[Query]) -> Query:
    return {"bool": {"should": queries, "minimum_should_match": 1}}


def _near(distance: int, terms: list[str]) -> Query:
    """Return what finds terms near each other: all their words in one phrase, as sloppy as it has to be.

    A word stands as far from its place in the phrase as the terms from each other, and all words more.
    """
    words = " ".join(terms)
    together = {"multi_match": {**_phrase(words), "slop": distance + len(words.split(" "))}}
    return {"bool": {"must": [together, *({"multi_match": _phrase(term)} for term in terms if " " in term)]}}


def _line(value: object) -> bytes:
    return json.dumps(value).encode() + b"\n"
