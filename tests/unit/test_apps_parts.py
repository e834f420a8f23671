"""Apps: what each of ours consists of, and how LCC_APPS is read."""

import re
import sys
from dataclasses import dataclass, fields, is_dataclass
from importlib import import_module
from pathlib import Path

import click
import pytest
from click.testing import CliRunner
from sqlalchemy import MetaData

import lcc_scrapy.apps
from lcc_scrapy.cli.main import _COMMANDS, lcc
from lcc_scrapy.config.config import SETTINGS, load, settings_of, unknown_settings
from lcc_scrapy.config.project import PlainSettings
from lcc_scrapy.domain import notations
from lcc_scrapy.domain.errors import ConfigurationError
from lcc_scrapy.domain.settings import setting
from lcc_scrapy.runtime import apps
from lcc_scrapy.runtime.apps import App, Apps, ours, read_apps

OURS = ours().installed
NO_PARTS = {"name", "summary", "needs"}
NO_SETTINGS = PlainSettings({}, {})


SHARED = {one.name for one in SETTINGS} & {one.name for app in OURS for one in settings_of(app)}
"""The settings that the core and apps take part in."""


@dataclass(frozen=True)
class OfTitles:
    """Settings of the app that is made below."""

    length: int = setting("LCC_TITLES_LENGTH", "100", notations.at_least_one, "Characters.")


def parts_of(app: App) -> dict[str, str]:
    """Return the parts of an app by the fields, or commands, that name them."""
    found = {}
    for one in fields(App):
        value = getattr(app, one.name)
        if one.name not in NO_PARTS and isinstance(value, str) and value:
            found[one.name] = value
        elif one.name == "commands":
            found |= value
        elif one.name == "factories":
            found |= {f"{kind} {name}": part for kind, made in value.items() for name, part in made.items()}
    return found


@pytest.fixture
def packages(tmp_path, monkeypatch):
    """Return what writes a module that LCC_APPS can name."""
    monkeypatch.syspath_prepend(tmp_path)

    def write(module: str, text: str = "", **app: object) -> str:
        given = ", ".join(f"{field}={value!r}" for field, value in app.items())
        made = f"from lcc_scrapy.runtime.apps import App\nAPP = App(summary='', {given})\n" if app else ""
        (tmp_path / f"{module}.py").write_text(made + text)
        written.append(module)
        return module

    written: list[str] = []
    yield write
    for module in written:
        sys.modules.pop(module, None)


def refusal(given: object) -> str:
    with pytest.raises(ConfigurationError) as refused:
        load(PlainSettings({"LCC_APPS": given, "LCC_DATA_DIR": "/x"}, {}), {})
    text = str(refused.value)
    assert text.startswith("LCC_APPS: ")
    assert text.count("LCC_APPS") == 1
    assert "\n" not in text
    return text.removeprefix("LCC_APPS: ")


# --- ours ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("app", OURS, ids=lambda app: app.name)
def test_every_part_of_an_app_is_there(app):
    for part in parts_of(app).values():
        if ":" in part:
            apps.load(part)
        else:
            import_module(part)
    if app.settings:
        assert is_dataclass(apps.load(app.settings))
    if app.tables:
        assert isinstance(apps.load(app.tables), MetaData)
    for path, part in app.commands.items():
        assert isinstance(command := apps.load(part), click.Command)
        assert command.name == path.rpartition(" ")[2]


@pytest.mark.parametrize("app", OURS, ids=lambda app: app.name)
def test_an_app_is_the_folder_of_its_name(app):
    assert {part.partition(":")[0].split(".")[2] for part in parts_of(app).values()} == {app.name}


@pytest.mark.parametrize("app", OURS, ids=lambda app: app.name)
def test_an_app_imports_no_other_but_those_that_it_needs(app):
    folder = Path(lcc_scrapy.apps.__file__).parent / app.name
    text = "".join(module.read_text() for module in folder.rglob("*.py"))
    assert {*re.findall(r"lcc_scrapy\.apps\.(\w+)", text)} - {app.name} == {*app.needs}


