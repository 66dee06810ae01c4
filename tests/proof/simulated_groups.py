"""Members of share groups and of classic groups in simulated time."""

from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from odradek.protocol.messages.incremental_alter_configs import IncrementalAlterConfigsResponse
from odradek.protocol.messages.join_group import (
    JoinGroupRequest,
    JoinGroupRequestProtocol,
    JoinGroupResponse,
)
from odradek.protocol.messages.share_acknowledge import ShareAcknowledgeResponse
from odradek.protocol.messages.share_fetch import ShareFetchResponse
from odradek.protocol.messages.share_group_heartbeat import ShareGroupHeartbeatResponse
from odradek.protocol.messages.sync_group import (
    SyncGroupRequest,
    SyncGroupRequestAssignment,
    SyncGroupResponse,
)
from tests.support.share_requests import (
    ACCEPT,
    RELEASE,
    acknowledge,
    fetch,
    heartbeat,
    settings_of_group,
)

from .world import PARTITIONS, RETRIED, SESSION_MS, TOPIC, Client, ConnectionCutError, Place, World

CLASSIC_GROUP = "classic"
PROTOCOL = "simulated"  # the broker does not look into its assignments
REJOINED = (ErrorCode.MEMBER_ID_REQUIRED, ErrorCode.REBALANCE_IN_PROGRESS)
MAX_RECORDS = 5
GONE = (ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.FENCED_MEMBER_EPOCH)
# The session has ended with its connection, or the lock with it.
SESSION_GONE = (
    ErrorCode.SHARE_SESSION_NOT_FOUND,
    ErrorCode.INVALID_SHARE_SESSION_EPOCH,
    ErrorCode.INVALID_RECORD_STATE,
)


async def share_member(world: World, name: str) -> None:
    """Accepts some of the records that it gets, and releases others."""
    client = world.connect(name)
    await client.insist(
        settings_of_group(),
        IncrementalAlterConfigsResponse,
        1,
        lambda it: it.responses[0].error_code,
    )
    epoch, topic_id = 0, None
    while not world.is_over:
        try:
            answer = await client.ask(heartbeat(name, epoch, TOPIC), ShareGroupHeartbeatResponse, 1)
            code = ErrorCode(answer.error_code)
            if code is ErrorCode.NONE:
                epoch = answer.member_epoch
                if answer.assignment is not None and answer.assignment.topic_partitions:
                    topic_id = answer.assignment.topic_partitions[0].topic_id
                if topic_id is not None:
                    code = await _one_session(world, client, topic_id)
            if code in GONE:
                epoch = 0
            elif code and code not in RETRIED and code not in SESSION_GONE:
                world.fault(f"{name}: {code.name}")
                return
        except ConnectionCutError:
            pass
        await world.pause(world.random.choice((0.5, 0.5, 2.0, 9.0)))


async def _one_session(world: World, client: Client, topic_id: bytes) -> ErrorCode:
    """Returns the first error."""
    place = Place(TOPIC, world.random.randrange(PARTITIONS))
    known = world.known
    got = await client.ask(
        fetch(client.name, 0, topic_id, place.partition, MAX_RECORDS), ShareFetchResponse, 2
    )
    if got.error_code or not got.responses:
        return ErrorCode(got.error_code)
    [found] = got.responses[0].partitions
    offsets = [
        offset
        for each in found.acquired_records
        for offset in range(each.first_offset, each.last_offset + 1)
    ]
    again = known.accepted[place].intersection(offsets)
    if again:
        world.fault(f"{client.name}: {place}: {sorted(again)} were accepted, and are there again")
    if found.error_code or not offsets:
        return ErrorCode(found.error_code)
    await world.pause(0.2)
    types = {offset: RELEASE if world.random.random() < 0.1 else ACCEPT for offset in offsets}
    told = await client.ask(
        acknowledge(client.name, 1, topic_id, place.partition, types), ShareAcknowledgeResponse, 2
    )
    code = told.error_code or told.responses[0].partitions[0].error_code
    if not code:
        known.accepted[place].update(each for each, kind in types.items() if kind == ACCEPT)
    return ErrorCode(code)


async def classic_member(world: World, name: str) -> None:
    """A member of a classic group (JoinGroup, SyncGroup, Heartbeat), which is away now and then."""
    client = world.connect(name)
    member_id = ""
    while not world.is_over:
        try:
            member_id, code = await _one_generation(world, client, member_id)
        except ConnectionCutError:
            continue
        if code in (ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.ILLEGAL_GENERATION):
            member_id = ""
        elif code and code not in REJOINED and code not in RETRIED:
            world.fault(f"{name}: {code.name}")
            return
        await world.pause(0.5)


async def _one_generation(world: World, client: Client, member_id: str) -> tuple[str, ErrorCode]:
    """Join, and beat until an error, which is returned with the member's id."""
    join = JoinGroupRequest(
        group_id=CLASSIC_GROUP,
        session_timeout_ms=SESSION_MS,
        rebalance_timeout_ms=SESSION_MS,
        member_id=member_id,
        protocol_type=PROTOCOL,
        protocols=[JoinGroupRequestProtocol(name=PROTOCOL, metadata=b"")],
    )
    joined = await client.ask(join, JoinGroupResponse, 9)
    member_id = joined.member_id or member_id
    if joined.error_code:
        return member_id, ErrorCode(joined.error_code)
    members = sorted(each.member_id for each in joined.members)  # none but for the leader
    assignments = [
        SyncGroupRequestAssignment(
            member_id=each, assignment=bytes(range(index, PARTITIONS, len(members)))
        )
        for index, each in enumerate(members)
    ]
    sync = SyncGroupRequest(
        group_id=CLASSIC_GROUP,
        generation_id=joined.generation_id,
        member_id=member_id,
        protocol_type=PROTOCOL,
        protocol_name=PROTOCOL,
        assignments=assignments,
    )
    beat = HeartbeatRequest(
        group_id=CLASSIC_GROUP, generation_id=joined.generation_id, member_id=member_id
    )
    synced = await client.ask(sync, SyncGroupResponse, 5)
    if synced.error_code:
        return member_id, ErrorCode(synced.error_code)
    for partition in synced.assignment:
        owner = world.known.classic_owners.setdefault((joined.generation_id, partition), member_id)
        if owner != member_id:
            world.fault(
                f"in generation {joined.generation_id}, {partition} is of {owner} and {member_id}"
            )
    while not world.is_over:
        await world.pause(world.random.choice((1.0, 1.0, 1.0, 9.0)))
        answer = await client.ask(beat, HeartbeatResponse, 4)
        if answer.error_code:
            return member_id, ErrorCode(answer.error_code)
    return member_id, ErrorCode.NONE
