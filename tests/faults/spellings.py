# ruff: noqa: RUF001 - look-alikes are what this is about
"""A thousand ways to write a private address, or a host that looks like another one."""

import random
from collections.abc import Iterator
from ipaddress import IPv4Address, IPv6Address
from itertools import product

HONEST = "www.example.org"
LOCAL = ("127.0.0.1", "127.0.0.2", "127.1.2.3", "127.255.255.254", "0.0.0.0")
"""Addresses at which a canary hears, should anybody come."""

ELSEWHERE = ("10.0.0.1", "100.64.0.1", "169.254.169.254", "172.16.0.1", "172.31.255.255", "192.168.0.1", "198.18.0.1",
             "224.0.0.1", "255.255.255.255", "192.0.0.192")  # fmt: skip
_FULLWIDTH = str.maketrans("0123456789abcdefx", "０１２３４５６７８９ａｂｃｄｅｆｘ")
_CIRCLED = str.maketrans("123456789", "①②③④⑤⑥⑦⑧⑨")
_MATHEMATICAL = {ord("0") + n: 0x1D7CE + n for n in range(10)}
_SCHEMES = ("http", "https", "HTTP", "hTTps")


def _v4(text: str) -> Iterator[str]:
    number, parts = int(IPv4Address(text)), [int(part) for part in text.split(".")]
    first, second, third, fourth = parts
    yield from (
        text,
        f"{text}.",
        f"{text}..",
        f".{text}",
        f"{number}",
        f"{number}.",
        f"0x{number:x}",
        f"0X{number:X}",
    )
    yield from (
        f"0{number:o}",
        f"{number + 2**32}",
        f"0x{number + 2**32:x}",
        f"-{2**32 - number}",
        f"{number:032b}",
    )
    yield from (
        f"{first}.{number % 2**24}",
        f"{first}.{second}.{number % 2**16}",
        f"0x{first:x}.{number % 2**24}",
    )
    yield ".".join(f"{part:#x}" for part in parts)
    yield ".".join(f"0x{part:08x}" for part in parts)
    yield ".".join(f"0{part:o}" for part in parts)
    yield ".".join(f"000{part:o}" for part in parts)
    yield ".".join(f"{part:03d}" for part in parts)
    yield ".".join(f"{part + 256}" for part in parts)
    yield f"0x{first:x}.0{second:o}.{third}.{fourth}"
    yield f"{first}.0x{second:x}.0{third:o}.{fourth}"
    yield from (text.translate(table) for table in (_FULLWIDTH, _CIRCLED, _MATHEMATICAL))
    yield from (text.replace(".", dot) for dot in "。．｡․‥")
    yield from (text.replace(".", code) for code in ("%2e", "%2E", "%252e", "%EF%BC%8E"))
    yield "".join(f"%{ord(letter):02x}" for letter in text)
    yield text.replace("1", "%31", 1)
    yield from (
        text[:2] + odd + text[2:]
        for odd in ("\t", "\n", "\r\n", " ", "\u200b", "\u00ad", "\u2060", "\0", "%00", "%0a")
    )
    yield from (
        f"{text}{tail}"
        for tail in (
            "%00",
            "%20",
            "\t",
            "\u3000",
            "%09.example.org",
            ".nip.io",
            f".{HONEST}",
            f"%2f.{HONEST}",
        )
    )


def _v6(text: str) -> Iterator[str]:
    number = int(IPv4Address(text))
    high, low = number >> 16, number & 0xFFFF
    inside = [
        f"::ffff:{text}",
        f"::{text}",
        f"::ffff:0:{text}",
        f"64:ff9b::{text}",
        f"64:ff9b:1::{text}",
        f"fe80::5efe:{text}",
    ]
    inside += [f"::ffff:{high:x}:{low:x}", f"0:0:0:0:0:FFFF:{high:X}:{low:04X}", f"2002:{high:x}:{low:x}::1"]
    inside += [
        f"2001:0:{high:x}:{low:x}::1",
        f"2001::{high ^ 0xFFFF:x}:{low ^ 0xFFFF:x}",
        f"::ffff:{text}%lo",
        f"::ffff:{text}%25lo",
    ]
    yield from (f"[{one}]" for one in inside)


def _own_v6() -> Iterator[str]:
    plain = [
        "::1",
        "0:0:0:0:0:0:0:1",
        "0000:0000:0000:0000:0000:0000:0000:0001",
        "::0001",
        "::",
        "::0",
        "0::1",
        "::0.0.0.1",
    ]
    plain += [
        "fc00::1",
        "fd00:ec2::254",
        "fec0::1",
        "fe80::1",
        "ff02::1",
        "100::1",
        "5f00::1",
        "2001:db8::1",
        "3fff::1",
    ]
    for one in plain:
        yield from (
            f"[{one}]",
            f"[{one.upper()}]",
            f"[{one}%25lo]",
            f"[{one}%lo]",
            f"%5B{one}%5D",
            f"[{one}].",
            f"[{one}]x",
        )
        yield from (
            f"[{one.translate(_FULLWIDTH)}]",
            f"[{one.replace(':', '：')}]",
            f"[ {one}]",
            one,
            f"[{one}",
            f"[[{one}]]",
        )
    yield f"[{IPv6Address(1).exploded}]"


