"""Rates and quotas whose values no client can be expected to send, and what is forgotten."""

import math

import pytest

from odradek.broker.quotas.client_quotas import Client, MutationQuota, RateQuota
from odradek.broker.quotas.host_addresses import HostAddresses
from odradek.broker.quotas.precedence import QuotaTable
from odradek.broker.quotas.quotas import Quotas
from odradek.broker.quotas.rates import LONGEST_MS, Window
from odradek.broker.quotas.used_rates import CHECKED_FOR_EACH_NEW, FORGOTTEN_AFTER_MS
from odradek.config.broker_config import BrokerConfig
from odradek.coordinator.metadata.client_quotas import ClientQuotas
from odradek.protocol.records.cluster_metadata import ClientQuotaRecord, EntityData

WINDOW = Window(11, 1000)
ANY_CLIENT_ID = frozenset({("client-id", None)})


def quota_of(limit: float) -> RateQuota:
    quota = RateQuota(WINDOW)
    quota.table = QuotaTable({ANY_CLIENT_ID: limit})
    return quota


def test_clients_that_are_gone_are_forgotten_a_few_at_a_time() -> None:
    quota = quota_of(5)
    for number in range(1000):
        quota.charge(Client("u", f"client-{number}"), 1, number)
    assert len(list(quota.measured(lambda: 1000))) == 1000
    later_ms = 1000 + FORGOTTEN_AFTER_MS
    quota.charge(Client("u", "client-3"), 1, later_ms)
    left = 1000
    while left > 300:
        quota.charge(Client("u", f"another-{left}"), 1, later_ms)
        before, left = left, len(list(quota.measured(lambda: later_ms)))
        assert CHECKED_FOR_EACH_NEW - 2 <= before - left <= CHECKED_FOR_EACH_NEW - 1
    assert "client-3" in [shared.client_id for shared, _ in quota.measured(lambda: later_ms)]


def test_clients_may_come_and_go_while_their_rates_are_read() -> None:
    quota = quota_of(5)
    for number in range(CHECKED_FOR_EACH_NEW):
        quota.charge(Client("u", f"client-{number}"), 1, 0)
    measured = quota.measured(lambda: FORGOTTEN_AFTER_MS)
    (first, _) = next(measured)
    quota.charge(Client("u", "new"), 1, FORGOTTEN_AFTER_MS)
    assert first.client_id == "client-0"
    assert list(measured) == []


def test_clients_without_a_quota_are_not_remembered() -> None:
    quota = RateQuota(WINDOW)
    quota.table = QuotaTable({frozenset({("client-id", "one")}): 5.0})
    assert quota.charge(Client("u", "two"), 10**9, 0) == 0
    assert not list(quota.measured(lambda: 0))


@pytest.mark.parametrize("limit", [1e-300, 5e-324])
def test_the_longest_throttle_time_fits_the_wire(limit: float) -> None:
    assert quota_of(limit).charge(Client("u", "c"), 10**9, 0) == LONGEST_MS
    mutations = MutationQuota(WINDOW)
    mutations.table = QuotaTable({ANY_CLIENT_ID: limit})
    assert mutations.take(Client("u", "c"), 10**6, 0, strict=False) == LONGEST_MS


@pytest.mark.parametrize("limit", [math.nan, math.inf])
def test_a_limit_that_is_no_number_throttles_nobody(limit: float) -> None:
    quota = quota_of(limit)
    assert quota.charge(Client("u", "c"), 10**9, 0) == 0
    mutations = MutationQuota(WINDOW)
    mutations.table = QuotaTable({ANY_CLIENT_ID: limit})
    for strict in (True, False):
        assert mutations.take(Client("u", "c"), 10**6, 5, strict=strict) == 0


def test_quotas_of_any_log_can_be_taken_over() -> None:
    stored = ClientQuotas()
    for kind, name, key, value in (
        ("ip", "192.0.2.1", "connection_creation_rate", math.nan),
        ("ip", None, "connection_creation_rate", 2.7),
        ("ip", "no such host", "connection_creation_rate", 5.0),
        ("group", "g", "producer_byte_rate", 1.0),
        ("user", "alice", "made_up_rate", 1.0),
    ):
        entity = [EntityData(entity_type=kind, entity_name=name)]
        stored.replay(ClientQuotaRecord(entity=entity, key=key, value=value, remove=False))
    quotas = Quotas(BrokerConfig(), stored, HostAddresses(), lambda: 0)
    assert quotas.connection_rates == {"192.0.2.1": 0}
    assert quotas.default_connection_rate == 2
    assert not quotas.is_active


def test_the_limits_of_many_addresses_are_taken_over_in_steps() -> None:
    stored, steps = ClientQuotas(), []
    quotas = Quotas(BrokerConfig(), stored, HostAddresses(), lambda: 0)
    for number in range(300):
        entity = [EntityData(entity_type="ip", entity_name=f"10.0.{number >> 8}.{number & 255}")]
        stored.replay(
            ClientQuotaRecord(
                entity=entity, key="connection_creation_rate", value=1.0, remove=False
            )
        )
    quotas.refresh(lambda: steps.append(None))
    assert len(quotas.connection_rates) == 300
    assert len(steps) >= 3 * 300  # they are found, read, and their addresses looked up
