"""``lcc verify``: what it finds, what it leaves alone, and what repair does, on every store."""

import os
from dataclasses import replace

import pytest
from alerting import alert
from little_lcc import MACHINE, PID, LittleLcc, assert_books_balance, key, removal, update

from lcc_scrapy.content.files import ContentFiles
from lcc_scrapy.content.stored import encoder
from lcc_scrapy.db.records import TurnDelta
from lcc_scrapy.domain.cache import Body
from lcc_scrapy.domain.errors import ConfigurationError
from lcc_scrapy.domain.versions import Keep
from lcc_scrapy.ops import verification
from lcc_scrapy.ops.verification import Kind, Verification


class Filed(LittleLcc):
    """A little LCC whose content really lies in files."""

    folder = None

    def settle(self, *outcomes, owner=None):
        before = set(self.files)
        settled = super().settle(*outcomes, owner=owner)
        self.content.keep([(number, _body(self.files[number])) for number in set(self.files) - before])
        return settled

    @property
    def content(self):
        return ContentFiles(self.folder, MACHINE)

    def path(self, name):
        return self.content.path_of(self.cached(name).fetched_fileid)

    def verification(self, **options):
        return Verification(self.store, self.content, self.policy, now=lambda: self.now, **options)

    def verify(self, **options):
        return list(self.verification(**options).run())


def _body(data):
    return Body(len(data), "", "", data=data)


@pytest.fixture
def filed(store, tmp_path):
    made = Filed(store)
    made.folder = tmp_path / "content"
    made.content.prepare()
    made.add()
    made.store_pages(*"abcde")
    return made


@pytest.fixture(autouse=True)
def small_pages(monkeypatch):
    monkeypatch.setattr(verification, "PAGE", 2)


def kinds(findings):
    return sorted(finding.kind for finding in findings)


def test_all_is_well_after_ordinary_work(filed):
    filed.push(update("a"), removal("b"))
    filed.fetch_all(body=b"new")
    assert filed.verify() == []


def test_a_row_without_a_file_is_found_and_left_alone(filed):
    filed.path("c").unlink()
    found = filed.verify()
    assert kinds(found) == [Kind.NO_FILE]
    assert found[0].docid == filed.cached("c").docid
    assert not found[0].repaired
    assert filed.documents() == list("abcde")
    assert filed.waiting() == []


def test_repair_fetches_lost_content_again_and_shows_no_row_without_a_file(filed):
    filed.path("c").unlink()
    before = filed.cached("c")
    found = filed.verify(repair=True)
    assert [(one.kind, one.repaired) for one in found] == [(Kind.NO_FILE, True)]
    assert filed.waiting() == [("c", "fetch")]
    assert filed.queued("c").declared == before.declared
    assert filed.queued("c").seen == before.seen
    gone = filed.feed()[-1]
    assert (gone.urlkey, gone.reason) == (before.urlkey, "content lost")
    assert_books_balance(filed.store)
    assert filed.verify() == []
    assert filed.fetch_all() == ["c"]
    assert filed.verify() == []
    assert filed.documents() == list("abcde")
    assert_books_balance(filed.store)


def test_repairs_are_not_removals_of_the_day(filed):
    for name in "abcde":
        filed.path(name).unlink()
    filed.verify(repair=True)
    assert filed.provider().removed == 0
    assert filed.documents() == []


def test_a_wrong_count_of_held_removals_is_found_and_corrected(filed):
    filed.push(full=True)
    assert filed.provider().heldremovals == 5
    filed.change(heldremovals=3)
    (found,) = filed.verify(repair=True)
    assert found.detail == "provider 7: heldremovals is 3, counted 5"
    assert filed.provider().heldremovals == 5


def test_lost_content_of_many_pages_and_providers_gets_positions_of_its_own(filed):
    filed.add(8)
    filed.store_pages(*"pqr", pid=8)
    for name in "abcde":
        filed.path(name).unlink()
    for name in "pqr":
        filed.content.path_of(filed.cached(name, pid=8).fetched_fileid).unlink()
    assert len(filed.verify(repair=True)) == 8
    assert len(filed.waiting()) == 5
    assert len(filed.waiting(8)) == 3
    for pid in (PID, 8):
        with filed.store.read() as tx:
            rows = tx.queued_of(pid, 0, 100)
        assert len({(row.psetid, row.position) for row in rows}) == len(rows)
    assert_books_balance(filed.store)
    filed.fetch_all()
    filed.fetch_all(8)
    assert filed.verify() == []


def test_a_waiting_update_stays_as_it_is_when_its_old_content_is_lost(filed):
    filed.push(update("a", b"declared"))
    waiting = filed.queued("a")
    filed.path("a").unlink()
    filed.verify(repair=True)
    assert filed.queued("a") == waiting
    assert filed.cached("a") is None


