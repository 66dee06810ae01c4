"""The telemetry of a broker without the broker, at a clock that a test sets."""

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from odradek.broker.admin.subscriptions import Subscriptions
from odradek.broker.common.background_tasks import BackgroundTasks
from odradek.broker.disk.disk_executor import DiskExecutor
from odradek.broker.security.session import Session
from odradek.broker.telemetry.client_series import ClientSeries
from odradek.broker.telemetry.client_telemetry import ClientTelemetry
from odradek.broker.telemetry.instances import ClientInstance
from odradek.broker.telemetry.payloads import Payloads
from odradek.config.listeners import Listener, SecurityProtocol
from odradek.coordinator.metadata.configs import ConfigResourceType, Configs
from odradek.protocol.compression import CompressionType, compress
from odradek.protocol.errors import ApiError, ErrorCode
from odradek.protocol.messages.push_telemetry import PushTelemetryRequest
from odradek.protocol.primitives import ZERO_UUID
from odradek.protocol.records.cluster_metadata import ConfigRecord

PEER = ("192.0.2.7", 40_000)
MAX_BYTES = 4_096
MAX_SERIES = 10
MAX_CLIENT_SERIES = 4


def new_session(software: tuple[str, str] | None = ("librdkafka", "2.8.0")) -> Session:
    """A connection of a client."""
    listener = Listener("PLAINTEXT", "localhost", 9092, SecurityProtocol.PLAINTEXT)
    session = Session(listener, PEER)
    session.software = software
    return session


class Telemetry:
    """ClientTelemetry and the metadata that it reads. `now_ms` is its clock."""

    def __init__(self) -> None:
        self.now_ms = 5_000
        self.session = new_session()
        self._configs = Configs()
        self._subscriptions = Subscriptions(self._configs)
        self.disk = DiskExecutor(asyncio.get_running_loop())
        self.series = ClientSeries(MAX_SERIES, MAX_CLIENT_SERIES)
        self.background = BackgroundTasks(asyncio.get_running_loop())
        self.clients = ClientTelemetry(
            subscriptions=self._subscriptions,
            series=self.series,
            payloads=Payloads(self.disk, MAX_BYTES),
            background=self.background,
            max_bytes=MAX_BYTES,
            timer_ms=lambda: self.now_ms,
        )

    def configure(self, name: str, **settings: str | None) -> None:
        """Change the settings of a subscription; None removes one. Dots are underscores."""
        for key, value in settings.items():
            record = ConfigRecord(
                resource_type=ConfigResourceType.CLIENT_METRICS,
                resource_name=name,
                name=key.replace("_", "."),
                value=value,
            )
            self._configs.replay(record)
        self._subscriptions.update([name])

    def subscribe(self, id_: bytes = ZERO_UUID, client_id: str | None = "till") -> ClientInstance:
        """A client asks for its subscription. Raises ApiError."""
        return self.clients.subscribe(id_, self.session, client_id)

    async def push(
        self,
        instance: ClientInstance,
        content: bytes = b"",
        *,
        subscription_id: int | None = None,
        compression: int = CompressionType.NONE,
        terminating: bool = False,
    ) -> None:
        """A client pushes. Raises ApiError. Content is compressed if the type is known."""
        known = compression in tuple(CompressionType)
        request = PushTelemetryRequest(
            client_instance_id=instance.id,
            subscription_id=instance.subscription_id
            if subscription_id is None
            else subscription_id,
            terminating=terminating,
            compression_type=compression,
            metrics=compress(CompressionType(compression), content) if known else content,
        )
        await self.push_request(request)

    async def push_request(self, request: PushTelemetryRequest, client_id: str = "till") -> None:
        """A client sends this request. Raises ApiError."""
        taken = self.clients.push(request, self.session, client_id)
        if taken is not None:
            await taken


@contextmanager
def refused(code: ErrorCode) -> Iterator[None]:
    """Expect that a request is refused with this error."""
    with pytest.raises(ApiError) as caught:
        yield
    assert caught.value.code is code, caught.value
