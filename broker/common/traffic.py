"""Counts what clients send and get: by API and version, and by topic.

Requests add to plain numbers here. What was appended is read from the logs when the metrics are
read, because that costs an append nothing. If a topic is deleted, its last appends are missing.

Every request is counted. Timing each of them would be most of the cost, so after a timed request of
an API's version those of the next milliseconds are not timed: it stands for them.
Kafka: RequestMetrics, BrokerTopicMetrics, LogFlushStats.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable

from odradek.coordinator.metadata.topics import Topic, TopicEvent, Topics
from odradek.protocol.api_keys import ApiKey
from odradek.storage.log import PartitionLog

from .durations import Durations

TIMED_EVERY_MS = 10
PART = 500  # topics that are added up between two steps


class RequestTraffic:
    """The requests of one version of an API.

    `untimed` are those since the last one that was timed, at `timed_at_ms`. That is the wall clock,
    which is read for each request anyway; after it has jumped, the next request is timed.
    `unanswered` were timed, and failed or lost their client.
    """

    __slots__ = ("_answered", "_last_s", "timed_at_ms", "unanswered", "untimed")

    def __init__(self) -> None:
        self._answered = Durations()
        self._last_s = 0.0
        self.timed_at_ms = 0
        self.untimed = 0
        self.unanswered = 0

    def time(self, seconds: float) -> None:
        """Count a request with its time. The untimed ones before it took as long as the last."""
        self._add_untimed()
        self._answered.add(seconds)
        self._last_s = seconds

    @property
    def answered(self) -> Durations:
        """The times of all requests that were answered."""
        self._add_untimed()
        return self._answered

    @property
    def count(self) -> int:
        """How many requests there were."""
        return self.answered.count + self.unanswered

    def _add_untimed(self) -> None:
        if self.untimed:
            self._answered.add(self._last_s, self.untimed)
            self.untimed = 0


class TopicTraffic:
    """The batches of one topic. The `failed_` ones are partitions of requests, refused."""

    __slots__ = (
        "bytes_in",
        "bytes_out",
        "failed_fetch",
        "failed_produce",
        "messages_in",
    )

    def __init__(self) -> None:
        self.messages_in = 0
        self.bytes_in = 0
        self.failed_produce = 0
        self.bytes_out = 0
        self.failed_fetch = 0

    def add(self, other: "TopicTraffic") -> None:
        """Add the counts of another topic."""
        for name in self.__slots__:
            setattr(self, name, getattr(self, name) + getattr(other, name))


class Traffic:
    """All counts of a broker. `without_topic`: of topics that do not exist, or no longer."""

    def __init__(self, existing: Topics) -> None:
        self.requests: dict[ApiKey, dict[int, RequestTraffic]] = {}  # by API and version
        self.topics: defaultdict[str, TopicTraffic] = defaultdict(TopicTraffic)
        self.without_topic = TopicTraffic()
        self.syncs = Durations()
        self.by_key = TrafficByKey(self, existing)
        self._existing = existing
        existing.on_change.append(self._forget_deleted)

    def of_api(self, key: ApiKey, version: int) -> RequestTraffic:
        """The requests of one version of an API."""
        return self.requests.setdefault(key, {}).setdefault(version, RequestTraffic())

    def count_appends(self, logs: Iterable[PartitionLog]) -> None:
        """Count what was appended since the last call, or since a log was opened."""
        for log in logs:
            if log.appended_bytes:  # few logs of many
                records, appended_bytes = log.take_appended()
                counts = self._of_log(log)
                counts.messages_in += records
                counts.bytes_in += appended_bytes

    def _of_log(self, log: PartitionLog) -> TopicTraffic:
        """The counts of a log's topic. A topic may be deleted before its logs are."""
        topic = self._existing.get(log.topic)
        exists = topic is not None and topic.id == log.topic_id
        return self.topics[log.topic] if exists else self.without_topic

    def _forget_deleted(self, topic: Topic, event: TopicEvent) -> None:
        """Move the counts of a deleted topic to `without_topic`: the totals never go down.

        Kafka: BrokerTopicStats.removeMetrics.
        """
        if event is TopicEvent.DELETED:
            self.by_key.pop(topic.name, None)
            self.by_key.pop(topic.id, None)
            counts = self.topics.pop(topic.name, None)
            if counts is not None:
                self.without_topic.add(counts)

    def totals(self, step: Callable[[], object]) -> TopicTraffic:
        """The sums of all fields over all topics. `step` is called after some of them."""
        totals = TopicTraffic()
        counted = [self.without_topic, *self.topics.values()]
        for start in range(0, len(counted), PART):
            step()
            part = counted[start : start + PART]
            totals.messages_in += sum([counts.messages_in for counts in part])
            totals.bytes_in += sum([counts.bytes_in for counts in part])
            totals.bytes_out += sum([counts.bytes_out for counts in part])
            totals.failed_produce += sum([counts.failed_produce for counts in part])
            totals.failed_fetch += sum([counts.failed_fetch for counts in part])
        return totals


class TrafficByKey(dict[str | bytes, TopicTraffic]):
    """Finds the counts of a topic by the name or id that a client has sent."""

    def __init__(self, traffic: Traffic, existing: Topics) -> None:
        self._traffic = traffic
        self._existing = existing

    def __missing__(self, key: str | bytes) -> TopicTraffic:
        """The counts of a topic that was not looked up before."""
        existing = self._existing
        topic = existing.get(key) if isinstance(key, str) else existing.by_id.get(key)
        if topic is None:
            return self._traffic.without_topic
        counts = self[key] = self._traffic.topics[topic.name]
        return counts
