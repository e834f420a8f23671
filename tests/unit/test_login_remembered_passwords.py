"""Right passwords are remembered for a while, wrong ones never."""

from lcc_scrapy.login import passwords
from lcc_scrapy.login.passwords import RightPasswords


def test_a_right_password_is_remembered_for_a_while_and_no_other_one():
    kept = RightPasswords()
    assert not kept.has("hash", "secret", 0)
    kept.note("hash", "secret", 0)
    assert kept.has("hash", "secret", passwords.REMEMBERED_SECONDS - 1)
    assert not kept.has("hash", "guess", 1)
    assert not kept.has("another hash", "secret", 1)
    assert not kept.has("hash", "secret", passwords.REMEMBERED_SECONDS)


def test_the_password_that_was_not_used_for_longest_is_forgotten(monkeypatch):
    monkeypatch.setattr(passwords, "REMEMBERED", 2)
    kept = RightPasswords()
    for name in ("a", "b", "a", "c"):
        kept.note(name, "secret", 0)
    assert [kept.has(name, "secret", 1) for name in "abc"] == [True, False, True]


def test_another_process_keeps_something_else():
    assert RightPasswords()._mac("secret") != RightPasswords()._mac("secret")
