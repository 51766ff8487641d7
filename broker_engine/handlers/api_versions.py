"""ApiVersions (key 18), versions 0-4. The list is what the caller's listener speaks, taken from the handlers
themselves.

An unknown version is answered in version 0 with error 35 and this API's own range (server/session.py), so that a newer
client learns how far down it has to go. `transaction.version` is shown as finalized once somebody has set it: only then
do clients use transaction version 2. Left out: version 5 (KIP-1242).
"""

from __future__ import annotations

import re

from broker_engine.errors import BrokerError, ErrorCode
from broker_engine.handlers.api import Api, Call, Scope
from broker_engine.metadata.features import SUPPORTED, finalized
from broker_engine.wire.api import API_VERSIONS_KEY
from broker_engine.wire.messages.api_versions import (
    ApiVersion,
    ApiVersionsRequest,
    ApiVersionsResponse,
    FinalizedFeatureKey,
    SupportedFeatureKey,
)

_FIRST_VERSION_WITH_SOFTWARE_NAME = 3
_FIRST_VERSION_WITH_LEVEL_0 = 4
"""Clients below it cannot read a range that begins at 0 (KIP-1022)."""
_SOFTWARE_NAME = re.compile(r"[a-zA-Z0-9](?:[a-zA-Z0-9\-.]*[a-zA-Z0-9])?")


def handle(request: ApiVersionsRequest, call: Call) -> ApiVersionsResponse:
    if call.version >= _FIRST_VERSION_WITH_SOFTWARE_NAME:
        for text in (request.client_software_name, request.client_software_version):
            if _SOFTWARE_NAME.fullmatch(text) is None:
                return ApiVersionsResponse(error_code=ErrorCode.INVALID_REQUEST)
    call.session.sasl.on_api_versions_answered(ErrorCode.NONE)
    image = call.broker.image
    return ApiVersionsResponse(
        api_keys=[_entry(key, *api.advertised) for key, api in sorted(call.session.apis.items())],
        supported_features=_supported(call.version),
        finalized_features_epoch=image.next_offset - 1,
        finalized_features=[
            FinalizedFeatureKey(name=name, max_version_level=level, min_version_level=level)
            for name, level in finalized(image).items()
        ],
    )


def refuse(request: ApiVersionsRequest, error: BrokerError) -> ApiVersionsResponse:
    own_range = _entry(API_VERSIONS_KEY, *API.advertised)
    return ApiVersionsResponse(
        error_code=error.code, api_keys=[own_range] if error.code is ErrorCode.UNSUPPORTED_VERSION else []
    )


def _supported(version: int) -> list[SupportedFeatureKey]:
    return [
        SupportedFeatureKey(name=name, min_version=first, max_version=last)
        for name, (first, last) in SUPPORTED.items()
        if first > 0 or version >= _FIRST_VERSION_WITH_LEVEL_0
    ]


def _entry(key: int, first: int, last: int) -> ApiVersion:
    return ApiVersion(api_key=key, min_version=first, max_version=last)


API = Api(request=ApiVersionsRequest, scope=Scope.NAMELESS, handle=handle, refuse=refuse, is_before_sign_in=True)