def test_a_cut_file_and_a_changed_file_are_found(filed):
    filed.path("a").write_bytes(b"")
    size = filed.path("b").stat().st_size
    filed.path("b").write_bytes(b"x" * size)
    assert kinds(filed.verify()) == [Kind.WRONG_DIGEST, Kind.WRONG_SIZE]
    assert kinds(filed.verify(digests=False)) == [Kind.WRONG_SIZE]
    filed.verify(repair=True)
    assert sorted(filed.waiting()) == [("a", "fetch"), ("b", "fetch")]


def test_a_file_without_a_row_is_found_and_deleted_by_repair(filed):
    filed.push(removal("a"))
    filed.fetch_all()
    with filed.store.begin() as tx:
        files_to_delete = [file.fileid for file in tx.files_to_delete(MACHINE, 1 << 60, 10)]
        tx.forget_deleted(MACHINE, files_to_delete)
    found = filed.verify()
    assert [(one.kind, one.fileid) for one in found] == [(Kind.NO_ROW, files_to_delete[0])]
    assert filed.content.path_of(files_to_delete[0]).exists()
    assert filed.verify(repair=True)[0].repaired
    assert not filed.content.path_of(files_to_delete[0]).exists()
    assert filed.verify() == []


def test_doomed_and_unfinished_files_are_no_findings(filed):
    filed.push(removal("a"))
    filed.fetch_all()
    filed.content.unfinished_path("body-1").write_bytes(b"half")
    assert filed.verify(repair=True) == []
    assert filed.content.unfinished_path("body-1").exists()


def test_a_young_file_beyond_the_last_id_may_belong_to_a_settlement_and_is_ignored(filed):
    beyond = 1_000_000
    filed.content.keep([(beyond, _body(b"about to be stored"))])
    path = filed.content.path_of(beyond)
    os.utime(path, (filed.now, filed.now))
    assert filed.verify(repair=True) == []
    assert path.exists()
    filed.now += verification.YOUNG + 1
    assert kinds(filed.verify(repair=True)) == [Kind.NO_ROW]
    assert not path.exists()


def test_a_document_that_changes_between_two_looks_is_no_finding(filed, monkeypatch):
    """A row is read, then it is replaced and its old file deleted, then its file is looked at."""
    look_at = Verification._look_at

    def replaced_meanwhile(self, row):
        if row.curl.endswith("/a") and row.fetched_len != 3:
            filed.push(update("a"))
            filed.fetch("a", b"new")
            self._content.remove([row.fetched_fileid])
        return look_at(self, row)

    monkeypatch.setattr(Verification, "_look_at", replaced_meanwhile)
    assert filed.verify(repair=True) == []
    assert filed.cached("a").fetched_len == 3


def test_a_row_written_between_two_looks_keeps_its_file(filed, monkeypatch):
    """A file is seen before its row is; the row is there when the file is looked at again."""
    lone_files = Verification._lone_files
    hidden = filed.cached("b").fetched_fileid
    without_row = Verification._without_row
    looks = []

    def first_look_misses(self, tx, fileids):
        looks.append(fileids)
        known = without_row(self, tx, fileids)
        return [*known, hidden] if hidden in fileids and len(looks) <= 3 else known

    def second_look(self, fileids):
        looks.extend([[]] * 4)
        return lone_files(self, fileids)

    monkeypatch.setattr(Verification, "_without_row", first_look_misses)
    monkeypatch.setattr(Verification, "_lone_files", second_look)
    assert filed.verify(repair=True) == []
    assert filed.path("b").exists()


def test_files_of_another_machine_are_not_judged_here(filed):
    elsewhere = ContentFiles(filed.folder, MACHINE + 1)
    elsewhere.prepare()
    assert list(Verification(filed.store, elsewhere, filed.policy).run()) == []


@pytest.mark.parametrize("name", ["fileused", "spaceused", "nurlproc"])
def test_a_wrong_counter_is_found_and_corrected(filed, name):
    filed.push(update("f"))
    with filed.store.begin() as tx:
        tx.add_to_provider(PID, {name: 5})
    found = filed.verify()
    assert kinds(found) == [Kind.WRONG_COUNT]
    assert name in found[0].detail
    filed.verify(repair=True)
    assert filed.verify() == []
    assert_books_balance(filed.store)


@pytest.mark.parametrize("delta", [3, -1])
def test_wrong_set_parts_are_found_and_corrected(filed, delta):
    filed.push(update("f"))
    with filed.store.begin() as tx:
        part = tx.parts(PID)[0]
        tx.add_to_parts({(part.psetid, part.timeofday, PID): delta}, {})
        tx.add_to_parts({(part.psetid + 9, part.timeofday, PID): 2}, {})
    assert kinds(filed.verify()) == [Kind.WRONG_COUNT]
    filed.verify(repair=True)
    assert filed.verify() == []
    assert_books_balance(filed.store)


