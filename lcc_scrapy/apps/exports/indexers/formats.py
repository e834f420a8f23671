"""The adapters to indexers by name."""

from lcc_scrapy.apps.exports.indexers.bulk import MEILISEARCH, OPENSEARCH
from lcc_scrapy.apps.exports.indexers.fts5 import FTS5
from lcc_scrapy.apps.exports.indexers.htdig import HTDIG
from lcc_scrapy.apps.exports.indexers.interface import IndexFormat
from lcc_scrapy.apps.exports.indexers.swish_e import SWISH_E
from lcc_scrapy.apps.exports.indexers.swish_plus_plus import SWISH_PLUS_PLUS
from lcc_scrapy.apps.exports.indexers.tantivy import TANTIVY
from lcc_scrapy.apps.exports.indexers.xapian import XAPIAN
from lcc_scrapy.apps.exports.interface import ExportFormat

INDEXERS: dict[str, ExportFormat | IndexFormat] = {
    "fts5": FTS5,
    "htdig": HTDIG,
    "meilisearch": MEILISEARCH,
    "opensearch": OPENSEARCH,
    "swish++": SWISH_PLUS_PLUS,
    "swish-e": SWISH_E,
    "tantivy": TANTIVY,
    "xapian": XAPIAN,
}
