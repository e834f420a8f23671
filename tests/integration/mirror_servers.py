"""Real servers of one tree: four of FTP, rsync, and three web servers. Each is bound to 127.0.0.1 and ended by its pid.

Debian's FTP servers conflict with each other, so that packages are unpacked beside each other by ``make corpora``.
"""

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.harness import CORPORA, answers, missing, wait_for
from tests.ports import free_port

FTP = ("vsftpd", "proftpd", "pure-ftpd", "pyftpdlib")
WEB = ("apache", "apache-plain", "apache-table", "nginx", "nginx-json", "lighttpd")
ALL = (*FTP, "rsync", *WEB)


@dataclass
class Served:
    name: str
    port: int
    url: str
    log: Path

    def said(self) -> str:
        return self.log.read_text(errors="replace") if self.log.exists() else ""


def unpacked(package: str, path: str) -> str:
    program = CORPORA / package / path
    if not program.exists():
        missing(package, "make corpora")
    return str(program)


def _with_user_ftp(tree: Path, folder: Path) -> dict[str, str]:
    """Give a server the user ``ftp``, whose home is the tree, without making one on this machine."""
    (folder / "passwd").write_text(f"{Path('/etc/passwd').read_text()}ftp:x:65534:65534::{tree}:/bin/false\n")
    (library,) = CORPORA.glob("libnss-wrapper/usr/lib/*/libnss_wrapper.so") or [
        unpacked("libnss-wrapper", "")
    ]
    wrapped = {"NSS_WRAPPER_PASSWD": str(folder / "passwd"), "NSS_WRAPPER_GROUP": "/etc/group"}
    return {"LD_PRELOAD": str(library), **wrapped}


def _vsftpd(tree: Path, folder: Path, port: int) -> tuple[list[str], dict[str, str]]:
    (folder / "empty").mkdir()
    (folder / "vsftpd.conf").write_text(
        f"listen=YES\nlisten_address=127.0.0.1\nlisten_port={port}\nbackground=NO\nanonymous_enable=YES\n"
        f"local_enable=NO\nanon_root={tree}\nls_recurse_enable=YES\nftp_username=ftp\nnopriv_user=nobody\n"
        f"secure_chroot_dir={folder}/empty\nseccomp_sandbox=NO\nisolate=NO\nisolate_network=NO\n"
        f"xferlog_enable=YES\nlog_ftp_protocol=YES\nxferlog_std_format=NO\nvsftpd_log_file={folder}/log\n"
        "anon_world_readable_only=NO\nuse_localtime=NO\n"
    )
    return [unpacked("vsftpd", "usr/sbin/vsftpd"), str(folder / "vsftpd.conf")], _with_user_ftp(tree, folder)


def _proftpd(tree: Path, folder: Path, port: int) -> tuple[list[str], dict[str, str]]:
    (folder / "proftpd.conf").write_text(
        f"ServerType standalone\nDefaultAddress 127.0.0.1\nPort {port}\nUseIPv6 off\nUser nobody\nGroup nogroup\n"
        f"PidFile {folder}/pid\nScoreboardFile {folder}/board\nDelayTable none\nSystemLog {folder}/system\n"
        "TransferLog none\nWtmpLog off\nUseReverseDNS off\nAuthOrder mod_auth_unix.c\n"
        f'LogFormat all "%r %s"\nExtendedLog {folder}/log ALL all\n'
        f"<Anonymous {tree}>\nUser nobody\nGroup nogroup\nUserAlias anonymous nobody\nRequireValidShell off\n"
        "</Anonymous>\n"
    )
    program = unpacked("proftpd-core", "usr/sbin/proftpd")
    return [program, "-n", "-q", "-c", str(folder / "proftpd.conf")], {}


def _pure_ftpd(tree: Path, folder: Path, port: int) -> tuple[list[str], dict[str, str]]:
    program = unpacked("pure-ftpd", "usr/sbin/pure-ftpd")
    words = [program, "-S", f"127.0.0.1,{port}", "-e", "-H", "-L", "20000:50", "-O", f"clf:{folder}/log"]
    return [*words, "-g", str(folder / "pid")], _with_user_ftp(tree, folder)


def _pyftpdlib(tree: Path, folder: Path, port: int) -> tuple[list[str], dict[str, str]]:
    return [sys.executable, "-m", "pyftpdlib", "-i", "127.0.0.1", "-p", str(port), "-d", str(tree), "-D"], {}


def _rsync(tree: Path, folder: Path, port: int) -> tuple[list[str], dict[str, str]]:
    program = shutil.which("rsync")
    if program is None:
        missing("rsync", "apt-get install rsync")
    (folder / "rsyncd.conf").write_text(
        f"use chroot = no\naddress = 127.0.0.1\nport = {port}\nlog file = {folder}/log\n"
        f"[mirror]\npath = {tree}\nread only = yes\nuid = nobody\ngid = nogroup\n"
    )
    return [program, "--daemon", "--no-detach", f"--config={folder}/rsyncd.conf"], {}


