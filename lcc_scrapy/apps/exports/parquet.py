"""Documents in a Parquet file, through pyarrow: a row per change, the cursor in the file's metadata.

The columns are those of ``lcc select`` without ``path``, then ``title`` and ``text``, then ``content``
(binary). What a row does not have is null. Rows are written in groups of bounded size; a content is in
memory as a whole, so that one larger than ``CONTENT_MAX`` is null, and ``len`` tells how large it is.
"""

from itertools import chain
from typing import IO, Any

from lcc_scrapy.apps.exports.interface import Item, text_fields
from lcc_scrapy.domain.errors import MissingExtra
from lcc_scrapy.feed.row_formats import COLUMNS, TYPES, Record

GROUP = 16_000_000
"""Bytes of contents and texts after which a group of rows is written."""

GROUP_ROWS = 10_000
CONTENT_MAX = 256_000_000

_NUMBERS = {name for name, kind in TYPES.items() if kind in {int, int | None}}
_LISTS = {name for name, kind in TYPES.items() if kind == list[str]}
_TEXTS = ("title", "text")
_FEW_VALUES = ["op", "mimetype", "subtype", "served_type", "served_charset", "reason"]


class Parquet:
    """Collects rows, and writes them by groups.

    The keys of its metadata are those of the last line of a manifest, after ``lcc.``: ``lcc.cursor``,
    ``lcc.documents``, ``lcc.removals``. Without them the export is not complete.
    """

    def __init__(self, out: IO[bytes], *, content: bool = True) -> None:
        self._arrow, parquet = _pyarrow()
        self._schema = _schema(self._arrow, content=content)
        self._content = content
        self._rows: list[dict[str, Any]] = []
        self._size = 0
        self._writer = parquet.ParquetWriter(
            _Counted(out),
            self._schema,
            compression="zstd",
            use_dictionary=_FEW_VALUES,
            write_statistics=[name for name in self._schema.names if name in _NUMBERS],
        )

    def document(self, item: Item, content: IO[bytes]) -> None:
        """Add a row."""
        row: dict[str, Any] = {**item.record, **text_fields(item)}
        if self._content and item.row.fetched_len <= CONTENT_MAX:
            row["content"] = content.read()
        self._add(row)

    def departure(self, one: Record) -> None:
        """Add a row."""
        self._add(dict(one))

    def end(self, manifest: IO[bytes], size: int, last: Record) -> None:
        """Write the last rows and the metadata; everything else has been told."""
        del manifest, size
        self._flush()
        self._writer.add_key_value_metadata(
            {f"lcc.{name}": str(value) for name, value in last.items() if name != "op"}
        )

    def close(self) -> None:
        """Write the directory of the file."""
        self._writer.close()

    def _add(self, row: dict[str, Any]) -> None:
        self._rows.append({name: _storable(row.get(name)) for name in self._schema.names})
        self._size += len(row.get("content") or b"") + len(row.get("text") or "")
        if self._size >= GROUP or len(self._rows) >= GROUP_ROWS:
            self._flush()

    def _flush(self) -> None:
        if self._rows:
            self._writer.write_table(self._arrow.Table.from_pylist(self._rows, schema=self._schema))
        self._rows, self._size = [], 0


def _pyarrow() -> tuple[Any, Any]:
    try:
        import pyarrow as pa  # noqa: PLC0415 - an extra
        from pyarrow import parquet  # noqa: PLC0415
    except ImportError:
        raise MissingExtra("parquet", "pyarrow") from None
    return pa, parquet


def _schema(arrow: Any, *, content: bool) -> Any:
    names = chain((name for name in COLUMNS if name != "path"), _TEXTS)
    kinds = dict.fromkeys(_NUMBERS, arrow.int64()) | dict.fromkeys(_LISTS, arrow.list_(arrow.string()))
    fields = [(name, kinds.get(name, arrow.string())) for name in names]
    return arrow.schema([*fields, *([("content", arrow.binary())] if content else [])])


def _storable(value: Any) -> Any:
    """Return a value as Parquet can hold it: its texts are UTF-8."""
    if isinstance(value, list):
        return [_storable(one) for one in value]
    return value.encode("utf-8", "backslashreplace").decode() if isinstance(value, str) else value


class _Counted:
    """A stream that knows its position even where it is a pipe, and stays open."""

    closed = False

    def __init__(self, out: IO[bytes]) -> None:
        self._out = out
        self._position = 0

    def write(self, data: Any) -> int:
        """Write all of it."""
        self._out.write(data)
        self._position += len(data)
        return len(data)

    def tell(self) -> int:
        """Return how much was written."""
        return self._position

    def flush(self) -> None:
        """Leave that to whoever opened the stream."""

    def close(self) -> None:
        """Leave that to whoever opened the stream."""
