"""The uniform assignor, the default: balanced loads with few moved partitions.

Balance takes precedence over stickiness. A member's load is its number of partitions over all
topics. Loads are made as even as possible; within that, members keep their partitions. If all
members subscribe to the same topics, the shares are computed (uniform_homogeneous); otherwise they
are found by a search (uniform_heterogeneous).

Not rack-aware: Kafka's documentation calls the assignor "potentially rack aware", but since 4.0
neither of its builders uses racks. Kafka: UniformAssignor. Some of its results depend on the order
of a Java HashMap (which member gets one partition more, which free partition goes to which member).
This assignor sorts members and topics by id; loads and numbers of moved partitions are equal.
"""

from .assignment import Assignment, GroupSpec, TopicsView
from .uniform_heterogeneous import HeterogeneousBuilder
from .uniform_homogeneous import assign_homogeneous


class UniformAssignor:
    """The uniform assignor; see the module docstring."""

    name = "uniform"

    def assign(self, spec: GroupSpec, topics: TopicsView) -> dict[str, Assignment]:
        """Return the new target of every member. Raises AssignorError for an unknown topic."""
        if not spec.members:
            return {}
        if spec.is_homogeneous:
            return assign_homogeneous(spec, topics)
        return HeterogeneousBuilder(spec, topics).build()
