"""What was set on the running broker, in the order in which it counts: on this node, then on all.

Such settings come from the metadata log; a directory that Apache Kafka formatted has some.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..config.describe import ConfigSource, Layers
from ..coordinator.configs import ConfigResourceType

if TYPE_CHECKING:
    from ..coordinator.cluster_metadata import ClusterMetadata

ALL_BROKERS = ""


def dynamic_layers(metadata: ClusterMetadata, node_id: int) -> Layers:
    """The overrides of the node, then the cluster-wide ones."""
    of_node = metadata.configs.of(ConfigResourceType.BROKER, str(node_id))
    of_all = metadata.configs.of(ConfigResourceType.BROKER, ALL_BROKERS)
    return (
        (ConfigSource.DYNAMIC_BROKER, of_node),
        (ConfigSource.DYNAMIC_DEFAULT_BROKER, of_all),
    )
