"""One page in work: its text, words and changes, each made when it is first asked for, and once."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from lcc_scrapy.annotation.page_text import text_of
from lcc_scrapy.annotation.streams import Place, Stream, pattern_of
from lcc_scrapy.domain.acis import TITLE_MAX
from lcc_scrapy.domain.boolean_rules import PLACES_MAX
from lcc_scrapy.domain.changes import Changes, changes_between, sentences_of


@dataclass(frozen=True, slots=True)
class Page:
    """A document to be annotated. ``body`` and ``previous`` come without content coding.

    ``mimetype`` and ``charset`` are as the site said ("" = it did not). ``previous`` is the content of the
    version before, None = there is none or it is not kept: then nothing changed.
    """

    url: str
    body: bytes
    mimetype: str
    charset: str
    previous: bytes | None = None


class PageInWork:
    """What the steps of the pipe make of a page; not for threads."""

    def __init__(self, page: Page, *, link_texts: bool) -> None:
        self.page = page
        self._link_texts = link_texts
        self._first: dict[str, Place | None] = {}
        self._places: dict[str, Sequence[int]] = {}
        self.text = text_of(page.body, page.mimetype, page.charset, link_texts=link_texts)

    @cached_property
    def title(self) -> str:
        """Return the title, else how the text begins, else the URL."""
        if self.text is None:
            return self.page.url[:TITLE_MAX]
        first = next(iter(self.text.paragraphs), "")
        return (self.text.title or first or self.page.url)[:TITLE_MAX]

    @cached_property
    def stream(self) -> Stream:
        """Return the words of text and title."""
        assert self.text is not None
        return Stream([" ".join(self.text.paragraphs), self.text.title])

    @property
    def has_changed(self) -> bool:
        """Tell whether there is a version before with another text; of what is no text, other bytes."""
        if self.page.previous is None or self.page.previous == self.page.body:
            return False
        return self.text is None or self.changes is not None

    @cached_property
    def changes(self) -> Changes | None:
        """Return what changed in the text."""
        page, text = self.page, self.text
        if page.previous is None or text is None:
            return None
        before = text_of(page.previous, page.mimetype, page.charset, link_texts=self._link_texts)
        old = [before.title, *before.paragraphs] if before else []
        return changes_between(sentences_of(old), sentences_of([text.title, *text.paragraphs]))

    @cached_property
    def changed_words(self) -> Stream:
        """Return the words of the sentences that were added or removed."""
        changes = self.changes
        return Stream((*changes.added, *changes.removed) if changes else ())

    def first_place(self, key: str) -> Place | None:
        """Return where a keyword stands first."""
        if key not in self._first:
            self._first[key] = self.stream.place(pattern_of(key))
        return self._first[key]

    def places(self, pattern: str) -> Sequence[int]:
        """Return where a pattern begins, in words."""
        if pattern not in self._places:
            self._places[pattern] = self.stream.places(pattern, PLACES_MAX)
        return self._places[pattern]
