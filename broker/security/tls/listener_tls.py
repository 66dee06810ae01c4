"""The TLS of one listener: its contexts, who its clients are, and how it changes.

A ListenerTls is immutable. New settings or a changed file make another one, which new connections
use; those that are open keep what they have. Kafka: SslFactory.
"""

from __future__ import annotations

import logging
import ssl
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path

from cryptography import x509

from odradek.broker.security.principal import ANONYMOUS, USER, Principal, RefusedClientError
from odradek.broker.security.tls import principal_mapping
from odradek.config.errors import ConfigError
from odradek.config.listener_settings import ListenerSettings, listener_keys
from odradek.config.listeners import Listener, SecurityProtocol

from .cipher_suites import TLS_1_3, parse_cipher_suites
from .contexts import make_context
from .distinguished_name import name_text, subject_of
from .principal_mapping import NoRuleError, PrincipalMapping
from .stores import read_key_store, read_trust_store, store_files

logger = logging.getLogger("odradek.tls")

EXPIRY_WARNING = timedelta(days=30)
_CLIENT_AUTH = "ssl.client.auth"
_ENGINE = "ssl.engine.factory.class"
# The values of ssl.protocol that Java accepts. Which versions are served is ssl.enabled.protocols.
_SSL_CONTEXTS = (
    "TLS",
    "TLSv1",
    "TLSv1.1",
    "TLSv1.2",
    "TLSv1.3",
    "SSL",
    "SSLv2",
    "SSLv3",
    "Default",
)

# What a listener's TLS was made of: settings as written, and the state of each file.
Source = tuple[Mapping[str, str | None], Mapping[Path, tuple[int, int, int] | None]]


def source_of(settings: ListenerSettings) -> Source:
    """The settings of TLS, and the times, sizes and inodes of the files that they name."""
    return texts_of(settings), {path: _state_of(path) for path in store_files(settings)}


def texts_of(settings: ListenerSettings) -> Mapping[str, str | None]:
    """The settings of TLS as written."""
    return {name: settings.text(name) for name in listener_keys() if name.startswith("ssl.")}


def _state_of(path: Path) -> tuple[int, int, int] | None:
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_mtime_ns, found.st_size, found.st_ino


class ListenerTls:
    """Certificates and rules, as they were when this was made."""

    def __init__(self, listener: Listener, settings: ListenerSettings) -> None:
        """Read the stores. Raises ConfigError."""
        # First, so that a file that changes while the stores are read is read again.
        self.source = source_of(settings)
        self.entries = read_key_store(settings)
        trusted = read_trust_store(settings)
        # On a SASL listener the login says who the client is. Kafka: SaslServerAuthenticator.
        self._mapping = None
        if listener.security_protocol is SecurityProtocol.SSL:
            self._mapping = PrincipalMapping(str(settings.value(principal_mapping.KEY)))
        suites = parse_cipher_suites(_texts(settings, "ssl.cipher.suites"))
        if suites.unknown:
            logger.warning(
                "ssl.cipher.suites: %s are not served", ", ".join(sorted(suites.unknown))
            )
        self._tls_1_3 = suites.tls_1_3 or frozenset(TLS_1_3)
        _check_engine_and_protocol(settings)
        client_auth = _client_auth(listener, settings)
        self.has_trust_store = trusted is not None
        self.context = make_context(settings, client_auth, suites, self.entries, trusted)
        # One context per host name, chosen by SNI; one entry needs no choice. Reversed, so that the
        # first entry with a name wins.
        self._by_name = {
            name: make_context(settings, client_auth, suites, [entry], trusted)
            for entry in (reversed(self.entries) if len(self.entries) > 1 else ())
            for name in host_names(entry.chain[0])
        }
        if self._by_name:
            self.context.sni_callback = self._choose_key

    def check(self, sock: ssl.SSLSocket) -> Principal:
        """Who the client of a complete handshake is. Raises RefusedClientError.

        ANONYMOUS on a SASL listener, where a login says who the client is.
        """
        cipher = sock.cipher()
        if sock.version() == "TLSv1.3" and cipher is not None and cipher[0] not in self._tls_1_3:
            raise RefusedClientError(f"{cipher[0]} is not in ssl.cipher.suites")
        certificate = sock.getpeercert(binary_form=True)
        if certificate is None or self._mapping is None:
            return ANONYMOUS
        try:
            return Principal(USER, self._mapping.user_name(subject_of(certificate)))
        except (ValueError, NoRuleError) as error:
            raise RefusedClientError(str(error)) from None

    def _choose_key(
        self, sock: ssl.SSLSocket | ssl.SSLObject, name: str | None, _: ssl.SSLContext
    ) -> None:
        """Serve the key whose certificate has the name that the client asks for."""
        if name is not None:
            wildcard = "*." + name.lower().partition(".")[2]
            found = self._by_name.get(name.lower()) or self._by_name.get(wildcard)
            if found is not None:
                sock.context = found

    # -- changes ----------------------------------------------------------------------------------

    def check_successor(self, new: ListenerTls, settings: ListenerSettings) -> None:
        """Raise ConfigError unless `new` may take this one's place.

        A new certificate may add alternative names, but has all of the old one. What is compared
        depends on `settings`. Kafka: SslFactory.
        """
        if new.has_trust_store and not self.has_trust_store:
            raise ConfigError("a trust store cannot be added to a listener that has none")
        keeps_subject = not settings.value("ssl.allow.dn.changes")
        keeps_names = not settings.value("ssl.allow.san.changes")
        if not keeps_subject and not keeps_names:
            return
        if len(new.entries) != len(self.entries):
            raise ConfigError(
                f"the key store had {len(self.entries)} keys, and now has {len(new.entries)}"
                " (ssl.allow.dn.changes, ssl.allow.san.changes)"
            )
        for before, after in zip(self.entries, new.entries, strict=True):
            old_name, new_name = (_subject(each.chain[0]) for each in (before, after))
            if keeps_subject and not _is_same_subject(old_name, new_name):
                raise ConfigError(
                    f"the certificate's name would change from {old_name!r} to {new_name!r}"
                    " (ssl.allow.dn.changes)"
                )
            old_names, new_names = (_alternative_names(each.chain[0]) for each in (before, after))
            if keeps_names and not new_names >= old_names:
                raise ConfigError(
                    "the certificate's alternative names would change from"
                    f" {sorted(old_names)} to {sorted(new_names)} (ssl.allow.san.changes)"
                )

    def expiry_warnings(self, now: datetime) -> list[str]:
        """A line for each certificate of the key store that expires soon, or has expired."""
        lines = []
        for certificate in (each for entry in self.entries for each in entry.chain):
            end = certificate.not_valid_after_utc
            if end - now < EXPIRY_WARNING:
                what = "expired" if end <= now else f"expires in {(end - now).days} days,"
                lines.append(f"the certificate of {_subject(certificate)} {what} on {end:%Y-%m-%d}")
        return lines

    def describe(self) -> str:
        """The first certificate, for a log line."""
        certificate = self.entries[0].chain[0]
        end = certificate.not_valid_after_utc
        return f"{_subject(certificate)}, valid until {end:%Y-%m-%d}"


