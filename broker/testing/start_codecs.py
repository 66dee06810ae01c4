"""The messages that every start of a broker on an empty directory reads and writes.

Their readers and writers are compiled at first use, which takes a third of such a start. The
template compiles them before it forks, so the brokers of a session compile none of them. A test
finds what this list lacks.
"""

from collections.abc import Sequence

from odradek.protocol.records.cluster_metadata import (
    BeginTransactionRecord,
    ConfigRecord,
    EndTransactionRecord,
    FeatureLevelRecord,
    RegisterBrokerRecord,
)
from odradek.protocol.records.control import (
    ControlRecordTypeSchema,
    KRaftVersionRecord,
    LeaderChangeMessage,
    SnapshotFooterRecord,
    SnapshotHeaderRecord,
    VotersRecord,
)
from odradek.protocol.schema import Message, codec_for

# Each with its version.
READ: Sequence[tuple[type[Message], int]] = (
    (ControlRecordTypeSchema, 0),
    (FeatureLevelRecord, 0),
    (KRaftVersionRecord, 0),
    (VotersRecord, 0),
)
WRITTEN: Sequence[tuple[type[Message], int]] = (
    (BeginTransactionRecord, 0),
    (ConfigRecord, 0),
    (ControlRecordTypeSchema, 0),
    (EndTransactionRecord, 0),
    (FeatureLevelRecord, 0),
    (KRaftVersionRecord, 0),
    (LeaderChangeMessage, 0),
    (RegisterBrokerRecord, 4),
    (SnapshotFooterRecord, 0),
    (SnapshotHeaderRecord, 0),
    (VotersRecord, 0),
)


def compile_start_codecs() -> None:
    """Compile the readers and writers of these messages."""
    for message, version in READ:
        codec_for(message, version).compile_decode()
    for message, version in WRITTEN:
        codec_for(message, version).compile_write()
