"""What ``contrib/compose`` asks for exists: commands, options and settings of the product, and its own names."""

import re
import shlex
import subprocess
import sys
from pathlib import Path

import click
import pytest
import yaml

from lcc_scrapy.cli.main import lcc
from lcc_scrapy.config.config import SETTINGS
from lcc_scrapy.domain.notations import duration
from lcc_scrapy.machine.watchdog import EVERY
from tests import dockerfile

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "contrib/compose"
COMPOSE = yaml.safe_load((FOLDER / "compose.yaml").read_text())
SERVICES = COMPOSE["services"]
OURS = {name: service for name, service in SERVICES.items() if service["image"] == "lcc"}
SERVERS = {name: service for name, service in OURS.items() if name != "init"}
PYPROJECT = (ROOT / "pyproject.toml").read_text()


def environment_of(service):
    return service["environment"]


def is_one_of_lcc(command, *words):
    found = lcc.get_command(click.Context(lcc), command)
    found.make_context(command, list(words))  # raises where an option is unknown


@pytest.mark.parametrize("name", SERVERS)
def test_every_command_is_one_that_lcc_takes(name):
    is_one_of_lcc(*SERVERS[name]["command"])


def test_every_setting_exists():
    known = {each.name for each in SETTINGS}
    named = {name for service in OURS.values() for name in environment_of(service)}
    built = dockerfile.environment().keys() - {"SCRAPY_SETTINGS_MODULE", "PATH"}
    assert named | built <= known


def test_every_name_that_a_service_uses_is_declared():
    for service in SERVICES.values():
        assert set(service.get("depends_on", ())) <= set(SERVICES)
        assert {name_of(secret) for secret in service.get("secrets", ())} <= set(COMPOSE["secrets"])
        volumes = {volume.partition(":")[0] for volume in service.get("volumes", ())}
        assert {volume for volume in volumes if not volume.startswith(".")} <= set(COMPOSE["volumes"])
        assert all((FOLDER / volume).exists() for volume in volumes if volume.startswith("."))


def name_of(secret):
    return secret["source"] if isinstance(secret, dict) else secret


def test_whoever_waits_for_health_waits_for_one_that_has_a_check():
    for service in SERVICES.values():
        for name, after in service.get("depends_on", {}).items():
            is_asked = "test" in SERVICES[name].get("healthcheck", {}) or name in SERVERS
            assert is_asked or after["condition"] == "service_completed_successfully"


def test_the_root_of_every_service_is_read_only():
    assert {name for name, service in SERVICES.items() if not service.get("read_only")} == set()


def test_prometheus_and_grafana_read_what_is_kept_for_them():
    ours, theirs = (
        yaml.safe_load((ROOT / "contrib" / name).read_text())
        for name in ("compose/prometheus.yml", "prometheus/prometheus.yml")
    )
    (ours_job,), (their_job,) = ours["scrape_configs"], theirs["scrape_configs"]
    port = environment_of(SERVICES["web"])["LCC_WEB_ENDPOINT"].rpartition(":")[2]
    assert ours_job.pop("static_configs") == [{"targets": [f"web:{port}"]}]
    del their_job["static_configs"]
    assert ours == theirs
    inside = {volume.split(":")[1] for volume in SERVICES["prometheus"]["volumes"]}
    assert {f"/etc/prometheus/{name}" for name in ours["rule_files"]} <= inside
    (token,) = SERVICES["prometheus"]["secrets"]
    assert token["target"] == f"/etc/prometheus/{ours_job['authorization']['credentials_file']}"


def test_grafana_finds_prometheus_and_the_board():
    folder = ROOT / "contrib/grafana/provisioning"
    (source,) = yaml.safe_load((folder / "datasources/lcc.yml").read_text())["datasources"]
    assert source["url"] == "http://prometheus:9090"
    assert "prometheus" in SERVICES
    (boards,) = yaml.safe_load((folder / "dashboards/lcc.yml").read_text())["providers"]
    inside = {volume.split(":")[1] for volume in SERVICES["grafana"]["volumes"]}
    assert f"{boards['options']['path']}/lcc.json" in inside


def test_no_two_unses_share_a_spool_or_a_port():
    unses = [service for service in OURS.values() if service.get("command") == ["uns"]]
    assert len(unses) == 2
    for values in (
        [environment_of(one)["LCC_SPOOL_DIR"] for one in unses],
        [one["ports"][0] for one in unses],
    ):
        assert len(set(values)) == 2


def test_nothing_is_open_to_other_hosts_and_nothing_of_ours_has_rights():
    ports = [port for service in SERVICES.values() for port in service.get("ports", ())]
    assert all(port.startswith("127.0.0.1:") for port in ports)
    for service in OURS.values():
        assert (service["read_only"], service["cap_drop"]) == (True, ["ALL"])


