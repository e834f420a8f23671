"""Passwords of providers."""

import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lcc_scrapy.login.passwords import DUMMY, hash_password, verify_password


def test_a_hash_matches_its_own_password_only():
    known = hash_password("sécret")
    assert verify_password(known, "sécret")
    assert not verify_password(known, "secret")


def test_two_hashes_of_one_password_differ_and_do_not_hold_it():
    first, second = hash_password("secret"), hash_password("secret")
    assert first != second
    assert "secret" not in first


def test_the_parameters_are_those_that_were_decided():
    assert hash_password("x").startswith("$argon2id$v=19$m=19456,t=2,p=1$")


@settings(max_examples=5, deadline=None)
@given(st.text())
def test_any_text_can_be_checked(password):
    assert verify_password(hash_password(password), password)
    assert not verify_password(DUMMY, password)


@pytest.mark.parametrize("known", ["", "a hash", "$argon2id$v=19$m=19456,t=2,p=1$", "$2b$12$abc"])
def test_an_unusable_hash_matches_nothing(known):
    assert not verify_password(known, "")


def test_an_unknown_id_takes_as_long_as_a_wrong_password():
    known = hash_password("secret")
    assert DUMMY.split("$")[:4] == known.split("$")[:4], "the same work"

    def seconds(hash_):
        started = time.process_time()
        for _ in range(5):
            verify_password(hash_, "wrong")
        return time.process_time() - started

    assert 0.3 < min(seconds(known) for _ in range(3)) / min(seconds(DUMMY) for _ in range(3)) < 3
