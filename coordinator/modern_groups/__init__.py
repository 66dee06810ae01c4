"""The core of groups whose assignments the coordinator computes, independent of the group's type.

Consumer groups (KIP-848) and streams groups (KIP-1071) are built on it; share groups (KIP-932) can
be. A group has a group epoch and an assignment epoch, and each member has a member epoch. Members
send heartbeats. A heartbeat that changes the group raises the group epoch. Then an assignor
computes a target assignment for every member, and the assignment epoch becomes the group epoch. How
a member moves from what it owns to its target depends on the type of the group: a consumer must
give a partition up before another one gets it (consumer_groups/reconciliation.py), while share
groups have no owners. The records also depend on the type. So both are in the package of each type.
Kafka divides the package coordinator.group.modern in the same way.

Reading order: member and group (the state), subscriptions (members per topic), replay (of its
records), group_configs (settings), topics_view and topic_hash (the cluster's topics, and how a
group detects that they have changed), draft (a decision in progress), topic_checks,
target_assignment, deadlines (of sessions and revocations), heartbeat_fields and
commit_checks (of heartbeats and offset commits).
"""
