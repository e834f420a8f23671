"""Which content files are compressed, and how: the setting decides, and what a document is.

What is compressed already is stored as it is: a second time costs time and gains nothing.
"""

NONE, GZIP, ZSTD = "none", "gzip", "zstd"

_COMPRESSED_ALREADY = frozenset(
    {
        "application/epub+zip",
        "application/gzip",
        "application/java-archive",
        "application/vnd.android.package-archive",
        "application/vnd.rar",
        "application/x-7z-compressed",
        "application/x-bzip2",
        "application/x-gzip",
        "application/x-rar-compressed",
        "application/x-xz",
        "application/zip",
        "application/zstd",
        "font/woff",
        "font/woff2",
    }
)
_COMPRESSED_FAMILIES = (
    "audio/",
    "image/",
    "video/",
    "application/vnd.oasis.opendocument.",
    "application/vnd.openxmlformats-officedocument.",
)
_PLAIN_AFTER_ALL = frozenset({"image/bmp", "image/svg+xml", "image/x-ms-bmp"})


def coding_for(compression: str, mimetype: str) -> str:
    """Return the coding of a content file: ``gzip``, ``zstd``, or empty where it is stored as it is.

    ``mimetype`` is what the site calls the document, in lower case without parameters, or empty.
    """
    return "" if compression == NONE or is_compressed_already(mimetype) else compression


def is_compressed_already(mimetype: str) -> bool:
    """Tell whether documents of a type are of a compressed format."""
    if mimetype in _PLAIN_AFTER_ALL:
        return False
    return mimetype in _COMPRESSED_ALREADY or mimetype.startswith(_COMPRESSED_FAMILIES)
