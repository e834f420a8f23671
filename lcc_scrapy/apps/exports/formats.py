"""The formats of exports by name."""

from lcc_scrapy.apps.exports.archives import TarGz, Zip
from lcc_scrapy.apps.exports.interface import ExportFormat
from lcc_scrapy.apps.exports.jsonl import JsonLinesWithContent
from lcc_scrapy.apps.exports.parquet import Parquet
from lcc_scrapy.apps.exports.warc import Warc

FORMATS = {
    "tar.gz": ExportFormat(TarGz),
    "zip": ExportFormat(Zip),
    "jsonl": ExportFormat(JsonLinesWithContent, rows=True),
    "parquet": ExportFormat(Parquet, rows=True),
    "warc": ExportFormat(Warc, answers=True),
}
