"""ApiVersions (key 18), versions 0-4. The list is what the caller's listener speaks, taken from the handlers
themselves.

An unknown version is answered in version 0 with error 35 and this API's own range (server/session.py), so that a newer
client learns how far down it has to go. Left out: features (none is finalized), version 5 (KIP-1242).
"""

from __future__ import annotations

import re

from broker_engine.errors import BrokerError, ErrorCode
from broker_engine.handlers.api import Api, Call, Scope
from broker_engine.wire.api import API_VERSIONS_KEY
from broker_engine.wire.messages.api_versions import ApiVersion, ApiVersionsRequest, ApiVersionsResponse

_FIRST_VERSION_WITH_SOFTWARE_NAME = 3
_SOFTWARE_NAME = re.compile(r"[a-zA-Z0-9](?:[a-zA-Z0-9\-.]*[a-zA-Z0-9])?")


def handle(request: ApiVersionsRequest, call: Call) -> ApiVersionsResponse:
    if call.version >= _FIRST_VERSION_WITH_SOFTWARE_NAME:
        for text in (request.client_software_name, request.client_software_version):
            if _SOFTWARE_NAME.fullmatch(text) is None:
                return ApiVersionsResponse(error_code=ErrorCode.INVALID_REQUEST)
    call.session.sasl.on_api_versions_answered(ErrorCode.NONE)
    return ApiVersionsResponse(
        api_keys=[_entry(key, *api.advertised) for key, api in sorted(call.session.apis.items())]
    )


def refuse(request: ApiVersionsRequest, error: BrokerError) -> ApiVersionsResponse:
    own_range = _entry(API_VERSIONS_KEY, *API.advertised)
    return ApiVersionsResponse(
        error_code=error.code, api_keys=[own_range] if error.code is ErrorCode.UNSUPPORTED_VERSION else []
    )


def _entry(key: int, first: int, last: int) -> ApiVersion:
    return ApiVersion(api_key=key, min_version=first, max_version=last)


API = Api(request=ApiVersionsRequest, scope=Scope.NAMELESS, handle=handle, refuse=refuse, is_before_sign_in=True)
