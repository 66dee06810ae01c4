"""Streams groups (KIP-1071): the coordinator assigns the tasks of Kafka Streams applications.

A member is a thread of the application. It sends the application's topology when it joins. The
coordinator compares the topology with the cluster's topics, has missing internal topics created,
and assigns one task for each partition of each subtopology. Members move to their targets step by
step, at their heartbeats, as in a consumer group. As in Kafka 4.4.0 there are no warm-up
tasks, and no topologies that change.

Reading order:

    tasks, task_offsets, topology      what is assigned, how far its state has been restored, and
                                       what the application looks like
    member, task_owners, group         the state (modern_groups/ has what all types share)
    records, replay                    state to records, and back
    status, partition_counts, configuration
                                       the topology and the cluster's topics: ready, or why not
    process_load, sticky_assignor      assigns tasks to members
    group_configs, deadlines, draft    settings, deadlines, a decision in progress
    heartbeat_checks, membership, heartbeat, heartbeat_response
                                       a heartbeat, from request to response
    rebalance                          the steps of a decision
    reconciliation                     one step of a member towards its target
    endpoints                          which instance has which partitions, for queries of stores
    leave                              how members leave or are removed
    commit_checks                      checks of offset commits and fetches
    description                        StreamsGroupDescribe

`coordinator/groups/streams_group_service.py` connects these parts to the shards and the event loop.
"""
