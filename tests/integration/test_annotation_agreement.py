"""The automaton finds what the plain definition of matching finds, on real pages and real words."""

import random
from pathlib import Path

import pytest

from lcc_scrapy.annotation.annotating import Page, Profiles
from lcc_scrapy.annotation.page_text import text_of
from lcc_scrapy.domain.urds import EVERYTHING, Keyword, Process, Urd
from tests.harness import corpora
from tests.naive_annotation import NaiveRule, NaiveText, words_of

__all__ = ["corpora"]

PAGES, SAMPLE, PROFILES = 2000, 60, 300


def pages_of(folders: dict[str, Path]) -> list[Path]:
    files = [
        path
        for folder in folders.values()
        for path in sorted(folder.rglob("*"))
        if path.suffix in {".html", ".txt"}
    ]
    random.Random(16).shuffle(files)
    return files[:PAGES]


def page_of(path: Path) -> Page:
    kind = "text/html" if path.suffix == ".html" else "text/plain"
    return Page(f"http://www.example.org/{path.name}", path.read_bytes(), kind, "")


def naive_text(page: Page) -> NaiveText:
    text = text_of(page.body, page.mimetype, page.charset)
    assert text is not None
    return NaiveText(text.title, text.paragraphs)


def phrases(pages: list[Page], chance: random.Random) -> list[str]:
    """Return words and phrases of these pages, common ones more often, as somebody might write them."""
    found = []
    for page in pages:
        words = [word for word in naive_text(page).words if word]
        for _ in range(PROFILES // 4):
            at, length = chance.randrange(len(words)), chance.choice((1, 1, 1, 2, 3))
            phrase = chance.choice((" ", "-", ", ")).join(words[at : at + length])
            found.append(chance.choice((phrase, phrase.upper(), phrase.title())))
    return [*found, "nowhere at all", "thisisnoword"]


def rule_of(chance: random.Random, words: list[str], depth: int = 0) -> NaiveRule:
    kinds = ("term", "near", "any", "all", "not") if depth < 3 else ("term", "near")
    name = chance.choice(kinds)
    if name == "term":
        return NaiveRule("term", term=chance.choice(words))
    if name == "near":
        terms = tuple(
            NaiveRule("term", term=one) for one in chance.choices(words, k=chance.choice((2, 2, 3)))
        )
        return NaiveRule("near", terms, chance.randrange(1, 30))
    count = 1 if name == "not" else chance.randrange(1, 4)
    return NaiveRule(name, tuple(rule_of(chance, words, depth + 1) for _ in range(count)))


def profiles_of(words: list[str], chance: random.Random) -> tuple[list[Urd], dict[int, NaiveRule]]:
    urds, rules = [], {}
    for number in range(1, PROFILES + 1):
        keywords = {" ".join(words_of(key)): key for key in chance.choices(words, k=5)}
        wanted = tuple(Keyword(key, chance.randrange(1, 6)) for key in keywords.values())
        urd = Urd(number, "o", EVERYTHING, threshold=chance.randrange(0, 60), keywords=wanted)
        if number % 3 == 0:
            rules[number] = rule_of(chance, words)
            wanted = wanted if number % 2 else ()
            urd = Urd(
                number, "o", EVERYTHING, processtype=Process.RULE, rule=str(rules[number]), keywords=wanted
            )
        urds.append(urd)
    return urds, rules


def expected(urds: list[Urd], rules: dict[int, NaiveRule], text: NaiveText) -> dict[int, int]:
    found = {}
    for urd in urds:
        relevance = text.relevance(urd.keywords)
        if urd.urdid in rules:
            held = rules[urd.urdid].holds(text)
            if held and not urd.keywords:
                found[urd.urdid] = 1
            elif held and relevance >= urd.threshold:
                found[urd.urdid] = relevance
        elif relevance >= urd.threshold:
            found[urd.urdid] = relevance
    return found


def check(paths: list[Path]) -> None:
    chance = random.Random(18)
    words = phrases([page_of(path) for path in paths[:: max(1, len(paths) // 20)]], chance)
    urds, rules = profiles_of(words, chance)
    profiles = Profiles(urds)
    seen = 0
    for path in paths:
        page = page_of(path)
        found = {one.urd.urdid: one.relevance for one in profiles.findings(page, (), 0)}
        assert found == expected(urds, rules, naive_text(page)), path
        seen += len(found)
    assert seen > len(paths)  # or there would be nothing to agree about


def test_automaton_and_plain_definition_agree_on_some_real_pages(corpora: dict[str, Path]) -> None:
    check(pages_of(corpora)[:SAMPLE])


@pytest.mark.soak
def test_they_agree_on_two_thousand_real_pages(corpora: dict[str, Path]) -> None:
    paths = pages_of(corpora)
    assert len(paths) == PAGES
    check(paths)
