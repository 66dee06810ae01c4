"""Who the client of a TLS connection is, and what a listener is registered as."""

import asyncio
import ssl
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.x509.oid import NameOID

from odradek.protocol.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from odradek.storage.files import Files
from tests.support.broker_in_loop import broker_in_loop, until
from tests.support.broker_in_thread import broker_in_thread
from tests.support.broker_process import free_ports
from tests.support.certificates import PASSWORD, TlsFiles
from tests.support.java_key_stores import java_key_store
from tests.support.sasl import PLAIN_MODULE, log_in_by_plain
from tests.support.tls_broker import TLS_1_2, TLS_1_3, TlsBroker
from tests.support.wire import WireClient

API_VERSIONS = ApiVersionsRequest(client_software_name="t", client_software_version="1")
RULES = "RULE:^CN=(.*?),OU=users.*$/$1/U, DEFAULT"


def name(common_name: str, unit: str) -> x509.Name:
    return x509.Name(
        [
            x509.NameAttribute(NameOID.ORGANIZATIONAL_UNIT_NAME, unit),
            x509.NameAttribute(NameOID.COMMON_NAME, common_name),
        ]
    )


@pytest.mark.parametrize("version", [TLS_1_2, TLS_1_3])
async def test_a_client_is_named_by_its_certificate(tmp_path: Path, version: object) -> None:
    files = TlsFiles(tmp_path / "certificates")
    plain, port = free_ports(2)
    listeners = f"PLAINTEXT://127.0.0.1:{plain},SSL://127.0.0.1:{port}"
    settings = {
        key.replace(".", "_"): value for key, value in files.broker_settings("requested").items()
    }
    settings |= {"listeners": listeners, "ssl_principal_mapping_rules": RULES}
    async with broker_in_loop([tmp_path / "data"], Files(), **settings) as served:
        tls = TlsBroker(None, {"SSL": port}, files)  # type: ignore[arg-type] # has no process
        signed = {
            unit: files.write_pem(f"{unit}.pem", files.authority.sign(name("ann", unit)))
            for unit in ("users", "robots")
        }
        clients = [
            await asyncio.to_thread(
                WireClient, port, tls=tls.context(version, certificate=certificate)
            )
            for certificate in (signed["users"], signed["robots"], None)
        ]
        connections = served._running._server.connections
        await until(
            lambda: (
                {str(each.session.principal) for each in connections}
                == {"User:ANN", "User:CN=ann,OU=robots", "User:ANONYMOUS"}
            )
        )
        for client in clients:
            client.close()
        registered = map(served.broker._endpoint, served.broker.config.open_listeners)
        assert {each.name: each.security_protocol for each in registered} == {
            "PLAINTEXT": 0,
            "SSL": 1,
        }


@pytest.mark.parametrize("version", [TLS_1_2, TLS_1_3])
async def test_a_resumed_session_keeps_the_name_of_its_certificate(
    tmp_path: Path, version: ssl.TLSVersion
) -> None:
    files = TlsFiles(tmp_path / "certificates")
    context = TlsBroker(None, {}, files).context(version, certificate=files.client_pem)  # type: ignore[arg-type] # has no process
    plain, port = free_ports(2)
    settings = {
        key.replace(".", "_"): value for key, value in files.broker_settings("requested").items()
    }
    settings["listeners"] = f"PLAINTEXT://127.0.0.1:{plain},SSL://127.0.0.1:{port}"

    def connect(session: ssl.SSLSession | None) -> WireClient:
        client = WireClient(port)
        client.socket = context.wrap_socket(
            client.socket, server_hostname="localhost", session=session
        )
        client.ask(API_VERSIONS, ApiVersionsResponse, 3)  # a ticket of TLS 1.3 comes with data
        return client

    async with broker_in_loop([tmp_path / "data"], Files(), **settings) as served:
        first = await asyncio.to_thread(connect, None)
        assert isinstance(first.socket, ssl.SSLSocket)
        second = await asyncio.to_thread(connect, first.socket.session)
        assert isinstance(second.socket, ssl.SSLSocket)
        assert second.socket.session_reused
        names = [str(each.session.principal) for each in served._running._server.connections]
        assert names == ["User:CN=client"] * 2
        first.close()
        second.close()


def test_a_sasl_listener_serves_a_certificate_that_no_rule_maps(tmp_path: Path) -> None:
    files = TlsFiles(tmp_path / "certificates")
    settings = {
        **files.broker_settings(),
        "listeners": "SASL_SSL://127.0.0.1:0",
        "inter.broker.listener.name": "SASL_SSL",
        "sasl.enabled.mechanisms": "PLAIN",
        "listener.name.sasl_ssl.plain.sasl.jaas.config": f'{PLAIN_MODULE} required user_a="b";',
        "listener.name.sasl_ssl.ssl.client.auth": "required",
        "ssl.principal.mapping.rules": "RULE:^OU=nobody$/x/",
    }
    with broker_in_thread(tmp_path / "data", settings) as broker:
        tls = TlsBroker(None, broker.ports, files)  # type: ignore[arg-type] # has no process
        with tls.client("SASL_SSL", tls.context(certificate=files.client_pem)) as client:
            log_in_by_plain(client, "a", "b")
            (connection,) = broker._running._server.connections
            assert str(connection.session.principal) == "User:a"


async def test_the_key_is_chosen_by_the_name_that_the_client_asks_for(tmp_path: Path) -> None:
    files = TlsFiles(tmp_path / "certificates")
    plain, port = free_ports(2)
    first = files.authority.sign("first", names=("first.example",))
    second = files.authority.sign("localhost", key=rsa.generate_private_key(65537, 2048))
    store = tmp_path / "keys.jks"
    store.write_bytes(java_key_store(PASSWORD, keys={"a": [first], "b": [second]}))
    settings = {
        "listeners": f"PLAINTEXT://127.0.0.1:{plain},SSL://127.0.0.1:{port}",
        "ssl_keystore_location": str(store),
        "ssl_keystore_password": PASSWORD,
    }
    async with broker_in_loop([tmp_path / "data"], Files(), **settings):
        context = TlsBroker(None, {}, files).context()  # type: ignore[arg-type] # has no process
        client = await asyncio.to_thread(WireClient, port, tls=context)  # asks for localhost
        client.close()
