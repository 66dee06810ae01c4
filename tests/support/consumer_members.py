"""Members of consumer groups, at random: hypothesis strategies, and a few topics for them."""

from hypothesis import strategies as st

from odradek.coordinator.consumer_groups.group import ConsumerGroup
from odradek.coordinator.consumer_groups.member import ConsumerMember
from odradek.coordinator.modern_groups.member import MemberState
from odradek.protocol.records.consumer_group import ClassicMemberMetadata, ClassicProtocol

TOPICS = {name: bytes(15) + bytes([index]) for index, name in enumerate("abc", 2)}
IDS = tuple(TOPICS.values())
GONE = b"\xfe" * 16  # the id of a topic that is no more
REGEX = "[ab]"

texts = st.text(max_size=4)
topic_names = st.frozensets(st.sampled_from([*TOPICS, "not there"]), max_size=4)
targets = st.dictionaries(
    st.sampled_from([*IDS, GONE]), st.frozensets(st.integers(0, 3), min_size=1), max_size=4
)


def all_subscribe_alike(group: ConsumerGroup) -> bool:
    """Whether the members of a group that has some are all subscribed to the same, as they are."""
    anybody = next(iter(group.members.values()))
    return group.is_homogeneous_if(anybody, anybody)


def owned(max_epoch: int = 9) -> st.SearchStrategy[dict[bytes, dict[int, int]]]:
    """Partitions with their epochs; no topic stands there with none."""
    partitions = st.dictionaries(st.integers(0, 3), st.integers(0, max_epoch), min_size=1)
    return st.dictionaries(st.sampled_from([*IDS, GONE]), partitions, max_size=4)


classics = st.builds(
    ClassicMemberMetadata,
    session_timeout_ms=st.integers(0, 2**31 - 1),
    supported_protocols=st.lists(
        st.builds(ClassicProtocol, name=texts, metadata=st.binary(max_size=3)), max_size=2
    ),
)

members = st.builds(
    ConsumerMember,
    member_id=st.text(min_size=1, max_size=4),
    member_epoch=st.integers(-2, 9),
    previous_member_epoch=st.integers(-1, 9),
    state=st.sampled_from(MemberState),
    instance_id=st.none() | texts,
    rack_id=st.none() | texts,
    rebalance_timeout_ms=st.integers(-1, 2**31 - 1),
    client_id=texts,
    client_host=texts,
    subscribed_topics=topic_names,
    subscribed_regex=st.sampled_from(["", REGEX]),
    server_assignor=st.none() | st.sampled_from(["uniform", "range"]),
    assigned=owned(),
    pending_revocation=owned(),
    classic=st.none() | classics,
)