def test_no_two_apps_have_a_name_or_a_table_and_none_a_command_of_the_core():
    names = [app.name for app in OURS]
    assert len(names) == len(set(names))
    tables = [table for app in OURS if app.tables for table in apps.load(app.tables).tables]
    assert len(tables) == len(set(tables))
    commands = [command for app in OURS for command in app.commands]
    assert len(commands) == len(set(commands))
    assert not _COMMANDS.keys() & set(commands)


@pytest.mark.parametrize("app", OURS, ids=lambda app: app.name)
def test_every_setting_of_an_app_has_its_prefix_or_is_shared(app):
    for one in settings_of(app):
        if one.name not in SHARED:
            assert ours().owner_of(one.name) is app, one.name


def test_no_setting_of_the_core_has_the_prefix_of_an_app():
    own = (one.name for one in SETTINGS if one.name not in SHARED)
    assert {name: owner.name for name in own if (owner := ours().owner_of(name))} == {}


# --- LCC_APPS ------------------------------------------------------------------------------------


def test_without_a_word_all_of_ours_are_at_work():
    assert read_apps("") == ours()
    assert [app.name for app in read_apps("")] == [app.name for app in OURS]


@pytest.mark.parametrize("given", ["team_a,team_b,-b", " -b  team_a team_b ", ["team_a", "-b", "team_b"]])
def test_a_module_is_added_and_a_name_left_out(packages, given):
    packages("team_a", name="a")
    packages("team_b", name="b")
    found = read_apps(given)
    assert [app.name for app in found.installed] == [*(app.name for app in OURS), "a", "b"], (
        "all stay installed"
    )
    assert [app.name for app in found] == [*(app.name for app in OURS), "a"]


@pytest.mark.parametrize("app", OURS, ids=lambda app: app.name)
def test_each_of_ours_can_be_left_out(app):
    found = read_apps(f"-{app.name}")
    assert found.installed == OURS
    assert [*found] == [one for one in OURS if one is not app and app.name not in one.needs]


def test_every_mistake_is_one_clear_line(packages):
    assert refusal("nosuch") == "there is no module nosuch"
    packages("team_needy", "import nosuch")
    assert refusal("team_needy") == "there is no module nosuch, which team_needy needs"
    packages("team_torn", "from json import nosuch")
    assert refusal("team_torn").startswith("team_torn cannot be imported: cannot import name 'nosuch'")
    packages("team_misspelt", "APP = = 1")
    assert refusal("team_misspelt").startswith("team_misspelt cannot be imported: invalid syntax")
    assert refusal(packages("team_empty")) == "team_empty has no APP"
    assert refusal(packages("team_odd", "APP = 1")) == "team_odd.APP is no App"
    packages("team_a", name="a", commands={"titles": "x:y"})
    assert refusal("team_a team_a") == "there are two apps a"
    packages("team_b", name="b", commands={"titles": "x:y"})
    assert refusal("team_a team_b") == "there are two commands titles"
    packages("team_c", name="c", factories={"contents": {"s3": "x:y"}})
    assert refusal("team_c") == "there are two factories of contents s3"
    packages("team_named", name="my-titles")
    assert "is named 'my-titles'" in refusal("team_named")
    packages("team_bare", name="bare", tables="x:y")
    assert "tables without migrations" in refusal("team_bare")
    assert refusal("-nosuch").startswith("there is no app nosuch; there are ")
    for given in ("-", "..x", "a..b", ["x y"], [5]):
        assert "expected a module (mypkg.titles), or -NAME" in refusal(given)
    for given in (5, {"team_a": 1}):
        assert "expected modules (mypkg.titles) and -NAMEs" in refusal(given)


def test_apps_can_be_keys():
    assert {ours(): 1}[read_apps("")] == 1


