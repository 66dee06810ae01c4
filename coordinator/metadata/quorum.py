"""Who votes on the metadata log: with odradek this broker, alone.

Static voters (kraft.version 0) come from configuration and are repeated in `quorum-state`. Dynamic
ones (kraft.version 1, what `format --standalone` makes, and so do we) are a VotersRecord, first in
the snapshot of offset 0, then in the log, where the first LeaderChange batch repeats it. The form
found is the form kept. Kafka: VoterSet, KRaftControlRecordStateMachine.
"""

from collections.abc import Iterable
from dataclasses import dataclass, replace

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
from .metadata_snapshot import CONTROL_VERSION, control_record, control_records
from .quorum_state import QuorumState


class NotAloneError(Exception):
    """Others vote on this metadata log, or another node does: it cannot be led by this one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class QuorumMember:
    """This node, as the quorum knows it. `endpoint` is where its controller would listen."""

    node_id: int
    directory_id: bytes
    endpoint: Endpoint


@dataclass(frozen=True, slots=True, kw_only=True)
class Quorum:
    """What a directory says of its voters. `voters` is None in the static form."""

    kraft_version: int = 0
    voters: VotersRecord | None = None
    voters_are_in_log: bool = False


def find_quorum(
    snapshot: Iterable[memoryview], snapshot_end_offset: int, log: Iterable[memoryview]
) -> Quorum:
    """The voters that the newest snapshot and then the log name.

    What a snapshot of offset 0 names was never in the log; any other stands for a part of it.
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


def check_alone(quorum: Quorum, state: QuorumState | None, me: QuorumMember) -> None:
    """Raise NotAloneError unless this node is the one voter there is."""
    if quorum.voters is None:
        voters = (state.voters if state else None) or (me.node_id,)
        if voters != (me.node_id,):
            raise NotAloneError(f"the quorum's voters are {list(voters)}, not [{me.node_id}]")
        return
    named = [(voter.voter_id, voter.voter_directory_id) for voter in quorum.voters.voters]
    if named != [(me.node_id, me.directory_id)]:
        texts = [f"{voter_id} in directory {uuid_text(place)}" for voter_id, place in named]
        raise NotAloneError(
            f"the quorum's voters are {', '.join(texts)}; "
            f"this is {me.node_id} in directory {uuid_text(me.directory_id)}"
        )


def sole_voter(me: QuorumMember) -> list[Record]:
    """A new dynamic quorum: the control records KRaftVersion and Voters, without timestamps."""
    return voter_records(sole_quorum(me))


def sole_quorum(me: QuorumMember) -> Quorum:
    """The dynamic quorum of this node alone."""
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
        kraft_version=supported.at_format,
        voters=VotersRecord(version=CONTROL_VERSION, voters=[voter]),
    )


def voter_records(quorum: Quorum) -> list[Record]:
    """What logs and snapshots say of a dynamic quorum, without timestamps; of a static: nothing."""
    if quorum.voters is None:
        return []
    version = KRaftVersionRecord(version=CONTROL_VERSION, kraft_version=quorum.kraft_version)
    return [
        control_record(ControlRecordType.KRAFT_VERSION, version),
        control_record(ControlRecordType.KRAFT_VOTERS, quorum.voters),
    ]


def epoch_start(quorum: Quorum, me: QuorumMember) -> list[Record]:
    """The control records that begin an epoch of this node's, without timestamps."""
    voter = LeaderChangeVoter(voter_id=me.node_id)
    change = LeaderChangeMessage(
        version=CONTROL_VERSION, leader_id=me.node_id, voters=[voter], granting_voters=[voter]
    )
    records = [control_record(ControlRecordType.LEADER_CHANGE, change)]
    if quorum.voters is not None and not quorum.voters_are_in_log:
        records += voter_records(quorum)
    return records
