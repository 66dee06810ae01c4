"""UpdateFeatures (key 57, v0-2).

Finalises levels of the features we serve, all that are asked for or none. v1 how (upgrade, safe or
unsafe downgrade: Kafka does no unsafe ones either) and validate_only; v0's allow_downgrade is not
heard, as in Kafka · v2 no answer for each feature."""

from odradek.broker.requests.context import RequestContext
from odradek.broker.security.operations import AclOperation
from odradek.coordinator.metadata.feature_updates import FeatureUpdate
from odradek.protocol.errors import ApiError, ErrorCode
from odradek.protocol.messages.update_features import (
    UpdateFeaturesRequest,
    UpdateFeaturesResponse,
    UpdateFeaturesResult,
)

LAST_VERSION_WITH_RESULTS = 1


async def handle(context: RequestContext, request: UpdateFeaturesRequest) -> UpdateFeaturesResponse:
    updates = {
        update.feature: FeatureUpdate(update.max_version_level, update.upgrade_type)
        for update in request.feature_updates
    }
    try:
        context.check_cluster(AclOperation.ALTER)
        context.broker.controller.update_features(
            updates, context.now_ms, validate_only=request.validate_only
        )
    except ApiError as error:
        return UpdateFeaturesResponse(error_code=error.code, error_message=error.message)
    # min.insync.replicas may have been settled with eligible leader replicas.
    context.broker.config_in_force.refresh()
    await context.broker.metadata_sync.sync()
    results = []
    if context.api_version <= LAST_VERSION_WITH_RESULTS:
        results = [result_of(update.feature) for update in request.feature_updates]
    return UpdateFeaturesResponse(error_code=ErrorCode.NONE, error_message=None, results=results)


def result_of(feature: str) -> UpdateFeaturesResult:
    return UpdateFeaturesResult(
        feature=feature, error_code=ErrorCode.NONE, error_message=ErrorCode.NONE.name
    )
