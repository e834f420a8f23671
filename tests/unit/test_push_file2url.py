"""Files to lines."""

import io
import os

import pytest

from lcc_scrapy.push import file2url, pipe
from lcc_scrapy.push.command import Notes, Stop
from lcc_scrapy.push.file2url import Changing, Lister, Naming, describe
from lcc_scrapy.push.filetypes import BY_EXTENSION, mimetype_of
from lcc_scrapy.push.listing import FindCommand, named_files, relative_to


@pytest.fixture
def docroot(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "docroot").mkdir()
    return tmp_path / "docroot"


def run(capfdbinary, *words):
    status = file2url.main(words)
    out, err = capfdbinary.readouterr()
    return status, out.decode().splitlines(), err.decode()


def curls(lines):
    return [pipe.parse(line.encode()).attributes["curl"] for line in lines[:-1]]


@pytest.mark.parametrize(
    ("name", "mimetype"),
    [
        (b"a.html", "text/html"),
        (b"A.HTM", "text/html"),
        (b"a.tar.gz", "application/gzip"),
        (b"README", file2url.filetypes.UNKNOWN),
        (b".html", file2url.filetypes.UNKNOWN),
        (b"a.\xff", file2url.filetypes.UNKNOWN),
    ],
)
def test_the_extension_tells_the_mimetype(name, mimetype):
    assert mimetype_of(name) == mimetype


def test_the_table_has_lower_case_extensions_and_plain_types():
    assert all(extension == extension.lower() for extension in BY_EXTENSION)
    assert all(";" not in mimetype and "/" in mimetype for mimetype in BY_EXTENSION.values())


@pytest.mark.parametrize(
    ("path", "curl"),
    [
        (b"a b&c.html", "a%20b&c.html"),
        (b"caf\xc3\xa9.html", "caf%C3%A9.html"),
        (b"caf\xe9.html", "caf%E9.html"),
        (b"100%.html", "100%25.html"),
        (b"what?#.html", "what%3F%23.html"),
        (b"new\nline", "new%0Aline"),
        (b"d/index.html", "d/"),
        (b"index.html", "index.html"),
        (b"d/myindex.html", "d/myindex.html"),
    ],
)
def test_a_path_becomes_a_relative_url(path, curl):
    assert Naming({}, index="index.html").curl(path) == curl


def test_files_come_in_the_order_of_their_bytes_with_an_end_mark(docroot, capfdbinary):
    for name in ("b.html", "a/z.html", "B.html", "a.html"):
        (docroot / name).parent.mkdir(exist_ok=True)
        (docroot / name).write_text("x")
    status, lines, err = run(capfdbinary, "--find", "docroot", "-name", "*.html")
    assert (status, err) == (0, "")
    assert curls(lines) == ["B.html", "a.html", "a/z.html", "b.html"]
    assert lines[-1] == '<end count="4"/>'


def test_find_may_use_or_and_print_of_its_own(docroot, capfdbinary):
    for name in ("a.html", "b.htm", "c.txt"):
        (docroot / name).write_text("x")
    _, lines, _ = run(capfdbinary, "--find", "docroot", "-name", "*.html", "-print", "-o", "-name", "*.htm")
    assert curls(lines) == ["a.html", "b.htm"]


def test_folders_and_links_to_files_are_as_find_says(docroot, capfdbinary):
    (docroot / "dir.html").mkdir()
    (docroot / "a.html").write_text("x")
    (docroot / "link.html").symlink_to("a.html")
    assert curls(run(capfdbinary, "--find", "docroot")[1]) == ["a.html"]
    assert curls(run(capfdbinary, "--find", "-L", "docroot")[1]) == ["a.html", "link.html"]


@pytest.mark.parametrize(
    ("words", "status"),
    [
        (["--find", "nowhere"], 66),
        (["--find", "docroot", "-nonsense"], 65),
        (["--find"], 64),
        (["--find", "docroot", "-ls"], 64),
        (["--mimetype", "html", "--find", "docroot"], 64),
        (["--docroot", "nowhere"], 66),
        (["--docroot", "docroot/sub", "--find", "docroot"], 65),
    ],
)
def test_no_end_mark_is_written_when_something_went_wrong(docroot, capfdbinary, words, status):
    (docroot / "sub").mkdir()
    (docroot / "a.html").write_text("x")
    found, lines, err = run(capfdbinary, *words)
    assert (found, lines) == (status, [])
    assert err.splitlines()[-1].startswith("file2url: ")


