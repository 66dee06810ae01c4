"""Settings of a listener become a context: versions, cipher suites, client certificates."""

import logging
import ssl
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.x509.oid import ExtensionOID

from odradek.broker.security.tls.cipher_suites import TLS_1_3, CipherSuites, parse_cipher_suites
from odradek.broker.security.tls.contexts import make_context
from odradek.broker.security.tls.listener_tls import ListenerTls, host_names
from odradek.config.broker_config import BrokerConfig
from odradek.config.errors import ConfigError
from odradek.config.listeners import Listener, SecurityProtocol
from tests.support.certificates import Authority, TlsFiles, named, new_key

# Suites of TLS 1.2 that Java 17 enables by default and OpenSSL has, for ECDSA and RSA keys.
JAVA_SUITES = [
    *("TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384", "TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256"),
    *("TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256", "TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384"),
    *("TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256", "TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256"),
    *("TLS_DHE_RSA_WITH_AES_256_GCM_SHA384", "TLS_DHE_RSA_WITH_AES_128_CBC_SHA256"),
    *("TLS_ECDHE_ECDSA_WITH_AES_256_CBC_SHA384", "TLS_ECDHE_RSA_WITH_AES_128_CBC_SHA256"),
    *("TLS_RSA_WITH_AES_256_GCM_SHA384", "TLS_RSA_WITH_AES_128_GCM_SHA256"),
    *("TLS_RSA_WITH_AES_256_CBC_SHA256", "TLS_RSA_WITH_AES_128_CBC_SHA"),
]


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> TlsFiles:
    return TlsFiles(Path(tmp_path_factory.mktemp("certificates")))


def make(
    files: TlsFiles, protocol: SecurityProtocol = SecurityProtocol.SSL, **texts: str
) -> ListenerTls:
    """`ssl_protocol="TLS"` is ssl.protocol=TLS; `a__` is the prefix of listener A."""
    named = {
        name.replace("a__", "listener.name.a.").replace("_", "."): text
        for name, text in texts.items()
    }
    settings = BrokerConfig.from_texts({**files.broker_settings(), **named}).of_listener("A")
    return ListenerTls(Listener("A", None, 9093, protocol), settings)


def versions(tls: ListenerTls) -> tuple[str, str]:
    return tls.context.minimum_version.name, tls.context.maximum_version.name


@pytest.mark.parametrize("name", JAVA_SUITES)
def test_openssl_knows_the_suites_of_java(name: str) -> None:
    (translated,) = parse_cipher_suites((name,)).tls_1_2
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.set_ciphers(translated)
    assert translated in [each["name"] for each in context.get_ciphers()]


def test_both_versions_are_served_unless_the_settings_say_otherwise(files: TlsFiles) -> None:
    assert versions(make(files)) == ("TLSv1_2", "TLSv1_3")
    assert versions(make(files, ssl_enabled_protocols="TLSv1.3")) == ("TLSv1_3", "TLSv1_3")
    old = make(files, ssl_enabled_protocols="TLSv1.2,TLSv1.1")
    assert versions(old) == ("TLSv1_2", "TLSv1_2")


def test_a_version_without_a_suite_is_not_served(files: TlsFiles) -> None:
    assert versions(make(files, ssl_cipher_suites=JAVA_SUITES[0])) == ("TLSv1_2", "TLSv1_2")
    assert versions(make(files, ssl_cipher_suites=TLS_1_3[0])) == ("TLSv1_3", "TLSv1_3")


def test_suites_that_are_not_served_are_named(
    files: TlsFiles, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.WARNING)
    unknown = ["TLS_ECDH_RSA_WITH_AES_128_CBC_SHA", "TLS_RSA_WITH_CHACHA20_POLY1305_SHA256"]
    make(files, ssl_cipher_suites=",".join([JAVA_SUITES[0], *unknown, TLS_1_3[0]]))
    assert f"{unknown[0]}, {unknown[1]} are not served" in caplog.text


@pytest.mark.parametrize(
    ("texts", "words"),
    [
        ({"ssl_enabled_protocols": "TLSv1.1,SSLv3"}, "no version of TLS is left"),
        ({"ssl_enabled_protocols": "TLSv1.4"}, "TLSv1.4"),
        ({"ssl_cipher_suites": "ECDHE-RSA-AES128-SHA"}, "is not the name of a cipher suite"),
        ({"ssl_cipher_suites": "TLS_NULL_WITH_NULL_NULL"}, "can be served"),
        ({"ssl_cipher_suites": "TLS_RSA_WITH_AES_128_GCM_SHA384"}, "can be served"),
        ({"ssl_cipher_suites": TLS_1_3[2]}, "cannot be left out, unless all are"),
        (
            {"ssl_cipher_suites": TLS_1_3[0], "ssl_enabled_protocols": "TLSv1.2"},
            "no version of TLS is left",
        ),
        ({"ssl_protocol": "TLSv9"}, "ssl.protocol=TLSv9"),
        ({"ssl_engine_factory_class": "org.example.X"}, "ssl.engine.factory.class"),
        ({"ssl_principal_mapping_rules": "RULE:x"}, "ssl.principal.mapping.rules"),
        ({"a__ssl_client_auth": "maybe"}, "listener.name.a.ssl.client.auth"),
    ],
)
def test_settings_that_cannot_be_served_are_refused(
    files: TlsFiles, texts: dict[str, str], words: str
) -> None:
    with pytest.raises(ConfigError) as caught:
        make(files, **texts)
    assert words in str(caught.value)
    assert "\n" not in str(caught.value)


def test_suites_that_openssl_does_not_select_are_refused(files: TlsFiles) -> None:
    settings = BrokerConfig.from_texts(files.broker_settings()).of_listener("A")
    suites = CipherSuites(frozenset(), ("TLS_NULL",), ())
    with pytest.raises(ConfigError, match="No cipher can be selected"):
        make_context(settings, "none", suites, [], None)


def test_a_sasl_listener_asks_for_certificates_only_by_its_own_setting(
    files: TlsFiles, caplog: pytest.LogCaptureFixture
) -> None:
    sasl = SecurityProtocol.SASL_SSL
    assert make(files, ssl_client_auth="required").context.verify_mode is ssl.CERT_REQUIRED
    common = make(files, sasl, ssl_client_auth="required")
    assert common.context.verify_mode is ssl.CERT_NONE
    assert "ssl.client.auth has no effect on A" in caplog.text
    own = make(files, sasl, a__ssl_client_auth="requested")
    assert own.context.verify_mode is ssl.CERT_OPTIONAL


@pytest.mark.parametrize("extension", ["3004a3023000", "30"])
def test_names_of_a_kind_that_cannot_be_read_are_refused_by_name(extension: str) -> None:
    """An X.400 address, and half of a list."""
    key = new_key()
    certificate = (
        Authority()
        ._builder(named("broker"), key, days=1)
        .issuer_name(named("broker"))
        .add_extension(
            x509.UnrecognizedExtension(
                ExtensionOID.SUBJECT_ALTERNATIVE_NAME, bytes.fromhex(extension)
            ),
            critical=False,
        )
        .sign(key, hashes.SHA256())
    )
    with pytest.raises(ConfigError, match="the extensions of the certificate of CN=broker"):
        host_names(certificate)