def _apache(tree: Path, folder: Path, port: int, options: str) -> tuple[list[str], dict[str, str]]:
    modules = Path(unpacked("apache2-bin", "usr/lib/apache2/modules"))
    loaded = ("mpm_event", "authz_core", "autoindex", "dir", "mime")
    (folder / "mime.types").write_text("text/plain txt\napplication/gzip gz\n")
    (folder / "apache.conf").write_text(
        f"ServerRoot {folder}\nListen 127.0.0.1:{port}\nServerName localhost\nPidFile {folder}/pid\n"
        + "".join(f"LoadModule {name}_module {modules}/mod_{name}.so\n" for name in loaded)
        + f"TypesConfig {folder}/mime.types\nUser nobody\nGroup nogroup\nErrorLog {folder}/error\n"
        f'CustomLog {folder}/log "%r %s"\n'
        f"DocumentRoot {tree}\nDefaultRuntimeDir {folder}\n"
        f"<Directory {tree}>\nOptions Indexes FollowSymLinks\n{options}\n</Directory>\n"
    )
    return [
        unpacked("apache2-bin", "usr/sbin/apache2"),
        "-DFOREGROUND",
        "-f",
        str(folder / "apache.conf"),
    ], {}


def _nginx(tree: Path, folder: Path, port: int, options: str) -> tuple[list[str], dict[str, str]]:
    program = shutil.which("nginx") or shutil.which("nginx", path="/usr/sbin")
    if program is None:
        missing("nginx", "apt-get install nginx-light")
    temporary = "".join(
        f"{name}_temp_path {folder};" for name in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
    )
    (folder / "nginx.conf").write_text(
        f"daemon off; master_process off; pid {folder}/pid; error_log {folder}/error;\n"
        f"events {{}} http {{ access_log {folder}/log; {temporary} default_type text/plain;"
        f" server {{ listen 127.0.0.1:{port}; root {tree}; autoindex on; {options} }} }}\n"
    )
    return [program, "-c", str(folder / "nginx.conf"), "-p", str(folder)], {}


def _lighttpd(tree: Path, folder: Path, port: int) -> tuple[list[str], dict[str, str]]:
    program = unpacked("lighttpd", "usr/sbin/lighttpd")
    modules = unpacked("lighttpd", "usr/lib/lighttpd")
    (folder / "lighttpd.conf").write_text(
        f'server.document-root = "{tree}"\nserver.bind = "127.0.0.1"\nserver.port = {port}\n'
        'server.modules = ("mod_accesslog", "mod_dirlisting")\ndir-listing.activate = "enable"\n'
        f'accesslog.filename = "{folder}/log"\n'
        f'server.errorlog = "{folder}/error"\nmimetype.assign = ("" => "application/octet-stream")\n'
    )
    return [program, "-D", "-f", str(folder / "lighttpd.conf"), "-m", modules], {}


def _words(name: str, tree: Path, folder: Path, port: int) -> tuple[list[str], dict[str, str]]:
    kind, _, variant = name.partition("-")
    if kind == "apache":
        options = {
            "": "IndexOptions FancyIndexing",
            "plain": "",
            "table": "IndexOptions FancyIndexing HTMLTable",
        }
        return _apache(tree, folder, port, options[variant])
    if kind == "nginx":
        return _nginx(tree, folder, port, "autoindex_format json;" if variant else "")
    makers = {"vsftpd": _vsftpd, "proftpd": _proftpd, "pyftpdlib": _pyftpdlib, "rsync": _rsync}
    makers |= {"lighttpd": _lighttpd, "pure-ftpd": _pure_ftpd}
    return makers[name](tree, folder, port)


@contextmanager
def served(name: str, tree: Path, folder: Path) -> Iterator[Served]:
    """Serve a tree; at the end the server and all of its children are gone."""
    folder.mkdir()
    port = free_port()
    words, environment = _words(name, tree, folder, port)
    scheme = "ftp" if name in FTP else "rsync" if name == "rsync" else "http"
    with (folder / "out").open("wb") as out:
        process = subprocess.Popen(
            words, env={**os.environ, **environment}, stdout=out, stderr=out, start_new_session=True
        )
    try:
        wait_for(lambda: answers(port) or process.poll() is not None, 30, name)
        assert process.poll() is None, (folder / "out").read_text()
        made = f"{scheme}://127.0.0.1:{port}/{'mirror/' if name == 'rsync' else ''}"
        yield Served(name, port, made, folder / ("out" if name == "pyftpdlib" else "log"))
    finally:
        process.terminate()
        process.wait(60)
