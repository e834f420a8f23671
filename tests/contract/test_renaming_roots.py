"""A root gets another URL: rows, links, versions and interests follow, and nothing is fetched, on every store."""

from collections import Counter
from contextlib import contextmanager
from dataclasses import replace

import pytest
from little_lcc import MACHINE, PID, SITE, START, Crash, dump, key, removal, update, url
from sqlalchemy import event

from lcc_scrapy.apps.renaming import service as renaming
from lcc_scrapy.apps.renaming.rules import RenameRefused, Renaming
from lcc_scrapy.apps.renaming.service import RootRenaming
from lcc_scrapy.apps.renaming.store import rows_in
from lcc_scrapy.apps.sources.rules import Role, Source, SourceFile
from lcc_scrapy.apps.sources.store import rows_in as source_rows
from lcc_scrapy.db.records import (
    OUTCOME_FAILED,
    DocumentLink,
    Irrelevant,
    LastOutcome,
    OpenLogin,
    Ownership,
    Spidered,
    Suspect,
    Unwanted,
)
from lcc_scrapy.db.sql.store import SqlStore
from lcc_scrapy.domain.acis import Aci
from lcc_scrapy.domain.cache import Tombstone, renamed_to
from lcc_scrapy.domain.entries import furlkey, urlkey
from lcc_scrapy.domain.policy import QueuePolicy
from lcc_scrapy.domain.providers import State
from lcc_scrapy.domain.roots import Root
from lcc_scrapy.domain.versions import Keep
from lcc_scrapy.providers import portions, registration
from lcc_scrapy.runtime.apps import ours

pytestmark = pytest.mark.parametrize("store", ["sqlite", "mariadb", "postgresql"], indirect=True)

NEW = "https://new.example.org/docs/"
HOOKS = list(ours().every("renaming"))


@pytest.fixture(autouse=True)
def small_chunks(monkeypatch):
    monkeypatch.setattr(portions, "CHUNK", 4)


def rename(lcc, old=SITE, new=NEW, store=None):
    work = RootRenaming(
        store or lcc.store,
        PID,
        Renaming.between(Root.parse(old), Root.parse(new)),
        lcc.now,
        lcc.policy,
        hooks=HOOKS,
    )
    for _ in work.check():
        pass
    counts = Counter()
    for step in work.run(print):
        counts += step
    lcc.granted.clear()  # it took the turn from whoever had it
    return counts


def named(name, mimetype="text/html"):
    return urlkey(PID, NEW + name, mimetype)


def pages(count, start=0):
    return [f"{number:02}" for number in range(start, start + count)]


def documents(lcc, pid=PID):
    with lcc.store.read() as tx:
        return {row.urlkey: row for row in tx.cached_of(pid, b"", 1000)}


def refused(lcc, *names, **values):
    before = dump(lcc.store)
    with pytest.raises(RenameRefused) as caught:
        rename(lcc, *names, **values)
    assert dump(lcc.store) == before
    return str(caught.value)


def test_documents_get_new_names_and_keep_all_else(lcc):
    lcc.policy = QueuePolicy(versions=Keep(3))
    lcc.store_pages(*pages(10))
    lcc.push(update("03", b"another"))
    lcc.fetch_all(body=b"another")
    before = documents(lcc)
    with lcc.store.read() as tx:
        answers, versions = tx.metas(before), tx.versions(before)
    assert rename(lcc)["documents"] == 10
    after = documents(lcc)
    assert set(after) == {named(name) for name in pages(10)}
    for name in pages(10):
        was, row = before[key(name)], after[named(name)]
        texts = {"curl": NEW + name, "burl": NEW + name, "furl": NEW + name, "final_url": NEW + name}
        assert row == replace(was, urlkey=named(name), seq=row.seq, subtype_seq=0, **texts)
    with lcc.store.read() as tx:
        assert tx.metas(after) == {
            named(name): replace(answers[key(name)], urlkey=named(name)) for name in pages(10)
        }
        (kept,) = versions[key("03")]
        assert tx.versions([*before, *after]) == {named("03"): [replace(kept, urlkey=named("03"))]}
        assert {row.urlkey for row in tx.cached_at([furlkey(PID, NEW + "03")])[furlkey(PID, NEW + "03")]} == {
            named("03")
        }
        assert tx.find_url(NEW + "03")[0] == [after[named("03")]]
        assert tx.roots(PID) == [NEW]
        assert tx.files_to_delete(MACHINE, 1 << 60, 10) == []
    provider = lcc.provider()
    assert (provider.state, provider.narrowing, provider.removed) == (State.ACTIVE, False, 0)
    assert lcc.waiting() == lcc.errors() == []


