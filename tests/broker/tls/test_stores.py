"""Key stores and trust stores: every format is read, and each mistake is one clear line."""

import re
import subprocess
import warnings
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.hazmat.primitives.serialization import Encoding
from cryptography.x509.oid import NameOID
from hypothesis import example, given
from hypothesis import strategies as st

from odradek.broker.security.tls.distinguished_name import name_text
from odradek.broker.security.tls.java_key_store import (
    JavaKeyStoreError,
    decrypt_key,
    read_java_key_store,
)
from odradek.broker.security.tls.stores import read_key_store, read_trust_store
from odradek.config.broker_config import BrokerConfig
from odradek.config.errors import ConfigError
from odradek.config.listener_settings import ListenerSettings
from tests.support.certificates import PASSWORD, Authority, Signed, pkcs12_of
from tests.support.java_key_stores import java_key_store
from tests.support.java_tools import why_no_java

AUTHORITY = Authority()
SERVER = AUTHORITY.sign("localhost")
OTHER = AUTHORITY.sign("other")
CHAIN = SERVER.pem + AUTHORITY.pem

Write = Callable[[str, bytes | str], str]


@pytest.fixture
def write(tmp_path: Path) -> Write:
    def write_file(name: str, content: bytes | str) -> str:
        path = tmp_path / name
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        return str(path)

    return write_file


def settings(**texts: str) -> ListenerSettings:
    """`keystore_location="x"` is ssl.keystore.location=x."""
    named = {f"ssl.{name.replace('_', '.')}": text for name, text in texts.items()}
    return BrokerConfig.from_texts(named).of_listener("SSL")


def refusal(read: Callable[[ListenerSettings], object], **texts: str) -> str:
    """The message with which settings are refused: one line, without any password."""
    with pytest.raises(ConfigError) as caught:
        read(settings(**texts))
    message = str(caught.value)
    assert "\n" not in message
    assert PASSWORD not in message
    assert "MII" not in message
    return message


def check_key_store(**texts: str) -> None:
    (entry,) = read_key_store(settings(**texts))
    assert entry.key.public_key() == SERVER.key.public_key()
    assert [each.subject for each in entry.chain] == [
        SERVER.certificate.subject,
        AUTHORITY.root.certificate.subject,
    ]


# -- key stores -----------------------------------------------------------------------------------


def test_a_country_that_keytool_does_not_know_is_no_warning(write: Write) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        country = x509.NameAttribute(NameOID.COUNTRY_NAME, "Unknown", _validate=False)
        signed = AUTHORITY.sign(x509.Name([country]))
    for name, data in (
        ("p12", pkcs12_of(signed, AUTHORITY)),
        ("jks", java_key_store(PASSWORD, keys={"a": [signed]})),
    ):
        location = write(name, data)
        # Warnings are errors in tests.
        (entry,) = read_key_store(settings(keystore_location=location, keystore_password=PASSWORD))
        assert name_text(entry.chain[0].subject.public_bytes()) == "C=Unknown"


def test_a_pem_file_has_a_key_and_its_chain(write: Write) -> None:
    path = write("server.pem", "notes\n" + SERVER.key_pem() + CHAIN)
    check_key_store(keystore_type="PEM", keystore_location=path)


def test_a_key_in_pem_may_be_encrypted(write: Write) -> None:
    path = write("server.pem", SERVER.key_pem(PASSWORD) + CHAIN)
    check_key_store(keystore_type="PEM", keystore_location=path, key_password=PASSWORD)


def test_pem_values_may_be_written_in_one_line() -> None:
    key, chain = (" ".join(text.split("\n")) for text in (SERVER.key_pem(), CHAIN))
    check_key_store(keystore_type="PEM", keystore_key=key, keystore_certificate_chain=chain)


@pytest.mark.parametrize("kind", ["PKCS12", "pkcs12", "JKS"])
def test_a_pkcs12_file_is_read_by_either_name(write: Write, kind: str) -> None:
    path = write("server.p12", pkcs12_of(SERVER, AUTHORITY))
    check_key_store(keystore_type=kind, keystore_location=path, keystore_password=PASSWORD)


