"""TLS in front of a server: which files, which parameters, and how a certificate is renewed while it listens.

Two kinds of Twisted's endpoint strings are served here rather than by Twisted itself, so that parameters are
set in one place, a file may hold the whole chain, and certificates can be read anew:

* ``ssl:PORT:privateKey=FILE:certKey=FILE[:extraCertChain=FILE][:interface=ADDRESS][:backlog=N]``
* ``tls:PATH:port=PORT[:interface=ADDRESS][:backlog=N]``, where PATH is a file with key and certificates, or a
  folder of ``*.pem`` files with one key among them.
"""

import re
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives.serialization import load_pem_private_key
from cryptography.x509 import Certificate, load_pem_x509_certificates
from OpenSSL import SSL
from twisted.internet.endpoints import TCP4ServerEndpoint, TCP6ServerEndpoint
from twisted.internet.interfaces import (
    IAddress,
    IOpenSSLServerConnectionCreator,
    IProtocolFactory,
    IStreamServerEndpoint,
)
from twisted.protocols.tls import TLSMemoryBIOFactory, TLSMemoryBIOProtocol
from zope.interface import implementer

CIPHERS: Final = b"ECDHE+AESGCM:ECDHE+CHACHA20"
"""For TLS 1.2: forward secrecy and authenticated encryption only; TLS 1.3 has nothing else."""

_OPTIONS = (
    SSL.OP_NO_COMPRESSION | SSL.OP_NO_RENEGOTIATION | SSL.OP_NO_TICKET | SSL.OP_CIPHER_SERVER_PREFERENCE
)
_BACKLOG = 50
_CERTIFICATE, _KEY = b"-----BEGIN CERTIFICATE-----", b"PRIVATE KEY-----"


class TlsError(ValueError):
    """Certificates that cannot be used; the text says which file and why."""


@implementer(IOpenSSLServerConnectionCreator)
class Certificates:
    """What new connections are offered. Raises ``TlsError`` at once when it cannot be loaded."""

    def __init__(self, load: Callable[[], SSL.Context]) -> None:
        self._load = load
        self._context = load()

    def read(self) -> Callable[[], None]:
        """Read the files again (blocking); calling the result puts them into use. Raises ``TlsError``."""
        context = self._load()

        def use() -> None:
            self._context = context

        return use

    def expires(self) -> float:
        """Return until when the server's own certificate is valid, as epoch seconds."""
        own = SSL.Connection(self._context, None).get_certificate(as_cryptography=True)
        assert own is not None  # it was loaded
        return own.not_valid_after_utc.timestamp()

    def serverConnectionForTLS(self, _protocol: TLSMemoryBIOProtocol) -> SSL.Connection:  # noqa: N802 - Twisted's name
        """Begin the TLS of a connection, with the certificate of now."""
        return SSL.Connection(self._context, None)


@implementer(IStreamServerEndpoint)
class TlsEndpoint:
    """An endpoint that speaks TLS with the ``certificates`` over another one."""

    def __init__(self, reactor: Any, below: IStreamServerEndpoint, certificates: Certificates) -> None:
        self._reactor = reactor
        self._below = below
        self.certificates = certificates

    def listen(self, factory: IProtocolFactory) -> Any:
        """Listen; the result is a Deferred of the port."""
        return self._below.listen(self.around(factory))

    def around(self, factory: IProtocolFactory) -> IProtocolFactory:
        """Return what takes TLS connections for a factory."""
        return _TlsFactory(self.certificates, False, factory, clock=self._reactor)


class _TlsFactory(TLSMemoryBIOFactory):
    """Cuts a connection that the factory behind it does not want; Twisted's own would fail."""

    def buildProtocol(self, addr: IAddress | None) -> Any:  # noqa: N802 - Twisted's name
        wrapped = self.wrappedFactory.buildProtocol(addr)
        return None if wrapped is None else self.protocol(self, wrapped)


def tls_endpoint(reactor: Any, text: str) -> TlsEndpoint | None:
    """Return the endpoint of an ``ssl:`` or ``tls:`` string, None for any other kind.

    Raises ValueError (``TlsError`` for its files) or TypeError for a string that makes no sense.
    """
    kind, *parts = _parts(text)
    if kind not in _KINDS:
        return None
    plain = [part for part in parts if "=" not in part]
    named = dict(part.split("=", 1) for part in parts if "=" in part)
    return _KINDS[kind](reactor, *map(_unquoted, plain), **{k: _unquoted(v) for k, v in named.items()})


