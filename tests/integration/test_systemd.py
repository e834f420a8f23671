"""The units of ``contrib/systemd``: what systemd says of them, and how they run under a real one.

The second half boots a machine of its own (``tests/systemd_machine.py``) and takes about a minute: it is part
of ``make soak``, that is of runs with ``LCC_SYSTEMD=1``.
"""

import os
import re
import shutil
import subprocess
from ipaddress import ip_address, ip_network
from pathlib import Path

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from lcc_scrapy.config.config import SETTINGS, every_setting
from lcc_scrapy.domain import addresses
from lcc_scrapy.domain.addresses import is_public
from lcc_scrapy.domain.notations import duration
from lcc_scrapy.runtime.apps import ours
from tests.harness import missing, wait_for
from tests.systemd_machine import UNITS, Machine, skip_unless_possible

SERVERS = [f"lcc-{name}.service" for name in ("uns", "crawl", "query", "web", "files")]
SERVICES = sorted(path.name for path in UNITS.glob("*.service"))
OTHERS = sorted(path.name for path in [*UNITS.glob("*.timer"), *UNITS.glob("*.socket")])
EXPOSURE = 15
"""Tenths, of 100; the units have 12. What is left: Internet and Unix sockets, the host's files to read."""


def settings_of(unit: str) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for line in (UNITS / unit).read_text().splitlines():
        name, equals, value = line.partition("=")
        if equals and not line.startswith("#"):
            found.setdefault(name, []).append(value)
    return found


# --- what is written in them ------------------------------------------------------------------------


def test_a_service_that_is_told_to_stop_has_longer_for_it_than_it_takes():
    stop_timeout = next(duration(each.default) for each in SETTINGS if each.name == "LCC_STOP_TIMEOUT")
    for unit in SERVERS:
        assert float(settings_of(unit)["TimeoutStopSec"][0]) >= stop_timeout + 20


def test_every_server_has_a_unit_that_names_settings_that_there_are():
    known = {each.name for each in every_setting(ours())}
    for unit in SERVERS:
        command = unit.removeprefix("lcc-").removesuffix(".service")
        assert settings_of(unit)["ExecStart"][0].split()[:2] == ["/opt/lcc/bin/lcc", command]
        named = [text.strip('"').partition("=")[0] for text in settings_of(unit).get("Environment", [])]
        assert set(named) <= known


def test_a_crawl_that_is_told_to_stop_tells_its_processes_itself():
    assert settings_of("lcc-crawl.service")["KillMode"] == ["mixed"]


UNIT = settings_of("lcc-crawl.service")
DENIED_NETWORKS = [ip_network(word) for value in UNIT["IPAddressDeny"] for word in value.split()]
REFUSED_NETWORKS = [
    ip_network(text) for text in re.findall(r'"([0-9a-f:.]+/\d+)"', Path(addresses.__file__).read_text())
]
EDGES = [str(end) for network in (*DENIED_NETWORKS, *REFUSED_NETWORKS) for end in (network[0], network[-1])]


def is_denied(address: str) -> bool:
    return any(ip_address(address) in network for network in DENIED_NETWORKS)


@given(st.ip_addresses())
def test_systemd_denies_what_the_crawler_refuses_and_nothing_else(address):
    assume(getattr(address, "ipv4_mapped", None) is None)  # the kernel sees such a packet as IPv4
    assert is_denied(str(address)) is not is_public(str(address))


def test_systemd_denies_the_same_to_the_very_edges_of_every_network():
    assert len(EDGES) > 80
    others = ["::ffff:10.0.0.1", "64:ff9b::a00:1", "fd00::1", "2606:2800:220:1::1", "93.184.216.34"]
    assert [each for each in EDGES + others if is_denied(each) is is_public(each)] == []


def test_a_drop_in_of_the_operator_comes_after_the_sandbox_and_overrides_it():
    (sandbox,) = (UNITS / "lcc-.service.d").iterdir()
    theirs = ["override.conf", *(path.name for path in (UNITS / "examples").iterdir())]
    assert min([sandbox.name, *theirs]) == sandbox.name  # systemd sorts them all by name


# --- what systemd says of them ------------------------------------------------------------------------


@pytest.fixture
def units(tmp_path):
    """A folder with all units and examples in place, where ``lcc`` is a program that exists."""
    if shutil.which("systemd-analyze") is None:
        pytest.skip("systemd-analyze is missing: apt-get install systemd")
    folder = tmp_path / "units"
    shutil.copytree(UNITS, folder)
    for unit in folder.glob("*.service"):
        unit.write_text(unit.read_text().replace("/opt/lcc/bin/lcc", "/bin/true"))
    return folder


