"""Broker state that is not in partition logs: cluster metadata, groups, committed offsets.

Each kind of state is a state machine over one internal log. A request is decided on (an Outcome:
records and a reply), its records are appended, and replaying them changes the state. A restart
replays the same records.

Reading order:

outcome, record_codec    what a state machine returns; typed records and their bytes
journal, sliced_replay   append and replay; load a log at start
timers, group_settings   deadlines (the time is an argument); the configuration of groups
metadata/                topics, configs, features, brokers: the log `__cluster_metadata`
caller                   the client that sent a request to a group
group, group_state       what all groups share; the groups and offsets of one log partition of
                         `__consumer_offsets` (other_group: types of group that are not served)
offsets, offset_requests, offset_expiry
                         committed offsets: the state, the requests, when they expire
classic_groups/          groups whose leader assigns the partitions
assignors/, modern_groups/, consumer_groups/
                         groups whose partitions the coordinator assigns (KIP-848): the
                         assignors, what does not depend on the type of group, consumer groups
group_shards             the partitions of `__consumer_offsets`, loaded or not
parked_replies           replies that wait for other requests
group_coordinator, consumer_group_service
                         the entry points of requests: the only modules that use the event loop,
                         besides parked_replies
"""

if __name__ != "odradek.coordinator":
    raise ImportError("import odradek.coordinator, not coordinator")
