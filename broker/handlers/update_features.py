"""UpdateFeatures (key 57, v0-2).

Sets the finalized levels of features. Either all updates of the request are applied or none.
As in Kafka, unsafe downgrades are refused, and the field allow_downgrade of v0 is ignored.
v1 adds upgrade types and validate_only · v2 has no results per feature in the response."""

from collections.abc import Mapping

from odradek.broker.requests.context import RequestContext
from odradek.broker.security.operations import AclOperation
from odradek.broker.turns.slices import Slices
from odradek.coordinator.metadata.feature_updates import FeatureUpdate
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.update_features import (
    UpdateFeaturesRequest,
    UpdateFeaturesResponse,
    UpdateFeaturesResult,
)

LAST_VERSION_WITH_RESULTS = 1


async def handle(context: RequestContext, request: UpdateFeaturesRequest) -> UpdateFeaturesResponse:
    updates = {
        update.feature: FeatureUpdate(update.max_version_level, update.upgrade_type)
        for update in context.sliced(request.feature_updates)
    }
    context.check_cluster(AclOperation.ALTER)
    await context.broker.admin.operations.run(
        lambda slices: finalize(context, updates, slices, validate_only=request.validate_only)
    )
    await context.broker.metadata_log.sync()
    results = []
    if context.api_version <= LAST_VERSION_WITH_RESULTS:
        results = [result_of(update.feature) for update in context.sliced(request.feature_updates)]
    return UpdateFeaturesResponse(results=results)


async def finalize(
    context: RequestContext,
    updates: Mapping[str, FeatureUpdate],
    slices: Slices,
    *,
    validate_only: bool,
) -> None:
    admin = context.broker.admin
    async with admin.operations.decision_lock:
        context.broker.controller.update_features(
            updates, context.now_ms, validate_only=validate_only
        )
        # Enabling eligible leader replicas can set min.insync.replicas for the cluster.
        admin.applied_config.refresh(slices.step)


def result_of(feature: str) -> UpdateFeaturesResult:
    # In Kafka, the message of the error code NONE is its name.
    return UpdateFeaturesResult(
        feature=feature, error_code=ErrorCode.NONE, error_message=ErrorCode.NONE.name
    )