def analyze(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        ["systemd-analyze", "--no-pager", *words],
        env={**os.environ, "SYSTEMD_UNIT_PATH": f"{folder}:", "LC_ALL": "C.UTF-8"},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )


@pytest.mark.parametrize(
    "example", ["", *(path.name for path in sorted((UNITS / "examples").glob("*.conf")))]
)
def test_systemd_understands_every_line(units, example):
    if example:
        (units / "lcc-uns.service.d").mkdir()
        shutil.copy(units / "examples" / example, units / "lcc-uns.service.d")
    done = analyze(units, "verify", "--man=no", *SERVICES, *OTHERS)
    assert "lcc" not in done.stdout + done.stderr, done.stderr


@pytest.mark.parametrize("service", SERVICES)
def test_the_sandbox_is_tight(units, service):
    done = analyze(units, "security", "--offline=true", f"--threshold={EXPOSURE}", str(units / service))
    print(done.stdout[done.stdout.find("Overall") :])
    assert done.returncode == 0, done.stdout
    (units / "lcc-.service.d/10-sandbox.conf").write_text("")
    assert (
        analyze(
            units, "security", "--offline=true", f"--threshold={EXPOSURE}", str(units / service)
        ).returncode
        != 0
    )


# --- a real run -----------------------------------------------------------------------------------------

SITE = r"""
import http.server, time
class Page(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        with open("/srv/asked", "a") as asked:
            print(self.headers["Host"], self.path, file=asked, flush=True)
        if self.path == "/robots.txt":
            return self.send_error(404)
        if self.path.startswith("/slow"):
            time.sleep(3)
        body = f"page {self.path}".encode()
        if self.path.startswith("/script"):
            body = b"<p id=p></p><script>document.getElementById('p').textContent = 'by a ' + 'script'</script>"
        self.send_response(200)
        self.send_header("Content-Type", "text/html")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)
http.server.ThreadingHTTPServer(("0.0.0.0", 80), Page).serve_forever()
"""
ALLOWED, DENIED = "127.0.0.2", "127.0.0.3"
CERTIFICATE = (
    "mkdir -p /etc/lcc/tls && cd /etc/lcc/tls && openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 "
    "-nodes -days 1 -keyout key.pem -out cert.pem -subj /CN=localhost -addext subjectAltName=DNS:localhost "
    "&& chown root:lcc key.pem && chmod 640 key.pem"
)


@pytest.fixture(scope="module")
def machine(tmp_path_factory):
    """A machine with an LCC, two providers and a web server that is both their sites."""
    if not os.environ.get("LCC_SYSTEMD"):
        pytest.skip("boots a systemd: set LCC_SYSTEMD=1")
    skip_unless_possible()
    made = Machine(tmp_path_factory.mktemp("systemd"))
    try:
        made.boot()
        furnish(made)
        yield made
    finally:
        made.stop()


def furnish(machine: Machine) -> None:
    machine.run("sh", "-c", CERTIFICATE)
    machine.write("/srv/site.py", SITE)
    machine.run("systemd-run", "--quiet", "--unit=site", "/opt/lcc/bin/python", "/srv/site.py")
    machine.run(
        "sh", "-c", "printf 'LCC_FETCH_TIMEOUT = 20\nLCC_HOST_BACKOFF = 3\n' >> /etc/lcc/lcc_settings.py"
    )
    drop_in(machine, "lcc-crawl", "site", f"[Service]\nIPAddressAllow={ALLOWED}\n")
    machine.run("lcc-run", "init")
    for pid, address in ((7, ALLOWED), (8, DENIED)):
        machine.run(
            *("lcc-run", "provider", "add", str(pid), "--password-file", "-"),
            *("--root", f"http://{address}/", "--allow-private"),
            stdin="wachtwoord\n",
        )
    machine.run("systemctl", "start", "lcc-crawl")
    start_with_tls(machine)


def start_with_tls(machine: Machine) -> None:
    drop_in(machine, "lcc-uns", "endpoint", (UNITS / "examples/tls.conf").read_text())
    listens = "listening on"
    before = machine.journal("lcc-uns").count(listens)
    machine.run("systemctl", "reset-failed")
    machine.run("systemctl", "restart", "lcc-uns")
    wait_for(lambda: machine.journal("lcc-uns").count(listens) > before, 60, "the UNS")


def drop_in(machine: Machine, unit: str, name: str, text: str) -> None:
    machine.write(f"/etc/systemd/system/{unit}.service.d/{name}.conf", text)
    machine.run("systemctl", "daemon-reload")


