# ruff: noqa: RUF001 - look-alikes are what this is about
"""Names of hosts: UTS 46, non-transitional, as browsers have them."""

import re
import sys
import unicodedata

import pytest
from ada_url import idna_to_ascii
from hypothesis import given
from hypothesis import strategies as st

from lcc_scrapy.domain.hostnames import ascii_name, former_name

NAMES = [
    ("straße.example", "xn--strae-oqa.example", "strasse.example"),
    ("STRASSE.example", "strasse.example", ""),
    ("ẞ.example", "xn--zca.example", "ss.example"),
    ("faß.de.", "xn--fa-hia.de.", "fass.de."),
    ("βόλος.com", "xn--nxasmm1c.com", "xn--nxasmq6b.com"),
    ("ΒΌΛΟΣ.com", "xn--nxasmq6b.com", ""),
    ("نامه\u200cای.com", "xn--mgba3gch31f060k.com", "xn--mgba3gch31f.com"),
    ("ශ්\u200dරී.com", "xn--10cl1a0b660p.com", "xn--10cl1a0b.com"),
    ("Ꭳ.com", "xn--88d.com", "xn--nz9a.com"),
    ("ꭳ.com", "xn--88d.com", "xn--nz9a.com"),
    ("bücher.example", "xn--bcher-kva.example", ""),
    ("BÜCHER.example", "xn--bcher-kva.example", ""),
    ("😀.ws", "xn--e28h.ws", ""),
    ("i❤.ws", "xn--i-7iq.ws", ""),
    ("a_b.é", "a_b.xn--9ca", ""),
    ("_dmarc.é", "_dmarc.xn--9ca", ""),
    ("a--b.é", "a--b.xn--9ca", ""),
    ("-a.é", "-a.xn--9ca", ""),
    ("www。é．example｡org", "www.xn--9ca.example.org", ""),
    ("ＷＷＷ.example", "www.example", ""),
    ("ⓦ.example", "w.example", ""),
    ("a\u00adb.example", "ab.example", ""),
    ("e\u0301.example", "xn--9ca.example", ""),
    ("مثال.إختبار", "xn--mgbh0fb.xn--kgbechtv", ""),
    ("אבג.example", "xn--4dbcd.example", ""),
    ("XN--BCHER-KVA.Example", "xn--bcher-kva.example", ""),
    ("xn--strasse.example", "xn--strasse.example", None),
    ("r3---sn-x.example", "r3---sn-x.example", ""),
    ("a_b.example", "a_b.example", ""),
    ("é." + "xn--zca.example", "xn--9ca.xn--zca.example", "xn--9ca.ss.example"),
]  # fmt: skip


@pytest.mark.parametrize(("name", "ascii_form", "former"), NAMES)
def test_a_name_has_one_ascii_form_and_perhaps_another_one_of_before(name, ascii_form, former):
    assert ascii_name(name) == ascii_form
    assert ascii_name(ascii_form) == ascii_form
    if former is not None:
        assert former_name(ascii_form) == former


@pytest.mark.parametrize(
    "name",
    [
        "", ".", "..", "é..example", ".é", "\u00ad.é", "\u00ad", "a\u200cb.example", "a\u200db.example", "\u200dé.example",
        "\u0301a.example", "é.\u0301", "0א.example", "אa.example", "א1٣.example", "3com.אבג", "א-.example", "_a.אבג",
        "xn--é.example", "a\u2024b.example", "a\u202eb.example", "a\ue000b.example", "a\ufffdb.example", "a\U000e0041.example",
        "é" * 60 + ".example", "a" * 64 + ".example", "a" * 64 + ".é", "a\ud800.example",
    ],
)  # fmt: skip
def test_what_is_no_name_is_refused(name):
    with pytest.raises(ValueError, match=re.compile(".")):
        ascii_name(name)


def theirs(name):
    try:
        made = idna_to_ascii(name)
    except ValueError:
        return None
    return (made.decode() if isinstance(made, bytes) else made) or None


def ours(name):
    try:
        return ascii_name(name)
    except ValueError:
        return None


def labels(name):
    return name.removesuffix(".").split(".")


def known():
    """Yield the characters that Python's Unicode has; ``idna`` and ``ada`` have newer ones, not the same."""
    for code in range(0x80, sys.maxunicode + 1):
        if unicodedata.category(one := chr(code)) not in {"Cn", "Cs", "Co"}:
            yield one


def test_every_character_means_what_it_means_in_a_browser():
    """``ada`` resolves references: a link must lead to what a push of the same name is of."""
    names = [f"{'x' if unicodedata.category(one)[0] == 'M' else ''}{one}.example" for one in known()]
    assert len(names) > 140_000
    differing = [name for name in names if ours(name) != theirs(name)]
    assert [name for name in differing if ours(name) or "" not in labels(theirs(name))] == []


def test_ascii_labels_beside_hebrew_ones_are_judged_as_the_standard_has_it():
    """``ada`` does not look at them; browsers do."""
    for name in ("1.א", "א.1b", "_a.א"):
        assert ours(name) is None
    assert ours("b1.א") == "b1.xn--4db"


JOINERS = "\u200c\u200d"


def is_right_to_left(name):
    return any(unicodedata.bidirectional(one) in {"R", "AL", "AN"} for one in name)


def texts(characters):
    return st.text(st.sampled_from(characters), min_size=1, max_size=9)


@given(texts("aß1-_.ー\u200c\u200dश्\u0301é。A") | texts("aß1-_.אب٣\u0301é。A"))
def test_any_name_means_what_it_means_in_a_browser(name):
    made = ours(name)
    if made is not None and not name.isascii():
        assert made == theirs(name)
    elif not name.isascii() and not is_right_to_left(name) and not set(JOINERS) & set(name):
        assert theirs(name) is None or "" in labels(theirs(name)), (
            "of the others, ada takes some that are none"
        )
