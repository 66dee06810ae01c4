"""ShareAcknowledge (key 79, v1-2).

A member of a share group acknowledges records that it has acquired with ShareFetch (KIP-932). Each
is accepted, released (delivered again) or rejected (never delivered again). Partitions fail
independently; within one partition all acknowledgements succeed or none does. With the final epoch
the member's session ends, and its other records become available.
v2 can renew acquisition locks (KIP-1222)."""

from contextlib import suppress

from odradek.broker.fetching.fetch_sessions import FINAL_EPOCH
from odradek.broker.requests.context import RequestContext
from odradek.broker.requests.named_leaders import named, note_leader_error
from odradek.broker.requests.share_requests import (
    Acknowledged,
    acknowledge_all,
    check_member,
    check_small,
)
from odradek.protocol.api_keys import ApiKey
from odradek.protocol.errors import ApiError, ErrorCode
from odradek.protocol.messages.share_acknowledge import (
    ShareAcknowledgeLeaderIdAndEpoch,
    ShareAcknowledgePartitionData,
    ShareAcknowledgeRequest,
    ShareAcknowledgeResponse,
    ShareAcknowledgeTopicResponse,
)


def handle(context: RequestContext, request: ShareAcknowledgeRequest) -> ShareAcknowledgeResponse:
    shares = context.broker.coordinators.shares
    check_small(context, request.group_id, request.topics)  # may raise NotSmallError
    try:
        member = check_member(context, request.group_id, request.member_id)
        shares.sessions.check_acknowledgement(member, request.share_session_epoch)
    except ApiError as error:
        return ShareAcknowledgeResponse(error_code=error.code, error_message=error.message)
    results = acknowledge_all(context, member, request.topics, is_renewal=request.is_renew_ack)
    if request.share_session_epoch == FINAL_EPOCH:
        # Other requests run between two slices. One of them may have ended the session.
        with suppress(ApiError):
            shares.release_session(member)
    response = ShareAcknowledgeResponse(
        acquisition_lock_timeout_ms=shares.lock_duration_ms(member.group_id),
        responses=by_topic(context, results),
    )
    return named(context, response, ApiKey.SHARE_ACKNOWLEDGE)


def by_topic(context: RequestContext, results: Acknowledged) -> list[ShareAcknowledgeTopicResponse]:
    topics: dict[bytes, ShareAcknowledgeTopicResponse] = {}
    for (topic_id, partition), error in context.sliced(iter(results.items())):
        topic = topics.setdefault(
            topic_id, ShareAcknowledgeTopicResponse(topic_id=topic_id, partitions=[])
        )
        code = ErrorCode.NONE if error is None else error.code
        note_leader_error(context, code)
        topic.partitions.append(
            ShareAcknowledgePartitionData(
                partition_index=partition,
                error_code=code,
                error_message=None if error is None else error.message,
                # Kafka's defaults.
                current_leader=ShareAcknowledgeLeaderIdAndEpoch(leader_id=0, leader_epoch=0),
            )
        )
    return list(topics.values())
