"""The identity of a content folder: it moves with its files, not with a host's name."""

import uuid
from pathlib import Path

from lcc_scrapy.domain.errors import ConfigurationError
from lcc_scrapy.machine.disk import make_folders, sync, sync_folder

_FILE = "machine-id"


def machine_identity(folder: Path) -> str | None:
    """Return the identity kept inside a content folder, or None when it has none yet."""
    try:
        return (folder / _FILE).read_text(encoding="ascii").strip()
    except FileNotFoundError:
        return None
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigurationError(f"cannot read {folder / _FILE}: {error}") from None


def create_machine_identity(folder: Path) -> str:
    """Give a content folder an identity, once."""
    known = machine_identity(folder)
    if known:
        return known
    identity = str(uuid.uuid4())
    try:
        make_folders(folder)
        draft = folder / f"{_FILE}.new"
        with draft.open("w", encoding="ascii") as file:
            file.write(identity + "\n")
            file.flush()
            sync(file.fileno(), draft)
        draft.replace(folder / _FILE)
        sync_folder(folder)
    except OSError as error:
        raise ConfigurationError(f"cannot prepare the content folder {folder}: {error.strerror}") from None
    return identity
