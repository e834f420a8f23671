"""Certificates of every kind, made on the spot: good ones, chains, expired ones."""

import datetime as dt
import ipaddress
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    NoEncryption,
    PrivateFormat,
)
from cryptography.x509.oid import NameOID

NOW = dt.datetime.now(dt.UTC)
DAY = dt.timedelta(days=1)


@dataclass
class Certified:
    """A key with its certificate, and those above it but for the root."""

    key: ec.EllipticCurvePrivateKey
    certificate: x509.Certificate
    chain: tuple[x509.Certificate, ...] = ()

    @property
    def pem(self) -> bytes:
        return self.certificate.public_bytes(Encoding.PEM)

    @property
    def fullchain(self) -> bytes:
        return b"".join(one.public_bytes(Encoding.PEM) for one in (self.certificate, *self.chain))

    def key_pem(self, password: bytes = b"") -> bytes:
        how = BestAvailableEncryption(password) if password else NoEncryption()
        return self.key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, how)

    def write(self, folder: Path) -> Path:
        """Write ``key.pem`` and ``cert.pem`` (with its chain), each in one step, as certbot's hooks do."""
        folder.mkdir(exist_ok=True)
        for name, data in (("key.pem", self.key_pem()), ("cert.pem", self.fullchain)):
            (folder / f"{name}.new").write_bytes(data)
            (folder / f"{name}.new").replace(folder / name)
        return folder


_SIGNS = x509.KeyUsage(
    digital_signature=True, content_commitment=False, key_encipherment=False, data_encipherment=False,
    key_agreement=False, key_cert_sign=True, crl_sign=True, encipher_only=False, decipher_only=False,
)  # fmt: skip


class Authority:
    """A certificate authority; one ``below`` another is an intermediate one."""

    def __init__(self, name: str = "Test CA", above: "Authority | None" = None) -> None:
        self._above = above
        self._name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
        self._key = ec.generate_private_key(ec.SECP256R1())

    @cached_property
    def certificate(self) -> x509.Certificate:
        builder = self._builder(self._name, self._key, NOW - DAY, NOW + 10 * DAY)
        builder = builder.add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        builder = builder.add_extension(_SIGNS, critical=True)
        return (self._above or self)._sign(builder)

    @property
    def pem(self) -> bytes:
        return self.certificate.public_bytes(Encoding.PEM)

    def issue(self, *names: str, begins: dt.datetime = NOW - DAY, ends: dt.datetime = NOW + DAY) -> Certified:
        key = ec.generate_private_key(ec.SECP256R1())
        subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, names[0])])
        builder = self._builder(subject, key, begins, ends)
        builder = builder.add_extension(
            x509.SubjectAlternativeName([_general(name) for name in names]), critical=False
        )
        return Certified(key, self._sign(builder), () if self._above is None else (self.certificate,))

    def _sign(self, builder: x509.CertificateBuilder) -> x509.Certificate:
        """Sign with all that CPython asks for from 3.13 on (``ssl.VERIFY_X509_STRICT``)."""
        mine = x509.AuthorityKeyIdentifier.from_issuer_public_key(self._key.public_key())
        return (
            builder.add_extension(mine, critical=False)
            .issuer_name(self._name)
            .sign(self._key, hashes.SHA256())
        )

    def _builder(self, subject, key, begins, ends) -> x509.CertificateBuilder:
        return (
            x509.CertificateBuilder()
            .subject_name(subject)
            .public_key(key.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(begins)
            .not_valid_after(ends)
            .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
        )


def _general(name: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(name))
    except ValueError:
        return x509.DNSName(name)
