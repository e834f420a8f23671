"""Three MariaDB servers of a test's own that are one Galera cluster; each may be killed and come back."""

import os
import re
import shutil
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pymysql
import pytest

from tests.harness import free_port, wait_for
from tests.mariadb_server import ENVIRONMENT, SMALL, MariaDbServer
from tests.postgresql_servers import folder_for_others

LIBRARY = Path("/usr/lib/galera/libgalera_smm.so")
NODES = 3


class Node(MariaDbServer):
    """One of the servers; a folder of its own, and ports for the others to speak to it."""

    user = "mysql"  # the rsync of root would take other rights than the server has

    def __init__(self, folder: Path) -> None:
        folder.mkdir()
        if not os.geteuid():
            shutil.chown(folder, self.user)
        super().__init__(folder)
        self.group_port, self.state_port, self.increment_port = free_port(), free_port(), free_port()

    def join(self, cluster: "list[Node]", *options: str) -> None:
        """Start it as one of the cluster, and wait until it takes part."""
        self.start(*self._options(cluster), *options)
        wait_for(self.is_ready, 120, "the node to take part")

    def _options(self, cluster: "list[Node]") -> list[str]:
        address = ",".join(f"127.0.0.1:{node.group_port}" for node in cluster)
        provider = {
            "gmcast.listen_addr": f"tcp://127.0.0.1:{self.group_port}",
            "ist.recv_addr": f"127.0.0.1:{self.increment_port}",
            "evs.keepalive_period": "PT0.5S",
            "evs.inactive_check_period": "PT0.5S",
            "evs.suspect_timeout": "PT2S",
            "evs.inactive_timeout": "PT4S",
            "gcache.size": "32M",
            "gcache.recover": "yes",
        }
        return [
            "--wsrep-on=ON",
            f"--wsrep-provider={LIBRARY}",
            f"--wsrep-cluster-address=gcomm://{address}",
            "--wsrep-node-address=127.0.0.1",
            f"--wsrep-node-name={self.port}",
            f"--wsrep-sst-receive-address=127.0.0.1:{self.state_port}",
            f"--wsrep-provider-options={';'.join(f'{name}={value}' for name, value in provider.items())}",
            "--binlog-format=ROW",
            "--innodb-autoinc-lock-mode=2",
        ]

    def is_ready(self) -> bool:
        """Tell whether it takes part in the cluster and has caught up."""
        try:
            state = self.execute("show status like 'wsrep_local_state_comment'")
        except pymysql.err.MySQLError:
            return False
        return state == [("wsrep_local_state_comment", "Synced")]

    def rejoin(self, cluster: "list[Node]") -> None:
        """Come back after a kill, from where it was."""
        command = [*self.command, "--socket=socket", f"--port={self.port}", *SMALL, *self._options(cluster)]
        recovered = subprocess.run(
            [*command, "--wsrep-recover"],
            env=ENVIRONMENT, capture_output=True, text=True, check=False, timeout=120,
        )  # fmt: skip
        found = re.findall(r"Recovered position: (\S+)", recovered.stderr)
        assert found, recovered.stderr
        self.join(cluster, f"--wsrep-start-position={found[-1]}")


@contextmanager
def galera_cluster() -> Iterator[list[Node]]:
    """Give a running cluster; it is gone at the end."""
    if not (LIBRARY.exists() and shutil.which("wsrep_sst_rsync") and shutil.which("rsync")):
        pytest.skip("Galera is missing: apt-get install galera-4 mariadb-server rsync")
    with folder_for_others() as folder:
        nodes = [Node(folder / str(number)) for number in range(NODES)]
        with _running(nodes):
            yield nodes


@contextmanager
def _running(nodes: list[Node]) -> Iterator[None]:
    try:
        nodes[0].join(nodes, "--wsrep-new-cluster")
        for node in nodes[1:]:
            node.join(nodes)
        yield
    finally:
        for node in nodes:
            node.stop(signal.SIGKILL)


def url_of(database: str, *nodes: Node) -> str:
    """Return the SQLAlchemy URL of a database on these nodes, in this order."""
    hosts = "&".join(f"host=127.0.0.1:{node.port}" for node in nodes)
    return f"mysql+pymysql://root@/{database}?{hosts}"
