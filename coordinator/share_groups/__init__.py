"""Share groups (KIP-932): the members, which of them reads which partition, and start offsets.

The members of a share group read the same partitions together. The group coordinator knows the
members and assigns the partitions, as in a consumer group, but a partition may have several readers
and no owner, so a member moves to its target in one step. It does not know which records have been
delivered: that is kept per partition by the partition's leader (share_partitions/) and stored by
the share coordinator (share_state/). The group lists the partitions whose state is stored, and only
these are assigned.

Reading order:

    member, group          the state
    state_partitions       the partitions with stored state
    records, replay        state to records, and back
    heartbeat              a heartbeat, from request to response
    start_offsets          requests of administrators: alter and delete start offsets
    description            ShareGroupDescribe
    group_configs          settings

`groups/share_group_service` connects these parts to the shards and the share coordinator.
Kafka: the package coordinator.group.modern.share, and GroupMetadataManager.
"""
