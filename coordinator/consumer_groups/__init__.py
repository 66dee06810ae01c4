"""Consumer groups of the new protocol (KIP-848): the coordinator computes the assignment.

Members send heartbeats. Each heartbeat may change the group, which gets a new epoch and new target
assignments. Every member then moves to its target step by step, at its own heartbeats. Decisions
return records; only replay changes the group.

Reading order:

    member, group                      the state, with ownership and subscriptions
                                       (what all types of group share is in modern_groups/)
    records, replay                    state to records, and back
    heartbeat_checks, heartbeat        a heartbeat, from request to response
    membership                         finds the member of a request
    draft, rebalance                   the steps of a decision
    reconciliation                     one step of a member towards its target
    leave, deadlines                   how members leave or are removed
    quiet_heartbeat                    the fast path of a heartbeat
    regex_updates, subscription_regex  subscriptions by regular expression
    commit_checks                      checks of offset commits and fetches
    description                        ConsumerGroupDescribe
    classic_members, classic_joins     members that use the classic protocol
    client_protocol                    their subscriptions and assignments as bytes
    upgrade, downgrade                 conversion from and to a classic group

`groups/consumer_group_service` connects these parts to the shards and the event loop.
"""
