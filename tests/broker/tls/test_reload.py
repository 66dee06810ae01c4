"""Certificates are replaced while the broker runs: by a setting, or by a changed file."""

import asyncio
import datetime
import errno
import logging
import os
import ssl
from collections.abc import Callable
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives.serialization import Encoding

from odradek.broker.disk.disk_executor import DiskExecutor
from odradek.broker.security.tls import tls_listeners
from odradek.broker.security.tls.listener_tls import ListenerTls
from odradek.broker.security.tls.tls_listeners import TlsListeners
from odradek.config.broker_config import BrokerConfig
from odradek.config.errors import ConfigError
from odradek.config.listener_settings import ListenerSettings
from odradek.config.listeners import Listener
from odradek.protocol.messages.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
    DescribeConfigsResponse,
)
from odradek.protocol.messages.incremental_alter_configs import (
    IncrementalAlterConfigsResponse,
)
from tests.support.certificates import PASSWORD, Signed, TlsFiles, pkcs12_of
from tests.support.config_requests import alter_configs_request
from tests.support.java_key_stores import java_key_store
from tests.support.tls_broker import TlsBroker, tls_broker
from tests.support.wire import WireClient

LOCATION = "listener.name.ssl.ssl.keystore.location"
DAY_MS = 24 * 3_600_000


@pytest.fixture
def files(tmp_path: Path) -> TlsFiles:
    return TlsFiles(tmp_path / "certificates")


class Rig:
    """The TLS of one listener, without a broker."""

    def __init__(self, files: TlsFiles, disk: DiskExecutor, now_ms: int, texts: dict[str, str]):
        self.texts = {"listeners": "SSL://:9093", **files.broker_settings(), **texts}
        self.now_ms = now_ms
        self.tls = TlsListeners(self.config(), disk, lambda: self.now_ms)

    def config(self, **changed: str) -> BrokerConfig:
        return BrokerConfig.from_texts(self.texts).with_dynamic(changed)

    @property
    def served(self) -> x509.Certificate:
        return self.tls.of("SSL").entries[0].chain[0]


@pytest.fixture
async def make(files: TlsFiles) -> Callable[..., Rig]:
    disk = DiskExecutor(asyncio.get_running_loop())
    now_ms = int(datetime.datetime.now().timestamp() * 1000)  # noqa: DTZ005 # a moment

    def make_rig(days_later: int = 0, **texts: str) -> Rig:
        named = {name.replace("_", "."): text for name, text in texts.items()}
        return Rig(files, disk, now_ms + days_later * DAY_MS, named)

    return make_rig


def rewrite(files: TlsFiles, signed: Signed) -> None:
    """Replace the broker's key store, as tools that renew certificates do."""
    new = files.write_pem("new.pem", signed)
    new.replace(files.server_pem)


