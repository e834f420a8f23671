"""The page of a search: providers with these words, and documents whose texts have them."""

from collections.abc import Sequence
from dataclasses import dataclass
from urllib.parse import urlencode

from markupsafe import Markup

from lcc_scrapy.apps.dashboard.layout import find_form, link, shown, table
from lcc_scrapy.apps.dashboard.rules.search_words import fts5_query, phrases
from lcc_scrapy.db.tx import Store
from lcc_scrapy.domain.cache import CachedUrl
from lcc_scrapy.domain.cursor import Position
from lcc_scrapy.domain.providers import Provider
from lcc_scrapy.domain.shown import moment, number
from lcc_scrapy.domain.users import User
from lcc_scrapy.feed.fts5_search import (
    MOST,
    Age,
    Excerpt,
    Fts5Search,
    Hit,
    IndexTrouble,
    Search,
)
from lcc_scrapy.web import html

SHOWN = 20
"""Documents that are shown."""

PROVIDERS = 5
_URL, _TITLE, _EXCERPT = 200, 120, 300
"""Characters that are shown of each."""

_NOTHING = Markup("")
_PLAIN, _MARKED = Markup("{}"), Markup("<mark>{}</mark>")


@dataclass(frozen=True, slots=True)
class Found:
    """Documents that are still there, best first, with what is shown of each.

    ``trouble``: why texts cannot be searched. ``more``: there may be others. ``asked``: there were words.
    """

    documents: Sequence[tuple[CachedUrl, Excerpt | None]] = ()
    age: Age | None = None
    in_order: bool = True
    more: bool = False
    trouble: str = ""
    asked: bool = True


def read(store: Store, index: Fts5Search, text: str, head: Position, user: User) -> Found:
    """Search for documents that a user may see."""
    words = phrases(text)
    try:
        if not words:
            return Found(age=index.age(head), asked=False)
        with index.search(fts5_query(words), head) as search:
            return _found(store, search, user)
    except IndexTrouble as error:
        return Found(trouble=str(error))


def _found(store: Store, search: Search, user: User) -> Found:
    hits: list[tuple[Hit, CachedUrl]] = []
    for some in search.hits():
        hits += _still_there(store, some, user)
        if len(hits) > SHOWN:
            break
    shown_ones = hits[:SHOWN]
    excerpts = search.excerpts(hit for hit, _ in shown_ones)
    documents = [(row, excerpts.get(hit.rowid)) for hit, row in shown_ones]
    return Found(documents, search.age, search.in_order, len(hits) > SHOWN)


def _still_there(store: Store, hits: Sequence[Hit], user: User) -> list[tuple[Hit, CachedUrl]]:
    keys = {hit: key for hit in hits if (key := _key(hit.docid))}
    with store.read() as tx:
        rows = tx.cached(list(keys.values()))
    pairs = ((hit, rows[key]) for hit, key in keys.items() if key in rows)
    return [(hit, row) for hit, row in pairs if user.sees(row.pid)]


def _key(docid: str) -> bytes | None:
    """Return the key that a docid of the index is, if it is one."""
    try:
        return bytes.fromhex(docid)
    except ValueError:
        return None


def body(text: str, found: Found, providers: Sequence[Provider], head: Position, user: User) -> Markup:
    """Return the page."""
    parts = [
        find_form(text if text.isprintable() else ""),
        _providers(text, providers),
        Markup("<h2>Documents</h2>"),
    ]
    if found.trouble:
        parts.append(html.alert(shown(f"texts cannot be searched: {found.trouble}")))
    else:
        parts += [_documents(found, user), _age(found.age, head)]
    return Markup("").join(parts)


def _providers(text: str, providers: Sequence[Provider]) -> Markup:
    if not providers:
        return _NOTHING
    rows = [[link(f"/dashboard/providers/{one.pid}", one.pid), one.name] for one in providers[:PROVIDERS]]
    every = link(f"/dashboard/providers?{urlencode({'q': text})}", "All of these providers")
    more = Markup("<p>{}</p>").format(every) if len(providers) > PROVIDERS else _NOTHING
    return Markup("<h2>Providers</h2>") + table(["Provider", "Name"], rows) + more


def _documents(found: Found, user: User) -> Markup:
    if not found.asked:
        return Markup("<p>Write a word.</p>")
    if not found.documents:
        none = Markup("<p>No text has all of these words.</p>")
        return none + _among(user)
    parts = [_document(row, excerpt) for row, excerpt in found.documents]
    if not found.in_order and user.pids is None:
        parts.append(Markup("<p>So many have these words that they are not in the order of relevance.</p>"))
    if found.more:
        parts.append(Markup("<p>There are more: give more words.</p>"))
    return Markup("").join(parts) + _among(user)


def _among(user: User) -> Markup:
    """Say to an owner what is said however many documents of others are found."""
    if user.pids is None:
        return _NOTHING
    return Markup("<p>Your documents are looked for among the {} best ones of all.</p>").format(number(MOST))


def _document(row: CachedUrl, excerpt: Excerpt | None) -> Markup:
    url = _cut(shown(row.furl), _URL)
    title = _cut(shown(excerpt.title), _TITLE) if excerpt and excerpt.title.strip() else url
    told = f"{url}, provider {row.pid}, {row.mimetype}, fetched {moment(row.fetched_time or 0)}"
    text = _marked(excerpt.pieces if excerpt else [])
    return Markup("<article><h3>{}</h3><p>{}</p><p><small>{}</small></p></article>").format(
        link(f"/dashboard/urls?{urlencode({'url': row.docid})}", title), text, shown(told)
    )


def _marked(pieces: Sequence[tuple[str, bool]]) -> Markup:
    made: list[Markup] = []
    room = _EXCERPT
    for piece, is_it in pieces:
        text = _cut(shown(piece), room)
        made.append((_MARKED if is_it else _PLAIN).format(text))
        room -= len(text)
        if room <= 0:
            break
    return Markup("").join(made)


def _cut(text: str, most: int) -> str:
    return text if len(text) <= most else text[: most - 1] + "\u2026"


def _age(age: Age | None, head: Position) -> Markup:
    if age is None:
        return _NOTHING
    behind = max(head.seq - age.seq, 0)
    lacks = f"the newest {number(behind)} are not in it" if behind else "it has all of them"
    return Markup("<p><small>The index was written {}, up to change {} of {}: {}.</small></p>").format(
        moment(age.written), age.seq, max(head.seq, age.seq), lacks
    )
