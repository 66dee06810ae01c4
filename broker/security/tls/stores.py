"""Reads key stores and trust stores: PEM, as file or value, PKCS 12 and JKS.

The rules for the settings, which of them exclude each other and which are needed, are Kafka's
(DefaultSslEngineFactory). As in Java, a store of type JKS may be a PKCS 12 file, and the reverse.
Messages name the setting and the file, never a password.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import NamedTuple, TypeAlias, cast

from cryptography import x509
from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric import ec, ed448, ed25519, rsa
from cryptography.hazmat.primitives.serialization import load_der_private_key, pkcs12

from odradek.broker.security.tls import pem
from odradek.config.errors import ConfigError
from odradek.config.listener_settings import ListenerSettings

from .java_key_store import MAGIC, JavaKeyStoreError, decrypt_key, read_java_key_store

PrivateKey: TypeAlias = (
    rsa.RSAPrivateKey | ec.EllipticCurvePrivateKey | ed25519.Ed25519PrivateKey
    | ed448.Ed448PrivateKey
)  # fmt: skip
PEM = "PEM"
_TYPES = ("JKS", "PKCS12", PEM)
LOCATION, TYPE, PASSWORD = "location", "type", "password"


class KeyEntry(NamedTuple):
    """A private key, and its certificate followed by those of the authorities above it."""

    key: PrivateKey
    chain: tuple[x509.Certificate, ...]


class StoreUnreadableError(ConfigError):
    """The system cannot read a store now. It may later, though neither setting nor file changes."""


class _StoreError(Exception):
    """A store cannot be read; the message does not name it."""


class _Texts:
    """The settings of one store: `ssl.keystore.` or `ssl.truststore.`."""

    def __init__(self, settings: ListenerSettings, prefix: str) -> None:
        self._settings = settings
        self._prefix = prefix

    def get(self, name: str) -> str | None:
        text = self._settings.value(self._prefix + name)
        return None if text is None else str(text)

    def written(self, name: str) -> str:
        return self._settings.written_name(self._prefix + name)

    @property
    def type(self) -> str:
        """The type in upper case. Raises ConfigError if it is unknown."""
        written = self.get(TYPE) or ""
        if written.upper() not in _TYPES:
            raise ConfigError(
                f"{self.written(TYPE)}={written}: must be one of: {', '.join(_TYPES)}"
            )
        return written.upper()

    def refuse(self, name: str, because: str) -> None:
        """Raise ConfigError if a setting is set."""
        if self.get(name) is not None:
            raise ConfigError(f"{self.written(name)}: {because}")

    def error(self, name: str, error: Exception) -> ConfigError:
        """Why the store at `location`, or the value of a setting, cannot be used."""
        path = self.get(LOCATION)
        value = f"={path}" if name == LOCATION and path is not None else ""
        if isinstance(error, OSError):
            return StoreUnreadableError(f"{self.written(name)}{value}: {error.strerror}")
        return ConfigError(f"{self.written(name)}{value}: {error}")


def store_files(settings: ListenerSettings) -> list[Path]:
    """The files of a listener's stores."""
    paths = (settings.value(f"ssl.{store}.{LOCATION}") for store in ("keystore", "truststore"))
    return [Path(str(path)) for path in paths if path]


# -- key stores -----------------------------------------------------------------------------------


def read_key_store(settings: ListenerSettings) -> list[KeyEntry]:
    """The keys of a listener, at least one. Raises ConfigError."""
    texts = _Texts(settings, "ssl.keystore.")
    key_password = cast(str | None, settings.value("ssl.key.password"))
    key_text, chain_text = texts.get("key"), texts.get("certificate.chain")
    name = LOCATION
    try:
        if key_text is not None or chain_text is not None:
            name = "key"
            _check_inline(texts, key_text, chain_text)
            entries = [_pem_entry(key_text or "", chain_text or "", key_password)]
        elif texts.get(LOCATION) is None:
            texts.refuse(PASSWORD, f"it is set, but {texts.written(LOCATION)} is not")
            raise ConfigError(
                f"{texts.written(LOCATION)} is not set: a TLS listener needs a key store"
            )
        elif texts.type == PEM:
            texts.refuse(PASSWORD, "a PEM file has no password of its own; use ssl.key.password")
            text = _read(texts).decode("utf-8", "replace")
            entries = [_pem_entry(text, text, key_password)]
        else:
            entries = _binary_entries(texts, key_password)
        for entry in entries:
            _check_entry(entry)
    except (_StoreError, JavaKeyStoreError, pem.PemError, OSError) as error:
        raise texts.error(name, error) from None
    return entries


def _check_inline(texts: _Texts, key_text: str | None, chain_text: str | None) -> None:
    if key_text is None:
        raise ConfigError(f"{texts.written('certificate.chain')} is set, but the key is not")
    if chain_text is None:
        raise ConfigError(f"{texts.written('key')} is set, but the certificate chain is not")
    if texts.type != PEM:
        raise ConfigError(f"{texts.written('key')} needs {texts.written(TYPE)}=PEM")
    texts.refuse(LOCATION, f"it excludes {texts.written('key')}")
    texts.refuse(PASSWORD, "a PEM key has no store password; use ssl.key.password")


def _read(texts: _Texts) -> bytes:
    return Path(texts.get(LOCATION) or "").read_bytes()


def _pem_entry(key_text: str, chain_text: str, password: str | None) -> KeyEntry:
    der, is_encrypted = pem.private_key_in(key_text)
    if is_encrypted and password is None:
        raise _StoreError("the private key is encrypted, and ssl.key.password is not set")
    if password is not None and not is_encrypted:
        raise _StoreError("ssl.key.password is set, but the private key is not encrypted")
    return KeyEntry(_load_key(der, password), _load_certificates(pem.certificates_in(chain_text)))


