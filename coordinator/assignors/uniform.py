"""The uniform assignor, the default: balanced loads with few moved partitions.

A member's load is its number of partitions over all topics. Balance takes precedence over
stickiness: loads are made as even as possible, and as far as that allows, members keep their
partitions. If all members subscribe to the same topics, the loads are computed
(uniform_homogeneous). Otherwise they are found by a search (uniform_heterogeneous).

The assignor does not use racks. Kafka's documentation calls Kafka's assignor "potentially rack
aware"; since 4.0 it does not use racks either. In Kafka the order of a Java HashMap decides which
member gets one partition more, and which free partition goes to which member. This assignor sorts
members and topics by id. The loads and the number of moved partitions are equal to Kafka's.

Kafka: UniformAssignor.
"""

from odradek.coordinator.runtime.steps import Step, no_step

from .assignment import Assignment, GroupSpec, TopicsView
from .uniform_heterogeneous import HeterogeneousBuilder
from .uniform_homogeneous import assign_homogeneous


class UniformAssignor:
    """The uniform assignor; see the module docstring."""

    name = "uniform"

    def assign(
        self, spec: GroupSpec, topics: TopicsView, step: Step = no_step
    ) -> dict[str, Assignment]:
        """Return the new target of every member. Raises AssignorError for an unknown topic."""
        if not spec.members:
            return {}
        if spec.is_homogeneous:
            return assign_homogeneous(spec, topics, step)
        return HeterogeneousBuilder(spec, topics, step).build()
