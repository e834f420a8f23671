"""What was fetched, told by the command line: ``lcc log``, and the last hour and day in ``lcc status``."""

import json
import time

import pytest

from lcc_scrapy.domain.queue import Failed
from tests.integration.test_cli import PID, SITE, House, one_error


@pytest.fixture
def small(tmp_path):
    """A house on SQLite with a provider."""
    made = House(tmp_path)
    made.lcc("init")
    made.add()
    return made


def line(at, pid=7, code=200, **more):
    return {"time": f"2027-01-15T08:00:{at:02d}.000Z", "pid": pid, "result": "stored", "code": code, **more}


def put(house, name, *lines):
    (house.data / name).write_text("".join(json.dumps(one) + "\n" for one in lines))


def test_the_log_of_all_crawls_is_shown_as_one(small):
    put(small, "fetch-0.log", line(1, url="http://a/\x1b[2J"), line(3, code=404, reason="Not Found"))
    put(small, "fetch-1.log", line(2, pid=8))
    head, *rows = small.lcc("log").stdout.splitlines()
    assert head.split("\t") == [
        "time",
        "pid",
        "result",
        "code",
        "bytes",
        "ms",
        "hops",
        "type",
        "url",
        "reason",
    ]
    assert [row.split("\t")[1:4] for row in rows] == [
        ["7", "stored", "200"],
        ["8", "stored", "200"],
        ["7", "stored", "404"],
    ]
    assert rows[0].endswith("http://a/\\x1b[2J\t")
    assert rows[2].endswith("\tNot Found")

    def times(*words):
        return [
            json.loads(text)["time"][17:19] for text in small.lcc("log", "--json", *words).stdout.splitlines()
        ]

    assert times() == ["01", "02", "03"]
    assert times("--pid", "7") == ["01", "03"]
    assert times("--code", "404", "--code", "603") == ["03"]
    assert times("-n", "1") == ["03"]


def test_only_what_happened_since_is_shown(small):
    now = time.strftime("%Y-%m-%dT%H:%M:%S.000Z", time.gmtime())
    put(small, "fetch-0.log", {**line(1), "time": "2020-01-01T00:00:00.000Z"}, {**line(1), "time": now})
    for since in ("1h", "2020-01-02", "2020-01-01T00:00:01+00:00"):
        assert len(small.lcc("log", "--json", "--since", since).stdout.splitlines()) == 1
    assert len(small.lcc("log", "--json", "--since", "2019-12-31").stdout.splitlines()) == 2
    assert "expected for example 30m" in small.lcc("log", "--since", "yesterday", status=2).stderr


def test_where_there_is_no_log_one_line_says_so(small):
    assert "LCC_FETCH_LOG is empty" in one_error(small.lcc("-s", "LCC_FETCH_LOG=", "log", status=1))
    assert small.lcc("log", "--json").stdout == ""


def test_the_log_lies_where_the_setting_says(small, tmp_path):
    small.settings["LCC_FETCH_LOG"] = str(tmp_path / "elsewhere.jsonl")
    put(small, "fetch-0.log", line(1))
    (tmp_path / "elsewhere-3.jsonl").write_text(json.dumps(line(5)) + "\n")
    assert json.loads(small.lcc("log", "--json").stdout) == line(5)


def test_status_and_show_tell_of_the_last_hour_and_of_the_oldest_url(small):
    nothing = dict(row.split("  ", 1) for row in small.lcc("status").stdout.splitlines())
    assert nothing["last hour"].strip() == "nothing was fetched"
    assert "oldest" not in nothing
    small.push("a", "b")
    small.settle(lambda ticket: Failed(ticket, 404, "", int(time.time()), final=True))
    small.push("c")
    for words in (["status"], ["provider", "show", str(PID)]):
        told = dict(row.split("  ", 1) for row in small.lcc(*words).stdout.splitlines() if "  " in row)
        assert told["last hour"].strip() == told["last day"].strip() == "2 failed (404: 2)"
        assert told["oldest"].strip() == f"{SITE}c of provider {PID}"
        found = small.json(*words)["fetched"]
        assert found["hour"]["failed"] == {"total": 2, "codes": {"404": 2}}
        assert found["oldest_waiting"] == {"url": f"{SITE}c", "pid": PID, "since": 0}
