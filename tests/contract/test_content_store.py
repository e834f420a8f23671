"""Contents on disk and in object storage: the same promises."""

import socket
from types import SimpleNamespace

import pytest

from lcc_scrapy.apps.object_storage import objects
from lcc_scrapy.apps.object_storage.checks import CHECK
from lcc_scrapy.apps.object_storage.objects import ContentObjects, split_url
from lcc_scrapy.config.config import load
from lcc_scrapy.config.project import PlainSettings
from lcc_scrapy.content.files import ContentFiles
from lcc_scrapy.content.store import content_store, factory_of
from lcc_scrapy.domain.cache import Body, LazyBody
from lcc_scrapy.domain.errors import ConfigurationError, NotDurable, StoreUnavailable
from lcc_scrapy.feed.content import StoredContent
from lcc_scrapy.ops.doctor import Finding, State
from lcc_scrapy.runtime.apps import NO_APPS, App, Apps, ours, read_apps
from tests.s3_server import CREDENTIALS, s3_server


@pytest.fixture(scope="module")
def server():
    with s3_server() as running:
        yield running


@pytest.fixture(autouse=True)
def credentials(monkeypatch):
    for name, value in CREDENTIALS.items():
        monkeypatch.setenv(name, value)


@pytest.fixture(params=["files", "objects"])
def contents(request, tmp_path):
    """The contents of machine 1, and a function that makes those of another one."""
    url = ""
    if request.param == "objects":
        url = request.getfixturevalue("server").url.replace("/contents", f"/{tmp_path.name}")
    made = stored(url, tmp_path, 1)
    made.of_machine = lambda number: stored(url, tmp_path, number)
    return made


def stored(url, folder, machineid):
    return content_store(url, folder, machineid, factory_of(url, ours()))


def read(contents, *which):
    with contents.open(*which) as file:
        return file.read()


def test_what_was_kept_is_read_as_it_was(contents):
    contents.keep([(1, LazyBody(b"one")), (2, LazyBody(b"")), (999_999_999, LazyBody(b"far"))])
    assert [read(contents, fileid) for fileid in (1, 2, 999_999_999)] == [b"one", b"", b"far"]
    assert contents.stat(1).size == 3


def test_a_commit_that_is_tried_again_replaces_what_it_wrote(contents):
    contents.keep([(1, LazyBody(b"half"))])
    contents.keep([(1, LazyBody(b"whole"))])
    assert read(contents, 1) == b"whole"


def test_a_large_body_goes_from_its_file_and_comes_back_in_ranges(contents, tmp_path):
    data = bytes(range(256)) * 80_000  # 20 MB: several parts
    body = tmp_path / "body"
    body.write_bytes(data)
    contents.keep([(1, Body(len(data), "", "", path=str(body)))])
    with contents.open(1) as file:
        assert file.read(10) == data[:10]
        assert file.read() == data[10:]


def test_a_content_that_is_not_there_is_said_to_be_missing(contents):
    with pytest.raises(FileNotFoundError):
        contents.open(5)
    with pytest.raises(FileNotFoundError):
        contents.stat(5)


def test_what_was_removed_is_gone_and_may_be_removed_again(contents):
    contents.keep([(fileid, LazyBody(b"x")) for fileid in (1, 2, 3)])
    assert contents.remove([1, 2]) == [1, 2]
    assert contents.remove([1, 2, 7]) == [1, 2, 7]
    assert list(contents.all_files()) == [(3, 1)]


def test_a_block_is_listed_alone_and_in_order(contents):
    contents.keep([(fileid, LazyBody(b"x")) for fileid in (10, 9, 8, 1000, 1_000_010)])
    assert contents.files_from(9) == [9, 10]
    assert contents.files_from(2000) == []


def test_all_contents_of_a_machine_are_listed_and_none_of_another(contents):
    contents.keep([(fileid, LazyBody(b"x" * fileid)) for fileid in (1, 20, 1000)])
    contents.of_machine(11).keep([(2, LazyBody(b"other"))])
    assert sorted(contents.all_files()) == [(1, 1), (20, 20), (1000, 1000)]
    assert read(contents, 2, 11) == b"other"


def test_the_highest_id_is_that_of_any_machine(contents):
    assert contents.highest_id() == 0
    contents.keep([(9, LazyBody(b"x"))])
    contents.of_machine(2).keep([(10, LazyBody(b"x"))])
    assert contents.highest_id() == contents.of_machine(0).highest_id() == 10


def test_more_than_a_thousand_are_kept_listed_and_removed(contents):
    fileids = list(range(1, 1102))
    contents.keep([(fileid, LazyBody(b"x")) for fileid in fileids])
    assert sorted(fileid for fileid, _ in contents.all_files()) == fileids
    assert contents.remove(fileids) == fileids
    assert list(contents.all_files()) == []


# --- object storage alone -------------------------------------------------------------------------


