"""Random reconciliation steps give the same results as Apache Kafka's CurrentAssignmentBuilder."""

from collections.abc import Iterator

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from odradek.coordinator.consumer_groups.member import ConsumerMember
from odradek.coordinator.consumer_groups.reconciliation import reconcile
from odradek.coordinator.modern_groups.member import MemberState
from odradek.protocol.errors import ApiError
from tests.support.consumer_members import REGEX, TOPICS, owned, targets, topic_names
from tests.support.kafka_reconciliation import KafkaReconciliation, Step
from tests.support.lengths import by_length

pytestmark = pytest.mark.java

NOBODY = ConsumerMember(member_id="m")


@pytest.fixture(scope="module")
def kafka() -> Iterator[KafkaReconciliation]:
    with KafkaReconciliation() as process:
        yield process


@st.composite
def steps(draw: st.DrawFn) -> Step:
    """Any member in any state; often at its target, and owning some of what it has."""
    epoch = draw(st.integers(0, 4))
    member = ConsumerMember(
        member_id="m",
        member_epoch=epoch,
        previous_member_epoch=draw(st.integers(-1, 4)),
        state=draw(st.sampled_from(MemberState)),
        subscribed_topics=draw(topic_names),
        subscribed_regex=draw(st.sampled_from(["", REGEX])),
        assigned=draw(owned()),
        pending_revocation=draw(owned()),
    )
    has = {topic_id: frozenset(epochs) for topic_id, epochs in member.assigned.items()}
    return Step(
        member=member,
        target=draw(targets | st.just(has)),
        target_epoch=draw(st.just(epoch) | st.integers(epoch, 5)),
        owners=draw(owned() | st.just({})),
        changed=draw(st.booleans()),
        owned=draw(st.none() | st.just({}) | st.just(has) | targets),
        names=TOPICS,
        regexes=draw(st.sampled_from([{}, {REGEX: frozenset("ab")}, {REGEX: frozenset()}])),
    )


@settings(
    max_examples=by_length(80, 8_000),
    deadline=None,
)
@example(Step(member=replace(NOBODY, member_epoch=3), target={}, target_epoch=3, names={}))
@example(
    Step(
        member=replace(NOBODY, subscribed_topics=frozenset({"not there"})),
        target={},
        target_epoch=0,
        changed=True,
        names=TOPICS,
    )
)
@given(step=steps())
def test_every_step_ends_where_kafkas_does(kafka: KafkaReconciliation, step: Step) -> None:
    try:
        expected: ConsumerMember | str = kafka.reconcile(step)
    except ApiError as error:
        expected = error.code.name
    try:
        found: ConsumerMember | str = reconcile(step.member, step.inputs())
    except ApiError as error:
        found = error.code.name
    assert found == expected
