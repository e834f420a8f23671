"""Settings are read as Scrapy reads them, and without it."""

import os
import subprocess
import sys

import pytest
from scrapy.utils.project import get_project_settings

from lcc_scrapy.config.project import COMMAND_LINE, PROJECT, begin_project, closest_scrapy_cfg, plain_settings


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A folder two below that of a project, where nothing in the environment names another one."""
    for name in ("SCRAPY_SETTINGS_MODULE", "SCRAPY_PROJECT"):
        monkeypatch.setenv(name, "")  # so that what is set meanwhile goes afterwards
        monkeypatch.delenv(name)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.setattr(sys, "path", [*sys.path])
    below = tmp_path / "project" / "a" / "b"
    below.mkdir(parents=True)
    monkeypatch.chdir(below)
    return tmp_path / "project"


def project(folder, name, cfg):
    (folder / "scrapy.cfg").write_text(cfg)
    (folder / f"{name}.py").write_text(
        "LCC_FULLSETS = 3\nlcc_small = 1\nLCC_NOTHING = None\nclass NOT: ...\n"
    )


def both(given=()):
    """Return what is read here, and what Scrapy reads, of the settings that are no default of Scrapy's."""
    plain = plain_settings(dict(given))
    os.environ.pop("SCRAPY_SETTINGS_MODULE", None) if not given else None
    scrapys = get_project_settings()
    scrapys.setdict(dict(given), priority="cmdline")
    named = {"SETTINGS_MODULE", "PROJECT"}  # by the environment: nobody asks for them
    ours = {name: scrapys[name] for name in {*scrapys} - named if scrapys.getpriority(name) >= PROJECT}
    return {name: plain.get(name) for name in plain}, ours


@pytest.mark.parametrize(
    "cfg",
    [
        "[settings]\ndefault = first_project\n",
        "[settings]\nother = first_project\n",
        "[deploy]\nx = y\n",
        "",
    ],
)
def test_a_project_is_read_as_scrapy_reads_it(folder, cfg):
    project(folder, "first_project", cfg)
    plain, scrapys = both()
    assert plain == scrapys
    assert closest_scrapy_cfg() == folder / "scrapy.cfg"
    assert plain.get("LCC_FULLSETS") == (3 if "default" in cfg else None)


def test_a_file_of_the_user_names_a_project_where_none_is_around(folder, tmp_path, monkeypatch):
    (tmp_path / "config").mkdir()
    (tmp_path / "config" / "scrapy.cfg").write_text("[settings]\ndefault = of_the_user\n")
    (folder / "of_the_user.py").write_text("LCC_FULLSETS = 5\n")
    monkeypatch.syspath_prepend(str(folder))
    plain, scrapys = both()
    assert plain == scrapys == {"LCC_FULLSETS": 5}
    assert closest_scrapy_cfg() is None


def test_the_environment_names_another_project_of_the_file(folder, monkeypatch):
    project(folder, "fifth_project", "[settings]\nfifth = fifth_project\n")
    monkeypatch.setenv("SCRAPY_PROJECT", "fifth")
    assert plain_settings({}).get("LCC_FULLSETS") == 3


def test_the_command_line_wins(folder):
    project(folder, "sixth_project", "[settings]\ndefault = sixth_project\n")
    settings = plain_settings({"LCC_FULLSETS": "4"})
    assert (settings.get("LCC_FULLSETS"), settings.getpriority("LCC_FULLSETS")) == ("4", COMMAND_LINE)
    assert (settings.get("LCC_NOTHING"), settings.getpriority("LCC_NOTHING")) == (None, PROJECT)
    assert settings.getpriority("LCC_POLL") is None


def test_commands_that_look_something_up_import_no_scrapy(tmp_path):
    program = (
        "import sys\n"
        "from lcc_scrapy.cli.main import main\n"
        "for args in (['init'], ['status'], ['explain', 'x'], ['provider', 'list'], ['errors', '7']):\n"
        "    try:\n"
        "        main(['-s', 'LCC_DATA_DIR=data', *args])\n"
        "    except SystemExit:\n"
        "        pass\n"
        "print(sorted({'scrapy', 'twisted'} & {*sys.modules}))\n"
    )
    clean = {name: value for name, value in os.environ.items() if not name.startswith("SCRAPY_")}
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=tmp_path, env=clean, capture_output=True, text=True, check=True
    )
    assert done.stdout.splitlines()[-1] == "[]"
    assert "queue" in done.stdout


def test_a_project_that_is_begun_has_the_settings_of_the_lcc(folder):
    assert begin_project(folder) == folder / "scrapy.cfg"
    assert closest_scrapy_cfg() == folder / "scrapy.cfg"
    plain, scrapys = both()
    assert plain == scrapys
    assert plain.get("SPIDER_MODULES") == ["lcc_scrapy.spiders"]


@pytest.mark.parametrize("cfg", ["[settings]\ndefault = my_settings\n", "[deploy]\nx = y\n"])
def test_no_project_is_begun_inside_another(folder, cfg):
    project(folder, "my_settings", cfg)
    assert begin_project(folder) is None
    assert begin_project(folder / "a") is None
    assert not (folder / "a" / "scrapy.cfg").exists()
    assert (folder / "scrapy.cfg").read_text() == cfg


def test_no_project_is_begun_where_settings_are_named(folder, monkeypatch):
    monkeypatch.setenv("SCRAPY_SETTINGS_MODULE", "lcc_scrapy.settings")
    assert begin_project(folder) is None
    assert not (folder / "scrapy.cfg").exists()
