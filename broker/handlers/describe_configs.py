"""DescribeConfigs (key 32, v1-4).

Settings of topics and of this broker, each with its source and synonyms. v3 types, documentation.
The broker resource without a name means the cluster-wide defaults. Groups and client metrics have
no settings here, and so no entries; a broker's loggers are told with their levels."""

import logging
from collections.abc import Iterable, Iterator

from ...config.describe import ConfigEntry, ConfigSource, describe_broker, describe_topic
from ...coordinator.configs import ConfigResourceType
from ...protocol.errors import ApiError, ErrorCode
from ...protocol.messages.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
    DescribeConfigsResourceResult,
    DescribeConfigsResponse,
    DescribeConfigsResult,
    DescribeConfigsSynonym,
)
from ...storage.topic_names import why_illegal
from ..context import RequestContext
from ..dynamic_configs import dynamic_layers

KNOWN_TYPES = frozenset(ConfigResourceType) - {ConfigResourceType.UNKNOWN}
DYNAMIC_BROKER_LOGGER = 6  # a config source, beside those of ConfigSource
OUR_LOGGERS = "odradek"
LEVEL_NAMES = {"WARNING": "WARN", "CRITICAL": "FATAL"}


def handle(context: RequestContext, request: DescribeConfigsRequest) -> DescribeConfigsResponse:
    # As in Kafka: one resource of an unknown type, and the whole request is refused.
    types = {resource.resource_type for resource in request.resources}
    unknown = sorted(types - KNOWN_TYPES)
    if unknown:
        error = ApiError(ErrorCode.INVALID_REQUEST, f"there is no resource type {unknown[0]}")
        return DescribeConfigsResponse(
            results=[refused(resource, error) for resource in request.resources]
        )
    return DescribeConfigsResponse(
        results=[describe(context, request, resource) for resource in request.resources]
    )


def describe(
    context: RequestContext, request: DescribeConfigsRequest, resource: DescribeConfigsResource
) -> DescribeConfigsResult:
    wanted = resource.configuration_keys
    try:
        configs = [
            config
            for config in configs_of(context, request, resource)
            if not wanted or config.name in wanted
        ]
    except ApiError as error:
        return refused(resource, error)
    return DescribeConfigsResult(
        error_message="",
        resource_type=resource.resource_type,
        resource_name=resource.resource_name,
        configs=configs,
    )


def refused(resource: DescribeConfigsResource, error: ApiError) -> DescribeConfigsResult:
    return DescribeConfigsResult(
        error_code=error.code,
        error_message=error.message,
        resource_type=resource.resource_type,
        resource_name=resource.resource_name,
        configs=[],
    )


def configs_of(
    context: RequestContext, request: DescribeConfigsRequest, resource: DescribeConfigsResource
) -> Iterable[DescribeConfigsResourceResult]:
    name = resource.resource_name
    match resource.resource_type:
        case ConfigResourceType.TOPIC:
            return write(topic_entries(context, name), request)
        case ConfigResourceType.BROKER:
            return write(broker_entries(context, name), request)
        case ConfigResourceType.BROKER_LOGGER:
            check_broker_id(context, name)
            return loggers()
    if not name:
        kind = ConfigResourceType(resource.resource_type).name
        raise ApiError(ErrorCode.INVALID_REQUEST, f"a resource of type {kind} has a name")
    return ()


def topic_entries(context: RequestContext, name: str) -> Iterable[ConfigEntry]:
    problem = why_illegal(name)
    if problem is not None:
        raise ApiError(ErrorCode.INVALID_TOPIC_EXCEPTION, problem)
    metadata = context.broker.metadata
    if name not in metadata.topics:
        raise ApiError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"there is no topic {name}")
    overrides = metadata.configs.of_topic(name)
    return describe_topic(
        context.broker.config,
        overrides,
        dynamic_layers(context.broker.metadata, context.broker.node_id),
    )


def broker_entries(context: RequestContext, name: str) -> Iterable[ConfigEntry]:
    if name:
        check_broker_id(context, name)
        return describe_broker(
            context.broker.config, dynamic_layers(context.broker.metadata, context.broker.node_id)
        )
    return default_entries(context)


def default_entries(context: RequestContext) -> Iterator[ConfigEntry]:
    """What is set for all brokers of the cluster, and nothing else of those keys."""
    source = ConfigSource.DYNAMIC_DEFAULT_BROKER
    defaults = context.broker.metadata.configs.of(ConfigResourceType.BROKER, "")
    for entry in describe_broker(
        context.broker.config, dynamic_layers(context.broker.metadata, context.broker.node_id)
    ):
        if entry.name in defaults:
            synonyms = tuple(one for one in entry.synonyms if one.source is source)
            value = None if entry.is_sensitive else defaults[entry.name]
            yield entry._replace(value=value, source=source, synonyms=synonyms)


def check_broker_id(context: RequestContext, name: str) -> None:
    node_id = context.broker.node_id
    try:
        is_ours = int(name) == node_id
    except ValueError:
        raise ApiError(
            ErrorCode.INVALID_REQUEST, f"a broker id is a number, not {name!r}"
        ) from None
    if not is_ours:
        raise ApiError(ErrorCode.INVALID_REQUEST, f"this is broker {node_id}, not {name}")


def loggers() -> Iterator[DescribeConfigsResourceResult]:
    """The broker's own loggers, under the levels' names that Kafka's tools know."""
    for name, logger in sorted(logging.root.manager.loggerDict.items()):
        if isinstance(logger, logging.Logger) and name.partition(".")[0] == OUR_LOGGERS:
            level = logging.getLevelName(logger.getEffectiveLevel())
            yield DescribeConfigsResourceResult(
                name=name,
                value=LEVEL_NAMES.get(level, level),
                read_only=False,
                config_source=DYNAMIC_BROKER_LOGGER,
                is_sensitive=False,
                synonyms=[],
            )


def write(
    entries: Iterable[ConfigEntry], request: DescribeConfigsRequest
) -> Iterator[DescribeConfigsResourceResult]:
    for entry in entries:
        synonyms = [
            DescribeConfigsSynonym(name=one.name, value=one.value, source=one.source)
            for one in entry.synonyms
        ]
        yield DescribeConfigsResourceResult(
            name=entry.name,
            value=entry.value,
            read_only=entry.is_read_only,
            config_source=entry.source,
            is_sensitive=entry.is_sensitive,
            synonyms=synonyms if request.include_synonyms else [],
            config_type=entry.type,
            documentation=entry.documentation if request.include_documentation else None,
        )