def utc_of(now_ms: int) -> datetime:
    """Milliseconds since 1970 as a time."""
    return datetime.fromtimestamp(now_ms / 1000, UTC)


def host_names(certificate: x509.Certificate) -> list[str]:
    """The DNS names of a certificate, in lower case; else its common name. Raises ConfigError."""
    found = _alternative_name(certificate)
    if found is None:
        names = certificate.subject.get_attributes_for_oid(x509.NameOID.COMMON_NAME)
        return [str(each.value).lower() for each in names]
    return [name.lower() for name in found.get_values_for_type(x509.DNSName)]


def _client_auth(listener: Listener, settings: ListenerSettings) -> str:
    """The effective ssl.client.auth.

    As in Kafka, a SASL listener ignores the key without the listener's prefix (ChannelBuilders).
    """
    written = settings.written_name(_CLIENT_AUTH)
    client_auth = str(settings.value(_CLIENT_AUTH))
    if listener.security_protocol is SecurityProtocol.SASL_SSL and written == _CLIENT_AUTH:
        if client_auth != "none":
            logger.warning(
                "%s has no effect on %s: a SASL listener needs %s%s",
                _CLIENT_AUTH,
                listener.name,
                settings.prefix,
                _CLIENT_AUTH,
            )
        return "none"
    return client_auth


def _check_engine_and_protocol(settings: ListenerSettings) -> None:
    """Raise ConfigError for a Java class, and for a protocol that Java does not know."""
    if settings.value(_ENGINE) is not None:
        written = settings.written_name(_ENGINE)
        raise ConfigError(f"{written}: a Java class cannot be loaded; remove the key")
    protocol = str(settings.value("ssl.protocol"))
    if protocol not in _SSL_CONTEXTS:
        written = settings.written_name("ssl.protocol")
        raise ConfigError(f"{written}={protocol}: must be one of: {', '.join(_SSL_CONTEXTS)}")


def _texts(settings: ListenerSettings, name: str) -> tuple[str, ...]:
    value = settings.value(name)
    assert isinstance(value, tuple)
    return value


def _subject(certificate: x509.Certificate) -> str:
    return name_text(certificate.subject.public_bytes())


def _is_same_subject(name: str, other: str) -> bool:
    """Compare as Java's X500Principal does: without regard to case and repeated spaces."""
    return " ".join(name.lower().split()) == " ".join(other.lower().split())


def _alternative_names(certificate: x509.Certificate) -> frozenset[str]:
    found = _alternative_name(certificate) or ()
    return frozenset(f"{type(each).__name__}:{each.value}" for each in found)


def _alternative_name(certificate: x509.Certificate) -> x509.SubjectAlternativeName | None:
    """The extension with the certificate's other names, if it has one. Raises ConfigError."""
    try:
        return certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    except x509.ExtensionNotFound:
        return None
    except (ValueError, x509.DuplicateExtension, x509.UnsupportedGeneralNameType) as error:
        subject = _subject(certificate)
        raise ConfigError(f"the extensions of the certificate of {subject}: {error}") from None
