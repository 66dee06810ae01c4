"""Consumer groups of the new protocol (KIP-848): the coordinator computes the assignment.

Members send heartbeats. Each heartbeat may change the group, which gets a new epoch and new target
assignments. Every member then moves to its target step by step, at its own heartbeats. Decisions
return records; only replay changes the group.

Reading order:

    member, group, ownership, subscriptions   the state
    records, replay                           state to records, and back
    heartbeat_checks, heartbeat, membership   a heartbeat, from request to response
    draft, rebalance                          the steps of a decision
    target_assignment, reconciliation         the targets, and a member's way to its target
    leave, deadlines, quiet_heartbeat         how members leave; the fast path of a heartbeat
    topics_view, topic_hash                   the cluster's topics, and how changes are detected
    regex_updates, subscription_regex         subscriptions by regular expression
    commit_checks, description, group_configs offset checks, ConsumerGroupDescribe, settings
    classic_members, classic_joins, client_protocol   members that use the classic protocol
    upgrade, downgrade                        conversion from and to a classic group

`coordinator/consumer_group_service.py` connects these parts to the shards and the event loop.
"""
