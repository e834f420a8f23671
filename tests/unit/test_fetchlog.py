"""The fetch log: what its lines say, how its files rotate, and how several are read as one."""

import errno
import json
import logging
import os
from pathlib import Path

import pytest

from lcc_scrapy.domain.cache import Answer, Body
from lcc_scrapy.domain.entries import urlkey
from lcc_scrapy.domain.queue import FETCH, Cancelled, Delayed, Failed, NotModified, QueuedUrl, Served, Ticket
from lcc_scrapy.fetchlog.lines import LINE_MAX, lines_of
from lcc_scrapy.fetchlog.reading import Follower, Wanted, read
from lcc_scrapy.fetchlog.writing import FetchLog, RotatingFile, file_of, files_of_all
from lcc_scrapy.queue.settlement import CONFIRMED, DELAYED, DISCARDED, FAILED, RETRYING, STORED, Settled

NOW = 1_800_000_000.5
URL = "http://www.example.org/a"
SHA = "ab" * 32


def ticket(furl: str = URL, pid: int = 7) -> Ticket:
    key = urlkey(pid, furl, "text/html")
    row = QueuedUrl(
        key, pid, furl, "text/html", "", "", furl, None, None, None, "1" * 24, 3, 1, FETCH, 1, 0, 0
    )
    return Ticket(row, str(pid), 1)


def stored(furl: str = URL, pid: int = 7, final: str = "", served_type: str = "text/html") -> Settled:
    answer = Answer(200, final or furl, served_type, "", "", "", "[]", "HTTP/1.1 200 OK", "", 0)
    return Settled(Served(ticket(furl, pid), answer, Body(5, "md5", SHA, data=b"hello")), STORED)


def failed(code: int, detail: str = "", result: str = FAILED, furl: str = URL, pid: int = 7) -> Settled:
    return Settled(Failed(ticket(furl, pid), code, detail, 0), result, code=code)


def line(settled: Settled) -> dict[str, object]:
    (text,) = lines_of([settled], NOW)
    found: dict[str, object] = json.loads(text)
    return found


def test_a_line_says_when_who_what_and_how_long():
    one = stored()
    trip = one.outcome.ticket.trip
    trip.ms, trip.transferred = 31, 5218
    assert line(one) == {
        "time": "2027-01-15T08:00:00.500Z",
        "pid": 7,
        "result": "stored",
        "code": 200,
        "bytes": 5218,
        "ms": 31,
        "url": URL,
        "type": "text/html",
        "digest": f"sha256:{SHA}",
        "hops": 0,
        "reason": "",
        "psetid": 3,
        "tries": 0,
    }


def test_where_redirects_led_is_told():
    one = stored(final="http://www.example.org/b")
    one.outcome.ticket.trip.hops = 2
    assert (line(one)["hops"], line(one)["final"]) == (2, "http://www.example.org/b")


@pytest.mark.parametrize(
    ("settled", "result", "code", "reason"),
    [
        (failed(404), "failed", 404, "Not Found"),
        (failed(503, "try later", RETRYING), "retrying", 503, "Service Unavailable: try later"),
        (Settled(Delayed(ticket(), 602, "refused", 0), DELAYED, code=602), "delayed", 602, "No connection to the host: refused"),
        (Settled(NotModified(ticket(), 0), CONFIRMED), "confirmed", 304, ""),
        (failed(404, result=DISCARDED), "discarded", 404, "Not Found: not needed any more: something newer was submitted"),
    ],
)  # fmt: skip
def test_every_outcome_has_its_code_and_reason(settled, result, code, reason):
    told = line(settled)
    assert (told["result"], told["code"], told["reason"]) == (result, code, reason)


def test_what_was_cancelled_before_its_fetch_has_no_line():
    assert lines_of([Settled(Cancelled(ticket()), DISCARDED)], NOW) == []


def test_no_line_forges_another_or_holds_a_password_or_is_longer_than_its_bound():
    hostile = "http://user:secret@x.example/\r\n{}\x1b\x7f\u2028\ud800" + "\u0001" * 5000
    one = stored(furl=hostile, final=hostile, served_type="\x00" * 500)
    one.outcome.ticket.trip.hops = 1
    for settled in (one, failed(601, hostile)):
        (text,) = lines_of([settled], NOW)
        assert text.isascii()
        assert text.isprintable()
        assert "secret" not in text
        assert len(text) < LINE_MAX
        assert json.loads(text)["pid"] == 7


# --- files -------------------------------------------------------------------------------------------


def test_a_full_file_is_rotated_away_and_the_oldest_goes(tmp_path):
    path = tmp_path / "logs" / "fetch-0.log"
    file = RotatingFile(path, most=10, count=3)
    for number in range(8):
        file.append(b"line %d\n" % number)
    file.close()
    assert sorted(one.name for one in path.parent.iterdir()) == [
        "fetch-0.log",
        "fetch-0.log.1",
        "fetch-0.log.2",
    ]
    assert [Path(f"{path}{end}").read_text() for end in (".2", ".1", "")] == [
        "line 5\n",
        "line 6\n",
        "line 7\n",
    ]


def test_one_file_alone_begins_anew(tmp_path):
    file = RotatingFile(tmp_path / "fetch-0.log", most=10, count=1)
    file.append(b"line 1\n")
    file.append(b"line 2\n")
    file.close()
    assert [(one.name, one.read_text()) for one in tmp_path.iterdir()] == [("fetch-0.log", "line 2\n")]