def test_counting_locks_nobody(filed, monkeypatch):
    with filed.store.begin() as tx:
        tx.add_to_provider(PID, {"nurlproc": 5})

    def locked(*_):
        raise AssertionError("a provider is locked while its rows are counted")

    monkeypatch.setattr(type(filed.store), "begin", locked)
    assert kinds(filed.verification()._counts_of(PID)) == [Kind.WRONG_COUNT]


def test_what_changes_between_the_count_and_its_repair_stays_counted(filed, monkeypatch):
    filed.push(update("f"))
    with filed.store.begin() as tx:
        tx.add_to_provider(PID, {"nurlproc": 5, "fileused": -2})
        tx.add_to_parts({(99, "", PID): 5}, {})
    put_right = Verification._put_right

    def late(self, found, repairs):
        filed.push(update("g"), update("h"))
        filed.fetch("g", served_type="text/html")
        return put_right(self, found, repairs)

    monkeypatch.setattr(Verification, "_put_right", late)
    assert kinds(filed.verification(repair=True)._counts_of(PID)) == [Kind.WRONG_COUNT] * 3
    assert_books_balance(filed.store)


def test_two_repairs_at_a_time_do_not_correct_twice(filed, monkeypatch):
    with filed.store.begin() as tx:
        tx.add_to_provider(PID, {"nurlproc": 5})
    put_right, others = Verification._put_right, [filed.verification(repair=True)]

    def late(self, found, repairs):
        while others:
            assert kinds(others.pop()._counts_of(PID)) == [Kind.WRONG_COUNT]
        return put_right(self, found, repairs)

    monkeypatch.setattr(Verification, "_put_right", late)
    assert filed.verification(repair=True)._counts_of(PID) == []
    assert_books_balance(filed.store)


def test_files_that_may_not_be_read_end_verification_instead_of_being_taken_for_lost(filed, monkeypatch):
    def refused(self, row):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Verification, "_compare", refused)
    with pytest.raises(ConfigurationError, match="Permission denied"):
        filed.verify(repair=True)
    assert filed.documents() == list("abcde")


def test_a_disk_error_is_damage(filed, monkeypatch):
    def broken(self, row):
        raise OSError(5, "Input/output error")

    monkeypatch.setattr(Verification, "_compare", broken)
    assert kinds(filed.verify()) == [Kind.UNREADABLE] * 5


def test_progress_tells_how_many_rows_and_files_were_looked_at(filed):
    told = []
    filed.verify(progress=told.append)
    assert told == sorted(told)
    assert told[-1] == 10


@pytest.mark.parametrize("work", ["run", "rebuild_queue"])
def test_a_turn_that_counts_wrong_is_made_anew(filed, work):
    lcc = filed
    lcc.add(8, turngroup="farm")
    lcc.add(9, turngroup="farm")
    for pid in (8, 9):
        lcc.push(update("x"), update("y"), pid=pid)
    with lcc.store.begin() as tx:
        tx.add_to_turns({"farm": TurnDelta(-4)})
        assert tx.turn("farm") is None
    found = [one.detail for one in getattr(filed.verification(repair=True), work)()]
    assert found == ["turn farm: 0 URLs wait in it, counted 4"]
    with lcc.store.read() as tx:
        assert tx.turn("farm").waiting == 4
    assert_books_balance(lcc.store)


def test_rebuilding_the_queue_wakes_and_clears_turns(filed):
    lcc = filed
    lcc.push(update("x"))
    with lcc.store.begin() as tx:
        tx.add_to_turns({"nobody": TurnDelta(3, arrived=True)})
        tx.change_turn("7", {"look_at": lcc.now + 1000.0})
        tx.add_to_parts({(99, "", PID): 5}, {})
        tx.update_provider(PID, {"nurlproc": 6})
    found = {one.detail for one in filed.verification(repair=True).rebuild_queue()}
    assert "turn nobody belongs to no provider" in found
    with lcc.store.read() as tx:
        assert (tx.turn("nobody"), tx.turn("7").look_at, tx.turn("7").waiting) == (None, 0, 1)
    assert_books_balance(lcc.store)


# --- compressed contents and earlier ones ----------------------------------------------------------


def compress(filed, name, coding):
    """Compress a file as a crawl would have written it."""
    row = filed.cached(name)
    packer = encoder(coding)
    packed = packer.compress(filed.files[row.fetched_fileid]) + packer.flush()
    filed.path(name).write_bytes(packed)
    with filed.store.begin() as tx:
        tx.update_cached([replace(row, file_encoding=coding)])
    return packed


