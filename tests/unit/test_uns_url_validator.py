"""What is told, kept and recorded of a URL that is refused."""

import pytest

from lcc_scrapy.domain.entries import Operation
from lcc_scrapy.domain.errors import text_of
from lcc_scrapy.domain.roots import Root
from lcc_scrapy.uns import url_validator
from lcc_scrapy.uns.ports import Login
from lcc_scrapy.uns.url_validator import UrlValidator
from lcc_scrapy.wire.messages import InitAccepted, Quota, SetStart, Url


def validator(*, full: bool = False, drop_outside: bool = False) -> UrlValidator:
    accepted = InitAccepted(1, "", ("text/*",), Quota())
    login = Login(1, accepted, (Root.parse("http://h/"),))
    return UrlValidator(login, SetStart(full=full, drop_outside=drop_outside))


def element(curl: str = "http://h/a", mimetype: str = "text/html", **attributes: str) -> Url:
    return Url({"curl": curl, "mimetype": mimetype, **attributes})


def test_a_refusal_says_what_is_wrong_where_there_is_more_to_say_than_its_code() -> None:
    _, plain = validator().judge(element(curl=""))
    assert (plain.code, plain.text) == (701, text_of(701))
    _, detailed = validator().judge(element(mimetype="image/png"))
    assert (detailed.code, detailed.text) == (703, f"{text_of(703)}: image/png")


@pytest.mark.parametrize(("full", "recorded"), [(True, Operation.PRESENT), (False, None)])
def test_in_a_full_set_alone_a_refused_url_still_says_that_its_document_exists(full, recorded) -> None:
    entry, error = validator(full=full).judge(element(md5="x"))
    assert error.code == 706
    assert (entry.operation if entry else None) == recorded


def test_what_exists_is_known_by_its_key_where_its_fetch_url_cannot_be_read() -> None:
    entry, _ = validator(full=True).judge(element(furl="ftp://h/a"))
    assert (entry.curl, entry.mimetype, entry.furl) == ("http://h/a", "text/html", "")
    entry, _ = validator(full=True).judge(element(furl="HTTP://H/b", md5="x"))
    assert entry.furl == "http://h/b"


def test_a_url_outside_the_roots_may_be_dropped_without_a_word() -> None:
    judge = validator(full=True, drop_outside=True)
    assert judge.judge(element(curl="http://other/")) == (None, None)
    assert [one.code for one in judge.refused] == [704], "the operator is told"


def test_what_lies_outside_only_since_names_are_those_of_uts_46_is_not_dropped() -> None:
    """A full set would remove its document."""
    accepted = InitAccepted(1, "", ("text/*",), Quota())
    login = Login(1, accepted, (Root.parse("http://strasse.example/"),))
    judge = UrlValidator(login, SetStart(full=True, drop_outside=True))
    entry, error = judge.judge(element(curl="http://straße.example/a"))
    assert (entry.curl, entry.operation) == ("http://straße.example/a", Operation.PRESENT)
    assert error.text.endswith("add the root http://xn--strae-oqa.example/")
    assert judge.judge(element(curl="http://xn--strae-oqb.example/a")) == (None, None)


def test_a_full_set_counts_what_has_not_even_a_key() -> None:
    judge = validator(full=True)
    assert judge.judge(element(mimetype=""))[0] is None
    assert judge.judge(element(curl=""))[0] is None
    assert judge.judge(element(md5="x"))[0] is not None
    assert judge.unreadable == 2


@pytest.mark.parametrize(("spare", "kept"), [(0, 3), (-1, 2)])
def test_the_newest_refusals_are_kept_in_so_many_characters(
    monkeypatch: pytest.MonkeyPatch, spare: int, kept: int
) -> None:
    urls = [f"http://h/{number}" for number in range(5)]
    text = f"{text_of(703)}: image/png"
    each = len(urls[0]) + len("image/png") + len(urls[0]) + len(text)
    monkeypatch.setattr(url_validator, "REFUSED_CHARACTERS", 3 * each + spare)
    judge = validator()
    for url in urls:
        judge.judge(element(curl=url, mimetype="image/png"))
    assert [one.curl for one in judge.refused] == urls[-kept:]