@pytest.mark.parametrize("key_password", [None, "another"])
def test_a_java_key_store_may_have_a_password_for_its_key(
    write: Write, key_password: str | None
) -> None:
    keys = {"caroot": [SERVER, AUTHORITY.root]}
    trusted = {"ca": AUTHORITY.root}
    path = write(
        "server.jks",
        java_key_store(PASSWORD, keys=keys, trusted=trusted, key_password=key_password),
    )
    texts = {} if key_password is None else {"key_password": key_password}
    check_key_store(keystore_location=path, keystore_password=PASSWORD, **texts)


def test_several_keys_of_a_java_key_store_are_read(write: Write) -> None:
    keys = {"one": [SERVER], "two": [OTHER]}
    path = write("server.jks", java_key_store(PASSWORD, keys=keys))
    found = read_key_store(settings(keystore_location=path, keystore_password=PASSWORD))
    assert [each.chain[0] for each in found] == [SERVER.certificate, OTHER.certificate]


def test_a_key_store_that_is_missing_or_unreadable_is_named(write: Write) -> None:
    message = refusal(read_key_store, keystore_location="/nowhere.p12", keystore_password=PASSWORD)
    assert message == "ssl.keystore.location=/nowhere.p12: No such file or directory"
    assert "ssl.keystore.location is not set" in refusal(read_key_store)
    path = write("server.p12", pkcs12_of(SERVER, AUTHORITY))
    assert "ssl.keystore.password is not set" in refusal(read_key_store, keystore_location=path)
    pem = {"keystore_location": write("server.pem", CHAIN), "keystore_password": PASSWORD}
    assert refusal(read_key_store, **pem).endswith("it is PEM, which the type must say")
    message = refusal(read_key_store, keystore_type="BKS", keystore_location=path)
    assert message == "ssl.keystore.type=BKS: must be one of: JKS, PKCS12, PEM"


@pytest.mark.parametrize("kind", ["p12", "jks"])
def test_a_wrong_password_is_said(write: Write, kind: str) -> None:
    stores = {
        "p12": pkcs12_of(SERVER, AUTHORITY),
        "jks": java_key_store(PASSWORD, keys={"server": [SERVER]}),
    }
    path = write(kind, stores[kind])
    message = refusal(read_key_store, keystore_location=path, keystore_password="wrong")
    assert "the password is wrong" in message
    assert path in message


def test_a_wrong_password_of_a_key_is_said(write: Write) -> None:
    path = write("jks", java_key_store(PASSWORD, keys={"server": [SERVER]}))
    texts = {"keystore_location": path, "keystore_password": PASSWORD, "key_password": "wrong"}
    assert "the password of the private key is wrong" in refusal(read_key_store, **texts)
    path = write("server.pem", SERVER.key_pem(PASSWORD) + CHAIN)
    texts = {"keystore_type": "PEM", "keystore_location": path}
    assert "its password is wrong" in refusal(read_key_store, **texts, key_password="wrong")
    assert "ssl.key.password is not set" in refusal(read_key_store, **texts)


def test_a_key_that_is_not_the_certificates_is_refused(write: Write) -> None:
    path = write("server.pem", OTHER.key_pem() + CHAIN)
    message = refusal(read_key_store, keystore_type="PEM", keystore_location=path)
    assert "the private key does not belong to the first certificate" in message


@pytest.mark.parametrize(
    ("texts", "words"),
    [
        ({"keystore_key": "x"}, "the certificate chain is not"),
        ({"keystore_certificate_chain": "x"}, "the key is not"),
        ({"keystore_key": "x", "keystore_certificate_chain": "y"}, "needs ssl.keystore.type=PEM"),
        ({"keystore_password": "x"}, "ssl.keystore.location is not"),
        (
            {"keystore_type": "PEM", "keystore_key": "x", "keystore_certificate_chain": "y"},
            "one private key is needed in the PEM text, and there are 0",
        ),
    ],
)
def test_settings_that_do_not_fit_together_are_refused(texts: dict[str, str], words: str) -> None:
    assert words in refusal(read_key_store, **texts)


