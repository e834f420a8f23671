"""Meta-information: the seed's form, well-formed whatever was said, and nothing of it lost."""

import json
from dataclasses import fields, replace
from xml.etree import ElementTree as ET

from hypothesis import given
from hypothesis import strategies as st
from test_cli_cursor import document

from lcc_scrapy.domain.cache import UrlMeta
from lcc_scrapy.domain.versions import version_of
from lcc_scrapy.feed.meta_information import NAMESPACE, MetaInfo, as_record, as_xml

W = f"{{{NAMESPACE}}}"
HEADERS = [
    ["Server", "Netscape-FastTrack/2.01"],
    ["Date", "Fri, 11 May 2001 13:50:10 GMT"],
    ["Content-length", "1800"],
]
ROW = document(
    5,
    curl="http://www.cs.ucy.ac.cy/~epl121/",
    furl="http://www.cs.ucy.ac.cy/~epl121/",
    burl=None,
    fetched_machineid=1,
    fetched_fileid=4711,
    fetched_len=1800,
    last_modified="Fri, 26 Jan 2001 21:46:08 GMT",
    confirmed_time=2000,
)
ANSWER = UrlMeta(ROW.urlkey, "HTTP/1.0 200 OK", json.dumps(HEADERS), "194.42.7.2", 1500)
LINKS = ("http://www.cs.ucy.ac.cy/Computing/labs.html", "http://www.cs.ucy.ac.cy/")


def path_of(machineid, fileid):
    return f"/srv/{machineid}/{fileid}"


def parsed(meta):
    return ET.fromstring(as_xml(meta, path_of).encode())


def test_the_elements_of_the_seed_come_first_and_in_its_order():
    text = as_xml(MetaInfo(ROW, ANSWER, LINKS), path_of)
    assert text.startswith(
        '<?xml version="1.0" encoding="UTF-8"?>\n'
        f'<webrace:meta xmlns:webrace="{NAMESPACE}">\n'
        "  <webrace:url>http://www.cs.ucy.ac.cy/~epl121/</webrace:url>\n"
        "  <webrace:ip>194.42.7.2</webrace:ip>\n"
        "  <webrace:kbytes>1</webrace:kbytes>\n"
        "  <webrace:ifmodifiedsince>980545568000</webrace:ifmodifiedsince>\n"
        "  <webrace:header>\n"
        "    HTTP/1.0 200 OK\n"
        "    Server: Netscape-FastTrack/2.01\n"
        "    Date: Fri, 11 May 2001 13:50:10 GMT\n"
        "    Content-length: 1800\n"
        "  </webrace:header>\n"
        "  <webrace:links>\n"
        "    http://www.cs.ucy.ac.cy/Computing/labs.html\n"
        "    http://www.cs.ucy.ac.cy/\n"
        "  </webrace:links>\n"
        f"  <webrace:docid>{ROW.docid}</webrace:docid>\n"
    )


def test_further_facts_and_earlier_contents_follow():
    kept = tuple(version_of(replace(ROW, seq=seq, fetched_fileid=seq), 1900) for seq in (4, 3))
    found = parsed(MetaInfo(ROW, ANSWER, (), kept))
    assert found.findtext(f"{W}length") == "1800"
    assert found.findtext(f"{W}path") == "/srv/1/4711"
    assert found.find(f"{W}burl") is None
    versions = found.findall(f"{W}versions/{W}version")
    assert [one.get("path") for one in versions] == ["/srv/1/4", "/srv/1/3"]
    assert {one.get("replaced_time") for one in versions} == {"1900"}


def test_what_is_not_known_is_left_out():
    found = parsed(MetaInfo(replace(ROW, last_modified="long ago"), None))
    assert found.find(f"{W}ip") is None
    assert found.find(f"{W}ifmodifiedsince") is None
    assert found.findtext(f"{W}header").strip() == ""


ANY = st.text(st.characters() | st.sampled_from('\ud800\0\x85\u2028\r\n\ufffe<&"'), max_size=40)


@given(st.lists(st.tuples(ANY, ANY), max_size=4), ANY, ANY, ANY, st.lists(ANY.filter(str.strip), max_size=4))
def test_it_is_well_formed_whatever_was_said_and_every_line_is_one(headers, status, curl, etag, links):
    answer = replace(ANSWER, headers=json.dumps(headers), status_line=status, peer=etag)
    row = replace(ROW, curl=curl, furl=curl, subtype=etag, last_modified=etag, final_url=curl)
    meta = MetaInfo(row, answer, tuple(links), (version_of(replace(row, served_type=etag), 9),))
    found = parsed(meta)
    assert {element.tag for element in found} <= {f"{W}{name}" for name in _names(meta)}
    header = found.findtext(f"{W}header").split("\n")[1:-1]
    assert len(header) == len(headers) + 1
    assert len(found.findtext(f"{W}links").split("\n")[1:-1]) == len(links)
    json.dumps(as_record(meta, path_of))


def _names(meta):
    return {
        "url",
        "ip",
        "kbytes",
        "ifmodifiedsince",
        "header",
        "links",
        "versions",
        *as_record(meta, path_of),
    }


def test_a_version_has_the_names_of_the_row_it_was():
    row_names = {field.name for field in fields(ROW)}
    version = version_of(ROW, 1900)
    assert {field.name for field in fields(version)} - row_names == {"replaced_time"}
