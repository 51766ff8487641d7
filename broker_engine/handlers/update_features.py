"""UpdateFeatures (key 57), versions 0-2, root only: `transaction.version` is what may be set, all changes or none.

Left out: the time-out (the answer comes when it is done).
"""

from __future__ import annotations

from broker_engine.errors import BrokerError, ErrorCode
from broker_engine.handlers.api import Api, Call, Scope
from broker_engine.metadata.features import SAFE_DOWNGRADE, UPGRADE, FeatureChange, update_features
from broker_engine.wire.messages.update_features import (
    FeatureUpdate,
    FeatureUpdateResult,
    UpdateFeaturesRequest,
    UpdateFeaturesResponse,
)

_FIRST_VERSION_WITH_TYPE = 1


async def handle(request: UpdateFeaturesRequest, call: Call) -> UpdateFeaturesResponse:
    if not call.principal.is_root:
        raise BrokerError(ErrorCode.CLUSTER_AUTHORIZATION_FAILED, "features belong to the cluster")
    changes = [_change(update, call.version) for update in request.feature_updates]
    try:
        await call.broker.metadata.commit(
            lambda image: update_features(image, changes, validate_only=request.validate_only)
        )
    except BrokerError as error:
        if error.code is not ErrorCode.INVALID_UPDATE_VERSION:
            raise
        text = f"The update failed for all features since the following feature had an error: {error.message}"
        return UpdateFeaturesResponse(error_code=error.code, error_message=text)
    # Kafka's own words for a change that was made.
    results = [FeatureUpdateResult(feature=change.name, error_message=ErrorCode.NONE.name) for change in changes]
    return UpdateFeaturesResponse(results=results)


def refuse(request: UpdateFeaturesRequest, error: BrokerError) -> UpdateFeaturesResponse:
    return UpdateFeaturesResponse(error_code=error.code, error_message=error.message or None)


def _change(update: FeatureUpdate, version: int) -> FeatureChange:
    by_flag = SAFE_DOWNGRADE if update.allow_downgrade else UPGRADE
    upgrade_type = update.upgrade_type if version >= _FIRST_VERSION_WITH_TYPE else by_flag
    return FeatureChange(update.feature, update.max_version_level, upgrade_type)


API = Api(request=UpdateFeaturesRequest, scope=Scope.NAMELESS, handle=handle, refuse=refuse, is_for_controller=True)
