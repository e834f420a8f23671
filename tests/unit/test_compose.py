"""What ``contrib/compose`` asks for exists: commands, options and settings of the product, and its own names."""

from pathlib import Path

import click
import pytest
import yaml

from lcc_scrapy.cli.main import lcc
from lcc_scrapy.config.config import SETTINGS

FOLDER = Path(__file__).parents[2] / "contrib/compose"
COMPOSE = yaml.safe_load((FOLDER / "compose.yaml").read_text())
SERVICES = COMPOSE["services"]
OURS = {name: service for name, service in SERVICES.items() if service["image"] == "lcc"}
SERVERS = {name: service for name, service in OURS.items() if name != "init"}
DOCKERFILE = (FOLDER / "Dockerfile").read_text().splitlines()


def environment_of(service):
    return service["environment"]


@pytest.mark.parametrize("name", SERVERS)
def test_every_command_is_one_that_lcc_takes(name):
    command, *words = SERVERS[name]["command"]
    found = lcc.get_command(click.Context(lcc), command)
    found.make_context(command, words)  # raises where an option is unknown


def test_every_setting_exists():
    known = {each.name for each in SETTINGS}
    named = {name for service in OURS.values() for name in environment_of(service)}
    built = {
        word.partition("=")[0] for line in DOCKERFILE if line.startswith("ENV ") for word in line.split()[1:]
    }
    assert named | built - {"SCRAPY_SETTINGS_MODULE"} <= known


def test_every_name_that_a_service_uses_is_declared():
    for service in SERVICES.values():
        assert set(service.get("depends_on", ())) <= set(SERVICES)
        assert set(service.get("secrets", ())) <= set(COMPOSE["secrets"])
        assert {volume.partition(":")[0] for volume in service.get("volumes", ())} <= set(COMPOSE["volumes"])


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
    assert "USER lcc" in DOCKERFILE
    for service in OURS.values():
        assert (service["read_only"], service["cap_drop"]) == (True, ["ALL"])


def test_a_service_is_given_longer_to_stop_than_it_takes():
    assert {service["stop_grace_period"] for service in OURS.values()} == {"60s"}


def test_no_secret_stands_in_the_file():
    text = (FOLDER / "compose.yaml").read_text()
    assert "MARIADB_PASSWORD:" not in text
    assert "LCC_DATABASE_URL:" not in text
