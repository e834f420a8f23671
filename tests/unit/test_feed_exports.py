"""Exports: what is in them, whatever was in the URLs and headers, in bounded memory."""

import base64
import gzip
import io
import json
import random
import subprocess
import sys
import tarfile
import tracemalloc
import zipfile
from collections import Counter
from dataclasses import replace
from functools import partial
from hashlib import md5, sha256
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyarrow import parquet
from test_cli_cursor import FakeFeed, document, tombstone
from warcio.archiveiterator import ArchiveIterator
from warcio.checker import Checker

from lcc_scrapy.apps.exports import archives
from lcc_scrapy.apps.exports import parquet as parquet_format
from lcc_scrapy.apps.exports.formats import FORMATS
from lcc_scrapy.apps.exports.writing import Writing
from lcc_scrapy.content.files import relative_path
from lcc_scrapy.content.stored import decoded
from lcc_scrapy.domain.cache import UrlMeta
from lcc_scrapy.domain.cursor import Position
from lcc_scrapy.domain.entries import urlkey
from lcc_scrapy.domain.selection import Selection
from lcc_scrapy.feed.content import ContentElsewhere, ContentGone, ContentLost, LocalContent
from lcc_scrapy.feed.names import name_of
from lcc_scrapy.feed.reader import Reader
from lcc_scrapy.feed.text import NO_TEXT, PageText

ANSWERED = 1_800_000_000

BIN = Path(sys.executable).parent


class Shelf(FakeFeed):
    """A feed whose documents have contents and answers."""

    def __init__(self):
        super().__init__()
        self.contents = {}
        self.metas = {}
        self.owned = {}

    def add(self, body, headers=None, **values):
        seq = len(self.rows) + 1
        curl = values.get("curl", f"http://www.example.org/{seq}")
        row = document(
            seq, at=ANSWERED, fetched_len=len(body), fetched_md5=md5(body).hexdigest(),
            sha256=sha256(body).hexdigest(), fetched_fileid=seq, fetched_machineid=1,
            **{"furl": curl, "final_url": curl, "served_type": "text/html", "mtime": None, **values, "curl": curl},
        )  # fmt: skip
        row = replace(row, urlkey=urlkey(row.pid, row.curl, row.mimetype))
        self.rows.append(row)
        self.contents[row.urlkey] = body
        if headers is not None:
            self.metas[row.urlkey] = UrlMeta(
                row.urlkey, "HTTP/1.1 200 OK", json.dumps(headers), "192.0.2.1", ANSWERED
            )
        return row

    def remove(self):
        self.rows.append(tombstone(len(self.rows) + 1))

    def owners(self, rows, seen=0):
        return {row.urlkey: self.owned[row.urlkey] for row in rows if row.urlkey in self.owned}

    def answers(self, rows):
        return {row.urlkey: self.metas[row.urlkey] for row in rows if row.urlkey in self.metas}

    def open(self, row):
        if row.urlkey not in self.contents:
            raise ContentGone("read on")
        return io.BytesIO(self.contents[row.urlkey])


@pytest.fixture
def shelf():
    return Shelf()


def exported(shelf, form, out=None, read=None, **options):
    out = out or io.BytesIO()
    how = replace(FORMATS[form], make=partial(FORMATS[form].make, **options))
    writing = Writing(out, how, shelf, shelf.open, read)
    writing.run(Reader(shelf, Selection()), lambda _: None)
    return out.getvalue() if isinstance(out, io.BytesIO) else None


def lines(data):
    return [json.loads(line) for line in data.decode().splitlines()]


def from_tar(data):
    with tarfile.open(fileobj=io.BytesIO(data)) as tar:
        return {member.name: tar.extractfile(member).read() for member in tar}


def from_zip(data):
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        assert archive.testzip() is None
        return {name: archive.read(name) for name in archive.namelist()}


UNPACK = {"tar.gz": from_tar, "zip": from_zip}


