"""Broker state that is not in partition logs: cluster metadata, groups, committed offsets.

Each kind of state is a state machine over one internal log. A request is decided on (an Outcome:
records and a reply), its records are appended, and replaying them changes the state. A restart
replays the same records.

Reading order; a line knows only those above it:

java/                    what only Java does: its hashes, and the order of its queues
runtime/                 what every state machine has: outcome, journal, shards, timers
assignors/               which member gets which partitions
metadata/                topics, configs, features, brokers: the log `__cluster_metadata`
transactions/            transactional ids, the decisions about them, the markers
share_state/             what share groups have delivered: the log `__share_group_state`
any_group/               what groups of all types have, and committed offsets
classic_groups/          groups whose leader assigns the partitions
modern_groups/           what groups have whose partitions the coordinator assigns
share_partitions/        the records of a partition that are in flight to a share group
consumer_groups/, share_groups/, streams_groups/
                         those groups by type (KIP-848, KIP-932, KIP-1071)
groups/                  the group coordinator, which serves requests: `__consumer_offsets`

The event loop is used by runtime/alarm, load_queue and parked_replies, and by
groups/consumer_group_service and offset_retention; group_coordinator and member_requests pass it
on. No module reads a clock.
"""

if __name__ != "odradek.coordinator":
    raise ImportError("import odradek.coordinator, not coordinator")
