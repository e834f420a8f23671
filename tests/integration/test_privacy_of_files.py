"""What the commands make is not for other users of the machine, and secrets stay in files of their own."""

import os
import stat
import subprocess
from pathlib import Path

import pytest

from tests.harness import BIN, Lcc


def rights(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def run(command: list[str], mask: int = 0, **settings: str) -> subprocess.CompletedProcess[str]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("LCC_", "SCRAPY_"))}
    return subprocess.run(
        command,
        env={**kept, **settings},
        umask=mask,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )


def test_a_data_folder_cannot_be_read_by_others_whatever_the_umask(tmp_path):
    folder = tmp_path / "lcc-data"
    done = run([f"{BIN}/lcc", "init"], LCC_DATA_DIR=str(folder))
    assert done.returncode == 0, done.stderr
    made = [folder, *folder.rglob("*")]
    assert {"lcc.sqlite", "lcc.json", "machine-id", "spool", "workers"} <= {path.name for path in made}
    assert [path.name for path in made if rights(path) & 0o027] == []
    assert rights(folder) == 0o750
    assert rights(folder / "lcc.sqlite") == 0o640


def test_a_umask_that_is_narrower_still_counts(tmp_path):
    folder = tmp_path / "lcc-data"
    assert run([f"{BIN}/lcc", "init"], mask=0o077, LCC_DATA_DIR=str(folder)).returncode == 0
    assert rights(folder) == 0o700
    assert rights(folder / "lcc.sqlite") == 0o600


def test_the_database_of_the_url_file_is_used_but_not_by_a_trial(tmp_path):
    """``lcc fetch`` works in an LCC of its own: one URL must not end up in the real database."""
    url = tmp_path / "url"
    database = tmp_path / "elsewhere.sqlite"
    url.write_text(f"sqlite:///{database}\n")
    lcc = Lcc(tmp_path, "", {"LCC_DATABASE_URL_FILE": str(url)})
    lcc.lcc("init")
    assert database.exists()
    lcc.add_provider(7, "http://127.0.0.1:9/")
    done = lcc.lcc("fetch", "http://127.0.0.1:9/a.html", "--provider", "7", check=False)
    assert "602" in done.stdout + done.stderr


@pytest.mark.parametrize("command", ["uns", "crawl"])
def test_what_is_of_no_use_to_try_again_has_a_status_of_its_own(tmp_path, command):
    done = run([f"{BIN}/lcc", command], LCC_DATA_DIR=str(tmp_path))
    assert done.returncode == 2
    assert done.stderr.startswith("lcc: error: no LCC data directory")
