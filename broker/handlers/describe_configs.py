"""DescribeConfigs (key 32, v1-4).

Describes the configs of topics, of this broker, of groups and of client metrics, each with its
source and synonyms, and the levels of the broker's loggers. A broker resource without a name stands
for the overrides of all brokers.
v3 adds the type and the documentation of each config."""

from collections.abc import Iterable, Iterator

from odradek.broker.admin.config_admin import node_id_of
from odradek.broker.admin.log_levels import levels
from odradek.broker.requests.config_access import check_config_access
from odradek.broker.requests.context import RequestContext
from odradek.broker.security.operations import AclOperation
from odradek.config.describe import (
    ConfigEntry,
    ConfigSource,
    Layers,
    describe_broker,
    describe_client_metrics,
    describe_group,
    describe_topic,
)
from odradek.coordinator.metadata.configs import ConfigResourceType
from odradek.coordinator.runtime.steps import free
from odradek.protocol.errors import ApiError, ErrorCode
from odradek.protocol.messages.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
    DescribeConfigsResourceResult,
    DescribeConfigsResponse,
    DescribeConfigsResult,
    DescribeConfigsSynonym,
)
from odradek.storage.topic_names import why_illegal

KNOWN_TYPES = frozenset(ConfigResourceType) - {ConfigResourceType.UNKNOWN}


def handle(context: RequestContext, request: DescribeConfigsRequest) -> DescribeConfigsResponse:
    # As in Kafka, one resource of an unknown type makes the whole request fail.
    unknown = sorted(
        {resource.resource_type for resource in context.sliced(request.resources)} - KNOWN_TYPES
    )
    if unknown:
        error = ApiError(ErrorCode.INVALID_REQUEST, f"there is no resource type {unknown[0]}")
        return DescribeConfigsResponse(
            results=[
                resource_with_error(resource, error)
                for resource in context.sliced(request.resources)
            ]
        )
    return DescribeConfigsResponse(
        results=[
            describe(context, request, resource) for resource in context.sliced(request.resources)
        ]
    )


def describe(
    context: RequestContext, request: DescribeConfigsRequest, resource: DescribeConfigsResource
) -> DescribeConfigsResult:
    wanted = dict.fromkeys(context.sliced(resource.configuration_keys or ()))
    try:
        operation = AclOperation.DESCRIBE_CONFIGS
        check_config_access(context, operation, resource.resource_type, resource.resource_name)
        configs = [
            config
            for config in context.sliced(configs_of(context, request, resource))
            if not wanted or config.name in wanted
        ]
    except ApiError as error:
        return resource_with_error(resource, error)
    finally:
        free(context.step, wanted)
    return DescribeConfigsResult(
        error_message="",
        resource_type=resource.resource_type,
        resource_name=resource.resource_name,
        configs=configs,
    )


def resource_with_error(
    resource: DescribeConfigsResource, error: ApiError
) -> DescribeConfigsResult:
    return DescribeConfigsResult(
        error_code=error.code,
        error_message=error.message,
        resource_type=resource.resource_type,
        resource_name=resource.resource_name,
        configs=[],
    )


def configs_of(
    context: RequestContext, request: DescribeConfigsRequest, resource: DescribeConfigsResource
) -> Iterator[DescribeConfigsResourceResult]:
    name = resource.resource_name
    match resource.resource_type:
        case ConfigResourceType.TOPIC:
            return described(topic_entries(context, name), request)
        case ConfigResourceType.BROKER:
            return described(broker_entries(context, name), request)
        case ConfigResourceType.BROKER_LOGGER:
            check_broker_id(context, name)
            return loggers()
    return described(
        named_entries(context, ConfigResourceType(resource.resource_type), name), request
    )


def topic_entries(context: RequestContext, name: str) -> Iterable[ConfigEntry]:
    problem = why_illegal(name)
    if problem is not None:
        raise ApiError(ErrorCode.INVALID_TOPIC_EXCEPTION, problem)
    metadata = context.broker.metadata
    if name not in metadata.topics:
        raise ApiError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"there is no topic {name}")
    effective = context.broker.effective_config
    overrides = metadata.configs.of_topic(name)
    return describe_topic(effective.current, overrides, effective.written, effective.layers)


def named_entries(
    context: RequestContext, kind: ConfigResourceType, name: str
) -> Iterable[ConfigEntry]:
    """The configs of a group or client metrics subscription, which need not exist."""
    if not name:
        raise ApiError(ErrorCode.INVALID_REQUEST, f"a resource of type {kind.name} has a name")
    effective = context.broker.effective_config
    stored = context.broker.metadata.configs.of(kind, name)
    if kind is ConfigResourceType.GROUP:
        return describe_group(effective.written, stored, effective.layers)
    return describe_client_metrics(stored)


def broker_entries(context: RequestContext, name: str) -> Iterable[ConfigEntry]:
    if name:
        check_broker_id(context, name)
    effective = context.broker.effective_config
    entries = describe_broker(effective.written, effective.layers)
    if name:
        return entries
    return overrides_of_all_brokers(context.sliced(entries), effective.layers)


def overrides_of_all_brokers(
    entries: Iterable[ConfigEntry], layers: Layers
) -> Iterator[ConfigEntry]:
    """The entries that are overridden for all brokers, without values of other sources."""
    source = ConfigSource.DYNAMIC_DEFAULT_BROKER
    overrides = dict(layers).get(source, {})
    for entry in entries:
        if entry.name in overrides:
            synonyms = tuple(item for item in entry.synonyms if item.source is source)
            value = None if entry.is_sensitive else overrides[entry.name]
            yield entry._replace(value=value, source=source, synonyms=synonyms)


def check_broker_id(context: RequestContext, name: str) -> None:
    node_id = context.broker.nodes.own_id
    if node_id_of(name) != node_id:
        raise ApiError(ErrorCode.INVALID_REQUEST, f"this is broker {node_id}, not {name}")


def loggers() -> Iterator[DescribeConfigsResourceResult]:
    """The broker's loggers, with Kafka's names of the levels."""
    for name, level in levels().items():
        yield DescribeConfigsResourceResult(
            name=name,
            value=level,
            read_only=False,
            config_source=ConfigSource.BROKER_LOGGER,
            is_sensitive=False,
            synonyms=[],
        )


def described(
    entries: Iterable[ConfigEntry], request: DescribeConfigsRequest
) -> Iterator[DescribeConfigsResourceResult]:
    for entry in entries:
        synonyms = [
            DescribeConfigsSynonym(name=item.name, value=item.value, source=item.source)
            for item in entry.synonyms
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