def _names() -> Iterator[str]:
    yield from (
        "localhost",
        "LOCALHOST",
        "localhost.",
        "localhost..",
        "ｌｏｃａｌｈｏｓｔ",
        "ⓛⓞⓒⓐⓛⓗⓞⓢⓣ",
        "loc%61lhost",
        "localhost%00",
    )
    yield from (
        "localhost.localdomain",
        "ip6-localhost",
        "lo\tcalhost",
        "localhost\\",
        "metadata",
        "metadata.google.internal",
    )
    yield from (
        f"{HONEST}.",
        f"{HONEST}.evil.example",
        f"{HONEST}%2eevil.example",
        f"{HONEST}%00.evil.example",
        "www.exаmple.org",
    )
    yield from (
        "ｗｗｗ.example.org.evil.example",
        "www.example。org.evil.example",
        "www.examp1e.org",
        "xn--www-example-org",
        "wwwexample.org",
    )
    yield from (
        "www.example.org\u2024evil.example",
        "www.example.orɡ",
        "www.example.org℀.evil.example",
        "evil.example/℀www.example.org",
    )
    yield from ("a" * 63 + ".example", "a." * 126 + "a", "x" * 64 + ".example", "127.0.0.1" * 40)


def _disguises(host: str, port: int) -> Iterator[str]:
    """URLs in which one reader sees ``host`` and another one the honest host."""
    place = f"{host}:{port}"
    yield from (
        f"http://{HONEST}@{place}/x",
        f"http://{HONEST}:80@{place}/x",
        f"http://user:pw@{place}/x",
        f"http://@{place}/x",
    )
    yield from (
        f"http://{place}\\@{HONEST}/x",
        f"http://{HONEST}\\@{place}/x",
        f"http:\\\\{place}\\x",
        f"http:/\\{place}/x",
    )
    yield from (
        f"http://{HONEST}%40{place}/x",
        f"http://{HONEST};@{place}/x",
        f"http://{place};{HONEST}/x",
        f"http://{HONEST}%2f@{place}/",
    )
    yield from (
        f"http:{place}/x",
        f"http:/{place}/x",
        f"http:///{place}/x",
        f"http:////{place}/x",
        f"//{place}/x",
        f"/\\{place}/x",
    )
    yield from (
        f"\\\\{place}\\x",
        f"///{place}/x",
        f"\thttp://{place}/x",
        f" http://{place}/x ",
        f"h\nttp://{place}/x",
        f"ht\ttp://{place}/x",
    )
    yield from (
        f"http://{place}/../x",
        f"http://{place}//x",
        f"http://{place}/;/x",
        f"http://{place}/%2e%2e/x",
        f"http://{place}?x",
    )
    yield from (
        f"http://{place}#@{HONEST}/",
        f"http://{place}?@{HONEST}/",
        f"http://{HONEST}:{port}:{port}@{host}:{port}/x",
    )
    yield from (
        f"http://{host}:0{port}/x",
        f"http://{host}:00000{port}/x",
        f"http://{host}:{port + 65536}/x",
        f"http://{host}:+{port}/x",
    )
    yield from (
        f"http://{host}:{str(port).translate(_FULLWIDTH)}/x",
        f"http://{host}:{port}\t/x",
        f"http://{host}:%3{port}/x",
    )
    yield from (
        f"{scheme}://{place}/x"
        for scheme in ("ftp", "file", "gopher", "dict", "ws", "http+unix", "view-source:http", "url:http")
    )
    yield f"http://{place}/{'x' * 3000}"


def _all(port: int) -> Iterator[str]:
    hosts = [host for text in (*LOCAL, *ELSEWHERE) for host in (*_v4(text), *_v6(text))] + [
        *_own_v6(),
        *_names(),
    ]
    yield from (
        f"{scheme}://{host}:{port}/x" for host, scheme in zip(hosts, _SCHEMES * len(hosts), strict=False)
    )
    yield from (
        url for host in (*LOCAL, "[::1]", "localhost", "2130706433") for url in _disguises(host, port)
    )
    yield from (
        f"http://{host}:{port}/{path}"
        for host, path in product(hosts[:20], ("a/..", "%2f", ";x", "a\\b", "?q#f"))
    )


def spellings(count: int, port: int) -> list[str]:
    """Return ``count`` different ones, always the same for the same port, a mixture at any count."""
    every = list(dict.fromkeys(_all(port)))
    random.Random(2001).shuffle(every)
    assert len(every) >= count, len(every)
    return every[:count]