def test_content_users_see_each_document_leave_and_come_right_behind(lcc):
    lcc.store_pages(*pages(9))
    begun = lcc.feed()[-1].seq
    rename(lcc)
    told = lcc.feed(after=begun, page=5)
    assert len(told) == 18
    for gone, come in zip(told[::2], told[1::2], strict=True):
        assert isinstance(gone, Tombstone)
        assert (come.urlkey, gone.reason) == (urlkey(PID, come.curl, come.mimetype), renamed_to(come.docid))
        assert gone.seq + 1 == come.seq
        assert come.curl == NEW + gone.curl.removeprefix(SITE)


@pytest.mark.parametrize("page", [1, 5])
def test_who_follows_the_feed_meanwhile_has_in_the_end_what_is_there(lcc, page):
    lcc.store_pages(*pages(9))
    have, after = {}, 0

    def follow():
        nonlocal after
        with lcc.store.read() as tx:
            rows = tx.changes(after, page)
        for row in rows:
            have.pop(row.urlkey, None)
            if not isinstance(row, Tombstone):
                have[row.urlkey] = row.curl
            after = row.seq
        return bool(rows)

    follow()
    work = RootRenaming(
        lcc.store, PID, Renaming.between(Root.parse(SITE), Root.parse(NEW)), lcc.now, lcc.policy, hooks=HOOKS
    )
    for _ in work.run(print):
        follow()
    while follow():
        pass
    assert have == {named(name): NEW + name for name in pages(9)}


def test_to_and_fro_gives_the_same_rows_but_for_their_places_in_the_feed(lcc):
    lcc.store_pages(*pages(9))
    lcc.push(*map(update, pages(3, 20)))
    before, waiting = documents(lcc), lcc.waiting()
    rename(lcc)
    rename(lcc, NEW, SITE)
    after = documents(lcc)
    assert {k: replace(row, seq=0, subtype_seq=0) for k, row in after.items()} == {
        k: replace(row, seq=0, subtype_seq=0) for k, row in before.items()
    }
    assert lcc.waiting() == waiting
    with lcc.store.read() as tx:
        assert (tx.roots(PID), set(tx.tombstones(before))) == ([SITE], set())
        assert set(tx.tombstones({named(name) for name in pages(9)})) == {named(name) for name in pages(9)}


def test_what_waits_is_fetched_under_the_new_name_and_told_as_it_was_sent(lcc):
    sent = f'["c",["mimetype","TEXT/HTML"],["f",{len(SITE)}]]'
    lcc.push(*[update(name, sent=sent) for name in pages(6)], removal("zz"))
    assert rename(lcc)["waiting"] == 6
    assert [name for name, _ in lcc.waiting()] == [NEW + name for name in pages(6)]
    ticket = lcc.tickets()[0]
    assert (ticket.row.furl, ticket.row.urlkey) == (NEW + "00", named("00"))
    lcc.settle(lcc.failed(ticket, 404, final=True))
    assert lcc.errors()[-1].submitted == {"c": url("00"), "mimetype": "TEXT/HTML", "f": "00"}


def test_a_later_push_under_the_new_names_fetches_what_changed_and_no_more(lcc):
    lcc.push(*[update(name, b"a body") for name in pages(6)])
    lcc.fetch_all(body=b"a body")
    rename(lcc)

    def again(name, body):
        return replace(update(name, body), curl=NEW + name, furl=NEW + name, burl=NEW + name)

    lcc.push(again("00", b"changed"), *[again(name, b"a body") for name in pages(5, 1)], full=True)
    assert lcc.waiting() == [(NEW + "00", "fetch")]
    assert set(documents(lcc)) == {named(name) for name in pages(6)}
    assert lcc.held() == []


def test_a_key_that_is_a_name_of_its_own_stays(lcc):
    lcc.push(replace(update("a"), curl="page one"))
    lcc.settle(*[lcc.served(ticket) for ticket in lcc.tickets()])
    (before,) = documents(lcc).values()
    rename(lcc)
    (after,) = documents(lcc).values()
    assert (after.urlkey, after.curl, after.furl) == (before.urlkey, "page one", NEW + "a")
    assert after.seq > before.seq
    assert [type(row) for row in lcc.feed()] == [type(after)]


