"""What somebody writes into a field of search, as words and phrases: nothing in it is an operator."""

import re

WORDS = 12
"""Words and phrases of one search; further ones are left out."""

CHARACTERS = 200
_PART = re.compile(r'"([^"]*)"?|([^\s"]+)')


def phrases(text: str) -> list[str]:
    """Return the words of a text, and what stands in quotation marks as phrases; each can be found.

    What is not visible counts as a blank. What has no letter and no digit names nothing, and is left out.
    """
    shown = "".join(c if c.isprintable() else " " for c in text[:CHARACTERS])
    found = (" ".join((phrase or word).split()) for phrase, word in _PART.findall(shown))
    return [one for one in found if any(map(str.isalnum, one))][:WORDS]


def fts5_query(words: list[str]) -> str:
    """Return the query of SQLite's FTS5 for texts that have all of these (its section 3.1, "Strings")."""
    return " ".join(f'"{word}"' for word in words)
