"""The server-side assignors of consumer groups (KIP-848): who is to read which partitions.

`group.consumer.assignors` lists them, the default one first. Like Kafka's broker, ours does not
start with a name that it cannot find; assignors of the user's own (Java classes, in Kafka) there
are none. Kafka's class names are taken too, as they may stand in a server.properties that moves
here.
"""

from collections.abc import Mapping, Sequence

from odradek.config.errors import ConfigError, invalid_value

from .assignment import (
    NOTHING,
    Assignment,
    Assignor,
    AssignorError,
    GroupSpec,
    MemberSpec,
    TopicsView,
)
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
    """The assignors that `group.consumer.assignors` lists, by name and in its order.

    The first is the default. Raises ConfigError for no names at all, an unknown one, and an
    assignor that is listed twice (under its name and its class, say).
    """
    if not names:
        raise invalid_value(_KEY, "", "must not be empty")
    found: dict[str, Assignor] = {}
    for name in names:
        assignor = _look_up(name)
        if assignor.name in found:
            raise invalid_value(_KEY, ",".join(names), f"{assignor.name} stands there twice")
        found[assignor.name] = assignor
    return found


def _look_up(name: str) -> Assignor:
    assignor = ASSIGNORS.get(name) or _CLASSES.get(name)
    if assignor is None:
        raise _unknown_assignor(name)
    return assignor


def _unknown_assignor(name: str) -> ConfigError:
    there = ", ".join(ASSIGNORS)
    return invalid_value(_KEY, name, f"Class {name} cannot be found; there are: {there}")


__all__ = [
    "ASSIGNORS",
    "NOTHING",
    "Assignment",
    "Assignor",
    "AssignorError",
    "GroupSpec",
    "MemberSpec",
    "TopicsView",
    "configured_assignors",
]