def test_a_line_that_a_kill_cut_off_is_ended_first(tmp_path):
    path = tmp_path / "fetch-0.log"
    path.write_text('{"half')
    file = RotatingFile(path, most=1000, count=2)
    file.append(b"line\n")
    file.close()
    assert path.read_text() == '{"half\nline\n'


def test_a_file_that_was_taken_away_is_made_anew(tmp_path):
    path = tmp_path / "fetch-0.log"
    file = RotatingFile(path, most=1000, count=2)
    file.append(b"line 1\n")
    path.rename(tmp_path / "elsewhere")
    file.append(b"line 2\n")
    file.close()
    assert path.read_text() == "line 2\n"


def test_of_lines_that_do_not_fit_on_the_disk_nothing_stays(tmp_path, monkeypatch):
    path = tmp_path / "fetch-0.log"
    file = RotatingFile(path, most=1000, count=2)
    file.append(b"line 1\n")
    write, room = os.write, [3]

    def full(descriptor: int, data: bytes) -> int:
        if not room:
            raise OSError(errno.ENOSPC, "No space left on device")
        return write(descriptor, bytes(data[: room.pop()]))

    with monkeypatch.context() as patched:
        patched.setattr(os, "write", full)
        with pytest.raises(OSError, match="No space"):
            file.append(b"line 2\n")
    file.append(b"line 3\n")
    file.close()
    assert path.read_text() == "line 1\nline 3\n"


# --- writing -----------------------------------------------------------------------------------------


class Disk(RotatingFile):
    """A file on a disk that is full when it is told to be."""

    full = False

    def append(self, lines: bytes) -> None:
        if self.full:
            raise OSError(errno.ENOSPC, "No space left on device")
        super().append(lines)


def test_a_full_disk_is_warned_of_once_and_lines_come_again_when_there_is_room(tmp_path, caplog):
    caplog.set_level(logging.INFO)
    disk = Disk(tmp_path / "fetch-0.log", 10**6, 2)
    log = FetchLog(disk, lambda: NOW)
    for full, count in ((True, 3), (False, 2)):
        disk.full = full
        for _ in range(count):
            log.note([stored(), stored()])
        assert log.flushed().wait(60)
    log.close()
    told = [record.getMessage() for record in caplog.records]
    assert len(told) == 2
    assert "fetching continues without it: [Errno 28] No space left on device" in told[0]
    assert told[1] == "the fetch log is written again; 6 outcomes are not in it"
    assert len((tmp_path / "fetch-0.log").read_text().splitlines()) == 4


# --- reading -----------------------------------------------------------------------------------------


def put(path: Path, *lines: dict[str, object]) -> None:
    path.write_text("".join(json.dumps(one) + "\n" for one in lines))


def at(second: int, pid: int = 7, code: int = 200) -> dict[str, object]:
    return {"time": f"2027-01-15T08:00:{second:02d}.000Z", "pid": pid, "code": code}


def test_the_files_of_all_workers_are_read_as_one_in_the_order_of_time(tmp_path):
    path = tmp_path / "fetch.log"
    put(tmp_path / "fetch-0.log.1", at(1), at(3))
    put(tmp_path / "fetch-0.log", at(5))
    put(tmp_path / "fetch-10.log", at(2), at(4), at(6))
    put(tmp_path / "fetch-x.log", at(7))
    assert file_of(path, 10).name == "fetch-10.log"
    assert list(read(path, Wanted())) == [at(second) for second in range(1, 7)]


def test_only_what_is_wanted_is_read(tmp_path):
    put(tmp_path / "fetch-0.log", at(1), at(2, pid=8), at(3, code=404), at(4))
    path = tmp_path / "fetch.log"
    os.utime(tmp_path / "fetch-0.log", (NOW, NOW + 4))
    assert list(read(path, Wanted(pids={7}, codes={404}))) == [at(3, code=404)]
    assert list(read(path, Wanted(since=1_800_000_003))) == [at(3, code=404), at(4)]
    assert list(read(path, Wanted(since=1_800_000_005))) == []


def test_what_a_kill_left_of_a_line_is_passed_over(tmp_path):
    (tmp_path / "fetch-0.log").write_text(f'{{"half\n[1]\n17\n{json.dumps(at(1))}\n{{"time":')
    assert list(read(tmp_path / "fetch.log", Wanted())) == [at(1)]


def test_a_file_that_is_rotated_while_it_is_opened_is_read_once(tmp_path):
    put(tmp_path / "fetch-0.log", at(1), at(2))
    os.link(tmp_path / "fetch-0.log", tmp_path / "fetch-0.log.1")
    assert list(read(tmp_path / "fetch.log", Wanted())) == [at(1), at(2)]


def test_a_log_that_does_not_exist_has_no_lines(tmp_path):
    assert list(read(tmp_path / "none" / "fetch.log", Wanted())) == []
    assert files_of_all(tmp_path / "none" / "fetch.log") == {}


def test_who_follows_hears_of_new_lines_new_files_and_new_workers_once(tmp_path):
    path = tmp_path / "fetch.log"
    first = RotatingFile(tmp_path / "fetch-0.log", most=200, count=3)
    first.append(json.dumps(at(0)).encode() + b"\n")
    follower = Follower(path, Wanted())
    found = [follower.more()]
    for second in (1, 2, 3, 4, 5):  # the third or so begins a new file
        first.append(json.dumps(at(second)).encode() + b"\n")
        if second == 3:
            put(tmp_path / "fetch-1.log", at(9))
            found.append(follower.more())
    found += [follower.more(), follower.more()]
    follower.close()
    first.close()
    assert (tmp_path / "fetch-0.log.1").exists()
    assert found == [[], [at(1), at(2), at(3), at(9)], [at(4), at(5)], []]