@pytest.mark.parametrize("form", UNPACK)
def test_an_archive_holds_contents_and_a_manifest(shelf, form):
    row = shelf.add(b"hello")
    empty = shelf.add(b"", mimetype="application/x-unheard-of")
    shelf.remove()
    found = UNPACK[form](exported(shelf, form))
    manifest = lines(found.pop("manifest.jsonl"))
    assert found == {name_of(row): b"hello", name_of(empty): b""}
    assert name_of(row) == f"content/{row.docid[:2]}/{row.docid}.html"
    assert name_of(empty).endswith(f"{empty.docid}.bin")
    assert [one["op"] for one in manifest] == ["upsert", "upsert", "remove", "end"]
    assert [one["path"] for one in manifest[:3]] == [name_of(row), name_of(empty), None]
    assert (manifest[-1]["documents"], manifest[-1]["removals"]) == (2, 1)
    assert Position.parse(manifest[-1]["cursor"]).seq == 3


@given(st.text("abc/.é", min_size=1, max_size=120), st.integers(0, 1 << 70), st.integers(-5, 1 << 40))
def test_the_heads_of_files_are_those_that_tarfile_writes(name, size, at):
    assert archives._head(name, size, at) == archives._member(name, size, at)


def test_a_tar_is_what_tarfile_would_have_written(shelf):
    rows = [shelf.add(b"x" * size) for size in (0, 1, 511, 512, 513, 20_000, 300_000)]
    data = gzip.decompress(exported(shelf, "tar.gz"))
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as tar:
        for name, content in from_tar(data).items():
            member = tarfile.TarInfo(name)
            member.size, member.mtime = len(content), 0 if name == "manifest.jsonl" else rows[0].fetched_time
            tar.addfile(member, io.BytesIO(content))
    assert data == out.getvalue()


@pytest.mark.parametrize("form", ["tar.gz", "zip", "jsonl", "parquet"])
def test_the_same_export_is_the_same_file(shelf, form):
    for size in (10, 70_000, 600_000):
        shelf.add(random.Random(size).randbytes(size))
    assert exported(shelf, form) == exported(shelf, form)


@pytest.mark.parametrize("size", [10, 300_000])
def test_a_content_may_come_in_small_pieces(shelf, size):
    class Dripping(io.BytesIO):
        def read(self, size=-1):
            return super().read(min(size, 7))

    body = random.Random(1).randbytes(size)
    row = shelf.add(body)
    shelf.open = lambda row: Dripping(shelf.contents[row.urlkey])
    assert from_tar(exported(shelf, "tar.gz"))[name_of(row)] == body


def test_json_lines_hold_contents_and_end_with_the_cursor(shelf):
    body = random.Random(1).randbytes(1_000_001)
    row = shelf.add(body)
    shelf.add(b"")
    shelf.remove()
    one, empty, gone, end = lines(exported(shelf, "jsonl"))
    assert base64.b64decode(one["content"]) == body
    assert (one["op"], one["docid"], one["sha256"]) == ("upsert", row.docid, row.sha256)
    assert empty["content"] == ""
    assert (gone["op"], "content" in gone) == ("remove", False)
    assert (end["op"], Position.parse(end["cursor"]).seq) == ("end", 3)


def rows_of_parquet(data):
    return parquet.read_table(io.BytesIO(data)).to_pylist()


def metadata_of(data):
    found = parquet.ParquetFile(io.BytesIO(data)).metadata.metadata
    return {name.decode(): value.decode() for name, value in found.items() if name.startswith(b"lcc.")}


def test_parquet_holds_contents_and_ends_with_the_cursor(shelf):
    body = random.Random(1).randbytes(100_001)
    row = shelf.add(body, curl="http://www.example.org/\ud800")
    shelf.add(b"")
    shelf.remove()
    data = exported(shelf, "parquet")
    one, empty, gone = rows_of_parquet(data)
    assert (one["op"], one["docid"], one["seq"], one["len"]) == ("upsert", row.docid, 1, 100_001)
    assert (one["content"], one["sha256"], one["curl"]) == (
        body,
        row.sha256,
        "http://www.example.org/\\ud800",
    )
    assert empty["content"] == b""
    assert (gone["op"], gone["content"], gone["mimetype"]) == ("remove", None, "text/html")
    end = metadata_of(data)
    assert Position.parse(end.pop("lcc.cursor")).seq == 3
    assert end == {"lcc.documents": "2", "lcc.removals": "1"}


def test_parquet_of_nothing_has_its_columns_and_the_cursor(shelf):
    data = exported(shelf, "parquet")
    assert rows_of_parquet(data) == []
    assert {"op", "docid", "content"} <= set(parquet.read_schema(io.BytesIO(data)).names)
    assert "lcc.cursor" in metadata_of(data)


