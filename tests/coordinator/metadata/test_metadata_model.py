"""The metadata against a model: random topics, growth, deletions, and restarts in between."""

from pathlib import Path
from tempfile import TemporaryDirectory

import hypothesis.strategies as st
from hypothesis import settings
from hypothesis.stateful import (
    Bundle,
    RuleBasedStateMachine,
    consumes,
    initialize,
    invariant,
    multiple,
    rule,
)

from odradek.coordinator.metadata.kraft_log import open_kraft_log
from odradek.coordinator.metadata.metadata_format import format_metadata
from odradek.coordinator.metadata.topic_creation import (
    CreatedTopic,
    MorePartitions,
    NewTopic,
)
from odradek.coordinator.metadata.topic_deletion import TopicRef
from odradek.protocol.errors import ApiError, ErrorCode
from tests.support.lengths import by_length
from tests.support.metadata_logs import FILES, ME, controller_of, metadata_log

NAMES = st.sampled_from(["a", "b", "a.b", "a_b", "c"])
CONFIGS = st.dictionaries(st.sampled_from(["retention.ms", "x"]), st.text(max_size=3))


class MetadataMachine(RuleBasedStateMachine):
    """Model: what each topic should look like, and the producer ids given out."""

    topics = Bundle("topics")

    def __init__(self) -> None:
        super().__init__()
        self.place = TemporaryDirectory()
        self.model: dict[str, tuple[bytes, int, dict[str, str]]] = {}
        self.epochs: dict[str, int] = {}  # of each topic's first partition
        self.ids: list[int] = []
        self.seen_topic_ids: set[bytes] = set()

    def teardown(self) -> None:
        self.place.cleanup()

    @initialize()
    def first_start(self) -> None:
        format_metadata(FILES, Path(self.place.name), ME, now_ms=0)
        self.start(clean=True)

    def start(self, *, clean: bool) -> None:
        log = metadata_log(Path(self.place.name), clean=clean)
        kraft = open_kraft_log(log, FILES, "cluster", ME, now_ms=0)
        self.controller = controller_of(kraft, default_partitions=2)
        self.controller.register_broker(
            incarnation_id=bytes(15) + b"\x11", endpoints=[], directories=[], rack=None, now_ms=0
        )
        self.controller.take_over(clean_shutdown=clean, directory_of={}, now_ms=0)

    @rule(clean=st.booleans())
    def restart(self, clean: bool) -> None:
        before = self.controller.metadata
        if clean:
            self.controller.log.close(0)
        self.start(clean=clean)
        after = self.controller.metadata
        assert after.next_producer_id == before.next_producer_id
        if clean:
            assert after.topics == before.topics
        self.epochs = {name: epoch + (not clean) for name, epoch in self.epochs.items()}

    @rule(target=topics, name=NAMES, count=st.integers(-1, 3), configs=CONFIGS)
    def create(self, name: str, count: int, configs: dict[str, str]) -> object:
        wish = NewTopic(name=name, partition_count=count, configs=configs)
        reply = self.controller.create_topics([wish], 0)[name]
        collides = any(other.replace(".", "_") == name.replace(".", "_") for other in self.model)
        if count == 0 or collides:
            assert isinstance(reply, ApiError)
            return multiple()
        assert isinstance(reply, CreatedTopic)
        assert reply.topic_id not in self.seen_topic_ids
        self.seen_topic_ids.add(reply.topic_id)
        self.model[name] = (reply.topic_id, 2 if count == -1 else count, configs)
        self.epochs[name] = 0
        return name

    @rule(name=topics, count=st.integers(0, 6))
    def grow(self, name: str, count: int) -> None:
        wish = MorePartitions(name=name, count=count)
        refusal = self.controller.create_partitions([wish], 0)[name]
        topic_id, before, configs = self.model[name]
        assert (refusal is None) == (count > before)
        if refusal is None:
            self.model[name] = (topic_id, count, configs)

    @rule(name=consumes(topics), by_id=st.booleans())
    def delete(self, name: str, by_id: bool) -> None:
        wish = TopicRef(None, self.model[name][0]) if by_id else TopicRef(name)
        (reply,) = self.controller.delete_topics([wish], 0)
        assert reply.error is None
        del self.model[name], self.epochs[name]

    @rule()
    def delete_what_is_not_there(self) -> None:
        (reply,) = self.controller.delete_topics([TopicRef("nope")], 0)
        assert reply.error is not None
        assert reply.error.code is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION

    @rule()
    def take_producer_id(self) -> None:
        self.ids.append(self.controller.producer_ids.take(0))
        assert len(set(self.ids)) == len(self.ids)

    @invariant()
    def metadata_is_the_model(self) -> None:
        if not hasattr(self, "controller"):
            return
        metadata = self.controller.metadata
        found = {
            name: (topic.id, len(topic.partitions), dict(metadata.configs.of_topic(name)))
            for name, topic in metadata.topics.items()
        }
        assert found == self.model
        counts = [len(topic.partitions) for topic in metadata.topics.values()]
        assert metadata.topics.partition_count() == sum(counts)
        assert {topic.id: topic.name for topic in metadata.topics.by_id.values()} == {
            topic_id: name for name, (topic_id, _, _) in self.model.items()
        }
        for topic in metadata.topics.values():
            assert list(topic.partitions) == list(range(len(topic.partitions)))
            assert all(partition.leader == 1 for partition in topic.partitions.values())
            assert topic.partitions[0].leader_epoch == self.epochs[topic.name]


TestMetadataMachine = MetadataMachine.TestCase
TestMetadataMachine.settings = settings(
    max_examples=by_length(8, 100), stateful_step_count=20, deadline=None
)
