"""ApiVersions (key 18, v0-5).

Lists the served APIs with their versions, and the features. The APIs of client telemetry (KIP-714)
are listed only if the broker is configured to receive metrics of clients, as in Kafka. A request in
an unknown version is answered in v0, with the versions of ApiVersions itself (KIP-511). Below v4,
features whose minimum level is 0 are left out (KAFKA-17492).
v3 adds the name and version of the client software · v5 adds the cluster and node that the client
expects; a request has both or neither (KIP-1242)."""

import re

from odradek.broker.requests.context import RequestContext
from odradek.coordinator.metadata.features import KRAFT_VERSION
from odradek.protocol.api_keys import ApiKey
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.api_versions import (
    ApiVersionsFinalizedFeature,
    ApiVersionsKey,
    ApiVersionsRequest,
    ApiVersionsResponse,
    ApiVersionsSupportedFeature,
)

NO_NODE = -1  # the client expects no particular node
# Longer names and versions of client software are cut. The broker keeps them for each connection.
MAX_SOFTWARE_LENGTH = 64
TELEMETRY_KEYS = (ApiKey.GET_TELEMETRY_SUBSCRIPTIONS, ApiKey.PUSH_TELEMETRY)
SOFTWARE_NAME = re.compile(r"[a-zA-Z0-9](?:[a-zA-Z0-9\-.]*[a-zA-Z0-9])?")


def handle(context: RequestContext, request: ApiVersionsRequest | None) -> ApiVersionsResponse:
    """Answer a request. `request` is None if its version is unknown: it cannot be decoded then."""
    if request is None:
        return unsupported_version(context)
    if context.api_version >= 3 and not is_valid(request):
        return ApiVersionsResponse(error_code=ErrorCode.INVALID_REQUEST)
    if (request.cluster_id is None) != (request.node_id == NO_NODE):
        return ApiVersionsResponse(error_code=ErrorCode.INVALID_REQUEST)
    if is_for_another_broker(context, request):
        return ApiVersionsResponse(error_code=ErrorCode.REBOOTSTRAP_REQUIRED)
    if context.session.guard is not None:
        # The client has not logged in yet. After this response it must send SaslHandshake.
        context.session.guard.versions_sent()
    context.session.client_id = context.client_id
    if context.api_version >= 3:
        name, version = request.client_software_name, request.client_software_version
        context.session.software = name[:MAX_SOFTWARE_LENGTH], version[:MAX_SOFTWARE_LENGTH]
    features = context.broker.metadata.features
    return ApiVersionsResponse(
        api_keys=served_keys(context),
        supported_features=[
            ApiVersionsSupportedFeature(name=name, min_version=lowest, max_version=highest)
            for name, (lowest, highest) in features.supported.items()
            if lowest > 0 or context.api_version >= 4
        ],
        finalized_features_epoch=context.broker.metadata_end_offset - 1,
        finalized_features=[
            ApiVersionsFinalizedFeature(name=name, min_version_level=level, max_version_level=level)
            for name, level in finalized_levels(context).items()
        ],
    )


def finalized_levels(context: RequestContext) -> dict[str, int]:
    """The finalized levels. The quorum keeps kraft.version, which is added if it is above 0."""
    levels = dict(context.broker.metadata.features.finalized)
    kraft_version = context.broker.kraft_version
    if kraft_version:
        levels[KRAFT_VERSION] = kraft_version
    return levels


def is_valid(request: ApiVersionsRequest) -> bool:
    return bool(
        SOFTWARE_NAME.fullmatch(request.client_software_name)
        and SOFTWARE_NAME.fullmatch(request.client_software_version)
    )


def is_for_another_broker(context: RequestContext, request: ApiVersionsRequest) -> bool:
    """Whether the client expects another cluster or node, and so must bootstrap again."""
    broker = context.broker
    expected = (request.cluster_id, request.node_id)
    return expected not in ((None, NO_NODE), (broker.log_manager.cluster_id, broker.nodes.own_id))


def served_keys(context: RequestContext) -> list[ApiVersionsKey]:
    """The APIs that are listed, each with its lowest and highest version.

    The broker accepts some versions that are older than those which Kafka advertises. They are
    listed only in a v0 response. Only clients of Kafka 0.10 still send v0, and they refuse a broker
    whose lowest version of Fetch is 4.
    """
    served = context.served
    lowest_from = served.accepted if context.api_version == 0 else served.advertised
    unlisted = () if context.broker.config.receives_telemetry else TELEMETRY_KEYS
    return [
        ApiVersionsKey(
            api_key=key, min_version=lowest_from[key].lowest, max_version=versions.highest
        )
        for key, versions in served.advertised.items()
        if key not in unlisted
    ]


def unsupported_version(context: RequestContext) -> ApiVersionsResponse:
    lowest, highest = context.served.advertised[ApiKey.API_VERSIONS]
    key = ApiVersionsKey(api_key=ApiKey.API_VERSIONS, min_version=lowest, max_version=highest)
    return ApiVersionsResponse(error_code=ErrorCode.UNSUPPORTED_VERSION, api_keys=[key])