def test_commands_are_those_of_a_group():
    front = App("front", "", commands={"front": "m:front", "one": "m:one"})
    query = App("query", "", commands={"front query": "m:query", "front web": "m:web", "query": "m:alone"})
    both = Apps([front, query])
    assert both.commands() == {"front": "m:front", "one": "m:one", "query": "m:alone"}
    assert both.commands("front") == {"query": "m:query", "web": "m:web"}
    assert both.commands("nosuch") == {}
    assert Apps([front, query], ["query"]).commands("front") == {}
    assert Apps([front, query], ["query"]).without("query") == "query, which LCC_APPS leaves out"
    assert Apps([front, query], ["query"]).without("front query") == "query, which LCC_APPS leaves out"
    assert Apps([front, query], ["query"]).without("one") is None
    assert both.without("query") is None


def test_an_app_without_one_that_it_needs_is_left_out():
    base, middle = App("base", ""), App("middle", "", needs=("base",), commands={"middle": "m:middle"})
    top = App("top", "", needs=("base", "middle"), commands={"top": "m:top"}, jobs="json:loads")
    every = Apps([base, middle, top])
    assert ([*every], [*every.lacking()], every.without("top")) == ([base, middle, top], [], None)
    for installed, left_out, why in (
        ([base, middle, top], ["base"], "needs base, which LCC_APPS leaves out"),
        ([middle, top], [], "needs base, which is not installed"),
        ([base, top], [], "needs middle, which is not installed"),
        ([middle, top, base], [], "needs base, which comes after it"),
        ([base, middle, top], ["middle"], "needs middle, which LCC_APPS leaves out"),
    ):
        found = Apps(installed, left_out)
        assert top not in found
        assert found.without("top") == f"top, which {why}"
        assert f"top is left out: it {why}" in found.lacking()
        assert [*found.parts("jobs")] == []
        assert found.installed == tuple(installed), "its tables stay"
    found = Apps([base, middle, App("top", "", needs=("middle",))], ["base"])
    assert [*found.lacking()] == [
        "middle is left out: it needs base, which LCC_APPS leaves out",
        "top is left out: it needs middle, which needs base, which LCC_APPS leaves out",
    ]
    both = Apps([base, middle], ["base", "middle"])
    assert ([*both.lacking()], both.without("middle")) == ([], "middle, which LCC_APPS leaves out")


def test_factories_are_those_of_a_kind_and_of_the_apps_at_work():
    first = App("first", "", factories={"contents": {"s3": "m:s3"}, "export": {"zip": "m:zip"}})
    second = App("second", "", factories={"contents": {"gcs": "m:gcs"}})
    both, alone = Apps([first, second]), Apps([first, second], ["second"])
    assert both.factories("contents") == {"s3": "m:s3", "gcs": "m:gcs"}
    assert both.factories("nosuch") == {}
    assert alone.factories("contents") == {"s3": "m:s3"}
    assert alone.without_factory("contents", "gcs") == "second, which LCC_APPS leaves out"
    assert alone.without_factory("contents", "s3") is alone.without_factory("export", "gcs") is None


def test_parts_are_those_of_the_apps_at_work_in_their_order():
    first, second = App("first", "", jobs="json:loads"), App("second", "", jobs="json:dumps")
    assert [part.__name__ for part in Apps([first, App("none", ""), second]).parts("jobs")] == [
        "loads",
        "dumps",
    ]
    assert [part.__name__ for part in Apps([first, second], ["first"]).parts("jobs")] == ["dumps"]


def test_a_setting_belongs_to_the_longest_prefix():
    front, registration = (
        App("front", "", prefixes=("FRONT",)),
        App("r", "", prefixes=("FRONT_REGISTRATION",)),
    )
    for order in ([front, registration], [registration, front]):
        of = Apps(order).owner_of
        assert of("LCC_FRONT_REGISTRATION_RATE") is registration
        assert of("LCC_FRONT_REGISTRATIONS") is of("LCC_FRONT") is front
        assert of("LCC_FRONTIER") is None


