"""A machine that lasts as long as a test: a systemd of its own over a throw-away copy of this one's files.

Its processes, mounts, network (loopback only), cgroups and host name are its own; what it writes goes into
memory and is gone with it. It needs root, overlayfs, a cgroup2 hierarchy that may be written to, and systemd.
"""

import os
import shutil
import subprocess
import sys
import sysconfig
import time
from pathlib import Path

import pytest

from tests.harness import wait_for

SYSTEMD = Path("/lib/systemd/systemd")
UNITS = Path(__file__).parents[1] / "contrib/systemd"
SOURCE = Path(__file__).parents[1]
_NOT_WANTED = (
    "systemd-udevd.service systemd-udev-trigger.service systemd-udevd-control.socket systemd-udevd-kernel.socket "
    "systemd-timesyncd.service systemd-networkd.service systemd-resolved.service dev-hugepages.mount "
    "dev-mqueue.mount sys-kernel-debug.mount sys-kernel-tracing.mount tmp.mount systemd-remount-fs.service "
    "systemd-sysctl.service systemd-modules-load.service kmod-static-nodes.service"
)
_PREPARE = r"""
set -eu
mount --make-rprivate /
mount -t tmpfs tmpfs "$WORK"
mkdir "$WORK/upper" "$WORK/work" "$WORK/root"
R="$WORK/root"
mount -t overlay overlay -o "lowerdir=/,upperdir=$WORK/upper,workdir=$WORK/work" "$R"
mount -t proc proc "$R/proc"
mount -t sysfs -o ro sysfs "$R/sys"
mount -t cgroup2 cgroup2 "$R/sys/fs/cgroup"
mount -t tmpfs tmpfs "$R/run"
mount -t tmpfs tmpfs "$R/dev"
mkdir "$R/dev/pts" "$R/dev/shm" "$R/dev/mqueue" "$R/dev/hugepages"
mount -t devpts devpts "$R/dev/pts" -o newinstance,ptmxmode=0666
ln -s pts/ptmx "$R/dev/ptmx"
ln -s /proc/self/fd "$R/dev/fd"
for name in null zero full random urandom tty; do touch "$R/dev/$name"; mount --bind "/dev/$name" "$R/dev/$name"; done
ip link set lo up
rm -rf "$R"/etc/systemd/system/*
: > "$R/etc/fstab"
for unit in $NOT_WANTED; do ln -s /dev/null "$R/etc/systemd/system/$unit"; done
printf '[Unit]\nRequires=basic.target\nAfter=basic.target\n' > "$R/etc/systemd/system/test.target"

# the program as the units want it: in /opt, whatever it is run from here
mkdir -p "$R/opt/lcc-python" "$R/opt/lcc-site" "$R/opt/lcc-source"
mount --bind "$PYTHON_BASE" "$R/opt/lcc-python"
mount --bind "$PYTHON_SITE" "$R/opt/lcc-site"
mount --bind "$SOURCE" "$R/opt/lcc-source"

cd "$R"
mkdir old
pivot_root . old
umount -l /old
mount --make-rshared /
exec env -i container=lcc-test PATH=/usr/sbin:/usr/bin:/sbin:/bin /lib/systemd/systemd \
    --unit=test.target --log-target=console --show-status=0
"""
_INSTALL = r"""
set -eu
/opt/lcc-python/bin/"$PYTHON_NAME" -m venv --without-pip --symlinks /opt/lcc
printf '/opt/lcc-source\n/opt/lcc-site\n' > "$(echo /opt/lcc/lib/python*/site-packages)/lcc.pth"
for name in lcc:lcc_scrapy.cli.main lcccp:lcc_scrapy.push.lcccp; do
    printf '#!/opt/lcc/bin/python\nimport sys\nfrom %s import main\nsys.exit(main())\n' "${name#*:}" > "/opt/lcc/bin/${name%%:*}"
    chmod 755 "/opt/lcc/bin/${name%%:*}"
done
chmod 755 /opt /opt/lcc
echo /opt/lcc-python/lib > /etc/ld.so.conf.d/000-lcc.conf
ldconfig
units=/opt/lcc-source/contrib/systemd
cp -r "$units"/*.service "$units"/*.socket "$units"/*.timer "$units"/lcc-.service.d /etc/systemd/system/
cp "$units"/lcc-run /usr/local/bin/
systemd-sysusers "$units"/lcc.sysusers.conf
mkdir -p /etc/lcc
cp "$units"/lcc_settings.py /etc/lcc/
systemctl daemon-reload
"""