def test_a_service_is_given_longer_to_stop_than_it_takes():
    assert {service["stop_grace_period"] for service in OURS.values()} == {"60s"}
    assert duration("60s") >= duration(default_of("LCC_STOP_TIMEOUT")) + 20


def default_of(setting):
    return next(each.default for each in SETTINGS if each.name == setting)


def test_secrets_are_named_by_their_files():
    given = {
        name: value for service in SERVICES.values() for name, value in service.get("environment", {}).items()
    }
    secret = {
        name: value for name, value in given.items() if re.search("PASSWORD|SECRET|TOKEN|DATABASE_URL", name)
    }
    assert secret.pop("MARIADB_RANDOM_ROOT_PASSWORD") == "yes"
    files = {f"/run/secrets/{name}" for name in COMPOSE["secrets"]}
    assert {value for value in secret.values() if value not in files} == set()
    assert all(name.endswith("_FILE") for name in secret)


# --- the image ----------------------------------------------------------------------------------------


def test_hadolint_finds_nothing():
    hadolint = Path(sys.executable).with_name("hadolint")
    if not hadolint.exists():
        pytest.skip("no hadolint: there is no wheel for this machine")
    done = subprocess.run(
        [hadolint, dockerfile.FILE], capture_output=True, text=True, check=False, timeout=300
    )
    assert (done.returncode, done.stdout) == (0, "")


def test_the_image_runs_as_the_user_that_it_makes_and_not_as_root():
    (user,) = dockerfile.all_of("USER")
    number, group = user.split(":")
    assert min(int(number), int(group)) > 0
    made = " ".join(dockerfile.all_of("RUN"))
    assert f"useradd --system --uid {number} --user-group" in made
    names = [name for name, _ in dockerfile.instructions()]
    assert names.index("USER") > max(at for at, name in enumerate(names) if name in {"RUN", "COPY"})


def test_what_is_copied_is_what_make_dist_or_an_earlier_stage_made():
    stages = {rest.split(" AS ")[1] for rest in dockerfile.all_of("FROM") if " AS " in rest}
    for rest in dockerfile.all_of("COPY"):
        source = rest.split()[0]
        assert source == "dist/*.whl" or source.removeprefix("--from=") in stages
    dist = re.search(r"^dist:.*\n((?:\t.*\n)+)", (ROOT / "Makefile").read_text(), re.MULTILINE)[1]
    assert "build -d dist" in dist


def test_the_base_is_a_python_that_is_supported():
    bases = {rest.split()[0] for rest in dockerfile.all_of("FROM")}
    (version,) = {re.fullmatch(r"python:(3\.\d+)-slim", base)[1] for base in bases}
    assert f"Python :: {version}" in PYPROJECT


def test_the_extras_of_the_image_exist():
    (extras,) = [rest.partition("=")[2] for rest in dockerfile.all_of("ARG") if rest.startswith("EXTRAS")]
    known = re.search(r"^\[project\.optional-dependencies\]\n(.*?)^\[", PYPROJECT, re.MULTILINE | re.DOTALL)[
        1
    ]
    assert set(extras.split(",")) <= set(re.findall(r"^([a-z0-9]+) = \[", known, re.MULTILINE))


def test_entry_point_and_health_check_are_commands_of_the_wheel():
    (entry,) = dockerfile.all_of("ENTRYPOINT")
    assert entry == '["lcc"]'
    program, *words = dockerfile.health_check()
    assert program == "lcc"
    assert "\nlcc = " in PYPROJECT
    is_one_of_lcc(*words)


def test_what_the_health_check_reads_lies_in_the_memory_that_compose_gives():
    file = Path(dockerfile.environment()["LCC_HEALTH_FILE"])
    assert all(str(file.parent) in service["tmpfs"] for service in OURS.values())


def test_the_health_check_has_the_time_that_it_takes():
    from lcc_scrapy.cli.health import PATIENCE

    (rest,) = dockerfile.all_of("HEALTHCHECK")
    options = dict(word.removeprefix("--").split("=") for word in shlex.split(rest) if word.startswith("--"))
    assert duration(options["timeout"]) > PATIENCE
    assert duration(default_of("LCC_WATCHDOG")) > 3 * EVERY


def test_the_data_is_in_the_volume_which_the_user_owns():
    (volume,) = dockerfile.all_of("VOLUME")
    assert dockerfile.environment()["LCC_DATA_DIR"].startswith(f"{volume}/")
    assert f"--home-dir {volume} --create-home" in " ".join(dockerfile.all_of("RUN"))
    assert all(f"lcc:{volume}" in service["volumes"] for service in OURS.values())