def push(machine: Machine, pid: int, address: str, *pages: str, tls: bool = True) -> None:
    urls = "".join(f'<url c="{page}" mimetype="text/html"/>\n' for page in pages)
    secure = "--uns=localhost:9000 --tls --ca /etc/lcc/tls/cert.pem" if tls else "--uns=127.0.0.1:9000"
    machine.run(
        *("sh", "-c"),
        f"LCC_PWD=wachtwoord /opt/lcc/bin/lcccp {secure} --pid={pid} --urlprefix=http://{address}/",
        stdin=f'{urls}<end count="{len(pages)}"/>\n',
    )


def cached(machine: Machine) -> str:
    return machine.run("lcc-run", "select").stdout


def asked(machine: Machine) -> str:
    return machine.run("cat", "/srv/asked", check=False).stdout


def test_a_set_pushed_over_tls_is_fetched_inside_the_sandbox(machine):
    push(machine, 7, ALLOWED, "a.html")
    wait_for(lambda: f"http://{ALLOWED}/a.html" in cached(machine), 60, "the document")
    machine.run("systemctl", "start", "lcc-backup", "lcc-verify")
    assert "all is well" in machine.journal("lcc-verify")
    assert "complete" in machine.journal("lcc-backup")
    readable = machine.run("find", "/var/lib/lcc", "/var/lib/lcc-backup", "-perm", "/o+rwx").stdout
    assert readable == ""


def test_what_the_unit_does_not_allow_is_not_reached_although_the_crawler_was_told_to(machine):
    page = f"http://{DENIED}/metadata.html"
    push(machine, 8, DENIED, "metadata.html")
    wait_for(lambda: "602" in machine.run("lcc-run", "explain", page).stdout, 60, "the failure")
    assert DENIED not in asked(machine)
    drop_in(machine, "lcc-crawl", "too", f"[Service]\nIPAddressAllow={DENIED}\n")
    wait_for(lambda: page in cached(machine), 60, "the document, now that it is allowed")


PROBES = {
    "write outside of the data directory": "touch /etc/lcc/x",
    "write into its own program": "touch /opt/lcc/x",
    "see home folders": "ls /root/.",
    "see processes of others": "test -d /proc/1",
    "read the secret itself": "cat /etc/lcc/database-url",
    "make namespaces": "unshare --user true",
    "mount": "mount -t tmpfs tmpfs /tmp",
    "speak other protocols": "/opt/lcc/bin/python -c 'import socket; socket.socket(socket.AF_NETLINK, socket.SOCK_RAW)'",
    "send raw packets": "/opt/lcc/bin/python -c 'import socket; socket.socket(socket.AF_INET, socket.SOCK_RAW, 1)'",
    "write and execute memory": "/opt/lcc/bin/python -c 'import mmap; mmap.mmap(-1, 4096, prot=7)'",
    "become root": "/opt/lcc/bin/python -c 'import os; os.setuid(0)'",
}


@pytest.mark.parametrize("probe", PROBES.values(), ids=PROBES)
def test_the_sandbox_holds(machine, probe):
    machine.write("/etc/lcc/database-url", "\n")
    machine.run("chmod", "600", "/etc/lcc/database-url")
    inside = machine.run(*["systemd-run", "--quiet", "--collect", "--wait", "--pipe", "--unit=lcc-probe"], "sh", "-c", probe, check=False)  # fmt: skip
    assert inside.returncode != 0
    assert "not found" not in inside.stderr
    outside = machine.run(
        "sh", "-c", f"{probe} && rm -f /etc/lcc/x /opt/lcc/x; umount -q /tmp || true", check=False
    )
    assert outside.returncode == 0, outside.stderr


def test_a_browser_keeps_its_own_sandbox_inside_that_of_the_unit(machine):
    if shutil.which("chromium") is None:
        missing("Chromium", "apt-get install chromium")
    machine.run("lcc-run", "provider", "set", "7", "--render")
    drop_in(machine, "lcc-crawl", "render", (UNITS / "examples/render.conf").read_text())
    machine.run("systemctl", "restart", "lcc-crawl")
    try:
        push(machine, 7, ALLOWED, "script.html")
        wait_for(lambda: "text/x-rendered-html" in cached(machine), 60, "the rendition")
        row = next(line for line in cached(machine).splitlines() if "text/x-rendered-html" in line)
        file = row.split("\t")[-1]
        assert '<p id="p">by a script</p>' in machine.run("cat", file).stdout
        assert "--no-sandbox" not in machine.run("pgrep", "-af", "chromium").stdout
    finally:
        machine.run("lcc-run", "provider", "set", "7", "--no-render")
        machine.run("rm", "/etc/systemd/system/lcc-crawl.service.d/render.conf")
        machine.run("systemctl", "daemon-reload")
        machine.run("systemctl", "restart", "lcc-crawl")


