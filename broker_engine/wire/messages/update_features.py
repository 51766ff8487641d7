"""UpdateFeatures (key 57), versions 0-2: sets the levels of cluster features. From v2 one code answers for all."""

from __future__ import annotations

from broker_engine.wire.api import declare
from broker_engine.wire.kinds import Array, Bool, Int8, Int16, Int32, String
from broker_engine.wire.schema import Message, Struct, field


class FeatureUpdate(Struct):
    feature: String = ""
    max_version_level: Int16 = 0
    allow_downgrade: Bool = field("0", default=False)
    upgrade_type: Int8 = field("1+", default=1)


class UpdateFeaturesRequest(Message, versions="0-2", flexible="0+"):
    timeout_ms: Int32 = 60_000
    feature_updates: Array[FeatureUpdate] = ()
    validate_only: Bool = field("1+", default=False)


class FeatureUpdateResult(Struct):
    feature: String = ""
    error_code: Int16 = 0
    error_message: String | None = None


class UpdateFeaturesResponse(Message, versions="0-2", flexible="0+"):
    throttle_time_ms: Int32 = 0
    error_code: Int16 = 0
    error_message: String | None = None
    results: Array[FeatureUpdateResult] = field("0-1", default=(), ignorable=True)


API = declare(57, "UpdateFeatures", UpdateFeaturesRequest, UpdateFeaturesResponse)
