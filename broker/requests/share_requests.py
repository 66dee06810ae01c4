"""Checks of the requests of share groups (KIP-932), and their acknowledgements.

Kafka: KafkaApis.handleAcknowledgements, validateAcknowledgementBatches.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Protocol

from odradek.broker.security.authorizer import refusal
from odradek.broker.security.operations import AclOperation, ResourceType
from odradek.broker.shares.sessions import Place, SessionKey
from odradek.coordinator.modern_groups.heartbeat_fields import invalid_request
from odradek.coordinator.share_groups.heartbeat import check_member_id
from odradek.coordinator.share_partitions.changes import Acknowledgement, AcknowledgeType
from odradek.coordinator.share_state.share_partition_key import SharePartitionKey
from odradek.protocol.compiler import NotSmallError
from odradek.protocol.errors import ApiError, ErrorCode
from odradek.protocol.primitives import uuid_text

from .context import RequestContext

FIRST_VERSION_WITH_RENEWAL = 2  # of both APIs
# A request about share-partitions with more records in flight, or stored batches, is served in
# slices (broker/turns/slices.py), because an acknowledgement may be about all records in flight.
MAX_SMALL_IN_FLIGHT = 500
ALL_TYPES = frozenset(AcknowledgeType)
TYPES_WITHOUT_RENEWAL = ALL_TYPES - {AcknowledgeType.RENEW}

# The error of each partition that was acknowledged; None: it succeeded.
Acknowledged = Mapping[Place, ApiError | None]


class AcknowledgedTopic(Protocol):
    """A topic of a request, with the acknowledgements of its partitions."""

    @property
    def topic_id(self) -> bytes: ...

    @property
    def partitions(self) -> Sequence[Any]: ...


def check_enabled(context: RequestContext) -> None:
    """Raise ApiError UNSUPPORTED_VERSION unless share groups are served."""
    if not context.broker.coordinators.serves_share_groups:
        raise ApiError(ErrorCode.UNSUPPORTED_VERSION, "share groups are not enabled")


def check_member(
    context: RequestContext, group_id: str | None, member_id: str | None
) -> SessionKey:
    """Check the group and the member of a request, and return the key of their session.

    Raises ApiError: UNSUPPORTED_VERSION, INVALID_REQUEST, GROUP_AUTHORIZATION_FAILED.
    """
    check_enabled(context)
    if group_id is None:
        raise invalid_request("the group id is missing")
    context.check_group(AclOperation.READ, group_id)
    return SessionKey(group_id, check_member_id(member_id))


def check_place(context: RequestContext, place: Place) -> None:
    """Check that the client may read a partition, and that there is one.

    Raises ApiError: UNKNOWN_TOPIC_ID, TOPIC_AUTHORIZATION_FAILED, UNKNOWN_TOPIC_OR_PARTITION.
    """
    topic_id, partition = place
    name = context.broker.topic_name(topic_id)
    if not context.authorize(AclOperation.READ, ResourceType.TOPIC, name):
        raise refusal(ResourceType.TOPIC)
    if partition not in context.broker.metadata.topics[name].partitions:
        text = f"topic {uuid_text(topic_id)} has no partition {partition}"
        raise ApiError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, text)


def check_small(
    context: RequestContext, group_id: str | None, topics: Iterable[AcknowledgedTopic]
) -> None:
    """Raise NotSmallError if a request may be about many records, unless it is served in slices.

    The dispatcher then serves it again in slices. A request is about many records if it
    acknowledges some in a share-partition with many in flight, or opens one with many stored
    batches.
    """
    if context.slices is not None:
        return
    shares = context.broker.coordinators.shares
    for topic in topics:
        for partition in topic.partitions:
            key = SharePartitionKey(group_id or "", topic.topic_id, partition.partition_index)
            acknowledges = bool(partition.acknowledgement_batches)
            count = (shares.in_flight_count if acknowledges else shares.batches_to_open)(key)
            if count > MAX_SMALL_IN_FLIGHT:
                raise NotSmallError


def acknowledge_all(
    context: RequestContext,
    member: SessionKey,
    topics: Iterable[AcknowledgedTopic],
    *,
    is_renewal: bool,
) -> Acknowledged:
    """Acknowledge what a request says of each partition. One fails without the others.

    A partition without acknowledgements succeeds, but as in Kafka it has a result only if another
    one was acknowledged. If a request names a partition again, its last entry counts. Between two
    partitions, or two decisions about acknowledgements, others may be served.

    `is_renewal`: the request may renew locks, by acknowledgements of type RENEW.
    """
    may_renew = context.api_version >= FIRST_VERSION_WITH_RENEWAL and is_renewal
    results: dict[Place, ApiError | None] = {}
    empty: set[Place] = set()
    has_acknowledged = False
    batches_of = {
        (topic.topic_id, partition.partition_index): partition.acknowledgement_batches
        for topic in context.sliced(topics)
        for partition in context.sliced(topic.partitions)
    }
    for place, batches in context.sliced(iter(batches_of.items())):
        acknowledgements = [
            Acknowledgement(batch.first_offset, batch.last_offset, batch.acknowledge_types)
            for batch in context.sliced(batches)
        ]
        results[place] = None
        try:
            context.broker.topic_name(place[0])  # raises if there is no such topic
            check_acknowledgements(context.sliced(acknowledgements), may_renew=may_renew)
            check_place(context, place)
            if acknowledgements:
                has_acknowledged = True
                key = SharePartitionKey(member.group_id, *place)
                shares = context.broker.coordinators.shares
                shares.acknowledge(key, member.member_id, acknowledgements, context.step)
            else:
                empty.add(place)
        except ApiError as error:
            results[place] = error.with_traceback(None)
    if not has_acknowledged:
        for place in context.sliced(iter(empty)):
            del results[place]
    return results


def check_acknowledgements(acknowledgements: Iterable[Acknowledgement], *, may_renew: bool) -> None:
    """Raise ApiError INVALID_REQUEST unless they are in order, and of known types.

    One may begin at the last offset of the one before, as in Kafka.
    """
    allowed = ALL_TYPES if may_renew else TYPES_WITHOUT_RENEWAL
    previous_last = -1
    for acknowledgement in acknowledgements:
        first, last, types = acknowledgement
        if first > last:
            raise invalid_request(f"{first} to {last} ends before it begins")
        if first < previous_last:
            raise invalid_request(f"{first} to {last} does not follow {previous_last}")
        if not types or (len(types) > 1 and last - first != len(types) - 1):
            raise invalid_request(f"{first} to {last} has {len(types)} types")
        if not allowed.issuperset(types):
            raise invalid_request(f"{first} to {last} has a type that is not known, or not allowed")
        previous_last = last
