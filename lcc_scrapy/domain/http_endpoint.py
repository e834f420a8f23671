"""Where an HTTP server listens: ``127.0.0.1:8080``, ``[::]:8443`` or ``unix:/run/lcc/web.sock``."""

import re
from dataclasses import dataclass
from ipaddress import ip_address

_UNIX = "unix:"
_TCP = re.compile(r"(?:\[(?P<six>[0-9a-fA-F:.]+)\]|(?P<four>[0-9.]+)|localhost):(?P<port>\d{1,5})")
_PORT_MAX = 65535


@dataclass(frozen=True, slots=True)
class Endpoint:
    """A Unix socket at ``path``, or a TCP port; port 0 is one that is free."""

    host: str = ""
    port: int = 0
    path: str = ""

    @classmethod
    def parse(cls, text: str) -> "Endpoint | None":
        """Read an endpoint; None = nowhere. Raises ``ValueError``."""
        text = text.strip()
        if not text:
            return None
        if text.startswith(_UNIX) and text != _UNIX:
            return cls(path=text.removeprefix(_UNIX))
        match = _TCP.fullmatch(text)
        if match is None or int(match["port"]) > _PORT_MAX:
            raise ValueError(
                f"{text!r}, expected for example 127.0.0.1:8080, [::]:8443 or unix:/run/lcc/web.sock"
            )
        host = match["six"] or match["four"] or "127.0.0.1"
        return cls(str(ip_address(host)), int(match["port"]))

    def __str__(self) -> str:
        if self.path:
            return f"{_UNIX}{self.path}"
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"

    @property
    def is_private(self) -> bool:
        """Tell whether only this machine can reach it."""
        return bool(self.path) or ip_address(self.host).is_loopback
