"""CreateTopics (key 19, v2-7).

The topics and their logs exist when the response is sent, so the request's timeout is not used. A
name that occurs twice is refused, with one result.
v5 returns the configs of the new topic · v7 returns its id.
"""

from collections import Counter
from collections.abc import Iterator

from odradek.broker.requests.context import RequestContext
from odradek.broker.security.operations import AclOperation, ResourceType
from odradek.config.describe import ConfigSource, Layers, describe_topic
from odradek.config.topic_config import BROKER_SYNONYMS
from odradek.coordinator.metadata.topic_creation import CreatedTopic, NewTopic
from odradek.coordinator.runtime.steps import free
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
NOT_AUTHORIZED = ApiError(ErrorCode.TOPIC_AUTHORIZATION_FAILED, "Authorization failed.")


async def handle(context: RequestContext, request: CreateTopicsRequest) -> CreateTopicsResponse:
    times = Counter(topic.name for topic in context.sliced(request.topics))
    once = [
        name
        for name in context.sliced(times)
        if times[name] == 1 and name != CLUSTER_METADATA_TOPIC
    ]
    may_create_all = context.authorize_cluster(AclOperation.CREATE, is_logged=False)
    errors = {
        name: NOT_AUTHORIZED
        for name in context.sliced(once)
        if not (may_create_all or context.authorize(AclOperation.CREATE, ResourceType.TOPIC, name))
    }
    describable = {
        name
        for name in context.sliced(once)
        if context.authorize(
            AclOperation.DESCRIBE_CONFIGS, ResourceType.TOPIC, name, is_logged=False
        )
    }
    wanted = [
        to_new_topic(context, topic)
        for topic in context.sliced(request.topics)
        if topic.name not in errors
    ]
    results: dict[str, CreatedTopic | ApiError]
    try:
        results = await context.broker.admin.topics.create(
            wanted, validate_only=request.validate_only, permits=context.permits
        )
    except ApiError as error:
        results = {topic.name: error.with_traceback(None) for topic in context.sliced(wanted)}
    new_topics = {topic.name: topic for topic in context.sliced(wanted)}
    created = [
        answer(context, new_topics[name], results[name], is_describable=name in describable)
        for name in context.sliced(results)
    ]
    created += [failed(name, errors[name]) for name in context.sliced(errors)]
    free(context.step, wanted, new_topics, results, errors)
    return CreateTopicsResponse(topics=created)


def to_new_topic(context: RequestContext, topic: CreateTopicsTopic) -> NewTopic:
    """The topic for the controller. Of the values of a key it has a null, or else the last one."""
    configs: dict[str, str | None] = {}
    for config in context.sliced(topic.configs):
        if configs.get(config.name, "") is not None:
            configs[config.name] = config.value
    return NewTopic(
        name=topic.name,
        partition_count=topic.num_partitions,
        replication_factor=topic.replication_factor,
        assignments=[
            (item.partition_index, item.broker_ids) for item in context.sliced(topic.assignments)
        ],
        configs=configs,
    )


def answer(
    context: RequestContext,
    wanted: NewTopic,
    result: CreatedTopic | ApiError,
    *,
    is_describable: bool,
) -> CreateTopicsResult:
    if isinstance(result, ApiError):
        return failed(wanted.name, result)
    if not is_describable:
        return CreateTopicsResult(
            name=result.name,
            topic_id=result.topic_id,
            topic_config_error_code=ErrorCode.TOPIC_AUTHORIZATION_FAILED,
        )
    has_configs = context.api_version >= FIRST_VERSION_WITH_CONFIGS
    return CreateTopicsResult(
        name=result.name,
        topic_id=result.topic_id,
        num_partitions=result.partition_count,
        replication_factor=result.replication_factor,
        configs=list(effective_configs(context, wanted)) if has_configs else [],
    )


def failed(name: str, error: ApiError) -> CreateTopicsResult:
    return CreateTopicsResult(name=name, error_code=error.code, error_message=error.message)


def effective_configs(
    context: RequestContext, wanted: NewTopic
) -> Iterator[CreateTopicsResultConfig]:
    """Every config of the topic, sorted by name. Values of the request are returned unchanged."""
    given = {name: value for name, value in wanted.configs.items() if value is not None}
    effective = context.broker.effective_config
    written, dynamic = effective.written, effective.layers
    layers = (*dynamic, (ConfigSource.STATIC_BROKER, written.texts))
    entries = describe_topic(effective.current, given, written, dynamic)
    for entry in sorted(entries, key=lambda entry: entry.name):
        yield CreateTopicsResultConfig(
            name=entry.name,
            value=given.get(entry.name, entry.value),
            read_only=False,
            config_source=ConfigSource.TOPIC if entry.name in given else source(entry.name, layers),
            is_sensitive=entry.is_sensitive,
        )


def source(topic_key: str, layers: Layers) -> ConfigSource:
    """The source that a topic inherits a value from.

    Unlike in DescribeConfigs, Kafka considers every name of the broker's setting here.
    """
    names = [name for name, _ in BROKER_SYNONYMS.get(topic_key, ())]
    for layer, texts in layers:
        if any(name in texts for name in names):
            return layer
    return ConfigSource.DEFAULT
