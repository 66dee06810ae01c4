"""The server-side assignors (KIP-848, KIP-932): they map partitions to members.

`group.consumer.assignors` lists the assignors, the default one first. As in Kafka, the broker does
not start with an unknown name. Custom assignors (Java classes in Kafka) are not supported. The
class names of Kafka's own assignors are accepted, because a server.properties written for Kafka may
contain them.

Reading order:

    assignment              the interface: what an assignor gets and returns
    range                   contiguous runs of each topic's partitions
    uniform                 even shares of all partitions; picks one of the next two
    uniform_homogeneous     all members subscribe to the same topics
    uniform_heterogeneous   members subscribe to different topics
    load_levels             finds the least and most loaded members for uniform_heterogeneous
    simple                  as many readers for each partition: the assignor of share groups
"""

from collections.abc import Mapping, Sequence

from odradek.config.errors import invalid_value

from .assignment import Assignor
from .range import RangeAssignor
from .uniform import UniformAssignor

ASSIGNORS: Mapping[str, Assignor] = {
    assignor.name: assignor for assignor in (UniformAssignor(), RangeAssignor())
}

_KEY = "group.consumer.assignors"
_KAFKA_PACKAGE = "org.apache.kafka.coordinator.group.assignor"
_CLASSES = {
    f"{_KAFKA_PACKAGE}.{type(assignor).__name__}": assignor for assignor in ASSIGNORS.values()
}


def configured_assignors(names: Sequence[str]) -> dict[str, Assignor]:
    """Return the assignors that `group.consumer.assignors` lists, by name and in its order.

    The first is the default. Raises ConfigError for an empty list, an unknown name, and an assignor
    that is listed twice (for example by name and by class).
    """
    if not names:
        raise invalid_value(_KEY, "", "must not be empty")
    found: dict[str, Assignor] = {}
    for name in names:
        assignor = ASSIGNORS.get(name) or _CLASSES.get(name)
        if assignor is None:
            known = ", ".join(ASSIGNORS)
            message = f"Class {name} cannot be found; known assignors: {known}"
            raise invalid_value(_KEY, name, message)
        if assignor.name in found:
            raise invalid_value(_KEY, ",".join(names), f"{assignor.name} is listed twice")
        found[assignor.name] = assignor
    return found
