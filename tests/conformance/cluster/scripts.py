"""All scripts by their names, and the clusters that they need."""

from collections.abc import Callable
from types import ModuleType

from tests.conformance.cluster import (
    coordinators,
    described,
    failures,
    placed,
    racks,
    reassigned,
    records,
    shares,
    transactions,
    waiting,
)
from tests.conformance.cluster.talk import ClusterTalk
from tests.support.clusters import NODE_IDS

Script = Callable[[ClusterTalk], None]

# Settings of all nodes and of single nodes, for the scripts of `racks`.
RACK_SETTINGS = {
    "replica.selector.class": "org.apache.kafka.common.replica.RackAwareReplicaSelector"
}
RACKS = {node: {"broker.rack": f"rack-{node}"} for node in NODE_IDS}


def _scripts_of(*modules: ModuleType) -> dict[str, Script]:
    """Every public function of the modules, by its name."""
    return {
        name: function
        for module in modules
        for name, function in vars(module).items()
        if not name.startswith("_") and getattr(function, "__module__", "") == module.__name__
    }


SCRIPTS = _scripts_of(
    described, placed, records, coordinators, transactions, shares, failures, reassigned, waiting
)
SCRIPTS_WITH_RACKS = _scripts_of(racks)
