"""Clients of a worker push their metrics to the broker's own process."""

from pathlib import Path

import pytest

from odradek.coordinator.metadata.configs import ConfigResourceType
from odradek.protocol.api_keys import ApiKey
from odradek.protocol.compression import CompressionType, compress
from odradek.protocol.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from odradek.protocol.messages.get_telemetry_subscriptions import (
    GetTelemetrySubscriptionsRequest,
    GetTelemetrySubscriptionsResponse,
)
from odradek.protocol.messages.incremental_alter_configs import IncrementalAlterConfigsResponse
from odradek.protocol.messages.push_telemetry import PushTelemetryRequest, PushTelemetryResponse
from odradek.protocol.primitives import ZERO_UUID
from tests.support.broker_with_workers import BrokerWithWorkers, free_base
from tests.support.config_requests import alter_configs_request
from tests.support.metrics import scrape
from tests.support.otlp import gauge, metrics_data
from tests.support.wire import WireClient

pytestmark = pytest.mark.slow


def test_a_client_of_a_worker_is_known_by_its_software(tmp_path: Path) -> None:
    base = free_base(2)
    listener = {"odradek.http.listener": f"127.0.0.1:{base}"}
    broker = BrokerWithWorkers(tmp_path / "broker", overrides=listener).start()
    try:
        wanted = {"metrics": "*", "match": "client_software_name=barista"}
        request = alter_configs_request(ConfigResourceType.CLIENT_METRICS, "baristas", wanted)
        with WireClient(broker.port_of(1)) as worker:
            answer = worker.ask(request, IncrementalAlterConfigsResponse, 1)
            assert answer.responses[0].error_code == 0
            software = ApiVersionsRequest(
                client_software_name="barista", client_software_version="1"
            )
            announced = worker.ask(software, ApiVersionsResponse, 3).api_keys
            assert ApiKey.PUSH_TELEMETRY in {each.api_key for each in announced}
            push(worker)
        values = list(scrape(base).values("org_apache_kafka_a", client_software_name="barista"))
        assert values == [7.0]
    finally:
        assert broker.terminate() == 0
    assert broker.crashes_in_log() == []


def push(worker: WireClient) -> None:
    """Push one value, which the subscription must ask for."""
    request = GetTelemetrySubscriptionsRequest(client_instance_id=ZERO_UUID)
    subscription = worker.ask(request, GetTelemetrySubscriptionsResponse, 0)
    assert subscription.requested_metrics == ["*"]
    pushed = PushTelemetryRequest(
        client_instance_id=subscription.client_instance_id,
        subscription_id=subscription.subscription_id,
        terminating=False,
        compression_type=CompressionType.ZSTD,
        metrics=compress(CompressionType.ZSTD, metrics_data(gauge("org.apache.kafka.a", 7.0))),
    )
    assert worker.ask(pushed, PushTelemetryResponse, 0).error_code == 0