def test_the_documents_of_others_and_below_other_roots_stay(lcc):
    lcc.add(8)
    lcc.store_pages(*pages(3), pid=8)
    registration.change(lcc.store, PID, {}, lambda _: [SITE + "old/", SITE + "new/"])
    lcc.store_pages("old/a", "new/b")
    others = documents(lcc, 8)
    rename(lcc, SITE + "old/", NEW)
    assert {row.curl for row in documents(lcc).values()} == {NEW + "a", SITE + "new/b"}
    assert documents(lcc, 8) == others


# --- what hangs on the names -----------------------------------------------------------------------


def _aci(name):
    return Aci(
        key(name), 1, "Ann", 1, 1, PID, "", "", 5, START, 9, url(name), 0, "base", False, "", "", "", START
    )


def put_all_kinds(lcc):
    lcc.store_pages("a", "b", "c")
    link = DocumentLink(url("b"), "a")
    at = furlkey(PID, url("b"))
    with lcc.store.begin() as tx:
        tx.put_links({key("a"): [link, DocumentLink("http://else.org/", "a")]}, PID)
        tx.put_links({key("gone"): [link]}, PID)
        tx.insert_spidered(
            [
                Spidered(furlkey(PID, url("b")), PID, url("b"), 1, key("a"), START),
                Spidered(furlkey(PID, url("x")), PID, url("x"), 2, key("b"), START, code=404),
            ]
        )
        tx.put_owners([Ownership(at, "Ann", PID, 2), Ownership(furlkey(PID, url("x")), "Bob", PID)])
        tx.put_owners([Ownership(furlkey(PID, NEW + "b"), "Ann", PID, 1, asked=3)])
        tx.put_suspects([Suspect(key("a"), PID, START)])
        tx.put_unwanted([Unwanted(key("a"), 1)])
        tx.put_acis([_aci("a")])
        tx.put_outcomes([_outcome("a"), _outcome("x"), LastOutcome(b"k" * 16, PID, 404, "", START)])
        source_rows(tx).put_source(Source(1, PID, "sitemap", url("sitemap.xml"), 60))
        source_rows(tx).put_source_files([SourceFile(1, 1, url("sitemap.xml"), 0, Role.LIST)])
        source_rows(tx).put_source_urls(1, {at: 5})
        for name in ("gone", "lost"):
            tx.put_irrelevant([Irrelevant(key(name), PID, url(name), "e", "", "s", "t", START)])
        tx.put_tombstones(
            [Tombstone(key("gone"), PID, url("gone"), "text/html", url("gone"), "", START, 900)]
        )
        tx.take("feed", 1000)


def _outcome(name):
    said = f'{{"burl": "{url(name)}", "len": 3}}'
    return LastOutcome(
        key(name), PID, 404, "no", START, OUTCOME_FAILED, url(name), "text/html", url(name), said
    )


def test_all_that_is_known_of_them_follows(lcc):
    put_all_kinds(lcc)
    counts = rename(lcc)
    assert counts == {
        "looked_at": 3, "documents": 3, "found": 2, "irrelevant": 2, "outcomes": 2, "sources": 1,
    }  # fmt: skip
    at, far = furlkey(PID, NEW + "b"), furlkey(PID, NEW + "x")
    with lcc.store.read() as tx:
        assert rows_in(tx).links_among([key("a"), named("a"), key("gone"), named("gone")]) == {
            named("a"): [DocumentLink(NEW + "b", "a"), DocumentLink("http://else.org/", "a")],
            named("gone"): [DocumentLink(NEW + "b", "a")],
        }
        found = {row.furlkey: row for row in tx.spidered_of(PID, b"", 10)}
        assert {k: (row.furl, row.parent, row.code) for k, row in found.items()} == {
            at: (NEW + "b", named("a"), 0), far: (NEW + "x", named("b"), 404),
        }  # fmt: skip
        owners = tx.owners_of([at, far, furlkey(PID, url("b")), furlkey(PID, url("x"))])
        assert owners == {at: [Ownership(at, "Ann", PID, 2, asked=3)], far: [Ownership(far, "Bob", PID)]}
        assert tx.suspects(PID, 0, START, 10) == [named("a")]
        assert tx.unwanted(b"", 10) == []
        assert tx.acis_after(0, None, 10) == [replace(_aci("a"), urlkey=named("a"))]
        outcome = tx.outcome(named("x"))
        assert (outcome.curl, outcome.furl) == (NEW + "x", NEW + "x")
        assert outcome.submitted == f'{{"burl": "{NEW}x", "len": 3}}'
        assert (tx.outcome(key("x")), tx.outcome(b"k" * 16).code) == (None, 404)
        assert [one.url for one in (*source_rows(tx).sources(PID), *source_rows(tx).source_files(1))] == [
            NEW + "sitemap.xml"
        ] * 2
        assert source_rows(tx).source_urls(1, b"", 10) == [(at, 5)]
        assert [(row.urlkey, row.furl) for row in rows_in(tx).irrelevant_rows(PID, b"", 10)] == [
            (named("gone"), NEW + "gone")
        ]


