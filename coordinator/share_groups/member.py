"""A member of a share group: its subscription, and the partitions that it reads."""

from odradek.coordinator.assignors.assignment import NOTHING, Assignment
from odradek.coordinator.modern_groups.member import ModernMember


class ShareMember(ModernMember, frozen=True, kw_only=True, gc=False):
    """One member. Other members may read the same partitions. Kafka: ShareGroupMember."""

    assigned: Assignment = NOTHING
