"""What the groups of commands share that speak Kafka's protocol without librdkafka."""

from __future__ import annotations

from pathlib import Path
from typing import Self

from .client_config import client_settings
from .wire import WireCluster


class ClusterCommands:
    """Commands on connections to a cluster, which are closed at the end of a `with`."""

    def __init__(self, bootstrap: str | None, file: Path | None) -> None:
        """Connect. Raises CommandError."""
        self._cluster = WireCluster(client_settings(bootstrap, file))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._cluster.close()
