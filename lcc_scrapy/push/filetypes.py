"""Mimetypes by file-name extension: a table of our own, so that every machine says the same."""

from __future__ import annotations

import os
from collections.abc import Mapping

UNKNOWN = "application/octet-stream"

_TEXT = {
    "text/html": "html htm shtml",
    "application/xhtml+xml": "xhtml xht",
    "text/plain": "txt text log asc conf ini diff patch",
    "text/css": "css",
    "text/csv": "csv",
    "text/tab-separated-values": "tsv",
    "text/markdown": "md markdown",
    "text/calendar": "ics",
    "text/vcard": "vcf",
    "text/javascript": "js mjs",
    "text/x-python": "py",
    "text/x-c": "c h cc cpp hpp",
    "text/x-java-source": "java",
    "text/x-rst": "rst",
    "text/x-tex": "tex",
    "text/troff": "man me ms roff",
    "application/x-sh": "sh",
    "application/xml": "xml xsl xsd",
    "application/rss+xml": "rss",
    "application/atom+xml": "atom",
    "application/rdf+xml": "rdf",
    "application/json": "json",
    "application/ld+json": "jsonld",
    "application/yaml": "yaml yml",
}

_DOCUMENTS = {
    "application/pdf": "pdf",
    "application/postscript": "ps eps ai",
    "application/rtf": "rtf",
    "application/epub+zip": "epub",
    "application/x-dvi": "dvi",
    "application/msword": "doc dot",
    "application/vnd.ms-excel": "xls",
    "application/vnd.ms-powerpoint": "ppt pps",
    "application/vnd.openxmlformats-officedocument.wordprocessingml.document": "docx",
    "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet": "xlsx",
    "application/vnd.openxmlformats-officedocument.presentationml.presentation": "pptx",
    "application/vnd.oasis.opendocument.text": "odt",
    "application/vnd.oasis.opendocument.spreadsheet": "ods",
    "application/vnd.oasis.opendocument.presentation": "odp",
}

_MEDIA = {
    "image/png": "png",
    "image/jpeg": "jpg jpeg jpe",
    "image/gif": "gif",
    "image/svg+xml": "svg",
    "image/webp": "webp",
    "image/avif": "avif",
    "image/bmp": "bmp",
    "image/tiff": "tif tiff",
    "image/vnd.microsoft.icon": "ico",
    "audio/mpeg": "mp3",
    "audio/ogg": "ogg oga opus",
    "audio/flac": "flac",
    "audio/wav": "wav",
    "audio/mp4": "m4a",
    "video/mp4": "mp4 m4v",
    "video/mpeg": "mpg mpeg",
    "video/ogg": "ogv",
    "video/webm": "webm",
    "video/quicktime": "mov",
    "video/x-msvideo": "avi",
    "font/woff": "woff",
    "font/woff2": "woff2",
    "font/ttf": "ttf",
    "font/otf": "otf",
}

_ARCHIVES = {
    "application/zip": "zip",
    "application/gzip": "gz tgz",
    "application/x-bzip2": "bz2",
    "application/x-xz": "xz",
    "application/zstd": "zst",
    "application/x-tar": "tar",
    "application/x-7z-compressed": "7z",
    "application/java-archive": "jar",
    "application/wasm": "wasm",
}

BY_EXTENSION: Mapping[str, str] = {
    extension: mimetype
    for table in (_TEXT, _DOCUMENTS, _MEDIA, _ARCHIVES)
    for mimetype, extensions in table.items()
    for extension in extensions.split()
}


def mimetype_of(path: bytes, table: Mapping[str, str] = BY_EXTENSION, default: str = UNKNOWN) -> str:
    """Return the mimetype that a file name stands for; upper and lower case are the same."""
    extension = os.path.splitext(path)[1][1:].lower()  # noqa: PTH122 - bytes
    return table.get(extension.decode("latin-1"), default)
