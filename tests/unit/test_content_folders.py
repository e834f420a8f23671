"""Folders are on disk, with their names, when they are needed."""

import os
from pathlib import Path

import pytest

from lcc_scrapy.content.files import ContentFiles
from lcc_scrapy.content.identity import create_machine_identity
from lcc_scrapy.domain.cache import Body
from lcc_scrapy.machine.disk import make_folders


@pytest.fixture
def synced(monkeypatch: pytest.MonkeyPatch) -> list[Path]:
    """Return the paths that are synced, as it happens."""
    paths: list[Path] = []
    monkeypatch.setattr(os, "fsync", lambda number: paths.append(Path(f"/proc/self/fd/{number}").readlink()))
    return paths


def test_every_folder_that_is_made_is_synced_in_the_one_above(tmp_path: Path, synced: list[Path]) -> None:
    make_folders(tmp_path / "a" / "b")
    assert (tmp_path / "a" / "b").is_dir()
    assert set(synced) == {tmp_path, tmp_path / "a"}


def test_a_folder_that_exists_is_left_alone(tmp_path: Path, synced: list[Path]) -> None:
    make_folders(tmp_path)
    assert synced == []


def test_the_identity_of_a_content_folder_is_synced_with_its_name(tmp_path: Path, synced: list[Path]) -> None:
    create_machine_identity(tmp_path / "content")
    assert synced[0] == tmp_path
    assert synced[-1] == tmp_path / "content"


def test_folders_that_another_process_made_are_synced_before_a_file_counts_on_them(
    tmp_path: Path, synced: list[Path]
) -> None:
    (tmp_path / "1" / "000" / "000").mkdir(parents=True)
    content = ContentFiles(tmp_path, 1)
    content.prepare()
    content.keep([(5, Body(2, "", "", data=b"hi"))])
    assert {tmp_path, tmp_path / "1", tmp_path / "1" / "000", tmp_path / "1" / "000" / "000"} <= set(synced)
    assert content.path_of(5).read_bytes() == b"hi"
    synced.clear()
    content.keep([(6, Body(2, "", "", data=b"ho"))])
    assert [path for path in synced if path.is_dir()] == [tmp_path / "1" / "000" / "000"]