def test_parquet_goes_out_by_groups(shelf, monkeypatch):
    monkeypatch.setattr(parquet_format, "GROUP", 4_000_000)
    row = shelf.add(b"", [])
    shelf.rows = [replace(row, seq=seq, fetched_len=1_000_000) for seq in range(1, 101)]
    shelf.open = lambda _: io.BufferedReader(Zeros(1_000_000))
    before = pa.total_allocated_bytes()
    peaks = []

    class Watching(io.BytesIO):
        def write(self, data):
            peaks.append(pa.total_allocated_bytes() - before)
            return super().write(data)

    out = Watching()
    tracemalloc.start()
    exported(shelf, "parquet", out)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert parquet.ParquetFile(io.BytesIO(out.getvalue())).num_row_groups == 25
    assert peak < 10_000_000
    assert 0 < max(peaks) < 20_000_000


def test_parquet_leaves_out_what_is_too_large_for_memory(shelf, monkeypatch):
    monkeypatch.setattr(parquet_format, "CONTENT_MAX", 5)
    shelf.add(b"12345")
    shelf.add(b"123456")
    assert [(row["content"], row["len"]) for row in rows_of_parquet(exported(shelf, "parquet"))] == [
        (b"12345", 5),
        (None, 6),
    ]


@pytest.mark.parametrize("form", ["jsonl", "parquet"])
def test_rows_hold_texts_and_need_no_contents(shelf, form):
    shelf.add(b"read me")
    shelf.add(b"nothing to read")
    shelf.remove()
    texts = [PageText("Title", "caf\xe9"), NO_TEXT]
    data = exported(shelf, form, read=lambda row: texts[row.seq - 1], content=False)
    rows = rows_of_parquet(data) if form == "parquet" else lines(data)
    assert [(row.get("title"), row.get("text")) for row in rows[:3]] == [
        ("Title", "caf\xe9"),
        (None, None),
        (None, None),
    ]
    assert not any("content" in row for row in rows)


@pytest.mark.parametrize("form", ["jsonl", "parquet"])
def test_rows_name_the_owners_of_documents_and_of_removals(shelf, form):
    row = shelf.add(b"one")
    shelf.add(b"two")
    shelf.remove()
    shelf.owned = {row.urlkey: ["anna", "bert"], shelf.rows[2].urlkey: ["anna"]}
    data = exported(shelf, form)
    rows = rows_of_parquet(data) if form == "parquet" else lines(data)
    assert [one["owners"] for one in rows[:3]] == [["anna", "bert"], [], ["anna"]]


def test_rows_say_nothing_of_texts_that_nobody_asked_for(shelf):
    shelf.add(b"read me")
    assert "text" not in lines(exported(shelf, "jsonl"))[0]
    assert rows_of_parquet(exported(shelf, "parquet"))[0]["text"] is None


@pytest.mark.parametrize("form", FORMATS)
def test_what_is_gone_meanwhile_is_left_to_the_next_export(shelf, form):
    shelf.add(b"here")
    gone = shelf.add(b"replaced meanwhile")
    del shelf.contents[gone.urlkey]
    out = io.BytesIO()
    writing = Writing(out, FORMATS[form], shelf, shelf.open)
    assert writing.run(Reader(shelf, Selection()), lambda _: None).seq == 2
    assert (writing.written.documents, writing.written.changed) == (1, 1)
    assert gone.docid.encode() not in out.getvalue()


@pytest.mark.parametrize("form", FORMATS)
@pytest.mark.parametrize("stored", [b"shor", b"longer"])
def test_a_content_of_another_length_stops_the_export(shelf, form, stored):
    row = shelf.add(b"right")
    shelf.contents[row.urlkey] = stored
    with pytest.raises(ContentLost, match="lcc verify --repair"):
        exported(shelf, form)


def hostile_urls():
    chance = random.Random(7)
    parts = [
        "../", "/etc/passwd", "..\\", "\x00", "\r\n", "\x1b[2J", "C:\\", "//", "a" * 2000, "\u202e", "%2e%2e/", "\ud7ff",
        "~root/", "'; drop table", "\t", "\x7f", "é", "|", "`id`", "-rf", "con", ".", "manifest.jsonl",
    ]  # fmt: skip
    return ["".join(chance.choices(parts, k=chance.randint(1, 6))) + str(number) for number in range(500)]


