"""Reads Java's own key stores (JKS), which are neither PEM nor PKCS 12.

    magic FEEDFEED, version 1 or 2, number of entries                      4 bytes each
    entry:  tag 1 (key) or 2 (certificate), alias, time (8 bytes), then
            key:          length and bytes of the protected key, number of certificates, these
            certificate:  type (only version 2), length and bytes of the certificate
    SHA-1 of the password, "Mighty Aphrodite", and all bytes before it     20 bytes

Texts have a length of two bytes before them. A private key is protected by Sun's own algorithm: the
key stream is SHA-1 of password and salt, then SHA-1 of password and the digest before it. Passwords
are UTF-16.

OpenJDK: sun.security.provider.JavaKeyStore, KeyProtector.
"""

import hashlib
import struct
from typing import NamedTuple

from .der import OCTET_STRING, OID, element, oid_text

MAGIC = b"\xfe\xed\xfe\xed"
_VERSIONS = (1, 2)
_KEY, _CERTIFICATE = 1, 2
_WHITENER = b"Mighty Aphrodite"
_SUN_KEY_PROTECTOR = "1.3.6.1.4.1.42.2.17.1.1"
_DIGEST_BYTES = 20


class JavaKeyStoreError(Exception):
    """The file is not a Java key store, is damaged, or the password is wrong."""


class JavaEntry(NamedTuple):
    """An entry: a protected private key or None, and its chain or the one certificate, as DER."""

    alias: str
    protected_key: bytes | None
    certificates: list[bytes]


def read_java_key_store(data: bytes, password: str | None) -> list[JavaEntry]:
    """Read all entries. Raises JavaKeyStoreError.

    Without a password the store's digest is not checked.
    """
    if password is not None:
        _check_digest(data, password)
    try:
        return _read_entries(data)
    except (struct.error, UnicodeDecodeError, IndexError):
        raise JavaKeyStoreError("the Java key store is damaged") from None


def decrypt_key(protected: bytes, password: str) -> bytes:
    """Return a private key as PKCS 8. Raises JavaKeyStoreError."""
    try:
        algorithm, encrypted = element(protected, 0, 0), element(protected, 1)
        if algorithm.tag != OID or encrypted.tag != OCTET_STRING:
            raise ValueError
        is_known = oid_text(algorithm.content) == _SUN_KEY_PROTECTOR
    except ValueError:
        raise JavaKeyStoreError("the private key is damaged") from None
    if not is_known:
        raise JavaKeyStoreError("the private key is protected by an unknown algorithm")
    secret = password.encode("utf-16-be")
    digest = encrypted.content[:_DIGEST_BYTES]
    body = encrypted.content[_DIGEST_BYTES:-_DIGEST_BYTES]
    stream = bytearray()
    while len(stream) < len(body):
        digest = hashlib.sha1(secret + digest).digest()
        stream += digest
    key = bytes(a ^ b for a, b in zip(body, stream, strict=False))
    if hashlib.sha1(secret + key).digest() != encrypted.content[-_DIGEST_BYTES:]:
        raise JavaKeyStoreError("the password of the private key is wrong")
    return key


def _check_digest(data: bytes, password: str) -> None:
    digest = hashlib.sha1(password.encode("utf-16-be") + _WHITENER + data[:-_DIGEST_BYTES])
    if digest.digest() != data[-_DIGEST_BYTES:]:
        raise JavaKeyStoreError("the password is wrong, or the file is damaged")


def _read_entries(data: bytes) -> list[JavaEntry]:
    reader = _Reader(data)
    if reader.bytes(len(MAGIC)) != MAGIC:
        raise JavaKeyStoreError("it is no Java key store")
    version = reader.number()
    if version not in _VERSIONS:
        raise JavaKeyStoreError(f"version {version} of Java key stores is unknown")
    return [_read_entry(reader, version) for _ in range(reader.number())]


def _read_entry(reader: "_Reader", version: int) -> JavaEntry:
    tag, alias, _ = reader.number(), reader.text(), reader.bytes(8)
    if tag not in (_KEY, _CERTIFICATE):
        raise JavaKeyStoreError(f"the entry {alias} has the unknown kind {tag}")
    key, certificates = None, 1
    if tag == _KEY:
        key = reader.bytes(reader.number())
        certificates = reader.number()
    return JavaEntry(alias, key, [_read_certificate(reader, version) for _ in range(certificates)])


def _read_certificate(reader: "_Reader", version: int) -> bytes:
    if version > _VERSIONS[0]:
        reader.text()  # "X.509"
    return reader.bytes(reader.number())


class _Reader:
    """Reads big-endian values one after the other. Raises struct.error at the end of the data."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._position = 0

    def bytes(self, size: int) -> bytes:
        end = self._position + size
        if end > len(self._data):
            raise struct.error
        found = self._data[self._position : end]
        self._position = end
        return found

    def number(self) -> int:
        return int.from_bytes(self.bytes(4))

    def text(self) -> str:
        return self.bytes(int.from_bytes(self.bytes(2))).decode()
