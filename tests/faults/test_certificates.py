"""TLS as it is spoken by default: version 1.2 or later, certificates that verify; all else is 612."""

import datetime as dt
import ssl
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from ipaddress import ip_address
from pathlib import Path
from typing import Any

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from lcc_scrapy.http.outgoing import tls_context
from tests.faults.handling import Handling, outcome, run
from tests.integration.site import Site, page

DAY = dt.timedelta(days=1)
TLS, CUT = 612, 602
"""A server that gives up a handshake may cut the connection before it has said why."""


def named(name: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])


@dataclass
class Issuer:
    """Signs certificates for servers; ``None`` of them signs its own."""

    name: x509.Name
    key: ec.EllipticCurvePrivateKey
    certificate: x509.Certificate

    @classmethod
    def make(cls, name: str) -> "Issuer":
        key = ec.generate_private_key(ec.SECP256R1())
        return cls(
            named(name),
            key,
            _signed(named(name), named(name), key, key, -1, 1, x509.BasicConstraints(True, None)),
        )

    def issue(self, folder: Path, host: str = "127.0.0.1", begins: int = -1, ends: int = 1) -> ssl.SSLContext:
        """Return what serves TLS with a certificate for a host, valid for a span of days."""
        key = ec.generate_private_key(ec.SECP256R1())
        names = [x509.IPAddress(ip_address(host))] if host[0].isdigit() else [x509.DNSName(host)]
        made = _signed(
            named(host), self.name, key, self.key, begins, ends, x509.SubjectAlternativeName(names)
        )
        path = folder / "server.pem"
        plain = serialization.NoEncryption()
        encoding = serialization.Encoding.PEM
        path.write_bytes(
            key.private_bytes(encoding, serialization.PrivateFormat.PKCS8, plain)
            + made.public_bytes(encoding)
        )
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(path)
        return context


def _signed(  # noqa: PLR0917 - the fields of a certificate
    subject: x509.Name, issuer: x509.Name, key: Any, by: Any, begins: int, ends: int, extra: Any
) -> x509.Certificate:
    now = dt.datetime.now(dt.UTC)
    return (
        x509.CertificateBuilder(issuer, subject, key.public_key(), x509.random_serial_number())
        .not_valid_before(now + begins * DAY)
        .not_valid_after(now + ends * DAY)
        .add_extension(extra, critical=False)
        .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(by.public_key()), critical=False)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
        .sign(by, hashes.SHA256())
    )


def old(context: ssl.SSLContext) -> ssl.SSLContext:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        context.minimum_version, context.maximum_version = ssl.TLSVersion.TLSv1, ssl.TLSVersion.TLSv1_1
    context.set_ciphers("DEFAULT@SECLEVEL=0")
    return context


def only(context: ssl.SSLContext, version: ssl.TLSVersion) -> ssl.SSLContext:
    context.minimum_version = context.maximum_version = version
    return context


OLD = "TLS 1.1"
Serving = Callable[[Issuer, Issuer, Path], ssl.SSLContext]
GOOD: dict[str, Serving] = {
    "valid, TLS 1.2": lambda ours, _, folder: only(ours.issue(folder), ssl.TLSVersion.TLSv1_2),
    "valid, TLS 1.3": lambda ours, _, folder: only(ours.issue(folder), ssl.TLSVersion.TLSv1_3),
}
BAD: dict[str, Serving] = {
    "expired": lambda ours, _, folder: ours.issue(folder, begins=-3, ends=-1),
    "not valid yet": lambda ours, _, folder: ours.issue(folder, begins=1, ends=3),
    "another host's": lambda ours, _, folder: ours.issue(folder, "www.example.org"),
    "another address's": lambda ours, _, folder: ours.issue(folder, "127.0.0.2"),
    "of an unknown issuer": lambda _, theirs, folder: theirs.issue(folder),
    "signed by itself": lambda _, theirs, folder: _by_itself(folder),
    OLD: lambda ours, _, folder: old(ours.issue(folder)),
}


def _by_itself(folder: Path) -> ssl.SSLContext:
    alone = Issuer.make("127.0.0.1")
    plain, encoding = serialization.NoEncryption(), serialization.Encoding.PEM
    (folder / "alone.pem").write_bytes(
        alone.key.private_bytes(encoding, serialization.PrivateFormat.PKCS8, plain)
        + alone.certificate.public_bytes(encoding)
    )
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(folder / "alone.pem")
    return context


@pytest.fixture
def site() -> Iterator[Site]:
    with Site() as made:
        yield made


@pytest.fixture
def ours(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Issuer:
    """Return an issuer that this machine trusts, as an operator would make it."""
    made = Issuer.make("an issuer of ours")
    path = tmp_path / "ours.pem"
    path.write_bytes(made.certificate.public_bytes(serialization.Encoding.PEM))
    monkeypatch.setenv("SSL_CERT_FILE", str(path))
    return made


def fetched(site: Site, tls: ssl.SSLContext, folder: Path, **settings: Any) -> int:
    port = site.listen(tls)
    site.put("/x", page("secret"))

    async def scenario() -> int:
        handler = Handling(folder).handler(**settings)
        code = await outcome(handler, f"https://127.0.0.1:{port}/x", f"127.0.0.1:{port}")
        await handler.close()
        return code

    return int(run(scenario))


@pytest.mark.parametrize("kind", GOOD)
def test_a_certificate_that_verifies_is_taken(kind: str, ours: Issuer, site: Site, tmp_path: Path) -> None:
    assert fetched(site, GOOD[kind](ours, ours, tmp_path), tmp_path) == 200


@pytest.mark.parametrize("kind", BAD)
def test_a_certificate_that_does_not_verify_is_refused(
    kind: str, ours: Issuer, site: Site, tmp_path: Path
) -> None:
    code = fetched(site, BAD[kind](ours, Issuer.make("somebody"), tmp_path), tmp_path)
    assert code in ({TLS, CUT} if kind == OLD else {TLS})
    assert not site.visits


@pytest.mark.parametrize("kind", ["expired", "signed by itself", OLD])
def test_an_operator_who_does_without_verifying_still_has_no_old_tls(
    kind: str, ours: Issuer, site: Site, tmp_path: Path
) -> None:
    tls = BAD[kind](ours, ours, tmp_path)
    code = fetched(site, tls, tmp_path, DOWNLOAD_VERIFY_CERTIFICATES=False)
    assert code in ({TLS, CUT} if kind == OLD else {200})


def test_the_oldest_version_is_set_whatever_the_system_s_own_settings_are() -> None:
    assert tls_context().minimum_version is ssl.TLSVersion.TLSv1_2
    assert tls_context().verify_mode is ssl.CERT_REQUIRED
    assert tls_context().check_hostname
