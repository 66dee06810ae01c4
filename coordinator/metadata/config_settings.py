"""Which config overrides are legal, by the broker's configuration and its tables of keys.

The values of a broker's own keys are checked by the broker (broker/admin), which knows what can be
changed at run time. Kafka: ControllerConfigurationValidator.
"""

from collections.abc import Mapping

from odradek.config.broker_config import BrokerConfig
from odradek.config.broker_keys import broker_keys
from odradek.config.client_metrics_config import (
    CLIENT_METRICS_KEYS,
    InvalidSubscriptionError,
    check_client_metrics,
)
from odradek.config.errors import ConfigError
from odradek.config.group_config import GROUP_KEYS, check_group
from odradek.config.key import Key
from odradek.config.topic_config import TOPIC_KEYS
from odradek.protocol.errors import ApiError, ErrorCode
from odradek.storage.topic_names import why_illegal

from .config_changes import ConfigResource, ConfigRules, Overrides
from .configs import ConfigResourceType


def config_rules(config: BrokerConfig) -> ConfigRules:
    """Make the rules of a broker's current configuration."""

    def check(resource: ConfigResource, overrides: Overrides) -> None:
        try:
            check_name(resource)
            check_values(config, resource, overrides)
        except InvalidSubscriptionError as error:
            raise ApiError(ErrorCode.INVALID_REQUEST, str(error)) from None
        except ConfigError as error:
            raise ApiError(ErrorCode.INVALID_CONFIG, str(error)) from None

    return ConfigRules(keys=keys_of_kind, check=check)


def keys_of_kind(kind: int) -> Mapping[str, Key]:
    """Return the keys of a resource type, by name. Raises INVALID_REQUEST."""
    match kind:
        case ConfigResourceType.TOPIC:
            return TOPIC_KEYS
        case ConfigResourceType.BROKER:
            return broker_keys()
        case ConfigResourceType.GROUP:
            return GROUP_KEYS
        case ConfigResourceType.CLIENT_METRICS:
            return CLIENT_METRICS_KEYS
    raise ApiError(ErrorCode.INVALID_REQUEST, f"Unknown resource type {kind}")


def check_name(resource: ConfigResource) -> None:
    """Raise INVALID_REQUEST or INVALID_TOPIC_EXCEPTION unless a resource may have this name."""
    name = resource.name
    match resource.kind:
        case ConfigResourceType.TOPIC if name:
            problem = why_illegal(name)
            if problem is not None:
                raise ApiError(
                    ErrorCode.INVALID_TOPIC_EXCEPTION, f"Topic name is invalid: {problem}"
                )
        case ConfigResourceType.TOPIC | ConfigResourceType.GROUP if not name:
            kind = ConfigResourceType(resource.kind).name.lower()
            raise ApiError(ErrorCode.INVALID_REQUEST, f"Default {kind} resources are not allowed.")
        case ConfigResourceType.CLIENT_METRICS if not name:
            raise ApiError(ErrorCode.INVALID_REQUEST, "Subscription name can't be empty")


def check_values(config: BrokerConfig, resource: ConfigResource, overrides: Overrides) -> None:
    """Raise ConfigError unless all overrides of the resource are legal."""
    match resource.kind:
        case ConfigResourceType.TOPIC:
            config.topic_config(overrides)
        case ConfigResourceType.GROUP:
            check_group(config, overrides)
        case ConfigResourceType.CLIENT_METRICS:
            check_client_metrics(overrides)