def address_of(text: str) -> tuple[str, int] | None:
    """Return the interface (empty = all) and the port of an endpoint string, None where it has none."""
    kind, *parts = _parts(text)
    named = dict(part.split("=", 1) for part in parts if "=" in part)
    port = named.get("port", "" if kind == "tls" else next((one for one in parts if "=" not in one), ""))
    return (_unquoted(named.get("interface", "")), int(port)) if port.isdigit() else None


def _parts(text: str) -> list[str]:
    """Cut at colons that no backslash stands before, as Twisted does."""
    return re.findall(r"((?:[^:\\]|\\.)*):", text + ":")


def _unquoted(text: str) -> str:
    return re.sub(r"\\(.)", r"\1", text, flags=re.DOTALL)


def _ssl(
    reactor: Any,
    port: str,
    *,
    privateKey: str,  # noqa: N803 - Twisted's names, here and below
    certKey: str = "",  # noqa: N803
    extraCertChain: str = "",  # noqa: N803
    interface: str = "",
    backlog: str = str(_BACKLOG),
) -> TlsEndpoint:
    def load() -> SSL.Context:
        more = [Path(extraCertChain)] if extraCertChain else []
        return _context(Path(privateKey), Path(certKey or privateKey), *more)

    return TlsEndpoint(reactor, _tcp(reactor, port, interface, backlog), Certificates(load))


def _tls(
    reactor: Any, path: str, *, port: str, interface: str = "::", backlog: str = str(_BACKLOG)
) -> TlsEndpoint:
    def load() -> SSL.Context:
        return _context(*_key_and_chain(Path(path)))

    return TlsEndpoint(reactor, _tcp(reactor, port, interface, backlog), Certificates(load))


_KINDS: dict[str, Callable[..., TlsEndpoint]] = {"ssl": _ssl, "tls": _tls}


def _tcp(reactor: Any, port: str, interface: str, backlog: str) -> IStreamServerEndpoint:
    kind = TCP6ServerEndpoint if ":" in interface else TCP4ServerEndpoint
    return kind(reactor, int(port), int(backlog), interface)


def _key_and_chain(path: Path) -> tuple[Path, Path]:
    """Return the file with the key and the one with its certificate, the one with the longest chain."""
    files = sorted(path.glob("*.pem")) if path.is_dir() else [path]
    texts = {file: _bytes(file) for file in files}
    keys = [file for file, text in texts.items() if _KEY in text]
    if len(keys) != 1:
        raise TlsError(f"{path}: {len(keys)} private keys; expected one, in a *.pem file")
    for chain in sorted(files, key=lambda file: texts[file].count(_CERTIFICATE), reverse=True):
        with suppress(TlsError):
            _context(keys[0], chain)
            return keys[0], chain
    raise TlsError(f"{path}: no certificate that belongs to the key in {keys[0].name}")


def _context(key: Path, certificate: Path, *more: Path) -> SSL.Context:
    context = SSL.Context(SSL.TLS_SERVER_METHOD)
    context.set_min_proto_version(SSL.TLS1_2_VERSION)
    context.set_options(_OPTIONS)
    context.set_mode(SSL.MODE_RELEASE_BUFFERS)
    context.set_session_cache_mode(SSL.SESS_CACHE_OFF)
    context.set_cipher_list(CIPHERS)
    own, *chain = [one for file in (certificate, *more) for one in _certificates(file)]
    context.use_certificate(own)
    for above in chain:
        context.add_extra_chain_cert(above)
    try:
        context.use_privatekey(_private_key(key))
        context.check_privatekey()
    except SSL.Error as error:
        raise TlsError(f"{key}: does not belong to {certificate} ({reason_of(error)})") from None
    return context


def _certificates(file: Path) -> list[Certificate]:
    text = _bytes(file)
    try:
        return load_pem_x509_certificates(text)
    except ValueError:
        raise TlsError(f"{file}: no certificates in it") from None


def _private_key(file: Path) -> Any:
    text = _bytes(file)
    try:
        return load_pem_private_key(text, None)
    except TypeError:
        raise TlsError(f"{file}: the key needs a password; give one that does not") from None
    except (ValueError, UnsupportedAlgorithm):
        raise TlsError(f"{file}: no private key in it") from None


def _bytes(file: Path) -> bytes:
    try:
        return file.read_bytes()
    except OSError as error:
        raise TlsError(f"{file}: {error.strerror}") from None


def reason_of(error: BaseException | None) -> str:
    """Say in a few words why there is no TLS; OpenSSL's errors are lists of (library, function, reason)."""
    if isinstance(error, SSL.Error) and error.args and isinstance(error.args[0], list) and error.args[0]:
        return str(error.args[0][-1][2])
    return str(error) or type(error).__name__