@pytest.mark.parametrize("form", FORMATS)
def test_five_hundred_hostile_urls_stay_inside(shelf, form, tmp_path):
    for number, url in enumerate(hostile_urls()):
        shelf.add(
            b"x",
            [["X-Url", url]],
            curl=url,
            furl=url,
            final_url=f"http://{url}" if number % 2 else url,
            served_type=url[:100],
            mimetype="../../x",
        )
    data = exported(shelf, form)
    target = tmp_path / "target"
    target.mkdir()
    if form == "tar.gz":
        subprocess.run(["tar", "-xzP"], input=data, cwd=target, check=True)  # -P: as it stands there
    elif form == "zip":
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            archive.extractall(target)
    elif form == "jsonl":
        assert len(data.decode().split("\n")) == 502
    elif form == "parquet":
        assert {row["docid"] for row in rows_of_parquet(data)} == {row.docid for row in shelf.rows}
    else:
        assert_is_good_warc(data, tmp_path)
        kinds = Counter(record.rec_type for record in ArchiveIterator(io.BytesIO(data)))
        assert kinds == {"warcinfo": 1, "response": 250, "resource": 250, "metadata": 1}
    assert [path.name for path in tmp_path.iterdir() if path.suffix != ".warc"] == ["target"]
    if form in UNPACK:
        expected = {name_of(row) for row in shelf.rows} | {"manifest.jsonl"}
        assert {str(path.relative_to(target)) for path in target.rglob("*") if path.is_file()} == expected


# --- WARC ----------------------------------------------------------------------------------------


def assert_is_good_warc(data, tmp_path):
    path = tmp_path / "x.warc"
    path.write_bytes(data)

    class Asked:
        inputs = [str(path)]  # noqa: RUF012
        verbose = True

    checker = Checker(Asked())
    assert checker.process_all() == 0


def responses(data):
    for record in ArchiveIterator(io.BytesIO(data), check_digests="raise"):
        if record.rec_type in {"response", "resource"}:
            yield record, record.content_stream().read()


def test_a_response_is_replayed_byte_by_byte(shelf, tmp_path, capsys):
    body = b"<p>" + bytes(range(256)) * 300
    shelf.add(
        body,
        [
            ["Content-Type", "text/html"], ["Content-Encoding", "gzip"], ["Transfer-Encoding", "chunked"],
            ["Content-Length", "17"], ["Set-Cookie", "a=1"], ["Set-Cookie", "b=2"], ["X-Break", "a\r\nInjected: yes"],
            ["Bad Name", "x"], ["X-Latin", "caf\xe9"],
        ],
        final_url="http://www.example.org/a b\r\nWARC-Type: evil",
    )  # fmt: skip
    data = exported(shelf, "warc")
    assert_is_good_warc(data, tmp_path)
    ((record, replayed),) = responses(data)
    assert replayed == body
    http = record.http_headers
    assert http.get_statuscode() == "200"
    assert http.get_header("Content-Length") == str(len(body))
    assert http.get_header("Content-Encoding") is None
    assert http.get_header("X-Archive-Orig-Content-Encoding") == "gzip"
    assert http.get_header("X-Archive-Orig-Transfer-Encoding") == "chunked"
    assert [value for name, value in http.headers if name == "Set-Cookie"] == ["a=1", "b=2"]
    assert http.get_header("Injected") is None
    warc = record.rec_headers
    assert warc.get_header("WARC-Target-URI") == "http://www.example.org/a%20b%0D%0AWARC-Type:%20evil"
    assert warc.get_header("WARC-Date") == "2027-01-15T08:00:00Z"
    assert warc.get_header("WARC-IP-Address") == "192.0.2.1"
    assert warc.get_header("WARC-Payload-Digest") == "sha256:" + sha256(body).hexdigest()


def test_a_body_in_a_coding_that_nobody_knows_keeps_its_header(shelf, tmp_path):
    shelf.add(b"as it came", [["Content-Encoding", "x-own"]])
    data = exported(shelf, "warc")
    assert_is_good_warc(data, tmp_path)
    ((record, replayed),) = responses(data)
    assert (record.http_headers.get_header("Content-Encoding"), replayed) == ("x-own", b"as it came")


