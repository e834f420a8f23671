"""How changes are written for programs."""

import csv
import io
import json
from xml.etree import ElementTree as ET

import pytest
from hypothesis import given
from hypothesis import strategies as st
from test_cli_cursor import document, tombstone

from lcc_scrapy.feed.row_formats import COLUMNS, FORMATS, RawCsv, record

TEXT = st.text(st.characters(exclude_categories=["Cs", "Cc"]))


def path_of(machineid, fileid):
    return f"/content/{machineid}/{fileid}"


def written(name, records):
    form = FORMATS[name](COLUMNS)
    half = len(records) // 2
    return form.begin() + form.records(records[:half]) + form.records(records[half:]) + form.end()


@given(st.lists(st.fixed_dictionaries(dict.fromkeys(COLUMNS, TEXT | st.none()))))
def test_json_lines_are_read_back_as_written(records):
    lines = written("jsonl", records).split("\n")
    assert lines.pop() == ""
    assert [json.loads(line) for line in lines] == records


def raw(records):
    form = RawCsv(COLUMNS)
    return form.begin() + form.records(records) + form.end()


def cells(text):
    return list(csv.DictReader(io.StringIO(text, newline="")))


@given(st.lists(st.fixed_dictionaries(dict.fromkeys(COLUMNS, TEXT))))
def test_raw_csv_is_read_back_as_written(records):
    assert cells(raw(records)) == records


@given(st.lists(st.fixed_dictionaries(dict.fromkeys(COLUMNS, st.text("=+-@\t\r'a1", max_size=4)))))
def test_csv_is_read_back_as_written_but_for_an_apostrophe_before_what_would_run(records):
    for row, read in zip(records, cells(written("csv", records)), strict=True):
        for name, value in row.items():
            runs = value[:1] in {"=", "+", "-", "@", "\t", "\r"} and value != ""
            assert read[name] == "'" * runs + value


@pytest.mark.parametrize("value", ["=cmd|' /C calc'!A0", "+1", "-1+1", "@SUM(A1)", "\t=1", "\r=1"])
def test_no_cell_of_csv_is_a_formula(value):
    one = {**record(tombstone(1), path_of), "curl": value}
    assert cells(written("csv", [one]))[0]["curl"] == "'" + value
    assert cells(raw([one]))[0]["curl"] == value


def test_numbers_of_csv_stay_numbers():
    one = {**record(document(1), path_of), "mtime": -5, "len": 0}
    read = cells(written("csv", [one]))[0]
    assert (read["mtime"], read["len"], read["reason"]) == ("-5", "0", "")


@given(st.lists(st.fixed_dictionaries(dict.fromkeys(COLUMNS, TEXT | st.none()))))
def test_xml_is_well_formed_and_leaves_out_what_is_not_there(records):
    expected = [
        {
            name: value.translate({0xFFFE: 0xFFFD, 0xFFFF: 0xFFFD})
            for name, value in one.items()
            if value is not None
        }
        for one in records
    ]
    assert [element.attrib for element in ET.fromstring(written("xml", records).encode())] == expected


def test_xml_can_hold_any_url():
    one = {**record(tombstone(1), path_of), "curl": "a\x01<&\"'>\ud800"}
    element = ET.fromstring(written("xml", [one]).encode())[0]
    assert element.get("curl") == "a\ufffd<&\"'>\ufffd"


def test_a_document_and_a_removal_have_the_same_columns():
    here, gone = record(document(1), path_of), record(tombstone(2), path_of)
    assert tuple(here) == tuple(gone) == COLUMNS
    assert (here["op"], gone["op"]) == ("upsert", "remove")
    assert here["docid"] == "01" * 16
    assert here["removed_time"] is None
    assert (gone["removed_time"], gone["reason"], gone["path"]) == (1000, "gone", None)


@pytest.mark.parametrize(("name", "nothing"), [("jsonl", ""), ("csv", ",".join(COLUMNS) + "\n")])
def test_nothing_is_written_as_nothing(name, nothing):
    assert written(name, []) == nothing


OWNED = {document(1).urlkey: ["anna", "zoë"]}


@pytest.mark.parametrize("row", [document(1, owners_seq=1), tombstone(1)])
def test_owners_are_a_list_in_json_and_names_with_blanks_between_them_elsewhere(row):
    one = record(row, path_of, OWNED)
    assert tuple(one) == COLUMNS
    assert json.loads(written("jsonl", [one]))["owners"] == ["anna", "zoë"]
    assert cells(written("csv", [one]))[0]["owners"] == cells(raw([one]))[0]["owners"] == "anna zoë"
    assert ET.fromstring(written("xml", [one]).encode())[0].get("owners") == "anna zoë"


def test_without_owners_the_list_is_empty_and_xml_has_none():
    one = record(document(2, owners_seq=0), path_of, OWNED)
    assert (json.loads(written("jsonl", [one]))["owners"], one["owners_seq"]) == ([], None)
    assert cells(written("csv", [one]))[0]["owners"] == ""
    assert "owners" not in ET.fromstring(written("xml", [one]).encode())[0].attrib