# --- what is refused -------------------------------------------------------------------------------


def test_documents_that_are_there_under_the_new_name_are_in_the_way(lcc):
    registration.change(lcc.store, PID, {}, lambda roots: [*roots, NEW])
    lcc.store_pages(*pages(6))
    lcc.push(*[replace(update(name), curl=NEW + name, furl=NEW + name) for name in pages(5)])
    lcc.fetch_all()
    said = refused(lcc)
    assert said.startswith("nothing is renamed: 5 documents are there under the new name already: ")
    assert said.count(NEW) == 3
    assert said.endswith(" and 2 more")


def test_two_documents_that_would_get_one_name_are_in_the_way(lcc):
    lcc.store_pages("a")
    lcc.push(replace(update("a"), curl="https://www.example.org/a", furl="https://www.example.org/a"))
    lcc.fetch_all()
    assert "2 documents are there under the new name already" in refused(lcc)


def test_what_would_lie_outside_or_be_too_long_is_in_the_way(lcc):
    lcc.push(replace(update("a"), curl="k", furl="http://www.example.org/%6fld/a"), update("old/b"))
    lcc.fetch_all()
    registration.change(lcc.store, PID, {}, lambda _: [SITE + "old/"])
    said = refused(lcc, SITE + "old/", NEW)
    assert (
        said == "nothing is renamed: 1 documents would lie outside the roots: http://www.example.org/%6fld/a"
    )
    assert "1 documents would have too long a URL" in refused(lcc, SITE + "old/", SITE + "x" * 2024 + "/")


def test_what_is_no_root_or_holds_another_one_is_refused(lcc):
    assert refused(lcc, SITE + "old/") == f"{SITE}old/ is none of the roots of provider 7"
    registration.change(lcc.store, PID, {}, lambda _: [SITE, SITE + "sub/"])
    assert "another root, lies below" in refused(lcc)
    registration.change(lcc.store, PID, {}, lambda _: [NEW])
    assert refused(lcc).endswith("it was renamed already")
    lcc.change(turngroup="g")
    assert "shares a turn" in refused(lcc, NEW, SITE)


def test_while_sets_are_under_way_or_it_moves_it_is_refused(lcc):
    with lcc.store.begin() as tx:
        tx.insert_logins([OpenLogin(PID, 3, "uns-1", START)])
    assert "under way, at UNS uns-1" in refused(lcc)
    lcc.change(state=State.MOVING)
    assert "lcc front move" in refused(lcc)


# --- kills -----------------------------------------------------------------------------------------


class Dying:
    """A store whose process dies before, or right after, one of its commits."""

    def __init__(self, store, commits, *, late):
        self._store, self._left, self._late = store, commits, late

    def __getattr__(self, name):
        return getattr(self._store, name)

    @contextmanager
    def begin(self):
        self._left -= 1
        with self._store.begin() as tx:
            yield tx
            if not self._left and not self._late:
                raise Crash
        if not self._left:
            raise Crash


@pytest.mark.soak_of("mariadb", "postgresql")
@pytest.mark.parametrize("late", [False, True])
def test_killed_at_any_commit_the_same_call_goes_on_and_nothing_is_told_twice(lcc, late):
    put_all_kinds(lcc)
    lcc.push(*map(update, pages(6)))
    lcc.fetch_all()
    lcc.push(*map(update, pages(3, 30)))
    begun = lcc.feed()[-1].seq
    commits = kills = 1 + late
    while True:
        try:
            rename(lcc, store=Dying(lcc.store, commits, late=late))
        except Crash:
            kills += 1
            commits += 2
            if lcc.provider().state == State.MOVING:
                with pytest.raises(RenameRefused, match="run that to its end"):
                    rename(lcc, SITE, "http://other.org/")
                with pytest.raises(registration.Moves, match="rename-root"):
                    registration.change(lcc.store, PID, {"priority": 1})
            assert kills < 60
            continue
        except RenameRefused:  # it was done before the last kill
            assert lcc.provider().state == State.ACTIVE
        break
    assert kills > 5
    told = lcc.feed(after=begun)
    assert sum(isinstance(row, Tombstone) for row in told) == 9
    assert len(told) == 18
    assert len(lcc.waiting()) == 3
    with lcc.store.read() as tx:
        assert [row.furl for row in tx.spidered_of(PID, b"", 10)].count(NEW + "x") == 1
        assert (tx.roots(PID), tx.info(registration.renaming_fact(PID))) == ([NEW], None)
    assert lcc.provider().state == State.ACTIVE


