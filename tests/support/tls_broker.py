"""A broker process with TLS listeners beside its PLAINTEXT one, and contexts for its clients."""

import ssl
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from tests.support.broker_process import BrokerProcess, free_ports
from tests.support.certificates import TlsFiles
from tests.support.wire import WireClient

TLS_1_2, TLS_1_3 = ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3


class TlsBroker:
    """The process, the port of each listener by name, and the certificates."""

    def __init__(self, process: BrokerProcess, ports: Mapping[str, int], files: TlsFiles) -> None:
        self.process = process
        self.ports = ports
        self.files = files

    def context(
        self,
        version: ssl.TLSVersion | None = None,
        *,
        certificate: Path | None = None,
        ca: Path | None = None,
    ) -> ssl.SSLContext:
        """A client's context: this version only, and this certificate; else any and none."""
        context = ssl.create_default_context(cafile=str(ca or self.files.ca))
        if version is not None:
            context.minimum_version = context.maximum_version = version
        if certificate is not None:
            context.load_cert_chain(str(certificate))
        return context

    def client(self, listener: str = "SSL", context: ssl.SSLContext | None = None) -> WireClient:
        """A client with TLS."""
        return WireClient(self.ports[listener], tls=context or self.context())

    def log_since(self, position: int) -> str:
        """What the broker has logged after a position of its log."""
        return self.process.log_text()[position:]


@contextmanager
def tls_broker(
    directory: Path,
    listeners: Mapping[str, Mapping[str, str]],
    settings: Mapping[str, str] | None = None,
) -> Iterator[TlsBroker]:
    """A broker that serves inside the `with`: settings of each TLS listener, and of all."""
    files = TlsFiles(directory / "certificates")
    process = BrokerProcess(directory)
    ports = dict(zip(["PLAINTEXT", *listeners], free_ports(1 + len(listeners)), strict=True))
    process.port = ports["PLAINTEXT"]
    addresses = ",".join(f"{name}://127.0.0.1:{port}" for name, port in ports.items())
    protocols = ["PLAINTEXT:PLAINTEXT", *(f"{name}:SSL" for name in listeners)]
    process.settings |= {
        **files.broker_settings(),
        "listeners": addresses,
        "advertised.listeners": addresses,
        "listener.security.protocol.map": ",".join(protocols),
        **(settings or {}),
    }
    for name, own in listeners.items():
        for key, value in own.items():
            process.settings[f"listener.name.{name.lower()}.{key}"] = value
    try:
        yield TlsBroker(process.start(), ports, files)
        assert process.crashes_in_log() == [], process.log_text()[-4000:]
    finally:
        process.stop()
