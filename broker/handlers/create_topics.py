"""CreateTopics (key 19, v2-7).

Topics are there, with their logs, when the answer leaves: the client's timeout is never needed. A
name that comes twice is refused, once. v5 returns the configs of the new topic · v7 its id.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping

from odradek.broker.requests.context import RequestContext
from odradek.broker.security.authorizer import ResourceType
from odradek.broker.security.operations import AclOperation
from odradek.config.describe import ConfigSource, Layers, describe_topic
from odradek.config.topic_config import BROKER_SYNONYMS
from odradek.coordinator.metadata.topic_creation import CreatedTopic, NewTopic
from odradek.protocol.errors import ApiError, ErrorCode
from odradek.protocol.messages.create_topics import (
    CreateTopicsRequest,
    CreateTopicsResponse,
    CreateTopicsResult,
    CreateTopicsResultConfig,
    CreateTopicsTopic,
)
from odradek.storage.topic_names import CLUSTER_METADATA_TOPIC

FIRST_VERSION_WITH_CONFIGS = 5


async def handle(context: RequestContext, request: CreateTopicsRequest) -> CreateTopicsResponse:
    times = Counter(topic.name for topic in request.topics)
    once = [name for name, count in times.items() if count == 1 and name != CLUSTER_METADATA_TOPIC]
    refused = refused_topics(context, once)
    describable = {
        name
        for name in once
        if context.authorize(AclOperation.DESCRIBE_CONFIGS, ResourceType.TOPIC, name)
    }
    wishes = [wish_of(topic) for topic in request.topics if topic.name not in refused]
    results: Mapping[str, CreatedTopic | ApiError]
    try:
        results = await context.broker.topic_admin.create(
            wishes, validate_only=request.validate_only
        )
    except ApiError as error:
        results = {wish.name: error for wish in wishes}
    asked = {wish.name: wish for wish in wishes}
    created = [
        answer(context, asked[name], result, is_describable=name in describable)
        for name, result in results.items()
    ]
    return CreateTopicsResponse(
        topics=[*created, *(failed(name, error) for name, error in refused.items())]
    )


def refused_topics(context: RequestContext, names: Iterable[str]) -> dict[str, ApiError]:
    """The topics that the client may not create, with the error for each."""
    if context.authorize_cluster(AclOperation.CREATE):
        return {}
    return {
        name: ApiError(ErrorCode.TOPIC_AUTHORIZATION_FAILED, "Authorization failed.")
        for name in names
        if not context.authorize(AclOperation.CREATE, ResourceType.TOPIC, name)
    }


def wish_of(topic: CreateTopicsTopic) -> NewTopic:
    return NewTopic(
        name=topic.name,
        partition_count=topic.num_partitions,
        replication_factor=topic.replication_factor,
        assignments=[(one.partition_index, one.broker_ids) for one in topic.assignments],
        configs={config.name: config.value for config in topic.configs},
    )


def answer(
    context: RequestContext,
    wish: NewTopic,
    result: CreatedTopic | ApiError,
    *,
    is_describable: bool,
) -> CreateTopicsResult:
    if isinstance(result, ApiError):
        return failed(wish.name, result)
    if not is_describable:
        return CreateTopicsResult(
            name=result.name,
            topic_id=result.topic_id,
            topic_config_error_code=ErrorCode.TOPIC_AUTHORIZATION_FAILED,
        )
    tell_configs = context.api_version >= FIRST_VERSION_WITH_CONFIGS
    return CreateTopicsResult(
        name=result.name,
        topic_id=result.topic_id,
        num_partitions=result.partition_count,
        replication_factor=result.replication_factor,
        configs=list(effective_configs(context, wish)) if tell_configs else [],
    )


def failed(name: str, error: ApiError) -> CreateTopicsResult:
    return CreateTopicsResult(name=name, error_code=error.code, error_message=error.message)


def effective_configs(
    context: RequestContext, wish: NewTopic
) -> Iterator[CreateTopicsResultConfig]:
    """Every config of the topic, by name; values given in the request come back as they came."""
    given = {name: value for name, value in wish.configs.items() if value is not None}
    broker = context.broker
    written, dynamic = broker.config_in_force.written, broker.config_in_force.layers
    layers = (*dynamic, (ConfigSource.STATIC_BROKER, written.texts))
    entries = describe_topic(written, given, dynamic)
    for entry in sorted(entries, key=lambda entry: entry.name):
        yield CreateTopicsResultConfig(
            name=entry.name,
            value=given.get(entry.name, entry.value),
            read_only=False,
            config_source=ConfigSource.TOPIC if entry.name in given else source(entry.name, layers),
            is_sensitive=entry.is_sensitive,
        )


def source(topic_key: str, layers: Layers) -> ConfigSource:
    """Where a topic inherits a value from.

    Unlike DescribeConfigs, Kafka counts here what is written under any of the broker's names.
    """
    names = [name for name, _ in BROKER_SYNONYMS.get(topic_key, ())]
    for layer, texts in layers:
        if any(name in texts for name in names):
            return layer
    return ConfigSource.DEFAULT
