"""Names of documents as files: of the docid and a fixed table, never of what a site or provider said."""

from lcc_scrapy.domain.cache import CachedUrl, Tombstone

_EXTENSIONS = {
    "application/atom+xml": "xml",
    "application/epub+zip": "epub",
    "application/gzip": "gz",
    "application/javascript": "js",
    "application/json": "json",
    "application/msword": "doc",
    "application/ms-word": "doc",
    "application/pdf": "pdf",
    "application/postscript": "ps",
    "application/rss+xml": "xml",
    "application/rtf": "rtf",
    "application/vnd.ms-excel": "xls",
    "application/vnd.ms-powerpoint": "ppt",
    "application/vnd.oasis.opendocument.presentation": "odp",
    "application/vnd.oasis.opendocument.spreadsheet": "ods",
    "application/vnd.oasis.opendocument.text": "odt",
    "application/vnd.openxmlformats-officedocument.presentationml.presentation": "pptx",
    "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet": "xlsx",
    "application/vnd.openxmlformats-officedocument.wordprocessingml.document": "docx",
    "application/xhtml+xml": "xhtml",
    "application/xml": "xml",
    "application/zip": "zip",
    "audio/mpeg": "mp3",
    "image/gif": "gif",
    "image/jpeg": "jpg",
    "image/png": "png",
    "image/svg+xml": "svg",
    "image/webp": "webp",
    "text/css": "css",
    "text/csv": "csv",
    "text/html": "html",
    "text/x-rendered-html": "rendered.html",
    "text/javascript": "js",
    "text/markdown": "md",
    "text/plain": "txt",
    "text/xml": "xml",
    "video/mp4": "mp4",
}


def name_of(row: CachedUrl | Tombstone) -> str:
    """Return ``content/<first two digits>/<docid>.<extension>``.

    The extension is that of the mimetype in the document's key, so that a document keeps its name.
    """
    return f"content/{row.docid[:2]}/{row.docid}.{_EXTENSIONS.get(row.mimetype, 'bin')}"
