"""The settings of a topic, each with the source of its value."""

from __future__ import annotations

from msgspec import field

from odradek.broker.console.calls import Call
from odradek.broker.console.config_words import source_name, type_name
from odradek.broker.console.endpoints import Endpoint, Nothing
from odradek.broker.console.refusals import check_code
from odradek.broker.console.view import View
from odradek.coordinator.metadata.config_changes import AlterOperation
from odradek.coordinator.metadata.configs import ConfigResourceType
from odradek.protocol.messages.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
    DescribeConfigsResponse,
)
from odradek.protocol.messages.incremental_alter_configs import (
    IncrementalAlterConfigsConfig,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResource,
    IncrementalAlterConfigsResponse,
)

from .topic import TopicRequest


class ConfigSynonym(View):
    """A source that has a value, and the setting's name there."""

    name: str
    value: str | None
    source: str


class ConfigView(View):
    """A setting. `synonyms` are all sources that have a value; the first one is used.

    `value` is null if it is a secret. `source` and `type` are Kafka's words.
    """

    name: str
    value: str | None
    type: str
    source: str
    is_sensitive: bool
    is_read_only: bool
    documentation: str | None
    synonyms: list[ConfigSynonym]


class TopicConfigView(View):
    """All settings of a topic, by name."""

    configs: list[ConfigView]


class TopicConfigChange(TopicRequest):
    """Values to set on the topic, and names whose values are removed from it."""

    set: dict[str, str] = field(default_factory=dict)
    remove: list[str] = field(default_factory=list)
    validate_only: bool = False


async def topic_config(call: Call, request: TopicRequest) -> TopicConfigView:
    """Make the view. Needs DESCRIBE_CONFIGS on the topic."""
    wanted = DescribeConfigsResource(
        resource_type=ConfigResourceType.TOPIC,
        resource_name=request.topic,
        configuration_keys=None,
    )
    answer = await call.ask(
        DescribeConfigsRequest(
            resources=[wanted], include_synonyms=True, include_documentation=True
        ),
        DescribeConfigsResponse,
    )
    (result,) = answer.results
    check_code(result.error_code, result.error_message)
    configs = [
        ConfigView(
            name=each.name,
            value=each.value,
            type=type_name(each.config_type),
            source=source_name(each.config_source),
            is_sensitive=each.is_sensitive,
            is_read_only=each.read_only,
            documentation=each.documentation,
            synonyms=[
                ConfigSynonym(
                    name=synonym.name, value=synonym.value, source=source_name(synonym.source)
                )
                for synonym in each.synonyms
            ],
        )
        for each in call.sliced(result.configs)
    ]
    return TopicConfigView(configs=sorted(configs, key=lambda each: each.name))


async def change_topic_config(call: Call, request: TopicConfigChange) -> Nothing:
    """Change settings of a topic: all that the request has, or nothing. Raises ApiError."""
    changes: list[tuple[str, AlterOperation, str | None]] = [
        (name, AlterOperation.SET, value) for name, value in request.set.items()
    ]
    changes += [(name, AlterOperation.DELETE, None) for name in request.remove]
    wanted = IncrementalAlterConfigsResource(
        resource_type=ConfigResourceType.TOPIC,
        resource_name=request.topic,
        configs=[
            IncrementalAlterConfigsConfig(name=name, config_operation=operation, value=value)
            for name, operation, value in call.sliced(changes)
        ],
    )
    answer = await call.ask(
        IncrementalAlterConfigsRequest(resources=[wanted], validate_only=request.validate_only),
        IncrementalAlterConfigsResponse,
    )
    (result,) = answer.responses
    check_code(result.error_code, result.error_message)
    return Nothing()


ENDPOINTS = (
    Endpoint(
        method="GET",
        template="/topics/{topic}/config",
        summary="The settings of a topic, each with the sources of its value.",
        handle=topic_config,
        request=TopicRequest,
        response=TopicConfigView,
    ),
    Endpoint(
        method="PUT",
        template="/topics/{topic}/config",
        summary="Change settings of a topic, or only validate the change.",
        handle=change_topic_config,
        request=TopicConfigChange,
        response=Nothing,
    ),
)
