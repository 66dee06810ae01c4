"""ApiVersions (key 18): the supported requests and their versions, and the finalised features.

A client sends it first, before it knows which versions the broker supports. So the header of a
response always has version 0, and a request in an unknown version gets a response in version 0
(KIP-511).
"""

from typing import Annotated

from odradek.protocol.api_keys import ApiKey
from odradek.protocol.schema import (
    IGNORABLE,
    Bool,
    Int16,
    Int32,
    Int64,
    Message,
    String,
    Struct,
    since,
    tagged,
)


class ApiVersionsRequest(Message, key=ApiKey.API_VERSIONS, versions="0-5", flexible="3+"):
    client_software_name: Annotated[String, since(3), IGNORABLE] = ""
    client_software_version: Annotated[String, since(3), IGNORABLE] = ""
    cluster_id: Annotated[String | None, since(5), IGNORABLE] = None
    node_id: Annotated[Int32, since(5), IGNORABLE] = -1


class ApiVersionsKey(Struct):
    api_key: Int16
    min_version: Int16
    max_version: Int16


class ApiVersionsSupportedFeature(Struct):
    name: String
    min_version: Int16
    max_version: Int16


class ApiVersionsFinalizedFeature(Struct):
    name: String
    max_version_level: Int16
    min_version_level: Int16


class ApiVersionsResponse(Message, key=ApiKey.API_VERSIONS, versions="0-5", flexible="3+"):
    error_code: Int16 = 0
    api_keys: list[ApiVersionsKey] = []
    throttle_time_ms: Annotated[Int32, since(1), IGNORABLE] = 0
    supported_features: Annotated[
        list[ApiVersionsSupportedFeature], since(3), tagged(0), IGNORABLE
    ] = []
    finalized_features_epoch: Annotated[Int64, since(3), tagged(1), IGNORABLE] = -1
    finalized_features: Annotated[
        list[ApiVersionsFinalizedFeature], since(3), tagged(2), IGNORABLE
    ] = []
    zk_migration_ready: Annotated[Bool, since(3), tagged(3), IGNORABLE] = False