def _unified() -> Path | None:
    for place in (Path("/sys/fs/cgroup/unified"), Path("/sys/fs/cgroup")):
        if (place / "cgroup.procs").exists() and (place / "cgroup.subtree_control").exists():
            return place
    return None


def skip_unless_possible() -> None:
    """Skip the test where no such machine can be made, and say what is missing."""
    cgroups = _unified()
    wanted = {
        "root": os.geteuid() == 0,
        "systemd": SYSTEMD.exists(),
        "unshare, nsenter and ip": all(shutil.which(name) for name in ("unshare", "nsenter", "ip")),
        "a cgroup2 hierarchy that can be written to": cgroups is not None and os.access(cgroups, os.W_OK),
        "overlayfs": "overlay" in Path("/proc/filesystems").read_text(),
    }
    lacking = [name for name, there in wanted.items() if not there]
    if lacking:
        pytest.skip(f"a systemd of its own cannot be started here: no {', no '.join(lacking)}")


class Machine:
    """Started with ``boot``; ``run`` runs a command in it, ``stop`` ends everything in it."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._cgroup = (_unified() or folder) / f"lcc-test-{os.getpid()}"
        self._outer: subprocess.Popen[bytes] | None = None
        self._init = 0

    def boot(self) -> None:
        (self._folder / "machine").mkdir()
        self._cgroup.mkdir()
        environment = {
            "PATH": os.environ["PATH"] + ":/usr/sbin:/sbin",
            "WORK": str(self._folder / "machine"),
            "NOT_WANTED": _NOT_WANTED,
            "PYTHON_BASE": sys.base_prefix,
            "PYTHON_SITE": sysconfig.get_path("purelib"),
            "SOURCE": str(SOURCE),
        }
        enter = f'echo $$ > {self._cgroup}/cgroup.procs; exec unshare --pid --fork --kill-child --mount --cgroup --net --ipc --uts sh -c "$PREPARE"'
        with (self._folder / "console.log").open("wb") as log:
            self._outer = subprocess.Popen(
                ["sh", "-c", enter],
                env={**environment, "PREPARE": _PREPARE},
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
            )
        wait_for(self._is_up, 60, "systemd")
        self.run("sh", "-c", f"PYTHON_NAME=python{sys.version_info[0]}.{sys.version_info[1]}\n{_INSTALL}")

    def _is_up(self) -> bool:
        assert self._outer is not None
        if self._outer.poll() is not None:
            pytest.fail("systemd did not start: " + (self._folder / "console.log").read_text()[-2000:])
        children = Path(f"/proc/{self._outer.pid}/task/{self._outer.pid}/children").read_text().split()
        if not children or Path(f"/proc/{children[0]}/comm").read_text().strip() != "systemd":
            return False
        self._init = int(children[0])
        state = self.run("systemctl", "is-active", "test.target", check=False)
        return state.stdout.strip() == "active"

    def run(
        self, *command: str, check: bool = True, stdin: str = "", timeout: float = 90
    ) -> subprocess.CompletedProcess[str]:
        done = subprocess.run(
            ["nsenter", "-t", str(self._init), "-a", "--", *command],
            env={"PATH": "/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "LC_ALL": "C.UTF-8"},
            input=stdin,
            capture_output=True,
            text=True,
            timeout=timeout,
            check=False,
        )
        assert not check or done.returncode == 0, f"{command}: {done.stdout}{done.stderr}"
        return done

    def write(self, path: str, text: str) -> None:
        self.run("sh", "-c", 'mkdir -p "$(dirname "$0")" && cat > "$0"', path, stdin=text)

    def show(self, unit: str, *names: str) -> dict[str, str]:
        """Return properties of a unit."""
        said = self.run("systemctl", "show", unit, *(f"--property={name}" for name in names)).stdout
        return dict(line.split("=", 1) for line in said.splitlines())

    def journal(self, unit: str) -> str:
        return self.run("journalctl", "--no-pager", "-o", "cat", "-u", unit).stdout

    def stop(self) -> None:
        if self._outer is not None:
            self._outer.kill()
            self._outer.wait(300)
        end = time.monotonic() + 10
        while self._cgroup.exists() and time.monotonic() < end:
            for folder in sorted(self._cgroup.rglob("*/"), reverse=True):
                _remove(folder)
            _remove(self._cgroup)
            time.sleep(0.05)


def _remove(folder: Path) -> None:
    try:
        folder.rmdir()
    except OSError:
        time.sleep(0.01)
