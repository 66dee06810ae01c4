"""The voters of the metadata log. With odradek this node is the only one.

Static voters (kraft.version 0) come from configuration and are repeated in `quorum-state`. Dynamic
voters (kraft.version 1, which `format --standalone` and odradek write) are in a VotersRecord: first
in the snapshot of offset 0, then in the log, where the first LeaderChange batch repeats it. The
form of an existing directory is kept. Kafka: VoterSet, KRaftControlRecordStateMachine.
"""

from collections.abc import Iterable

from msgspec import Struct
from msgspec.structs import replace

from odradek.protocol.primitives import uuid_text
from odradek.protocol.record import Record
from odradek.protocol.records.control import (
    ControlRecordType,
    KRaftVersionFeature,
    KRaftVersionRecord,
    LeaderChangeMessage,
    LeaderChangeVoter,
    Voter,
    VoterEndpoint,
    VotersRecord,
    decode_quorum_record,
)

from .broker_registration import Endpoint
from .features import KRAFT_VERSION, SERVED
from .metadata_snapshot import CONTROL_VERSION, control_record
from .quorum_state import QuorumState
from .snapshot_batches import control_records


class NotSoleVoterError(Exception):
    """This node is not the only voter of the metadata log, so it cannot lead it."""


class QuorumMember(Struct, frozen=True, kw_only=True):
    """This node in the quorum. `endpoint` is its controller's listener, which is never opened."""

    node_id: int
    directory_id: bytes
    endpoint: Endpoint


class Quorum(Struct, frozen=True, kw_only=True):
    """The voters in a metadata directory. `voters` is None in the static form."""

    kraft_version: int = 0
    voters: VotersRecord | None = None
    voters_are_in_log: bool = False


def find_quorum(
    snapshot: Iterable[memoryview], snapshot_end_offset: int, log: Iterable[memoryview]
) -> Quorum:
    """Find the voters in the newest snapshot and then in the log.

    Voters in a snapshot of offset 0 were never in the log; any other snapshot replaces a part of
    it.
    """
    quorum = Quorum()
    for in_log, batches in ((snapshot_end_offset > 0, snapshot), (True, log)):
        for kind, record in control_records(batches):
            if kind is ControlRecordType.KRAFT_VERSION and record.value is not None:
                version = decode_quorum_record(kind, record.value)
                assert isinstance(version, KRaftVersionRecord)
                quorum = replace(quorum, kraft_version=version.kraft_version)
            elif kind is ControlRecordType.KRAFT_VOTERS and record.value is not None:
                voters = decode_quorum_record(kind, record.value)
                assert isinstance(voters, VotersRecord)
                quorum = replace(quorum, voters=voters, voters_are_in_log=in_log)
    return quorum


def check_sole_voter(quorum: Quorum, state: QuorumState | None, me: QuorumMember) -> None:
    """Raise NotSoleVoterError unless this node is the only voter."""
    if quorum.voters is None:
        voters = (state.voters if state else None) or (me.node_id,)
        if voters != (me.node_id,):
            raise NotSoleVoterError(f"the quorum's voters are {list(voters)}, not [{me.node_id}]")
        return
    named = [(voter.voter_id, voter.voter_directory_id) for voter in quorum.voters.voters]
    if named != [(me.node_id, me.directory_id)]:
        texts = [f"{voter_id} in directory {uuid_text(home)}" for voter_id, home in named]
        raise NotSoleVoterError(
            f"the quorum's voters are {', '.join(texts)}; "
            f"this is {me.node_id} in directory {uuid_text(me.directory_id)}"
        )


def sole_voter_records(me: QuorumMember) -> list[Record]:
    """Return the control records of a new dynamic quorum of this node, without timestamps."""
    return voter_records(sole_quorum(me))


def sole_quorum(me: QuorumMember) -> Quorum:
    """Return the dynamic quorum of this node alone."""
    supported = SERVED[KRAFT_VERSION]
    voter = Voter(
        voter_id=me.node_id,
        voter_directory_id=me.directory_id,
        endpoints=[
            VoterEndpoint(name=me.endpoint.name, host=me.endpoint.host, port=me.endpoint.port)
        ],
        kraft_version_feature=KRaftVersionFeature(
            min_supported_version=supported.lowest, max_supported_version=supported.highest
        ),
    )
    return Quorum(
        kraft_version=supported.highest,
        voters=VotersRecord(version=CONTROL_VERSION, voters=[voter]),
    )


def voter_records(quorum: Quorum) -> list[Record]:
    """Return the control records of a dynamic quorum, without timestamps; none for a static one."""
    if quorum.voters is None:
        return []
    version = KRaftVersionRecord(version=CONTROL_VERSION, kraft_version=quorum.kraft_version)
    return [
        control_record(ControlRecordType.KRAFT_VERSION, version),
        control_record(ControlRecordType.KRAFT_VOTERS, quorum.voters),
    ]


def epoch_start(quorum: Quorum, me: QuorumMember) -> list[Record]:
    """Return the control records that begin an epoch led by this node, without timestamps."""
    voter = LeaderChangeVoter(voter_id=me.node_id)
    change = LeaderChangeMessage(
        version=CONTROL_VERSION, leader_id=me.node_id, voters=[voter], granting_voters=[voter]
    )
    records = [control_record(ControlRecordType.LEADER_CHANGE, change)]
    if quorum.voters is not None and not quorum.voters_are_in_log:
        records += voter_records(quorum)
    return records
