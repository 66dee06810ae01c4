"""A certificate authority of one test's broker, and the broker's certificate. As PEM files."""

from __future__ import annotations

import datetime
import ipaddress
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

VALID = datetime.timedelta(days=365)
# The clock of a test's machine may be behind that of its clients, for example in a container.
EARLIER = datetime.timedelta(days=1)
_SIGNS_CERTIFICATES = x509.KeyUsage(
    digital_signature=False,
    content_commitment=False,
    key_encipherment=False,
    data_encipherment=False,
    key_agreement=False,
    key_cert_sign=True,
    crl_sign=True,
    encipher_only=False,
    decipher_only=False,
)


def write_certificates(authority_file: Path, broker_file: Path) -> None:
    """Write an authority's certificate, and a key with a certificate for localhost and 127.0.0.1.

    The authority's key is not kept. The certificates have what OpenSSL's strict verification asks
    for, which is the default of Python 3.13.
    """
    authority_key = ec.generate_private_key(ec.SECP256R1())
    authority_name = _name("odradek test authority")
    identifier = x509.SubjectKeyIdentifier.from_public_key(authority_key.public_key())
    authority = (
        _builder(authority_name, authority_name, authority_key)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(identifier, critical=False)
        .add_extension(_SIGNS_CERTIFICATES, critical=True)
        .sign(authority_key, hashes.SHA256())
    )
    broker_key = ec.generate_private_key(ec.SECP256R1())
    addresses = [
        x509.DNSName("localhost"),
        x509.IPAddress(ipaddress.ip_address("127.0.0.1")),
        x509.IPAddress(ipaddress.ip_address("::1")),
    ]
    certificate = (
        _builder(_name("localhost"), authority_name, broker_key)
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(
            x509.AuthorityKeyIdentifier.from_issuer_subject_key_identifier(identifier),
            critical=False,
        )
        .add_extension(x509.SubjectAlternativeName(addresses), critical=False)
        .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), critical=False)
        .sign(authority_key, hashes.SHA256())
    )
    authority_file.write_bytes(authority.public_bytes(Encoding.PEM))
    key = broker_key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    broker_file.touch(mode=0o600)
    broker_file.write_bytes(key + certificate.public_bytes(Encoding.PEM))


def _name(text: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, text)])


def _builder(
    subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePrivateKey
) -> x509.CertificateBuilder:
    now = datetime.datetime.now(datetime.UTC)
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - EARLIER)
        .not_valid_after(now + VALID)
    )