JAVA_STORE = java_key_store(PASSWORD, keys={"a": [SERVER]}, trusted={"b": AUTHORITY.root})


def test_every_cut_of_a_java_key_store_is_refused() -> None:
    for size in range(0, len(JAVA_STORE) - 20, 7):
        with pytest.raises(JavaKeyStoreError):
            read_java_key_store(JAVA_STORE[:size], None)


@example(48, b"\x80")  # the end of an object identifier
@given(st.integers(0, len(JAVA_STORE) - 21), st.binary(max_size=8))
def test_damage_in_a_java_key_store_raises_its_error_only(position: int, noise: bytes) -> None:
    data = JAVA_STORE[:position] + noise + JAVA_STORE[position + len(noise) :]
    with suppress(JavaKeyStoreError):
        for entry in read_java_key_store(data, None):
            if entry.protected_key is not None:
                decrypt_key(entry.protected_key, PASSWORD)


# -- trust stores ---------------------------------------------------------------------------------


def check_trust_store(**texts: str) -> None:
    assert read_trust_store(settings(**texts)) == [AUTHORITY.root.certificate]


def test_trusted_certificates_are_read_from_every_format(write: Write) -> None:
    path = write("ca.pem", AUTHORITY.pem)
    check_trust_store(truststore_type="PEM", truststore_location=path)
    check_trust_store(truststore_type="PEM", truststore_certificates=AUTHORITY.pem)
    path = write("ca.jks", java_key_store(PASSWORD, trusted={"ca": AUTHORITY.root}))
    check_trust_store(truststore_location=path, truststore_password=PASSWORD)
    check_trust_store(truststore_location=path)
    assert read_trust_store(settings()) is None


def test_a_damaged_trust_store_is_refused(write: Write) -> None:
    path = write("ca.pem", "nothing")
    message = refusal(read_trust_store, truststore_type="PEM", truststore_location=path)
    assert message == f"ssl.truststore.location={path}: there is no certificate in the PEM text"
    path = write("ca.p12", "nothing")
    assert "neither a PKCS 12 nor a JKS store" in refusal(
        read_trust_store, truststore_location=path, truststore_password=PASSWORD
    )


# -- Java's own tool ------------------------------------------------------------------------------


def keytool(*arguments: str) -> None:
    reason = why_no_java()
    if reason:
        pytest.skip(reason)
    words = ["keytool", "-noprompt", "-storepass", PASSWORD, *arguments]
    subprocess.run(words, check=True, capture_output=True)


@pytest.mark.java
@pytest.mark.parametrize("kind", ["JKS", "PKCS12"])
def test_stores_that_keytool_made_are_read(write: Write, tmp_path: Path, kind: str) -> None:
    signed = Signed(rsa.generate_private_key(65537, 2048), SERVER.certificate)
    assert isinstance(signed.key, rsa.RSAPrivateKey)
    path = str(tmp_path / "server")
    store = ["-keystore", path, "-storetype", kind]
    name = ["-alias", "server", "-dname", "CN=localhost", "-keypass", PASSWORD]
    keytool("-genkeypair", "-keyalg", "RSA", *name, *store)
    (entry,) = read_key_store(
        settings(keystore_type=kind, keystore_location=path, keystore_password=PASSWORD)
    )
    assert entry.chain[0].subject.rfc4514_string() == "CN=localhost"
    certificate = write("ca.pem", AUTHORITY.pem)
    trusted = str(tmp_path / "trusted")
    for alias in ("one", "two"):
        keytool("-importcert", "-alias", alias, "-file", certificate,
                "-keystore", trusted, "-storetype", kind)  # fmt: skip
    found = read_trust_store(
        settings(truststore_type=kind, truststore_location=trusted, truststore_password=PASSWORD)
    )
    assert found is not None
    der = {each.public_bytes(Encoding.DER) for each in found}
    assert der == {AUTHORITY.root.certificate.public_bytes(Encoding.DER)}
    assert not re.search("odradek", path)
