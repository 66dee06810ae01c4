"""Whether the broker is ready: all partitions and coordinators are served, and no disk has failed.

The broker listens before large logs are recovered, and goes on if one of several log directories
fails. Clients may use it then, but a part of the data is missing.
"""

from __future__ import annotations

from collections.abc import Iterator

from .observed import Observed


def problems(observed: Observed) -> Iterator[str]:
    """Yield one line for each reason why the broker is not ready."""
    broker = observed.broker
    if observed.is_stopping:
        yield "the broker is stopping"
    if broker.directory_failures.fatal.done():
        yield f"the broker has failed: {broker.directory_failures.fatal.result()}"
    waiting = broker.log_manager.waiting()
    if waiting:
        logs = "1 log is" if len(waiting) == 1 else f"{len(waiting)} logs are"
        yield f"{logs} being recovered"
    coordinators = broker.coordinators
    for coordinator in (coordinators.groups, coordinators.transactions, coordinators.share_states):
        shards = coordinator.shards
        if shards.is_loading:
            yield f"{shards.topic} is loading"
        unserved = shards.unserved()
        if unserved:
            partitions = ", ".join(map(str, unserved))
            yield f"partitions of {shards.topic} are not served: {partitions}"
    for path, reason in broker.log_manager.offline.items():
        yield f"log directory {path} is offline: {reason}"
