"""The nodes of a played cluster, as the handlers of one node see them."""

from types import SimpleNamespace
from typing import Any, NoReturn

from odradek.broker.cluster.cluster_nodes import ClusterNodes
from odradek.config.broker_config import BrokerConfig
from odradek.protocol.errors import ApiError, ErrorCode


def no_such_partition(*_: object) -> NoReturn:
    raise ApiError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, "it is gone")


def test_a_partition_that_is_deleted_while_a_request_lists_it_has_no_nodes() -> None:
    config = BrokerConfig.from_texts({"node.id": "1", "log.dirs": "d", "odradek.nodes": "2"})
    cluster: Any = SimpleNamespace(live={1, 2}, roles=no_such_partition)
    nodes = ClusterNodes(config, [{}, {}], cluster, 1)
    for listed in (nodes.replicas, nodes.isr, nodes.eligible, nodes.last_known):
        assert listed([1], "t", 0) == []
    assert nodes.offline("t", 0, is_served=False) == []