@pytest.fixture
def nobody(monkeypatch):
    """A URL at which no server answers."""
    monkeypatch.setattr(objects, "RETRYING", 1)
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))  # bound and not listening: connections are refused
        yield f"s3://lcc/x?endpoint=http://127.0.0.1:{bound.getsockname()[1]}"


def test_a_server_that_is_away_makes_a_commit_fail_that_may_go_through_later(nobody):
    with pytest.raises(NotDurable, match="object storage") as raised:
        ContentObjects(nobody, 1).keep([(1, LazyBody(b"x"))])
    assert "not-a-secret" not in str(raised.value)
    assert "\n" not in str(raised.value)


def test_a_content_user_is_told_that_the_storage_is_away(nobody):
    row = SimpleNamespace(fetched_machineid=1, fetched_fileid=2, docid="d")
    with pytest.raises(StoreUnavailable, match="object storage"):
        StoredContent(ContentObjects(nobody, 0)).open(row)


def test_what_cannot_be_deleted_now_stays_for_later(nobody):
    assert ContentObjects(nobody, 1).remove([1, 2]) == []


def test_a_commit_of_which_one_object_fails_leaves_none(server, tmp_path):
    contents = ContentObjects(server.url.replace("/contents", f"/{tmp_path.name}"), 1)
    missing = Body(1, "", "", path=str(tmp_path / "missing"))
    with pytest.raises(NotDurable):
        contents.keep([(1, LazyBody(b"x")), (2, missing)])
    assert list(contents.all_files()) == []


def test_a_bucket_that_is_not_there_is_not_taken_for_contents_that_are_lost(server):
    contents = ContentObjects(server.url.replace("//lcc", "//other"), 1)
    with pytest.raises(OSError, match="no such bucket") as raised:
        contents.open(1)
    assert not isinstance(raised.value, FileNotFoundError)
    with pytest.raises(OSError, match="no such bucket") as raised:
        contents.stat(1)
    assert not isinstance(raised.value, FileNotFoundError)


def findings(url):
    return list(
        CHECK(load(PlainSettings({"LCC_DATA_DIR": "/x", "LCC_CONTENT_URL": url}, {}), {}), None, dict)
    )


def test_doctor_puts_gets_and_deletes_an_object(server, nobody):
    assert findings(server.url) == [Finding("object storage", State.OK, server.url.partition("?")[0])]
    assert list(ContentObjects(server.url, 0).all_files()) == []
    (found,) = findings(nobody)
    assert found.state is State.PROBLEM
    assert "cannot put an object" in found.text


@pytest.mark.parametrize("url", ["", "elsewhere://lcc"])
def test_doctor_looks_at_no_contents_of_others(url):
    assert findings(url) == []


def test_an_object_is_called_by_its_url(server):
    assert ContentObjects(server.url, 1).name_of(1_002_003) == "s3://lcc/contents/1/001/002/1002003"


def test_a_url_says_bucket_prefix_and_endpoint():
    assert split_url("s3://b") == ("b", "", "")
    assert split_url("s3://b/p/q/?endpoint=https://h:1") == ("b", "p/q", "https://h:1")


@pytest.mark.parametrize(
    "url", ["http://b", "s3:///p", "s3://b?x=1", "s3://b?endpoint=h", "s3://b#x", "s3://[", "s3://k:hunter2@b", "s3://b?endpoint=http://k:hunter2@h"]
)  # fmt: skip
def test_a_url_that_cannot_be_used_is_refused_without_being_repeated(url):
    with pytest.raises(ConfigurationError) as raised:
        split_url(url)
    assert "hunter2" not in str(raised.value)


def test_contents_are_files_where_no_url_is_set(tmp_path):
    assert isinstance(stored("", tmp_path, 1), ContentFiles)
    assert factory_of("", NO_APPS) == ""


# --- whose contents are at a URL ------------------------------------------------------------------


@pytest.mark.parametrize("url", ["s3://b", "S3://b"])
def test_the_scheme_of_a_url_says_what_makes_its_contents(url):
    assert isinstance(stored(f"{url}?endpoint=http://127.0.0.1:1", None, 1), ContentObjects)


def refusal(url, apps):
    with pytest.raises(ConfigurationError) as raised:
        factory_of(url, apps)
    return str(raised.value)


def test_a_url_of_an_app_that_is_left_out_names_the_app():
    told = "LCC_CONTENT_URL: s3:// is of the app object_storage, which LCC_APPS leaves out"
    assert refusal("s3://b", read_apps("-object_storage")) == told


@pytest.mark.parametrize("url", ["gs://b", "lcc", "k:hunter2@s3://b", "/var/lib/content"])
def test_a_url_that_no_app_knows_is_refused_without_being_repeated(url):
    assert refusal(url, ours()) == "LCC_CONTENT_URL: expected s3://…"
    both = Apps([*ours().installed, App("other", "", factories={"contents": {"gcs": "x:y"}})])
    assert refusal(url, both) == "LCC_CONTENT_URL: expected s3://… or gcs://…"
    assert refusal(url, NO_APPS) == "LCC_CONTENT_URL: there is no app that has contents at URLs"
