"""What a robots.txt may cost: each dimension is grown, against a harmless file of the same size.

Processor time is compared within one run, memory as it is allocated; no verdict depends on the clock.
"""

from collections.abc import Callable, Iterator
from itertools import chain, count, takewhile

import pytest

from lcc_scrapy.domain.robots import MAX_BYTES, Robots
from tests.faults.costs import memory, processor_time

TOKEN = "lcc-scrapy"
ANYBODY = "User-agent: *\n"
SIZE = 40_000


def filled(lines: Iterator[str], size: int) -> bytes:
    """Return a robots.txt for anybody of as many of these lines as fit."""
    length = 0

    def fits(line: str) -> bool:
        nonlocal length
        length += len(line.encode())
        return length <= size

    return "".join(takewhile(fits, chain([ANYBODY], lines))).encode()


def parsed(body: bytes) -> Robots:
    return Robots.parse(body, TOKEN)


def harmless(size: int) -> bytes:
    return filled((f"Disallow: /folder{n % 50}/page{n}\n" for n in count()), size)


def agents_times_rules(size: int) -> bytes:
    most = size // 36
    names = "".join(f"User-agent: a{n}\n" for n in range(most))
    return (names + ANYBODY + "".join(f"Disallow: /{n}\n" for n in range(most))).encode()


def agents_and_delays(size: int) -> bytes:
    most = size // 36
    names = "".join(f"User-agent: a{n}\n" for n in range(most))
    return (names + ANYBODY + "".join(f"Crawl-delay: {n}\n" for n in range(most))).encode()


ATTACKS: dict[str, Callable[[int], bytes]] = {
    "bytes": lambda size: filled((f"#{'x' * 60}\n" for _ in count()), size),
    "empty lines": lambda size: filled(("\n" for _ in count()), size),
    "short lines": lambda size: filled(("allow:\n" for _ in count()), size),
    "agents": lambda size: filled((f"User-agent: a{n}\n" for n in count()), size),
    "groups": lambda size: filled((f"User-agent: {'*' if n % 2 else TOKEN}\nDisallow: /{n}\n" for n in count()), size),
    "rules": lambda size: filled((f"allow:/{n:x}\n" for n in count()), size),
    "agents x rules": agents_times_rules,
    "agents x delays": agents_and_delays,
    "the same rule": lambda size: filled(("Disallow: /a\n" for _ in count()), size),
    "nested rules": lambda size: filled((f"Disallow: /{'a' * n}\n" for n in count()), size),
    "wildcards": lambda size: filled((f"Disallow: /*{n}*a\n" for n in count()), size),
    "one long rule": lambda size: filled(iter([f"Disallow: /{'a' * (size - 50)}\n"]), size),
    "one long wildcard": lambda size: filled(iter([f"Disallow: /{'*a' * (size // 2 - 50)}\n"]), size),
    "one long name": lambda size: filled(iter([f"{'a' * (size - 50)}: b\n"]), size),
    "one long agent": lambda size: filled(iter([f"User-agent: {'(compatible; ' * (size // 14)}\n"]), size),
    "blanks": lambda size: filled(iter([f"Disallow{' ' * (size // 2 - 50)}:{' ' * (size // 2 - 50)}\n"]), size),
    "octets": lambda size: filled((f"Disallow: /{n}{'é' * 50}\n" for n in count()), size),
    "encoded octets": lambda size: filled((f"Disallow: /{n}{'%41' * 50}\n" for n in count()), size),
    "queries": lambda size: filled((f"Disallow: /?{n}{':/?@' * 50}\n" for n in count()), size),
    "sitemaps": lambda size: filled((f"Sitemap: http://a/{n}\n" for n in count()), size),
}  # fmt: skip


@pytest.mark.parametrize("name", ATTACKS)
def test_no_file_costs_much_more_than_a_harmless_one_of_its_size(name: str) -> None:
    usual, attack = harmless(SIZE), ATTACKS[name](SIZE)
    assert len(attack) <= len(usual) * 1.01
    assert processor_time(lambda: parsed(attack)) < 8 * processor_time(lambda: parsed(usual))
    assert memory(lambda: parsed(attack)) < 8 * memory(lambda: parsed(usual))


@pytest.mark.parametrize("name", ATTACKS)
def test_four_times_the_bytes_cost_about_four_times_as_much(name: str) -> None:
    small, large = ATTACKS[name](SIZE), ATTACKS[name](4 * SIZE)
    slack = 0.005  # CPU seconds; what is quadratic takes many times that
    assert processor_time(lambda: parsed(large)) < 10 * processor_time(lambda: parsed(small)) + slack
    assert memory(lambda: parsed(large)) < 8 * memory(lambda: parsed(small)) + 100_000


URLS = {
    "usual": [f"/folder/page-{n}.html" for n in range(20)],
    "long": [f"/{'a' * 1900}{n}" for n in range(20)],
    "of odd characters": [f"/{n}?{'%41:/?@*$' * 200}" for n in range(20)],
}


def checks(rules: Robots, urls: list[str]) -> float:
    return processor_time(lambda: [rules.allowed(url) for url in urls])


GROWING: dict[str, Callable[[int], Iterator[str]]] = {
    "rules": lambda rules: (f"Disallow: /{n}\n" for n in range(rules)),
    "nested rules": lambda rules: (f"Disallow: /{'a' * (n % 900)}\n" for n in range(rules)),
    "whole rules": lambda rules: (f"Disallow: /folder/{n}$\n" for n in range(rules)),
    "wildcards": lambda rules: (f"Allow: /*{n}*b*\n" for n in range(rules)),
    "wildcards of many pieces": lambda rules: (f"Allow: /{'*a' * 100}*b{n}\n" for n in range(rules)),
    "wildcards with a long beginning": lambda rules: (f"Allow: /{'a' * 200}*{n}*\n" for n in range(rules)),
}


@pytest.mark.parametrize("urls", URLS)
@pytest.mark.parametrize("name", GROWING)
def test_a_check_does_not_grow_with_the_rules(name: str, urls: str) -> None:
    few = parsed(filled(GROWING[name](1500), MAX_BYTES))
    many = parsed(filled(GROWING[name](30_000), MAX_BYTES))
    slack = 2e-6 * len(URLS[urls])
    assert checks(many, URLS[urls]) < 4 * checks(few, URLS[urls]) + slack


@pytest.mark.parametrize("urls", URLS)
def test_a_check_of_the_worst_rules_costs_less_than_a_fetch(urls: str) -> None:
    """A fetch takes more than a millisecond of the processor; comparing all rules took a hundred."""
    wildcards = parsed(filled((f"Allow: /*{n}*b*\n" for n in count()), MAX_BYTES))
    usual = parsed(harmless(1000))
    assert checks(wildcards, URLS[urls]) < 0.01 * len(URLS[urls])
    assert checks(parsed(harmless(MAX_BYTES)), URLS[urls]) < 20 * checks(usual, URLS[urls])
