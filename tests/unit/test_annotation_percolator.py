"""URDs as percolator queries, read by OpenSearch's own schema."""

import json

import pytest
from google.protobuf.json_format import ParseDict, ParseError
from opensearch.protobufs.schemas.common_pb2 import QueryContainer
from test_feed_indexers import check_operation

from lcc_scrapy.annotation.percolator import bulk_lines, query
from lcc_scrapy.domain.urds import EVERYTHING, Keyword, Process, Urd

FOLDER = "http://www.example.org/"
WORDS = (Keyword("ibm"), Keyword("java virtual machine", 4))
IBM = {"multi_match": {"query": "ibm", "type": "phrase", "fields": ["title", "body"], "boost": 1}}
RULE = 'any(ibm, all(java, not("java beans")), near/5(java, "virtual machine"))'


def of(uri=EVERYTHING, **values):
    return query(Urd(7, "anna", uri, **values))["bool"]


def phrase(words, **more):
    return {"multi_match": {"query": words, "type": "phrase", "fields": ["title", "body"], **more}}


def test_each_keyword_is_a_phrase_with_its_weight_and_one_is_enough():
    found = of(keywords=WORDS)
    assert found["filter"] == []
    either = [phrase("ibm", boost=1), phrase("java virtual machine", boost=4)]
    assert found["must"] == [{"bool": {"should": either, "minimum_should_match": 1}}]


@pytest.mark.parametrize(
    ("uri", "scope"),
    [
        (EVERYTHING, []),
        (FOLDER, [{"prefix": {"link": FOLDER}}]),
        (FOLDER + "a", [{"term": {"link": FOLDER + "a"}}]),
    ],
    ids=["everything", "folder", "page"],
)
def test_the_scope_is_a_filter(uri, scope):
    assert of(uri, keywords=WORDS)["filter"] == scope


def test_a_change_without_keywords_is_every_page_in_scope():
    assert of(processtype=Process.CHANGE)["must"] == [{"match_all": {}}]


def test_a_rule_keeps_its_operators():
    (wanted,) = of(processtype=Process.RULE, rule=RULE)["must"]
    ibm, both, near = wanted["bool"]["should"]
    assert ibm == phrase("ibm")
    assert both == {"bool": {"must": [phrase("java"), {"bool": {"must_not": [phrase("java beans")]}}]}}
    together = phrase("java virtual machine", slop=5 + 3)
    assert near == {"bool": {"must": [together, phrase("virtual machine")]}}


@pytest.mark.parametrize(
    "urd",
    [
        {"keywords": WORDS},
        {"keywords": WORDS, "uri": FOLDER},
        {"keywords": WORDS, "uri": FOLDER + "a"},
        {"processtype": Process.CHANGE},
        {"processtype": Process.RULE, "rule": RULE},
    ],
    ids=["words", "folder", "page", "change", "rule"],
)
def test_queries_are_those_of_the_schema(urd):
    ParseDict(as_schema({"bool": of(**urd)}), QueryContainer())


@pytest.mark.parametrize(
    "wrong", [{"boool": {}}, {"multi_match": {"querry": "a"}}, {"bool": {"may": []}}], ids=str
)
def test_other_queries_are_not(wrong):
    with pytest.raises(ParseError):
        ParseDict(as_schema(wrong), QueryContainer())


def as_schema(told):
    """Write a query of JSON as the schema has it, which names fields and unions."""
    if isinstance(told, list):
        return [as_schema(one) for one in told]
    if not isinstance(told, dict):
        return told
    return {name: _as_schema(name, value) for name, value in told.items()}


def _as_schema(name, value):
    if name in {"term", "prefix"}:
        ((field, wanted),) = value.items()
        return {"field": field, "value": {"string": wanted} if name == "term" else wanted}
    if name == "type":
        return f"TEXT_QUERY_TYPE_{value.upper()}"
    return {"int32": value} if name == "minimum_should_match" else as_schema(value)


def test_the_lines_are_those_of_the_bulk_interface():
    urd = Urd(7, "größe", FOLDER, urgency=2, threshold=9, expires=5, keywords=(Keyword('a"\u2028\\ü'),))
    data = bulk_lines(urd)
    action, document = [json.loads(line) for line in data.decode("ascii").split("\n")[:-1]]
    check_operation(action)
    assert action == {"index": {"_id": "7"}}
    assert {name: document[name] for name in document if name != "query"} == {
        "owner": "größe",
        "urgency": 2,
        "threshold": 9,
        "expires": 5,
    }
    assert document["query"] == query(urd)