async def test_a_renewed_certificate_in_the_same_file_is_taken_over(
    files: TlsFiles, make: Callable[..., Rig], caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    rig = make()
    renewed = files.authority.sign("localhost")
    rewrite(files, renewed)
    await rig.tls.check_files()
    assert rig.served == renewed.certificate
    assert "listener SSL: certificates were loaded again: CN=localhost, valid until" in caplog.text
    caplog.clear()
    await rig.tls.check_files()
    assert caplog.text == ""


@pytest.mark.parametrize(
    ("subject", "names", "words"),
    [
        ("elsewhere", ("localhost",), "name would change from 'CN=localhost' to 'CN=elsewhere'"),
        ("localhost", ("elsewhere",), "alternative names would change"),
    ],
)
async def test_a_certificate_of_another_name_is_refused_unless_that_is_allowed(
    files: TlsFiles,
    make: Callable[..., Rig],
    caplog: pytest.LogCaptureFixture,
    subject: str,
    names: tuple[str, ...],
    words: str,
) -> None:
    strict = make()
    lenient = make(ssl_allow_dn_changes="true", ssl_allow_san_changes="true")
    before = strict.served
    other = files.authority.sign(subject, names=names)
    rewrite(files, other)
    for _ in range(2):
        await strict.tls.check_files()
    assert strict.served == before
    assert caplog.text.count("listener SSL keeps its certificates") == 1
    assert words in caplog.text
    await lenient.tls.check_files()
    assert lenient.served == other.certificate


async def test_a_renewed_certificate_may_add_alternative_names(
    files: TlsFiles, make: Callable[..., Rig]
) -> None:
    rig = make()
    renewed = files.authority.sign("localhost", names=("localhost", "broker.example"))
    rewrite(files, renewed)
    await rig.tls.check_files()
    assert rig.served == renewed.certificate


async def test_keys_are_counted_unless_all_their_names_may_change(
    files: TlsFiles, make: Callable[..., Rig], caplog: pytest.LogCaptureFixture
) -> None:
    store = files.directory / "keys.jks"
    store.write_bytes(java_key_store(PASSWORD, keys={"a": [files.server]}))
    settings = {
        "ssl_keystore_type": "JKS",
        "ssl_keystore_location": str(store),
        "ssl_keystore_password": PASSWORD,
        "ssl_allow_dn_changes": "true",
    }
    strict, lenient = make(**settings), make(**settings, ssl_allow_san_changes="true")
    keys = {"a": [files.server], "b": [files.authority.sign("other")]}
    store.write_bytes(java_key_store(PASSWORD, keys=keys))
    await strict.tls.check_files()
    assert len(strict.tls.of("SSL").entries) == 1
    assert "the key store had 1 keys, and now has 2" in caplog.text
    await lenient.tls.check_files()
    assert len(lenient.tls.of("SSL").entries) == 2


async def test_a_file_that_is_half_written_is_read_again_when_it_is_complete(
    files: TlsFiles, make: Callable[..., Rig], caplog: pytest.LogCaptureFixture
) -> None:
    rig = make()
    renewed = files.authority.sign("localhost")
    text = renewed.key_pem() + renewed.pem
    files.server_pem.write_text(text[:300])
    await rig.tls.check_files()
    assert "there is no certificate in the PEM text" in caplog.text
    files.server_pem.write_text(text)
    await rig.tls.check_files()
    assert rig.served == renewed.certificate


@pytest.mark.parametrize(
    "call",
    [
        "pathlib.Path.read_bytes",
        pytest.param(
            "os.memfd_create",
            marks=pytest.mark.skipif(not hasattr(os, "memfd_create"), reason="Linux only"),
        ),
    ],
)
async def test_a_file_that_the_system_cannot_read_for_a_time_is_taken_over_later(
    files: TlsFiles,
    make: Callable[..., Rig],
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    call: str,
) -> None:
    rig = make()
    renewed = files.authority.sign("localhost")
    rewrite(files, renewed)

    calls = 0

    def refuse(*_: object) -> None:
        nonlocal calls
        calls += 1
        raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))

    with monkeypatch.context() as patched:
        patched.setattr(call, refuse)
        for _ in range(3):
            await rig.tls.check_files()
        assert calls == 3
        rig.tls.update_config(rig.config(**{"log.retention.ms": "5000"}))
        assert calls == 3, "it is not read on the event loop again"
    assert caplog.text.count("Too many open files") == 1
    assert rig.served == files.server.certificate
    await rig.tls.check_files()
    assert rig.served == renewed.certificate


async def test_a_file_that_goes_missing_again_is_reported_again(
    files: TlsFiles, make: Callable[..., Rig], caplog: pytest.LogCaptureFixture
) -> None:
    rig = make()
    elsewhere = files.directory / "elsewhere.pem"
    for _ in range(2):
        files.server_pem.rename(elsewhere)
        await rig.tls.check_files()
        elsewhere.rename(files.server_pem)
        await rig.tls.check_files()
    assert caplog.text.count("listener SSL keeps its certificates") == 2
    assert "loaded again" not in caplog.text


async def test_a_file_that_has_become_unusable_does_not_block_other_settings(
    files: TlsFiles, make: Callable[..., Rig]
) -> None:
    rig = make()
    rewrite(files, files.authority.sign("elsewhere"))
    rig.tls.check_settings(rig.config(**{"log.retention.ms": "5000"}))
    rig.tls.check_settings(rig.config(**{LOCATION: str(files.server_pem)}))
    with pytest.raises(ConfigError, match="name would change"):
        rig.tls.check_settings(rig.config(**{"listener.name.ssl.ssl.client.auth": "requested"}))


async def test_a_setting_is_checked_before_it_is_made(
    files: TlsFiles, make: Callable[..., Rig]
) -> None:
    rig = make()
    renewed = files.authority.sign("localhost")
    path = files.write_pem("renewed.pem", renewed)
    with pytest.raises(ConfigError, match="No such file"):
        rig.tls.check_settings(rig.config(**{LOCATION: "/nowhere.pem"}))
    changed = rig.config(**{LOCATION: str(path)})
    rig.tls.check_settings(changed)
    assert rig.served == files.server.certificate
    rig.tls.update_config(changed)
    assert rig.served == renewed.certificate