def _work(lcc, old=SITE, new=NEW):
    names = Renaming.between(Root.parse(old), Root.parse(new))
    return RootRenaming(lcc.store, PID, names, lcc.now, lcc.policy, hooks=HOOKS)


@pytest.mark.parametrize("had_new", [False, True])
def test_while_it_waits_it_may_be_given_up_and_all_is_as_before(lcc, monkeypatch, had_new):
    lcc.store_pages(*pages(5))
    roots = [SITE, NEW] if had_new else [SITE]
    registration.change(lcc.store, PID, {"state": State.PAUSED}, lambda _: roots)
    registration.change(lcc.store, PID, {"narrowing": False})
    before = documents(lcc), lcc.feed(), lcc.provider().state

    def given_up(*_):
        with lcc.store.read() as tx:
            assert tx.roots(PID) == [SITE, NEW]
        assert lcc.provider().state == State.MOVING
        with pytest.raises(RenameRefused, match="give that up"):
            list(_work(lcc, SITE, "http://other.org/").give_up())
        list(_work(lcc).give_up())

    monkeypatch.setattr(renaming, "why_busy", lambda *_: "a fetch")
    monkeypatch.setattr(renaming.time, "sleep", given_up)
    with pytest.raises(RenameRefused, match="was given up"):
        list(_work(lcc).run(print))
    with lcc.store.read() as tx:
        assert (tx.roots(PID), tx.info(registration.renaming_fact(PID))) == (roots, None)
    assert (documents(lcc), lcc.feed(), lcc.provider().state) == before
    assert not lcc.provider().narrowing
    monkeypatch.undo()
    with pytest.raises(RenameRefused, match="no root of provider"):
        list(_work(lcc).give_up())


def test_once_rows_are_renamed_it_cannot_be_given_up(lcc):
    lcc.store_pages(*pages(9))
    work = _work(lcc).run(print)
    next(work)
    work.close()
    with pytest.raises(RenameRefused, match="have other names already"):
        list(_work(lcc).give_up())
    assert rename(lcc)["documents"] > 0
    assert set(documents(lcc)) == {named(name) for name in pages(9)}


def test_one_that_an_earlier_version_began_cannot_be_given_up(lcc):
    lcc.change(state=State.MOVING)
    with lcc.store.begin() as tx:
        which = renaming.UnderWay.of(Renaming.between(Root.parse(SITE), Root.parse(NEW)), "").which
        tx.set_info(registration.renaming_fact(PID), f'["{which}", "active", "this to that"]')
    with pytest.raises(RenameRefused, match="have other names already"):
        list(_work(lcc).give_up())
    assert lcc.provider().state == State.MOVING


def test_a_paused_provider_is_paused_afterwards_and_a_fetch_under_way_is_not_stored(lcc):
    lcc.push(update("a"))
    ticket = lcc.ticket("a")
    lcc.change(state=State.PAUSED)
    rename(lcc)
    assert lcc.provider().state == State.PAUSED
    assert lcc.settle(lcc.served(ticket))[0].result == "lost"
    assert documents(lcc) == {}


# --- cost ------------------------------------------------------------------------------------------


@pytest.mark.soak_of("mariadb", "postgresql")
def test_statements_grow_with_the_documents_alone(lcc, monkeypatch):
    monkeypatch.setattr(portions, "CHUNK", 5)
    assert isinstance(lcc.store, SqlStore)
    lcc.add(8)
    lcc.store_pages(*pages(10))
    rename(lcc)
    small = _statements(lcc, SITE, NEW)
    lcc.store_pages(*pages(20), pid=8)
    rename(lcc)
    assert _statements(lcc, SITE, NEW) == small
    lcc.store_pages(*pages(10, 10))
    rename(lcc)
    assert _statements(lcc, SITE, NEW) <= 2 * small


def _statements(lcc, new, old):
    count = 0

    def counted(*_):
        nonlocal count
        count += 1

    event.listen(lcc.store.engine, "before_cursor_execute", counted)
    rename(lcc, old, new)
    event.remove(lcc.store.engine, "before_cursor_execute", counted)
    return count
