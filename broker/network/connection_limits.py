"""How many connections there may be, and how fast new ones may come.

A connection over a limit of the broker or of its listener is accepted later: the acceptor of the
listener waits, and other clients wait in the kernel's queue. A connection over the limit of its
address is closed: at once if there are too many, after the throttle time if they come too fast.

The listener of other brokers is protected if there is another listener: max.connections is not a
limit for it, and the least recently used connections of the others are closed in its favour.

Kafka: SocketServer, ConnectionQuotas.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from typing import NamedTuple

from odradek.broker.quotas.host_addresses import HostAddresses
from odradek.broker.quotas.quotas import Quotas, client_window
from odradek.broker.quotas.rates import SampledRate
from odradek.broker.quotas.used_rates import UsedRates
from odradek.config.broker_config import BrokerConfig
from odradek.config.key import INT_MAX

BROKER = ""  # no listener has this name


class Refusal(NamedTuple):
    """Why a connection is closed, and after what time."""

    reason: str
    after_ms: int = 0


class ListenerLimits:
    """What limits the connections of one listener. A connection is any object."""

    def __init__(self, limits: ConnectionLimits, listener: str) -> None:
        self._limits = limits
        self._listener = listener

    def delay_ms(self) -> int:
        """Count a new connection. Returns how long it must wait because too many have come."""
        return self._limits.delay_ms(self._listener)

    def has_room(self) -> bool:
        """Whether the number of open connections allows another one."""
        return self._limits.has_room(self._listener)

    def when_room(self, callback: Callable[[], object]) -> None:
        """Call back once, when a connection has ended or a limit has changed."""
        self._limits.waiting.append(callback)

    def open(self, connection: object, address: str) -> Refusal | None:
        """Count an open connection until `closed`, or return why it must be closed."""
        return self._limits.open(connection, self._listener, address)

    def closed(self, connection: object) -> None:
        """Forget a connection. Nothing happens if it is not counted."""
        self._limits.closed(connection)


class ConnectionLimits:
    """The open connections, and the limits for new ones. The methods are as in ListenerLimits.

    `waiting` are called once when a connection has ended or a limit has changed.
    """

    def __init__(self, config: BrokerConfig, quotas: Quotas, addresses: HostAddresses) -> None:
        self.waiting: list[Callable[[], object]] = []
        self._quotas = quotas
        self._addresses = addresses
        self._window = client_window(config)
        self._open: dict[object, tuple[str, str]] = {}  # listener and address
        self._of_listener: Counter[str] = Counter()
        self._of_address: Counter[str] = Counter()
        self._rates: UsedRates[str, SampledRate] = UsedRates()
        self._address_rates: UsedRates[str, SampledRate] = UsedRates()
        self._limits_by_host: Mapping[str, int] = {}
        self._overrides: Mapping[str | None, int] = {}
        self.update(config)

    def update(self, config: BrokerConfig) -> None:
        """Take over changed settings of the broker."""
        names = [listener.name for listener in config.open_listeners]
        self._max_connections = config.max_connections
        self._max_of_listener = {
            name: config.limit_of_listener(name, "max.connections") for name in names
        }
        self._max_rates = {
            name: config.limit_of_listener(name, "max.connection.creation.rate") for name in names
        } | {BROKER: config.max_connection_creation_rate}
        self._max_of_address = config.max_connections_per_ip
        if config.connection_limits != self._limits_by_host:  # looking up a host takes time
            self._limits_by_host = config.connection_limits
            self._overrides = {
                self._addresses.of(host): limit for host, limit in self._limits_by_host.items()
            }
        protected = config.inter_broker_listener_name or config.security_inter_broker_protocol
        self._protected = protected.upper() if len(names) > 1 else None
        self._notify()

    # -- new connections --------------------------------------------------------------------------

    def of_listener(self, listener: str) -> ListenerLimits:
        """The limits for connections of one listener."""
        return ListenerLimits(self, listener)

    def delay_ms(self, listener: str) -> int:
        """Count a new connection. Returns how long it must wait because too many have come."""
        return max(self._record(name) for name in self._limited(listener))

    def has_room(self, listener: str) -> bool:
        """Whether the number of open connections allows another one of the listener."""
        if self._of_listener[listener] >= self._max_of_listener[listener]:
            return False
        return listener == self._protected or len(self._open) < self._max_connections

    def open(self, connection: object, listener: str, address: str) -> Refusal | None:
        """Count an open connection until `closed`, or return why it must be closed."""
        refusal = self._refusal(listener, address)
        if refusal is None:
            self._open[connection] = listener, address
            self._of_listener[listener] += 1
            self._of_address[address] += 1
        return refusal

    def closed(self, connection: object) -> None:
        """Forget a connection. Nothing happens if it is not counted."""
        place = self._open.pop(connection, None)
        if place is None:
            return
        listener, address = place
        self._of_listener[listener] -= 1
        self._of_address[address] -= 1
        if not self._of_address[address]:
            del self._of_address[address]
        self._notify()

    def excess(self) -> int:
        """How many connections there are too many, for max.connections."""
        return max(0, len(self._open) - self._max_connections)

    def is_protected(self, listener: str) -> bool:
        """Whether connections of the listener are never closed because there are too many."""
        return listener == self._protected

    # -- rates ------------------------------------------------------------------------------------

    def _refusal(self, listener: str, address: str) -> Refusal | None:
        rate = self._quotas.connection_rates.get(address, self._quotas.default_connection_rate)
        if rate is not None:
            after_ms = self._record_address(address, rate)
            if after_ms:
                for name in self._limited(listener):
                    self._take_back(name)
                reason = f"{address} connects faster than {rate} times per second"
                return Refusal(f"{reason} (connection_creation_rate)", after_ms)
        limit = self._overrides.get(address, self._max_of_address)
        if self._of_address[address] >= limit:
            return Refusal(f"{address} has {limit} connections (max.connections.per.ip)")
        return None

    def _limited(self, listener: str) -> list[str]:
        """The names whose rates a connection of the listener counts in."""
        return [listener] if listener == self._protected else [BROKER, listener]

    def _record(self, name: str) -> int:
        limit = self._max_rates[name]
        if limit == INT_MAX:
            return 0
        now_ms = self._quotas.timer_ms()
        rate = self._rate_of(self._rates, name, now_ms)
        rate.record(1, now_ms)
        return min(rate.throttle_ms(limit, now_ms), self._window.sample_ms)

    def _take_back(self, name: str) -> None:
        if self._max_rates[name] != INT_MAX:
            now_ms = self._quotas.timer_ms()
            self._rate_of(self._rates, name, now_ms).record(-1, now_ms)

    def _record_address(self, address: str, limit: int) -> int:
        now_ms = self._quotas.timer_ms()
        rate = self._rate_of(self._address_rates, address, now_ms)
        rate.record(1, now_ms)
        throttle_ms = min(rate.throttle_ms(limit, now_ms), self._window.sample_ms)
        if throttle_ms:
            rate.record(-1, now_ms)
        return throttle_ms

    def _rate_of(self, rates: UsedRates[str, SampledRate], name: str, now_ms: int) -> SampledRate:
        return rates.of(name, lambda: SampledRate(self._window, now_ms), now_ms)

    def _notify(self) -> None:
        waiting, self.waiting = self.waiting, []
        for callback in waiting:
            callback()