async def test_a_setting_that_changes_while_a_file_is_read_stays(
    files: TlsFiles, make: Callable[..., Rig], monkeypatch: pytest.MonkeyPatch
) -> None:
    rig = make()
    rewrite(files, files.authority.sign("localhost"))
    newest = files.authority.sign("localhost")
    changed = rig.config(**{LOCATION: str(files.write_pem("newest.pem", newest))})

    def listener_tls(listener: Listener, settings: ListenerSettings) -> ListenerTls:
        monkeypatch.undo()
        made = ListenerTls(listener, settings)
        rig.tls.update_config(changed)
        return made

    monkeypatch.setattr(tls_listeners, "ListenerTls", listener_tls)
    await rig.tls.check_files()
    assert rig.served == newest.certificate


async def test_certificates_that_expire_within_a_month_are_warned_of(
    make: Callable[..., Rig], caplog: pytest.LogCaptureFixture
) -> None:
    make()
    assert caplog.text == ""
    rig = make(days_later=70)
    assert "listener SSL: the certificate of CN=localhost expires in 20 days, on 20" in caplog.text
    rig.now_ms += 30 * DAY_MS
    rig.tls.warn_of_expiry()
    assert "the certificate of CN=localhost expired on 20" in caplog.text


# -- through a broker -----------------------------------------------------------------------------


def alter(broker: TlsBroker, **settings: str) -> str | None:
    """Set keys of this broker; the error message, if it is refused."""
    request = alter_configs_request(4, "0", settings)
    with WireClient(broker.process.port) as client:
        answer = client.ask(request, IncrementalAlterConfigsResponse, 1).responses[0]
        return answer.error_message if answer.error_code else None


def served(broker: TlsBroker) -> bytes | None:
    with broker.client() as client:
        assert isinstance(client.socket, ssl.SSLSocket)
        certificate: bytes | None = client.socket.getpeercert(binary_form=True)
        return certificate


@pytest.mark.slow
def test_a_key_store_is_replaced_by_a_request_and_stays_after_a_restart(tmp_path: Path) -> None:
    with tls_broker(tmp_path, {"SSL": {}}) as broker:
        renewed = broker.files.authority.sign("localhost")
        path = broker.files.write_pem("renewed.pem", renewed)
        other = broker.files.write_pem("other.pem", broker.files.authority.sign("elsewhere"))
        refusal = alter(broker, **{LOCATION: str(other)})
        assert refusal is not None
        assert "Invalid dynamic configuration: listener SSL" in refusal
        assert "ssl.allow.dn.changes" in refusal
        assert "per-listener" in (alter(broker, **{"ssl.keystore.location": str(path)}) or "")
        assert alter(broker, **{LOCATION: str(path)}) is None
        expected = renewed.certificate.public_bytes(Encoding.DER)
        assert served(broker) == expected
        broker.process.terminate()
        broker.process.start()
        assert served(broker) == expected


@pytest.mark.slow
def test_a_password_is_neither_logged_nor_described(tmp_path: Path) -> None:
    prefix = "listener.name.ssl.ssl.keystore"
    with tls_broker(tmp_path, {"SSL": {}}) as broker:
        store = tmp_path / "server.p12"
        store.write_bytes(pkcs12_of(broker.files.server, broker.files.authority))
        settings = {f"{prefix}.location": str(store), f"{prefix}.type": "PKCS12"}
        assert alter(broker, **settings, **{f"{prefix}.password": PASSWORD}) is None
        wrong = "not the one"
        refusal = alter(broker, **{f"{prefix}.password": wrong})
        assert refusal is not None
        assert "the password is wrong" in refusal
        assert wrong not in refusal
        every = DescribeConfigsResource(resource_type=4, resource_name="0", configuration_keys=None)
        with WireClient(broker.process.port) as client:
            request = DescribeConfigsRequest(resources=[every], include_synonyms=True)
            described = str(client.ask(request, DescribeConfigsResponse, 4))
        assert f"{prefix}.password" in described
        assert PASSWORD not in described
        assert PASSWORD not in broker.process.log_text()
        assert wrong not in broker.process.log_text()
