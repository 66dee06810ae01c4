"""Makes the ssl.SSLContext of a listener from its settings, keys and trusted certificates."""

from __future__ import annotations

import logging
import os
import ssl
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

from odradek.config.errors import ConfigError, invalid_value
from odradek.config.listener_settings import ListenerSettings

from .cipher_suites import CipherSuites
from .stores import KeyEntry, StoreUnreadableError

logger = logging.getLogger("odradek.tls")

_PROTOCOLS = "ssl.enabled.protocols"
_VERSIONS = {"TLSv1.2": ssl.TLSVersion.TLSv1_2, "TLSv1.3": ssl.TLSVersion.TLSv1_3}
# Java 17 knows them, but does not speak them either.
_OUTDATED = frozenset({"SSLv2Hello", "SSLv3", "TLSv1", "TLSv1.1"})
_CLIENT_AUTH = {
    "none": ssl.CERT_NONE,
    "requested": ssl.CERT_OPTIONAL,
    "required": ssl.CERT_REQUIRED,
}


def enabled_versions(settings: ListenerSettings, suites: CipherSuites) -> list[ssl.TLSVersion]:
    """The versions of TLS to be served, the lowest first. Raises ConfigError."""
    names = settings.value(_PROTOCOLS)
    assert isinstance(names, tuple)
    names = names or tuple(_VERSIONS)
    written = settings.written_name(_PROTOCOLS)
    for name in names:
        if name not in _VERSIONS and name not in _OUTDATED:
            raise invalid_value(written, name, f"must be any of: {', '.join(_VERSIONS)}")
    outdated = [name for name in names if name in _OUTDATED]
    versions = [version for name, version in _VERSIONS.items() if name in names]
    # A version without a cipher suite cannot be negotiated.
    if suites.tls_1_2 and not suites.tls_1_3:
        versions = [each for each in versions if each is not ssl.TLSVersion.TLSv1_3]
    if suites.tls_1_3 and not suites.tls_1_2:
        versions = [each for each in versions if each is not ssl.TLSVersion.TLSv1_2]
    if not versions:
        raise ConfigError(f"{written}={','.join(names)}: no version of TLS is left to be served")
    if outdated:
        logger.warning("%s: %s is not served, it is insecure", written, ", ".join(outdated))
    return versions


def make_context(
    settings: ListenerSettings,
    client_auth: str,
    suites: CipherSuites,
    entries: Sequence[KeyEntry],
    trusted: Sequence[x509.Certificate] | None,
) -> ssl.SSLContext:
    """A context that serves with the first key of each kind in `entries`. Raises ConfigError."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    versions = enabled_versions(settings, suites)
    context.minimum_version, context.maximum_version = versions[0], versions[-1]
    context.options |= ssl.OP_NO_RENEGOTIATION  # as in Kafka
    try:
        if suites.tls_1_2:
            context.set_ciphers(":".join(suites.tls_1_2))
        kinds = set()
        for entry in entries:
            if type(entry.key) not in kinds:
                kinds.add(type(entry.key))
                _load(context, entry)
        context.verify_mode = _CLIENT_AUTH[client_auth]
        # As in Java, each certificate in the store is trusted, also one that is not a root.
        context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
        if client_auth != "none":
            _trust(context, trusted)
    except ssl.SSLError as error:
        # Of "No cipher can be selected." Python sets the text only.
        reason = getattr(error, "reason", None) or error.args[-1]
        raise ConfigError(
            f"OpenSSL refuses the TLS settings of {settings.prefix}: {reason}"
        ) from None
    except OSError as error:  # there are too many open files
        raise StoreUnreadableError(f"the key of {settings.prefix}: {error.strerror}") from None
    return context


def _trust(context: ssl.SSLContext, trusted: Sequence[x509.Certificate] | None) -> None:
    if trusted is None:  # as in Java
        logger.warning("without a trust store, the public authorities of this system are trusted")
        context.load_default_certs(ssl.Purpose.CLIENT_AUTH)
        return
    context.load_verify_locations(
        cadata=b"".join(each.public_bytes(Encoding.DER) for each in trusted)
    )


def _load(context: ssl.SSLContext, entry: KeyEntry) -> None:
    key = entry.key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    certificates = (each.public_bytes(Encoding.PEM) for each in entry.chain)
    with _as_file(b"".join([key, *certificates])) as path:
        context.load_cert_chain(path)


@contextmanager
def _as_file(data: bytes) -> Iterator[Path]:
    """A file with a secret that exists only in memory: OpenSSL is given keys as files.

    A system without such files gets one that only this user can read, for a moment.
    """
    if not hasattr(os, "memfd_create") or not Path("/proc/self/fd").exists():
        with tempfile.NamedTemporaryFile() as file:
            file.write(data)
            file.flush()
            yield Path(file.name)
        return
    descriptor = os.memfd_create("tls-key")
    try:
        os.write(descriptor, data)
        yield Path(f"/proc/self/fd/{descriptor}")
    finally:
        os.close(descriptor)
