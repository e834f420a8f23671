"""What people write by hand into lcccp and lcccpstate."""

import io
import sys

import pytest

from lcc_scrapy.push import lcccp, lcccpstate

A = '<url c="a.html" mimetype="text/html" md5="1"/>\n'
B = '<url c="b.html" mimetype="text/html" md5="1"/>\n'
NOT_B = '<url c="b.html" mimetype="text/html" op="remove"/>\n'


@pytest.fixture
def run(monkeypatch, capsysbinary):
    def play(main, given, *options):
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(given.encode())))
        status = main(list(options))
        said = capsysbinary.readouterr()
        return status, said.out.decode(), said.err.decode()

    return play


@pytest.fixture
def sent(run):
    """What ``lcccp --print`` makes of lines: those of the set, and what is warned of."""

    def play(given, prefix="http://www.example.org/"):
        _, out, said = run(lcccp.main, given, "--print", "--pid=7", f"--urlprefix={prefix}")
        return [line for line in out.splitlines() if line.startswith("<url ")], said

    return play


def test_an_explicit_removal_needs_no_end_mark(sent):
    assert ['op="remove"' in line for line in sent(A + NOT_B)[0]] == [False, True]


def test_an_explicit_removal_by_an_input_that_counts_wrong_is_not_believed(sent):
    assert ['op="remove"' in line for line in sent(A + NOT_B + '<end count="3"/>')[0]] == [False]


def test_an_explicit_removal_goes_through_lcccpstate_without_an_end_mark(run, tmp_path, sent):
    options = [f"--statefile={tmp_path / 'state.txt'}"]
    run(lcccpstate.main, A + B + '<end count="2"/>\n', *options)
    run(lcccpstate.main, "", *options, "--commit")
    status, out, said = run(lcccpstate.main, NOT_B, *options)
    assert status == 65
    assert "nothing is taken for removed but what it names" in said
    assert "0 new, 0 changed, 1 removed, 0 unchanged" in said
    assert [line.count("b.html") + line.count("remove") for line in sent(out)[0]] == [2]


@pytest.mark.parametrize(
    ("prefix", "curl", "warned"),
    [
        ("http://www.example.org", "a.html", True),
        ("http://www.example.org/docs", "a.html", True),
        ("http://www.example.org/", "a.html", False),
        ("http://www.example.org", "/a.html", False),
        ("http://www.example.org/?page=", "a.html", False),
        ("http://www.example.org", "http://www.example.org/a.html", False),
        ("", "a.html", False),
    ],
)
def test_a_prefix_without_its_slash_is_warned_of(sent, prefix, curl, warned):
    lines, said = sent(A.replace("a.html", curl), prefix)
    assert len(lines) == 1
    told = f"lcccp: --urlprefix has no slash at its end: the first URL is {prefix}{curl}\n"
    assert said == (told if warned else "")