def _binary_entries(texts: _Texts, key_password: str | None) -> list[KeyEntry]:
    password = texts.get(PASSWORD)
    if password is None:
        raise ConfigError(f"{texts.written(PASSWORD)} is not set, and the key store needs it")
    assert texts.type
    data = _read(texts)
    if data.startswith(MAGIC):
        entries = [
            KeyEntry(
                _load_key(decrypt_key(each.protected_key, key_password or password), None),
                _load_certificates(each.certificates),
            )
            for each in read_java_key_store(data, password)
            if each.protected_key is not None
        ]
    else:
        entries = _pkcs12_entry(data, password)
    if not entries:
        raise _StoreError("there is no private key in the store")
    return entries


def _pkcs12_entry(data: bytes, password: str) -> list[KeyEntry]:
    """The key of a PKCS 12 store. `cryptography` reads one."""
    store = _load_pkcs12(data, password)
    if store.key is None or store.cert is None:
        return []
    others = [each.certificate for each in store.additional_certs]
    return [KeyEntry(_checked_key(store.key), _chain(store.cert.certificate, others))]


def _load_pkcs12(data: bytes, password: str | None) -> pkcs12.PKCS12KeyAndCertificates:
    if not data.startswith(b"\x30"):
        hint = "; it is PEM, which the type must say" if b"-----BEGIN" in data else ""
        raise _StoreError(f"the file is neither a PKCS 12 nor a JKS store{hint}")
    try:
        return pkcs12.load_pkcs12(data, None if password is None else password.encode())
    except (ValueError, UnsupportedAlgorithm):
        raise _StoreError("the password is wrong, or the file is no PKCS 12 store") from None


def _chain(
    certificate: x509.Certificate, others: Sequence[x509.Certificate]
) -> tuple[x509.Certificate, ...]:
    """The certificate and the issuers above it that are there."""
    _read_names([certificate, *others])
    chain = [certificate]
    while chain[-1].issuer != chain[-1].subject:
        above = [each for each in others if each.subject == chain[-1].issuer and each not in chain]
        if not above:
            break
        chain.append(above[0])
    return tuple(chain)


def _load_key(der: bytes, password: str | None) -> PrivateKey:
    try:
        key = load_der_private_key(der, None if password is None else password.encode())
    except (ValueError, TypeError, UnsupportedAlgorithm):
        wrong = "" if password is None else ", or its password is wrong"
        raise _StoreError(f"the private key cannot be decoded{wrong}") from None
    return _checked_key(key)


def _checked_key(key: object) -> PrivateKey:
    if not isinstance(key, PrivateKey):
        raise _StoreError("the private key is of a kind that TLS does not use")
    return key


def _load_certificates(encoded: Iterable[bytes]) -> tuple[x509.Certificate, ...]:
    try:
        certificates = tuple(map(x509.load_der_x509_certificate, encoded))
        _read_names(certificates)
    except ValueError:
        raise _StoreError("a certificate cannot be decoded") from None
    return certificates


def _read_names(certificates: Iterable[x509.Certificate]) -> None:
    """Let certificates decode their names, which they then keep. Raises ValueError.

    keytool writes the country `Unknown` if nobody gives one. `cryptography` warns about it, as it
    has not two letters; Java does not.
    """
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Attribute's length", UserWarning)
        for certificate in certificates:
            _ = certificate.subject, certificate.issuer


def _check_entry(entry: KeyEntry) -> None:
    if not entry.chain or entry.key.public_key() != entry.chain[0].public_key():
        raise _StoreError("the private key does not belong to the first certificate")


# -- trust stores ---------------------------------------------------------------------------------


def read_trust_store(settings: ListenerSettings) -> list[x509.Certificate] | None:
    """The certificates that a listener trusts; None without a trust store. Raises ConfigError."""
    texts = _Texts(settings, "ssl.truststore.")
    inline = texts.get("certificates")
    name = LOCATION if inline is None else "certificates"
    try:
        if inline is not None:
            if texts.type != PEM:
                raise ConfigError(f"{texts.written(name)} needs {texts.written(TYPE)}=PEM")
            texts.refuse(LOCATION, f"it excludes {texts.written(name)}")
            texts.refuse(PASSWORD, "PEM certificates have no password")
            return list(_load_certificates(pem.certificates_in(inline)))
        if texts.get(LOCATION) is None:
            texts.refuse(PASSWORD, f"it is set, but {texts.written(LOCATION)} is not")
            return None
        if texts.type == PEM:
            texts.refuse(PASSWORD, "PEM certificates have no password")
            text = _read(texts).decode("utf-8", "replace")
            return list(_load_certificates(pem.certificates_in(text)))
        return _binary_certificates(_read(texts), texts.get(PASSWORD))
    except (_StoreError, JavaKeyStoreError, pem.PemError, OSError) as error:
        raise texts.error(name, error) from None


def _binary_certificates(data: bytes, password: str | None) -> list[x509.Certificate]:
    if data.startswith(MAGIC):
        encoded = [each.certificates[0] for each in read_java_key_store(data, password)]
        found = list(_load_certificates(encoded))
    else:
        store = _load_pkcs12(data, password)
        certificates = [store.cert, *store.additional_certs]
        found = [each.certificate for each in certificates if each is not None]
    if not found:
        raise _StoreError("there is no certificate in the store")
    return found
