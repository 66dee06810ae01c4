"""All quotas of a broker, as the metadata log has them.

While there is no quota for users and client ids, `is_active` is false and requests are not metered.
Rates are measured on a clock that never jumps.

Kafka: QuotaFactory, ClientQuotaMetadataManager.
"""

import math
from collections.abc import Callable, Mapping
from time import perf_counter

from odradek.config.broker_config import BrokerConfig
from odradek.coordinator.metadata.client_quotas import IP, ClientQuotas
from odradek.coordinator.metadata.quota_changes import (
    CONNECTION_CREATION_RATE,
    CONSUMER_BYTE_RATE,
    CONTROLLER_MUTATION_RATE,
    PRODUCER_BYTE_RATE,
    REQUEST_PERCENTAGE,
)
from odradek.coordinator.runtime.steps import Step, no_step, stepping

from .client_quotas import MutationQuota, RateQuota
from .host_addresses import HostAddresses
from .precedence import QuotaTable
from .rates import Window


class Quotas:
    """The quotas in force. `refresh` takes over those of the metadata.

    `connection_rates` has the new connections per second of an address; `default_connection_rate`
    is that of the others, or None. `on_change` are called after each `refresh`. `addresses` are
    those of the hosts that quotas and limits name.
    """

    def __init__(
        self,
        config: BrokerConfig,
        stored: ClientQuotas,
        addresses: HostAddresses,
        timer_ms: Callable[[], int],
        seconds: Callable[[], float] = perf_counter,
    ) -> None:
        """`timer_ms` is a clock that never jumps; `seconds` one that times requests."""
        window = client_window(config)
        self.timer_ms = timer_ms
        self.seconds = seconds
        self.produce = RateQuota(window)
        self.fetch = RateQuota(window)
        self.request = RateQuota(window, longest_ms=window.sample_ms)
        self.mutations = MutationQuota(
            Window(
                config.controller_quota_window_num,
                config.controller_quota_window_size_seconds * 1000,
            )
        )
        self.is_active = False
        self.connection_rates: Mapping[str, int] = {}
        self.default_connection_rate: int | None = None
        self._by_key: dict[str, RateQuota | MutationQuota] = {
            PRODUCER_BYTE_RATE: self.produce,
            CONSUMER_BYTE_RATE: self.fetch,
            REQUEST_PERCENTAGE: self.request,
            CONTROLLER_MUTATION_RATE: self.mutations,
        }
        self._stored = stored
        self.addresses = addresses
        # As in Kafka, a host without an address now is looked up again when its quota is altered.
        for entity in stored.by_key(CONNECTION_CREATION_RATE):
            if host := dict(entity).get(IP):
                addresses.of(host)
        self.refresh()

    def refresh(self, step: Step = no_step) -> None:
        """Take over the quotas that the metadata has now, and keeps until this returns.

        A quota of a host whose address is not known is ignored.
        """
        tables = {key: QuotaTable(self._stored.by_key(key, step), step) for key in self._by_key}
        stored = self._stored.by_key(CONNECTION_CREATION_RATE, step)
        rates = {
            dict(entity).get(IP, ""): 0 if math.isnan(value) else int(value)  # as in Java
            for entity, value in stepping(iter(stored.items()), step)
        }
        default_rate = rates.pop(None, None)
        by_address = {
            address: rate
            for host, rate in stepping(iter(rates.items()), step)
            if host and (address := self.addresses.known(host)) is not None
        }
        for key, quota in self._by_key.items():
            quota.table = tables[key]
        self.is_active = any(tables.values())
        self.default_connection_rate = default_rate
        self.connection_rates = by_address


def client_window(config: BrokerConfig) -> Window:
    """The window of the quotas on clients and connections."""
    return Window(config.quota_window_num, config.quota_window_size_seconds * 1000)
