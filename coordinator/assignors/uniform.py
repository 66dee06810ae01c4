"""The uniform assignor, the default one: even shares of all partitions, and few of them moved.

Balance goes before stickiness: members' loads (numbers of partitions, over all topics together)
are made as even as they can be, and what a member may then keep it keeps. Where all members
subscribe to the same topics this is arithmetic (uniform_homogeneous); where they do not, a search
(uniform_heterogeneous).

Not rack-aware: Kafka's text calls the assignor "potentially rack aware", but since 4.0 neither of
its builders asks for racks. Members' rack ids and replicas' racks change nothing here, as there.
Kafka: UniformAssignor. Where its result hangs on the order of a Java HashMap (which of the members
has one partition more, which of a topic's free partitions goes to whom), ours takes members by id
and topics by id; counts and numbers of moved partitions are the same.
"""

from .assignment import Assignment, GroupSpec, TopicsView
from .uniform_heterogeneous import HeterogeneousBuilder
from .uniform_homogeneous import assign_homogeneous


class UniformAssignor:
    """See the module."""

    name = "uniform"

    def assign(self, spec: GroupSpec, topics: TopicsView) -> dict[str, Assignment]:
        """The new target of every member; raises AssignorError for a topic that does not exist."""
        if not spec.members:
            return {}
        if spec.is_homogeneous:
            return assign_homogeneous(spec, topics)
        return HeterogeneousBuilder(spec, topics).build()