def test_names_on_stdin_are_relative_to_the_working_folder(docroot, capfdbinary, monkeypatch):
    (docroot / "a.html").write_text("x")
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(b"docroot/a.html\0docroot/gone.html\0")))
    status, lines, err = run(capfdbinary, "--null", "--docroot", "docroot")
    assert (status, curls(lines)) == (0, ["a.html"])
    assert "docroot/gone.html: skipped" in err


def test_options_fill_the_attributes(docroot, capfdbinary):
    (docroot / "a.php").write_text("x")
    words = [
        "--no-md5",
        "--mimetype",
        ".PHP=text/html",
        "--burl-template",
        "f?{curl}",
        "--subtype",
        "lang: en",
    ]
    _, lines, _ = run(capfdbinary, *words, "--find=docroot")
    attributes = dict(pipe.parse(lines[0].encode()).attributes)
    del attributes["mtime"]
    assert attributes == {
        "curl": "a.php",
        "mimetype": "text/html",
        "burl": "f?a.php",
        "subtype": "lang: en",
        "len": "1",
    }


def test_a_file_that_cannot_be_read_is_kept(docroot, monkeypatch, capsys):
    def denied(*_, **__):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(file2url, "describe", denied)
    lister = Lister(Naming(dict(BY_EXTENSION)), Notes("file2url"))
    assert lister.line(b"a.html", b"a.html") == pipe.Keep("a.html", "text/html")
    assert lister.count == 1
    assert "Permission denied" in capsys.readouterr().err


def test_a_file_that_changes_while_it_is_read_is_read_once_more_and_then_kept(docroot, monkeypatch):
    calls = []

    def changing(*_, **__):
        calls.append(1)
        raise Changing

    monkeypatch.setattr(file2url, "describe", changing)
    assert isinstance(Lister(Naming({}), Notes("x")).line(b"a", b"a"), pipe.Keep)
    assert len(calls) == 2


def test_a_change_during_the_reading_is_noticed(docroot, monkeypatch):
    path = docroot / "a.html"
    path.write_text("x")

    class Growing:
        def __init__(self, **_):
            pass

        def update(self, _):
            os.truncate(path, 9)

        def hexdigest(self):
            return ""

    monkeypatch.setattr(file2url.hashlib, "md5", Growing)
    with pytest.raises(Changing):
        describe(os.fsencode(path))


def test_a_docroot_that_was_replaced_meanwhile_gives_no_end_mark(docroot):
    site = file2url.Site.of("docroot", None, null=False)
    docroot.rename(docroot.with_name("old"))
    with pytest.raises(Stop):
        site.check_still_there()
    docroot.mkdir()
    with pytest.raises(Stop, match="no end mark"):
        site.check_still_there()


def test_names_are_cut_at_any_block_boundary():
    names = [b"n" * size for size in (1, 65535, 65536, 65537, 3)]
    assert list(named_files(io.BytesIO(b"\n".join(names)))) == names
    assert list(named_files(io.BytesIO(b"a\nb\0c\0\0"), null=True)) == [b"a\nb", b"c"]


def test_find_gets_our_action_behind_the_users_tests():
    assert FindCommand.parse(["-L", "a", "b", "-name", "x", "-o", "-true"]).arguments() == [
        "find",
        "-L",
        "a",
        "b",
        "(",
        "-name",
        "x",
        "-o",
        "-true",
        ")",
        "-type",
        "f",
        "-print0",
    ]


@pytest.mark.parametrize(
    ("docroot_", "path", "relative"),
    [(b".", b"./a/b", b"a/b"), (b"d/", b"d//x", b"x"), (b"d", b"d/..x", b"..x")],
)
def test_paths_are_taken_from_the_docroot(docroot_, path, relative):
    assert relative_to(docroot_, path) == relative
