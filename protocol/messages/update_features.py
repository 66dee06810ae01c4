"""UpdateFeatures (key 57): raise or lower the finalized level of features (KIP-584)."""

from typing import Annotated

from odradek.protocol.api_keys import ApiKey
from odradek.protocol.schema import (
    IGNORABLE,
    Bool,
    Int8,
    Int16,
    Int32,
    Message,
    String,
    Struct,
    since,
    until,
)


class UpdateFeaturesUpdate(Struct):
    feature: String
    max_version_level: Int16
    allow_downgrade: Annotated[Bool, until(0)] = False
    upgrade_type: Annotated[Int8, since(1)] = 1


class UpdateFeaturesRequest(Message, key=ApiKey.UPDATE_FEATURES, versions="0-2", flexible="0+"):
    timeout_ms: Int32 = 60000
    feature_updates: list[UpdateFeaturesUpdate]
    validate_only: Annotated[Bool, since(1)] = False


class UpdateFeaturesResult(Struct):
    feature: String
    error_code: Int16 = 0
    error_message: String | None = None


class UpdateFeaturesResponse(Message, key=ApiKey.UPDATE_FEATURES, versions="0-2", flexible="0+"):
    throttle_time_ms: Int32 = 0
    error_code: Int16 = 0
    error_message: String | None = None
    results: Annotated[list[UpdateFeaturesResult], until(1), IGNORABLE] = []