def test_a_document_without_an_answer_is_a_resource(shelf, tmp_path):
    shelf.add(b"%PDF", None, served_type="application/pdf")
    data = exported(shelf, "warc")
    assert_is_good_warc(data, tmp_path)
    ((record, replayed),) = responses(data)
    assert (record.rec_type, replayed) == ("resource", b"%PDF")
    assert record.rec_headers.get_header("Content-Type") == "application/pdf"


def test_the_manifest_of_a_warc_is_its_last_record(shelf):
    shelf.add(b"x", [])
    shelf.remove()
    records = [
        (one.rec_type, one.content_stream().read())
        for one in ArchiveIterator(io.BytesIO(exported(shelf, "warc")))
    ]
    assert [kind for kind, _ in records] == ["warcinfo", "response", "metadata"]
    assert [one["op"] for one in lines(records[-1][1])] == ["upsert", "remove", "end"]


def test_a_cdxj_indexer_gives_each_record_a_key_of_its_own(shelf, tmp_path):
    shelf.add(b"x", [])
    shelf.add(b"y", None)
    archive = tmp_path / "all.warc.gz"
    archive.write_bytes(exported(shelf, "warc"))
    done = subprocess.run([BIN / "cdxj-indexer", "-s", archive], capture_output=True, text=True, check=True)
    keys = [line.partition(" ")[0] for line in done.stdout.splitlines()]
    assert len(set(keys)) == len(keys) == 3
    assert [key for key in keys if not key.startswith("org,example")] == ["urn:lcc:manifest"]


# --- memory --------------------------------------------------------------------------------------


class Nowhere(io.RawIOBase):
    def writable(self):
        return True

    def write(self, data):
        return len(data)


class Zeros(io.RawIOBase):
    def __init__(self, size):
        self.left = size

    def readable(self):
        return True

    def readinto(self, buffer):
        size = min(len(buffer), self.left)
        buffer[:size] = bytes(size)
        self.left -= size
        return size


@pytest.mark.parametrize("form", [form for form in FORMATS if form != "parquet"])
def test_a_large_document_is_never_in_memory(shelf, form):
    size = 20_000_000
    row = shelf.add(b"", [])
    shelf.rows[0] = replace(row, fetched_len=size, sha256=sha256(bytes(size)).hexdigest())
    shelf.open = lambda _: io.BufferedReader(Zeros(size))
    tracemalloc.start()
    exported(shelf, form, Nowhere())
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 6_000_000


# --- contents ------------------------------------------------------------------------------------


def stored(tmp_path, body, machineid=1):
    path = tmp_path / relative_path(machineid, 5)
    path.parent.mkdir(parents=True)
    path.write_bytes(body)
    return document(1, fetched_machineid=machineid, fetched_fileid=5)


def test_content_of_this_machine_is_read_from_its_file(tmp_path):
    row = stored(tmp_path, b"hello")
    with decoded(LocalContent(tmp_path).open(row), row.file_encoding) as stream:
        assert stream.read() == b"hello"


def test_a_compressed_file_is_read_as_the_site_served_it(tmp_path):
    body = b"hello " * 100_000
    row = replace(stored(tmp_path, gzip.compress(body)), file_encoding="gzip")
    with decoded(LocalContent(tmp_path).open(row), row.file_encoding) as stream:
        assert stream.read(7) == body[:7]
        assert stream.read() == body[7:]


def test_content_that_can_be_nowhere_else_is_lost_not_elsewhere(tmp_path):
    row = document(1, fetched_machineid=2, fetched_fileid=5)
    with pytest.raises(FileNotFoundError):
        LocalContent(tmp_path, is_ours=lambda number: number == 2).open(row)
    with pytest.raises(ContentElsewhere):
        LocalContent(tmp_path, is_ours=lambda number: number == 1).open(row)


def test_content_of_another_machine_is_an_error_unless_somebody_can_fetch_it(tmp_path):
    (tmp_path / "1").mkdir()
    row = document(1, fetched_machineid=2, fetched_fileid=5)
    with pytest.raises(ContentElsewhere, match="machine 2"):
        LocalContent(tmp_path).open(row)

    class Others:
        def open(self, row):
            return io.BytesIO(row.docid.encode())

    assert LocalContent(tmp_path, Others()).open(row).read() == row.docid.encode()
    missing = replace(row, fetched_machineid=1)
    with pytest.raises(FileNotFoundError):
        LocalContent(tmp_path, Others()).open(missing)