def test_a_reload_shows_the_renewed_certificate_and_ends_nothing(machine):
    before = [machine.show(unit, "MainPID", "NRestarts") for unit in ("lcc-uns", "lcc-crawl")]
    machine.run("sh", "-c", CERTIFICATE)
    with pytest.raises(AssertionError, match="certificate"):
        push(machine, 7, ALLOWED, "c.html")
    machine.run("systemctl", "reload", "lcc-uns", "lcc-crawl")
    wait_for(lambda: "certificates read again" in machine.journal("lcc-uns"), 60, "the reload")
    wait_for(lambda: "SIGHUP" in machine.journal("lcc-crawl"), 60, "the reload")
    push(machine, 7, ALLOWED, "c.html")
    wait_for(lambda: f"http://{ALLOWED}/c.html" in cached(machine), 60, "the document")
    assert [machine.show(unit, "MainPID", "NRestarts") for unit in ("lcc-uns", "lcc-crawl")] == before


def test_a_fetch_in_flight_is_ended_before_the_service_stops_with_status_0(machine):
    push(machine, 7, ALLOWED, "slow.html")
    wait_for(lambda: "/slow.html" in asked(machine), 60, "the request")
    machine.run("systemctl", "stop", "lcc-crawl", "lcc-uns")
    for unit in ("lcc-crawl", "lcc-uns"):
        assert machine.show(unit, "Result", "ExecMainStatus", "NRestarts") == {
            "Result": "success",
            "ExecMainStatus": "0",
            "NRestarts": "0",
        }
    assert f"http://{ALLOWED}/slow.html" in cached(machine)
    machine.run("systemctl", "start", "lcc-crawl")
    start_with_tls(machine)


def test_a_service_that_was_killed_is_started_again_and_one_that_cannot_work_is_not(machine):
    machine.run("systemctl", "kill", "--signal=KILL", "lcc-uns")
    wait_for(lambda: machine.show("lcc-uns", "NRestarts")["NRestarts"] == "1", 60, "the restart")
    drop_in(machine, "lcc-uns", "wrong", "[Service]\nEnvironment=LCC_DATA_DIR=/var/lib/lcc/nowhere\n")
    machine.run("systemctl", "restart", "lcc-uns", check=False)  # it says that it failed
    wait_for(lambda: machine.show("lcc-uns", "ActiveState")["ActiveState"] == "failed", 60, "the end")
    assert machine.show("lcc-uns", "ExecMainStatus", "NRestarts") == {"ExecMainStatus": "2", "NRestarts": "0"}
    assert "no LCC data directory at /var/lib/lcc/nowhere" in machine.journal("lcc-uns")
    machine.run("rm", "/etc/systemd/system/lcc-uns.service.d/wrong.conf")
    machine.run("systemctl", "daemon-reload")
    start_with_tls(machine)


def test_a_service_that_stands_still_is_started_again(machine):
    quickly = "[Service]\nWatchdogSec=5\nTimeoutAbortSec=1\n"
    drop_in(machine, "lcc-uns", "watchdog", quickly)
    machine.run("systemctl", "restart", "lcc-uns")
    before = machine.show("lcc-uns", "MainPID")
    machine.run("systemctl", "kill", "--signal=STOP", "lcc-uns")
    wait_for(lambda: machine.show("lcc-uns", "NRestarts")["NRestarts"] == "1", 60, "the restart")
    wait_for(lambda: machine.show("lcc-uns", "ActiveState")["ActiveState"] == "active", 60, "the new one")
    assert machine.show("lcc-uns", "MainPID") != before
    machine.run("rm", "/etc/systemd/system/lcc-uns.service.d/watchdog.conf")
    machine.run("systemctl", "daemon-reload")
    start_with_tls(machine)


def test_providers_wait_at_the_socket_while_the_uns_is_away(machine):
    machine.run("systemctl", "stop", "lcc-uns")
    drop_in(machine, "lcc-uns", "endpoint", (UNITS / "examples/socket.conf").read_text())
    machine.run("systemctl", "start", "lcc-uns.socket")
    assert machine.show("lcc-uns", "ActiveState")["ActiveState"] == "inactive"
    push(machine, 7, ALLOWED, "b.html", tls=False)
    assert machine.show("lcc-uns", "ActiveState")["ActiveState"] == "active"
    wait_for(lambda: f"http://{ALLOWED}/b.html" in cached(machine), 60, "the document")
    machine.run("systemctl", "stop", "lcc-uns.socket", "lcc-uns")
    start_with_tls(machine)
    assert re.search(r"listening on 127\.0\.0\.1:9000", machine.journal("lcc-uns"))
