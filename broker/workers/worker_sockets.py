"""The bound sockets of a worker, which the broker's own process keeps open."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from odradek.broker.common.nodes import Ports
from odradek.broker.network.listeners import BoundListener, ports_of


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerSockets:
    """The listeners of a worker, and its odradek.http.listener, if that is set."""

    bound: Sequence[BoundListener]
    http: BoundListener | None

    @property
    def ports(self) -> Ports:
        """The port of each listener, by its name."""
        return ports_of(self.bound)

    @property
    def descriptors(self) -> Mapping[str, list[int]]:
        """The file descriptors of each listener, by its name."""
        return {item.listener.name: _descriptors(item) for item in self.bound}

    @property
    def http_descriptors(self) -> list[int]:
        """The file descriptors of the HTTP listener."""
        return _descriptors(self.http) if self.http is not None else []

    def all(self) -> Iterator[int]:
        """All file descriptors."""
        for descriptors in self.descriptors.values():
            yield from descriptors
        yield from self.http_descriptors

    def close(self) -> None:
        """Release the ports."""
        for item in (*self.bound, *([self.http] if self.http else [])):
            item.close()


def _descriptors(bound: BoundListener) -> list[int]:
    return [sock.fileno() for sock in bound.sockets]