# --- settings ------------------------------------------------------------------------------------


@pytest.mark.parametrize("others", ["", " -titles"])
def test_unknown_settings_of_an_app_are_told_also_where_it_is_left_out(packages, others):
    packages("team_titles", name="titles", prefixes=("TITLES",), settings=f"{__name__}:OfTitles")
    environment = {"LCC_APPS": f"team_titles{others}", "LCC_TITLES_LENGTH": "7", "LCC_TITLES_LENGHT": "7"}
    assert unknown_settings(NO_SETTINGS, environment) == ["LCC_TITLES_LENGHT"]
    assert unknown_settings(NO_SETTINGS, environment | {"LCC_APPS": ""}) == [
        "LCC_TITLES_LENGHT",
        "LCC_TITLES_LENGTH",
    ]


def test_settings_of_an_app_are_read_when_they_are_asked_for():
    config = load(PlainSettings({"LCC_TITLES_LENGTH": 0, "LCC_DATA_DIR": "/x"}, {}), {})
    with pytest.raises(ConfigurationError, match=r"^LCC_TITLES_LENGTH: "):
        config.of(OfTitles)
    assert load(PlainSettings({"LCC_DATA_DIR": "/x"}, {}), {"LCC_TITLES_LENGTH": "7"}).of(
        OfTitles
    ) == OfTitles(7)


# --- commands ------------------------------------------------------------------------------------


@pytest.fixture
def run(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("LCC_APPS", raising=False)
    return lambda *words, **environment: CliRunner().invoke(lcc, words, env=environment)


TITLES = """
import click
@click.command()
def titles(): "Show titles."
"""


@pytest.fixture
def team(packages):
    return packages("team_titles", TITLES, name="titles", commands={"titles": "team_titles:titles"})


def test_help_lists_the_commands_of_the_apps_at_work(run, team):
    assert "titles" not in run("--help").output
    assert "\n  titles        Show titles.\n" in run("--help", LCC_APPS=team).output
    assert "\n  titles " in run("-s", f"LCC_APPS={team}", "--help", LCC_APPS="nosuch").output
    assert "titles" not in run("--help", LCC_APPS=f"{team} -titles").output
    assert run("titles", LCC_APPS=team).exit_code == 0


def test_help_helps_where_lcc_apps_is_wrong(run):
    done = run("--help", LCC_APPS="nosuch")
    assert done.exit_code == 0
    assert done.stderr == "lcc: warning: LCC_APPS: there is no module nosuch\n"
    assert "\n  crawl " in done.stdout
    assert run("--version", LCC_APPS="nosuch").exit_code == 0


def test_other_commands_say_what_is_wrong(run):
    for words in (["status"], ["titles", "list"], ["nosuch"]):
        done = run(*words, LCC_APPS="nosuch")
        assert (done.exit_code, done.output) == (1, "lcc: error: LCC_APPS: there is no module nosuch\n")


def test_a_command_of_an_app_that_is_left_out_is_told_from_one_that_is_none(run, team):
    done = run("-s", f"LCC_APPS={team} -titles", "titles")
    assert done.exit_code == 2
    assert done.output.endswith("'titles' is a command of the app titles, which LCC_APPS leaves out.\n")
    assert run("nosuch", LCC_APPS=team).output.endswith("No such command 'nosuch'.\n")


def test_a_command_has_the_options_of_the_apps_at_work(run):
    assert "--mail [on|off]" in run("provider", "set", "--help").output
    assert "--mail" not in run("provider", "set", "--help", LCC_APPS="-mail").output
    done = run("provider", "set", "7", "--mail", "off", LCC_APPS="-mail")
    assert (done.exit_code, "No such option" in done.output) == (2, True)
    assert run("provider", "set", "--help", LCC_APPS="nosuch").exit_code == 1
