"""Containers of a test's own: podman, which needs no daemon, with its storage in a folder that is gone at the end.

It needs root, podman, runc or crun, overlayfs, and mmdebstrap: no registry of images is asked. The base image is
Debian's own Python, as small as ``python:3.11-slim`` and under its name.
"""

import json
import os
import shutil
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import pytest

from tests.harness import wait_for

SOURCE = Path(__file__).parents[1]
DOCKERFILE = SOURCE / "contrib/compose/Dockerfile"
BASE = "docker.io/library/python:3.11-slim"
_PACKAGES = "python3,python3-pip,python3-venv,ca-certificates"
_CERTIFICATES = ("/etc/ssl/certs", "/usr/share/ca-certificates", "/usr/local/share/ca-certificates")
_OPEN_FILES = ("--ulimit", "nofile=4096:4096", "--ulimit", "nproc=4096:4096")
"""Podman's own limits are above what it may give in a machine with fewer capabilities."""

CONFINED = (
    *("--network", "host", "--read-only", "--read-only-tmpfs=false", "--tmpfs", "/tmp"),
    *("--cap-drop", "all", "--security-opt", "no-new-privileges"),
)
"""What ``compose.yaml`` says of each of our services, in podman's words."""


def skip_unless_possible() -> None:
    """Skip the test where no container can be made, and say what is missing."""
    wanted = {
        "root": os.geteuid() == 0,
        "podman": shutil.which("podman") is not None,
        "mmdebstrap": shutil.which("mmdebstrap") is not None,
        "runc or crun": any(map(shutil.which, ("runc", "crun"))),
        "overlayfs": "overlay" in Path("/proc/filesystems").read_text(),
    }
    lacking = [name for name, there in wanted.items() if not there]
    if lacking:
        pytest.skip(f"no container can be made here: no {', no '.join(lacking)}")


class Podman:
    """Images and containers below a folder; ``close`` ends and removes them all."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._storage = folder / "storage"
        runtime = next(name for name in ("runc", "crun") if shutil.which(name))
        self._command = [
            *("podman", "--root", str(self._storage), "--runroot", str(folder / "run")),
            *("--tmpdir", str(folder / "podman"), "--storage-driver", "overlay", "--runtime", runtime),
            *("--cgroup-manager", "cgroupfs", "--events-backend", "file", "--log-level", "fatal"),
        ]

    def __call__(
        self, *words: str, check: bool = True, stdin: str = "", timeout: float = 900
    ) -> subprocess.CompletedProcess[str]:
        done = subprocess.run(
            [*self._command, *words],
            input=stdin,
            capture_output=True,
            text=True,
            timeout=timeout,
            check=False,
        )
        assert not check or done.returncode == 0, f"podman {' '.join(words)}: {done.stdout}{done.stderr}"
        return done

    def make_base(self, root_file_system: Path | None = None) -> None:
        """Make the base image of a root file system (a tar file), or of Debian's packages."""
        made = root_file_system or self._folder / "base.tar"
        if root_file_system is None:
            debootstrap = ["mmdebstrap", "--quiet", "--variant=minbase", f"--include={_PACKAGES}"]
            subprocess.run([*debootstrap, "bookworm", str(made)], check=True, timeout=1800)
        self("import", "--quiet", str(made), BASE)

    def build(self, tag: str) -> None:
        """Build the wheel and then the image, with this machine's package index and certificates."""
        context = self._folder / "context"
        subprocess.run(
            [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(context / "dist")],
            cwd=SOURCE,
            check=True,
            capture_output=True,
            timeout=300,
        )
        mounts = [f"--volume={path}:{path}:ro" for path in _CERTIFICATES if Path(path).is_dir()]
        self(
            *("build", "--pull=never", "--format", "docker", "--network", "host", *_OPEN_FILES, *mounts),
            *_package_index(),
            *("-t", tag, "-f", str(DOCKERFILE), str(context)),
        )

    def size(self, tag: str) -> int:
        """Return the bytes of an image, with its base."""
        return int(self.inspect(tag, "image")["Size"])

    def inspect(self, name: str, kind: str = "container") -> dict[str, object]:
        (found,) = json.loads(self(kind, "inspect", name).stdout)
        return dict(found)

    def run(
        self, *words: str, options: tuple[str, ...] = (), check: bool = True, stdin: str = ""
    ) -> subprocess.CompletedProcess[str]:
        """Run a container as confined as those of ``compose.yaml``, to its end unless ``--detach`` is an option."""
        return self(
            *("run", "--rm", "--interactive") if "--detach" not in options else ("run",),
            *(*_OPEN_FILES, *CONFINED, *options, *words),
            check=check,
            stdin=stdin,
        )

    def close(self) -> None:
        """End and remove everything, and wait for the processes that clean up after containers."""
        self("stop", "--all", "--time", "0", check=False)
        wait_for(lambda: not _processes_of(self._folder), 60, "podman's last processes")
        self("rm", "--all", "--force", check=False)
        for mounted in sorted(_mounted_below(self._folder), reverse=True):
            subprocess.run(["umount", mounted], check=True, timeout=60)
        shutil.rmtree(self._folder)


def _processes_of(folder: Path) -> list[str]:
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):  # it has ended
            if f"{folder}/".encode() in (process / "cmdline").read_bytes():
                found.append(process.name)
    return found


def _package_index() -> list[str]:
    """Return the build argument that names the package index of this machine's pip, if it is not PyPI."""
    pip = [sys.executable, "-m", "pip", "config", "get", "global.index-url"]
    found = subprocess.run(pip, capture_output=True, text=True, timeout=60, check=False)
    return [f"--build-arg=PIP_INDEX_URL={found.stdout.strip()}"] if found.returncode == 0 else []


def _mounted_below(folder: Path) -> list[str]:
    lines = Path("/proc/self/mounts").read_text().splitlines()
    return [line.split()[1] for line in lines if line.split()[1].startswith(f"{folder}/")]
