"""Broker state that is not in partition logs: cluster metadata, groups, committed offsets.

Each kind of state is a state machine over one internal log. A request is decided on (an Outcome:
records and a reply), its records are appended, and replaying them changes the state. A restart
replays the same records.

Reading order. What every coordinator can use, which knows no groups:

outcome, record_codec    what a state machine returns; typed records and their bytes
journal, sliced_replay   append and replay; load a log at start
shards, load_queue       the partitions of an internal topic, loaded or not; loading while serving
timers, alarm            deadlines (the time is an argument); the event loop's timer for them
parked_replies           replies that wait for other requests

The cluster:

metadata/                topics, configs, features, brokers: the log `__cluster_metadata`

The state of groups, and the decisions about it:

caller, group_settings   the client that sent a request to a group; the configuration of groups
group                    what groups of all types have in common
classic_groups/          groups whose leader assigns the partitions
assignors/, modern_groups/, consumer_groups/, share_groups/, streams_groups/
                         groups whose partitions or tasks the coordinator assigns (KIP-848,
                         KIP-932, KIP-1071): the assignors, what does not depend on the type of
                         group, and a folder for each type
offsets, group_state     committed offsets; the groups and offsets of one log partition of
                         `__consumer_offsets`
offset_requests, offset_expiry
                         decisions about offsets: requests, and when they expire

Transactions:

transactions/            the states of transactional ids, the decisions about them, the markers
transaction_coordinator  serves requests, and aborts transactions that take too long

Share groups (KIP-932), apart from their members:

share_partitions/        the records of a partition that are in flight: the state of its leader
share_state/             that state as it is stored in `__share_group_state`
share_coordinator        stores it, and serves requests

The group coordinator, which serves requests:

group_shards             the shards of `__consumer_offsets`
modern_group_commits     writes decisions about groups whose assignments are computed here
classic_group_service, consumer_group_service, share_group_service, streams_group_service
                         commit the decisions about members and keep their deadlines
group_decisions, offset_deletion
                         decisions that take long, in steps
member_requests, offset_service, offset_retention, group_admin
                         the parts of the coordinator, by kind of request
group_coordinator        creates the parts, and loads and unloads its shards

The event loop is used by alarm, load_queue, parked_replies, consumer_group_service and
offset_retention; group_coordinator and member_requests pass it on. No module reads a clock.
"""

if __name__ != "odradek.coordinator":
    raise ImportError("import odradek.coordinator, not coordinator")
