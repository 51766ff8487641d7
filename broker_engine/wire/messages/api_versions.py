"""ApiVersions (key 18), versions 0-4; always answered with response header v0, and before any authentication."""

from __future__ import annotations

from broker_engine.wire.api import declare
from broker_engine.wire.kinds import Array, Bool, Int16, Int32, Int64, String
from broker_engine.wire.schema import Message, Struct, field


class ApiVersionsRequest(Message, versions="0-4", flexible="3+"):
    client_software_name: String = field("3+", default="", ignorable=True)
    client_software_version: String = field("3+", default="", ignorable=True)


class ApiVersion(Struct):
    api_key: Int16 = 0
    min_version: Int16 = 0
    max_version: Int16 = 0


class SupportedFeatureKey(Struct):
    name: String = ""
    min_version: Int16 = 0
    max_version: Int16 = 0


class FinalizedFeatureKey(Struct):
    name: String = ""
    max_version_level: Int16 = 0
    min_version_level: Int16 = 0


class ApiVersionsResponse(Message, versions="0-4", flexible="3+"):
    error_code: Int16 = 0
    api_keys: Array[ApiVersion] = ()
    throttle_time_ms: Int32 = field("1+", default=0, ignorable=True)
    supported_features: Array[SupportedFeatureKey] = field("3+", default=(), tag=0, ignorable=True)
    finalized_features_epoch: Int64 = field("3+", default=-1, tag=1, ignorable=True)
    finalized_features: Array[FinalizedFeatureKey] = field("3+", default=(), tag=2, ignorable=True)
    zk_migration_ready: Bool = field("3+", default=False, tag=3, ignorable=True)


API = declare(18, "ApiVersions", ApiVersionsRequest, ApiVersionsResponse)
