"""The group coordinator: it serves requests, and `__consumer_offsets` is its log.

Reading order:

group_state              the groups and offsets of one partition of the log
offset_requests, offset_expiry
                         decisions about offsets: requests, and when they expire
group_shards             all partitions of the log
group_configs_by_type    the configuration of single groups
modern_group_commits     writes decisions about groups whose assignments are computed here
group_decisions, offset_deletion
                         decisions that take long, in steps
fencing                  removes members that have missed a deadline
regex_resolution         resolves the regular expressions of consumer groups
classic_group_service, consumer_group_service, share_group_service, streams_group_service
                         commit the decisions about members and keep their deadlines
member_requests, offset_service, offset_retention, group_admin
                         the parts of the coordinator, by kind of request
group_coordinator        creates the parts, and loads and unloads its shards
"""
