"""Whether the broker is ready: all partitions and coordinators are served, and no disk has failed.

The broker listens before large logs are recovered, and goes on if one of several log directories
fails. Clients may use it then, but a part of the data is missing.
"""

from __future__ import annotations

from collections.abc import Iterator

from odradek.protocol.errors import ApiError

from .observed import Observed


def problems(observed: Observed) -> Iterator[str]:
    """Say in one line each what is missing; nothing if the broker is ready."""
    broker = observed.broker
    if observed.is_stopping:
        yield "the broker is stopping"
    if broker.directory_failures.fatal.done():
        yield f"the broker has failed: {broker.directory_failures.fatal.result()}"
    waiting = broker.log_manager.waiting()
    if waiting:
        yield f"{len(waiting)} logs are being recovered"
    for shards in (broker.coordinators.groups.shards, broker.coordinators.transactions.shards):
        try:
            shards.all()
        except ApiError as error:
            yield error.message
    for path, reason in broker.log_manager.offline.items():
        yield f"log directory {path} is offline: {reason}"
