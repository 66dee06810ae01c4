"""Certificates for tests: an authority, and what it signs; as PEM, PKCS 12 and settings."""

import datetime
import ipaddress
import ssl
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    NoEncryption,
    PrivateFormat,
    pkcs12,
)
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

PASSWORD = "change it"
VALID_DAYS = 90

Key = ec.EllipticCurvePrivateKey | rsa.RSAPrivateKey


class Signed(NamedTuple):
    """A private key, and its certificate."""

    key: Key
    certificate: x509.Certificate

    def key_pem(self, password: str | None = None) -> str:
        """The key as PKCS 8."""
        protection = BestAvailableEncryption(password.encode()) if password else NoEncryption()
        return self.key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, protection).decode()

    @property
    def pem(self) -> str:
        """The certificate."""
        return self.certificate.public_bytes(Encoding.PEM).decode()


class Authority:
    """A certificate authority, whose certificates are valid for 90 days from now."""

    def __init__(self, name: str = "test authority", key: Key | None = None) -> None:
        self._now = datetime.datetime.now(datetime.UTC)
        key = key or new_key()
        subject = named(name)
        builder = self._builder(subject, key, VALID_DAYS).issuer_name(subject)
        builder = builder.add_extension(x509.BasicConstraints(ca=True, path_length=None), True)
        self.root = Signed(key, builder.sign(key, hashes.SHA256()))

    @property
    def pem(self) -> str:
        """The authority's own certificate."""
        return self.root.pem

    def sign(
        self,
        subject: str | x509.Name,
        *,
        names: tuple[str, ...] = ("localhost",),
        days: int = VALID_DAYS,
        key: Key | None = None,
    ) -> Signed:
        """A certificate for servers and clients; `days` until it ends, negative: it has expired."""
        key = key or new_key()
        subject = named(subject) if isinstance(subject, str) else subject
        builder = self._builder(subject, key, days).issuer_name(self.root.certificate.subject)
        alternatives: list[x509.GeneralName] = [x509.DNSName(name) for name in names]
        alternatives.append(x509.IPAddress(ipaddress.ip_address("127.0.0.1")))
        usages = [ExtendedKeyUsageOID.SERVER_AUTH, ExtendedKeyUsageOID.CLIENT_AUTH]
        builder = (
            builder.add_extension(x509.BasicConstraints(ca=False, path_length=None), True)
            .add_extension(x509.SubjectAlternativeName(alternatives), False)
            .add_extension(x509.ExtendedKeyUsage(usages), False)
        )
        return Signed(key, builder.sign(self.root.key, hashes.SHA256()))

    def _builder(self, subject: x509.Name, key: Key, days: int) -> x509.CertificateBuilder:
        return (
            x509.CertificateBuilder()
            .subject_name(subject)
            .public_key(key.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(self._now - datetime.timedelta(days=2 * VALID_DAYS))
            .not_valid_after(self._now + datetime.timedelta(days=days, minutes=1))
        )


def new_key() -> ec.EllipticCurvePrivateKey:
    """A key that is made quickly."""
    return ec.generate_private_key(ec.SECP256R1())


def named(common_name: str) -> x509.Name:
    """A name with nothing but a common name."""
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, common_name)])


class TlsFiles:
    """The files of one authority, a broker and a client, in a directory."""

    def __init__(self, directory: Path, authority: Authority | None = None) -> None:
        self.directory = directory
        self.authority = authority or Authority()
        self.server = self.authority.sign("localhost")
        self.client = self.authority.sign("client")
        directory.mkdir(parents=True, exist_ok=True)
        self.ca = self._write("ca.pem", self.authority.pem)
        self.server_pem = self._write("server.pem", self.server.key_pem() + self.server.pem)
        self.client_pem = self._write("client.pem", self.client.key_pem() + self.client.pem)

    def broker_settings(self, client_auth: str = "none") -> dict[str, str]:
        """Settings of a broker that serves TLS by PEM files."""
        return {
            "ssl.keystore.type": "PEM",
            "ssl.keystore.location": str(self.server_pem),
            "ssl.truststore.type": "PEM",
            "ssl.truststore.location": str(self.ca),
            "ssl.client.auth": client_auth,
        }

    def write_pem(self, name: str, signed: Signed) -> Path:
        """A file with a key and its certificate."""
        return self._write(name, signed.key_pem() + signed.pem)

    def _write(self, name: str, text: str) -> Path:
        path = self.directory / name
        path.write_text(text)
        return path


def verify_as_python_3_13(monkeypatch: pytest.MonkeyPatch) -> None:
    """Verify certificates as strictly as Python 3.13 does by default, also in this version."""
    default = ssl.create_default_context

    def strict(*args: Any, **kwargs: Any) -> ssl.SSLContext:
        context = default(*args, **kwargs)
        context.verify_flags |= ssl.VERIFY_X509_STRICT
        return context

    monkeypatch.setattr(ssl, "create_default_context", strict)


def shake_hands(client: ssl.SSLContext, server_pem: Path) -> None:
    """Connect a client to a server of this key and certificate. Raises ssl.SSLError."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(server_pem)
    to_client, to_server = ssl.MemoryBIO(), ssl.MemoryBIO()
    ends = (
        client.wrap_bio(to_client, to_server, server_hostname="localhost"),
        context.wrap_bio(to_server, to_client, server_side=True),
    )
    for _ in range(3):
        for end in ends:
            with suppress(ssl.SSLWantReadError):
                end.do_handshake()
    assert ends[0].cipher() is not None


def pkcs12_of(signed: Signed, authority: Authority, password: str = PASSWORD) -> bytes:
    """A key store with the key, its certificate and the authority's."""
    return pkcs12.serialize_key_and_certificates(
        b"server",
        signed.key,
        signed.certificate,
        [authority.root.certificate],
        BestAvailableEncryption(password.encode()),
    )
