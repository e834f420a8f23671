"""``lcc directives`` as operators run it, and where owners are to be seen."""

import json
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest
from test_cli import PID, SITE, House

from lcc_scrapy.content_user import ContentUser
from lcc_scrapy.feed.meta_information import NAMESPACE
from lcc_scrapy.wire.messages import NAMESPACE as LOCOCA

TWO = f"[{SITE}a, {SITE}, 1, {{anna}}]\n[{SITE}b, , 0, {{}}]\n"
FORMS = {
    "text": TWO,
    "jsonl": f'{{"link": "{SITE}a", "depth": 1, "owners": ["anna"]}}\n{{"link": "{SITE}b"}}\n',
    "xml": f'<directives xmlns="{LOCOCA}"><directive link="{SITE}a" depth="1"><owner>anna</owner></directive>'
    f'<directive link="{SITE}b"/></directives>',
}


@pytest.fixture
def small(tmp_path):
    made = House(tmp_path)
    made.lcc("init")
    made.add()
    return made


def waiting(house):
    return sorted(row[0] for row in house.query("select furl from qdb"))


@pytest.mark.parametrize("form", sorted(FORMS))
def test_every_form_is_taken_from_a_file_and_from_stdin(small, form):
    (small.folder / "asked").write_text(FORMS[form])
    assert small.lcc("directives", "asked").stdout == "2 directives taken, 2 URLs to be fetched for them\n"
    assert waiting(small) == [SITE + "a", SITE + "b"]
    again = small.lcc("directives", "-", "--format", form, "--json", stdin=FORMS[form])
    assert json.loads(again.stdout) == {"directives": 2, "queued": 0, "wrong": 0}
    assert small.query("select owner, reach from owners order by owner") == [("", 0), ("anna", 1)]


def test_a_pipe_is_read_too(small):
    piped = small.run("directives", "-", stdin=TWO)
    assert (piped.returncode, piped.stderr) == (0, "")
    assert waiting(small) == [SITE + "a", SITE + "b"]


def test_nothing_is_taken_of_a_file_with_errors_unless_one_says_so(small):
    wrong = f"{TWO}nonsense\n[http://elsewhere.example/, , 0, {{}}]\n"
    refused = small.lcc("directives", "-", stdin=wrong, status=1)
    lines = refused.stderr.splitlines()
    assert lines[0].startswith("lcc: line 3: expected [link")
    assert (
        lines[1]
        == "lcc: line 4: http://elsewhere.example/ lies inside the roots of no provider that is asked"
    )
    assert lines[2].startswith("lcc: error: 2 of 4 directives are wrong: none was taken")
    assert (waiting(small), refused.stdout, len(lines)) == ([], "", 3)
    taken = small.lcc("directives", "-", "--skip-bad", "--json", stdin=wrong)
    assert json.loads(taken.stdout) == {"directives": 2, "queued": 2, "wrong": 2}


def test_of_many_errors_the_first_are_told(small):
    refused = small.lcc("directives", "-", stdin="nonsense\n" * 100, status=1)
    assert len(refused.stderr.splitlines()) == 22
    assert "lcc: and 80 more" in refused.stderr


def test_an_unreadable_file_is_one_line_and_nothing_is_taken(small):
    broken = FORMS["xml"].replace("</directives>", "<directive")
    refused = small.lcc("directives", "-", "--skip-bad", stdin=broken, status=1)
    assert refused.stderr.startswith("lcc: error: line 1: ")
    assert (len(refused.stderr.splitlines()), waiting(small)) == (1, [])


def test_the_provider_is_found_by_its_roots_or_given(small):
    small.lcc("provider", "add", "8", "--password-file", "-", "--root", SITE + "b/", stdin="secret\n")
    asked = f"[{SITE}b/x, , 0, {{}}]\n"
    assert "roots of providers 7, 8: say which" in small.lcc("directives", "-", stdin=asked, status=1).stderr
    small.lcc("directives", "-", "--provider", "8", stdin=asked)
    small.lcc("directives", "-", stdin=f"[{SITE}a, , 0, {{}}]\n")
    assert small.query("select pid, furl from qdb order by pid") == [(7, SITE + "a"), (8, SITE + "b/x")]
    refused = small.lcc("directives", "-", "--provider", "9", stdin=asked, status=1)
    assert refused.stderr.startswith("lcc: error: nothing may be fetched from provider 9")