def test_compressed_files_are_verified_by_what_they_decode_to(filed):
    for name, coding in (("a", "gzip"), ("b", "zstd")):
        compress(filed, name, coding)
    assert filed.verify() == []
    assert filed.verify(digests=False) == []


@pytest.mark.parametrize("coding", ["gzip", "zstd"])
@pytest.mark.parametrize("damage", ["cut", "changed", "another", "empty", "plain"])
def test_a_damaged_compressed_file_is_found_and_fetched_again(filed, coding, damage):
    whole = compress(filed, "a", coding)
    other = compress(filed, "b", coding)
    damaged = {
        "cut": whole[:-1],
        "changed": whole[:-12] + bytes([whole[-12] ^ 1]) + whole[-11:],
        "another": other,
        "empty": b"",
        "plain": b"what the site served",
    }
    filed.path("a").write_bytes(damaged[damage])
    expected = Kind.WRONG_SIZE if damage == "empty" else Kind.WRONG_DIGEST
    assert kinds(filed.verify()) == [expected]
    assert kinds(filed.verify(digests=False)) == ([expected] if damage == "empty" else [])
    filed.verify(repair=True)
    assert filed.waiting() == [("a", "fetch")]
    filed.fetch_all()
    assert filed.verify() == []


@pytest.fixture
def with_versions(filed):
    filed.policy = replace(filed.policy, versions=Keep(3))
    for round_ in range(3):
        filed.now += 10
        filed.push(update("a"), update("b"))
        filed.fetch_all(body=b"content %d" % round_)
    return filed


def versions_of(filed, name):
    with filed.store.read() as tx:
        return tx.versions([filed.cached(name).urlkey]).get(filed.cached(name).urlkey, [])


def test_earlier_contents_are_no_strangers(with_versions):
    assert len(versions_of(with_versions, "a")) == 3
    with_versions.now += 10 * 86400
    assert with_versions.verify(repair=True) == []
    assert len(versions_of(with_versions, "a")) == 3


def test_a_lost_earlier_content_is_found_and_let_go_and_its_document_stays(with_versions):
    lost, cut, kept = versions_of(with_versions, "a")
    before = with_versions.cached("a")
    with_versions.content.path_of(lost.fetched_fileid).unlink()
    with_versions.content.path_of(cut.fetched_fileid).write_bytes(b"")
    found = with_versions.verify()
    assert kinds(found) == [Kind.NO_FILE, Kind.WRONG_SIZE]
    assert {one.docid for one in found} == {before.docid}
    assert len(versions_of(with_versions, "a")) == 3
    assert all(one.repaired for one in with_versions.verify(repair=True))
    assert with_versions.verify() == []
    assert versions_of(with_versions, "a") == [kept]
    assert (with_versions.cached("a"), with_versions.waiting()) == (before, [])
    assert_books_balance(with_versions.store, with_versions.files)


def test_a_document_whose_content_is_lost_is_fetched_again_and_begins_without_versions(with_versions):
    with_versions.path("a").unlink()
    with_versions.verify(repair=True)
    with_versions.fetch_all()
    assert versions_of(with_versions, "a") == []
    assert len(versions_of(with_versions, "b")) == 3
    assert with_versions.verify() == []


@pytest.fixture
def held_back(filed):
    """``a`` and ``b`` were removed while alerts on them wait."""
    filed.policy = replace(filed.policy, max_removal=1.0)
    for name in "ab":
        alert(filed.store, filed.cached(name).urlkey, filed.cached(name).seq)
    filed.push(removal("a"), removal("b"))
    return filed


def test_contents_that_alerts_hold_back_are_no_strangers(held_back):
    assert held_back.documents() == ["c", "d", "e"]
    assert held_back.verify(repair=True) == []
    with held_back.store.read() as tx:
        assert len(tx.versions([key("a"), key("b")])) == 2


def test_a_lost_content_that_an_alert_holds_back_is_found_and_let_go(held_back):
    with held_back.store.read() as tx:
        ((lost,), (kept,)) = tx.versions([key("a"), key("b")]).values()
    held_back.content.path_of(lost.fetched_fileid).unlink()
    (found,) = held_back.verify(repair=True)
    assert (found.kind, found.docid, found.repaired) == (Kind.NO_FILE, lost.docid, True)
    assert held_back.verify() == []
    with held_back.store.read() as tx:
        assert list(tx.versions([key("a"), key("b")]).values()) == [[kept]]


def test_a_lost_content_is_not_held_back_by_an_alert(filed):
    alert(filed.store, filed.cached("a").urlkey, filed.cached("a").seq)
    filed.path("a").unlink()
    assert all(one.repaired for one in filed.verify(repair=True))
    assert versions_at(filed, "a") == []
    assert filed.verify() == []


def versions_at(filed, name):
    with filed.store.read() as tx:
        return tx.versions([key(name)]).get(key(name), [])
