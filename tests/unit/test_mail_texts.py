"""What providers read: plain English in short lines, and nothing of strangers that steers a terminal."""

import re
from datetime import UTC, datetime, time
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lcc_scrapy.apps.mail import texts
from lcc_scrapy.apps.mail.rules import DAY, Told, is_news, still_told, wait
from lcc_scrapy.apps.mail.texts import Around
from lcc_scrapy.db.records import LastOutcome
from lcc_scrapy.domain.errors import CODES
from lcc_scrapy.domain.timeslots import next_at

AROUND = Around(7, "Example", "https://push.example.org/mail/unsubscribe?t=7-ab", "ops@example.org")


def failed(url, code=404):
    return LastOutcome(b"k" * 16, 7, code, "", 1_800_000_000, "failed", url, "text/html", url)


def test_a_digest_reads_as_plain_english():
    newest = [failed("http://www.example.org/a"), failed("http://www.example.org/b", 703)]
    written = texts.digest(AROUND, {404: 2, 703: 1}, newest, 1_800_000_000)
    assert written.subject == "Example: 3 URLs could not be read"
    assert written.text == (
        "3 URLs of Example could not be read since 2027-01-15 08:00 UTC.\n"
        "\n"
        "2 x 404 Not Found\n"
        "    Push their removal, if these documents are gone for good.\n"
        "1 x 703 mimetype not accepted\n"
        "    Documents of this type are not accepted here.\n"
        "\n"
        "The newest 2:\n"
        "\n"
        "404  http://www.example.org/a\n"
        "703  http://www.example.org/b\n"
        "\n"
        "--\n"
        "You get this mail as provider 7 of a Local Content Cache.\n"
        "To get no more of these mails, open this page: https://push.example.org/mail/unsubscribe?t=7-ab\n"
        "The operator: ops@example.org\n"
    )


def test_one_of_a_kind_is_one():
    assert (
        texts.digest(AROUND, {404: 1}, [failed("http://x/")], 0).subject == "Example: 1 URL could not be read"
    )
    assert texts.removals_held(AROUND, 1).text.startswith("1 document of Example would be removed")


@pytest.mark.parametrize(
    "code", [*(number for number in CODES if number // 100 in {6, 7}), 301, 401, 404, 418, 500]
)
def test_every_code_has_advice_in_short_whole_sentences(code):
    for sentence in re.split(r"(?<=[.])\s", texts.advice(code)):
        assert re.fullmatch(r"[A-Z].*\.", sentence)
        assert len(sentence.split()) <= 25


@given(st.text(max_size=500), st.text(max_size=300), st.text(max_size=100))
def test_what_strangers_wrote_stays_in_its_line(url, name, reason):
    around = Around(7, name, "", reason)
    for written in (texts.digest(around, {404: 1}, [failed(url)], 0), texts.full_set_wanted(around, reason)):
        assert written.subject.isprintable()
        assert all(line.isprintable() for line in written.text.split("\n"))
    assert len(texts.digest(around, {404: 1}, [failed(url)], 0).text.split("\n")) == 13 + bool(reason)


def test_a_password_in_a_url_is_blanked_and_a_long_url_shortened():
    url = f"ftp://lcc:{'secret' * 50}@www.example.org/{'a' * 1800}"
    text = texts.digest(AROUND, {705: 1}, [failed(url, 705)], 0).text
    assert "secret" not in text
    assert max(map(len, text.split("\n"))) < 300


def test_a_million_errors_of_many_codes_are_a_short_mail():
    counts = dict.fromkeys(range(400, 1400), 1000)
    newest = [failed(f"http://www.example.org/{'ü' * 2000}") for _ in range(texts.URLS)]
    written = texts.digest(AROUND, counts, newest, 0)
    assert "1000000 URLs" in written.text
    assert "980000 x other codes" in written.text
    assert len(written.text) < 20_000


# --- when ----------------------------------------------------------------------------------------


def at(text, zone="Europe/Amsterdam"):
    return int(datetime.fromisoformat(text).replace(tzinfo=ZoneInfo(zone)).timestamp())


@pytest.mark.parametrize(
    ("now", "hour", "comes"),
    [
        ("2027-03-01T05:59", time(6), "2027-03-01T06:00"),
        ("2027-03-01T06:00", time(6), "2027-03-02T06:00"),
        ("2027-03-27T12:00", time(6), "2027-03-28T06:00"),
        ("2027-10-30T12:00", time(6), "2027-10-31T06:00"),
        ("2027-12-31T07:00", time(6, 30), "2028-01-01T06:30"),
    ],
)
def test_the_hour_follows_the_clock_of_the_zone(now, hour, comes):
    assert next_at(hour, at(now), ZoneInfo("Europe/Amsterdam")) == at(comes)


@given(
    st.integers(0, 4_000_000_000),
    st.times(),
    st.sampled_from(["UTC", "Europe/Amsterdam", "Pacific/Apia", "America/Sao_Paulo"]),
)
def test_the_hour_comes_within_two_days(now, hour, zone):
    assert now < next_at(hour.replace(microsecond=0), now, ZoneInfo(zone)) <= now + 2 * DAY + 3 * 3600


def test_what_stands_is_news_once_and_more_of_it_the_next_day():
    now = int(datetime(2027, 1, 1, tzinfo=UTC).timestamp())
    assert is_news(5, Told(0, 0), now)
    assert not is_news(5, Told(5, now - 2 * DAY), now)
    assert is_news(6, Told(5, now - DAY), now)
    assert not is_news(6, Told(5, now - DAY + 1), now)
    assert not is_news(0, Told(5, 0), now)
    assert not is_news("", Told("old files", 0), now)
    assert is_news("cache crash", Told("old files", 0), now)
    assert (still_told(3, 5), still_told(7, 5), still_told("", "x"), still_told("y", "x")) == (3, 5, "", "x")


def test_waits_double_up_to_six_hours():
    assert [wait(tries) for tries in (1, 2, 3, 6, 7, 8, 1000)] == [
        600,
        1200,
        2400,
        19200,
        21600,
        21600,
        21600,
    ]