def test_a_full_queue_says_how_many_were_taken(small):
    small.settings["LCC_QUEUE_MAX"] = "600"
    asked = "".join(f"[{SITE}{n}, , 0, {{}}]\n" for n in range(1200))
    refused = small.lcc("directives", "-", stdin=asked, status=1)
    assert "no room for more of provider 7" in refused.stderr
    assert "1000 were taken, FILE may be given again" in refused.stderr
    assert len(waiting(small)) == 1000


def test_owners_are_seen_where_a_document_is(small):
    small.documents("a", "b")
    asked = (
        f"[{SITE}a, , 2, {{anna}}]\n[{SITE}a, , 0, {{bert}}]\n[{SITE}b, , 1, {{}}]\n[{SITE}c, , 0, {{carla}}]"
    )
    small.lcc("directives", "-", stdin=asked)
    (known,) = small.json("explain", SITE + "a")
    assert known["owners"] == [{"owner": "anna", "reach": 2}, {"owner": "bert", "reach": 0}]
    assert "anna and 2 links from there, bert" in small.lcc("explain", SITE + "a").stdout
    assert "nobody in particular and 1 link from there" in small.lcc("explain", SITE + "b").stdout
    assert "carla" in small.lcc("explain", SITE + "c").stdout
    assert small.json("meta", SITE + "a")["owners"] == ["anna", "bert"]
    assert small.json("meta", SITE + "b")["owners"] == []
    meta = ET.fromstring(small.lcc("meta", SITE + "a").stdout)
    assert meta.findtext(f"{{{NAMESPACE}}}owners").split() == ["anna", "bert"]
    with ContentUser(small.settings) as user:
        (row,) = user.find(SITE + "a")
        assert (row.pid, user.meta(row).owners) == (PID, ("anna", "bert"))


def test_a_run_that_is_killed_is_given_again(small):
    """The process dies behind its first batch; what it took stays, and the second run adds the rest."""
    asked = "".join(f"[{SITE}{n}, , 1, {{anna}}]\n" for n in range(1200))
    die = (
        "from lcc_scrapy.spidering.directives import Directives as D; import os; ask = D.ask; n = []\n"
        "def dying(self, *given):\n"
        "    n.append(1)\n"
        "    return ask(self, *given) if len(n) < 2 else os._exit(9)\n"
        "D.ask = dying\n"
    )
    folder = Path(small.folder / "site")
    folder.mkdir()
    (folder / "sitecustomize.py").write_text(die)
    path = str(folder)
    assert small.run("directives", "-", stdin=asked, PYTHONPATH=path).returncode == 9
    assert len(waiting(small)) == 1000
    again = small.run("directives", "-", "--json", stdin=asked)
    assert json.loads(again.stdout) == {"directives": 1200, "queued": 200, "wrong": 0}
    assert small.query("select count(*) from owners") == [(1200,)]


def test_what_a_file_asks_for_is_withdrawn_by_the_same_file(small):
    (small.folder / "asked").write_text(f"[{SITE}a, , 1, {{anna, bert}}]\n")
    small.lcc("directives", "asked")
    (small.folder / "less").write_text(f"[{SITE}a, , 0, {{anna}}]\n[{SITE}b, , 0, {{anna}}]\n")
    done = small.lcc("directives", "less", "--withdraw").stdout
    assert done == "1 requests of owners withdrawn, 1 interests in URLs ended\n"
    assert small.query("select owner, asked from owners") == [("bert", 1)]
    told = json.loads(small.lcc("directives", "asked", "--withdraw", "--json").stdout)
    assert told == {"directives": 1, "withdrawn": 1, "ended": 1, "wrong": 0}
    assert small.query("select owner from owners") == []
